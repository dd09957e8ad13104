/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits: the hook is there while the clocks run, as far as its budget allows (wait_control.h), and
 * what it took is weighed by that.
 */
#include "base/clock.h"
#include "host/host_int.h"

/* Of the budget for everything. */
#define WAIT_PART 0.25

static void complain(struct kiln_host *host, int code)
{
    kiln_log(host->opts.log, KILN_LOG_WARN, "waits cannot be sampled just now", "reason", "%s",
             kiln_err_text(code), NULL);
}

static void attach(struct kiln_host *host, bool on)
{
    struct host_reader *reader = &host->reader;
    int r = reader->has_waits ? kiln_kernel_wait_attach(reader->kernel, on) : 0;

    if (r < 0)
        complain(host, r);
}

void host_wait_begin(struct kiln_host *host)
{
    struct host_reader *reader = &host->reader;
    struct kiln_wait_stats stats;

    kiln_wait_control_init(&reader->waits, host->opts.cpu_budget * WAIT_PART,
                           KILN_NS_PER_S / host->opts.hz, kiln_clock_mono_ns());
    reader->waits_from_ns = kiln_clock_mono_ns();
    kiln_kernel_wait_stats(reader->kernel, &stats);
    reader->has_waits = stats.way != KILN_WAIT_WAY_NONE;
    if (host->opts.off_cpu && !reader->has_waits)
        kiln_log(host->opts.log, KILN_LOG_WARN,
                 "waits are not sampled: this kernel has no hook for them (sched_exit_tp or "
                 "sched_switch with types, Linux 6.1 or later)",
                 NULL);
    if (!host->opts.paused)
        attach(host, true);
}

static void tell_period(struct kiln_host *host)
{
    struct host_reader *reader = &host->reader;
    int r = kiln_kernel_wait_period(reader->kernel, reader->waits.period_ns);

    if (r < 0)
        complain(host, r);
}

void host_wait_rate(struct kiln_host *host, uint32_t hz)
{
    struct host_reader *reader = &host->reader;

    if (!reader->has_waits || !hz)
        return;
    kiln_wait_control_set(&reader->waits, reader->waits.share, KILN_NS_PER_S / hz);
    tell_period(host);
}

void host_wait_turn(struct kiln_host *host)
{
    struct host_reader *reader = &host->reader;
    bool on = kiln_wait_control_turn(&reader->waits, kiln_clock_mono_ns());

    attach(host, on && reader->hz);
}

void host_wait_look(struct kiln_host *host, const struct kiln_kernel_stats *kernel)
{
    struct host_reader *reader = &host->reader;
    uint64_t before = reader->waits.period_ns;
    struct kiln_wait_tally tally = {.switches = kernel->counts[KILN_COUNT_SWITCHES],
                                    .taken = kernel->counts[KILN_COUNT_WAITS],
                                    .there_ns = kernel->wait.there_ns};

    if (!reader->has_waits)
        return;
    kiln_wait_control_look(&reader->waits, kiln_clock_mono_ns(), &tally);
    if (reader->waits.period_ns != before)
        tell_period(host);
}

bool host_wait_counts(const struct host_reader *reader, const struct kiln_record *record)
{
    return record->kind != KILN_KIND_WAIT || record->began_ns >= reader->waits_from_ns;
}

uint64_t host_wait_weigh(const struct host_reader *reader, const struct kiln_record *record,
                         uint64_t ns)
{
    double weight = kiln_wait_control_weight(&reader->waits, record->between_ns);

    return weight > 1 ? (uint64_t)((double)ns * weight) : ns;
}

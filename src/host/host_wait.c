/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits: the hook is there while the clocks run, as far as its budget allows (wait_control.h), and
 * what it took is weighed by that.
 */
#include <errno.h>

#include "base/clock.h"
#include "host/host_int.h"

/* Of the budget for everything. */
#define WAIT_PART      0.1
#define LONG_INTERVALS 2
#define CHANCES        4294967296.0 /* what a record's chance is of */

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

int host_wait_begin(struct kiln_host *host)
{
    struct host_reader *reader = &host->reader;
    struct kiln_wait_stats stats;

    kiln_wait_control_init(&reader->waits, host->opts.cpu_budget * WAIT_PART,
                           KILN_NS_PER_S / host->opts.hz, kiln_clock_mono_ns());
    reader->every_ns = host->opts.every_ns;
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
    return stats.way == KILN_WAIT_WAY_SWITCH ? kiln_begun_new(0, &reader->begun) : 0;
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

void host_wait_look(struct kiln_host *host, const struct kiln_kernel_stats *kernel, uint64_t cpu_ns)
{
    struct host_reader *reader = &host->reader;
    uint64_t before = reader->waits.period_ns;
    struct kiln_wait_tally tally = {.switches = kernel->counts[KILN_COUNT_SWITCHES],
                                    .taken = kernel->counts[KILN_COUNT_WAITS],
                                    .there_ns = kernel->wait.there_ns,
                                    .samples = reader->samples,
                                    .cpu_ns = cpu_ns};

    if (!reader->has_waits)
        return;
    kiln_wait_control_look(&reader->waits, kiln_clock_mono_ns(), &tally);
    if (reader->waits.period_ns != before)
        tell_period(host);
}

/* What was waited while the hook was away is in the weights of what is seen when it is there. */
uint64_t host_wait_cut(struct kiln_host *host, uint64_t end_ns)
{
    struct host_reader *reader = &host->reader;
    uint64_t began_ns = reader->waits_began_ns;
    struct kiln_wait_stats stats;

    kiln_kernel_wait_stats(reader->kernel, &stats);
    if (stats.there_ns != reader->waits_there_ns)
        reader->waits_began_ns = end_ns;
    reader->waits_there_ns = stats.there_ns;
    return began_ns;
}

bool host_wait_counts(const struct host_reader *reader, const struct kiln_record *record)
{
    return record->kind != KILN_KIND_WAIT || record->began_ns >= reader->waits_from_ns;
}

/* ---- what it took ---- */

/* As much as the record stands for. */
static int64_t weigh(const struct host_reader *reader, const struct kiln_record *record,
                     uint64_t ns)
{
    double weight = kiln_wait_control_weight(&reader->waits, record->time_ns, record->between_ns);

    if (record->chance)
        weight *= CHANCES / ((double)record->chance + 1);
    return weight > 1 ? (int64_t)((double)ns * weight) : (int64_t)ns;
}

/*
 * A profile counts from when it began.  What began long before this batch has one of its own, with
 * all that began in the same interval.
 */
static uint32_t since_s(const struct host_reader *reader, const struct kiln_record *record)
{
    uint64_t every_s = (reader->every_ns + KILN_NS_PER_S - 1) / KILN_NS_PER_S;

    if (record->time_ns - record->began_ns <= LONG_INTERVALS * reader->every_ns)
        return 0;
    return (uint32_t)(record->began_ns / KILN_NS_PER_S / every_s * every_s);
}

static int add_states(struct host_reader *reader, struct kiln_gather_sample *sample,
                      const struct kiln_record *record)
{
    uint8_t reason = sample->reason;
    int r = 0;

    sample->since_s = since_s(reader, record);
    sample->state = KILN_STATE_RUNNABLE;
    sample->reason = 0;
    sample->value = weigh(reader, record, record->runnable_ns);
    if (sample->value)
        r = kiln_gather_add(reader->gather, sample);
    sample->state = KILN_STATE_BLOCKED;
    sample->reason = reason;
    sample->value = weigh(reader, record, record->wait_ns - record->runnable_ns);
    return r < 0 || !sample->value ? r : kiln_gather_add(reader->gather, sample);
}

int host_wait_add(struct host_reader *reader, struct kiln_gather_sample *sample,
                  const struct kiln_record *record)
{
    sample->reason = (uint8_t)kiln_wait_reason_of(record);
    if (!(record->flags & KILN_RECORD_BEGINS))
        return add_states(reader, sample, record);
    return reader->begun ? kiln_begun_add(reader->begun, record, sample) : -EINVAL;
}

void host_wait_end(struct host_reader *reader, const struct kiln_record *record)
{
    const struct kiln_gather_sample *begun =
        reader->begun ? kiln_begun_take(reader->begun, record) : NULL;
    struct kiln_gather_sample sample;

    if (!begun)
        return;
    sample = *begun;
    if (add_states(reader, &sample, record) < 0)
        reader->ends.lost++;
}

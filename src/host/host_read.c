/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread kiln-host.  Once a second, or sooner when a buffer fills or a process is sampled that
 * is not known yet, it looks at everything that the kernel wrote: two rounds of draining one behind
 * the other, so that all that was written before the first of them is in order and can be shown
 * (host/merge.h).
 *
 * What was gathered is cut off every `every_ns`, when half of its memory is full, and wherever the
 * rate changes.  Processes that are gone do not wait for that: what was gathered holds what it
 * takes to publish them.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "host/host_int.h"

#define TELL_NS  KILN_NS_PER_S
#define SWEEP_NS (2 * KILN_NS_PER_S)

/* ---- samples ---- */

static struct kiln_gframe kernel_frame(const struct kiln_record *record, uint32_t i)
{
    /* The kernel gives return addresses; all but the first stand behind the call. */
    return (struct kiln_gframe){.kind = KILN_FRAME_KERNEL, .address = record->frames[i] - (i > 0)};
}

static struct kiln_gframe jit_frame(struct host_reader *reader, struct kiln_process *process,
                                    uint32_t map, uint64_t address)
{
    return (struct kiln_gframe){.kind = KILN_FRAME_JIT,
                                .object = kiln_process_jitdump(reader->processes, process),
                                .map = map,
                                .address = address};
}

static struct kiln_gframe user_frame(struct host_reader *reader, struct kiln_process *process,
                                     uint64_t address)
{
    const struct kiln_map *map = kiln_process_map(reader->processes, process, address);

    if (!map)
        return (struct kiln_gframe){.kind = KILN_FRAME_LOST};
    if (map->object && map->object->kind != KILN_OBJECT_OTHER)
        return (struct kiln_gframe){
            .kind = KILN_FRAME_NATIVE, .object = map->object, .address = address - map->bias};
    if (map->object || map->kind == KILN_MAP_ANONYMOUS)
        return jit_frame(reader, process, map->id, address);
    return (struct kiln_gframe){.kind = KILN_FRAME_LOST};
}

static uint32_t fill_frames(struct host_reader *reader, struct kiln_process *process,
                            const struct kiln_record *record)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < record->n_kernel && n < KILN_KERNEL_FRAMES_MAX; i++)
        reader->frames[n++] = kernel_frame(record, i);
    for (uint32_t i = 0; i < reader->walked.n && n < FRAMES_MAX; i++)
        reader->frames[n++] = user_frame(reader, process, reader->walked.frames[i]);
    return n;
}

static int add_all(struct host_reader *reader, struct kiln_gather_sample *sample,
                   const struct kiln_record *record)
{
    if (record->kind == KILN_KIND_WAIT)
        return host_wait_add(reader, sample, record);
    sample->value = record->weight;
    return kiln_gather_add(reader->gather, sample);
}

static struct kiln_gather_sample sample_of(const struct kiln_record *record,
                                           struct kiln_identity *identity)
{
    struct kiln_gather_sample sample = {.identity = identity,
                                        .tid = record->tid,
                                        .comm = record->comm,
                                        .kind = record->kind,
                                        .hz = record->kind == KILN_KIND_CPU ? record->hz : 0};

    memcpy(sample.link.trace_id, record->trace_id, sizeof(sample.link.trace_id));
    memcpy(sample.link.span_id, record->span_id, sizeof(sample.link.span_id));
    return sample;
}

static bool has_link(const struct kiln_gather_sample *sample)
{
    static const uint8_t none[sizeof(sample->link.span_id)];

    return memcmp(sample->link.span_id, none, sizeof(none)) != 0;
}

static void on_sample(void *context, const struct kiln_record *record)
{
    struct host_reader *reader = context;
    struct kiln_process *process = kiln_processes_of(reader->processes, record);
    struct kiln_identity *identity =
        process ? kiln_process_identity(reader->processes, process) : NULL;
    struct kiln_gather_sample sample = sample_of(record, identity);

    if (!identity) {
        reader->ends.lost += record->weight;
        return;
    }
    if (!host_orders_want(reader, record, identity))
        return;
    kiln_contexts_follow(&reader->contexts, process, record->time_ns);
    reader->walked.n = 0;
    reader->walked.end = KILN_END_NO_USER;
    if (!(record->flags & KILN_RECORD_KERNEL_THREAD))
        kiln_rewind(reader->tables, reader->processes, process, record, &reader->walked);
    sample.end = reader->walked.end;
    sample.frames = reader->frames;
    sample.n_frames = fill_frames(reader, process, record);
    if (add_all(reader, &sample, record) < 0) {
        reader->ends.lost += record->weight;
        return;
    }
    reader->ends.by_end[sample.end] += record->weight;
    reader->samples += record->weight;
    reader->linked += has_link(&sample) ? record->weight : 0;
}

static void on_record(void *context, const struct kiln_record *record)
{
    if (record->flags & KILN_RECORD_ENDS)
        host_wait_end(context, record);
    else if (host_wait_counts(context, record))
        on_sample(context, record);
}

static void on_event(void *context, const struct kiln_event *event)
{
    struct host_reader *reader = context;

    kiln_merge_saw(reader->merge, event->time_ns);
    host_orders_event(reader, event);
    kiln_processes_apply(reader->processes, event);
}

static void on_before(void *context, uint64_t time_ns)
{
    struct host_reader *reader = context;

    kiln_sideband_drain(reader->sideband, time_ns, on_event, reader);
}

/* ---- rounds ---- */

static void drained_sample(void *context, const struct kiln_record *record)
{
    kiln_merge_add_sample(context, record);
}

static void round_of(struct host_reader *reader)
{
    uint64_t now = kiln_clock_mono_ns();

    kiln_merge_begin(reader->merge, now);
    (void)!kiln_sideband_look(reader->sideband);
    kiln_kernel_drain(reader->kernel, drained_sample, reader->merge);
    kiln_merge_end(reader->merge);
}

static void look(struct host_reader *reader)
{
    reader->horizon_ns = kiln_clock_mono_ns();
    round_of(reader);
    round_of(reader);
}

/* ---- cutting ---- */

/* All that was gathered until `end_ns` (monotonic) becomes a batch. */
static void cut(struct kiln_host *host, uint64_t end_ns)
{
    struct host_reader *reader = &host->reader;
    uint64_t to_unix = kiln_clock_unix_ns() - kiln_clock_mono_ns(), waits_began_ns;
    struct kiln_gathering *gathering;

    if (kiln_gather_take(reader->gather, &gathering) < 0)
        return; /* no memory just now: it goes out with the next one */
    reader->processes_seen = gathering ? gathering->n_identities : 0;
    waits_began_ns = host_wait_cut(host, end_ns);
    if (gathering) {
        gathering->to_unix_ns = to_unix;
        gathering->begin_unix_ns = reader->began_ns + to_unix;
        gathering->waits_begin_unix_ns = waits_began_ns + to_unix;
        gathering->end_unix_ns = end_ns + to_unix;
        host_queue(host, gathering);
    }
    reader->began_ns = end_ns;
}

/* Everything that there is, shown and cut: the clocks stand, nothing more will come. */
static void finish(struct kiln_host *host)
{
    struct host_reader *reader = &host->reader;

    look(reader);
    kiln_merge_flush(reader->merge);
    cut(host, kiln_clock_mono_ns());
}

/* ---- rates and windows ---- */

static bool has_windows(const struct kiln_host_opts *opts)
{
    return opts->window_ns && opts->window_every_ns > opts->window_ns;
}

bool host_between_windows(const struct kiln_host *host, uint64_t now)
{
    const struct kiln_host_opts *opts = &host->opts;

    return has_windows(opts) &&
           (now - host->reader.window_began_ns) % opts->window_every_ns >= opts->window_ns;
}

static uint32_t rate_at(struct kiln_host *host, uint64_t now)
{
    return host_between_windows(host, now) ? 0 : atomic_load(&host->want_hz);
}

/* What holds now, by settings, windows, orders and budgets. */
static struct kiln_steer_rates rates_at(struct kiln_host *host, uint64_t now)
{
    struct kiln_steer_rates rates = {0, 0};

    if (atomic_load(&host->want_hz) && !host->reader.watch.stopped)
        rates =
            kiln_steer_rates(host->reader.steer, rate_at(host, now), host->reader.watch.lowered);
    if (host->opts.waits_only)
        rates.clock_hz = 0;
    return rates;
}

/* From clocks that run to others: they stand for a moment, no longer. */
static int go_on(struct kiln_host *host, struct kiln_steer_rates to)
{
    struct host_reader *reader = &host->reader;
    int r = kiln_kernel_set_rates(reader->kernel, to.hz, to.clock_hz);

    look(reader);
    cut(host, reader->horizon_ns);
    return r;
}

static int stop_or_start(struct kiln_host *host, struct kiln_steer_rates to)
{
    struct host_reader *reader = &host->reader;
    int r = reader->clock_hz ? kiln_kernel_set_rate(reader->kernel, 0) : 0;

    if (reader->hz) {
        reader->hz = 0;
        host_wait_turn(host);
    }
    if (r == 0)
        finish(host);
    if (r == 0 && to.clock_hz)
        r = kiln_kernel_set_rates(reader->kernel, to.hz, to.clock_hz);
    reader->began_ns = reader->waits_began_ns = kiln_clock_mono_ns();
    return r;
}

static void change_rate(struct kiln_host *host, struct kiln_steer_rates to)
{
    struct host_reader *reader = &host->reader;
    int r = reader->clock_hz && to.clock_hz ? go_on(host, to) : stop_or_start(host, to);

    if (r < 0)
        kiln_log(host->opts.log, KILN_LOG_WARN, "the rate of sampling cannot be changed", "reason",
                 "%s", kiln_err_text(r), NULL);
    reader->hz = to.hz;
    reader->clock_hz = to.clock_hz;
    host_wait_rate(host, to.hz);
    host_wait_turn(host);
    if (reader->next_cut_ns <= reader->began_ns)
        reader->next_cut_ns = reader->began_ns + host->opts.every_ns;
}

/* ---- the thread ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t every_ns(const struct kiln_host *host)
{
    return atomic_load(&host->watched) ? earlier(host->opts.every_ns, KILN_HOST_EVERY_NS)
                                       : host->opts.every_ns;
}

/* When the window begins or ends next. */
static uint64_t window_turns_ns(const struct kiln_host *host, uint64_t now)
{
    const struct kiln_host_opts *opts = &host->opts;
    uint64_t into;

    if (!has_windows(opts))
        return UINT64_MAX;
    into = (now - host->reader.window_began_ns) % opts->window_every_ns;
    return now + (into < opts->window_ns ? opts->window_ns : opts->window_every_ns) - into;
}

static int wait_ms(const struct kiln_host *host)
{
    const struct host_reader *reader = &host->reader;
    uint64_t now = kiln_clock_mono_ns();
    uint64_t due =
        earlier(earlier(reader->next_cut_ns, reader->next_tell_ns), window_turns_ns(host, now));

    due = earlier(due, kiln_steer_turns_ns(reader->steer));
    due = earlier(due, reader->has_waits && reader->hz ? reader->waits.turn_ns : UINT64_MAX);
    due = earlier(due, reader->contexts.wake_ns ? reader->contexts.wake_ns : UINT64_MAX);
    return due > now ? (int)((due - now) / KILN_NS_PER_MS) + 1 : 0;
}

/*
 * Edges alone count: whoever puts something down says whether it is worth waking for, and a sample
 * that lies in the ring since is not.
 */
int host_sleep_open(struct kiln_host *host)
{
    struct epoll_event edge = {.events = EPOLLIN | EPOLLET};
    int fds[] = {kiln_kernel_fd(host->reader.kernel), kiln_sideband_fd(host->reader.sideband), -1};

    host->wake = fds[2] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    host->sleep = epoll_create1(EPOLL_CLOEXEC);
    if (host->wake < 0 || host->sleep < 0)
        return -errno;
    for (size_t i = 0; i < KILN_ARRAY_LEN(fds); i++)
        if (fds[i] >= 0 && epoll_ctl(host->sleep, EPOLL_CTL_ADD, fds[i], &edge) < 0)
            return -errno;
    return 0;
}

static void sleep_a_little(struct kiln_host *host)
{
    struct epoll_event woken[3];

    (void)!epoll_wait(host->sleep, woken, KILN_ARRAY_LEN(woken), wait_ms(host));
}

/* Much is gathered where many processors are busy: it goes out before there is no more room. */
static bool cut_is_due(const struct kiln_host *host, uint64_t now)
{
    const struct host_reader *reader = &host->reader;

    return now >= reader->next_cut_ns ||
           kiln_gather_bytes(reader->gather) > host->opts.memory_bytes / GATHER_PART / 2;
}

static void step(struct kiln_host *host)
{
    struct host_reader *reader = &host->reader;
    struct kiln_steer_rates rates;
    uint64_t now;

    if (kiln_clock_mono_ns() >= reader->contexts.wake_ns)
        reader->contexts.wake_ns = 0;
    look(reader);
    now = kiln_clock_mono_ns();
    host_orders_step(host, now);
    rates = rates_at(host, now);
    if (rates.hz != reader->hz || rates.clock_hz != reader->clock_hz)
        change_rate(host, rates);
    else
        host_wait_turn(host);
    reader->next_cut_ns = earlier(reader->next_cut_ns, now + every_ns(host));
    if (cut_is_due(host, now)) {
        cut(host, reader->horizon_ns);
        reader->next_cut_ns = now + every_ns(host);
    }
    if (now >= reader->next_sweep_ns) {
        kiln_processes_sweep(reader->processes);
        reader->next_sweep_ns = now + SWEEP_NS;
    }
    if (now >= reader->next_tell_ns) {
        host_tell(host);
        reader->next_tell_ns = now + TELL_NS;
    }
}

int host_merge_new(struct kiln_host *host)
{
    struct kiln_merge_visitor visitor = {on_before, on_record, &host->reader};

    return kiln_merge_new(host->opts.memory_bytes / MERGE_PART, &visitor, &host->reader.merge);
}

void *host_read(void *arg)
{
    struct kiln_host *host = arg;
    struct host_reader *reader = &host->reader;

    reader->began_ns = reader->waits_began_ns = reader->window_began_ns = kiln_clock_mono_ns();
    /* The first batch comes soon: somebody may be waiting to see that it works. */
    reader->next_cut_ns = reader->began_ns + earlier(host->opts.every_ns, KILN_HOST_EVERY_NS);
    while (!atomic_load(&host->stopping)) {
        step(host);
        sleep_a_little(host);
    }
    change_rate(host, (struct kiln_steer_rates){0, 0});
    host_tell(host);
    host_queue_close(host);
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told of the host profiler: its status, and its metrics.  Both are brought up to date once
 * a second by the reader's thread, which owns all that is counted there.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "host/host_int.h"

struct host_metrics {
    struct kiln_metric *ends[KILN_ENDS];
    struct kiln_metric *samples, *lost, *dropped, *success, *processes, *rate;
    struct kiln_metric *clock, *boosted, *paused, *paused_samples;
    struct kiln_metric *raw, *raw_held, *filtered, *foreign;
    struct kiln_metric *late, *early;
    struct kiln_metric *linked, *span_processes, *spans_unfound;
    struct kiln_metric *bpf_seconds, *bpf_runs, *bpf_bytes;
    struct kiln_metric *unwind_bytes, *unwind_used;
    struct kiln_metric *batches, *batches_failed, *publish_seconds;
    struct kiln_metric *cpu_seconds, *bytes;
    struct kiln_metric *throttled_cpu, *throttled_memory, *trimmed, *lowered, *stopped;
    struct kiln_metric *cpu_used, *cpu_budget, *watched_bytes, *memory_limit;
    struct kiln_metric *waits, *waits_missed, *switches, *wait_period, *wait_there, *wait_seconds;
};

static void get_samples(struct host_metrics *m, struct kiln_metrics *metrics)
{
    for (int end = 0; end < KILN_ENDS; end++)
        m->ends[end] =
            kiln_metric_get(metrics, KILN_COUNTER, "kiln_host_stacks_total",
                            "Samples of the host, by how the walk of their user stack ended.",
                            KILN_LABELS("end", kiln_end_word((enum kiln_end)end)));
    m->samples = kiln_metric_counter(metrics, "kiln_host_samples_total", "Samples of the host.");
    m->lost = kiln_metric_counter(metrics, "kiln_host_lost_samples_total",
                                  "Samples for which there was no room or no process.");
    m->dropped = kiln_metric_counter(metrics, "kiln_host_dropped_samples_total",
                                     "Samples that were gathered but not published in time.");
    m->success =
        kiln_metric_gauge(metrics, "kiln_host_unwind_success_ratio",
                          "Share of the samples with a user stack that reach its entry point.");
    m->processes = kiln_metric_gauge(metrics, "kiln_host_sampled_processes",
                                     "Processes of which samples came in the last interval.");
    m->rate = kiln_metric_gauge(metrics, "kiln_host_rate_hertz", "Samples a second and processor.");
    m->late = kiln_metric_counter(metrics, "kiln_host_late_total",
                                  "Samples and events that came after a later one was handled.");
    m->early = kiln_metric_counter(metrics, "kiln_host_early_total",
                                   "Samples and events that were handled early, for want of room.");
}

static void get_orders(struct host_metrics *m, struct kiln_metrics *metrics)
{
    m->clock =
        kiln_metric_gauge(metrics, "kiln_host_clock_hertz",
                          "Ticks a second and processor, for whoever is sampled most often.");
    m->boosted = kiln_metric_gauge(metrics, "kiln_host_boosted_processes",
                                   "Processes that are sampled more often, by order.");
    m->paused = kiln_metric_gauge(metrics, "kiln_host_paused_processes",
                                  "Processes that are not sampled, by order.");
    m->paused_samples = kiln_metric_counter(metrics, "kiln_host_paused_samples_total",
                                            "Samples that were not taken, by order.");
}

static void get_spans(struct host_metrics *m, struct kiln_metrics *metrics)
{
    m->linked = kiln_metric_counter(metrics, "kiln_host_linked_samples_total",
                                    "Of the samples: those of a thread that worked for a span.");
    m->span_processes = kiln_metric_gauge(metrics, "kiln_host_span_processes",
                                          "Processes whose threads tell their spans.");
    m->spans_unfound = kiln_metric_counter(
        metrics, "kiln_host_spans_unfound_total",
        "Times that it was not found where a process that tells its spans keeps them.");
}

static void get_kernel(struct host_metrics *m, struct kiln_metrics *metrics)
{
    m->raw =
        kiln_metric_counter(metrics, "kiln_host_raw_samples_total",
                            "Samples that came with a slice of stack, walked on in user space.");
    m->raw_held =
        kiln_metric_counter(metrics, "kiln_host_raw_held_total",
                            "Samples that would have needed a slice but went past its rate.");
    m->filtered = kiln_metric_counter(metrics, "kiln_host_filtered_samples_total",
                                      "Samples that nobody wanted.");
    m->foreign = kiln_metric_counter(metrics, "kiln_host_foreign_samples_total",
                                     "Samples of processes outside of the agent's PID namespace.");
    m->bpf_seconds =
        kiln_metric_counter(metrics, "kiln_host_bpf_seconds_total",
                            "Time that the sampling program took, where it is measured.");
    m->bpf_runs = kiln_metric_counter(metrics, "kiln_host_bpf_runs_total",
                                      "Runs of the sampling program, where they are measured.");
    m->bpf_bytes = kiln_metric_gauge(metrics, "kiln_host_bpf_bytes",
                                     "Memory that the programs' maps take in the kernel.");
    m->unwind_bytes =
        kiln_metric_gauge(metrics, "kiln_host_unwind_bytes", "Memory for unwind tables.");
    m->unwind_used = kiln_metric_gauge(metrics, "kiln_host_unwind_used_bytes",
                                       "Memory for unwind tables that is in use.");
}

static void get_waits(struct host_metrics *m, struct kiln_metrics *metrics)
{
    m->waits = kiln_metric_counter(metrics, "kiln_host_waits_total",
                                   "Of the samples: waits of threads that did not run.");
    m->waits_missed = kiln_metric_counter(
        metrics, "kiln_host_missed_waits_total",
        "Waits of which one end was seen alone: too many threads, or the hook was away.");
    m->switches = kiln_metric_counter(metrics, "kiln_host_switches_total",
                                      "Switches of threads while the hook for waits was there.");
    m->wait_period = kiln_metric_gauge(
        metrics, "kiln_host_wait_period_seconds",
        "Waits as long as this are all taken, shorter ones in proportion to their length.");
    m->wait_there = kiln_metric_counter(metrics, "kiln_host_wait_hook_seconds_total",
                                        "Time that the hook for waits was there.");
    m->wait_seconds =
        kiln_metric_counter(metrics, "kiln_host_wait_bpf_seconds_total",
                            "Time that the hook for waits took, where it is measured.");
}

static void get_batches(struct host_metrics *m, struct kiln_metrics *metrics)
{
    m->batches =
        kiln_metric_counter(metrics, "kiln_host_batches_total", "Batches that were taken.");
    m->batches_failed = kiln_metric_counter(metrics, "kiln_host_failed_batches_total",
                                            "Batches that were not taken.");
    m->publish_seconds = kiln_metric_get(metrics, KILN_HISTOGRAM, "kiln_host_publish_seconds",
                                         "Time to name and build a batch.", NULL);
    m->cpu_seconds = kiln_metric_counter(
        metrics, "kiln_host_cpu_seconds_total",
        "Processor time of the host profiler, with its programs in the kernel and its child.");
    m->bytes = kiln_metric_gauge(metrics, "kiln_host_memory_bytes",
                                 "Memory of the host profiler, with what it has in the kernel.");
}

static struct kiln_metric *get_throttled(struct kiln_metrics *metrics, const char *reason)
{
    return kiln_metric_get(metrics, KILN_COUNTER, "kiln_host_throttled_total",
                           "How often rates were lowered, or sampling stopped, by budget.",
                           KILN_LABELS("reason", reason));
}

static void get_watch(struct host_metrics *m, struct kiln_metrics *metrics)
{
    m->throttled_cpu = get_throttled(metrics, "cpu");
    m->throttled_memory = get_throttled(metrics, "memory");
    m->trimmed = kiln_metric_counter(metrics, "kiln_host_trimmed_total",
                                     "How often caches went, for want of memory.");
    m->lowered = kiln_metric_gauge(metrics, "kiln_host_lowered",
                                   "Steps by which rates are lowered, each to less than half.");
    m->stopped = kiln_metric_gauge(metrics, "kiln_host_stopped",
                                   "1: nothing is sampled, for a budget's sake.");
    m->cpu_used = kiln_metric_gauge(metrics, "kiln_host_cpu_used_ratio",
                                    "Share of one processor that all of it used of late.");
    m->cpu_budget = kiln_metric_gauge(metrics, "kiln_host_cpu_budget_ratio",
                                      "Share of one processor that it may use; 0: any.");
    m->watched_bytes = kiln_metric_gauge(
        metrics, "kiln_host_watched_bytes",
        "Memory that is held against its limit: all but unwind tables and names.");
    m->memory_limit =
        kiln_metric_gauge(metrics, "kiln_host_memory_limit_bytes", "The limit of that; 0: none.");
}

int host_metrics_new(struct kiln_metrics *metrics, struct host_metrics **ret_metrics)
{
    struct host_metrics *m = kiln_calloc(1, sizeof(*m));

    if (!m)
        return -ENOMEM;
    get_samples(m, metrics);
    get_orders(m, metrics);
    get_spans(m, metrics);
    get_kernel(m, metrics);
    get_waits(m, metrics);
    get_batches(m, metrics);
    get_watch(m, metrics);
    *ret_metrics = m;
    return 0;
}

void host_metrics_free(struct host_metrics *metrics)
{
    kiln_free(metrics);
}

void host_metrics_batch(struct host_metrics *metrics, double seconds)
{
    kiln_metric_observe(metrics->publish_seconds, seconds);
}

/* ---- telling ---- */

static void set(struct kiln_metric *metric, uint64_t value)
{
    kiln_metric_set(metric, (double)value);
}

static void tell_orders(struct host_metrics *m, const struct kiln_host_status *status)
{
    set(m->clock, status->clock_hz);
    set(m->boosted, status->boosted);
    set(m->paused, status->paused);
    set(m->paused_samples, status->paused_samples);
}

static void tell_kernel(struct host_metrics *m, const struct kiln_host_status *status)
{
    const struct kiln_kernel_stats *kernel = &status->kernel;

    set(m->raw, kernel->counts[KILN_COUNT_RAW]);
    set(m->raw_held, kernel->counts[KILN_COUNT_RAW_HELD]);
    set(m->filtered, kernel->counts[KILN_COUNT_FILTERED]);
    set(m->foreign, kernel->counts[KILN_COUNT_FOREIGN]);
    kiln_metric_set(m->bpf_seconds, (double)kernel->run_ns / (double)KILN_NS_PER_S);
    set(m->bpf_runs, kernel->runs);
    set(m->bpf_bytes, kernel->map_bytes);
    set(m->unwind_bytes, status->unwind_bytes);
    set(m->unwind_used, status->unwind_used_bytes);
}

static double seconds(uint64_t ns)
{
    return (double)ns / (double)KILN_NS_PER_S;
}

static void tell_waits(struct host_metrics *m, const struct kiln_kernel_stats *kernel)
{
    set(m->waits, kernel->counts[KILN_COUNT_WAITS]);
    set(m->waits_missed, kernel->counts[KILN_COUNT_WAITS_MISSED]);
    set(m->switches, kernel->counts[KILN_COUNT_SWITCHES]);
    kiln_metric_set(m->wait_period, seconds(kernel->wait.period_ns));
    kiln_metric_set(m->wait_there, seconds(kernel->wait.there_ns));
    kiln_metric_set(m->wait_seconds, seconds(kernel->wait.run_ns));
}

static void tell_watch(struct host_metrics *m, const struct kiln_host_watch *watch)
{
    set(m->throttled_cpu, watch->throttled_cpu);
    set(m->throttled_memory, watch->throttled_memory);
    set(m->trimmed, watch->trimmed);
    set(m->lowered, watch->lowered);
    set(m->stopped, watch->stopped);
    kiln_metric_set(m->cpu_used, watch->cpu_used);
    kiln_metric_set(m->cpu_budget, watch->cpu_budget);
    set(m->watched_bytes, watch->memory_bytes);
    set(m->memory_limit, watch->memory_limit);
}

static void tell(struct host_metrics *m, const struct kiln_host_status *status)
{
    for (int end = 0; end < KILN_ENDS; end++)
        set(m->ends[end], status->ends.by_end[end]);
    set(m->samples, status->samples);
    set(m->lost, status->ends.lost);
    kiln_metric_set(m->success, kiln_end_success(&status->ends));
    set(m->processes, status->processes);
    set(m->rate, status->hz);
    set(m->batches, status->batches);
    set(m->batches_failed, status->batches_failed);
    kiln_metric_set(m->cpu_seconds, (double)status->cpu_ns / (double)KILN_NS_PER_S);
    set(m->bytes, status->memory_bytes);
    tell_orders(m, status);
    tell_watch(m, &status->watch);
    tell_kernel(m, status);
    tell_waits(m, &status->kernel);
}

/* ---- what the two threads cost; the rest is host_watch.c's ---- */

static uint64_t thread_ns(clockid_t clock)
{
    struct timespec t;

    return clock_gettime(clock, &t) == 0 ? kiln_timespec_ns(t) : 0;
}

/* On the reader's thread, which ends before the publisher is waited for. */
static uint64_t cpu_ns(struct kiln_host *host)
{
    uint64_t ns = thread_ns(CLOCK_THREAD_CPUTIME_ID) + atomic_load(&host->names_cpu_ns);
    clockid_t clock;

    return pthread_getcpuclockid(host->publishing, &clock) == 0 ? ns + thread_ns(clock) : ns;
}

static uint64_t table_bytes(const struct host_reader *reader)
{
    return kiln_processes_bytes(reader->processes) + kiln_gather_bytes(reader->gather) +
           kiln_merge_bytes(reader->merge) + (reader->begun ? kiln_begun_bytes(reader->begun) : 0);
}

void host_tell(struct kiln_host *host)
{
    const struct host_reader *reader = &host->reader;
    struct kiln_tables_stats tables;
    struct kiln_host_status status;
    struct kiln_kernel_stats kernel;
    struct kiln_steer_stats steer;
    uint64_t dropped;

    kiln_kernel_stats(reader->kernel, &kernel);
    host_wait_look(host, &kernel, cpu_ns(host));
    if (reader->begun)
        kernel.counts[KILN_COUNT_WAITS_MISSED] += kiln_begun_lost(reader->begun);
    kiln_tables_stats(reader->tables, &tables);
    kiln_steer_stats(reader->steer, &steer);
    status = (struct kiln_host_status){
        .samples = reader->samples,
        .processes = reader->processes_seen,
        .ends = reader->ends,
        .kernel = kernel,
        .unwind_bytes = tables.bytes,
        .unwind_used_bytes = tables.used_bytes,
        .hz = reader->hz,
        .clock_hz = reader->clock_hz,
        .orders = steer.orders,
        .boosted = steer.boosted,
        .paused = steer.paused,
        .all_paused = steer.all_paused,
        .between_windows = host_between_windows(host, kiln_clock_mono_ns()),
        .paused_samples = reader->paused + kernel.counts[KILN_COUNT_PAUSED],
        .cpu_ns = cpu_ns(host),
        .memory_bytes = table_bytes(reader),
    };
    status.ends.lost += kernel.counts[KILN_COUNT_LOST];
    host_watch_look(host, &status);
    pthread_mutex_lock(&host->lock);
    status.batches = host->status.batches;
    status.batches_failed = host->status.batches_failed;
    host->status = status;
    dropped = host->dropped;
    pthread_mutex_unlock(&host->lock);
    tell(host->metrics, &status);
    set(host->metrics->dropped, dropped);
    set(host->metrics->late, kiln_merge_late(reader->merge));
    set(host->metrics->early, kiln_merge_early(reader->merge));
    set(host->metrics->linked, reader->linked);
    set(host->metrics->span_processes, reader->contexts.n_placed);
    set(host->metrics->spans_unfound, reader->contexts.n_failed);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the profiler uses, and what it does by that (host/watchdog.h): all of the process where it
 * is alone in it, else its own threads and what it keeps; in both cases with the child that finds
 * names and the programs in the kernel.
 *
 * Of memory the watchdog sees what grows with what runs on the host: not the kernel's maps, whose
 * sizes the machine and the settings say at the start, and not the child, which has a limit.  It is
 * "RssAnon:  1234 kB" of /proc/self/status.  What is told is all of it: "Pss:" of smaps_rollup, in
 * which pages that others have mapped, too, are counted by their share.
 */
#include <malloc.h>
#include <time.h>

#include "base/clock.h"
#include "host/host_int.h"
#include "host/procfs.h"

#define PSS_EVERY_NS (10 * KILN_NS_PER_S) /* the kernel walks all page tables for it */

void host_watch_begin(struct kiln_host *host)
{
    /* Sanitizers keep more than they watch over. */
    uint64_t limit = KILN_SANITIZED ? 0 : host->opts.memory_limit;

    kiln_watchdog_init(&host->reader.watch.dog, host->opts.cpu_budget, limit, kiln_clock_mono_ns());
}

/* ---- what is used ---- */

static uint64_t cpu_ns(struct kiln_host *host, const struct kiln_host_status *status)
{
    const uint64_t *counts = status->kernel.counts;
    uint64_t in_kernel_ns =
        counts[KILN_COUNT_NS] + kiln_wait_control_cost_ns(counts[KILN_COUNT_SWITCHES]);
    struct timespec t;

    if (!host->opts.alone || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
        return status->cpu_ns + in_kernel_ns;
    return kiln_timespec_ns(t) + atomic_load(&host->names_cpu_ns) + in_kernel_ns;
}

static void look_at_process(struct host_watch *watch, const struct kiln_host_status *status)
{
    uint64_t now_ns = kiln_clock_mono_ns(), mapped = status->kernel.mapped_bytes, kb;

    if (kiln_procfs_number("/proc/self/status", "RssAnon", 10, &kb) == 0)
        watch->own_bytes = kb << 10;
    if (now_ns < watch->next_pss_ns)
        return;
    watch->next_pss_ns = now_ns + PSS_EVERY_NS;
    if (kiln_procfs_number("/proc/self/smaps_rollup", "Pss", 10, &kb) == 0)
        watch->process_bytes = (kb << 10) > mapped ? (kb << 10) - mapped : 0;
}

/* What `status` has are the reader's tables.  True to what others would see: with its code. */
static uint64_t all_bytes(struct kiln_host *host, const struct kiln_host_status *status)
{
    uint64_t here = host->opts.alone ? host->reader.watch.process_bytes
                                     : status->memory_bytes + atomic_load(&host->names_bytes);

    return here + status->kernel.map_bytes + atomic_load(&host->child_bytes);
}

/* ---- what becomes of it ---- */

static void say(struct kiln_host *host, const char *what, const struct kiln_watch_use *use)
{
    const struct kiln_watchdog *dog = &host->reader.watch.dog;

    kiln_log(host->opts.log, KILN_LOG_WARN, what, "why", "%s",
             kiln_watch_word(kiln_watchdog_why(dog)), "cpu_percent", "%.2f", dog->used * 100,
             "cpu_budget_percent", "%.2f", dog->cpu_share * 100, "memory", "%llu",
             (unsigned long long)use->memory_bytes, "memory_limit", "%llu",
             (unsigned long long)dog->memory_bytes, NULL);
}

/* Where it stopped, nothing more is told by the kernel; then whatever it told is old. */
static void stop(struct kiln_host *host, bool stops)
{
    struct host_reader *reader = &host->reader;
    const struct kiln_event lost = {
        .kind = KILN_EVENT_LOST, .n = 1, .time_ns = kiln_clock_mono_ns()};

    kiln_sideband_pause(reader->sideband, stops);
    if (stops)
        return;
    host_orders_event(reader, &lost);
    kiln_processes_apply(reader->processes, &lost);
}

static void compare(struct kiln_host *host, const struct kiln_watch_use *use)
{
    struct host_watch *watch = &host->reader.watch;
    uint32_t lowered = kiln_watchdog_lowered(&watch->dog);
    bool stopped = kiln_watchdog_stopped(&watch->dog);

    if (stopped != watch->stopped)
        stop(host, stopped);
    if (stopped && !watch->stopped)
        say(host, "nothing is sampled for a while: the profiler would use more than it may", use);
    else if (lowered > watch->lowered)
        say(host, "sampling less often: the profiler used more than it may", use);
    else if (lowered < watch->lowered || stopped != watch->stopped)
        say(host, "sampling more often again", use);
    if (lowered > watch->lowered || (stopped && !watch->stopped))
        watch->throttled[kiln_watchdog_why(&watch->dog)]++;
    watch->lowered = lowered;
    watch->stopped = stopped;
}

void host_watch_look(struct kiln_host *host, struct kiln_host_status *status)
{
    struct host_watch *watch = &host->reader.watch;
    struct kiln_watch_use use = {.now_ns = kiln_clock_mono_ns(),
                                 .cpu_ns = cpu_ns(host, status),
                                 .memory_bytes = status->memory_bytes,
                                 .hz = host->reader.clock_hz};

    if (host->opts.alone) {
        look_at_process(watch, status);
        use.memory_bytes = watch->own_bytes;
    }
    status->cpu_ns = use.cpu_ns;
    status->memory_bytes = all_bytes(host, status);
    if (kiln_watchdog_look(&watch->dog, &use)) {
        malloc_trim(0);
        watch->trimmed++;
        watch->next_pss_ns = 0;
    }
    compare(host, &use);
    status->watch = (struct kiln_host_watch){
        .why = kiln_watchdog_why(&watch->dog),
        .lowered = watch->lowered,
        .stopped = watch->stopped,
        .cpu_used = watch->dog.used,
        .cpu_budget = watch->dog.cpu_share,
        .memory_bytes = use.memory_bytes,
        .memory_limit = watch->dog.memory_bytes,
        .throttled_cpu = watch->throttled[KILN_WATCH_CPU],
        .throttled_memory = watch->throttled[KILN_WATCH_MEMORY],
        .trimmed = watch->trimmed,
    };
}

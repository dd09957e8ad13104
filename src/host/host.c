/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening in an order that loses nothing: the programs in the kernel with their clocks standing,
 * then the events, then /proc; the reader's thread starts the clocks when all of it is there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "host/host_int.h"

/* ---- who the host is ---- */

/* The first line of a file, without white space; false: there is none. */
static bool read_line(const char *path, char *to, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, to, size - 1) : -1;

    if (fd >= 0)
        close(fd);
    to[n > 0 ? n : 0] = 0;
    to[strcspn(to, "\r\n \t")] = 0;
    return to[0] != 0;
}

static bool same_uts(void)
{
    char first[64], own[64];
    ssize_t n = readlink("/proc/1/ns/uts", first, sizeof(first));
    ssize_t m = readlink("/proc/self/ns/uts", own, sizeof(own));

    return n <= 0 || (n == m && memcmp(first, own, (size_t)n) == 0);
}

/*
 * In a container, process 1 has the host's files. Where there is no machine id to read, the boot id
 * stands for it: a server takes no agent without an id.
 */
void kiln_host_find_facts(struct kiln_host_facts *ret_facts)
{
    struct kiln_host_facts facts = {0};
    struct utsname system;

    if (same_uts() || !read_line("/proc/1/root/etc/hostname", facts.name, sizeof(facts.name)))
        gethostname(facts.name, sizeof(facts.name) - 1);
    if (!read_line("/proc/1/root/etc/machine-id", facts.id, sizeof(facts.id)) &&
        !read_line("/etc/machine-id", facts.id, sizeof(facts.id)))
        read_line("/proc/sys/kernel/random/boot_id", facts.id, sizeof(facts.id));
    if (uname(&system) == 0)
        snprintf(facts.kernel, sizeof(facts.kernel), "%s", system.release);
    *ret_facts = facts;
}

/* ---- opening ---- */

static void on_void(void *context, struct kiln_process *process)
{
    struct host_reader *reader = context;

    kiln_tables_drop_process(reader->tables, process);
    kiln_contexts_drop(&reader->contexts, process);
}

static void on_object(void *context, struct kiln_object *object)
{
    kiln_tables_drop_object(context, object);
}

static int open_kernel(struct kiln_host *host, struct kiln_err *err)
{
    struct kiln_kernel_opts opts = {.hz = host->opts.hz,
                                    .table_bytes = host->opts.unwind_bytes,
                                    .ring_max = host->opts.memory_bytes / RING_PART,
                                    .off_cpu = host->opts.off_cpu,
                                    .wait_way = host->opts.wait_way,
                                    .paused = true,
                                    .filter = host->opts.filter};
    struct host_reader *reader = &host->reader;
    int r = kiln_kernel_open(&opts, &reader->kernel, err);

    if (r == 0)
        r = kiln_sideband_open(0, &reader->sideband, err);
    if (r == 0 && host->opts.measure && kiln_kernel_measure(reader->kernel) < 0)
        kiln_log(host->opts.log, KILN_LOG_WARN, "the kernel does not measure its programs", NULL);
    return r;
}

static int put_context(void *kernel, uint32_t pid, const struct kiln_context_place *place)
{
    return kiln_kernel_put_context(kernel, pid, place);
}

static void drop_context(void *kernel, uint32_t pid, uint64_t era)
{
    kiln_kernel_drop_context(kernel, pid, era);
}

static int open_processes(struct kiln_host *host)
{
    struct kiln_processes_opts opts = {.env_names = host->opts.env_names,
                                       .n_env_names = host->opts.n_env_names,
                                       .rules = host->opts.rules,
                                       .memory_bytes = host->opts.memory_bytes / PROCESSES_PART,
                                       .metrics = host->opts.metrics};
    struct host_reader *reader = &host->reader;
    int r = kiln_processes_new(&opts, &reader->processes);

    if (r == 0)
        r = kiln_processes_scan(reader->processes);
    if (r == 0)
        r = kiln_tables_new(kiln_kernel_tables(reader->kernel), host->opts.metrics,
                            &reader->tables);
    if (r < 0)
        return r;
    reader->contexts = (struct kiln_contexts){
        .processes = reader->processes,
        .sink = {put_context, drop_context, reader->kernel},
    };
    kiln_processes_on_void(reader->processes, on_void, reader);
    kiln_processes_on_object(reader->processes, on_object, reader->tables);
    r = kiln_gather_new(host->opts.memory_bytes / GATHER_PART, &reader->gather);
    return r < 0 ? r : host_merge_new(host);
}

/* Without a resolver everything else still works: that is worth a line, no more. */
static int open_publisher(struct kiln_host *host)
{
    struct kiln_resolver_opts names = {.program = host->opts.names_program,
                                       .cache_bytes = host->opts.memory_bytes / NAMES_PART,
                                       .patient = host->opts.names_wait_ns > 0,
                                       .scratch_directory = host->opts.symbol_cache,
                                       .shelf_directory = host->opts.symbol_cache,
                                       .shelf_bytes = host->opts.symbol_cache_bytes,
                                       .metrics = host->opts.metrics,
                                       .log = host->opts.log};
    struct kiln_publish_opts opts = {.host_name = host->facts.name,
                                     .host_id = host->facts.id,
                                     .resource = host->opts.resource,
                                     .n_resource = host->opts.n_resource,
                                     .names_wait_ns = host->opts.names_wait_ns,
                                     .memory_max = host->opts.memory_bytes,
                                     .by_container = host->opts.by_container,
                                     .lean = host->opts.lean,
                                     .log = host->opts.log};
    struct kiln_err err = {0};

    if (!host->opts.no_names && kiln_resolver_new(&names, &host->resolver, &err) < 0) {
        host->resolver = NULL;
        kiln_log(host->opts.log, KILN_LOG_WARN, "profiling without names of functions", "reason",
                 "%s", err.text, NULL);
    }
    opts.resolver = host->resolver;
    return kiln_publisher_new(&opts, &host->publisher);
}

static int start_threads(struct kiln_host *host)
{
    int r = host_sleep_open(host);

    if (r == 0)
        r = kiln_thread_start("kiln-publish", host_publish, host, &host->publishing);
    if (r < 0)
        return r;
    r = kiln_thread_start("kiln-host", host_read, host, &host->reading);
    if (r < 0) {
        host_queue_close(host);
        pthread_join(host->publishing, NULL);
    }
    return r;
}

static void free_all(struct kiln_host *host)
{
    struct host_reader *reader = &host->reader;

    for (uint32_t i = 0; i < host->n_queue; i++)
        kiln_gathering_free(host->queue[i]);
    host_orders_free(host);
    kiln_merge_free(reader->merge);
    kiln_begun_free(reader->begun);
    kiln_gather_free(reader->gather);
    kiln_publisher_free(host->publisher);
    kiln_resolver_free(host->resolver);
    kiln_processes_free(reader->processes);
    kiln_tables_free(reader->tables);
    kiln_sideband_close(reader->sideband);
    kiln_kernel_close(reader->kernel);
    host_metrics_free(host->metrics);
    if (host->wake >= 0)
        close(host->wake);
    if (host->sleep >= 0)
        close(host->sleep);
    pthread_cond_destroy(&host->turn);
    pthread_mutex_destroy(&host->lock);
    kiln_free(host);
}

static void fill_in(struct kiln_host_opts *opts)
{
    opts->hz = opts->hz ? opts->hz : KILN_HOST_HZ;
    opts->every_ns = opts->every_ns ? opts->every_ns : KILN_HOST_EVERY_NS;
    opts->unwind_bytes = opts->unwind_bytes ? opts->unwind_bytes : KILN_HOST_UNWIND_BYTES;
    opts->memory_bytes = opts->memory_bytes ? opts->memory_bytes : KILN_HOST_MEMORY_BYTES;
    opts->tenant = opts->tenant ? opts->tenant : "anonymous";
}

int kiln_host_start(const struct kiln_host_opts *opts, struct kiln_host **ret_host,
                    struct kiln_err *err)
{
    struct kiln_host *host = kiln_calloc(1, sizeof(*host));
    int r;

    if (!host)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    host->opts = *opts;
    fill_in(&host->opts);
    host->wake = host->sleep = -1;
    pthread_mutex_init(&host->lock, NULL);
    pthread_cond_init(&host->turn, NULL);
    atomic_store(&host->want_hz, opts->paused ? 0 : host->opts.hz);
    kiln_host_find_facts(&host->facts);
    r = open_kernel(host, err);
    if (r == 0)
        r = host_metrics_new(opts->metrics, &host->metrics);
    if (r == 0)
        r = host_orders_new(host);
    if (r == 0)
        r = open_processes(host);
    if (r == 0)
        r = open_publisher(host);
    if (r == 0)
        r = host_wait_begin(host);
    if (r == 0)
        host_watch_begin(host);
    if (r == 0)
        r = start_threads(host);
    if (r < 0) {
        free_all(host);
        return kiln_err_set(err, r, NULL, "the host profiler cannot start: %s", kiln_err_text(r));
    }
    *ret_host = host;
    return 0;
}

/* ---- while it runs ---- */

void host_wake_reader(struct kiln_host *host)
{
    if (write(host->wake, &(uint64_t){1}, sizeof(uint64_t)) < 0)
        return; /* it is awake already */
}

int kiln_host_set_rate(struct kiln_host *host, uint32_t hz)
{
    if (hz > KILN_HOST_HZ_MAX)
        return -ERANGE;
    atomic_store(&host->want_hz, hz);
    host_wake_reader(host);
    return 0;
}

void kiln_host_set_watched(struct kiln_host *host, bool watched)
{
    if (atomic_exchange(&host->watched, watched) != watched)
        host_wake_reader(host);
}

void kiln_host_status(struct kiln_host *host, struct kiln_host_status *ret_status)
{
    pthread_mutex_lock(&host->lock);
    *ret_status = host->status;
    ret_status->dropped = host->dropped;
    ret_status->ends.lost += host->dropped;
    pthread_mutex_unlock(&host->lock);
    kiln_publisher_counts(host->publisher, &ret_status->names_asked, &ret_status->names_missing);
}

void kiln_host_finish(struct kiln_host *host)
{
    if (host->finished)
        return;
    atomic_store(&host->stopping, true);
    host_wake_reader(host);
    pthread_join(host->reading, NULL);
    pthread_join(host->publishing, NULL);
    host->finished = true;
}

void kiln_host_stop(struct kiln_host *host)
{
    if (!host)
        return;
    kiln_host_finish(host);
    free_all(host);
}

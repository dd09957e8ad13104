/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the process, under the names every Prometheus client uses, and of the pools.
 */
#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/serve.h"

uint64_t kiln_process_rss(void)
{
    uint64_t pages = 0;
    struct kiln_buf text;
    struct kiln_str rest;

    kiln_buf_init(&text, 256);
    if (kiln_file_read("/proc/self/statm", &text, NULL) == 0) {
        rest = kiln_buf_str(&text);
        kiln_str_cut(&rest, ' ');
        if (kiln_str_parse_u64(kiln_str_cut(&rest, ' '), &pages) < 0)
            pages = 0;
    }
    kiln_buf_done(&text);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static double cpu_seconds(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) < 0)
        return 0;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double entries(const char *path)
{
    DIR *dir = opendir(path);
    double n = 0;

    if (!dir)
        return 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2; /* . and .. */
}

static double open_files_max(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (double)limit.rlim_cur : 0;
}

static void set(struct kiln_serve *serve, enum kiln_metric_kind kind, const char *name,
                const char *help, double value)
{
    kiln_metric_set(kiln_metric_get(serve->metrics, kind, name, help, NULL), value);
}

static void set_pool(struct kiln_serve *serve, struct kiln_pool *pool)
{
    const char *const *labels = KILN_LABELS("pool", pool->name);
    struct kiln_metrics *m = serve->metrics;

    kiln_metric_set(kiln_metric_get(m, KILN_GAUGE, "kiln_pool_used_bytes",
                                    "Memory that is taken from a pool.", labels),
                    (double)atomic_load(&pool->used));
    kiln_metric_set(kiln_metric_get(m, KILN_GAUGE, "kiln_pool_peak_bytes",
                                    "The most that was ever taken from a pool.", labels),
                    (double)atomic_load(&pool->peak));
    kiln_metric_set(kiln_metric_get(m, KILN_GAUGE, "kiln_pool_limit_bytes",
                                    "The most that may be taken from a pool.", labels),
                    (double)pool->limit);
    kiln_metric_set(kiln_metric_get(m, KILN_COUNTER, "kiln_pool_refused_total",
                                    "Askings that a pool had not enough left for.", labels),
                    (double)atomic_load(&pool->refused));
}

static void collect(void *context)
{
    struct kiln_serve *serve = context;

    set(serve, KILN_COUNTER, "process_cpu_seconds_total", "Processor time, user and system.",
        cpu_seconds());
    set(serve, KILN_GAUGE, "process_resident_memory_bytes", "Memory of the process.",
        (double)kiln_process_rss());
    set(serve, KILN_GAUGE, "process_open_fds", "Open files and connections.",
        entries("/proc/self/fd") - 1); /* the folder itself */
    set(serve, KILN_GAUGE, "process_max_fds", "How many may be open.", open_files_max());
    set(serve, KILN_GAUGE, "process_threads", "Threads.", entries("/proc/self/task"));
    set_pool(serve, &serve->memory.all);
    set_pool(serve, &serve->memory.ingest);
    set_pool(serve, &serve->memory.store);
    set_pool(serve, &serve->memory.query);
    set_pool(serve, &serve->memory.beside);
}

void kiln_serve_measure(struct kiln_serve *serve)
{
    struct kiln_metrics *m = serve->metrics;

    kiln_metric_set(kiln_metric_get(m, KILN_GAUGE, "kiln_build_info", "Which Kiln this is.",
                                    KILN_LABELS("version", KILN_VERSION)),
                    1);
    set(serve, KILN_GAUGE, "process_start_time_seconds", "When it started, as Unix time.",
        (double)serve->started_unix_ns / 1e9);
    set(serve, KILN_GAUGE, "kiln_memory_limit_bytes", "The memory limit of the whole process.",
        (double)serve->memory.limit);
    kiln_metrics_on_collect(m, collect, serve);
}

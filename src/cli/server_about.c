/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the API tells of this process (api/about.h).  What came in is read off the store's own
 * counters, so that it counts profiles of every way in, those of the host profiler too; how fast,
 * from notes that the thread which watches memory takes every few seconds.
 */
#include <stdio.h>

#include "base/clock.h"
#include "cli/daemon.h"
#include "cli/serve.h"

#define DISK_FREE_MIN ((uint64_t)64 << 20) /* the store's own: below it refuses */

enum value { PROFILES, SAMPLES, BYTES, HOST_SAMPLES, HOST_CPU_S, VALUES };
_Static_assert((int)VALUES <= (int)KILN_PULSE_VALUES, "a pulse has them all");

/* ---- counters ---- */

static void read_value(void *context, const struct kiln_metric_shown *metric)
{
    static const char *const names[VALUES] = {
        [PROFILES] = "kiln_store_profiles_total",
        [SAMPLES] = "kiln_store_samples_total",
        [BYTES] = "kiln_wal_append_bytes_total",
    };
    double *values = context;

    for (int i = 0; i <= BYTES; i++)
        if (kiln_str_eq(metric->name, kiln_str_of(names[i])))
            values[i] = metric->value;
}

static void read_values(struct kiln_serve *serve, double values[KILN_PULSE_VALUES])
{
    struct kiln_agent_status host;
    uint64_t cpu_ns;

    memset(values, 0, KILN_PULSE_VALUES * sizeof(*values));
    kiln_metrics_each(serve->metrics, read_value, values);
    if (kiln_serve_host_tell(serve, &host, &cpu_ns)) {
        values[HOST_SAMPLES] = (double)host.samples;
        values[HOST_CPU_S] = (double)cpu_ns / 1e9;
    }
}

void kiln_serve_beat(void *context)
{
    struct kiln_serve *serve = context;
    uint64_t now_ns = kiln_clock_mono_ns();
    double values[KILN_PULSE_VALUES];

    kiln_serve_fleet_beat(serve);
    /* Until it is open, what the store counts is its log that is replayed. */
    if (!atomic_load(&serve->store_open) || !kiln_pulse_is_due(&serve->pulse, now_ns))
        return;
    read_values(serve, values);
    kiln_pulse_note(&serve->pulse, now_ns, values);
}

static void get_rates(struct kiln_serve *serve, struct kiln_pulse_rates *rates)
{
    double values[KILN_PULSE_VALUES];

    kiln_serve_beat(serve);
    read_values(serve, values);
    kiln_pulse_rates(&serve->pulse, kiln_clock_mono_ns(), values, rates);
}

/* ---- the server ---- */

uint64_t kiln_serve_disk_free(const struct kiln_serve *serve, bool *ret_full)
{
    uint64_t free_bytes = 0, total;

    *ret_full = serve->io->space(serve->io, &free_bytes, &total) == 0 && free_bytes < DISK_FREE_MIN;
    return free_bytes;
}

static void tell_server(void *context, struct kiln_about_server *ret_server)
{
    struct kiln_serve *serve = context;
    const struct kiln_settings *set = &serve->config->set;
    struct kiln_pulse_rates rates;
    struct kiln_err err = {0};
    bool full;

    get_rates(serve, &rates);
    *ret_server = (struct kiln_about_server){
        .started_ns = serve->started_unix_ns,
        .memory_bytes = kiln_process_rss(),
        .memory_limit = serve->memory.limit + atomic_load(&serve->memory.aside),
        .cpu_seconds = kiln_process_cpu_seconds(),
        .profiles = (uint64_t)rates.grown[PROFILES],
        .samples = (uint64_t)rates.grown[SAMPLES],
        .bytes = (uint64_t)rates.grown[BYTES],
        .profiles_per_s = rates.per_second[PROFILES],
        .samples_per_s = rates.per_second[SAMPLES],
        .bytes_per_s = rates.per_second[BYTES],
        .retention_ns = set->retention_ns,
        .retention_bytes = set->retention_size,
        .disk_free = kiln_serve_disk_free(serve, &full),
    };
    if (full)
        snprintf(ret_server->problem, sizeof(ret_server->problem),
                 "the disk is full: less than %llu MiB are free, and nothing more is taken",
                 (unsigned long long)(DISK_FREE_MIN >> 20));
    else if (kiln_store_probe(serve->engine, &err) < 0)
        snprintf(ret_server->problem, sizeof(ret_server->problem),
                 "writes fail, and nothing more is taken: %.32s: %.120s", err.where, err.text);
}

/* ---- the host profiler ---- */

static bool tell_host(void *context, struct kiln_agent_status *ret_agent)
{
    struct kiln_serve *serve = context;
    struct kiln_pulse_rates rates;
    uint64_t cpu_ns;

    if (!kiln_serve_host_tell(serve, ret_agent, &cpu_ns))
        return false;
    get_rates(serve, &rates);
    ret_agent->samples_per_s = rates.per_second[HOST_SAMPLES];
    ret_agent->cpu_cores = rates.per_second[HOST_CPU_S];
    return true;
}

void kiln_serve_about(struct kiln_serve *serve)
{
    serve->about = (struct kiln_about){tell_server, tell_host, serve};
}

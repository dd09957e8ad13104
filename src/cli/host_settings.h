/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_settings - what the host profiler was told, in `kiln agent`, `kiln record` and the
 * all-in-one: part of struct kiln_settings (cli/settings.h), read and shown with the rest.
 *
 * The file's keys are below `agent`; `profiling: {cpu: {enabled, interval}}` says two of them in
 * another way.  A command takes the options by naming the groups, and makes a plan of what holds.
 *
 * Threads: only the main thread; constant once loaded.
 */
#ifndef KILN_CLI_HOST_SETTINGS_H
#define KILN_CLI_HOST_SETTINGS_H

#include "base/arena.h"
#include "base/config.h"
#include "host/host.h"
#include "host/identity_rules.h"

struct kiln_option_group;

/* Threads or processes that are wanted, or are not: "a,b", or a list in the file. */
struct kiln_whom {
    const struct kiln_node *map;
    struct kiln_either pids, cgroups, comms;
};

struct kiln_host_settings {
    const char *enabled; /* "auto": where it can be; "on": or else it is an error; "off" */
    uint32_t frequency;
    const char *off_cpu; /* "on", "off" */
    uint64_t report_interval_ns;
    struct kiln_either window; /* "30s/10m" or {length, every} */
    const char *cpu_budget;    /* percent of one processor: "1%", "0.5"; "off" */
    uint64_t unwind_memory, memory_limit;
    const char *symbol_cache; /* NULL: where caches are; "off" */
    uint64_t symbol_cache_size;
    struct kiln_whom only, except;
    struct kiln_either environment;   /* names; "none" */
    struct kiln_either resource;      /* "name=value,name=value", or a map */
    const char *resource_per;         /* "process", "container" */
    const struct kiln_node *identity; /* rules, see host/identity_rules.h */
    /* `profiling` of the file: what it says in place of `enabled` and `frequency`; and what is for
     * others */
    const struct kiln_node *profiling, *cpu_enabled, *cpu_interval, *alloc;
};

/* Reads `profiling` into the rest. */
KILN_CHECK int kiln_host_settings_read(struct kiln_host_settings *set, struct kiln_err *err);

/* What kiln_host_start() is told: consumer, metrics, log and tenant are the caller's to fill in. */
struct kiln_host_plan {
    struct kiln_host_opts opts;
    struct kiln_host_filter filter;
    struct kiln_identity_rules *rules;
    struct kiln_arena arena; /* whatever the two point to */
    struct kiln_budget budget;
    bool wanted; /* not "off" */
    bool needed; /* "on": where it cannot run, nothing shall */
};

/* `plan` must stay where it is.  Done also after a failure. */
KILN_CHECK int kiln_host_plan_make(const struct kiln_host_settings *set,
                                   struct kiln_host_plan *plan, struct kiln_err *err);
void kiln_host_plan_done(struct kiln_host_plan *plan);

/* Rows that doctor has too, or that more than one of the groups below have. */
#define KILN_OPT_UNWIND_MEMORY                                                                     \
    KILN_OPT("unwind-memory", 0, KILN_OPT_SIZE, server.host.unwind_memory, "SIZE",                 \
             "of tables to walk stacks by, in the kernel (16M)")
#define KILN_OPT_ENV_NAMES                                                                         \
    KILN_OPT("env-names", 0, KILN_OPT_TEXT, server.host.environment.text, "NAMES",                 \
             "variables of processes that may be read, or none (OTEL_SERVICE_NAME, "               \
             "OTEL_RESOURCE_ATTRIBUTES, and some that tell of versions)")
#define KILN_OPT_SYMBOL_CACHE                                                                      \
    KILN_OPT("symbol-cache", 0, KILN_OPT_TEXT, server.host.symbol_cache, "DIR",                    \
             "keep names of functions there, or off (/var/cache/kiln/symbols, or below "           \
             "$XDG_CACHE_HOME)"),                                                                  \
        KILN_OPT("symbol-cache-size", 0, KILN_OPT_SIZE, server.host.symbol_cache_size, "SIZE",     \
                 "at most so much; the least recently used go first (256M)")
/*
 * Options: how to sample, always (-F, --window...) or for a while (record and live), and whom (-p,
 * --cgroup, --comm, --exclude-...).
 */
extern const struct kiln_option_group kiln_group_host, kiln_group_sampling, kiln_group_whom;

#endif /* KILN_CLI_HOST_SETTINGS_H */

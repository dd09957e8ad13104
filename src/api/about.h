/* SPDX-License-Identifier: Apache-2.0 */
/*
 * about - what the API tells of the server that it is part of, and of agents: asked of whoever put
 * the server together.
 *
 * Threads: as api.h; the functions are called from any worker.
 */
#ifndef KILN_API_ABOUT_H
#define KILN_API_ABOUT_H

#include <stdbool.h>
#include <stdint.h>

/* Of the whole process; "since the start" is since it was ready. */
struct kiln_about_server {
    uint64_t started_ns;
    uint64_t memory_bytes, memory_limit;
    double cpu_seconds;
    uint64_t profiles, samples, bytes; /* that came in and were kept, since the start */
    double profiles_per_s, samples_per_s, bytes_per_s; /* over about the last minute */
    uint64_t retention_ns, retention_bytes;            /* 0: no such limit */
    uint64_t disk_free;
    char problem[256]; /* why nothing can be written; "": it can */
};

struct kiln_about_count {
    const char *reason; /* constant */
    uint64_t count;
};

enum kiln_agent_state { KILN_AGENT_RUNNING, KILN_AGENT_PAUSED, KILN_AGENT_FAILED };

enum { KILN_AGENT_DROPS = 8, KILN_AGENT_ENDS = 16 };

/* What one host profiler says of itself. */
struct kiln_about_agent {
    char id[64], host[256], version[32], kernel[128];
    const char *tenant; /* whose its profiles are; constant */
    bool local;         /* part of this process */
    enum kiln_agent_state state;
    char problem[256]; /* of one that failed */
    uint64_t started_ns, last_seen_ns;
    uint32_t hz;
    uint64_t samples, processes;
    double samples_per_s;
    struct kiln_about_count drops[KILN_AGENT_DROPS], ends[KILN_AGENT_ENDS];
    uint32_t n_drops, n_ends;
    uint64_t complete, all; /* stacks of user space */
    double cpu_cores;
    uint64_t memory_bytes;
};

struct kiln_about {
    void (*server)(void *context, struct kiln_about_server *ret_server);
    /* The host profiler of this very process; false: it is off. */
    bool (*host)(void *context, struct kiln_about_agent *ret_agent);
    void *context;
};

#endif /* KILN_API_ABOUT_H */

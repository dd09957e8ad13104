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

#include "fleet/status.h"

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

struct kiln_about {
    void (*server)(void *context, struct kiln_about_server *ret_server);
    /* The host profiler of this very process; false: it is off. */
    bool (*host)(void *context, struct kiln_agent_status *ret_agent);
    void *context;
};

#endif /* KILN_API_ABOUT_H */

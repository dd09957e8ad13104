/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status - what one host profiler says of itself: to its server, to who asks it on its socket, and
 * in the list of agents.  One JSON object for all of them (`Agent` of docs/openapi.yaml).
 *
 * Threads: plain data, copied by assignment, nothing to free.
 */
#ifndef KILN_FLEET_STATUS_H
#define KILN_FLEET_STATUS_H

#include "base/json.h"
#include "core/tenant.h"
#include "fleet/order.h"

enum kiln_agent_state {
    KILN_AGENT_RUNNING,
    KILN_AGENT_PAUSED, /* by order */
    KILN_AGENT_FAILED,
    KILN_AGENT_WAITING, /* for its next window */
    KILN_AGENT_STOPPED, /* by itself, for a budget's sake */
};

enum { KILN_AGENT_DROPS = 16, KILN_AGENT_MISSED = 8, KILN_AGENT_ENDS = 16, KILN_AGENT_ORDERS = 32 };

struct kiln_agent_count {
    char reason[32];
    uint64_t count;
};

struct kiln_agent_status {
    char id[64], host[256], version[32], kernel[128];
    char tenant[KILN_TENANT_MAX + 1]; /* whose its profiles are; not in the JSON */
    bool local;                       /* part of the process that tells */
    enum kiln_agent_state state;
    char problem[256]; /* of one that failed */
    uint64_t started_ns, last_seen_ns;
    uint32_t hz;
    uint64_t samples, processes;
    double samples_per_s;
    struct kiln_agent_count drops[KILN_AGENT_DROPS];   /* samples that were lost */
    struct kiln_agent_count missed[KILN_AGENT_MISSED]; /* what is none, or not counted in samples */
    struct kiln_agent_count ends[KILN_AGENT_ENDS];
    uint32_t n_drops, n_missed, n_ends;
    uint64_t complete, all; /* stacks of user space */
    double cpu_cores;
    uint64_t memory_bytes;
    char orders[KILN_AGENT_ORDERS][KILN_ORDER_ID_BYTES]; /* ids of those it follows */
    uint32_t n_orders;
};

/* Counts, where there is something to count; one too many is left out. */
void kiln_agent_add_count(struct kiln_agent_count *list, uint32_t *n, uint32_t max,
                          const char *reason, uint64_t count);

/* Samples that were lost, and of how many. */
void kiln_agent_loss(const struct kiln_agent_status *status, uint64_t *ret_lost, uint64_t *ret_all);
/* "running", "paused", "failed", "waiting", "stopped" */
const char *kiln_agent_state_word(enum kiln_agent_state state);

void kiln_agent_status_put(struct kiln_json_out *w, const struct kiln_agent_status *status);
/* Members that are not known are passed over: an agent may be newer than its server. */
KILN_CHECK int kiln_agent_status_read(struct kiln_json *r, struct kiln_agent_status *ret_status);

#endif /* KILN_FLEET_STATUS_H */

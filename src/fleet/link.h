/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link - what goes between an agent and its server: POST /api/v1/agents/{host.id}, every few
 * seconds, asked by the agent.
 *
 * It sends its status (fleet/status.h) at first, when something changed, and now and then; else an
 * empty object.  The answer has the orders for its host, and the server's time, so that an agent
 * whose clock is wrong follows them for as long all the same:
 *
 *   {"now":"2026-03-01T12:00:00Z","every_seconds":5,"known":true,"watched":true,"orders":[...]}
 *
 * `known` is false where the server has nothing of the agent to show: the status comes next.
 * `watched` is true while somebody asks the server for what happens now: then profiles are sent
 * more often.
 *
 * Threads: no state.
 */
#ifndef KILN_FLEET_LINK_H
#define KILN_FLEET_LINK_H

#include "fleet/orders.h"

enum {
    KILN_LINK_EVERY_S = 5,
    KILN_LINK_EVERY_MAX_S = 300,
    KILN_LINK_WATCHED_S = 60, /* so long after a question */
    KILN_LINK_ORDERS_MAX = 256,
    KILN_LINK_BYTES_MAX = 1 << 20, /* of an answer, or of a status */
};

struct kiln_link_answer {
    uint64_t now_ns; /* the server's */
    uint32_t every_s;
    bool known, watched;
    struct kiln_orders orders;
};

/* As it is at `answer->now_ns`; how often to ask is this server's own. */
void kiln_link_answer_put(struct kiln_json_out *w, const struct kiln_link_answer *answer);
/*
 * Reads an answer; its orders' times become those of a clock that shows `now_ns`.  Done in any
 * case.
 */
KILN_CHECK int kiln_link_answer_read(struct kiln_str text, uint64_t now_ns,
                                     struct kiln_link_answer *answer, struct kiln_err *err);
void kiln_link_answer_done(struct kiln_link_answer *answer);

#endif /* KILN_FLEET_LINK_H */

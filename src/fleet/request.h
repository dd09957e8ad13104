/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request - orders as people and other programs ask for them: the body of POST /api/v1/orders.
 *
 * Either one order, of which id, created and expires are ours to say,
 *
 *   {"kind":"boost","target":"service","name":"shop","hz":199,"duration":"10m","why":"slow"}
 *
 * or what an Alertmanager posts to a webhook: each alert that fires boosts the service that its
 * labels name.
 *
 *   {"version":"4","status":"firing","alerts":[{"status":"firing","labels":{"alertname":"Burn",
 *    "service":"shop"},"annotations":{...},"startsAt":"..."}],...}
 *
 * Threads: no state.
 */
#ifndef KILN_FLEET_REQUEST_H
#define KILN_FLEET_REQUEST_H

#include "fleet/orders.h"

enum { KILN_REQUEST_ORDERS_MAX = 64, KILN_REQUEST_BYTES_MAX = 1 << 20 };

/* What was said beside the body; an order's own members count more. */
struct kiln_request_wish {
    uint32_t hz;          /* 0: 199 */
    uint64_t duration_ns; /* 0: ten minutes of a boost, an hour of a pause */
    struct kiln_str
        label;       /* of alerts: which names the service; empty: service_name, else service */
    uint64_t now_ns; /* Unix time */
};

/* Appends orders that make sense, without ids.  Errors name the line, or the member. */
KILN_CHECK int kiln_order_request_read(struct kiln_str text, const struct kiln_request_wish *wish,
                                       struct kiln_orders *orders, struct kiln_err *err);

#endif /* KILN_FLEET_REQUEST_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orders - lists of them, and their JSON, which is one and the same in the API, on the way to
 * agents and on disk:
 *
 *   {"id":"18a3f1c2d4e5b6a70001","kind":"boost","target":"service","name":"shop","pid":null,
 *    "host":null,"hz":199,"created":"2026-03-01T12:00:00Z","expires":"2026-03-01T12:10:00Z",
 *    "by":"ann","why":"slow since noon"}
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_FLEET_ORDERS_H
#define KILN_FLEET_ORDERS_H

#include "base/json.h"
#include "base/mem.h"
#include "fleet/order.h"

struct kiln_orders {
    struct kiln_order *items;
    uint32_t n, cap, max;
    struct kiln_budget budget;
};

/* At most `max` of them. */
void kiln_orders_init(struct kiln_orders *orders, uint32_t max);
void kiln_orders_done(struct kiln_orders *orders);
/* KILN_E_LIMIT, -ENOMEM. */
KILN_CHECK int kiln_orders_add(struct kiln_orders *orders, const struct kiln_order *order);
/* NULL: there is none of this id. */
const struct kiln_order *kiln_orders_find(const struct kiln_orders *orders, const char *id);

/* The members of one, into the object that is open; and the whole list, an array of objects. */
void kiln_order_put_members(struct kiln_json_out *w, const struct kiln_order *order);
void kiln_orders_put(struct kiln_json_out *w, const struct kiln_orders *orders);

/* Reads the value of a member: 1, or 0 where an order has no such member (and nothing was read). */
KILN_CHECK int kiln_order_read_member(struct kiln_json *r, struct kiln_str name,
                                      struct kiln_order *order);
/* One object, checked and appended; members that are not known are passed over. */
KILN_CHECK int kiln_order_read(struct kiln_json *r, struct kiln_orders *orders);
/* An array of those. */
KILN_CHECK int kiln_orders_read(struct kiln_json *r, struct kiln_orders *orders);

/* A text of at most `size` - 1 bytes without a NUL; null is "". */
KILN_CHECK int kiln_fleet_read_text(struct kiln_json *r, char *text, size_t size);
/* A time as text; null is 0. */
KILN_CHECK int kiln_fleet_read_time(struct kiln_json *r, uint64_t *ret_ns);
/* A name and its value; "" and 0 are null. */
void kiln_fleet_put_said(struct kiln_json_out *w, const char *name, const char *text);
void kiln_fleet_put_time(struct kiln_json_out *w, const char *name, uint64_t ns);

#endif /* KILN_FLEET_ORDERS_H */

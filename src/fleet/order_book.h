/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order_book - orders that are in force, of all tenants, kept in a file: what it says is durable
 * when the call is back, and there again after a restart.
 *
 * Of one tenant there is one order of a kind for a target: a later one takes the place of the
 * earlier.  An order ends when its time is over by the monotonic clock, so that a wall clock that
 * is set ends nothing early and prolongs nothing; the times that are shown and kept follow.  A file
 * that cannot be read is put aside (PATH.damaged), and the book begins empty.
 *
 * Threads: everything from anywhere.
 */
#ifndef KILN_FLEET_ORDER_BOOK_H
#define KILN_FLEET_ORDER_BOOK_H

#include "base/log.h"
#include "fleet/orders.h"

enum { KILN_ORDER_BOOK_MAX = 4096, KILN_ORDER_BOOK_TENANT_MAX = 256 };

struct kiln_order_book;

struct kiln_order_book_opts {
    const char *path;     /* NULL: nothing is kept */
    struct kiln_log *log; /* NULL: silent */
};

KILN_CHECK int kiln_order_book_open(const struct kiln_order_book_opts *opts,
                                    struct kiln_order_book **ret_book, struct kiln_err *err);
void kiln_order_book_close(struct kiln_order_book *book);

/*
 * Takes an order; gives it its id.  Its times are the caller's.  -EINVAL where it makes no sense,
 * KILN_E_LIMIT where there are too many, errors of I/O: then the book is as it was.
 */
KILN_CHECK int kiln_order_book_add(struct kiln_order_book *book, const char *tenant,
                                   struct kiln_order *order, struct kiln_err *err);
/* Takes one out.  1, or 0 where it is not there. */
KILN_CHECK int kiln_order_book_remove(struct kiln_order_book *book, const char *tenant,
                                      const char *id, struct kiln_err *err);
/* Makes these, ids and all, all there are of a tenant; the file is written if that is a change. */
KILN_CHECK int kiln_order_book_replace(struct kiln_order_book *book, const char *tenant,
                                       const struct kiln_orders *orders, struct kiln_err *err);

/* Appends what is in force of a tenant at this monotonic time, oldest first. */
KILN_CHECK int kiln_order_book_list(struct kiln_order_book *book, const char *tenant,
                                    uint64_t mono_ns, struct kiln_orders *orders);
/* Now and then: forgets what is over, says so in the log, and keeps times of a clock that was set.
 */
void kiln_order_book_expire(struct kiln_order_book *book, uint64_t mono_ns);
/* How many of all tenants, by kind. */
uint32_t kiln_order_book_count(struct kiln_order_book *book, enum kiln_order_kind kind);

/* One line about an order: what happened to it, and all that it says. */
void kiln_order_log(struct kiln_log *log, const char *what, const char *tenant,
                    const struct kiln_order *order);

#endif /* KILN_FLEET_ORDER_BOOK_H */

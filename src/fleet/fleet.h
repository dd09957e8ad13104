/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet - what a server knows of its agents: the roster of who reports, and the book of what they
 * were told.
 *
 * Threads: as roster.h and order_book.h; opened and closed by one.
 */
#ifndef KILN_FLEET_FLEET_H
#define KILN_FLEET_FLEET_H

#include "base/metric.h"
#include "fleet/order_book.h"
#include "fleet/roster.h"

struct kiln_fleet {
    struct kiln_order_book *book;
    struct kiln_roster *roster;
    struct kiln_metric *agents, *boosts, *pauses;
};

struct kiln_fleet_opts {
    const char *path;             /* of the book; NULL: it is not kept */
    struct kiln_metrics *metrics; /* NULL: not measured; else they live longer */
    struct kiln_log *log;         /* NULL: silent */
};

/* `fleet` must stay where it is.  Closed also after a failure. */
KILN_CHECK int kiln_fleet_open(struct kiln_fleet *fleet, const struct kiln_fleet_opts *opts,
                               struct kiln_err *err);
void kiln_fleet_close(struct kiln_fleet *fleet);

/* Ends what is over.  To be called about once a second. */
void kiln_fleet_tick(struct kiln_fleet *fleet);

/* Appends the orders in force of a tenant that may mean this host. */
KILN_CHECK int kiln_fleet_orders_for(struct kiln_fleet *fleet, const char *tenant,
                                     const char *host_id, const char *host_name,
                                     struct kiln_orders *orders);

#endif /* KILN_FLEET_FLEET_H */

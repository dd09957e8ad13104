/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duty - the orders that one host follows: those its server told it, and those that were given to
 * the agent itself.
 *
 *   server ──▶ told ──┐
 *                     ├──▶ in force on this host ──▶ follow(): the host profiler
 *   socket ──▶ given ─┘
 *
 * Both are kept on disk, so that neither a restart of the agent nor a server that is away changes
 * what holds; each ends when its time is over.  Each beginning and end is a line of the log.
 *
 * Threads: everything from anywhere; follow() is called by whoever makes the change, one at a time.
 */
#ifndef KILN_FLEET_DUTY_H
#define KILN_FLEET_DUTY_H

#include "base/log.h"
#include "fleet/orders.h"

struct kiln_duty;

enum { KILN_DUTY_ORDERS_MAX = 512 };

struct kiln_duty_opts {
    const char *folder; /* where files are kept, made if it is not there; NULL: nowhere */
    const char *host_id, *host_name;
    void (*follow)(void *context, const struct kiln_order *orders, uint32_t n);
    void *context;
    enum kiln_order_limit limit; /* other orders are ignored, from any source */
    struct kiln_log *log;        /* NULL: silent */
};

/* Follows at once what was kept. */
KILN_CHECK int kiln_duty_open(const struct kiln_duty_opts *opts, struct kiln_duty **ret_duty,
                              struct kiln_err *err);
void kiln_duty_close(struct kiln_duty *duty);

/* What the server says now, all of it. */
void kiln_duty_tell(struct kiln_duty *duty, const struct kiln_orders *orders);
/* Takes an order of this host's own; fills in its id.  -EPERM: it is beyond the limit. */
KILN_CHECK int kiln_duty_give(struct kiln_duty *duty, struct kiln_order *order,
                              struct kiln_err *err);
/* Withdraws one.  1; 0: there is none; -EEXIST: it is the server's to withdraw. */
KILN_CHECK int kiln_duty_withdraw(struct kiln_duty *duty, const char *id, struct kiln_err *err);

/* Ends what is over.  To be called about once a second, less often where nothing is followed. */
void kiln_duty_tick(struct kiln_duty *duty);
/* Whether nothing is followed. */
bool kiln_duty_idle(struct kiln_duty *duty);
/* Appends what is followed. */
KILN_CHECK int kiln_duty_list(struct kiln_duty *duty, struct kiln_orders *orders);
/* Grows with each change of what is followed. */
uint64_t kiln_duty_version(struct kiln_duty *duty);

#endif /* KILN_FLEET_DUTY_H */

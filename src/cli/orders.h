/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orders - what `kiln boost`, `kiln pause`, `kiln resume` and `kiln agents` share: whom to ask,
 * whom is meant, and what is there.
 *
 * They ask the server; where none was named, that of this host: on its socket, where it knows which
 * user asks, or at the usual port; where none listens there, the agent of this host, on its socket.
 * The functions that return an exit code have printed what went wrong.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_ORDERS_H
#define KILN_CLI_ORDERS_H

#include <limits.h>

#include "cli/cli.h"
#include "fleet/orders.h"
#include "fleet/status.h"
#include "net/client.h"

/* ---- whom to ask ---- */

struct kiln_orders_place {
    const struct kiln_cli *cli;
    struct kiln_client *client;
    const char *address;
    char socket[PATH_MAX + 8]; /* where `address` points, of the server of this host */
    bool agent;                /* of this host, not a server */
};

KILN_CHECK int kiln_orders_open(const struct kiln_cli *cli, struct kiln_orders_place *place);
void kiln_orders_close(struct kiln_orders_place *place);

/* Appends the answer to `out`; an exit code. */
KILN_CHECK int kiln_orders_ask(struct kiln_orders_place *place, const char *method,
                               const char *path, struct kiln_str body, struct kiln_buf *out);

/* ---- what is there ---- */

enum { KILN_ORDERS_SHOWN_MAX = 4096 };

struct kiln_agents {
    struct kiln_agent_status *items;
    uint32_t n, cap;
    struct kiln_budget budget;
};

/* To be done in any case. */
KILN_CHECK int kiln_agents_get(struct kiln_orders_place *place, struct kiln_agents *agents);
void kiln_agents_done(struct kiln_agents *agents);
/* Whether it was heard of within the last minute. */
bool kiln_agent_is_there(const struct kiln_agent_status *agent);
/* {"LIST":[...]}: `element` reads each. */
KILN_CHECK int kiln_orders_list(struct kiln_orders_place *place, const char *path, const char *list,
                                int (*element)(struct kiln_json *r, void *context), void *context);
KILN_CHECK int kiln_orders_get(struct kiln_orders_place *place, struct kiln_orders *orders);
/* Reads {"orders":[...]}. */
KILN_CHECK int kiln_orders_parse(struct kiln_str text, struct kiln_orders *orders);

/* ---- whom is meant ---- */

/* Options: --service, --container, --host, --pid, --all. */
extern const struct kiln_option_group kiln_group_target;

/*
 * Says who the command line means, in `order`'s target, name, pid and host; an exit code.  A bare
 * word that must be known is a service or a host then, else it stays a service.
 */
KILN_CHECK int kiln_orders_whom(struct kiln_orders_place *place, bool known,
                                struct kiln_order *order);

/* Gives an order, and says what came of it. */
KILN_CHECK int kiln_orders_give(struct kiln_cli *cli, enum kiln_order_kind kind);
/* Withdraws those of a kind for whom the command line means; `done` is what to say of each. */
KILN_CHECK int kiln_orders_withdraw(struct kiln_cli *cli, enum kiln_order_kind kind,
                                    const char *done);

#define KILN_OPT_WHY                                                                               \
    KILN_OPT("why", 0, KILN_OPT_TEXT, order.why, "TEXT", "a reason, for the log and for others")

#endif /* KILN_CLI_ORDERS_H */

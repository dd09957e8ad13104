/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_socket - what the agent answers on its Unix socket: how it is, which orders it follows, and
 * orders of this host's own, in the words of the server's API (docs/openapi.yaml), so that
 * `kiln boost`, `kiln pause` and `kiln agents` talk to either.
 *
 *   GET    /v1/self             {"sampled":{...},"agent":{...},"orders":[...]}
 *   GET    /api/v1/agents       {"agents":[{...}]}
 *   GET    /api/v1/orders       {"orders":[...]}
 *   POST   /api/v1/orders       one more, or what an Alertmanager sends
 *   DELETE /api/v1/orders/{id}  of those that were given here
 *
 * Who may open the socket sees all of it: its file is of root, or of the agent's user, and group.
 * Orders are given and withdrawn by root and by the agent's user alone.
 *
 * Threads: added before the server starts; handlers run on its workers.
 */
#ifndef KILN_CLI_AGENT_SOCKET_H
#define KILN_CLI_AGENT_SOCKET_H

#include <stdatomic.h>

#include "fleet/duty.h"
#include "fleet/status.h"
#include "host/host.h"
#include "net/server.h"

struct kiln_audit;

/* Borrowed by the routes. */
struct kiln_agent_socket {
    struct kiln_duty *_Atomic duty; /* NULL until the profiler runs: then 503 */
    void (*tell)(void *context, struct kiln_agent_status *ret_status);
    void *context;
    struct kiln_audit *audit;          /* pipeline/audit.h; set before `duty` */
    const struct kiln_host_opts *opts; /* what it samples of whoever asks: cli/host_sampled.h */
};

KILN_CHECK int kiln_agent_socket_add(struct kiln_agent_socket *socket, struct kiln_router *router);

#endif /* KILN_CLI_AGENT_SOCKET_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_orders - all of `kiln agent` that has to do with orders, put together: what this host
 * follows (fleet/duty.h), the link to the server, and what the socket answers.
 *
 * Threads: the main thread makes and ends it; the rest happens on the link's thread and on the
 * server's workers.
 */
#ifndef KILN_CLI_AGENT_ORDERS_H
#define KILN_CLI_AGENT_ORDERS_H

#include <pthread.h>

#include "base/pulse.h"
#include "cli/agent_link.h"
#include "cli/agent_socket.h"
#include "host/host.h"

struct kiln_agent_orders {
    const struct kiln_server_config *config;
    struct kiln_metrics *metrics;
    struct kiln_log *log;
    struct kiln_host_facts facts;
    uint64_t started_ns; /* Unix time */
    struct kiln_pulse pulse;
    struct kiln_agent_socket socket;
    struct kiln_audit *audit;
    struct kiln_duty *duty;
    struct kiln_agent_link *link;
    pthread_mutex_t lock;
    struct kiln_host *host;               /* NULL: not yet, or no more */
    const struct kiln_consumer *exporter; /* the same */
};

/* It must stay where it is. */
void kiln_agent_orders_init(struct kiln_agent_orders *orders,
                            const struct kiln_server_config *config, struct kiln_metrics *metrics,
                            struct kiln_log *log);
/* Follows what was kept, and asks for more. */
KILN_CHECK int kiln_agent_orders_start(struct kiln_agent_orders *orders, struct kiln_host *host,
                                       const struct kiln_consumer *exporter, struct kiln_err *err);
/* Before the host is stopped and the exporter ends; orders stay on disk. */
void kiln_agent_orders_stop(struct kiln_agent_orders *orders);
/* After the server that answers on the socket has stopped. */
void kiln_agent_orders_done(struct kiln_agent_orders *orders);

#endif /* KILN_CLI_AGENT_ORDERS_H */

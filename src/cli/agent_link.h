/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_link - the agent's thread that asks its server for orders every few seconds, says how the
 * agent is, and ends orders whose time is over (fleet/link.h, fleet/duty.h).
 *
 * The server is --server, else whoever takes the profiles: OTLP ports of a Kiln server answer it
 * too.  Other receivers refuse the question; they are asked again once a minute.
 *
 * Threads: started and stopped by one.
 */
#ifndef KILN_CLI_AGENT_LINK_H
#define KILN_CLI_AGENT_LINK_H

#include "base/log.h"
#include "base/metric.h"
#include "cli/settings.h"
#include "fleet/duty.h"
#include "fleet/status.h"

struct kiln_agent_link;

/* All borrowed until it is stopped. */
struct kiln_agent_link_opts {
    const struct kiln_server_config *config;
    const char *host_id;
    struct kiln_duty *duty;
    void (*tell)(void *context, struct kiln_agent_status *ret_status);
    void (*watched)(void *context, bool watched); /* somebody waits for what is new */
    void *context;
    struct kiln_metrics *metrics;
    struct kiln_log *log;
};

KILN_CHECK int kiln_agent_link_start(const struct kiln_agent_link_opts *opts,
                                     struct kiln_agent_link **ret_link, struct kiln_err *err);
/* NULL is allowed. */
void kiln_agent_link_stop(struct kiln_agent_link *link);

#endif /* KILN_CLI_AGENT_LINK_H */

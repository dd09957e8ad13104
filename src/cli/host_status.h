/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_status - what a host profiler tells of itself (fleet/status.h), in the agent and in the
 * all-in-one.
 *
 * Threads: from any; the pulse has a lock of its own.
 */
#ifndef KILN_CLI_HOST_STATUS_H
#define KILN_CLI_HOST_STATUS_H

#include "fleet/orders.h"
#include "fleet/status.h"
#include "host/host.h"
#include "pipeline/exporters.h"

/* Counters, rate and state of one that runs, and its processor time so far; who and since when is
 * the caller's to say. */
void kiln_host_status_tell(struct kiln_host *host, struct kiln_agent_status *status,
                           uint64_t *ret_cpu_ns);

/* What was lost on the way to the receiver. */
void kiln_host_status_losses(const struct kiln_consumer *exporter,
                             struct kiln_agent_status *status);

/* What it follows, and whether that stops all of it. */
void kiln_host_status_orders(const struct kiln_orders *orders, struct kiln_agent_status *status);

#endif /* KILN_CLI_HOST_STATUS_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiler - the host profiler of the all-in-one: in a process of its own where root starts it
 * (docs/adr/0039), else in the server's process.
 *
 *   server ── kiln-starter (keeps the profiler's capabilities, starts it again when it dies)
 *     │            └── kiln-profiler (seven capabilities, the agent's filter)
 *     └──── a socket pair ────┘
 *
 * Over the socket go batches as OTLP, which the server acknowledges, the status, metrics, and
 * orders.  The profiler ends when the server does.
 *
 * Threads: fork before there are others; made, started and stopped by one; the rest from any.
 */
#ifndef KILN_CLI_PROFILER_H
#define KILN_CLI_PROFILER_H

#include "base/buf.h"
#include "base/pool.h"
#include "cli/host_status.h"
#include "host/host.h"

struct kiln_profiler;

/* One in this process. */
KILN_CHECK int kiln_profiler_new(struct kiln_profiler **ret_profiler);
/* One in a process of its own, which waits until it is started; `opts` needs no consumer. */
KILN_CHECK int kiln_profiler_fork(const struct kiln_host_opts *opts,
                                  struct kiln_profiler **ret_profiler);
/* Stops it, where it runs: what it gathered is with the consumer then. */
void kiln_profiler_free(struct kiln_profiler *profiler);

/* Starts it.  `pool` is charged for batches that come from another process.  Errors are those of
 * kiln_host_start(). */
KILN_CHECK int kiln_profiler_start(struct kiln_profiler *profiler,
                                   const struct kiln_host_opts *opts, struct kiln_pool *pool,
                                   struct kiln_err *err);

bool kiln_profiler_is_apart(const struct kiln_profiler *profiler);
/* As kiln_host_set_orders(). */
KILN_CHECK int kiln_profiler_set_orders(struct kiln_profiler *profiler,
                                        const struct kiln_order *orders, uint32_t n);
/* How it is: what kiln_host_status_tell() says, or that its process died and why. */
void kiln_profiler_tell(struct kiln_profiler *profiler, struct kiln_agent_status *status,
                        uint64_t *ret_cpu_ns);
/* Appends the metrics of its process, as text. */
void kiln_profiler_put_metrics(struct kiln_profiler *profiler, struct kiln_buf *out);

#endif /* KILN_CLI_PROFILER_H */

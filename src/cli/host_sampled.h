/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_sampled - what the host profiler samples of one process: programs with libkiln inside ask
 * that of the local socket (GET /v1/self), and leave it to the profiler.
 *
 *   {"sampled":{"pid":4711,"cpu":true,"off_cpu":false}}
 *
 * A server adds "names": whether it finds those of this process' files itself (naming/local.h).
 * A profiler that is paused for now counts: whoever pauses it wants no samples.
 *
 * Threads: no state.
 */
#ifndef KILN_CLI_HOST_SAMPLED_H
#define KILN_CLI_HOST_SAMPLED_H

#include <sys/types.h>

#include "base/json.h"
#include "host/host.h"

/* Whether the filter lets this process through; NULL: it lets all. */
bool kiln_host_is_sampled(const struct kiln_host_filter *filter, pid_t pid);

/* The member "sampled"; `opts` NULL: nothing runs here. */
void kiln_host_sampled_put(struct kiln_json_out *w, const struct kiln_host_opts *opts, pid_t pid);

#endif /* KILN_CLI_HOST_SAMPLED_H */

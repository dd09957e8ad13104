/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens perf events, also where that takes CAP_SYS_ADMIN (host/refusal.h) which this process gave
 * up at its start: a child keeps the capability, opens software events of processors and passes
 * their descriptors back.
 *
 * Events are opened as long as the profiler runs: a processor that comes online, and every one but
 * the first after the machine slept, needs a new one.  The child has no other descriptor than its
 * socket, and system calls beyond those few that it makes end it.
 *
 * Threads: start before there are others; open from any.
 */
#ifndef KILN_HOST_OPENER_H
#define KILN_HOST_OPENER_H

#include <linux/perf_event.h>
#include <stdbool.h>

#include "base/attr.h"

/* Whether this kernel refuses events to a process with all capabilities but CAP_SYS_ADMIN. */
bool kiln_opener_is_needed(void);
/* Starts the child, which needs what this process has now. */
KILN_CHECK int kiln_opener_start(void);

/* A descriptor, or -errno; by the child where there is one and this process is refused. */
KILN_CHECK int kiln_perf_open(const struct perf_event_attr *attr, int cpu);

#endif /* KILN_HOST_OPENER_H */

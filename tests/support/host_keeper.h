/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_keeper - the host profiler on the kernel of this machine, and all that it published.
 *
 * Threads: what was kept may be looked at once the profiler has finished.
 */
#ifndef KILN_TESTS_SUPPORT_HOST_KEEPER_H
#define KILN_TESTS_SUPPORT_HOST_KEEPER_H

#include <pthread.h>

#include "host/host.h"

struct kiln_kept {
    struct kiln_consumer consumer;
    pthread_mutex_t lock;
    struct kiln_batch *batches[256];
    uint32_t n;
    _Atomic int code; /* what it says to each */
};
extern struct kiln_kept kiln_kept;

void kiln_kept_forget(void);

/* Begins anew, at 199 Hz and with batches each 300 ms unless `opts` say otherwise; ends the test as
 * skipped where nothing can be profiled. */
struct kiln_host *kiln_kept_start(struct kiln_host_opts opts);

#endif /* KILN_TESTS_SUPPORT_HOST_KEEPER_H */

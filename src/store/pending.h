/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pending - an append between the log and the head.
 *
 * Threads: the log's until it is durable, then the applier's.
 */
#ifndef KILN_STORE_PENDING_H
#define KILN_STORE_PENDING_H

#include "store/store_int.h"

struct kiln_pending {
    struct kiln_wal_append wal; /* first */
    struct kiln_pending *next;
    struct kiln_append *append; /* the caller's; gone (and NULL) once it is told */
    uint64_t durable_mono_ns;   /* when it joined the queue of the applier */
    struct kiln_store *store;
    struct kiln_tenant *tenant;
    struct kiln_batch *batch;
    struct kiln_buf body; /* where the caller had none */
    size_t charged;
};

#endif /* KILN_STORE_PENDING_H */

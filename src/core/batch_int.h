/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_int - how a batch is held in memory; for core/batch.c and the builder only.
 */
#ifndef KILN_CORE_BATCH_INT_H
#define KILN_CORE_BATCH_INT_H

#include <stdatomic.h>

#include "base/arena.h"
#include "core/batch.h"

/* The batch people see, with what only its owner needs. */
struct kiln_batch_box {
    struct kiln_batch batch; /* first, so that a pointer to one is a pointer to the other */
    _Atomic uint32_t refs;
    struct kiln_budget budget;
    struct kiln_arena arena; /* texts, payloads, adopted input */
};

static inline struct kiln_batch_box *kiln_batch_box(const struct kiln_batch *batch)
{
    return (struct kiln_batch_box *)(uintptr_t)batch;
}

#endif /* KILN_CORE_BATCH_INT_H */

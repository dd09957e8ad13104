/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_int - how a batch is held in memory; for core/batch.c and the builder only.
 */
#ifndef KILN_CORE_BATCH_INT_H
#define KILN_CORE_BATCH_INT_H

#include <stdatomic.h>

#include "base/arena.h"
#include "core/batch.h"

#define KILN_BOX_FIRST_BYTES 1280 /* four elements of each array that is never absent */

/*
 * The batch people see, with what only its owner needs.
 *
 * A request to a server makes a batch of twenty small arrays, and twenty calls of malloc and free
 * take a tenth of decoding it.  So arrays start out in the box itself, those of a small batch move
 * into one block when their sizes are known, and only what outgrows that is allocated by itself.
 */
struct kiln_batch_box {
    struct kiln_batch batch; /* first, so that a pointer to one is a pointer to the other */
    _Atomic uint32_t refs;
    struct kiln_budget budget;
    struct kiln_arena arena; /* texts, payloads, adopted input */
    char *block;             /* owned, or NULL */
    size_t block_bytes, block_used, first_used;
    _Alignas(16) char first[KILN_BOX_FIRST_BYTES];
};

/* True for an array in the box or its block: it is not freed by itself. */
static inline bool kiln_box_holds(const struct kiln_batch_box *box, const void *array)
{
    const char *at = array;

    return (size_t)(at - box->first) < sizeof(box->first) ||
           (box->block && (size_t)(at - box->block) < box->block_bytes);
}

static inline struct kiln_batch_box *kiln_batch_box(const struct kiln_batch *batch)
{
    return (struct kiln_batch_box *)(uintptr_t)batch;
}

#endif /* KILN_CORE_BATCH_INT_H */

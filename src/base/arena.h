/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena - many small allocations that die together, charged to one budget.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_BASE_ARENA_H
#define KILN_BASE_ARENA_H

#include "base/mem.h"
#include "base/str.h"

struct kiln_arena_block;

struct kiln_arena {
    struct kiln_budget *budget; /* borrowed */
    struct kiln_arena_block *blocks;
    char *at; /* the free part of the newest block */
    char *end;
    size_t next_block; /* how large the next block will be */
};

void kiln_arena_init(struct kiln_arena *arena, struct kiln_budget *budget);
void kiln_arena_done(struct kiln_arena *arena);

/* Memory aligned for anything, not cleared.  NULL when the budget or the machine has no more. */
KILN_CHECK void *kiln_arena_alloc(struct kiln_arena *arena, size_t size);

/* A copy of `s` in the arena; ptr is NULL on failure (an empty string has a non-NULL ptr). */
KILN_CHECK struct kiln_str kiln_arena_copy(struct kiln_arena *arena, struct kiln_str s);

/*
 * Gives a block from kiln_malloc() to the arena, which charges `size` and frees it at the end.
 * Returns 0, or KILN_E_LIMIT or -ENOMEM and then the block is still the caller's.
 */
KILN_CHECK int kiln_arena_adopt(struct kiln_arena *arena, void *ptr, size_t size);

#endif /* KILN_BASE_ARENA_H */

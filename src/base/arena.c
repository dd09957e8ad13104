/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks grow by half from 4 KiB to 1 MiB; a request larger than a quarter of the next block gets a
 * block of its own, so that at most a quarter of a block is ever wasted.  An adopted block hangs in
 * the same list, through a small header of its own.
 */
#include <errno.h>

#include "base/arena.h"
#include "base/err.h"

#define BLOCK_MIN (4u << 10)
#define BLOCK_MAX (1u << 20)
#define ALIGN     16u

struct kiln_arena_block {
    struct kiln_arena_block *next;
    void *adopted;  /* freed with the block; NULL for an ordinary block */
    size_t charged; /* bytes taken from the budget for this block */
    char pad[8];    /* keeps data[] aligned */
    char data[];
};

_Static_assert(sizeof(struct kiln_arena_block) % ALIGN == 0, "block data must be aligned");

void kiln_arena_init(struct kiln_arena *arena, struct kiln_budget *budget)
{
    *arena = (struct kiln_arena){.budget = budget, .next_block = BLOCK_MIN};
}

void kiln_arena_done(struct kiln_arena *arena)
{
    while (arena->blocks) {
        struct kiln_arena_block *block = arena->blocks;

        arena->blocks = block->next;
        kiln_budget_give(arena->budget, block->charged);
        kiln_free(block->adopted);
        kiln_free(block);
    }
    kiln_arena_init(arena, arena->budget);
}

static struct kiln_arena_block *add_block(struct kiln_arena *arena, size_t size, size_t extra)
{
    struct kiln_arena_block *block;

    if (kiln_budget_take(arena->budget, sizeof(*block) + size + extra) < 0)
        return NULL;
    block = kiln_malloc(sizeof(*block) + size);
    if (!block) {
        kiln_budget_give(arena->budget, sizeof(*block) + size + extra);
        return NULL;
    }
    block->next = arena->blocks;
    block->adopted = NULL;
    block->charged = sizeof(*block) + size + extra;
    arena->blocks = block;
    return block;
}

void *kiln_arena_alloc(struct kiln_arena *arena, size_t size)
{
    size_t room = size ? (size + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN;
    struct kiln_arena_block *block;
    char *ptr;

    if (room < size || room > SIZE_MAX / 2)
        return NULL;
    if (KILN_LIKELY(room <= (size_t)(arena->end - arena->at))) {
        ptr = arena->at;
        arena->at += room;
        return ptr;
    }
    if (room > arena->next_block / 4) {
        block = add_block(arena, room, 0);
        return block ? block->data : NULL;
    }
    block = add_block(arena, arena->next_block, 0);
    if (!block)
        return NULL;
    arena->at = block->data + room;
    arena->end = block->data + arena->next_block;
    if (arena->next_block < BLOCK_MAX)
        arena->next_block += arena->next_block / 2;
    return block->data;
}

struct kiln_str kiln_arena_copy(struct kiln_arena *arena, struct kiln_str s)
{
    char *copy;

    if (s.len == 0)
        return KILN_STR("");
    copy = kiln_arena_alloc(arena, s.len);
    if (!copy)
        return KILN_STR_NONE;
    memcpy(copy, s.ptr, s.len);
    return (struct kiln_str){copy, s.len};
}

int kiln_arena_adopt(struct kiln_arena *arena, void *ptr, size_t size)
{
    struct kiln_arena_block *block = add_block(arena, 0, size);

    if (!block)
        return size > arena->budget->limit - arena->budget->used ? KILN_E_LIMIT : -ENOMEM;
    block->adopted = ptr;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is made and freed is counted in stripes, a thread always in the same one: a counter that all
 * of them share would cost more than the allocation.  A block may be freed by another thread than
 * the one that made it, so only sums of all mean something.
 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"

#define LARGE_BYTES (256u << 10) /* arrays from here on grow by half: the peak counts */
#define MMAP_MAX    (4 << 20)    /* larger blocks grow without being copied when they are mapped */

enum { STRIPES = 16 };

static struct stripe {
    _Alignas(64) _Atomic int64_t blocks;
    _Atomic int64_t made, freed; /* bytes */
} stripes[STRIPES];

static _Atomic uint64_t fail_countdown; /* 0: never fail */
static _Atomic bool failed;             /* since kiln_mem_fail_at() */

void kiln_mem_fail_at(uint64_t n)
{
    atomic_store(&failed, false);
    atomic_store(&fail_countdown, n);
}

bool kiln_mem_failed(void)
{
    return atomic_load(&failed);
}

int64_t kiln_mem_live(void)
{
    int64_t blocks = 0;

    for (int i = 0; i < STRIPES; i++)
        blocks += atomic_load_explicit(&stripes[i].blocks, memory_order_relaxed);
    return blocks;
}

/* What was freed is looked at first: more of it than was made is never seen. */
size_t kiln_mem_live_bytes(void)
{
    int64_t bytes = 0;

    for (int i = 0; i < STRIPES; i++)
        bytes -= atomic_load_explicit(&stripes[i].freed, memory_order_relaxed);
    bytes += (int64_t)kiln_mem_made_bytes();
    return bytes > 0 ? (size_t)bytes : 0;
}

uint64_t kiln_mem_made_bytes(void)
{
    int64_t bytes = 0;

    for (int i = 0; i < STRIPES; i++)
        bytes += atomic_load_explicit(&stripes[i].made, memory_order_relaxed);
    return (uint64_t)bytes;
}

void kiln_mem_keep(size_t bytes, size_t block)
{
    mallopt(M_MMAP_THRESHOLD, (int)(block < MMAP_MAX ? block : MMAP_MAX));
    mallopt(M_TRIM_THRESHOLD, bytes < INT_MAX ? (int)bytes : INT_MAX);
}

static int must_fail(void)
{
    if (KILN_LIKELY(atomic_load_explicit(&fail_countdown, memory_order_relaxed) == 0))
        return 0;
    if (atomic_fetch_sub(&fail_countdown, 1) != 1)
        return 0;
    atomic_store(&failed, true);
    return 1;
}

static struct stripe *my_stripe(void)
{
    static _Atomic unsigned n_threads;
    /* At a fixed distance from the thread pointer: no call, which could want memory. */
    static _Thread_local struct stripe *mine __attribute__((tls_model("initial-exec")));

    if (KILN_UNLIKELY(!mine))
        mine = &stripes[atomic_fetch_add(&n_threads, 1) % STRIPES];
    return mine;
}

static void count(int64_t blocks, int64_t bytes)
{
    struct stripe *stripe = my_stripe();

    if (blocks)
        atomic_fetch_add_explicit(&stripe->blocks, blocks, memory_order_relaxed);
    if (bytes > 0)
        atomic_fetch_add_explicit(&stripe->made, bytes, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(&stripe->freed, -bytes, memory_order_relaxed);
}

static void *counted(void *ptr)
{
    if (ptr)
        count(1, (int64_t)malloc_usable_size(ptr));
    return ptr;
}

void *kiln_malloc(size_t size)
{
    return must_fail() ? NULL : counted(malloc(size ? size : 1));
}

void *kiln_calloc(size_t count, size_t size)
{
    return must_fail() ? NULL : counted(calloc(count ? count : 1, size ? size : 1));
}

void *kiln_realloc(void *ptr, size_t size)
{
    int64_t before;

    if (!ptr)
        return kiln_malloc(size);
    if (must_fail())
        return NULL;
    before = (int64_t)malloc_usable_size(ptr);
    ptr = realloc(ptr, size ? size : 1);
    if (ptr)
        count(0, (int64_t)malloc_usable_size(ptr) - before);
    return ptr;
}

void kiln_free(void *ptr)
{
    if (!ptr)
        return;
    count(-1, -(int64_t)malloc_usable_size(ptr));
    free(ptr);
}

int kiln_budget_take(struct kiln_budget *budget, size_t bytes)
{
    if (bytes > budget->limit - budget->used)
        return KILN_E_LIMIT;
    budget->used += bytes;
    if (budget->used > budget->peak)
        budget->peak = budget->used;
    return 0;
}

void kiln_budget_give(struct kiln_budget *budget, size_t bytes)
{
    budget->used -= bytes;
}

static int resize(struct kiln_budget *budget, void **ptr, uint32_t *cap, uint64_t want, size_t size)
{
    size_t more = (size_t)(want - *cap) * size;
    void *grown;
    int r;

    r = kiln_budget_take(budget, more);
    if (r < 0)
        return r;
    grown = kiln_realloc(*ptr, (size_t)want * size);
    if (!grown) {
        kiln_budget_give(budget, more);
        return -ENOMEM;
    }
    *ptr = grown;
    *cap = (uint32_t)want;
    return 0;
}

int kiln_grow(struct kiln_budget *budget, void **ptr, uint32_t *cap, uint64_t need, size_t size,
              uint32_t max)
{
    bool large = (uint64_t)*cap * size >= LARGE_BYTES;
    uint64_t want = *cap ? (uint64_t)*cap + *cap / (large ? 2 : 1) : 16;

    if (need <= *cap)
        return 0;
    if (need > max)
        return KILN_E_LIMIT;
    if (want < need)
        want = need;
    if (want > max)
        want = max;
    return resize(budget, ptr, cap, want, size);
}

int kiln_reserve(struct kiln_budget *budget, void **ptr, uint32_t *cap, uint64_t need, size_t size,
                 uint32_t max)
{
    if (need <= *cap)
        return 0;
    if (need > max)
        return KILN_E_LIMIT;
    return resize(budget, ptr, cap, need, size);
}

void kiln_array_free(struct kiln_budget *budget, void **ptr, uint32_t *cap, size_t size)
{
    kiln_free(*ptr);
    kiln_budget_give(budget, (size_t)*cap * size);
    *ptr = NULL;
    *cap = 0;
}

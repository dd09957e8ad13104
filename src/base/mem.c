/* SPDX-License-Identifier: Apache-2.0 */
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

static _Atomic int64_t live_blocks;
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
    return atomic_load(&live_blocks);
}

void kiln_mem_keep(size_t bytes)
{
    int limit = bytes < INT_MAX ? (int)bytes : INT_MAX;

    mallopt(M_MMAP_THRESHOLD, limit < MMAP_MAX ? limit : MMAP_MAX);
    mallopt(M_TRIM_THRESHOLD, limit);
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

static void *counted(void *ptr)
{
    if (ptr)
        atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
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
    if (!ptr)
        return kiln_malloc(size);
    return must_fail() ? NULL : realloc(ptr, size ? size : 1);
}

void kiln_free(void *ptr)
{
    if (!ptr)
        return;
    atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
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

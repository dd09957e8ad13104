/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem - the only door to malloc, and budgets that say how much may pass it.
 *
 * Everything sized by a stranger (a batch, a request, a decoded file) is charged to a budget, so
 * that running out is an ordinary error long before the machine is out of memory.  Tests make the
 * n-th allocation fail (kiln_mem_fail_at) and look for leaks (kiln_mem_live).
 *
 * Threads: allocation is safe anywhere; a budget has one owner at a time.
 */
#ifndef KILN_BASE_MEM_H
#define KILN_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

/* Bytes that may be in use at once, are in use, and were in use at most. */
struct kiln_budget {
    size_t limit;
    size_t used;
    size_t peak;
};

/* As malloc, calloc, realloc and free.  Memory from here is freed here. */
void *kiln_malloc(size_t size) KILN_CHECK;
void *kiln_calloc(size_t count, size_t size) KILN_CHECK;
void *kiln_realloc(void *ptr, size_t size) KILN_CHECK;
void kiln_free(void *ptr);

/* Charges `bytes`.  Returns 0 or KILN_E_LIMIT, and then nothing was charged. */
KILN_CHECK int kiln_budget_take(struct kiln_budget *budget, size_t bytes);
void kiln_budget_give(struct kiln_budget *budget, size_t bytes);

/*
 * Makes room in a growable array: *ptr has *cap elements of `size` bytes and shall have at least
 * `need`.  Capacity doubles (large arrays grow by half), is charged to `budget`, and never passes
 * `max` elements. Returns 0, -ENOMEM or KILN_E_LIMIT; on failure the array is as it was.
 */
KILN_CHECK int kiln_grow(struct kiln_budget *budget, void **ptr, uint32_t *cap, uint64_t need,
                         size_t size, uint32_t max);

/* The same, but for exactly `need` elements: where a decoder counted beforehand. */
KILN_CHECK int kiln_reserve(struct kiln_budget *budget, void **ptr, uint32_t *cap, uint64_t need,
                            size_t size, uint32_t max);

/* Frees such an array and gives its bytes back. */
void kiln_array_free(struct kiln_budget *budget, void **ptr, uint32_t *cap, size_t size);

/*
 * For main() of a program that handles one batch after another: freed memory up to `bytes` stays
 * with the process for the next batch.  By default the C library hands it back to the kernel at
 * once, and getting it again, page by page, takes as long as merging two batches.  Blocks from
 * `block` bytes on do not stay: they leave no holes, and grow without being copied.  Never in a
 * library.
 */
void kiln_mem_keep(size_t bytes, size_t block);

/* What all live blocks take, as the C library has rounded it up. */
size_t kiln_mem_live_bytes(void);
/* And all bytes since the process began, freed or not. */
uint64_t kiln_mem_made_bytes(void);

/*
 * For tests: the n-th allocation from now fails (0: none does); whether it has; how many blocks are
 * live.
 */
void kiln_mem_fail_at(uint64_t n);
bool kiln_mem_failed(void);
int64_t kiln_mem_live(void);

#endif /* KILN_BASE_MEM_H */

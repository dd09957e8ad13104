/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort - puts numbers with keys in the order of their keys, stably and in linear time.
 *
 * Threads: no state.
 */
#ifndef KILN_STORE_SORT_H
#define KILN_STORE_SORT_H

#include <stdint.h>

struct kiln_keyed {
    uint64_t key;
    uint32_t at;
    uint32_t more; /* whatever the caller likes to keep beside it */
};

/* `scratch` has room for `n` too. */
void kiln_sort_keyed(struct kiln_keyed *list, struct kiln_keyed *scratch, uint32_t n);

#endif /* KILN_STORE_SORT_H */

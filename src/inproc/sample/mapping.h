/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping - anonymous memory that a program maps by itself, as samples of their own kind: where an
 * allocator maps what it gives out, both kinds have it.
 *
 * What is mapped without any access is a reservation and does not count.
 *
 * Threads: from anywhere.  errno is kept.
 */
#ifndef KILN_INPROC_SAMPLE_MAPPING_H
#define KILN_INPROC_SAMPLE_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kiln_in_live;

/* Whether mappings are sampled at all. */
bool kiln_in_mapping_wanted(void);

/* Memory that was mapped just now. */
void kiln_in_mapping_made(void *address, size_t length);
/* It is about to be unmapped, or to be mapped over. */
void kiln_in_mapping_ends(void *address, size_t length);

/*
 * Around mremap(): false where the mapping is none that was sampled.  One that was stays so, where
 * it is now; `to` may be MAP_FAILED.
 */
bool kiln_in_mapping_moves(void *address, struct kiln_in_live *ret_old);
void kiln_in_mapping_moved(const struct kiln_in_live *old, void *to, size_t length);

#endif /* KILN_INPROC_SAMPLE_MAPPING_H */

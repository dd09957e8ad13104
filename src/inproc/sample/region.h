/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region - sampled mappings that are still there, whole or in part: what is unmapped of one, at
 * either end or in the middle, is gone from it.
 *
 * Threads: from anywhere; a lock that cannot be had in time is told by the result.
 */
#ifndef KILN_INPROC_SAMPLE_REGION_H
#define KILN_INPROC_SAMPLE_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include "inproc/sample/live.h"

enum { KILN_IN_REGIONS_MAX = 2048 };

/* -1: no room. */
int kiln_in_region_add(const struct kiln_in_live *region);
/* Whatever lies between both addresses. */
void kiln_in_region_cut(uint64_t from, uint64_t to);
/* The one that begins there is taken out, into *ret; false: there is none. */
bool kiln_in_region_take(uint64_t address, struct kiln_in_live *ret);

/* A copy of each, in no order. */
void kiln_in_region_each(void (*look)(const struct kiln_in_live *region, void *arg), void *arg);
uint32_t kiln_in_region_count(void);

/* On a thread that had the lock, perhaps, and has left by a jump. */
void kiln_in_region_left(void);
/* In a forked child: whoever had the lock is gone. */
void kiln_in_region_forked(void);

#endif /* KILN_INPROC_SAMPLE_REGION_H */

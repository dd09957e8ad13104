/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meminfo - how much memory this process takes, and how much it may take at all.
 *
 * Threads: safe from anywhere.
 */
#ifndef KILN_BASE_MEMINFO_H
#define KILN_BASE_MEMINFO_H

#include <stdint.h>

/* Resident bytes that are no file's; 0 where /proc does not say. */
uint64_t kiln_meminfo_used(void);

/* What the control group of this process allows (v2, or v1), at most what the machine has. */
uint64_t kiln_meminfo_total(void);

#endif /* KILN_BASE_MEMINFO_H */

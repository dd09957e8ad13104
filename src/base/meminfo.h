/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meminfo - memory used by this process, and the most that the kernel lets it use.
 *
 * Threads: safe from anywhere.
 */
#ifndef KILN_BASE_MEMINFO_H
#define KILN_BASE_MEMINFO_H

#include <stdint.h>

/* Resident bytes that are not backed by a file; 0 if /proc cannot be read. */
uint64_t kiln_meminfo_used(void);

/* The machine's memory, or the limit of this process' control group if that is lower. */
uint64_t kiln_meminfo_total(void);

/*
 * The lowest memory limit of this process' control groups and their ancestors, in the v2, v1 and
 * hybrid layouts; UINT64_MAX if there is none. "proc" and "sys" are "/proc" and "/sys/fs/cgroup";
 * tests pass other folders.
 */
uint64_t kiln_meminfo_group_limit(const char *proc, const char *sys);

#endif /* KILN_BASE_MEMINFO_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_open - opens files of processes without waiting and without touching what is no file.
 *
 * Threads: no state.
 */
#ifndef KILN_HOST_PROCESS_OPEN_H
#define KILN_HOST_PROCESS_OPEN_H

#include <stdint.h>
#include <sys/stat.h>

#include "base/attr.h"

/*
 * Opens a regular file for reading, found from `dir` on by the rules of openat2()'s RESOLVE_*.
 * Returns the descriptor, or a negative errno; -ENOENT also for what is no regular file.
 */
KILN_CHECK int kiln_open_beneath(int dir, const char *path, uint64_t resolve, struct stat *ret_st);

#endif /* KILN_HOST_PROCESS_OPEN_H */

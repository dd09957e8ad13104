/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beneath - opens files whose names come from strangers: from a directory on and never out of it,
 * without waiting, and without touching what is no file.
 *
 * Threads: no state.
 */
#ifndef KILN_BASE_BENEATH_H
#define KILN_BASE_BENEATH_H

#include <stdint.h>
#include <sys/stat.h>

#include "base/attr.h"

/* A regular file that is only named yet, as open_beneath finds it; and opens it, letting go of the
 * name.  Negative errno. */
KILN_CHECK int kiln_reach_beneath(int dir, const char *path, uint64_t resolve, struct stat *ret_st);
KILN_CHECK int kiln_open_reached(int at);

/*
 * Opens a regular file for reading, found from `dir` on by the rules of openat2()'s RESOLVE_*.
 * Returns the descriptor, or a negative errno; -ENOENT also for what is no regular file.  Where
 * the kernel has no openat2(), only what has RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS is found.
 */
KILN_CHECK int kiln_open_beneath(int dir, const char *path, uint64_t resolve, struct stat *ret_st);

/* That other way to a name: component by component, none of which may be a link or lead upwards. */
KILN_CHECK int kiln_walk_beneath(int dir, const char *path, struct stat *ret_st);

#endif /* KILN_BASE_BENEATH_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own - gives files of root to the user that the process is about to become.
 *
 * Only entries of one directory whose names the caller lists are given away, with all that is
 * beneath them.  Symbolic links are not followed, other file systems are not entered, and a file
 * with more than one hard link is given away only from a directory that root alone could write to:
 * in any other, the link may lead to a file elsewhere.
 *
 * Threads: no state.
 */
#ifndef KILN_BASE_OWN_H
#define KILN_BASE_OWN_H

#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"

enum { KILN_OWN_DEPTH_MAX = 16 };
#define KILN_OWN_FILES_MAX UINT64_C(10000000)

struct kiln_own_opts {
    const char *dir;
    uid_t uid; /* the new owner */
    gid_t gid;
    const char *const *names; /* "wal": the entry wal, and those called wal.*; NULL ends them */
};

/*
 * Gives them away where root, or the owner of the directory, has them; the directory itself comes
 * last, and keeps its group, which may write from then on if it is root's.  Returns how many
 * changed owner.
 */
KILN_CHECK int kiln_own(const struct kiln_own_opts *opts, uint64_t *ret_n, struct kiln_err *err);

#endif /* KILN_BASE_OWN_H */

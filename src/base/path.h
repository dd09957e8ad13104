/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path - resolves a path that an untrusted user may have changed.
 *
 * A process with root's rights that opens a path below a directory of another user can be led to
 * any file by a symbolic link there.  The functions here follow links, except those of that user,
 * and leave the last step to the caller: a directory, and a name in it that is no link.
 *
 * Threads: no state.
 */
#ifndef KILN_BASE_PATH_H
#define KILN_BASE_PATH_H

#include <limits.h>
#include <sys/types.h>

#include "base/attr.h"

enum { KILN_PATH_LINKS_MAX = 40 };

struct kiln_path_end {
    int dir; /* a descriptor, to be closed */
    char name[NAME_MAX + 1];
};

/*
 * Finds the directory and the name that a path leads to; the name need not exist.  "." stands for
 * the directory itself.  -ELOOP: a link of `untrusted`, or too many links.
 */
KILN_CHECK int kiln_path_resolve(const char *path, uid_t untrusted, struct kiln_path_end *ret_end);

#endif /* KILN_BASE_PATH_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts - which paths of a process lie on a file system that another program or another machine
 * serves: FUSE, NFS, CIFS, 9p and their like.  A call on a file there may never return.
 *
 * /proc/PID/mountinfo is read for that, whose reading asks no file system; what it said is kept for
 * each root, since samples tell which root a process has (struct kiln_who), for some seconds.  A
 * file system that was mounted since is not known, nor one that lies beneath an overlay.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_HOST_MOUNTS_H
#define KILN_HOST_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

struct kiln_mounts;

KILN_CHECK int kiln_mounts_new(struct kiln_mounts **ret_mounts);
void kiln_mounts_free(struct kiln_mounts *mounts); /* may be NULL */

/* Of a path as a process sees it whose folder in /proc is `dir`; `root` 0: not known. */
bool kiln_mounts_served(struct kiln_mounts *mounts, int dir, uint64_t root, const char *path);

#endif /* KILN_HOST_MOUNTS_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local - files of processes on this host that send profiles without names over the Unix socket:
 * what a process has mapped is kept open as long as it may take to name it, wherever the file lies
 * (a container, a folder of a user's) and whether or not it is still there.
 *
 * Only what the process itself has mapped is opened, by what the kernel says of it (/proc/PID/maps,
 * and map_files or the process' root): a path that a profile tells proves nothing.
 *
 * Threads: from anywhere.
 */
#ifndef KILN_NAMING_LOCAL_H
#define KILN_NAMING_LOCAL_H

#include <sys/types.h>

#include "base/err.h"
#include "core/batch.h"

enum { KILN_LOCAL_FILES_MAX = 128 }; /* open at once; the oldest go first */

struct kiln_local_files;

KILN_CHECK int kiln_local_files_new(struct kiln_local_files **ret_files);
void kiln_local_files_free(struct kiln_local_files *files);

/* Whether the files of a process can be had here: this server may look into it. */
bool kiln_local_files_can(pid_t pid);

/* A batch that came from this process, which waits for the answer. */
void kiln_local_files_note(struct kiln_local_files *files, pid_t pid,
                           const struct kiln_batch *batch);

/* How many were kept so far. */
uint64_t kiln_local_files_kept(struct kiln_local_files *files);

/* A file of this build id, for the caller to close.  -ENOENT. */
KILN_CHECK int kiln_local_files_get(struct kiln_local_files *files, struct kiln_str build_id,
                                    int *ret_fd);

#endif /* KILN_NAMING_LOCAL_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file - whole files in, whole files out.
 *
 * Errors do not name the file: the caller, who knows it, says it once.  A process that was root
 * reads files that it may not open any more through its keeper (base/keeper.h).
 * Threads: no state.
 */
#ifndef KILN_BASE_FILE_H
#define KILN_BASE_FILE_H

#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/*
 * Appends all of a file to `out`, whose max is the limit; "-" is standard input.
 * Returns 0, a negative errno, KILN_E_LIMIT or -ENOMEM.
 */
KILN_CHECK int kiln_file_read(const char *path, struct kiln_buf *out, struct kiln_err *err);

/* Who opens files that this process may not (base/keeper.h); NULL: nobody.  Before there are other
 * threads. */
void kiln_file_open_by(int (*open_refused)(const char *path));
/* Opens a file to be read.  A descriptor or a negative errno. */
KILN_CHECK int kiln_file_open(const char *path);
/* What a file is, links followed.  Returns 0 or a negative errno. */
KILN_CHECK int kiln_file_stat(const char *path, struct stat *ret_stat);

/*
 * Replaces a file in one step: whoever opens it sees the old content or all of the new one, also
 * after a crash.  The mode of an existing file and symbolic links are kept.  What is no regular
 * file
 * ("-" for standard output, a device, a pipe) is simply written to.
 */
KILN_CHECK int kiln_file_write(const char *path, struct kiln_str data, struct kiln_err *err);

/* The same, but a link is replaced itself: for files in folders that other users can write to. */
KILN_CHECK int kiln_file_replace(const char *path, struct kiln_str data, struct kiln_err *err);

/* Makes a folder and all that it is in, where they are not there.  Returns 0 or a negative errno.
 */
KILN_CHECK int kiln_file_make_folders(const char *path, uint32_t mode);

/* Writes all of `data` to a descriptor.  Returns 0 or a negative errno. */
KILN_CHECK int kiln_fd_write(int fd, struct kiln_str data);

/* Opens a regular file to be read.  A negative errno, or KILN_E_UNKNOWN: a pipe or device. */
KILN_CHECK int kiln_file_open_plain(const char *path, int *ret_fd);

#endif /* KILN_BASE_FILE_H */

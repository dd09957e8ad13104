/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io - every file operation of the store, as one table of functions.
 *
 * The store never calls the kernel by itself: tests put in a table that loses what was not synced,
 * tears and reorders writes, fills the disk, fails any call, and then opens the store again.
 *
 * All functions return 0 (or a count, or a descriptor) or a negative errno.  Paths are relative to
 * the store's directory, without ".."; "." is the directory itself.  Short reads mean the end of
 * the file; writes are whole or fail (a failed write may have written a part).
 *
 * Threads: safe from anywhere; a descriptor is used like the kernel's.
 */
#ifndef KILN_STORE_IO_H
#define KILN_STORE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/attr.h"

struct kiln_io {
    /* `flags` as open(2): O_RDONLY, O_RDWR, O_CREAT, O_EXCL; O_CLOEXEC is implied. */
    int (*open)(struct kiln_io *io, const char *path, int flags);
    int (*close)(struct kiln_io *io, int fd);
    ssize_t (*pread)(struct kiln_io *io, int fd, void *buf, size_t n, uint64_t offset);
    int (*pwrite)(struct kiln_io *io, int fd, const void *buf, size_t n, uint64_t offset);
    /* Several pieces (at most IOV_MAX) one after the other. */
    int (*pwritev)(struct kiln_io *io, int fd, const struct iovec *pieces, int n, uint64_t offset);
    int (*sync)(struct kiln_io *io, int fd); /* fdatasync: content and length */
    int (*truncate)(struct kiln_io *io, int fd, uint64_t size);
    int (*size)(struct kiln_io *io, int fd, uint64_t *ret_size);
    /* 0: the open file has this name still; else -ENOENT: it was removed, renamed or replaced. */
    int (*has_name)(struct kiln_io *io, int fd, const char *path);
    int (*rename)(struct kiln_io *io, const char *from, const char *to); /* replaces `to` */
    int (*link)(struct kiln_io *io, const char *from, const char *to);   /* backups */
    int (*unlink)(struct kiln_io *io, const char *path);
    int (*mkdir)(struct kiln_io *io, const char *path);    /* 0 also if it is there already */
    int (*sync_dir)(struct kiln_io *io, const char *path); /* names made, renamed and removed */
    /* Names in a folder (not "." and ".."), in no order.  A negative answer of `each` ends it. */
    int (*list)(struct kiln_io *io, const char *path, int (*each)(void *context, const char *name),
                void *context);
    int (*space)(struct kiln_io *io, uint64_t *ret_free, uint64_t *ret_total); /* bytes */
};

/*
 * The real one: below the directory `root`, which is made if it is not there, and locked (flock on
 * its file LOCK) unless `read_only`.  -EWOULDBLOCK: another process has it.
 */
KILN_CHECK int kiln_io_open(const char *root, bool read_only, struct kiln_io **ret_io);
void kiln_io_close(struct kiln_io *io);

/*
 * A descriptor of the directory `name` in the directory `root`, made if it is not there.  A name is
 * one component that does not begin with a dot; a link is not followed.  -EINVAL: it is no name.
 */
KILN_CHECK int kiln_io_open_dir_in(const char *root, const char *name);

/* Writes a whole new file so that it is there entirely or not at all, also after a power cut: a
 * temporary name (PATH.tmp), sync, rename, sync of its folder.  One at a time for a path. */
KILN_CHECK int kiln_io_put(struct kiln_io *io, const char *path, const void *data, size_t n);
/* Reads a whole file of at most `max` bytes into memory from kiln_malloc(). */
KILN_CHECK int kiln_io_get(struct kiln_io *io, const char *path, size_t max, void **ret_data,
                           size_t *ret_n);

/*
 * A file of one store's directory also into that of another: a hard link where both are real and on
 * one file system, else a synced copy.  The folder is not synced.  -EEXIST if `to` is there
 * already.
 */
KILN_CHECK int kiln_io_link_across(struct kiln_io *from_io, const char *from, struct kiln_io *to_io,
                                   const char *to);
/* The same, always a copy. */
KILN_CHECK int kiln_io_copy_across(struct kiln_io *from_io, const char *from, struct kiln_io *to_io,
                                   const char *to);

#endif /* KILN_STORE_IO_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * one_file - a disk with one file, whatever it is called: for targets that read blocks.
 */
#ifndef KILN_FUZZ_ONE_FILE_H
#define KILN_FUZZ_ONE_FILE_H

#include <errno.h>
#include <string.h>

#include "store/io.h"

struct file_io {
    struct kiln_io io;
    const uint8_t *data;
    size_t size;
};

static int file_open(struct kiln_io *io, const char *path, int flags)
{
    (void)io;
    (void)path;
    (void)flags;
    return 3;
}

static int file_close(struct kiln_io *io, int fd)
{
    (void)io;
    (void)fd;
    return 0;
}

static ssize_t file_pread(struct kiln_io *io, int fd, void *buf, size_t n, uint64_t offset)
{
    const struct file_io *file = (const struct file_io *)io;

    (void)fd;
    if (offset >= file->size)
        return 0;
    if (n > file->size - offset)
        n = file->size - (size_t)offset;
    memcpy(buf, file->data + offset, n);
    return (ssize_t)n;
}

static int file_size(struct kiln_io *io, int fd, uint64_t *ret_size)
{
    (void)fd;
    *ret_size = ((const struct file_io *)io)->size;
    return 0;
}

/* There are no folders. */
static int file_list(struct kiln_io *io, const char *path,
                     int (*each)(void *context, const char *name), void *context)
{
    (void)io;
    (void)path;
    (void)each;
    (void)context;
    return -ENOENT;
}

static inline struct file_io file_of(const uint8_t *data, size_t size)
{
    return (struct file_io){.io = {.open = file_open,
                                   .close = file_close,
                                   .pread = file_pread,
                                   .size = file_size,
                                   .list = file_list},
                            .data = data,
                            .size = size};
}

#endif /* KILN_FUZZ_ONE_FILE_H */

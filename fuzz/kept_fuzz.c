/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept, as it lies on the disk; and changed, when it can be read. */
#include "api/kept.h"
#include "fuzz.h"

static const uint8_t *content;
static size_t length;
static bool written;

static int open_file(struct kiln_io *io, const char *path, int flags)
{
    (void)io, (void)path, (void)flags;
    return 3;
}

static int close_file(struct kiln_io *io, int fd)
{
    (void)io, (void)fd;
    return 0;
}

static ssize_t read_file(struct kiln_io *io, int fd, void *buf, size_t n, uint64_t offset)
{
    (void)io, (void)fd;
    if (offset >= length)
        return 0;
    n = n < length - offset ? n : length - offset;
    memcpy(buf, content + offset, n);
    return (ssize_t)n;
}

static int size_of(struct kiln_io *io, int fd, uint64_t *ret_size)
{
    (void)io, (void)fd;
    *ret_size = length;
    return 0;
}

static int write_file(struct kiln_io *io, int fd, const void *buf, size_t n, uint64_t offset)
{
    (void)io, (void)fd, (void)buf, (void)n, (void)offset;
    written = true;
    return 0;
}

static int make(struct kiln_io *io, const char *path)
{
    (void)io, (void)path;
    return 0;
}

static int move(struct kiln_io *io, const char *from, const char *to)
{
    (void)io, (void)from, (void)to;
    return 0;
}

static int shrink(struct kiln_io *io, int fd, uint64_t size)
{
    (void)io, (void)fd, (void)size;
    return 0;
}

static int look(void *context, const struct kiln_kept_item *item)
{
    size_t *sum = context;

    for (size_t i = 0; i < item->text.len; i++)
        *sum += (unsigned char)item->text.ptr[i];
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_io io = {.open = open_file,
                         .close = close_file,
                         .pread = read_file,
                         .size = size_of,
                         .pwrite = write_file,
                         .truncate = shrink,
                         .sync = close_file,
                         .mkdir = make,
                         .sync_dir = make,
                         .unlink = make,
                         .rename = move};
    struct kiln_kept_item item = {KILN_STR("m"), KILN_STR("{}"), 7};
    struct kiln_kept *kept;
    size_t sum = 0;
    int r;

    content = data;
    length = size;
    written = false;
    if (kiln_kept_open(&io, &kept, NULL) < 0)
        return 0;
    r = kiln_kept_each(kept, KILN_STR("t"), "k", look, &sum, NULL);
    if (kiln_kept_set(kept, KILN_STR("t"), "k", &item, NULL) == 0)
        FUZZ_CHECK(r == 0);
    FUZZ_CHECK(r == 0 || !written); /* what cannot be read is never replaced */
    kiln_kept_close(kept);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of files that may have any size, also none (files of the kernel's), chunk by chunk. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "symbol/names_int.h"

enum { CHUNK = 1 << 16 };

static ssize_t read_some(const struct kiln_bytes *bytes, uint64_t offset, char *to, size_t n)
{
    ssize_t r;

    /* Not what was added since it was opened. */
    if (offset >= (bytes->size ? bytes->size : KILN_NAMES_READ_MAX) ||
        offset >= KILN_NAMES_READ_MAX)
        return 0;
    if (bytes->size && n > bytes->size - offset)
        n = bytes->size - offset;
    if (bytes->data || bytes->fd < 0)
        return bytes->read(bytes, offset, to, n) < 0 ? 0 : (ssize_t)n;
    do
        r = pread(bytes->fd, to, n, (off_t)offset);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : r;
}

struct lines {
    int (*each)(void *context, const struct kiln_names_line *line);
    void *context;
    uint64_t offset; /* of the chunk in the file */
    size_t n;        /* of a line that is not complete yet */
    bool too_long;   /* its rest is passed over */
    char chunk[CHUNK];
};

static int show(struct lines *lines, struct kiln_str text, bool complete)
{
    const struct kiln_names_line line = {
        .text = text,
        .offset = lines->offset + (uint64_t)(text.ptr - lines->chunk),
        .complete = complete,
    };

    return lines->too_long ? 0 : lines->each(lines->context, &line);
}

/* Shows the complete lines of the chunk, moves the rest to its beginning. */
static int show_lines(struct lines *lines)
{
    struct kiln_str rest = {lines->chunk, lines->n};
    const char *end;

    while (rest.len > 0 && (end = memchr(rest.ptr, '\n', rest.len))) {
        struct kiln_str line = {rest.ptr, (size_t)(end - rest.ptr)};
        int r = show(lines, line, true);

        if (r < 0)
            return r;
        lines->too_long = false;
        rest.ptr += line.len + 1;
        rest.len -= line.len + 1;
    }
    if (rest.len == CHUNK) {
        int r = show(lines, rest, false);

        if (r < 0)
            return r;
        lines->too_long = true;
        rest.ptr += rest.len;
        rest.len = 0;
    }
    lines->offset += (uint64_t)(rest.ptr - lines->chunk);
    memmove(lines->chunk, rest.ptr, rest.len);
    lines->n = rest.len;
    return 0;
}

int kiln_names_each_line(const struct kiln_bytes *bytes, uint64_t from,
                         int (*each)(void *context, const struct kiln_names_line *line),
                         void *context)
{
    struct lines *lines = kiln_malloc(sizeof(*lines));
    int r = 0;

    if (!lines)
        return -ENOMEM;
    lines->each = each;
    lines->context = context;
    lines->offset = from;
    lines->n = 0;
    lines->too_long = false;
    for (;;) {
        ssize_t n =
            read_some(bytes, lines->offset + lines->n, lines->chunk + lines->n, CHUNK - lines->n);

        r = n < 0 ? (int)n : 0;
        if (n <= 0)
            break;
        lines->n += (size_t)n;
        r = show_lines(lines);
        if (r < 0)
            break;
    }
    if (r == 0 && lines->n > 0)
        r = show(lines, (struct kiln_str){lines->chunk, lines->n}, false);
    kiln_free(lines);
    return r;
}

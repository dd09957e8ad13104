/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of files: where the unit was compiled, the file's directory and its name are put one behind
 * the other, and an absolute one of them counts instead of those before it.  Nothing is tidied:
 * "./" and "../" stay, as eu-addr2line leaves them.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/err.h"
#include "symbol/dwarf_line_int.h"

enum { PATH_MOST = 4096, PIECE = 256 };

/* Adds a text of a section up to its NUL; at most `most` bytes. */
static int add_section_text(const struct kiln_section *section, uint64_t at, size_t most,
                            struct kiln_buf *out)
{
    size_t n = PIECE;

    if (!section || at >= section->size)
        return -ENOENT;
    for (size_t done = 0;; done += n, n = n < PATH_MOST ? 2 * n : n) {
        uint64_t left = section->size - at - done;
        char *to;
        int r;

        if (left == 0)
            return KILN_E_TRUNCATED;
        if (n > left)
            n = (size_t)left;
        to = kiln_buf_reserve(out, n);
        r = to ? kiln_section_read(section, at + done, to, n) : out->error;
        if (r < 0)
            return r;
        if (memchr(to, 0, n)) {
            out->len += strlen(to);
            return 0;
        }
        out->len += n;
        if (done + n > most)
            return KILN_E_LIMIT;
    }
}

static int add_indexed(const struct kiln_dwarf_lines *lines, uint64_t index, size_t most,
                       struct kiln_buf *out)
{
    const struct kiln_dwarf_line_ctx *ctx = &lines->ctx;
    uint8_t size = lines->head.offset_size, entry[8];
    uint64_t at;
    int r;

    if (!ctx->str_offsets || index > UINT64_MAX / 16 ||
        __builtin_add_overflow(ctx->str_offsets_base, index * size, &at))
        return -ENOENT;
    r = kiln_section_read(ctx->str_offsets, at, entry, size);
    if (r < 0)
        return r;
    return add_section_text(ctx->str, size == 8 ? kiln_get_64(entry) : kiln_get_32(entry), most,
                            out);
}

static int add_text(const struct kiln_dwarf_lines *lines, struct line_text text, size_t most,
                    struct kiln_buf *out)
{
    switch ((enum line_place)text.place) {
    case LINE_TEXT_INLINE:
        kiln_buf_puts(out, (const char *)lines->data + text.at);
        return out->error;
    case LINE_TEXT_LINE_STR:
        return add_section_text(lines->ctx.line_str, text.at, most, out);
    case LINE_TEXT_STR:
        return add_section_text(lines->ctx.str, text.at, most, out);
    case LINE_TEXT_ALTERNATE:
        return add_section_text(lines->ctx.alternate_str, text.at, most, out);
    case LINE_TEXT_INDEX:
        return add_indexed(lines, text.at, most, out);
    default:
        return -ENOENT;
    }
}

/* A part of a path goes behind what is there from `begin` on, or in its place if it is absolute. */
static int add_part(const struct kiln_dwarf_lines *lines, struct line_text part, size_t begin,
                    struct kiln_buf *out)
{
    size_t middle;
    int r;

    if (out->len > begin)
        kiln_buf_putc(out, '/');
    middle = out->len;
    r = add_text(lines, part, PATH_MOST, out);
    if (r < 0 || out->error)
        return r < 0 ? r : out->error;
    if (out->len > middle && out->ptr[middle] == '/') {
        memmove(out->ptr + begin, out->ptr + middle, out->len - middle);
        out->len -= middle - begin;
    }
    return 0;
}

/* Directory 0 is the unit's own: DWARF 5 has it in the table once more, and it counts twice where
 * it is relative. */
static int add_file(const struct kiln_dwarf_lines *lines, const struct line_file *file,
                    struct kiln_buf *out)
{
    bool has_0 = lines->head.version >= 5 && lines->n_directories > 0;
    uint32_t directory = file->directory;
    size_t begin = out->len;
    int r = 0;

    kiln_buf_add_str(out, lines->ctx.comp_dir);
    if (out->len == begin && has_0 && lines->ctx.only_files)
        r = add_part(lines, lines->directories[0], begin, out);
    if (r == 0 && directory < lines->n_directories && (directory > 0 || has_0))
        r = add_part(lines, lines->directories[directory], begin, out);
    if (r == 0)
        r = add_part(lines, file->name, begin, out);
    if (r < 0)
        out->len = begin;
    return r;
}

int kiln_dwarf_lines_file(const struct kiln_dwarf_lines *lines, uint32_t file, struct kiln_buf *out)
{
    if (file >= lines->n_files || lines->files[file].name.place == LINE_TEXT_NONE)
        return -ENOENT;
    return add_file(lines, &lines->files[file], out);
}

static bool is_called(const struct kiln_dwarf_lines *lines, const struct line_file *file,
                      struct kiln_str name, struct kiln_buf *room, int *ret_error)
{
    kiln_buf_clear(room);
    *ret_error = add_file(lines, file, room);
    return *ret_error == 0 && kiln_str_eq(kiln_buf_str(room), name);
}

int kiln_dwarf_lines_source(const struct kiln_dwarf_lines *lines, struct kiln_str name,
                            struct kiln_buf *out)
{
    size_t before = out->len;
    struct kiln_buf room;
    int r = -ENOENT;

    kiln_buf_init(&room, 4 * PATH_MOST);
    for (uint32_t i = 0; lines->has_sources && i < lines->n_files && r == -ENOENT; i++) {
        const struct line_file *file = &lines->files[i];
        int error = 0;

        if (file->source.place == LINE_TEXT_NONE)
            continue;
        if (is_called(lines, file, name, &room, &error))
            r = add_text(lines, file->source, out->max, out);
        else if (error == -EAGAIN || error == -ENOMEM)
            r = error;
        if (r == 0 && out->len == before)
            r = -ENOENT;
    }
    kiln_buf_done(&room);
    if (r < 0)
        out->len = before;
    return r;
}

int kiln_dwarf_lines_search(const struct kiln_dwarf_line_ctx *ctx, struct kiln_str file,
                            uint64_t deadline_ns, uint64_t *at, struct kiln_budget *budget,
                            struct kiln_buf *out)
{
    struct kiln_dwarf_line_ctx only = *ctx;
    int r = -ENOENT;

    only.only_files = true;
    only.comp_dir = KILN_STR_NONE;
    while (r == -ENOENT && *at < ctx->line->size) {
        struct kiln_dwarf_lines *lines;
        struct line_extent extent;

        r = line_extent(ctx->line, *at, &extent);
        if (r < 0)
            break;
        r = kiln_dwarf_lines_load(&only, *at, budget, &lines);
        if (r == -EAGAIN || r == -ENOMEM)
            break;
        if (r == 0) {
            r = kiln_dwarf_lines_source(lines, file, out);
            kiln_dwarf_lines_free(lines);
        } else {
            r = -ENOENT;
        }
        if (r == -ENOENT)
            *at += extent.size;
        if (r == -ENOENT && deadline_ns && kiln_clock_mono_ns() >= deadline_ns)
            r = -EAGAIN;
    }
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table is read whole, by one read, and run; of its bytes only the header stays, and that only
 * where it has names in it.
 *
 * Rows of all sequences are sorted together by address, the end of a sequence before other rows of
 * the same address, and else as they came; of rows with one address the last one counts.  That is
 * what eu-addr2line does, and decides where sequences overlap: whatever row comes last before the
 * address has it, of whichever sequence.  As there, the highest row is an end in any case.
 *
 * Compilers and linkers give sequences that ascend, and often all of them in order: runs that
 * ascend are merged, so that a table in order costs one look at each row.
 */
#include "symbol/dwarf_line.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "symbol/dwarf_line_int.h"

enum { TABLE_MAX = 64 << 20 };

static bool is_before(const struct line_row *a, const struct line_row *b)
{
    if (a->address != b->address)
        return a->address < b->address;
    return a->file == LINE_END && b->file != LINE_END;
}

/* Where the run that begins at `from` ends. */
static uint32_t end_of_run(const struct line_row *rows, uint32_t n, uint32_t from)
{
    uint32_t i = from + 1;

    while (i < n && !is_before(&rows[i], &rows[i - 1]))
        i++;
    return i;
}

/* Two runs that follow each other, into `to`; of equal rows those of the first come first. */
static void merge(const struct line_row *a, const struct line_row *middle,
                  const struct line_row *end, struct line_row *to)
{
    const struct line_row *b = middle;

    while (a < middle && b < end)
        *to++ = is_before(b, a) ? *b++ : *a++;
    memcpy(to, a, (size_t)(middle - a) * sizeof(*a));
    to += middle - a;
    memcpy(to, b, (size_t)(end - b) * sizeof(*b));
}

/* Merges pairs of runs from `from` into `to`.  Returns whether one run is left. */
static bool merge_runs(const struct line_row *from, uint32_t n, struct line_row *to)
{
    uint32_t begin = 0, runs = 0;

    for (; begin < n; runs++) {
        uint32_t middle = end_of_run(from, n, begin);
        uint32_t end = middle < n ? end_of_run(from, n, middle) : n;

        merge(from + begin, from + middle, from + end, to + begin);
        begin = end;
    }
    return runs <= 1;
}

static int sort(struct kiln_dwarf_lines *lines)
{
    size_t bytes = (size_t)lines->cap_rows * sizeof(*lines->rows);
    struct line_row *other, *rows = lines->rows;
    bool is_sorted = false;
    int r;

    if (lines->n_rows == 0 || end_of_run(rows, lines->n_rows, 0) == lines->n_rows)
        return 0;
    r = kiln_budget_take(lines->budget, bytes);
    if (r < 0)
        return r;
    other = kiln_malloc(bytes);
    while (other && !is_sorted) {
        struct line_row *from = rows;

        is_sorted = merge_runs(from, lines->n_rows, other);
        rows = other;
        other = from;
    }
    kiln_budget_give(lines->budget, bytes);
    if (!other)
        return -ENOMEM;
    kiln_free(other);
    lines->rows = rows;
    return 0;
}

/* Of rows with one address the last one stays. */
static void finish(struct kiln_dwarf_lines *lines)
{
    struct line_row *rows = lines->rows;
    uint32_t n = 0;

    for (uint32_t i = 0; i < lines->n_rows; i++) {
        if (n > 0 && rows[n - 1].address == rows[i].address)
            n--;
        rows[n++] = rows[i];
    }
    lines->n_rows = n;
    if (n > 0)
        rows[n - 1].file = LINE_END;
}

int line_extent(const struct kiln_section *section, uint64_t at, struct line_extent *ret_extent)
{
    uint8_t head[12];
    uint64_t size, front = 4;
    int r = kiln_section_read(section, at, head, 4);

    if (r < 0)
        return r;
    size = kiln_get_32(head);
    if (size == UINT32_MAX) {
        front = 12;
        r = kiln_section_read(section, at, head, sizeof(head));
        if (r < 0)
            return r;
        size = kiln_get_64(head + 4);
    } else if (size >= 0xfffffff0) {
        return KILN_E_UNSUPPORTED;
    }
    if (size > section->size - at - front)
        return KILN_E_TRUNCATED;
    *ret_extent = (struct line_extent){front + size, front};
    return 0;
}

/* How much of a table its header is; as much as there is where that cannot be true. */
static int header_size(const struct kiln_section *section, uint64_t at,
                       const struct line_extent *extent, uint64_t *ret_size)
{
    bool is_long = extent->front == 12;
    size_t n = extent->front + 4 + (is_long ? 8 : 4);
    uint8_t head[24];
    uint64_t size;
    struct kiln_cursor c = {head + extent->front, head + n, false};
    int r = n <= extent->size ? kiln_section_read(section, at, head, n) : KILN_E_TRUNCATED;

    if (r < 0)
        return r;
    if (kiln_cursor_16(&c) >= 5)
        kiln_cursor_16(&c);
    else
        n -= 2;
    size = is_long ? kiln_cursor_64(&c) : kiln_cursor_32(&c);
    *ret_size = size < extent->size - n ? n + size : extent->size;
    return 0;
}

static int take_bytes(struct kiln_dwarf_lines *lines, size_t n, uint8_t **ret_data)
{
    uint8_t *data;
    int r = kiln_budget_take(lines->budget, n);

    if (r < 0)
        return r;
    data = kiln_malloc(n ? n : 1);
    if (!data)
        kiln_budget_give(lines->budget, n);
    else
        *ret_data = data;
    return data ? 0 : -ENOMEM;
}

static int read_table(struct kiln_dwarf_lines *lines, uint64_t stmt_list)
{
    const struct kiln_section *section = lines->ctx.line;
    struct line_extent extent;
    uint64_t size = 0;
    int r = line_extent(section, stmt_list, &extent);

    if (r == 0 && lines->ctx.only_files)
        r = header_size(section, stmt_list, &extent, &size);
    else if (r == 0)
        size = extent.size;
    if (r == 0 && size > TABLE_MAX)
        r = KILN_E_LIMIT;
    if (r == 0)
        r = take_bytes(lines, (size_t)size, &lines->data);
    if (r < 0)
        return r;
    lines->n_data = (size_t)size;
    return kiln_section_read(section, stmt_list, lines->data, (size_t)size);
}

static int copy_comp_dir(struct kiln_dwarf_lines *lines)
{
    struct kiln_str from = lines->ctx.comp_dir;
    uint8_t *copy;
    int r;

    lines->ctx.comp_dir = KILN_STR_NONE;
    if (from.len == 0)
        return 0;
    r = take_bytes(lines, from.len, &copy);
    if (r < 0)
        return r;
    memcpy(copy, from.ptr, from.len);
    lines->ctx.comp_dir = (struct kiln_str){(const char *)copy, from.len};
    return 0;
}

/* Rows were given room as they came: what is left over goes back. */
static void shrink_rows(struct kiln_dwarf_lines *lines)
{
    size_t size = sizeof(*lines->rows);
    struct line_row *less;

    if (lines->n_rows == 0) {
        kiln_array_free(lines->budget, (void **)&lines->rows, &lines->cap_rows, size);
        return;
    }
    less = kiln_realloc(lines->rows, lines->n_rows * size);
    if (!less)
        return;
    kiln_budget_give(lines->budget, (lines->cap_rows - lines->n_rows) * size);
    lines->rows = less;
    lines->cap_rows = lines->n_rows;
}

/* Keeps the header, if that. */
static void shrink_data(struct kiln_dwarf_lines *lines)
{
    size_t n = lines->has_inline ? (size_t)(lines->head.program - lines->data) : 0;
    uint8_t *less;

    lines->head.lengths = NULL;
    lines->head.program = NULL;
    /* files that the program itself has defined are in it */
    if (lines->n_files > 0 && lines->files[lines->n_files - 1].name.place == LINE_TEXT_INLINE &&
        lines->files[lines->n_files - 1].name.at >= n)
        return;
    less = n ? kiln_realloc(lines->data, n) : NULL;
    if (n && !less)
        return;
    if (!n)
        kiln_free(lines->data);
    kiln_budget_give(lines->budget, lines->n_data - n);
    lines->data = less;
    lines->n_data = n;
}

static int load(struct kiln_dwarf_lines *lines, uint64_t stmt_list)
{
    int r = copy_comp_dir(lines);

    if (r == 0)
        r = read_table(lines, stmt_list);
    if (r == 0)
        r = line_head_read(lines);
    if (r == 0 && !lines->ctx.only_files)
        r = line_run(lines);
    if (r == 0)
        r = sort(lines);
    if (r < 0)
        return r;
    finish(lines);
    shrink_rows(lines);
    shrink_data(lines);
    return 0;
}

int kiln_dwarf_lines_load(const struct kiln_dwarf_line_ctx *ctx, uint64_t stmt_list,
                          struct kiln_budget *budget, struct kiln_dwarf_lines **ret_lines)
{
    struct kiln_dwarf_lines *lines;
    int r = kiln_budget_take(budget, sizeof(*lines));

    if (r < 0)
        return r;
    lines = kiln_calloc(1, sizeof(*lines));
    if (!lines) {
        kiln_budget_give(budget, sizeof(*lines));
        return -ENOMEM;
    }
    lines->ctx = *ctx;
    lines->budget = budget;
    r = load(lines, stmt_list);
    if (r < 0)
        kiln_dwarf_lines_free(lines);
    else
        *ret_lines = lines;
    return r;
}

void kiln_dwarf_lines_free(struct kiln_dwarf_lines *lines)
{
    struct kiln_budget *budget;

    if (!lines)
        return;
    budget = lines->budget;
    kiln_array_free(budget, (void **)&lines->directories, &lines->cap_directories,
                    sizeof(*lines->directories));
    kiln_array_free(budget, (void **)&lines->files, &lines->cap_files, sizeof(*lines->files));
    kiln_array_free(budget, (void **)&lines->rows, &lines->cap_rows, sizeof(*lines->rows));
    kiln_free(lines->data);
    kiln_free((void *)lines->ctx.comp_dir.ptr);
    kiln_budget_give(budget, lines->n_data + lines->ctx.comp_dir.len + sizeof(*lines));
    kiln_free(lines);
}

size_t kiln_dwarf_lines_bytes(const struct kiln_dwarf_lines *lines)
{
    return sizeof(*lines) + lines->n_data + lines->ctx.comp_dir.len +
           lines->cap_directories * sizeof(*lines->directories) +
           lines->cap_files * sizeof(*lines->files) + lines->cap_rows * sizeof(*lines->rows);
}

bool kiln_dwarf_lines_find(const struct kiln_dwarf_lines *lines, uint64_t address,
                           uint32_t *ret_file, uint32_t *ret_line, uint32_t *ret_column)
{
    uint32_t low = 0, high = lines->n_rows; /* the first row above the address is in here */

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (lines->rows[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || lines->rows[low - 1].file == LINE_END)
        return false;
    *ret_file = lines->rows[low - 1].file;
    *ret_line = lines->rows[low - 1].line;
    *ret_column = lines->rows[low - 1].column;
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units, one behind the other in .debug_info (and .debug_types, of DWARF 4):
 *
 *   length   4 bytes, or ffffffff and 8: then offsets of this unit have 8 bytes, else 4
 *   2 version
 *   2 to 4:  offset of abbreviations   1 size of addresses
 *            .debug_types: 8 signature   offset of the type from the unit's beginning
 *   5:       1 kind   1 size of addresses   offset of abbreviations
 *            skeleton, split: 8 id      type: 8 signature   offset of the type
 *   entries
 */
#include <errno.h>

#include "base/err.h"
#include "symbol/dwarf_int.h"

enum { HEADER_MAX = 40, UNITS_DEFAULT = 256 << 10 };

static uint64_t take_offset(struct kiln_cursor *c, uint8_t size)
{
    return size == 8 ? kiln_cursor_64(c) : kiln_cursor_32(c);
}

static void take_type(struct kiln_cursor *c, struct dw_head *head)
{
    uint64_t at;

    head->id = kiln_cursor_64(c);
    at = take_offset(c, head->offset_size);
    head->type_die = at < UINT32_MAX ? (uint32_t)at : 0;
}

static void take_v5(struct kiln_cursor *c, struct dw_head *head)
{
    head->kind = kiln_cursor_8(c);
    head->address_size = kiln_cursor_8(c);
    head->abbrevs = take_offset(c, head->offset_size);
    if (head->kind == DW_UT_skeleton || head->kind == DW_UT_split_compile)
        head->id = kiln_cursor_64(c);
    else if (head->kind == DW_UT_type || head->kind == DW_UT_split_type)
        take_type(c, head);
}

static void take_old(struct kiln_cursor *c, struct dw_head *head)
{
    head->kind = head->in_types ? DW_UT_type : DW_UT_compile;
    head->abbrevs = take_offset(c, head->offset_size);
    head->address_size = kiln_cursor_8(c);
    if (head->in_types)
        take_type(c, head);
}

/* The header in bytes from `at` on; `left`: of the section. */
static int take_head(struct kiln_cursor *c, uint64_t left, struct dw_head *head)
{
    const uint8_t *begin = c->at;
    uint64_t length = kiln_cursor_32(c), before = 4;

    head->offset_size = 4;
    if (length == UINT32_MAX) {
        length = kiln_cursor_64(c);
        head->offset_size = 8;
        before = 12;
    }
    if (c->bad || length > left - before)
        return KILN_E_TRUNCATED;
    head->end = head->at + before + length;
    head->version = kiln_cursor_16(c);
    if (head->version >= 5)
        take_v5(c, head);
    else
        take_old(c, head);
    head->header_size = (uint8_t)(c->at - begin);
    if (c->bad || head->at + head->header_size > head->end)
        head->version = 0; /* too short to be one */
    if (head->version < 2 || head->version > 5 ||
        (head->address_size != 8 && head->address_size != 4))
        head->version = 0;
    return 0;
}

int dw_head_read(struct dw_view *view, uint64_t at, bool in_types, struct dw_head *ret_head)
{
    struct dw_head head = {.at = at, .in_types = in_types};
    struct kiln_cursor c;
    const uint8_t *seen;
    uint64_t left;
    size_t n;
    int r;

    if (at >= view->section.size)
        return KILN_E_TRUNCATED;
    left = view->section.size - at;
    r = dw_see(view, at, left < HEADER_MAX ? (size_t)left : HEADER_MAX, &seen, &n);
    if (r < 0)
        return r;
    if (left < 12)
        return KILN_E_TRUNCATED;
    c = (struct kiln_cursor){seen, seen + n, false};
    r = take_head(&c, left, &head);
    if (r == 0)
        *ret_head = head;
    return r;
}

/* What is left of one section's units.  What is no unit ends it: nothing behind can be found. */
static int read_section(struct dw_file *file, struct dw_view *view, bool in_types)
{
    struct kiln_dwarf *dwarf = file->dwarf;
    struct dw_heads *heads = &file->heads;
    uint32_t max = dwarf->opts.units ? dwarf->opts.units : UNITS_DEFAULT;
    struct dw_head head;
    int r;

    while (heads->next < view->section.size) {
        r = dw_step(dwarf);
        if (r == 0)
            r = dw_head_read(view, heads->next, in_types, &head);
        if (r == KILN_E_TRUNCATED || r == KILN_E_CORRUPT)
            return 0;
        if (r == 0)
            r = kiln_grow(dwarf->budget, (void **)&heads->list, &heads->cap, (uint64_t)heads->n + 1,
                          sizeof(head), max);
        if (r < 0)
            return r == KILN_E_LIMIT ? 0 : r;
        heads->next = head.end;
        if (head.version)
            heads->list[heads->n++] = head;
    }
    return 0;
}

int dw_heads_read(struct dw_file *file)
{
    struct dw_heads *heads = &file->heads;
    struct dw_view *info = dw_file_view(file, DW_INFO), *types = dw_file_view(file, DW_TYPES);
    int r = 0;

    if (heads->is_whole)
        return 0;
    if (!heads->has_info && info)
        r = read_section(file, info, false);
    if (r < 0)
        return r;
    if (!heads->has_info) {
        heads->has_info = true;
        heads->n_info = heads->n;
        heads->next = 0;
    }
    if (types)
        r = read_section(file, types, true);
    heads->is_whole = r == 0;
    return r;
}

int dw_heads_find(const struct dw_heads *heads, uint64_t at, uint32_t *ret_index)
{
    uint32_t low = 0, high = heads->n_info;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (heads->list[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == heads->n_info || at < heads->list[low].at)
        return -ENOENT;
    *ret_index = low;
    return 0;
}

int dw_heads_find_type(const struct dw_heads *heads, uint64_t signature, uint32_t *ret_index)
{
    for (uint32_t i = 0; i < heads->n; i++) {
        const struct dw_head *head = &heads->list[i];

        if (head->id == signature && (head->kind == DW_UT_type || head->kind == DW_UT_split_type)) {
            *ret_index = i;
            return 0;
        }
    }
    return -ENOENT;
}

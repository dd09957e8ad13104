/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units by address.  .debug_aranges has sets, one a unit:
 *
 *   length (4, or ffffffff and 8)   2 version   offset of the unit   1 size of addresses
 *   1 size of segments   zeros up to a multiple of two addresses from the set's beginning
 *   pairs of address and length, 0 0 ends them
 *
 * Some compilers write no set (clang, Rust), some files have them for some units: what the others
 * cover is read from their outermost DIE.  Both together make one sorted table, once; where that
 * takes longer than the deadline it goes on from where it was.
 *
 * An address may belong to several units: a linker keeps one copy of an inline function, and some
 * let the debug information of all copies speak of that one.  Which unit is taken is as
 * eu-addr2line has it, since their file names may differ: the sorted table is made of runs of
 * ranges of the same unit, of equal ranges those of the unit that comes last in the file are last,
 * and the last run that begins at the address or before counts; a search by halves may end early at
 * one that begins right there.  Gaps belong to the unit before them: code in assembler often has no
 * range.
 */
#include <errno.h>

#include "base/err.h"
#include "symbol/dwarf_int.h"

enum step { READ_HEADS, READ_SETS, READ_ROOTS, READY };

struct set {
    uint64_t end, pairs, unit;
    uint8_t size;
};

static int read_set(struct dw_view *view, uint64_t at, struct set *ret_set)
{
    uint64_t left = view->section.size - at, length, before = 4;
    uint8_t size = 4, segment;
    struct kiln_cursor c;
    const uint8_t *seen;
    size_t n;
    int r = dw_see(view, at, left < 24 ? (size_t)left : 24, &seen, &n);

    if (r < 0)
        return r;
    c = (struct kiln_cursor){seen, seen + n, false};
    length = kiln_cursor_32(&c);
    if (length == UINT32_MAX) {
        length = kiln_cursor_64(&c);
        size = 8;
        before = 12;
    }
    if (left < before || length > left - before)
        return KILN_E_TRUNCATED;
    ret_set->end = at + before + length;
    kiln_cursor_skip(&c, 2);
    ret_set->unit = size == 8 ? kiln_cursor_64(&c) : kiln_cursor_32(&c);
    ret_set->size = kiln_cursor_8(&c);
    segment = kiln_cursor_8(&c);
    if (c.bad || (ret_set->size != 8 && ret_set->size != 4) || segment != 0)
        ret_set->size = 0; /* passed over */
    length = (uint64_t)(c.at - seen);
    if (ret_set->size)
        ret_set->pairs =
            at + (length + 2u * ret_set->size - 1) / (2u * ret_set->size) * (2u * ret_set->size);
    return 0;
}

static int add_pairs(struct kiln_dwarf *dwarf, struct dw_view *view, const struct set *set,
                     uint32_t unit)
{
    uint8_t size = set->size;
    const uint8_t *seen;
    size_t n;
    int r = 0;

    for (uint64_t at = set->pairs; r == 0 && at + 2u * size <= set->end; at += 2u * size) {
        struct dw_range range = {.of = unit};
        uint64_t length;

        r = dw_see(view, at, 2u * size, &seen, &n);
        if (r < 0)
            break;
        range.begin = size == 4 ? kiln_get_32(seen) : kiln_get_64(seen);
        length = size == 4 ? kiln_get_32(seen + 4) : kiln_get_64(seen + 8);
        if (range.begin == 0 && length == 0)
            break;
        if (range.begin && length && !__builtin_add_overflow(range.begin, length, &range.end))
            r = dw_ranges_add(&dwarf->places, dwarf->budget, range);
        dw_count(dwarf, 1);
    }
    return r;
}

static int read_sets(struct kiln_dwarf *dwarf)
{
    struct dw_view *view = dw_file_view(&dwarf->main, DW_ARANGES);
    struct dw_heads *heads = &dwarf->main.heads;
    uint32_t before, unit;
    struct set set;
    int r;

    while (view && dwarf->place_at < view->section.size) {
        r = dw_step(dwarf);
        if (r == 0)
            r = read_set(view, dwarf->place_at, &set);
        if (r == KILN_E_TRUNCATED || r == KILN_E_CORRUPT)
            return 0;
        if (r < 0)
            return r;
        if (set.size && dw_heads_find(heads, set.unit, &unit) == 0 &&
            heads->list[unit].at == set.unit) {
            before = dwarf->places.n;
            r = add_pairs(dwarf, view, &set, unit);
            if (r < 0) {
                dwarf->places.n = before;
                return r == KILN_E_TRUNCATED || r == KILN_E_CORRUPT ? 0 : r;
            }
            heads->list[unit].has_places |= dwarf->places.n > before;
        }
        dwarf->place_at = set.end;
    }
    return 0;
}

struct root {
    struct kiln_dwarf *dwarf;
    uint32_t unit;
};

static int add_root(void *context, uint64_t begin, uint64_t end)
{
    const struct root *root = context;

    return dw_ranges_add(&root->dwarf->places, root->dwarf->budget,
                         (struct dw_range){.begin = begin, .end = end, .of = root->unit});
}

static bool is_fatal(int r)
{
    return r == -EAGAIN || r == -ENOMEM;
}

static int read_roots(struct kiln_dwarf *dwarf)
{
    struct dw_heads *heads = &dwarf->main.heads;
    int r;

    for (; dwarf->place_at < heads->n_info; dwarf->place_at++) {
        struct root root = {dwarf, (uint32_t)dwarf->place_at};
        const struct dw_head *head = &heads->list[root.unit];
        uint32_t before = dwarf->places.n;

        if (head->has_places || head->kind == DW_UT_type || head->kind == DW_UT_partial)
            continue;
        r = dw_step(dwarf);
        if (r == 0)
            r = dw_root_ranges(&dwarf->main, head, add_root, &root);
        if (is_fatal(r)) {
            dwarf->places.n = before;
            return r;
        }
        if (r == KILN_E_LIMIT && dwarf->places.n == before)
            return 0; /* there is no room for more */
    }
    return 0;
}

static int make_runs(struct kiln_dwarf *dwarf)
{
    const struct dw_ranges *places = &dwarf->places;
    int r;

    dwarf->n_runs = 0;
    for (uint32_t i = 0; i < places->n; i++) {
        if (i > 0 && places->list[i].of == places->list[i - 1].of)
            continue;
        r = kiln_grow(dwarf->budget, (void **)&dwarf->runs, &dwarf->cap_runs,
                      (uint64_t)dwarf->n_runs + 1, sizeof(*dwarf->runs), UINT32_MAX);
        if (r < 0)
            return r;
        dwarf->runs[dwarf->n_runs++] = i;
    }
    return 0;
}

static int make_table(struct kiln_dwarf *dwarf)
{
    int r = 0;

    if (dwarf->place_step == READ_HEADS) {
        r = dw_heads_read(&dwarf->main);
        if (r < 0)
            return r;
        dwarf->place_step = READ_SETS;
    }
    if (dwarf->place_step == READ_SETS) {
        r = read_sets(dwarf);
        if (r < 0 && r != KILN_E_LIMIT)
            return r;
        dwarf->place_step = READ_ROOTS;
        dwarf->place_at = 0;
    }
    if (dwarf->place_step == READ_ROOTS) {
        r = read_roots(dwarf);
        if (r < 0)
            return r;
        dw_ranges_sort(&dwarf->places);
        r = make_runs(dwarf);
        if (r < 0)
            return r;
        dwarf->place_step = READY;
    }
    return 0;
}

/* The range that begins the run of an address; NULL: all begin behind it. */
static const struct dw_range *find_run(const struct kiln_dwarf *dwarf, uint64_t address)
{
    const struct dw_range *list = dwarf->places.list;
    uint32_t low = 0, high = dwarf->n_runs;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct dw_range *run = &list[dwarf->runs[middle]];

        if (address < run->begin)
            high = middle;
        else if (address > run->begin && middle + 1 < dwarf->n_runs &&
                 address >= list[dwarf->runs[middle + 1]].begin)
            low = middle + 1;
        else
            return run;
    }
    return NULL;
}

int dw_place_find(struct kiln_dwarf *dwarf, uint64_t address, struct dw_unit **ret_unit,
                  bool *ret_is_gap)
{
    const struct dw_range *range, *run;
    int r = make_table(dwarf);

    if (r < 0)
        return r;
    run = find_run(dwarf, address);
    if (!run)
        return -ENOENT;
    range = dw_ranges_find(&dwarf->places, address, run->of);
    *ret_is_gap = !range;
    if (!range)
        range = run;
    return dw_unit_get(&dwarf->main, &dwarf->main.heads.list[range->of], NULL, NULL, ret_unit);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a DIE covers: one range (low_pc and high_pc, which is an address or a length) or a list.
 *
 *   .debug_ranges, up to DWARF 4:  pairs of addresses, relative to the unit's; 0 0 ends the list,
 *                                  -1 and an address is the new base
 *   .debug_rnglists, DWARF 5:      1 byte of kind (DW_RLE_*) and what belongs to it: addresses,
 *                                  numbers of addresses in .debug_addr, or lengths
 *
 * A linker that drops a function leaves its range at 0, or at one of the last addresses: such
 * ranges are empty, wrap around, or begin at 0, and do not count.
 */
#include <errno.h>

#include "base/err.h"
#include "symbol/dwarf_int.h"

enum { LIST_MAX = 1 << 20, ENTRY_MAX = 32, RANGES_MAX = 16 << 20, BACK_MAX = 64 };

struct emit {
    int (*each)(void *context, uint64_t begin, uint64_t end);
    void *context;
};

static int emit(const struct emit *to, uint64_t begin, uint64_t end)
{
    return begin == 0 || begin >= end ? 0 : to->each(to->context, begin, end);
}

static const struct dw_unit *base_of(const struct dw_unit *unit)
{
    return unit->skeleton ? unit->skeleton : unit;
}

static int each_pair(const struct dw_unit *unit, uint64_t at, const struct emit *to)
{
    const struct dw_unit *owner = base_of(unit);
    struct dw_view *view = dw_file_view(owner->file, DW_RANGES);
    uint8_t size = unit->head.address_size;
    uint64_t base = owner->low_pc, last = size == 4 ? UINT32_MAX : UINT64_MAX;
    const uint8_t *seen;
    size_t n;
    int r;

    if (!view)
        return -ENOENT;
    for (uint32_t i = 0; i < LIST_MAX; i++, at += 2u * size) {
        uint64_t begin, end;

        r = dw_see(view, at, 2u * size, &seen, &n);
        if (r < 0)
            return r;
        begin = size == 4 ? kiln_get_32(seen) : kiln_get_64(seen);
        end = size == 4 ? kiln_get_32(seen + 4) : kiln_get_64(seen + 8);
        if (begin == 0 && end == 0)
            return 0;
        if (begin == last) {
            base = end;
            continue;
        }
        dw_count(unit->file->dwarf, 1);
        r = begin == end ? 0 : emit(to, base + begin, base + end);
        if (r != 0)
            return r;
    }
    return KILN_E_LIMIT;
}

struct entry {
    uint8_t kind;
    uint64_t a, b;
};

static uint64_t take_address(struct kiln_cursor *c, uint8_t size)
{
    return size == 4 ? kiln_cursor_32(c) : kiln_cursor_64(c);
}

static int take_entry(struct kiln_cursor *c, uint8_t size, struct entry *entry)
{
    *entry = (struct entry){.kind = kiln_cursor_8(c)};
    switch (entry->kind) {
    case DW_RLE_end_of_list:
        break;
    case DW_RLE_base_addressx:
        entry->a = kiln_cursor_uleb(c);
        break;
    case DW_RLE_startx_endx:
    case DW_RLE_startx_length:
    case DW_RLE_offset_pair:
        entry->a = kiln_cursor_uleb(c);
        entry->b = kiln_cursor_uleb(c);
        break;
    case DW_RLE_base_address:
        entry->a = take_address(c, size);
        break;
    case DW_RLE_start_end:
        entry->a = take_address(c, size);
        entry->b = take_address(c, size);
        break;
    case DW_RLE_start_length:
        entry->a = take_address(c, size);
        entry->b = kiln_cursor_uleb(c);
        break;
    default:
        return KILN_E_MALFORMED;
    }
    return c->bad ? KILN_E_TRUNCATED : 0;
}

/* The addresses of an entry, or a new base. */
static int run_entry(const struct dw_unit *unit, const struct entry *entry, uint64_t *base,
                     const struct emit *to)
{
    uint64_t begin = entry->a, end = entry->b;
    int r = 0;

    switch (entry->kind) {
    case DW_RLE_base_addressx:
        return dw_address_at(unit, entry->a, base);
    case DW_RLE_base_address:
        *base = entry->a;
        return 0;
    case DW_RLE_offset_pair:
        begin += *base;
        end += *base;
        break;
    case DW_RLE_startx_endx:
        r = dw_address_at(unit, entry->b, &end);
        if (r == 0)
            r = dw_address_at(unit, entry->a, &begin);
        break;
    case DW_RLE_startx_length:
        r = dw_address_at(unit, entry->a, &begin);
        end += begin;
        break;
    case DW_RLE_start_length:
        end += begin;
        break;
    default:
        break;
    }
    return r < 0 ? r : emit(to, begin, end);
}

static int each_entry(const struct dw_unit *unit, uint64_t at, const struct emit *to)
{
    struct dw_view *view = dw_file_view(unit->file, DW_RNGLISTS);
    uint64_t base = base_of(unit)->low_pc, left;
    struct kiln_cursor c;
    struct entry entry;
    const uint8_t *seen;
    size_t n;
    int r;

    if (!view)
        return -ENOENT;
    for (uint32_t i = 0; i < LIST_MAX; i++) {
        if (at >= view->section.size)
            return KILN_E_TRUNCATED;
        left = view->section.size - at;
        r = dw_see(view, at, left < ENTRY_MAX ? (size_t)left : ENTRY_MAX, &seen, &n);
        if (r < 0)
            return r;
        c = (struct kiln_cursor){seen, seen + n, false};
        r = take_entry(&c, unit->head.address_size, &entry);
        if (r < 0 || entry.kind == DW_RLE_end_of_list)
            return r;
        at += (uint64_t)(c.at - seen);
        dw_count(unit->file->dwarf, 1);
        r = run_entry(unit, &entry, &base, to);
        if (r != 0)
            return r;
    }
    return KILN_E_LIMIT;
}

/* Where a list is that an entry knows by its number. */
static int list_at(const struct dw_unit *unit, uint64_t index, uint64_t *ret_at)
{
    uint64_t at;
    int r = dw_entry(dw_file_view(unit->file, DW_RNGLISTS), unit->rnglists_base, index,
                     unit->head.offset_size, &at);

    if (r < 0)
        return r;
    return __builtin_add_overflow(at, unit->rnglists_base, ret_at) ? KILN_E_RANGE : 0;
}

static int each_of_list(const struct dw_unit *unit, const struct dw_value *value,
                        const struct emit *to)
{
    uint64_t at = value->u;
    int r = 0;

    if (value->form != DW_FORM_sec_offset && value->form != DW_FORM_data4 &&
        value->form != DW_FORM_data8 && value->form != DW_FORM_rnglistx)
        return KILN_E_MALFORMED;
    if (unit->head.version < 5) {
        /* a split unit counts from where its skeleton says */
        if (unit->skeleton)
            at += unit->skeleton->ranges_base;
        return each_pair(unit, at, to);
    }
    if (value->form == DW_FORM_rnglistx)
        r = list_at(unit, at, &at);
    else if (unit->skeleton)
        at += unit->part.rnglists;
    return r < 0 ? r : each_entry(unit, at, to);
}

static int each_single(const struct dw_unit *unit, const struct dw_die *die, const struct emit *to)
{
    uint64_t begin, end;
    int r = dw_address(unit, &die->values[DW_F_LOW_PC], &begin);

    if (r < 0)
        return r;
    if (dw_number(&die->values[DW_F_HIGH_PC], &end))
        end += begin;
    else
        r = dw_address(unit, &die->values[DW_F_HIGH_PC], &end);
    return r < 0 ? r : emit(to, begin, end);
}

int dw_each_range(const struct dw_unit *unit, const struct dw_die *die,
                  int (*each)(void *context, uint64_t begin, uint64_t end), void *context)
{
    struct emit to = {each, context};

    if (dw_has(die, DW_F_LOW_PC) && dw_has(die, DW_F_HIGH_PC))
        return each_single(unit, die, &to);
    if (dw_has(die, DW_F_RANGES))
        return each_of_list(unit, &die->values[DW_F_RANGES], &to);
    return 0;
}

static int is_within(void *context, uint64_t begin, uint64_t end)
{
    const uint64_t *address = context;

    return *address >= begin && *address < end;
}

int dw_covers(const struct dw_unit *unit, const struct dw_die *die, uint64_t address)
{
    int r = dw_each_range(unit, die, is_within, &address);

    /* what cannot be read covers nothing */
    return r < 0 && r != -EAGAIN && r != -ENOMEM ? 0 : r;
}

/* ---- sorted ranges ---- */

int dw_ranges_add(struct dw_ranges *ranges, struct kiln_budget *budget, struct dw_range range)
{
    int r = kiln_grow(budget, (void **)&ranges->list, &ranges->cap, (uint64_t)ranges->n + 1,
                      sizeof(range), RANGES_MAX);

    if (r == 0)
        ranges->list[ranges->n++] = range;
    return r;
}

static bool is_before(const struct dw_range *a, const struct dw_range *b)
{
    return a->begin != b->begin ? a->begin < b->begin : a->of < b->of;
}

static void sink(struct dw_range *heap, uint32_t n, uint32_t at)
{
    struct dw_range sinking = heap[at];

    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_before(&heap[child], &heap[child + 1]))
            child++;
        if (!is_before(&sinking, &heap[child]))
            break;
        heap[at] = heap[child];
    }
    heap[at] = sinking;
}

static bool is_sorted(const struct dw_ranges *ranges)
{
    for (uint32_t i = 1; i < ranges->n; i++) {
        if (is_before(&ranges->list[i], &ranges->list[i - 1]))
            return false;
    }
    return true;
}

/* In place: see cfi_index.c for why not qsort().  Then each knows how far those before it reach. */
void dw_ranges_sort(struct dw_ranges *ranges)
{
    struct dw_range *list = ranges->list;
    uint64_t reach = 0;

    if (!is_sorted(ranges)) {
        for (uint32_t i = ranges->n / 2; i-- > 0;)
            sink(list, ranges->n, i);
        for (uint32_t n = ranges->n; n > 1;) {
            struct dw_range last = list[0];

            list[0] = list[--n];
            list[n] = last;
            sink(list, n, 0);
        }
    }
    for (uint32_t i = 0; i < ranges->n; i++) {
        list[i].is_reached = reach > list[i].begin;
        reach = list[i].end > reach ? list[i].end : reach;
    }
}

/* Those before one that nothing before reaches need not be looked at. */
const struct dw_range *dw_ranges_find(const struct dw_ranges *ranges, uint64_t address, uint32_t of)
{
    const struct dw_range *found = NULL;
    uint32_t low = 0, high = ranges->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (ranges->list[middle].begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint32_t back = 0; low-- > 0 && back < BACK_MAX; back++) {
        const struct dw_range *range = &ranges->list[low];

        if (address < range->end && range->of == of)
            return range;
        if (address < range->end && (!found || range->of < found->of))
            found = range;
        if (!range->is_reached)
            break;
    }
    return found;
}

void dw_ranges_done(struct dw_ranges *ranges, struct kiln_budget *budget)
{
    kiln_array_free(budget, (void **)&ranges->list, &ranges->cap, sizeof(*ranges->list));
    *ranges = (struct dw_ranges){0};
}

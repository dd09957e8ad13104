/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of a unit, sorted by address: made once, by a walk over the unit's outer DIEs.  What a
 * compiler says the end of is stepped over: types, and functions' insides.  Only namespaces are
 * gone into, and whatever has no such mark.
 *
 * Functions that are within others (Fortran, Ada, GNU C) are missed that way.  When an address of
 * the unit has no function, the walk is made again, over everything.
 */
#include <errno.h>

#include "base/err.h"
#include "symbol/dwarf_int.h"

enum { DEPTH_MAX = 1 << 16 };

struct add {
    struct dw_unit *unit;
    uint32_t of;
};

static int add_range(void *context, uint64_t begin, uint64_t end)
{
    const struct add *add = context;

    return dw_ranges_add(&add->unit->funcs, add->unit->file->dwarf->budget,
                         (struct dw_range){.begin = begin, .end = end, .of = add->of});
}

static int add_function(struct dw_unit *unit, const struct dw_die *die)
{
    struct add add = {unit, (uint32_t)(die->at - unit->head.at)};
    uint32_t before = unit->funcs.n;
    int r;

    if (die->at - unit->head.at > UINT32_MAX)
        return KILN_E_LIMIT;
    r = dw_each_range(unit, die, add_range, &add);
    if (r == -EAGAIN || r == -ENOMEM || r == KILN_E_LIMIT) {
        unit->funcs.n = before;
        return r;
    }
    return 0; /* what was read of a damaged list is true */
}

static bool is_gone_into(uint16_t tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_module;
}

/* Where to go from a DIE. */
static void go_on(struct dw_unit *unit, const struct dw_die *die)
{
    struct dw_scan *scan = &unit->scan;
    uint64_t sibling;

    if (!die->abbrev) {
        scan->depth--;
    } else if (die->abbrev->has_children) {
        sibling = scan->is_deep || is_gone_into(die->abbrev->tag) ? 0 : dw_die_sibling(unit, die);
        if (sibling) {
            scan->at = sibling;
            scan->has_skipped = true;
            return;
        }
        scan->depth++;
    }
    scan->at = die->next;
}

static int scan_on(struct dw_unit *unit)
{
    struct dw_scan *scan = &unit->scan;
    struct dw_die die;
    int r = 0;

    while (scan->depth > 0 && scan->depth < DEPTH_MAX && scan->at < unit->head.end) {
        r = dw_die_read(unit, scan->at, &die);
        if (r == 0 && dw_tag(&die) == DW_TAG_subprogram && dw_has_ranges(&die))
            r = add_function(unit, &die);
        if (r < 0)
            return r;
        go_on(unit, &die);
        r = dw_step(unit->file->dwarf);
        if (r < 0)
            return r;
    }
    return 0;
}

/* What is read before something damaged stays. */
static int make_index(struct dw_unit *unit, bool is_deep)
{
    struct dw_scan *scan = &unit->scan;
    int r;

    if (scan->at == 0 || scan->is_deep != is_deep) {
        *scan = (struct dw_scan){.at = unit->root_end, .depth = 1, .is_deep = is_deep};
        unit->funcs.n = 0;
        if (!unit->has_children)
            scan->depth = 0;
    }
    r = scan_on(unit);
    if (r == KILN_E_LIMIT) { /* others have the memory */
        dw_units_trim(unit->file->dwarf, 0);
        r = scan_on(unit);
    }
    if (r == -EAGAIN || r == -ENOMEM)
        return r;
    dw_ranges_sort(&unit->funcs);
    unit->is_indexed = true;
    unit->is_deep = is_deep || !scan->has_skipped;
    return 0;
}

int dw_func_find(struct dw_unit *unit, uint64_t address, uint64_t *ret_die)
{
    const struct dw_range *range;
    int r = unit->is_indexed ? 0 : make_index(unit, false);

    if (r < 0)
        return r;
    range = dw_ranges_find(&unit->funcs, address, UINT32_MAX);
    if (!range && !unit->is_deep) {
        r = make_index(unit, true);
        if (r < 0)
            return r;
        range = dw_ranges_find(&unit->funcs, address, UINT32_MAX);
    }
    if (!range)
        return -ENOENT;
    *ret_die = unit->head.at + range->of;
    return 0;
}

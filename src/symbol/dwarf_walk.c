/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a function inwards: of its children the first that covers the address, of its children the
 * first, and so on, as eu-addr2line does.  Each that was inlined is a frame; blocks are only passed
 * through.  Nothing is remembered but where the walk is and how many levels it has to leave, so
 * that no depth of nesting costs more than time.
 *
 * DWARF 2 has no lists of ranges: of what lies in several pieces gcc -gstrict-dwarf writes one, or
 * an empty range.  There a function is a frame, too, if something within it covers the address.
 */
#include <errno.h>

#include "base/err.h"
#include "symbol/dwarf_int.h"

static bool is_scope(uint16_t tag)
{
    switch (tag) {
    case DW_TAG_inlined_subroutine:
    case DW_TAG_subprogram:
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_with_stmt:
        return true;
    default:
        return false;
    }
}

static uint32_t small_number(const struct dw_die *die, enum dw_field field)
{
    uint64_t number = 0;

    return dw_has(die, field) && dw_number(&die->values[field], &number) && number <= UINT32_MAX
               ? (uint32_t)number
               : 0;
}

/* Of too many the outermost stays, and the innermost. */
static void push(struct dw_walk *walk, const struct dw_die *die)
{
    struct dw_link *link;

    if (walk->n == DW_CHAIN) {
        memmove(&walk->chain[1], &walk->chain[2], (DW_CHAIN - 2) * sizeof(*walk->chain));
        walk->n--;
    }
    link = &walk->chain[walk->n++];
    *link = (struct dw_link){
        .die = die->at,
        .call_file = small_number(die, DW_F_CALL_FILE),
        .call_line = small_number(die, DW_F_CALL_LINE),
        .call_column = small_number(die, DW_F_CALL_COLUMN),
        .is_inlined = dw_tag(die) == DW_TAG_inlined_subroutine,
    };
}

static void step_over(struct dw_walk *walk, const struct dw_unit *unit, const struct dw_die *die)
{
    uint64_t sibling = die->abbrev->has_children ? dw_die_sibling(unit, die) : 0;

    walk->at = sibling ? sibling : die->next;
    if (die->abbrev->has_children && !sibling)
        walk->skip++;
}

/* Whether what is within a DIE may cover what the DIE itself does not. */
static bool is_one_piece_of_it(const struct dw_unit *unit, const struct dw_die *die)
{
    return unit->head.version == 2 && die->abbrev->has_children && !dw_has(die, DW_F_RANGES) &&
           (dw_tag(die) == DW_TAG_lexical_block || dw_tag(die) == DW_TAG_inlined_subroutine);
}

static void enter_open(struct dw_walk *walk, const struct dw_die *die)
{
    if (dw_tag(die) == DW_TAG_inlined_subroutine && walk->n < DW_CHAIN && walk->open < 64) {
        push(walk, die);
        walk->linked |= 1ull << walk->open;
    }
    walk->open++;
    walk->at = die->next;
}

/* Nothing within it covered the address. */
static void leave_open(struct dw_walk *walk)
{
    walk->open--;
    if (walk->open < 64 && walk->linked >> walk->open & 1) {
        walk->linked &= ~(1ull << walk->open);
        walk->n--;
    }
}

/* A DIE on a level that matters.  1: the walk is at its end. */
static int look_at(struct dw_walk *walk, struct dw_unit *unit, const struct dw_die *die)
{
    int r;

    if (!is_scope(dw_tag(die))) {
        step_over(walk, unit, die);
        return 0;
    }
    if (!dw_has_ranges(die) && dw_tag(die) == DW_TAG_lexical_block && die->abbrev->has_children) {
        enter_open(walk, die);
        return 0;
    }
    r = dw_covers(unit, die, walk->address);
    if (r < 0)
        return r;
    if (r == 0 && is_one_piece_of_it(unit, die)) {
        enter_open(walk, die);
        return 0;
    }
    if (r == 0) {
        step_over(walk, unit, die);
        return 0;
    }
    if (dw_tag(die) == DW_TAG_inlined_subroutine || dw_tag(die) == DW_TAG_subprogram)
        push(walk, die);
    walk->open = 0; /* nothing outside of it is looked at again */
    walk->linked = 0;
    walk->at = die->next;
    return !die->abbrev->has_children;
}

/* A list of children ends.  1: it was the one that the walk is in. */
static int leave(struct dw_walk *walk, const struct dw_die *die)
{
    walk->at = die->next;
    if (walk->skip > 0)
        walk->skip--;
    else if (walk->open > 0)
        leave_open(walk);
    else
        return 1;
    return 0;
}

static int walk_on(struct dw_walk *walk, struct dw_unit *unit)
{
    struct dw_die die;
    int r;

    do {
        if (walk->at >= unit->head.end)
            return 0;
        r = dw_step(unit->file->dwarf);
        if (r == 0)
            r = dw_die_read(unit, walk->at, &die);
        if (r < 0)
            return r;
        if (!die.abbrev)
            r = leave(walk, &die);
        else if (walk->skip > 0)
            step_over(walk, unit, &die);
        else
            r = look_at(walk, unit, &die);
    } while (r == 0);
    return r < 0 ? r : 0;
}

static int begin(struct dw_walk *walk, struct dw_unit *unit, uint64_t at, uint64_t address)
{
    struct dw_die die;
    int r = dw_die_read(unit, at, &die);

    walk->is_begun = false;
    if (r < 0)
        return r;
    walk->address = address;
    walk->unit = unit->head.at;
    walk->file = unit->file;
    walk->n = 0;
    walk->skip = walk->open = 0;
    walk->linked = 0;
    push(walk, &die);
    walk->at = die.abbrev && die.abbrev->has_children ? die.next : unit->head.end;
    walk->is_begun = true;
    walk->is_whole = false;
    return 0;
}

int dw_walk_to(struct dw_unit *unit, uint64_t die, uint64_t address)
{
    struct dw_walk *walk = &unit->file->dwarf->walk;
    int r = 0;

    if (!walk->is_begun || walk->address != address || walk->unit != unit->head.at ||
        walk->file != unit->file)
        r = begin(walk, unit, die, address);
    if (r < 0)
        return r;
    if (!walk->is_whole)
        r = walk_on(walk, unit);
    if (r == -EAGAIN || r == -ENOMEM)
        return r;
    while (walk->open > 0)
        leave_open(walk);
    walk->is_whole = true; /* what was found before something damaged is true */
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry of .debug_info (a DIE):
 *
 *   uleb code of its abbreviation, 0 ends a list of children   its attributes, in the forms and the
 *   order that the abbreviation has
 *
 * Children, if the abbreviation says that there are any, come behind it, up to an entry of code 0.
 */
#include <errno.h>

#include "base/err.h"
#include "symbol/dwarf_int.h"

static uint64_t take_sized(struct kiln_cursor *c, uint8_t size)
{
    const uint8_t *at;

    switch (size) {
    case 0:
        return 1; /* flag_present */
    case 8:
        return kiln_cursor_64(c);
    case 4:
        return kiln_cursor_32(c);
    case 2:
        return kiln_cursor_16(c);
    case 3:
        at = kiln_cursor_skip(c, 3);
        return at ? at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 : 0;
    default:
        return kiln_cursor_8(c);
    }
}

/* Blocks and texts, which are not kept: `u` says where they are. */
static uint64_t take_bytes(struct kiln_cursor *c, const uint8_t *begin, uint64_t at, uint16_t form)
{
    uint64_t n = 0;
    const uint8_t *end;

    switch (form) {
    case DW_FORM_block1:
        n = kiln_cursor_8(c);
        break;
    case DW_FORM_block2:
        n = kiln_cursor_16(c);
        break;
    case DW_FORM_block4:
        n = kiln_cursor_32(c);
        break;
    case DW_FORM_data16:
        n = 16;
        break;
    case DW_FORM_string:
        end = memchr(c->at, 0, (size_t)(c->end - c->at));
        n = end ? (uint64_t)(end - c->at) + 1 : UINT64_MAX;
        break;
    default:
        n = kiln_cursor_uleb(c);
        break;
    }
    at += (uint64_t)(c->at - begin);
    kiln_cursor_skip(c, n);
    return at;
}

/* A value that is looked at, or one whose size depends on itself. */
static void take_value(const struct dw_unit *unit, struct kiln_cursor *c, const uint8_t *begin,
                       uint64_t at, struct dw_value *value)
{
    int size;

    if (value->form == DW_FORM_indirect)
        value->form = (uint16_t)kiln_cursor_uleb(c);
    switch (value->form) {
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
        value->u = kiln_cursor_uleb(c);
        break;
    case DW_FORM_sdata:
        value->u = (uint64_t)kiln_cursor_sleb(c);
        break;
    case DW_FORM_string:
    case DW_FORM_block:
    case DW_FORM_block1:
    case DW_FORM_block2:
    case DW_FORM_block4:
    case DW_FORM_exprloc:
    case DW_FORM_data16:
        value->u = take_bytes(c, begin, at, value->form);
        break;
    default:
        size = dw_form_size(value->form, unit->abbrevs->shape);
        value->u =
            size < 0 || value->form == DW_FORM_implicit_const ? 0 : take_sized(c, (uint8_t)size);
        if (size < 0)
            value->form = 0; /* not known: nothing behind it can be read */
        break;
    }
}

static int take_attrs(const struct dw_unit *unit, struct kiln_cursor *c, const uint8_t *begin,
                      struct dw_die *die)
{
    const struct dw_abbrevs *t = unit->abbrevs;
    const struct dw_attr *attr = die->abbrev->n ? &t->attrs[die->abbrev->attrs] : NULL;
    uint32_t next_const = die->abbrev->consts;
    struct dw_value value;

    for (uint32_t left = die->abbrev->n; left > 0; left--, attr++) {
        if (attr->form == 0) {
            kiln_cursor_skip(c, attr->n);
            continue;
        }
        if (attr->form == DW_FORM_implicit_const) {
            value = (struct dw_value){(uint64_t)t->consts[next_const++], attr->form};
        } else {
            value.form = attr->form;
            take_value(unit, c, begin, die->at, &value);
            if (value.form == 0)
                return c->bad ? KILN_E_TRUNCATED : KILN_E_UNSUPPORTED;
        }
        if (attr->field != DW_F_NONE) {
            die->has |= 1u << attr->field;
            die->values[attr->field] = value;
        }
    }
    return c->bad ? KILN_E_TRUNCATED : 0;
}

/* From bytes that may end too early. */
static int take_die(const struct dw_unit *unit, const uint8_t *seen, size_t n, struct dw_die *die)
{
    struct kiln_cursor c = {seen, seen + n, false};
    uint64_t code = kiln_cursor_uleb(&c);
    int r = 0;

    die->has = 0;
    die->abbrev = NULL;
    if (c.bad)
        return KILN_E_TRUNCATED;
    if (code) {
        die->abbrev = dw_abbrevs_find(unit->abbrevs, code);
        if (!die->abbrev)
            return KILN_E_MALFORMED;
        r = take_attrs(unit, &c, seen, die);
    }
    die->next = die->at + (uint64_t)(c.at - seen);
    return r;
}

int dw_die_read(const struct dw_unit *unit, uint64_t at, struct dw_die *ret_die)
{
    uint64_t left;
    size_t need = 1, n;
    const uint8_t *seen;
    int r;

    if (at < unit->head.at + unit->head.header_size || at >= unit->head.end)
        return KILN_E_RANGE;
    left = unit->head.end - at;
    ret_die->at = at;
    do {
        r = dw_see(unit->view, at, need, &seen, &n);
        if (r < 0)
            return r;
        n = n > left ? (size_t)left : n;
        r = take_die(unit, seen, n, ret_die);
        need = 2 * n > left ? (size_t)left : 2 * n;
    } while (r == KILN_E_TRUNCATED && n < left);
    return r;
}

uint64_t dw_die_sibling(const struct dw_unit *unit, const struct dw_die *die)
{
    const struct dw_value *value = &die->values[DW_F_SIBLING];
    uint64_t at;

    if (!dw_has(die, DW_F_SIBLING))
        return 0;
    switch (value->form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
        if (__builtin_add_overflow(unit->head.at, value->u, &at))
            return 0;
        break;
    case DW_FORM_ref_addr:
        at = value->u;
        break;
    default:
        return 0;
    }
    return at >= die->next && at < unit->head.end ? at : 0;
}

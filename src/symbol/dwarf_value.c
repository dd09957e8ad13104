/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What values say.  A text is in the entry itself, in .debug_str, .debug_line_str or the alternate
 * file's .debug_str, or it is a number into .debug_str_offsets, which begins for this unit where
 * the unit says.  Addresses likewise, in .debug_addr; a split unit's are in the skeleton's file.
 */
#include <errno.h>

#include "base/err.h"
#include "symbol/dwarf_int.h"

enum { TEXT_MAX = 64 << 10 };

int dw_address_at(const struct dw_unit *unit, uint64_t index, uint64_t *ret_address)
{
    const struct dw_unit *owner = unit->skeleton ? unit->skeleton : unit;

    return dw_entry(dw_file_view(owner->file, DW_ADDR), owner->addr_base, index,
                    unit->head.address_size, ret_address);
}

int dw_address(const struct dw_unit *unit, const struct dw_value *value, uint64_t *ret_address)
{
    switch (value->form) {
    case DW_FORM_addr:
        *ret_address = value->u;
        return 0;
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index:
        return dw_address_at(unit, value->u, ret_address);
    default:
        return KILN_E_MALFORMED;
    }
}

bool dw_number(const struct dw_value *value, uint64_t *ret_number)
{
    switch (value->form) {
    case DW_FORM_data1:
    case DW_FORM_data2:
    case DW_FORM_data4:
    case DW_FORM_data8:
    case DW_FORM_udata:
    case DW_FORM_sdata:
    case DW_FORM_implicit_const:
    case DW_FORM_sec_offset:
        *ret_number = value->u;
        return true;
    default:
        return false;
    }
}

/* A text that ends in NUL, in a section. */
static int add_text(struct dw_view *view, uint64_t at, struct kiln_buf *out)
{
    const uint8_t *seen, *end;
    size_t left = TEXT_MAX, n;
    int r;

    if (!view)
        return -ENOENT;
    do {
        r = dw_see(view, at, 1, &seen, &n);
        if (r < 0)
            return r == KILN_E_TRUNCATED ? -ENOENT : r;
        n = n > left ? left : n;
        end = memchr(seen, 0, n);
        n = end ? (size_t)(end - seen) : n;
        kiln_buf_add(out, seen, n);
        at += n;
        left -= n;
    } while (!end && left > 0);
    return out->error;
}

static int text_at(const struct dw_unit *unit, uint64_t index, uint64_t *ret_at)
{
    return dw_entry(dw_file_view(unit->file, DW_STR_OFFSETS), unit->str_offsets_base, index,
                    unit->head.offset_size, ret_at);
}

int dw_text(const struct dw_unit *unit, const struct dw_value *value, struct kiln_buf *out)
{
    struct kiln_dwarf *dwarf = unit->file->dwarf;
    uint64_t at = value->u;
    int r;

    switch (value->form) {
    case DW_FORM_string:
        return add_text(unit->view, at, out);
    case DW_FORM_strp:
        return add_text(dw_file_view(unit->file, DW_STR), at, out);
    case DW_FORM_line_strp:
        return add_text(dw_file_view(unit->file, DW_LINE_STR), at, out);
    case DW_FORM_GNU_strp_alt:
    case DW_FORM_strp_sup:
        return add_text(dw_file_view(&dwarf->alternate, DW_STR), at, out);
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4:
    case DW_FORM_GNU_str_index:
        r = text_at(unit, at, &at);
        return r < 0 ? r : add_text(dw_file_view(unit->file, DW_STR), at, out);
    default:
        return -ENOENT;
    }
}

/* A place in another unit of a file's .debug_info. */
static int find_place(struct dw_file *file, uint64_t at, struct dw_place *ret_place)
{
    struct dw_place place = {.at = at};
    uint32_t i;
    int r;

    if (!dw_file_view(file, DW_INFO))
        return -ENOENT;
    r = dw_heads_read(file);
    if (r == 0)
        r = dw_heads_find(&file->heads, at, &i);
    if (r == 0)
        r = dw_unit_get(file, &file->heads.list[i], NULL, NULL, &place.unit);
    if (r == 0)
        *ret_place = place;
    return r;
}

static int find_type(struct dw_file *file, uint64_t signature, struct dw_place *ret_place)
{
    const struct dw_head *head;
    struct dw_place place;
    uint32_t i;
    int r = dw_heads_read(file);

    dw_count(file->dwarf, file->heads.n / 8);
    if (r == 0)
        r = dw_heads_find_type(&file->heads, signature, &i);
    if (r < 0)
        return r;
    head = &file->heads.list[i];
    place.at = head->at + head->type_die;
    r = dw_unit_get(file, head, NULL, NULL, &place.unit);
    if (r == 0)
        *ret_place = place;
    return r;
}

int dw_reference(struct dw_unit *unit, const struct dw_value *value, struct dw_place *ret_place)
{
    struct dw_file *file = unit->file;

    switch (value->form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
        if (value->u >= unit->head.end - unit->head.at)
            return KILN_E_RANGE;
        *ret_place = (struct dw_place){unit, unit->head.at + value->u};
        return 0;
    case DW_FORM_ref_addr:
        if (value->u >= unit->head.at && value->u < unit->head.end && !unit->head.in_types) {
            *ret_place = (struct dw_place){unit, value->u};
            return 0;
        }
        /* split units refer to their own only */
        return file == &file->dwarf->package ? -ENOENT : find_place(file, value->u, ret_place);
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_ref_sup4:
    case DW_FORM_ref_sup8:
        return find_place(&file->dwarf->alternate, value->u, ret_place);
    case DW_FORM_ref_sig8:
        return file == &file->dwarf->package ? -ENOENT : find_type(file, value->u, ret_place);
    default:
        return KILN_E_MALFORMED;
    }
}

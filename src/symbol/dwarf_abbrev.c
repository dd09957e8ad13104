/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of abbreviations, in .debug_abbrev:
 *
 *   abbreviation:  uleb code, 0 ends the table   uleb tag   1 byte: has children
 *                  attributes, each uleb name, uleb form, and for the form implicit_const sleb
 * value 0 0
 *
 * What is not looked at and has a fixed size is put together, so that most entries are stepped over
 * in one or two moves.
 */
#include <errno.h>

#include "base/err.h"
#include "symbol/dwarf_int.h"

enum {
    ABBREVS_MAX = 256 << 10,
    ATTRS_MAX = 1 << 20,
    ATTRS_OF_ONE_MAX = 4096,
    RUN_MAX = 255,
};

static uint8_t field_of(uint64_t name)
{
    static const struct {
        uint16_t name;
        uint8_t field;
    } known[] = {
        {DW_AT_stmt_list, DW_F_STMT_LIST},
        {DW_AT_low_pc, DW_F_LOW_PC},
        {DW_AT_high_pc, DW_F_HIGH_PC},
        {DW_AT_language, DW_F_LANGUAGE},
        {DW_AT_comp_dir, DW_F_COMP_DIR},
        {DW_AT_abstract_origin, DW_F_ORIGIN},
        {DW_AT_decl_line, DW_F_DECL_LINE},
        {DW_AT_specification, DW_F_SPECIFICATION},
        {DW_AT_ranges, DW_F_RANGES},
        {DW_AT_call_column, DW_F_CALL_COLUMN},
        {DW_AT_call_file, DW_F_CALL_FILE},
        {DW_AT_call_line, DW_F_CALL_LINE},
        {DW_AT_signature, DW_F_SIGNATURE},
        {DW_AT_linkage_name, DW_F_LINKAGE},
        {DW_AT_str_offsets_base, DW_F_STR_OFFSETS_BASE},
        {DW_AT_addr_base, DW_F_ADDR_BASE},
        {DW_AT_rnglists_base, DW_F_RNGLISTS_BASE},
        {DW_AT_dwo_name, DW_F_DWO_NAME},
        {DW_AT_export_symbols, DW_F_EXPORT_SYMBOLS},
        {DW_AT_MIPS_linkage_name, DW_F_LINKAGE},
        {DW_AT_GNU_dwo_name, DW_F_DWO_NAME},
        {DW_AT_GNU_dwo_id, DW_F_DWO_ID},
        {DW_AT_GNU_ranges_base, DW_F_GNU_RANGES_BASE},
        {DW_AT_GNU_addr_base, DW_F_ADDR_BASE},
    };

    if (name == DW_AT_sibling)
        return DW_F_SIBLING;
    if (name == DW_AT_name)
        return DW_F_NAME;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        if (known[i].name == name)
            return known[i].field;
    }
    return DW_F_NONE;
}

enum {
    BLOCK_FIELDS = 1 << DW_F_SIBLING | 1 << DW_F_LOW_PC | 1 << DW_F_HIGH_PC | 1 << DW_F_RANGES,
    SCOPE_FIELDS = 1 << DW_F_SIBLING | 1 << DW_F_NAME | 1 << DW_F_SPECIFICATION |
                   1 << DW_F_SIGNATURE | 1 << DW_F_EXPORT_SYMBOLS,
    ALL_FIELDS = (1 << DW_FIELDS) - 1,
};

/* What is looked at of a DIE: of what has no code, and no functions within, only where it ends. */
static uint32_t fields_of(uint16_t tag)
{
    switch (tag) {
    case DW_TAG_compile_unit:
    case DW_TAG_partial_unit:
    case DW_TAG_type_unit:
    case DW_TAG_skeleton_unit:
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
        return ALL_FIELDS;
    case DW_TAG_lexical_block:
    case DW_TAG_with_stmt:
    case DW_TAG_catch_block:
    case DW_TAG_try_block:
        return BLOCK_FIELDS;
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
    case DW_TAG_enumeration_type:
        return SCOPE_FIELDS;
    default:
        return 1 << DW_F_SIBLING;
    }
}

static uint8_t field_for(uint16_t tag, uint64_t name)
{
    uint8_t field = field_of(name);

    return field != DW_F_NONE && (fields_of(tag) >> field & 1) ? field : DW_F_NONE;
}

int dw_form_size(uint16_t form, struct dw_shape shape)
{
    switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
        return 0;
    case DW_FORM_data1:
    case DW_FORM_flag:
    case DW_FORM_ref1:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
        return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
        return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
        return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_ref_sup4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
        return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
        return 8;
    case DW_FORM_data16:
        return 16;
    case DW_FORM_addr:
        return shape.address_size;
    case DW_FORM_ref_addr:
        return shape.is_v2 ? shape.address_size : shape.offset_size;
    case DW_FORM_strp:
    case DW_FORM_sec_offset:
    case DW_FORM_strp_sup:
    case DW_FORM_line_strp:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
        return shape.offset_size;
    default:
        return -1;
    }
}

static int add_attr(struct dw_abbrevs *t, struct kiln_budget *budget, struct dw_attr attr)
{
    int r = kiln_grow(budget, (void **)&t->attrs, &t->cap_attrs, (uint64_t)t->n_attrs + 1,
                      sizeof(attr), ATTRS_MAX);

    if (r == 0)
        t->attrs[t->n_attrs++] = attr;
    return r;
}

static int add_const(struct dw_abbrevs *t, struct kiln_budget *budget, int64_t value)
{
    int r = kiln_grow(budget, (void **)&t->consts, &t->cap_consts, (uint64_t)t->n_consts + 1,
                      sizeof(value), ATTRS_MAX);

    if (r == 0)
        t->consts[t->n_consts++] = value;
    return r;
}

/* One attribute; what nobody looks at joins the one before. */
static int take_attr(struct dw_abbrevs *t, struct kiln_budget *budget, struct dw_abbrev *abbrev,
                     struct dw_attr attr)
{
    int n = attr.field == DW_F_NONE ? dw_form_size(attr.form, t->shape) : -1;
    struct dw_attr *before = abbrev->n ? &t->attrs[t->n_attrs - 1] : NULL;
    int r;

    if (n == 0)
        return 0;
    if (n > 0) {
        if (before && before->form == 0 && before->n + n <= RUN_MAX) {
            before->n = (uint8_t)(before->n + n);
            return 0;
        }
        attr.form = 0;
        attr.n = (uint8_t)n;
    }
    r = add_attr(t, budget, attr);
    if (r == 0)
        abbrev->n++;
    return r;
}

static int take_attrs(struct dw_abbrevs *t, struct kiln_budget *budget, struct kiln_cursor *c,
                      struct dw_abbrev *abbrev)
{
    for (uint32_t i = 0; i < ATTRS_OF_ONE_MAX; i++) {
        uint64_t name = kiln_cursor_uleb(c), form = kiln_cursor_uleb(c);
        struct dw_attr attr = {.form = (uint16_t)form, .field = field_for(abbrev->tag, name)};
        int64_t value;
        int r;

        if (c->bad)
            return KILN_E_TRUNCATED;
        if (name == 0 && form == 0)
            return 0;
        if (form == 0 || form > UINT16_MAX)
            return KILN_E_MALFORMED;
        if (form == DW_FORM_implicit_const) {
            value = kiln_cursor_sleb(c);
            r = attr.field == DW_F_NONE ? 0 : add_const(t, budget, value);
            if (r < 0)
                return r;
        }
        r = take_attr(t, budget, abbrev, attr);
        if (r < 0)
            return r;
    }
    return KILN_E_LIMIT;
}

/* The abbreviation at a cursor.  1: it was the table's end. */
static int take_abbrev(struct dw_abbrevs *t, struct kiln_budget *budget, struct kiln_cursor *c)
{
    uint32_t n_attrs = t->n_attrs, n_consts = t->n_consts;
    struct dw_abbrev abbrev = {.attrs = n_attrs, .consts = n_consts};
    uint64_t code = kiln_cursor_uleb(c);
    uint64_t tag = code ? kiln_cursor_uleb(c) : 0;
    int r;

    if (code == 0)
        return c->bad ? KILN_E_TRUNCATED : 1;
    abbrev.code = (uint32_t)code;
    abbrev.tag = (uint16_t)tag;
    abbrev.has_children = kiln_cursor_8(c) != 0;
    if (!c->bad && (code > UINT32_MAX || tag > UINT16_MAX))
        return KILN_E_MALFORMED;
    r = take_attrs(t, budget, c, &abbrev);
    if (r == 0)
        r = kiln_grow(budget, (void **)&t->list, &t->cap, (uint64_t)t->n + 1, sizeof(*t->list),
                      ABBREVS_MAX);
    if (r < 0) {
        t->n_attrs = n_attrs;
        t->n_consts = n_consts;
        return r;
    }
    t->is_dense = t->is_dense && abbrev.code == t->n + 1;
    t->list[t->n++] = abbrev;
    return 0;
}

/* Abbreviations one by one; one that does not end within what is seen is seen anew, larger. */
static int take_table(struct dw_abbrevs *t, struct dw_view *view, struct kiln_dwarf *dwarf,
                      uint64_t only)
{
    uint64_t at = t->at;
    size_t need = 1, n;
    const uint8_t *seen;
    struct kiln_cursor c;
    int r;

    for (;;) {
        r = dw_see(view, at, need, &seen, &n);
        if (r < 0)
            return r;
        c = (struct kiln_cursor){seen, seen + n, false};
        do {
            const uint8_t *begin = c.at;

            r = take_abbrev(t, dwarf->budget, &c);
            if (r == 0 && t->list[t->n - 1].code == only)
                return 0;
            dw_count(dwarf, 1);
            if (r == KILN_E_TRUNCATED) {
                need = begin == seen ? 2 * n : 1;
                at += (uint64_t)(begin - seen);
            } else if (r != 0) {
                return r == 1 ? 0 : r;
            }
        } while (r == 0);
    }
}

/* Codes that do not count up are sorted, so that they can be searched. */
static void sink(struct dw_abbrev *heap, uint32_t n, uint32_t at)
{
    struct dw_abbrev sinking = heap[at];

    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child].code < heap[child + 1].code)
            child++;
        if (sinking.code >= heap[child].code)
            break;
        heap[at] = heap[child];
    }
    heap[at] = sinking;
}

static void sort(struct dw_abbrev *list, uint32_t n)
{
    for (uint32_t i = n / 2; i-- > 0;)
        sink(list, n, i);
    while (n > 1) {
        struct dw_abbrev last = list[0];

        list[0] = list[--n];
        list[n] = last;
        sink(list, n, 0);
    }
}

int dw_abbrevs_read(struct dw_file *file, uint64_t at, struct dw_shape shape, uint64_t only,
                    struct dw_abbrevs **ret_abbrevs)
{
    struct kiln_budget *budget = file->dwarf->budget;
    struct dw_view *view = dw_file_view(file, DW_ABBREV);
    struct dw_abbrevs *t;
    int r;

    if (!view)
        return KILN_E_MALFORMED;
    t = kiln_calloc(1, sizeof(*t));
    if (!t)
        return -ENOMEM;
    *t = (struct dw_abbrevs){.file = file, .at = at, .shape = shape, .is_dense = true};
    r = take_table(t, view, file->dwarf, only);
    if (r < 0) {
        dw_abbrevs_free(t, budget);
        return r;
    }
    if (!t->is_dense)
        sort(t->list, t->n);
    *ret_abbrevs = t;
    return 0;
}

void dw_abbrevs_free(struct dw_abbrevs *t, struct kiln_budget *budget)
{
    if (!t)
        return;
    kiln_array_free(budget, (void **)&t->list, &t->cap, sizeof(*t->list));
    kiln_array_free(budget, (void **)&t->attrs, &t->cap_attrs, sizeof(*t->attrs));
    kiln_array_free(budget, (void **)&t->consts, &t->cap_consts, sizeof(*t->consts));
    kiln_free(t);
}

const struct dw_abbrev *dw_abbrevs_find(const struct dw_abbrevs *t, uint64_t code)
{
    uint32_t low = 0, high = t->n;

    if (t->is_dense)
        return code - 1 < t->n ? &t->list[code - 1] : NULL;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (t->list[middle].code == code)
            return &t->list[middle];
        if (t->list[middle].code < code)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

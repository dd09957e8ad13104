/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a function is called.  An inlined one refers to its abstract origin, a definition to its
 * declaration, perhaps in another unit or another file: the first name and the first linkage name
 * on that way count.
 *
 * A C++ function that no linker sees has no linkage name: its scopes are put before its name then.
 * A DIE does not know what it is in, so they are found by a walk from the unit's beginning to the
 * last DIE of the way, which goes only into what ends behind it.
 */
#include <errno.h>

#include "base/err.h"
#include "symbol/dwarf_int.h"

enum { HOPS_MAX = 16, DEPTH_MAX = 1 << 16 };

static bool has_scopes(uint32_t language)
{
    switch (language) {
    case 0x04: /* C++ */
    case 0x11: /* Objective C++ */
    case 0x13: /* D */
    case 0x1a: /* C++ 11 */
    case 0x1c: /* Rust */
    case 0x21: /* C++ 14 */
    case 0x2b: /* C++ 17 */
    case 0x3a: /* C++ 20 */
        return true;
    default:
        return false;
    }
}

/* Adds a text and says where it is; what is not there is empty. */
static int add(struct dw_unit *unit, const struct dw_value *value, struct kiln_buf *texts,
               struct dw_text *ret_text)
{
    struct dw_text text = {texts->len, 0};
    int r = dw_text(unit, value, texts);

    if (r == -EAGAIN || r == -ENOMEM)
        return r;
    if (r < 0)
        texts->len = text.at;
    text.n = texts->len - text.at;
    *ret_text = text;
    return 0;
}

static const struct dw_value *onwards(const struct dw_die *die)
{
    if (dw_has(die, DW_F_ORIGIN))
        return &die->values[DW_F_ORIGIN];
    return dw_has(die, DW_F_SPECIFICATION) ? &die->values[DW_F_SPECIFICATION] : NULL;
}

/* What a DIE says itself. */
static int take(struct dw_unit *unit, const struct dw_die *die, struct dw_called *called)
{
    uint64_t line;
    int r = 0;

    if (dw_has(die, DW_F_LINKAGE) && called->linkage.n == 0)
        r = add(unit, &die->values[DW_F_LINKAGE], called->texts, &called->linkage);
    if (r == 0 && dw_has(die, DW_F_NAME) && called->name.n == 0)
        r = add(unit, &die->values[DW_F_NAME], called->texts, &called->name);
    if (dw_has(die, DW_F_DECL_LINE) && called->start_line == 0 &&
        dw_number(&die->values[DW_F_DECL_LINE], &line) && line <= UINT32_MAX)
        called->start_line = (uint32_t)line;
    return r;
}

/* ---- scopes ---- */

static bool is_named_scope(uint16_t tag)
{
    switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_subprogram:
        return true;
    default:
        return false;
    }
}

/* Where the search goes on from a DIE. */
static void pass(struct dw_unit *unit, const struct dw_die *die, struct dw_scopes *scopes)
{
    uint64_t sibling;

    scopes->at = die->next;
    if (!die->abbrev) {
        scopes->depth--;
        if (scopes->n > 0 && scopes->depths[scopes->n - 1] == scopes->depth)
            scopes->n--;
        return;
    }
    if (!die->abbrev->has_children)
        return;
    sibling = dw_die_sibling(unit, die);
    if (sibling && sibling <= scopes->target) {
        scopes->at = sibling;
        return;
    }
    if (is_named_scope(dw_tag(die)) && scopes->n < DW_SCOPES_MAX) {
        scopes->depths[scopes->n] = scopes->depth;
        scopes->dies[scopes->n++] = die->at;
    }
    scopes->depth++;
}

static int search(struct dw_unit *unit, struct dw_scopes *scopes)
{
    struct dw_die die;
    int r;

    while (scopes->at < scopes->target && scopes->depth > 0 && scopes->depth < DEPTH_MAX) {
        r = dw_step(unit->file->dwarf);
        if (r == 0)
            r = dw_die_read(unit, scopes->at, &die);
        if (r < 0)
            return r;
        pass(unit, &die, scopes);
    }
    return scopes->at == scopes->target ? 0 : KILN_E_MALFORMED;
}

/* What was found for the last DIEs is kept, and what is half done: many frames are of the same. */
static int find_scopes(struct dw_unit *unit, uint64_t target, const struct dw_scopes **ret_scopes)
{
    struct kiln_dwarf *dwarf = unit->file->dwarf;
    struct dw_scopes *scopes = NULL;
    int r = 0;

    for (uint32_t i = 0; i < DW_SCOPES_KEPT && !scopes; i++) {
        if (dwarf->scopes[i].file == unit->file && dwarf->scopes[i].target == target &&
            dwarf->scopes[i].in_types == unit->head.in_types)
            scopes = &dwarf->scopes[i];
    }
    if (!scopes) {
        scopes = &dwarf->scopes[dwarf->next_scopes++ % DW_SCOPES_KEPT];
        *scopes = (struct dw_scopes){
            .file = unit->file,
            .target = target,
            .in_types = unit->head.in_types,
            .at = unit->root_end,
            .depth = 1,
        };
    }
    if (!scopes->is_whole)
        r = search(unit, scopes);
    if (r == -EAGAIN || r == -ENOMEM)
        return r;
    scopes->is_whole = true;
    if (r < 0)
        scopes->n = 0;
    *ret_scopes = scopes;
    return 0;
}

/* The name of one scope, itself or by what it refers to. */
static int add_scope(struct dw_unit *unit, uint64_t at, struct kiln_buf *texts)
{
    struct dw_place place = {unit, at};
    struct dw_die die;
    size_t before = texts->len;
    int r = 0;

    for (uint32_t i = 0; i < HOPS_MAX; i++) {
        const struct dw_value *next;

        r = dw_die_read(place.unit, place.at, &die);
        if (r == 0 && dw_has(&die, DW_F_NAME))
            return dw_text(place.unit, &die.values[DW_F_NAME], texts);
        if (r < 0)
            return r;
        next = dw_has(&die, DW_F_SIGNATURE) ? &die.values[DW_F_SIGNATURE] : onwards(&die);
        if (!next)
            break;
        r = dw_reference(place.unit, next, &place);
        if (r < 0)
            break;
    }
    if (r == -EAGAIN || r == -ENOMEM)
        return r;
    texts->len = before;
    kiln_buf_puts(texts, dw_tag(&die) == DW_TAG_namespace ? "(anonymous namespace)" : "{unnamed}");
    return texts->error;
}

static int qualify(const struct dw_place *place, struct dw_called *called)
{
    struct dw_text text = {called->texts->len, 0};
    const struct dw_scopes *scopes = NULL;
    int r = find_scopes(place->unit, place->at, &scopes);

    for (uint32_t i = 0; r == 0 && i < scopes->n; i++) {
        r = add_scope(place->unit, scopes->dies[i], called->texts);
        kiln_buf_puts(called->texts, "::");
    }
    if (r < 0 || scopes->n == 0) {
        called->texts->len = text.at;
        return r == -EAGAIN || r == -ENOMEM ? r : 0;
    }
    if (!kiln_buf_reserve(called->texts, called->name.n))
        return called->texts->error;
    kiln_buf_add(called->texts, called->texts->ptr + called->name.at, called->name.n);
    text.n = called->texts->len - text.at;
    called->qualified = text;
    return 0;
}

int dw_name(struct dw_unit *unit, uint64_t at, struct dw_called *called)
{
    struct dw_place place = {unit, at};
    struct dw_die die;
    int r = 0;

    for (uint32_t i = 0; i < HOPS_MAX; i++) {
        const struct dw_value *next;

        r = dw_die_read(place.unit, place.at, &die);
        if (r == 0)
            r = take(place.unit, &die, called);
        next = r == 0 ? onwards(&die) : NULL;
        if (!next)
            break;
        r = dw_reference(place.unit, next, &place);
        if (r < 0)
            break;
    }
    if (r == -EAGAIN || r == -ENOMEM)
        return r;
    if (called->linkage.n == 0 && called->name.n > 0 && has_scopes(place.unit->language))
        return qualify(&place, called);
    return 0;
}

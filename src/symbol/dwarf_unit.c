/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units that were read stay, found by file and offset, until memory is short: then the lines of
 * those that were not used for longest go first, since they are most of it, and then such units
 * themselves.  What the question at hand has used stays in any case.
 */
#include <errno.h>

#include "base/err.h"
#include "symbol/dwarf_int.h"

enum { DIRECTORY_MAX = 64 << 10 };

static uint32_t bucket_of(const struct dw_file *file, uint64_t at)
{
    uint64_t key = (at ^ (uint64_t)(uintptr_t)file) * UINT64_C(0x9e3779b97f4a7c15);

    return (uint32_t)(key >> 32) % DW_BUCKETS;
}

static struct dw_unit *held(struct dw_file *file, const struct dw_head *head)
{
    struct dw_unit *unit = file->dwarf->units[bucket_of(file, head->at)];

    while (unit && (unit->file != file || unit->head.at != head->at ||
                    unit->head.in_types != head->in_types))
        unit = unit->next;
    return unit;
}

/* ---- abbreviations, which units share ---- */

static struct dw_shape shape_of(const struct dw_head *head)
{
    return (struct dw_shape){head->address_size, head->offset_size, head->version <= 2};
}

static int get_abbrevs(struct dw_unit *unit)
{
    struct kiln_dwarf *dwarf = unit->file->dwarf;
    const struct dw_head *head = &unit->head;
    struct dw_shape shape = shape_of(head);
    uint64_t at = head->abbrevs + unit->part.abbrev;
    struct dw_abbrevs *t;
    int r;

    for (t = dwarf->abbrevs; t; t = t->next) {
        if (t->file == unit->file && t->at == at && t->shape.address_size == shape.address_size &&
            t->shape.offset_size == shape.offset_size && t->shape.is_v2 == shape.is_v2)
            break;
    }
    if (!t) {
        r = dw_abbrevs_read(unit->file, at, shape, 0, &t);
        if (r < 0)
            return r;
        t->next = dwarf->abbrevs;
        dwarf->abbrevs = t;
    }
    t->users++;
    unit->abbrevs = t;
    return 0;
}

static void put_abbrevs(struct kiln_dwarf *dwarf, struct dw_abbrevs *t)
{
    struct dw_abbrevs **at = &dwarf->abbrevs;

    if (!t || --t->users > 0)
        return;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    dw_abbrevs_free(t, dwarf->budget);
}

/* ---- units ---- */

static void drop_lines(struct dw_unit *unit)
{
    kiln_dwarf_lines_free(unit->lines);
    unit->lines = NULL;
    unit->are_lines_tried = false;
}

static void free_unit(struct dw_unit *unit)
{
    struct kiln_dwarf *dwarf = unit->file->dwarf;

    drop_lines(unit);
    dw_ranges_done(&unit->funcs, dwarf->budget);
    put_abbrevs(dwarf, unit->abbrevs);
    kiln_budget_give(dwarf->budget, sizeof(*unit));
    kiln_free(unit);
}

static void drop_unit(struct dw_unit *unit)
{
    struct dw_unit **at = &unit->file->dwarf->units[bucket_of(unit->file, unit->head.at)];

    while (*at != unit)
        at = &(*at)->next;
    *at = unit->next;
    if (unit->split)
        drop_unit(unit->split);
    if (unit->skeleton) {
        unit->skeleton->split = NULL;
        if (unit->file != &unit->file->dwarf->package)
            dw_file_rest(unit->file);
    }
    free_unit(unit);
}

void dw_units_free(struct kiln_dwarf *dwarf)
{
    for (uint32_t i = 0; i < DW_BUCKETS; i++) {
        while (dwarf->units[i]) {
            struct dw_unit *unit = dwarf->units[i];

            dwarf->units[i] = unit->next;
            free_unit(unit);
        }
    }
}

/* The unit that was not used for longest; of those that have lines, or of all. */
static struct dw_unit *oldest(struct kiln_dwarf *dwarf, bool with_lines)
{
    struct dw_unit *found = NULL;

    for (uint32_t i = 0; i < DW_BUCKETS; i++) {
        for (struct dw_unit *unit = dwarf->units[i]; unit; unit = unit->next) {
            if (unit->used < dwarf->clock && (unit->lines || !with_lines) &&
                (!found || unit->used < found->used))
                found = unit;
        }
    }
    return found;
}

void dw_units_trim(struct kiln_dwarf *dwarf, size_t keep)
{
    struct dw_unit *unit;

    while (dwarf->budget->used > keep) {
        unit = oldest(dwarf, true);
        if (unit) {
            drop_lines(unit);
            continue;
        }
        unit = oldest(dwarf, false);
        if (!unit)
            return;
        drop_unit(unit);
    }
}

static void take_number(const struct dw_die *die, enum dw_field field, uint64_t *ret_number)
{
    if (dw_has(die, field))
        dw_number(&die->values[field], ret_number);
}

/* Where this unit's own parts of shared tables begin, unless it says so. */
static void take_bases(struct dw_unit *unit, const struct dw_die *die)
{
    bool is_new = unit->head.version >= 5, is_long = unit->head.offset_size == 8;

    if (unit->file->is_dwo) {
        unit->str_offsets_base = unit->part.str_offsets + (is_new ? (is_long ? 16 : 8) : 0);
        unit->rnglists_base = unit->part.rnglists + (is_long ? 20 : 12);
    } else if (is_new) {
        unit->str_offsets_base = is_long ? 16 : 8;
        unit->addr_base = is_long ? 16 : 8;
        unit->rnglists_base = is_long ? 20 : 12;
    }
    take_number(die, DW_F_STR_OFFSETS_BASE, &unit->str_offsets_base);
    take_number(die, DW_F_ADDR_BASE, &unit->addr_base);
    take_number(die, DW_F_RNGLISTS_BASE, &unit->rnglists_base);
    take_number(die, DW_F_GNU_RANGES_BASE, &unit->ranges_base);
}

static int read_root(struct dw_unit *unit, struct dw_die *die)
{
    int r = dw_die_read(unit, unit->head.at + unit->head.header_size, die);

    if (r < 0)
        return r;
    if (!die->abbrev)
        return KILN_E_MALFORMED;
    take_bases(unit, die);
    if (dw_has(die, DW_F_LOW_PC))
        r = dw_address(unit, &die->values[DW_F_LOW_PC], &unit->low_pc);
    return r == -EAGAIN || r == -ENOMEM ? r : 0;
}

/* What the outermost DIE says of all others. */
static int take_root(struct dw_unit *unit)
{
    uint64_t language = 0;
    struct dw_die die;
    int r = read_root(unit, &die);

    if (r < 0)
        return r;
    take_number(&die, DW_F_LANGUAGE, &language);
    unit->language = (uint32_t)language;
    unit->has_stmt_list =
        dw_has(&die, DW_F_STMT_LIST) && dw_number(&die.values[DW_F_STMT_LIST], &unit->stmt_list);
    unit->dwo_id = unit->head.id;
    take_number(&die, DW_F_DWO_ID, &unit->dwo_id);
    if (dw_has(&die, DW_F_COMP_DIR))
        unit->comp_dir = die.values[DW_F_COMP_DIR];
    if (dw_has(&die, DW_F_DWO_NAME))
        unit->dwo_name = die.values[DW_F_DWO_NAME];
    unit->is_skeleton = !unit->file->is_dwo && (unit->head.kind == DW_UT_skeleton ||
                                                (unit->dwo_name.form && unit->dwo_id));
    unit->root_end = die.next;
    unit->has_children = die.abbrev->has_children;
    return 0;
}

static int read_unit(struct dw_unit *unit)
{
    int r = get_abbrevs(unit);

    return r < 0 ? r : take_root(unit);
}

static int make_unit(struct dw_file *file, const struct dw_head *head, const struct dw_part *part,
                     struct dw_unit **ret_unit)
{
    struct kiln_dwarf *dwarf = file->dwarf;
    struct dw_unit *unit;
    int r = kiln_budget_take(dwarf->budget, sizeof(*unit));

    if (r < 0)
        return r;
    unit = kiln_calloc(1, sizeof(*unit));
    if (!unit) {
        kiln_budget_give(dwarf->budget, sizeof(*unit));
        return -ENOMEM;
    }
    unit->file = file;
    unit->head = *head;
    unit->used = dwarf->clock;
    unit->view = dw_file_view(file, head->in_types ? DW_TYPES : DW_INFO);
    if (part)
        unit->part = *part;
    r = unit->view ? read_unit(unit) : KILN_E_MALFORMED;
    if (r < 0)
        free_unit(unit);
    else
        *ret_unit = unit;
    return r;
}

int dw_unit_get(struct dw_file *file, const struct dw_head *head, const struct dw_part *part,
                struct dw_unit *skeleton, struct dw_unit **ret_unit)
{
    struct kiln_dwarf *dwarf = file->dwarf;
    struct dw_unit *unit = held(file, head);
    int r;

    if (!unit) {
        r = make_unit(file, head, part, &unit);
        if (r == KILN_E_LIMIT) { /* others have the memory */
            dw_units_trim(dwarf, 0);
            r = make_unit(file, head, part, &unit);
        }
        if (r < 0)
            return r;
        unit->skeleton = skeleton;
        unit->next = dwarf->units[bucket_of(file, head->at)];
        dwarf->units[bucket_of(file, head->at)] = unit;
    }
    unit->used = dwarf->clock;
    *ret_unit = unit;
    return 0;
}

/* The outermost DIE of a unit that does not stay; only its own abbreviation is read. */
static int peek_root(struct dw_unit *unit, struct dw_die *ret_die)
{
    const struct dw_head *head = &unit->head;
    struct kiln_cursor c;
    const uint8_t *seen;
    size_t n;
    int r = dw_see(unit->view, head->at + head->header_size, 1, &seen, &n);

    if (r < 0)
        return r;
    c = (struct kiln_cursor){seen, seen + n, false};
    r = dw_abbrevs_read(unit->file, head->abbrevs, shape_of(head), kiln_cursor_uleb(&c),
                        &unit->abbrevs);
    return r < 0 ? r : read_root(unit, ret_die);
}

int dw_root_ranges(struct dw_file *file, const struct dw_head *head,
                   int (*each)(void *context, uint64_t begin, uint64_t end), void *context)
{
    struct dw_unit unit = {.file = file, .head = *head, .view = dw_file_view(file, DW_INFO)};
    struct dw_die die;
    int r = peek_root(&unit, &die);

    if (r == 0)
        r = dw_each_range(&unit, &die, each, context);
    dw_abbrevs_free(unit.abbrevs, file->dwarf->budget);
    return r;
}

int dw_root_id(struct dw_file *file, const struct dw_head *head, uint64_t *ret_id)
{
    struct dw_unit unit = {.file = file, .head = *head, .view = dw_file_view(file, DW_INFO)};
    struct dw_die die;
    int r = peek_root(&unit, &die);

    if (r == 0)
        take_number(&die, DW_F_DWO_ID, ret_id);
    dw_abbrevs_free(unit.abbrevs, file->dwarf->budget);
    return r;
}

static const struct kiln_section *section_of(struct dw_file *file, enum dw_section section)
{
    struct dw_view *view = dw_file_view(file, section);

    return view ? &view->section : NULL;
}

static int load_lines(struct dw_unit *unit)
{
    struct kiln_dwarf *dwarf = unit->file->dwarf;
    struct dw_file *file = unit->file;
    const struct kiln_section *line = section_of(file, DW_LINE);
    struct kiln_dwarf_line_ctx ctx = {
        .line = line,
        .line_str = section_of(file, DW_LINE_STR),
        .str = section_of(file, DW_STR),
        .alternate_str = section_of(&dwarf->alternate, DW_STR),
        .str_offsets = section_of(file, DW_STR_OFFSETS),
        .str_offsets_base = unit->str_offsets_base,
        .lowest = dwarf->lowest,
    };
    struct kiln_buf directory;
    int r = 0;

    if (!line)
        return -ENOENT;
    kiln_buf_init(&directory, DIRECTORY_MAX);
    if (unit->comp_dir.form)
        r = dw_text(unit, &unit->comp_dir, &directory);
    if (r != -EAGAIN && r != -ENOMEM) {
        ctx.comp_dir = kiln_buf_str(&directory);
        r = kiln_dwarf_lines_load(&ctx, unit->stmt_list, dwarf->budget, &unit->lines);
    }
    kiln_buf_done(&directory);
    return r;
}

int dw_unit_lines(struct dw_unit *unit, const struct kiln_dwarf_lines **ret_lines)
{
    struct kiln_dwarf *dwarf = unit->file->dwarf;
    int r;

    if (!unit->are_lines_tried && unit->has_stmt_list) {
        r = load_lines(unit);
        if (r == KILN_E_LIMIT) {
            dw_units_trim(dwarf, 0);
            r = load_lines(unit);
        }
        if (r == -EAGAIN || r == -ENOMEM)
            return r;
        unit->are_lines_tried = true;
    }
    *ret_lines = unit->lines;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where debug information is not in the file itself.
 *
 * Split units: a unit of the file is a skeleton with an id, its address ranges and its lines; the
 * rest is in a .dwo file, or in a package of many, PROGRAM.dwp, which has an index of ids:
 *
 *   .debug_cu_index:  4 version 2, or 2 version 5 and 2 zeros   4 columns   4 units   4 slots
 *                     slots * 8 ids, hashed   slots * 4 rows, counted from 1; 0: free
 *                     columns * 4 sections (DW_SECT_*)   units * columns * 4 offsets
 *                     units * columns * 4 sizes
 *
 * An alternate file: dwz moves what several debug files have in common there.  A link names it:
 *
 *   .gnu_debugaltlink:  name, NUL, build id
 *   .debug_sup:         2 version   1: it is the alternate itself   name, NUL   uleb length of an
 * id and the id
 */
#include <errno.h>

#include "base/err.h"
#include "symbol/dwarf_int.h"

enum { COLUMNS_MAX = 16, SLOTS_MAX = 1 << 24, PROBES_MAX = 1 << 16, LINK_MAX = 4096, DWOS = 1024 };

/* ---- packages ---- */

struct index {
    struct dw_view *view;
    uint32_t version, columns, units, slots;
};

static int read_32(struct dw_view *view, uint64_t at, uint32_t *ret_value)
{
    const uint8_t *seen;
    size_t n;
    int r = dw_see(view, at, 4, &seen, &n);

    if (r == 0)
        *ret_value = kiln_get_32(seen);
    return r;
}

static int open_index(struct dw_file *package, struct index *index)
{
    struct dw_view *view = dw_file_view(package, DW_CU_INDEX);
    const uint8_t *seen;
    size_t n;
    int r = view ? dw_see(view, 0, 16, &seen, &n) : -ENOENT;

    if (r < 0)
        return r;
    *index = (struct index){
        .view = view,
        .version = kiln_get_16(seen),
        .columns = kiln_get_32(seen + 4),
        .units = kiln_get_32(seen + 8),
        .slots = kiln_get_32(seen + 12),
    };
    if ((index->version != 2 && index->version != 5) || index->columns > COLUMNS_MAX ||
        index->slots == 0 || index->slots > SLOTS_MAX || (index->slots & (index->slots - 1)))
        return KILN_E_UNSUPPORTED;
    return 0;
}

/* The row of an id, counted from 1.  -ENOENT. */
static int find_row(const struct index *index, uint64_t id, uint32_t *ret_row)
{
    uint32_t mask = index->slots - 1, slot = (uint32_t)id & mask;
    uint32_t step = ((uint32_t)(id >> 32) & mask) | 1;
    uint64_t rows = 16 + 8 * (uint64_t)index->slots;
    const uint8_t *seen;
    uint32_t row;
    size_t n;
    int r;

    for (uint32_t i = 0; i < index->slots && i < PROBES_MAX; i++, slot = (slot + step) & mask) {
        r = read_32(index->view, rows + 4 * (uint64_t)slot, &row);
        if (r == 0)
            r = dw_see(index->view, 16 + 8 * (uint64_t)slot, 8, &seen, &n);
        if (r < 0)
            return r;
        if (row == 0 || row > index->units)
            return -ENOENT;
        if (kiln_get_64(seen) == id) {
            *ret_row = row;
            return 0;
        }
    }
    return -ENOENT;
}

/* Where the parts of a row's unit are. */
static int read_row(const struct index *index, uint32_t row, uint64_t *ret_info,
                    struct dw_part *ret_part)
{
    uint64_t sections = 16 + 12 * (uint64_t)index->slots;
    uint64_t offsets = sections + 4 * (uint64_t)index->columns * row;

    *ret_part = (struct dw_part){0};
    for (uint32_t i = 0; i < index->columns; i++) {
        uint32_t section, offset;
        int r = read_32(index->view, sections + 4 * (uint64_t)i, &section);

        if (r == 0)
            r = read_32(index->view, offsets + 4 * (uint64_t)i, &offset);
        if (r < 0)
            return r;
        if (section == DW_SECT_INFO)
            *ret_info = offset;
        else if (section == DW_SECT_ABBREV)
            ret_part->abbrev = offset;
        else if (section == DW_SECT_STR_OFFSETS)
            ret_part->str_offsets = offset;
        else if (section == DW_SECT_RNGLISTS && index->version == 5)
            ret_part->rnglists = offset;
    }
    return 0;
}

static int from_package(struct dw_unit *skeleton, struct dw_unit **ret_unit)
{
    struct dw_file *package = &skeleton->file->dwarf->package;
    struct dw_view *info = dw_file_view(package, DW_INFO);
    struct dw_head head;
    struct dw_part part;
    struct index index;
    uint64_t at = 0;
    uint32_t row;
    int r = info ? open_index(package, &index) : -ENOENT;

    if (r == 0)
        r = find_row(&index, skeleton->dwo_id, &row);
    if (r == 0)
        r = read_row(&index, row, &at, &part);
    if (r == 0)
        r = dw_head_read(info, at, false, &head);
    if (r == 0 && head.version == 0)
        r = KILN_E_MALFORMED;
    return r < 0 ? r : dw_unit_get(package, &head, &part, skeleton, ret_unit);
}

/* ---- single files ---- */

static int from_dwo(struct dw_unit *skeleton, struct dw_unit **ret_unit)
{
    struct kiln_dwarf *dwarf = skeleton->file->dwarf;

    for (uint32_t i = 0; i < dwarf->n_dwos; i++) {
        struct dw_dwo *dwo = dwarf->dwos[i];

        if (dwo->id == skeleton->dwo_id)
            return dw_unit_get(&dwo->file, &dwo->head, NULL, skeleton, ret_unit);
    }
    return -ENOENT;
}

static void note_lack(struct dw_unit *skeleton)
{
    struct kiln_dwarf *dwarf = skeleton->file->dwarf;
    struct dw_heads *heads = &dwarf->main.heads;
    uint32_t i;

    if (dwarf->n_lacks == DW_LACKS || dw_heads_find(heads, skeleton->head.at, &i) < 0 ||
        heads->list[i].is_asked_for)
        return;
    heads->list[i].is_asked_for = true;
    dwarf->lacks[dwarf->n_lacks++] = i;
}

int dw_split_of(struct dw_unit *unit, struct dw_unit **ret_unit)
{
    struct kiln_dwarf *dwarf = unit->file->dwarf;
    struct dw_unit *split = unit->split;
    int r = 0;

    if (!unit->is_skeleton) {
        *ret_unit = unit;
        return 0;
    }
    if (!split && unit->split_tried != dwarf->n_attached) {
        r = from_package(unit, &split);
        if (r < 0 && r != -EAGAIN && r != -ENOMEM)
            r = from_dwo(unit, &split);
        if (r == -EAGAIN || r == -ENOMEM)
            return r;
        if (r == 0) {
            split->skeleton = unit;
            unit->split = split;
        } else {
            unit->split_tried = dwarf->n_attached;
        }
    }
    if (split)
        split->used = dwarf->clock;
    else
        note_lack(unit);
    *ret_unit = split ? split : unit;
    return 0;
}

void dw_split_done(struct kiln_dwarf *dwarf)
{
    for (uint32_t i = 0; i < dwarf->n_dwos; i++) {
        dw_file_done(&dwarf->dwos[i]->file);
        kiln_free(dwarf->dwos[i]);
    }
    kiln_array_free(dwarf->budget, (void **)&dwarf->dwos, &dwarf->cap_dwos, sizeof(*dwarf->dwos));
    dw_file_done(&dwarf->package);
}

/* The unit of the id that was asked for. */
static int find_id(struct dw_dwo *dwo, uint64_t id)
{
    struct dw_heads *heads = &dwo->file.heads;
    int r = dw_file_view(&dwo->file, DW_INFO) ? dw_heads_read(&dwo->file) : KILN_E_NOMATCH;

    for (uint32_t i = 0; r == 0 && i < heads->n_info; i++) {
        uint64_t found = heads->list[i].id;

        if (heads->list[i].kind == DW_UT_type || heads->list[i].kind == DW_UT_split_type)
            continue;
        if (heads->list[i].version < 5)
            r = dw_root_id(&dwo->file, &heads->list[i], &found);
        if (r == 0 && found == id) {
            dwo->id = id;
            dwo->head = heads->list[i];
            return 0;
        }
    }
    return r < 0 ? r : KILN_E_NOMATCH;
}

static int attach_dwo(struct kiln_dwarf *dwarf, const struct kiln_elf *elf)
{
    uint32_t max = dwarf->opts.dwos ? dwarf->opts.dwos : DWOS;
    struct dw_dwo *dwo;
    int r = kiln_grow(dwarf->budget, (void **)&dwarf->dwos, &dwarf->cap_dwos,
                      (uint64_t)dwarf->n_dwos + 1, sizeof(*dwarf->dwos), max);

    if (r < 0)
        return r;
    dwo = kiln_calloc(1, sizeof(*dwo));
    if (!dwo)
        return -ENOMEM;
    dw_file_init(&dwo->file, dwarf, elf, true);
    r = find_id(dwo, dwarf->asked_id);
    if (r < 0) {
        dw_file_done(&dwo->file);
        kiln_free(dwo);
        return r;
    }
    dwarf->dwos[dwarf->n_dwos++] = dwo;
    return 0;
}

static int attach_package(struct kiln_dwarf *dwarf, const struct kiln_elf *elf)
{
    struct index index;
    int r;

    if (dwarf->package.elf)
        return KILN_E_LIMIT;
    dw_file_init(&dwarf->package, dwarf, elf, true);
    r = open_index(&dwarf->package, &index);
    if (r < 0)
        dw_file_done(&dwarf->package);
    return r == -ENOENT || r == KILN_E_TRUNCATED ? KILN_E_NOMATCH : r;
}

/* ---- the alternate ---- */

struct link {
    struct kiln_str name;
    const uint8_t *id;
    uint64_t n_id;
};

static bool take_link(struct kiln_cursor *c, bool has_length, struct link *link)
{
    size_t left = (size_t)(c->end - c->at), n;

    link->name.ptr = (const char *)c->at;
    n = strnlen(link->name.ptr, left);
    if (n == left)
        return false;
    link->name.len = n;
    kiln_cursor_skip(c, n + 1);
    link->n_id = has_length ? kiln_cursor_uleb(c) : (uint64_t)(c->end - c->at);
    link->id = kiln_cursor_skip(c, link->n_id);
    if (link->n_id > KILN_BUILD_ID_MAX)
        link->n_id = KILN_BUILD_ID_MAX;
    return link->id && link->n_id > 0;
}

/* .debug_sup of a file that has an alternate (kind 0) or is one (kind 1). */
static bool take_sup(struct kiln_cursor *c, uint8_t kind, struct link *link)
{
    return kiln_cursor_16(c) == 5 && kiln_cursor_8(c) == kind && take_link(c, true, link);
}

void dw_alternate_look(struct kiln_dwarf *dwarf)
{
    const struct kiln_elf *elf = dwarf->main.elf;
    const struct kiln_elf_section *section = kiln_elf_section(elf, ".gnu_debugaltlink");
    bool is_sup = !section;
    struct kiln_cursor c;
    struct link link;
    void *data;
    size_t n;

    kiln_buf_init(&dwarf->link, LINK_MAX);
    if (!section)
        section = kiln_elf_section(elf, ".debug_sup");
    if (!section || kiln_elf_load(elf, section, LINK_MAX, &data, &n) < 0)
        return;
    c = (struct kiln_cursor){data, (const uint8_t *)data + n, false};
    if (is_sup ? take_sup(&c, 0, &link) : take_link(&c, false, &link)) {
        kiln_buf_add_str(&dwarf->link, link.name);
        memcpy(dwarf->alternate_id, link.id, link.n_id);
        dwarf->alternate_id_len = (uint8_t)link.n_id;
        dwarf->wants_alternate = dwarf->link.error == 0;
    }
    kiln_free(data);
}

static bool has_id(const struct kiln_dwarf *dwarf, const uint8_t *id, uint64_t n)
{
    return n == dwarf->alternate_id_len && memcmp(id, dwarf->alternate_id, n) == 0;
}

/* Whether a file is the alternate: by its build id, or by what its .debug_sup says. */
static bool is_alternate(const struct kiln_dwarf *dwarf, const struct kiln_elf *elf)
{
    const struct kiln_elf_section *section = kiln_elf_section(elf, ".debug_sup");
    uint8_t id[KILN_BUILD_ID_MAX], n_id;
    struct kiln_cursor c;
    struct link link;
    void *data;
    size_t n;
    bool is;

    if (kiln_elf_build_id(elf, id, &n_id) == 0 && has_id(dwarf, id, n_id))
        return true;
    if (!section || kiln_elf_load(elf, section, LINK_MAX, &data, &n) < 0)
        return false;
    c = (struct kiln_cursor){data, (const uint8_t *)data + n, false};
    is = take_sup(&c, 1, &link) && has_id(dwarf, link.id, link.n_id);
    kiln_free(data);
    return is;
}

static int attach_alternate(struct kiln_dwarf *dwarf, const struct kiln_elf *elf)
{
    if (dwarf->alternate.elf)
        return KILN_E_LIMIT;
    if (dwarf->alternate_id_len == 0 || !is_alternate(dwarf, elf))
        return KILN_E_NOMATCH;
    dw_file_init(&dwarf->alternate, dwarf, elf, false);
    return 0;
}

/* ---- what is wanted ---- */

int kiln_dwarf_attach(struct kiln_dwarf *dwarf, enum kiln_wanted_kind kind,
                      const struct kiln_elf *other)
{
    int r = KILN_E_NOMATCH;

    if (kind == KILN_WANTED_ALTERNATE)
        r = attach_alternate(dwarf, other);
    else if (kind == KILN_WANTED_DWP)
        r = attach_package(dwarf, other);
    else if (kind == KILN_WANTED_DWO)
        r = attach_dwo(dwarf, other);
    if (r == 0)
        dwarf->n_attached++;
    return r;
}

/* False: it is no more lacking, or cannot be said. */
static bool want_dwo(struct kiln_dwarf *dwarf, uint32_t i, struct kiln_wanted *ret_wanted)
{
    struct dw_unit *skeleton, *unit;
    size_t n_name;

    kiln_buf_clear(&dwarf->wanted);
    if (dw_unit_get(&dwarf->main, &dwarf->main.heads.list[i], NULL, NULL, &skeleton) < 0 ||
        dw_split_of(skeleton, &unit) < 0 || unit != skeleton ||
        dw_text(skeleton, &skeleton->dwo_name, &dwarf->wanted) < 0)
        return false;
    n_name = dwarf->wanted.len;
    if (skeleton->comp_dir.form && dw_text(skeleton, &skeleton->comp_dir, &dwarf->wanted) < 0)
        dwarf->wanted.len = n_name;
    if (dwarf->wanted.error || n_name == 0)
        return false;
    dwarf->asked_id = skeleton->dwo_id;
    *ret_wanted = (struct kiln_wanted){
        .kind = KILN_WANTED_DWO,
        .name = {dwarf->wanted.ptr, n_name},
        .directory = dwarf->wanted.len > n_name
                         ? (struct kiln_str){dwarf->wanted.ptr + n_name, dwarf->wanted.len - n_name}
                         : KILN_STR_NONE,
        .dwo_id = skeleton->dwo_id,
    };
    return true;
}

bool kiln_dwarf_wants(struct kiln_dwarf *dwarf, struct kiln_wanted *ret_wanted)
{
    if (dwarf->wants_alternate) {
        dwarf->wants_alternate = false;
        *ret_wanted = (struct kiln_wanted){
            .kind = KILN_WANTED_ALTERNATE,
            .name = kiln_buf_str(&dwarf->link),
            .build_id_len = dwarf->alternate_id_len,
        };
        memcpy(ret_wanted->build_id, dwarf->alternate_id, dwarf->alternate_id_len);
        return true;
    }
    if (dwarf->n_lacks > 0 && !dwarf->has_asked_package) {
        dwarf->has_asked_package = true;
        *ret_wanted = (struct kiln_wanted){.kind = KILN_WANTED_DWP};
        return true;
    }
    while (dwarf->n_lacks > 0) {
        if (want_dwo(dwarf, dwarf->lacks[--dwarf->n_lacks], ret_wanted))
            return true;
    }
    return false;
}

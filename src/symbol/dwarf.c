/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question goes from the address to its unit, to the split unit where there is one, to the
 * function, to the scopes within, and last to names, files and lines.  Of N functions that were
 * inlined into each other the innermost is where the line table says the address is, and each other
 * is where the one within it was called.
 */
#include <elf.h>
#include <errno.h>

#include "base/err.h"
#include "symbol/dwarf_int.h"

enum {
    BUDGET_DEFAULT = 48 << 20,
    TEXTS_MAX = 8 << 20,
    TEXTS_KEPT = 256 << 10,
    LINK_MAX = 4096,
};

static bool is_fatal(int r)
{
    return r == -EAGAIN || r == -ENOMEM;
}

/* Where code begins in memory: what is said of addresses below was dropped by the linker. */
static uint64_t lowest_code(const struct kiln_elf *elf)
{
    uint64_t lowest = UINT64_MAX;

    for (uint32_t i = 0; i < elf->n_segments; i++) {
        const struct kiln_elf_segment *s = &elf->segments[i];

        if (s->type == PT_LOAD && (s->flags & PF_X) && s->address < lowest)
            lowest = s->address;
    }
    return lowest == UINT64_MAX ? 0 : lowest;
}

int kiln_dwarf_open(const struct kiln_elf *elf, const struct kiln_dwarf_opts *opts,
                    struct kiln_dwarf **ret_dwarf)
{
    struct kiln_dwarf *dwarf;

    if (elf->type == ET_REL)
        return KILN_E_UNSUPPORTED;
    dwarf = kiln_calloc(1, sizeof(*dwarf));
    if (!dwarf)
        return -ENOMEM;
    dwarf->opts = *opts;
    dwarf->own.limit = BUDGET_DEFAULT;
    dwarf->budget = opts->budget ? opts->budget : &dwarf->own;
    dwarf->deadline_ns = opts->deadline_ns;
    dwarf->scratch = opts->scratch;
    dwarf->lowest = lowest_code(elf);
    dwarf->n_attached = 1; /* no unit has looked for its split one yet */
    kiln_buf_init(&dwarf->texts, TEXTS_MAX);
    kiln_buf_init(&dwarf->wanted, 2 * LINK_MAX);
    dw_file_init(&dwarf->main, dwarf, elf, false);
    if (!dw_file_view(&dwarf->main, DW_INFO) || !dw_file_view(&dwarf->main, DW_ABBREV)) {
        kiln_dwarf_close(dwarf);
        return -ENOENT;
    }
    dw_alternate_look(dwarf);
    *ret_dwarf = dwarf;
    return 0;
}

void kiln_dwarf_close(struct kiln_dwarf *dwarf)
{
    if (!dwarf)
        return;
    dw_units_free(dwarf);
    dw_ranges_done(&dwarf->places, dwarf->budget);
    kiln_array_free(dwarf->budget, (void **)&dwarf->runs, &dwarf->cap_runs, sizeof(*dwarf->runs));
    dw_split_done(dwarf);
    dw_file_done(&dwarf->alternate);
    dw_file_done(&dwarf->main);
    kiln_buf_done(&dwarf->texts);
    kiln_buf_done(&dwarf->wanted);
    kiln_buf_done(&dwarf->link);
    kiln_free(dwarf);
}

void kiln_dwarf_deadline(struct kiln_dwarf *dwarf, uint64_t deadline_ns)
{
    dwarf->deadline_ns = deadline_ns;
}

size_t kiln_dwarf_bytes(const struct kiln_dwarf *dwarf)
{
    return sizeof(*dwarf) + dwarf->budget->used + dwarf->texts.cap + dwarf->wanted.cap;
}

/* Adds a file's name; what has none stays empty. */
static int add_file(struct kiln_dwarf *dwarf, const struct kiln_dwarf_lines *lines, uint32_t file,
                    struct dw_text *ret_text)
{
    struct dw_text text = {dwarf->texts.len, 0};
    int r = kiln_dwarf_lines_file(lines, file, &dwarf->texts);

    if (is_fatal(r))
        return r;
    text.n = r < 0 ? 0 : dwarf->texts.len - text.at;
    *ret_text = text;
    return 0;
}

/* Where frame `i` is, counted from the innermost. */
static int place_frame(struct kiln_dwarf *dwarf, const struct kiln_dwarf_lines *lines, uint32_t i,
                       uint64_t address)
{
    struct kiln_dwarf_frame *frame = &dwarf->frames[i];
    const struct dw_link *inner = i > 0 ? &dwarf->walk.chain[dwarf->walk.n - i] : NULL;
    uint32_t file;

    if (inner) {
        file = inner->call_file;
        frame->line = inner->call_line;
        frame->column = inner->call_column;
        /* a function within another, which was not inlined there: nobody says who called it */
        if (!inner->is_inlined)
            return 0;
    } else if (!lines ||
               !kiln_dwarf_lines_find(lines, address, &file, &frame->line, &frame->column)) {
        return 0;
    }
    return lines ? add_file(dwarf, lines, file, &dwarf->called[i].file) : 0;
}

static struct kiln_str text_of(const struct kiln_dwarf *dwarf, struct dw_text text)
{
    return text.n ? (struct kiln_str){dwarf->texts.ptr + text.at, text.n} : KILN_STR_NONE;
}

/* Texts move while more are added: frames point to them at the end. */
static void point_frames(struct kiln_dwarf *dwarf, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct dw_called *called = &dwarf->called[i];
        struct kiln_dwarf_frame *frame = &dwarf->frames[i];

        frame->name = text_of(dwarf, called->name);
        frame->linkage = text_of(dwarf, called->linkage);
        frame->qualified = text_of(dwarf, called->qualified);
        frame->file = text_of(dwarf, called->file);
        frame->start_line = called->start_line;
    }
}

/* The functions around an address, in dwarf->walk; none: 0 of them. */
static int find_functions(struct kiln_dwarf *dwarf, struct dw_unit *unit, uint64_t address)
{
    uint64_t die;
    int r = dw_func_find(unit, address, &die);

    if (r == 0)
        r = dw_walk_to(unit, die, address);
    if (is_fatal(r))
        return r;
    if (r < 0)
        dwarf->walk = (struct dw_walk){0};
    return 0;
}

/* A function that is within another (not inlined into it) has no frames outside of itself. */
static void cut_functions(struct dw_walk *walk)
{
    for (uint32_t i = walk->n; i-- > 1;) {
        if (!walk->chain[i].is_inlined) {
            walk->n -= i;
            memmove(walk->chain, walk->chain + i, walk->n * sizeof(*walk->chain));
            return;
        }
    }
}

static int make_frames(struct kiln_dwarf *dwarf, struct dw_unit *unit, struct dw_unit *skeleton,
                       uint64_t address, uint32_t *ret_n)
{
    const struct kiln_dwarf_lines *lines = NULL;
    uint32_t n = dwarf->walk.n ? dwarf->walk.n : 1;
    int r = dw_unit_lines(skeleton, &lines);

    for (uint32_t i = 0; r == 0 && i < n; i++) {
        dwarf->called[i] = (struct dw_called){.texts = &dwarf->texts};
        dwarf->frames[i] = (struct kiln_dwarf_frame){0};
        r = dw_step(dwarf); /* units that were read for the names so far stay */
        if (r == 0 && dwarf->walk.n)
            r = dw_name(unit, dwarf->walk.chain[n - 1 - i].die, &dwarf->called[i]);
        if (r == 0)
            r = place_frame(dwarf, lines, i, address);
    }
    if (r < 0)
        return r;
    point_frames(dwarf, n);
    *ret_n = dwarf->walk.n == 0 && dwarf->frames[0].file.len == 0 ? 0 : n;
    return 0;
}

static void begin(struct kiln_dwarf *dwarf)
{
    dwarf->clock++;
    if (dwarf->texts.cap > TEXTS_KEPT) {
        kiln_buf_done(&dwarf->texts);
        kiln_buf_init(&dwarf->texts, TEXTS_MAX);
    }
    kiln_buf_clear(&dwarf->texts);
    dw_units_trim(dwarf, dwarf->budget->limit / 4 * 3);
}

int kiln_dwarf_find(struct kiln_dwarf *dwarf, uint64_t address,
                    const struct kiln_dwarf_frame **ret_frames, uint32_t *ret_n)
{
    struct dw_unit *skeleton, *unit;
    bool is_gap = false;
    uint32_t n = 0;
    int r;

    begin(dwarf);
    r = dw_place_find(dwarf, address, &skeleton, &is_gap);
    if (r == 0)
        r = dw_split_of(skeleton, &unit);
    if (r == 0 && is_gap)
        dwarf->walk = (struct dw_walk){0};
    else if (r == 0)
        r = find_functions(dwarf, unit, address);
    if (r == 0) {
        cut_functions(&dwarf->walk);
        r = make_frames(dwarf, unit, skeleton, address, &n);
    }
    if (is_fatal(r))
        return r;
    *ret_frames = dwarf->frames;
    *ret_n = r < 0 ? 0 : n;
    return 0;
}

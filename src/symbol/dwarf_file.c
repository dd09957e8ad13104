/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A section is seen through windows, which begin where somebody looks.  Who goes forwards gets
 * larger ones, up to a limit, and the next replaces the one before; who jumps gets a small one in
 * place of the one that was not looked through for longest.  A section that is in memory anyway
 * needs none.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/err.h"
#include "symbol/dwarf_int.h"

enum {
    SMALL = 4 << 10,
    LARGE = 64 << 10,
    NEED_MAX = 1 << 20,
    STEPS = 2048, /* between two looks at the clock */
};

static const char *const plain_names[DW_SECTIONS] = {
    [DW_INFO] = ".debug_info",         [DW_TYPES] = ".debug_types",
    [DW_ABBREV] = ".debug_abbrev",     [DW_ARANGES] = ".debug_aranges",
    [DW_STR] = ".debug_str",           [DW_LINE] = ".debug_line",
    [DW_LINE_STR] = ".debug_line_str", [DW_STR_OFFSETS] = ".debug_str_offsets",
    [DW_ADDR] = ".debug_addr",         [DW_RANGES] = ".debug_ranges",
    [DW_RNGLISTS] = ".debug_rnglists", [DW_CU_INDEX] = ".debug_cu_index",
};

static const char *const dwo_names[DW_SECTIONS] = {
    [DW_INFO] = ".debug_info.dwo",         [DW_TYPES] = ".debug_types.dwo",
    [DW_ABBREV] = ".debug_abbrev.dwo",     [DW_STR] = ".debug_str.dwo",
    [DW_LINE] = ".debug_line.dwo",         [DW_STR_OFFSETS] = ".debug_str_offsets.dwo",
    [DW_RNGLISTS] = ".debug_rnglists.dwo", [DW_CU_INDEX] = ".debug_cu_index",
};

int dw_step(struct kiln_dwarf *dwarf)
{
    if (++dwarf->steps < STEPS)
        return 0;
    dwarf->steps = 0;
    return dwarf->deadline_ns && kiln_clock_mono_ns() >= dwarf->deadline_ns ? -EAGAIN : 0;
}

static bool window_has(const struct dw_window *window, uint64_t at, size_t need)
{
    return at >= window->at && need <= window->n && at - window->at <= window->n - need;
}

static struct dw_window *window_of(struct dw_view *view, uint64_t at, size_t need)
{
    for (uint32_t i = 0; i < DW_WINDOWS; i++) {
        if (window_has(&view->windows[i], at, need))
            return &view->windows[i];
    }
    return NULL;
}

static struct dw_window *oldest(struct dw_view *view)
{
    struct dw_window *found = &view->windows[0];

    for (uint32_t i = 1; i < DW_WINDOWS; i++) {
        if (view->windows[i].used < found->used)
            found = &view->windows[i];
    }
    return found;
}

/* Which window shall show what is at an offset, and how much of it. */
static struct dw_window *choose(struct dw_view *view, uint64_t at, size_t need, uint32_t *ret_n)
{
    struct dw_window *last = view->last;
    uint64_t n = SMALL, left = view->section.size - at;

    if (last && last->n && at >= last->at && at - last->at <= 4 * (uint64_t)last->n) {
        n = 2 * (uint64_t)last->n;
        n = n > LARGE ? LARGE : n;
    } else {
        last = oldest(view);
    }
    n = n < need ? need : n;
    *ret_n = (uint32_t)(n > left ? left : n);
    return last;
}

static int fill(struct dw_view *view, uint64_t at, size_t need, struct dw_window **ret_window)
{
    uint32_t n;
    struct dw_window *window = choose(view, at, need, &n);
    int r = 0;

    window->n = 0;
    if (n > window->cap)
        r = kiln_reserve(view->budget, (void **)&window->data, &window->cap, n, 1, NEED_MAX);
    if (r == 0)
        r = kiln_section_read(&view->section, at, window->data, n);
    if (r < 0)
        return r;
    window->at = at;
    window->n = n;
    view->last = window;
    *ret_window = window;
    return 0;
}

int dw_see(struct dw_view *view, uint64_t at, size_t need, const uint8_t **ret_bytes, size_t *ret_n)
{
    struct dw_window *window = view->last;
    const uint8_t *memory;
    int r;

    if (window && window_has(window, at, need)) {
        *ret_bytes = window->data + (at - window->at);
        *ret_n = window->n - (size_t)(at - window->at);
        return 0;
    }
    if (need > view->section.size || at > view->section.size - need)
        return KILN_E_TRUNCATED;
    if (need > NEED_MAX)
        return KILN_E_LIMIT;
    memory = kiln_section_memory(&view->section);
    if (memory) {
        *ret_bytes = memory + at;
        *ret_n = (size_t)(view->section.size - at);
        return 0;
    }
    window = window_of(view, at, need);
    if (!window) {
        r = fill(view, at, need, &window);
        if (r < 0)
            return r;
    }
    window->used = ++view->clock;
    view->last = window;
    *ret_bytes = window->data + (at - window->at);
    *ret_n = window->n - (size_t)(at - window->at);
    return 0;
}

int dw_entry(struct dw_view *view, uint64_t base, uint64_t index, uint8_t size,
             uint64_t *ret_number)
{
    const uint8_t *seen;
    uint64_t at;
    size_t n;
    int r;

    if (!view)
        return -ENOENT;
    if (__builtin_mul_overflow(index, size, &at) || __builtin_add_overflow(at, base, &at))
        return KILN_E_RANGE;
    r = dw_see(view, at, size, &seen, &n);
    if (r == 0)
        *ret_number = size == 4 ? kiln_get_32(seen) : kiln_get_64(seen);
    return r;
}

void dw_file_init(struct dw_file *file, struct kiln_dwarf *dwarf, const struct kiln_elf *elf,
                  bool is_dwo)
{
    *file = (struct dw_file){.dwarf = dwarf, .elf = elf, .is_dwo = is_dwo};
}

static void rest_view(struct dw_view *view)
{
    for (uint32_t i = 0; i < DW_WINDOWS; i++) {
        kiln_array_free(view->budget, (void **)&view->windows[i].data, &view->windows[i].cap, 1);
        view->windows[i] = (struct dw_window){0};
    }
    view->last = NULL;
}

void dw_file_rest(struct dw_file *file)
{
    for (uint32_t i = 0; i < DW_SECTIONS; i++) {
        if (file->views[i].is_tried)
            rest_view(&file->views[i]);
    }
}

static void done_view(struct dw_view *view)
{
    rest_view(view);
    kiln_section_done(&view->section);
}

void dw_file_done(struct dw_file *file)
{
    for (uint32_t i = 0; i < DW_SECTIONS; i++) {
        if (file->views[i].is_tried)
            done_view(&file->views[i]);
    }
    if (file->heads.list)
        kiln_array_free(file->dwarf->budget, (void **)&file->heads.list, &file->heads.cap,
                        sizeof(*file->heads.list));
    *file = (struct dw_file){0};
}

struct dw_view *dw_file_view(struct dw_file *file, enum dw_section section)
{
    struct dw_view *view = &file->views[section];
    const char *name = file->is_dwo ? dwo_names[section] : plain_names[section];
    struct kiln_dwarf *dwarf = file->dwarf;
    struct kiln_section_room room;

    if (!view->is_tried && name && file->elf) {
        room = (struct kiln_section_room){
            .budget = dwarf->budget,
            .scratch = dwarf->scratch,
            .deadline_ns = &dwarf->deadline_ns,
        };
        view->is_tried = true;
        view->budget = dwarf->budget;
        if (kiln_section_open(file->elf, name, &room, &view->section) < 0)
            view->section.size = 0;
    }
    return view->is_tried && view->section.size > 0 ? view : NULL;
}

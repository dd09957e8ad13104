/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that the compiler put into a function.  A table of values (pcdata 2) has for each address
 * the number of an entry in the function's tree (funcdata 3), -1: none.  Entries, little-endian:
 *
 *   Go 1.20:   0 1 id    4 4 name    8 4 address of the call, from the entry    12 4 first line
 *   Go 1.18:   0 2 parent    2 1 id    4 4 file    8 4 line    12 4 name    16 4 address of the
 * call
 *
 * The file and line of the innermost are those of the address; who called it is what the tables
 * have at the address of the call, and so on until there is no entry: that is the function itself.
 *
 * A tree has no length, but a name that cannot be read ends it, as does an address that is not the
 * function's.  A tree of a stranger may go round in circles: levels are counted.
 */
#include "symbol/cursor.h"
#include "symbol/gopcln_int.h"

enum { PCDATA_TREE = 2, FUNCDATA_TREE = 3, LEVELS_MAX = 128 };

/* An entry of the tree. */
struct call {
    uint32_t name, start_line;
    uint64_t address;
};

/* A number of the lists behind a function; 0: there is none. */
static uint32_t listed(struct kiln_gopcln *pcln, const struct kiln_go_func *func, uint64_t index)
{
    size_t n;
    const uint8_t *seen = kiln_gopcln_see(pcln, func->tables + 4 * index, 4, 4, &n);

    return seen ? kiln_get_32(seen) : 0;
}

/* Where the tree of a function is in the file; 0: it has none. */
static uint64_t tree_of(struct kiln_gopcln *pcln, const struct kiln_go_func *func)
{
    uint32_t offset;

    if (!kiln_gopcln_has_1_18(pcln) || func->n_pcdata <= PCDATA_TREE ||
        func->n_funcdata <= FUNCDATA_TREE)
        return 0;
    offset = listed(pcln, func, (uint64_t)func->n_pcdata + FUNCDATA_TREE);
    if (offset == UINT32_MAX)
        return 0;
    if (!pcln->asked_trees)
        kiln_gopcln_find_trees(pcln);
    pcln->asked_trees = true;
    return pcln->trees && offset < pcln->trees_end - pcln->trees ? pcln->trees + offset : 0;
}

static bool read_call(struct kiln_gopcln *pcln, uint64_t tree, int32_t index, struct call *ret_call)
{
    bool old = pcln->magic == KILN_GO_1_18;
    size_t size = old ? 20 : 16, n;
    uint64_t at = tree + (uint64_t)(uint32_t)index * size;
    const uint8_t *seen;

    if (at > pcln->trees_end || pcln->trees_end - at < size)
        return false;
    seen = kiln_window_see(&pcln->window, at, size, size, &n);
    if (!seen)
        return false;
    ret_call->name = kiln_get_32(seen + (old ? 12 : 4));
    ret_call->address = kiln_get_32(seen + (old ? 16 : 8));
    ret_call->start_line = old ? 0 : kiln_get_32(seen + 12);
    return true;
}

static void set_place(struct kiln_gopcln *pcln, const struct kiln_go_func *func, uint64_t address,
                      struct kiln_go_frame *frame)
{
    int32_t line = kiln_gopcln_value(pcln, func, func->pcln, address);

    frame->file = kiln_gopcln_value(pcln, func, func->pcfile, address);
    frame->line = line > 0 ? (uint32_t)line : 0;
}

uint32_t kiln_gopcln_frames(struct kiln_gopcln *pcln, const struct kiln_go_func *func,
                            uint64_t address, struct kiln_go_frame *frames, uint32_t max)
{
    uint64_t tree = tree_of(pcln, func);
    uint32_t table = tree ? listed(pcln, func, PCDATA_TREE) : 0, n = 0;

    for (uint32_t level = 0; tree && level < LEVELS_MAX; level++) {
        int32_t index = kiln_gopcln_value(pcln, func, table, address);
        struct call call;

        if (index < 0 || !read_call(pcln, tree, index, &call) ||
            !kiln_gopcln_name(pcln, call.name).len || call.address >= func->end - func->entry)
            break;
        if (n + 1 < max) {
            frames[n] = (struct kiln_go_frame){.name = call.name, .start_line = call.start_line};
            set_place(pcln, func, address, &frames[n++]);
        }
        address = func->entry + call.address;
    }
    frames[n] = (struct kiln_go_frame){.name = func->name, .start_line = func->start_line};
    set_place(pcln, func, address, &frames[n++]);
    return n;
}

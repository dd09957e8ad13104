/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of Go's code, from its own table: with lines, and with the calls that the compiler put
 * in.  For people, type arguments are left out as Go's own tools do:
 *
 *   slices.SortFunc[go.shape.[]int,go.shape.int]    slices.SortFunc[...]
 */
#include <string.h>

#include "symbol/clean.h"
#include "symbol/gopcln.h"
#include "symbol/names_int.h"

static const struct kiln_str dots = {"[...]", 5};

/* Writes the short form to `to`, which has room for the long one and the dots. */
static struct kiln_str shorten(struct kiln_str name, char *to)
{
    const char *open = name.len ? memchr(name.ptr, '[', name.len) : NULL;
    const char *close = name.len ? memrchr(name.ptr, ']', name.len) : NULL;
    size_t before, behind;

    /* "type:.eq.[4]string" is a function for a type, not one with type arguments. */
    if (!open || !close || close < open || kiln_str_starts(name, KILN_STR("type")))
        return name;
    before = (size_t)(open - name.ptr);
    behind = name.len - (size_t)(close + 1 - name.ptr);
    memcpy(to, name.ptr, before);
    memcpy(to + before, dots.ptr, dots.len);
    memcpy(to + before + dots.len, close + 1, behind);
    return (struct kiln_str){to, before + dots.len + behind};
}

static void add(struct kiln_gopcln *go, const struct kiln_go_func *func,
                const struct kiln_go_frame *found, struct kiln_frames *frames)
{
    char system_name[KILN_SYMTAB_NAME_MAX], function[KILN_SYMTAB_NAME_MAX + 8];
    struct kiln_name_frame frame = {.line = found->line, .start_line = found->start_line};
    struct kiln_str name = kiln_gopcln_name(go, found->name);

    /* It lives only until the file is asked for. */
    frame.system_name =
        (struct kiln_str){system_name, kiln_name_clean(name, system_name, sizeof(system_name))};
    frame.function = shorten(frame.system_name, function);
    frame.file = kiln_gopcln_file(go, func, found->file);
    kiln_frames_add(frames, &frame, KILN_STR_NONE);
}

bool kiln_names_find_go(struct kiln_gopcln *go, uint64_t address, struct kiln_frames *frames)
{
    struct kiln_go_frame found[KILN_NAME_FRAMES_MAX];
    struct kiln_go_func func;
    uint32_t index, n;

    if (kiln_gopcln_find(go, address, &index) < 0 || kiln_gopcln_func(go, index, &func) < 0)
        return false;
    n = kiln_gopcln_frames(go, &func, address, found, KILN_NAME_FRAMES_MAX);
    for (uint32_t i = 0; i < n; i++)
        add(go, &func, &found[i], frames);
    return frames->n > 0;
}

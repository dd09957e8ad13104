/* SPDX-License-Identifier: Apache-2.0 */
#include "store/names.h"

#include <errno.h>
#include <stdlib.h>

void kiln_names_init(struct kiln_names *names, size_t memory_bytes)
{
    *names = (struct kiln_names){.budget.limit = memory_bytes};
    kiln_buf_init(&names->text, memory_bytes);
}

void kiln_names_done(struct kiln_names *names)
{
    kiln_buf_done(&names->text);
    kiln_free(names->starts);
    names->starts = NULL;
    names->n = names->cap = 0;
}

const char *kiln_names_get(const struct kiln_names *names, uint32_t i)
{
    return names->text.ptr + names->starts[i];
}

struct adding {
    struct kiln_names *names;
    const char *folder, *ending;
};

static int add(void *context, const char *name)
{
    struct adding *a = context;
    struct kiln_names *names = a->names;
    size_t start = names->text.len;
    struct kiln_str text = kiln_str_of(name);
    int r;

    if (kiln_str_ends(text, KILN_STR(".tmp")) ||
        (a->ending && !kiln_str_ends(text, kiln_str_of(a->ending))))
        return 0;
    r = kiln_grow(&names->budget, (void **)&names->starts, &names->cap, (uint64_t)names->n + 1,
                  sizeof(*names->starts), UINT32_MAX);
    if (r < 0)
        return r;
    kiln_buf_puts(&names->text, a->folder);
    kiln_buf_putc(&names->text, '/');
    kiln_buf_add(&names->text, name, text.len + 1);
    if (names->text.error)
        return names->text.error;
    names->starts[names->n++] = start;
    return 0;
}

static int by_text(const void *a, const void *b, void *context)
{
    const char *text = context;

    return strcmp(text + *(const size_t *)a, text + *(const size_t *)b);
}

static int list(struct adding *a, struct kiln_io *io)
{
    struct kiln_names *names = a->names;
    uint32_t before = names->n;
    int r = io->list(io, a->folder, add, a);

    if (r == 0 && names->n > before)
        qsort_r(names->starts + before, names->n - before, sizeof(*names->starts), by_text,
                names->text.ptr);
    return r == -ENOENT || r == -ENOTDIR ? 0 : r;
}

int kiln_names_in(struct kiln_names *names, struct kiln_io *io, const char *folder)
{
    struct adding a = {.names = names, .folder = folder};

    return list(&a, io);
}

int kiln_names_below(struct kiln_names *names, struct kiln_io *io, const char *folder,
                     const char *ending)
{
    struct kiln_names folders;
    int r;

    kiln_names_init(&folders, names->budget.limit);
    r = kiln_names_in(&folders, io, folder);
    for (uint32_t i = 0; r == 0 && i < folders.n; i++) {
        struct adding a = {.names = names, .folder = kiln_names_get(&folders, i), .ending = ending};

        r = list(&a, io);
    }
    kiln_names_done(&folders);
    return r;
}

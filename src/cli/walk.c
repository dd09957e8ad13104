/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/walk.h"

#include <errno.h>
#include <fts.h>
#include <sys/stat.h>

#define PATHS_MAX       10000000u
#define PATHS_BYTES_MAX ((size_t)1 << 30)

void kiln_operands_init(struct kiln_operands *paths)
{
    *paths = (struct kiln_operands){.budget = {.limit = PATHS_BYTES_MAX}};
    kiln_arena_init(&paths->arena, &paths->budget);
}

void kiln_operands_done(struct kiln_operands *paths)
{
    kiln_array_free(&paths->budget, (void **)&paths->items, &paths->cap, sizeof(*paths->items));
    kiln_arena_done(&paths->arena);
}

static int add(struct kiln_operands *paths, const char *path, bool found)
{
    size_t size = strlen(path) + 1;
    char *copy = kiln_arena_alloc(&paths->arena, size);
    int r;

    if (!copy)
        return -ENOMEM;
    memcpy(copy, path, size);
    r = kiln_grow(&paths->budget, (void **)&paths->items, &paths->cap, (uint64_t)paths->n + 1,
                  sizeof(*paths->items), PATHS_MAX);
    if (r == 0)
        paths->items[paths->n++] = (struct kiln_path){copy, found};
    return r;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static bool is_file(const FTSENT *entry)
{
    struct stat st;

    if (entry->fts_info == FTS_SL)
        return stat(entry->fts_accpath, &st) == 0 && S_ISREG(st.st_mode);
    return entry->fts_info == FTS_F;
}

static int visit(struct kiln_operands *paths, FTS *tree, FTSENT *entry, struct kiln_err *err)
{
    bool hidden = !paths->hidden && entry->fts_level > 0 && entry->fts_name[0] == '.';

    if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS)
        return kiln_err_set(err, -entry->fts_errno, entry->fts_path, "%s",
                            kiln_err_text(-entry->fts_errno));
    if (hidden && entry->fts_info == FTS_D)
        fts_set(tree, entry, FTS_SKIP);
    if (hidden || !is_file(entry))
        return 0;
    return add(paths, entry->fts_path, true);
}

static int walk(struct kiln_operands *paths, const char *directory, struct kiln_err *err)
{
    char *roots[] = {(char *)(uintptr_t)directory, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
    FTSENT *entry;
    int r = tree ? 0 : -errno;

    while (r == 0 && (errno = 0, entry = fts_read(tree)))
        r = visit(paths, tree, entry, err);
    if (r == 0 && errno)
        r = -errno;
    if (tree)
        fts_close(tree);
    return r;
}

int kiln_operands_add(struct kiln_operands *paths, const char *operand, struct kiln_err *err)
{
    struct stat st;
    int r;

    if (stat(operand, &st) == 0 && S_ISDIR(st.st_mode))
        r = walk(paths, operand, err);
    else
        r = add(paths, operand, false); /* whoever opens it says what is wrong with it */
    return r < 0 ? kiln_err_set(err, r, operand, "%s", kiln_err_text(r)) : 0;
}

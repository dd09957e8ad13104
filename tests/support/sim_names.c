/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "sim_int.h"

/* Bytes of the folder's part of a path; 0: it is in the root. */
static size_t folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) : 0;
}

bool sim_is_in(const char *path, const char *folder)
{
    size_t n = strcmp(folder, ".") == 0 ? 0 : strlen(folder);

    return folder_bytes(path) == n && memcmp(path, folder, n) == 0;
}

struct sim_name *sim_tree_find(struct sim_tree *tree, const char *path)
{
    for (uint32_t i = 0; i < tree->n; i++)
        if (strcmp(tree->names[i].path, path) == 0)
            return &tree->names[i];
    return NULL;
}

void sim_tree_put(struct sim_tree *tree, const char *path, struct sim_file *file)
{
    struct sim_name *name = sim_tree_find(tree, path);

    if (!name && tree->n == tree->cap) {
        tree->cap = tree->cap ? 2 * tree->cap : 32;
        tree->names = realloc(tree->names, tree->cap * sizeof(*tree->names));
        if (!tree->names)
            abort();
    }
    if (!name) {
        name = &tree->names[tree->n++];
        memset(name, 0, sizeof(*name));
        memcpy(name->path, path, strlen(path) + 1);
    }
    name->file = file;
}

void sim_tree_remove(struct sim_tree *tree, const char *path)
{
    struct sim_name *name = sim_tree_find(tree, path);

    if (name)
        *name = tree->names[--tree->n];
}

void sim_tree_apply(struct sim_tree *tree, const struct sim_change *change)
{
    if (change->remove[0])
        sim_tree_remove(tree, change->remove);
    if (change->add[0])
        sim_tree_put(tree, change->add, change->file);
}

static bool has_folder(struct sim_tree *tree, const char *path)
{
    char folder[SIM_PATH] = "";
    size_t n = folder_bytes(path);
    struct sim_name *name;

    if (n == 0)
        return true;
    memcpy(folder, path, n);
    name = sim_tree_find(tree, folder);
    return name && !name->file;
}

void sim_tree_prune(struct sim_tree *tree)
{
    for (uint32_t i = 0; i < tree->n;) {
        if (has_folder(tree, tree->names[i].path)) {
            i++;
        } else {
            tree->names[i] = tree->names[--tree->n];
            i = 0;
        }
    }
}

void sim_tree_copy(struct sim_tree *to, const struct sim_tree *from)
{
    to->n = 0;
    for (uint32_t i = 0; i < from->n; i++)
        sim_tree_put(to, from->names[i].path, from->names[i].file);
}

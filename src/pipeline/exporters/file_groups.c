/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/exporters/file_groups.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "base/mem.h"
#include "core/part.h"

enum { PATH_BYTES = 4096, NAME_BYTES = 200 };

struct group {
    struct group *next; /* the one that was written to before */
    struct kiln_consumer *file;
    char path[];
};

struct kiln_file_groups {
    struct kiln_file_export_opts opts;
    pthread_mutex_t lock; /* of all below */
    struct group *first;
    uint32_t n;
};

/* ---- names ---- */

static bool is_name(struct kiln_str value)
{
    while (value.ptr) {
        struct kiln_str part = kiln_str_cut(&value, '/');

        if (part.len == 0 || part.len > NAME_BYTES || memchr(part.ptr, '\0', part.len) ||
            kiln_str_eq(part, KILN_STR(".")) || kiln_str_eq(part, KILN_STR("..")))
            return false;
    }
    return true;
}

/* The file of a resource; false where it has none. */
static bool path_of(const struct kiln_file_groups *groups, const struct kiln_batch *batch,
                    const struct kiln_resource *resource, char path[PATH_BYTES])
{
    const char *pattern = groups->opts.path, *star = strchr(pattern, '*');
    struct kiln_str value =
        kiln_set_text(batch, resource->attrs, kiln_str_of(groups->opts.group_by));
    int n;

    if (!value.ptr || !is_name(value))
        return false;
    n = snprintf(path, PATH_BYTES, "%.*s%.*s%s", (int)(star - pattern), pattern,
                 KILN_STR_ARG(value), star + 1);
    return n > 0 && n < PATH_BYTES;
}

/* ---- files ---- */

static void close_group(struct group *group)
{
    kiln_file_exporter_free(group->file);
    kiln_free(group);
}

static void close_last(struct kiln_file_groups *groups)
{
    struct group **at = &groups->first;

    while ((*at)->next)
        at = &(*at)->next;
    close_group(*at);
    *at = NULL;
    groups->n--;
}

static int open_group(struct kiln_file_groups *groups, const char *path, struct kiln_err *err)
{
    size_t n = strlen(path) + 1;
    struct group *group = kiln_calloc(1, sizeof(*group) + n);
    struct kiln_file_export_opts opts = groups->opts;
    int r;

    if (!group)
        return -ENOMEM;
    opts.path = memcpy(group->path, path, n);
    opts.group_by = NULL;
    opts.append = opts.create_directory = true;
    r = kiln_file_exporter_new(&opts, &group->file, err);
    if (r == 0)
        r = kiln_file_exporter_start(group->file, err);
    if (r < 0) {
        close_group(group);
        return r;
    }
    if (groups->n == groups->opts.open_max)
        close_last(groups);
    group->next = groups->first;
    groups->first = group;
    groups->n++;
    return 0;
}

/* The file is the first one then. */
static int find_group(struct kiln_file_groups *groups, const char *path, struct kiln_err *err)
{
    struct group **at = &groups->first, *found;

    while (*at && strcmp((*at)->path, path) != 0)
        at = &(*at)->next;
    found = *at;
    if (!found)
        return open_group(groups, path, err);
    *at = found->next;
    found->next = groups->first;
    groups->first = found;
    return 0;
}

/* ---- writing ---- */

static void reject(const struct kiln_batch *batch, const struct kiln_resource *resource,
                   struct kiln_file_rejects *rejects)
{
    for (uint32_t i = 0; i < resource->n_scopes; i++) {
        const struct kiln_scope *scope = &batch->scopes[resource->first_scope + i];

        rejects->profiles += scope->n_profiles;
        for (uint32_t k = 0; k < scope->n_profiles; k++)
            rejects->samples += batch->profiles[scope->first_profile + k].n_samples;
    }
}

static int write_resource(const struct kiln_file_groups *groups, const struct kiln_batch *batch,
                          uint32_t resource, struct kiln_err *err)
{
    const struct kiln_resource *from = &batch->resources[resource];
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < from->n_scopes; i++) {
        struct kiln_batch *part;

        r = kiln_part_scope(batch, resource, from->first_scope + i, &part, err);
        if (r < 0)
            return r;
        r = kiln_file_exporter_write(groups->first->file, part, err);
        kiln_batch_unref(part);
    }
    return r;
}

int kiln_file_groups_write(struct kiln_file_groups *groups, const struct kiln_batch *batch,
                           struct kiln_file_rejects *rejects, struct kiln_err *err)
{
    char path[PATH_BYTES];
    int r = 0;

    pthread_mutex_lock(&groups->lock);
    for (uint32_t i = 0; r == 0 && i < batch->n_resources; i++) {
        if (!path_of(groups, batch, &batch->resources[i], path)) {
            reject(batch, &batch->resources[i], rejects);
            continue;
        }
        r = find_group(groups, path, err);
        if (r == 0)
            r = write_resource(groups, batch, i, err);
    }
    pthread_mutex_unlock(&groups->lock);
    return r;
}

/* ---- made and ended ---- */

int kiln_file_groups_new(const struct kiln_file_export_opts *opts,
                         struct kiln_file_groups **ret_groups)
{
    struct kiln_file_groups *groups = kiln_calloc(1, sizeof(*groups));

    if (!groups)
        return -ENOMEM;
    groups->opts = *opts;
    pthread_mutex_init(&groups->lock, NULL);
    *ret_groups = groups;
    return 0;
}

void kiln_file_groups_free(struct kiln_file_groups *groups)
{
    if (!groups)
        return;
    while (groups->first) {
        struct group *group = groups->first;

        groups->first = group->next;
        close_group(group);
    }
    pthread_mutex_destroy(&groups->lock);
    kiln_free(groups);
}

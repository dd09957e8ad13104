/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chained hash of counted texts; a path is handed out as its text, whose head lies before it.
 */
#include "base/hash.h"
#include "host/process_int.h"

struct kiln_path {
    struct kiln_path *next;
    uint64_t hash;
    uint32_t refs;
    uint32_t len;
    char text[];
};

static struct kiln_path *head_of(const char *text)
{
    return (struct kiln_path *)(text - offsetof(struct kiln_path, text));
}

static struct kiln_path **bucket(struct kiln_paths *paths, uint64_t hash)
{
    return &paths->buckets[hash & (paths->n_buckets - 1)];
}

/* Twice as many buckets; without memory for them the chains grow longer. */
static bool widen(struct kiln_paths *paths)
{
    struct kiln_paths wide = *paths;

    wide.n_buckets = paths->n_buckets ? paths->n_buckets * 2 : 256;
    wide.buckets = kiln_calloc(wide.n_buckets, sizeof(struct kiln_path *));
    if (!wide.buckets)
        return paths->n_buckets > 0;
    for (uint32_t i = 0; i < paths->n_buckets; i++) {
        for (struct kiln_path *p = paths->buckets[i], *next; p; p = next) {
            struct kiln_path **to = bucket(&wide, p->hash);

            next = p->next;
            p->next = *to;
            *to = p;
        }
    }
    kiln_free(paths->buckets);
    *paths = wide;
    return true;
}

static size_t weight(size_t len)
{
    return sizeof(struct kiln_path) + len + 1;
}

static bool is_full(const struct kiln_paths *paths, size_t len)
{
    return paths->bytes_max && len && paths->bytes + weight(len) > paths->bytes_max;
}

const char *kiln_paths_get(struct kiln_paths *paths, struct kiln_str path)
{
    uint64_t hash = kiln_hash(path.ptr, path.len);
    struct kiln_path *p;

    if (path.len > KILN_PROCFS_PATH_MAX || (paths->n >= paths->n_buckets && !widen(paths)))
        return NULL;
    for (p = *bucket(paths, hash); p; p = p->next) {
        if (p->hash == hash && kiln_str_eq((struct kiln_str){p->text, p->len}, path)) {
            p->refs++;
            return p->text;
        }
    }
    if (is_full(paths, path.len))
        return kiln_paths_get(paths, KILN_STR(""));
    p = kiln_malloc(weight(path.len));
    if (!p)
        return NULL;
    *p = (struct kiln_path){*bucket(paths, hash), hash, 1, (uint32_t)path.len};
    if (path.len)
        memcpy(p->text, path.ptr, path.len);
    p->text[path.len] = '\0';
    *bucket(paths, hash) = p;
    paths->n++;
    paths->bytes += weight(path.len);
    return p->text;
}

const char *kiln_path_ref(const char *path)
{
    head_of(path)->refs++;
    return path;
}

void kiln_paths_unref(struct kiln_paths *paths, const char *path)
{
    struct kiln_path *p = path ? head_of(path) : NULL, **at;

    if (!p || --p->refs)
        return;
    for (at = bucket(paths, p->hash); *at != p; at = &(*at)->next)
        ;
    *at = p->next;
    paths->n--;
    paths->bytes -= weight(p->len);
    kiln_free(p);
}

void kiln_paths_forget(struct kiln_paths *paths)
{
    for (uint32_t i = 0; i < paths->n_buckets; i++) {
        for (struct kiln_path *p = paths->buckets[i], *next; p; p = next) {
            next = p->next;
            kiln_free(p);
        }
    }
    kiln_free(paths->buckets);
    *paths = (struct kiln_paths){0};
}

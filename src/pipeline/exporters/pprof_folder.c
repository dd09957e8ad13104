/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/exporters/pprof_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compress.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/pprof.h"
#include "codec/sidecar.h"
#include "core/part.h"
#include "core/type.h"

enum { PATH_BYTES = 4096, NAME_BYTES = 256 };
#define PPROF_MAX ((size_t)256 << 20)
#define JSON_MAX  ((size_t)1 << 20)
#define NAMES_MAX ((size_t)64 << 20)
#define FILES_MAX (1u << 20)

/* ---- writing ---- */

static int encode(const struct kiln_pprof_folder *folder, const struct kiln_batch *part,
                  struct kiln_buf *out, struct kiln_err *err)
{
    struct kiln_buf plain;
    int r;

    kiln_buf_init(&plain, PPROF_MAX);
    r = kiln_pprof_encode(part, NULL, &plain, err);
    if (r == 0)
        r = kiln_compress(folder->zstd ? KILN_ZSTD : KILN_GZIP, folder->level, kiln_buf_str(&plain),
                          out);
    kiln_buf_done(&plain);
    return r;
}

struct names {
    char json[PATH_BYTES + 8], profile[PATH_BYTES + 8];
};

static void name(const struct kiln_pprof_folder *folder, const char *stem, struct names *ret)
{
    snprintf(ret->json, sizeof(ret->json), "%s.json", stem);
    snprintf(ret->profile, sizeof(ret->profile), "%s.pb.%s", stem, folder->zstd ? "zst" : "gz");
}

/* Who finds the profile finds its JSON. */
static int write_both(struct kiln_pprof_folder *folder, const char *stem, struct kiln_str profile,
                      struct kiln_str text, struct kiln_err *err)
{
    struct names names;
    int r;

    kiln_buf_add(&folder->written, stem, strlen(stem) + 1);
    if (folder->written.error)
        return folder->written.error;
    name(folder, stem, &names);
    r = kiln_file_write(names.json, text, err);
    return r < 0 ? r : kiln_file_write(names.profile, profile, err);
}

/* The batch is tried again as a whole: what it has of it would be there twice. */
static void take_back(const struct kiln_pprof_folder *folder)
{
    const char *stem = folder->written.ptr;
    struct names names;

    for (size_t at = 0; at < folder->written.len; at += strlen(stem + at) + 1) {
        name(folder, stem + at, &names);
        unlink(names.profile);
        unlink(names.json);
    }
}

static int write_part(struct kiln_pprof_folder *folder, const struct kiln_batch *part,
                      struct kiln_str kind, struct kiln_err *err)
{
    struct kiln_buf profile, text;
    char stem[PATH_BYTES];
    int r;

    kiln_buf_init(&profile, PPROF_MAX);
    kiln_buf_init(&text, JSON_MAX);
    folder->n++;
    kiln_sidecar_encode(part, kind, NULL, 0, &text);
    r = text.error ? text.error : encode(folder, part, &profile, err);
    if (r == 0)
        r = kiln_sidecar_stem(folder->path, part, kind, folder->n, stem, sizeof(stem));
    if (r == 0)
        r = write_both(folder, stem, kiln_buf_str(&profile), kiln_buf_str(&text), err);
    kiln_buf_done(&profile);
    kiln_buf_done(&text);
    return r;
}

static int write_scope(struct kiln_pprof_folder *folder, const struct kiln_batch *batch,
                       uint32_t resource, uint32_t scope, struct kiln_str kind,
                       struct kiln_err *err)
{
    struct kiln_batch *part = NULL;
    int r = kiln_part_scope(batch, resource, scope, &part, err);

    if (r == 0)
        r = write_part(folder, part, kind, err);
    kiln_batch_unref(part);
    return r;
}

static int write_all(struct kiln_pprof_folder *folder, const struct kiln_batch *batch,
                     const struct kiln_type *types, struct kiln_err *err)
{
    int r = 0;

    for (uint32_t i = 0; i < batch->n_resources; i++) {
        const struct kiln_resource *resource = &batch->resources[i];

        for (uint32_t k = 0; r == 0 && k < resource->n_scopes; k++) {
            uint32_t scope = resource->first_scope + k;

            if (!kiln_part_is_empty(batch, scope))
                r = write_scope(folder, batch, i, scope,
                                types[batch->scopes[scope].first_profile].name, err);
        }
    }
    return r;
}

/* ---- what goes ---- */

struct old {
    char name[NAME_BYTES];
    uint64_t time_ns, bytes;
};

struct census {
    struct old *list;
    uint32_t n, cap;
    uint64_t bytes;
    struct kiln_budget budget;
};

static bool is_ours(struct kiln_str name)
{
    return kiln_str_starts(name, KILN_STR(KILN_SIDECAR_PREFIX)) && name.len < NAME_BYTES - 8 &&
           (kiln_str_ends(name, KILN_STR(".pb.gz")) || kiln_str_ends(name, KILN_STR(".pb.zst")));
}

static int count(struct census *c, int dir, const char *name)
{
    struct stat st;

    if (!is_ours(kiln_str_of(name)) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (kiln_grow(&c->budget, (void **)&c->list, &c->cap, (uint64_t)c->n + 1, sizeof(c->list[0]),
                  FILES_MAX) < 0)
        return -ENOMEM;
    c->list[c->n] =
        (struct old){.time_ns = kiln_timespec_ns(st.st_mtim), .bytes = (uint64_t)st.st_size};
    snprintf(c->list[c->n++].name, NAME_BYTES, "%s", name);
    c->bytes += (uint64_t)st.st_size;
    return 0;
}

static int by_age(const void *a, const void *b)
{
    const struct old *x = a, *y = b;

    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void remove_one(int dir, const struct old *old)
{
    char json[NAME_BYTES + 8];
    const char *ending = strstr(old->name, ".pb.");

    unlinkat(dir, old->name, 0);
    snprintf(json, sizeof(json), "%.*s.json", (int)(ending - old->name), old->name);
    unlinkat(dir, json, 0);
}

static void remove_old(const struct kiln_pprof_folder *folder, struct census *c, int dir)
{
    uint64_t now = kiln_clock_unix_ns();

    for (uint32_t i = 0; i < c->n; i++) {
        const struct old *old = &c->list[i];
        bool many = folder->files_max && c->n - i > folder->files_max;
        bool large = folder->bytes_max && c->bytes > folder->bytes_max;
        bool aged = folder->age_max_ns && old->time_ns + folder->age_max_ns < now;

        if (!many && !large && !aged)
            break;
        remove_one(dir, old);
        c->bytes -= old->bytes;
    }
}

static void rotate(const struct kiln_pprof_folder *folder)
{
    struct census c = {.budget = {.limit = SIZE_MAX / 2}};
    const struct dirent *entry;
    DIR *dir;

    if (!folder->files_max && !folder->bytes_max && !folder->age_max_ns)
        return;
    dir = opendir(folder->path);
    if (!dir)
        return;
    while ((entry = readdir(dir)) && count(&c, dirfd(dir), entry->d_name) == 0)
        ;
    if (c.n)
        qsort(c.list, c.n, sizeof(c.list[0]), by_age);
    remove_old(folder, &c, dirfd(dir));
    kiln_free(c.list);
    closedir(dir);
}

int kiln_pprof_folder_write(struct kiln_pprof_folder *folder, const struct kiln_batch *batch,
                            struct kiln_err *err)
{
    struct kiln_type *types;
    int r = kiln_types_of_batch(batch, true, &types);

    if (r < 0)
        return r;
    kiln_buf_init(&folder->written, NAMES_MAX);
    r = write_all(folder, batch, types, err);
    if (r < 0)
        take_back(folder);
    kiln_buf_done(&folder->written);
    kiln_free(types);
    rotate(folder);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files are kiln-<service>-<kind>-<time>-<pid>-<n>.pb.gz, with a .json beside each
 * (inproc/out/files.h): in the order of their names they are in that of their time, for each
 * process and kind.
 */
#include "cli/harvest.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/input.h"
#include "core/merge.h"
#include "core/remap.h"

enum { PROCESSES_MAX = 4096, FILES_MAX = 4096, JSON_BYTES_MAX = 1 << 20 };

#define MEMORY_BYTES ((size_t)8 << 20)

struct kiln_harvest_heap {
    char pid[16];
    struct kiln_batch *batch;
};

/* ---- parts of a batch ---- */

static uint32_t bit_of(struct kiln_str type)
{
    if (type.len > 6 && memcmp(type.ptr, "alloc_", 6) == 0)
        return KILN_HARVEST_ALLOC;
    if (type.len > 6 && memcmp(type.ptr, "inuse_", 6) == 0)
        return KILN_HARVEST_HEAP;
    if (kiln_str_eq(type, KILN_STR("contentions")) || kiln_str_eq(type, KILN_STR("delay")))
        return KILN_HARVEST_LOCK;
    return 0;
}

static void copy_profile(struct kiln_remap *remap, struct kiln_builder *b,
                         const struct kiln_batch *batch, uint32_t profile)
{
    const struct kiln_profile *p = &batch->profiles[profile];
    struct kiln_profile head = kiln_remap_profile(remap, profile);
    uint32_t to = kiln_builder_add_profile(b, &head);

    for (uint32_t i = p->first_sample; i < p->first_sample + p->n_samples; i++) {
        const struct kiln_sample *s = &batch->samples[i];

        kiln_builder_add_sample(b, to, kiln_remap_stack(remap, s->stack),
                                kiln_remap_set(remap, s->attrs), kiln_remap_link(remap, s->link),
                                kiln_sample_values(batch, s), kiln_sample_times(batch, s), s->n);
    }
}

static uint32_t copy_scope(struct kiln_remap *remap, struct kiln_builder *b,
                           const struct kiln_batch *batch, uint32_t scope, uint32_t wanted)
{
    const struct kiln_scope *from = &batch->scopes[scope];
    struct kiln_scope head = kiln_remap_scope(remap, scope);
    uint32_t n = 0;

    kiln_builder_add_scope(b, &head);
    for (uint32_t i = from->first_profile; i < from->first_profile + from->n_profiles; i++) {
        uint32_t type = batch->profiles[i].sample_type.type;

        if ((bit_of(batch->dict.strings[type]) & wanted) == 0)
            continue;
        copy_profile(remap, b, batch, i);
        n++;
    }
    return n;
}

static uint32_t copy_batch(struct kiln_remap *remap, struct kiln_builder *b,
                           const struct kiln_batch *batch, uint32_t wanted)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < batch->n_resources; i++) {
        const struct kiln_resource *resource = &batch->resources[i];

        kiln_remap_add_resource(remap, i);
        for (uint32_t j = 0; j < resource->n_scopes; j++)
            n += copy_scope(remap, b, batch, resource->first_scope + j, wanted);
    }
    return n;
}

/* The profiles of the values that are wanted; NULL: there is none. */
static int select_profiles(const struct kiln_batch *batch, uint32_t wanted,
                           struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct kiln_remap *remap = NULL;
    struct kiln_builder *b;
    uint32_t n;
    int r = kiln_builder_new(NULL, &b);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    r = kiln_remap_new(b, batch, NULL, &remap);
    if (r < 0) {
        kiln_builder_free(b);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    n = copy_batch(remap, b, batch, wanted);
    kiln_remap_free(remap);
    *ret_batch = NULL;
    if (n)
        return kiln_builder_finish(b, ret_batch, err);
    kiln_builder_free(b);
    return 0;
}

/* ---- what a file has ---- */

/* "kiln-app-memory-20260301T120000.250Z-4711-1.pb.gz": 4711 */
static void pid_of(const char *name, char ret_pid[16])
{
    const char *pid = "";

    for (const char *at = name; (at = strstr(at, "Z-")) != NULL;)
        pid = at += 2;
    snprintf(ret_pid, 16, "%.*s", (int)strspn(pid, "0123456789"), pid);
}

static int replace_heap(struct kiln_harvest *h, const char *name, struct kiln_batch *batch)
{
    struct kiln_harvest_heap *heap = h->heaps;
    void *array = h->heaps;
    char pid[16];
    int r;

    pid_of(name, pid);
    while (heap < h->heaps + h->n_heaps && strcmp(heap->pid, pid) != 0)
        heap++;
    if (heap == h->heaps + h->n_heaps) {
        r = kiln_grow(&h->budget, &array, &h->cap_heaps, (uint64_t)h->n_heaps + 1, sizeof(*heap),
                      PROCESSES_MAX);
        h->heaps = array;
        if (r < 0)
            return r;
        heap = &h->heaps[h->n_heaps++];
        *heap = (struct kiln_harvest_heap){0};
        memcpy(heap->pid, pid, sizeof(pid));
    }
    kiln_batch_unref(heap->batch);
    heap->batch = batch;
    return 0;
}

static int keep_heap(struct kiln_harvest *h, const char *name, const struct kiln_batch *batch,
                     struct kiln_err *err)
{
    struct kiln_batch *part;
    int r = select_profiles(batch, h->wanted & KILN_HARVEST_HEAP, &part, err);

    if (r < 0 || !part)
        return r;
    r = replace_heap(h, name, part);
    if (r < 0) {
        kiln_batch_unref(part);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    return 0;
}

static int keep_counts(struct kiln_harvest *h, const struct kiln_batch *batch, struct kiln_err *err)
{
    struct kiln_batch *part;
    int r = select_profiles(batch, h->wanted & ~KILN_HARVEST_HEAP, &part, err);

    if (r < 0 || !part)
        return r;
    r = kiln_tape_add(&h->tape, part, err);
    kiln_batch_unref(part);
    return r;
}

/* {"lost": {"ring": 3, ...}, ...}: samples that found no room, since the process began. */
static int read_lost(struct kiln_json *r, uint64_t *lost)
{
    static const char *const reasons[] = {"ring", "stacks", "live", "counts", "window"};
    struct kiln_str name;
    int n = kiln_json_object(r);

    while (n == 0 && (n = kiln_json_member(r, &name)) > 0) {
        uint64_t value = 0;

        n = kiln_json_u64(r, &value);
        for (size_t i = 0; n == 0 && i < KILN_ARRAY_LEN(reasons); i++)
            *lost += kiln_str_eq(name, kiln_str_of(reasons[i])) ? value : 0;
    }
    return n;
}

static void count_lost(struct kiln_harvest *h, const char *path)
{
    struct kiln_err err = {0};
    struct kiln_buf text;
    struct kiln_json r;
    struct kiln_str name;
    uint64_t lost = 0;
    int n;

    kiln_buf_init(&text, JSON_BYTES_MAX);
    if (kiln_file_read(path, &text, &err) < 0)
        kiln_buf_clear(&text);
    kiln_json_init(&r, kiln_buf_str(&text), &err);
    n = kiln_json_object(&r);
    while (n == 0 && (n = kiln_json_member(&r, &name)) > 0)
        n = kiln_str_eq(name, KILN_STR("lost")) ? read_lost(&r, &lost) : kiln_json_skip(&r);
    kiln_json_done(&r);
    kiln_buf_done(&text);
    if (lost > h->lost)
        h->lost = lost;
}

static int take_file(struct kiln_harvest *h, const char *name, struct kiln_err *err)
{
    char path[KILN_HARVEST_FOLDER + NAME_MAX + 8];
    struct kiln_input input = {0};
    int r;

    snprintf(path, sizeof(path), "%s/%s", h->folder, name);
    r = kiln_input_load(h->cli, path, &input, err);
    if (r == 0)
        r = keep_counts(h, input.batch, err);
    if (r == 0)
        r = keep_heap(h, name, input.batch, err);
    kiln_input_close(&input);
    h->files++;
    unlink(path);
    memcpy(strstr(path, ".pb.gz"), ".json", 6);
    count_lost(h, path);
    unlink(path);
    return r;
}

/* ---- the folder ---- */

static bool is_profile(const char *name)
{
    size_t n = strlen(name);

    return name[0] != '.' && n > 6 && strcmp(name + n - 6, ".pb.gz") == 0;
}

struct names {
    char (*items)[NAME_MAX + 1];
    uint32_t n, cap;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int list_profiles(struct kiln_harvest *h, struct names *names)
{
    DIR *dir = opendir(h->folder);
    struct dirent *entry;
    int r = dir ? 0 : -errno;

    while (r == 0 && (entry = readdir(dir)) != NULL) {
        void *array = names->items;

        if (!is_profile(entry->d_name))
            continue;
        r = kiln_grow(&h->budget, &array, &names->cap, (uint64_t)names->n + 1,
                      sizeof(*names->items), FILES_MAX);
        names->items = array;
        if (r == 0)
            snprintf(names->items[names->n++], sizeof(*names->items), "%s", entry->d_name);
    }
    if (dir)
        closedir(dir);
    if (names->n)
        qsort(names->items, names->n, sizeof(*names->items), by_name);
    return r == KILN_E_LIMIT ? 0 : r; /* the others the next time */
}

int kiln_harvest_gather(struct kiln_harvest *harvest, struct kiln_err *err)
{
    struct names names = {0};
    int r = list_profiles(harvest, &names);

    if (r < 0)
        kiln_err_set(err, r, harvest->folder, "%s", kiln_err_text(r));
    for (uint32_t i = 0; r == 0 && i < names.n; i++)
        r = take_file(harvest, names.items[i], err);
    kiln_array_free(&harvest->budget, (void **)&names.items, &names.cap, sizeof(*names.items));
    return r;
}

int kiln_harvest_open(struct kiln_harvest *harvest, const struct kiln_cli *cli, uint32_t wanted,
                      struct kiln_err *err)
{
    const char *folder = getenv("TMPDIR");

    *harvest = (struct kiln_harvest){.cli = cli, .wanted = wanted, .budget.limit = MEMORY_BYTES};
    kiln_tape_init(&harvest->tape);
    snprintf(harvest->folder, sizeof(harvest->folder), "%s/kiln-record-XXXXXX",
             folder && strlen(folder) < KILN_HARVEST_FOLDER - 24 ? folder : "/tmp");
    if (mkdtemp(harvest->folder))
        return 0;
    harvest->folder[0] = '\0';
    return kiln_err_set(err, -errno, NULL, "no folder for what is recorded: %s",
                        kiln_err_text(-errno));
}

static void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(folder);
}

void kiln_harvest_close(struct kiln_harvest *harvest)
{
    if (harvest->folder[0])
        remove_folder(harvest->folder);
    for (uint32_t i = 0; i < harvest->n_heaps; i++)
        kiln_batch_unref(harvest->heaps[i].batch);
    kiln_array_free(&harvest->budget, (void **)&harvest->heaps, &harvest->cap_heaps,
                    sizeof(*harvest->heaps));
    kiln_tape_done(&harvest->tape);
}

int kiln_harvest_take(struct kiln_harvest *harvest, struct kiln_batch **ret_batch,
                      struct kiln_err *err)
{
    int r = 0;

    for (uint32_t i = 0; i < harvest->n_heaps && r == 0; i++)
        r = kiln_tape_add(&harvest->tape, harvest->heaps[i].batch, err);
    return r < 0 ? r : kiln_tape_take(&harvest->tape, ret_batch, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list in memory says what is on disk; a file that goes is taken off the list first, and whoever
 * has it open reads on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "naming/depot_int.h"

#define QUOTA_DEFAULT    (UINT64_C(10) << 30)
#define MIN_FREE_DEFAULT (UINT64_C(128) << 20)
#define BUDGET           ((size_t)64 << 20)
#define SAVE_NS          (UINT64_C(6) * 3600 * KILN_NS_PER_S)
#define UPLOAD_NS        (UINT64_C(24) * 3600 * KILN_NS_PER_S)
#define REST_NS          (UINT64_C(600) * KILN_NS_PER_S)

const char *kiln_depot_file_id(const struct kiln_depot_file *file)
{
    return file->of[0] ? file->of : kiln_debug_build_id(&file->facts);
}

/* ---- opening ---- */

static void collect(void *context)
{
    struct kiln_depot *depot = context;
    struct kiln_metrics *m = depot->opts.metrics;
    struct kiln_depot_stats stats;

    kiln_depot_stats(depot, NULL, &stats);
    kiln_metric_set(kiln_metric_gauge(m, "kiln_symbols_bytes",
                                      "Bytes of debug files that are kept, and of uploads so far."),
                    (double)stats.used_bytes);
    kiln_metric_set(
        kiln_metric_gauge(m, "kiln_symbols_quota_bytes", "Bytes that debug files may take."),
        (double)stats.quota_bytes);
    kiln_metric_set(kiln_metric_gauge(m, "kiln_symbols_files", "Debug files that are kept."),
                    (double)stats.files);
}

static void measure(struct kiln_depot *depot)
{
    struct kiln_metrics *m = depot->opts.metrics;
    const char *gone = "kiln_symbols_removed_total", *gone_help = "Debug files that were removed.";

    depot->evicted =
        kiln_metric_get(m, KILN_COUNTER, gone, gone_help, KILN_LABELS("reason", "quota"));
    depot->retired =
        kiln_metric_get(m, KILN_COUNTER, gone, gone_help, KILN_LABELS("reason", "unused"));
    depot->taken = kiln_metric_counter(m, "kiln_symbols_uploads_total",
                                       "Debug files that were uploaded or fetched, and kept.");
    depot->refused = kiln_metric_counter(m, "kiln_symbols_refused_total",
                                         "Debug files that were uploaded, and not kept.");
    if (m)
        kiln_metrics_on_collect(m, collect, depot);
}

int kiln_depot_open(const struct kiln_depot_opts *opts, struct kiln_depot **ret_depot,
                    struct kiln_err *err)
{
    struct kiln_depot *depot = kiln_calloc(1, sizeof(*depot));
    int r;

    if (!depot)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    depot->opts = *opts;
    depot->opts.quota_bytes = opts->quota_bytes ? opts->quota_bytes : QUOTA_DEFAULT;
    depot->opts.min_free_bytes = opts->min_free_bytes ? opts->min_free_bytes : MIN_FREE_DEFAULT;
    if (!opts->tenant_quota_bytes || opts->tenant_quota_bytes > depot->opts.quota_bytes)
        depot->opts.tenant_quota_bytes = depot->opts.quota_bytes;
    depot->opts.upload_rest_ns = opts->upload_rest_ns ? opts->upload_rest_ns : REST_NS;
    depot->budget.limit = BUDGET;
    pthread_mutex_init(&depot->lock, NULL);
    r = kiln_depot_load(depot, err);
    if (r < 0) {
        kiln_depot_close(depot);
        return r;
    }
    measure(depot);
    *ret_depot = depot;
    return 0;
}

void kiln_depot_close(struct kiln_depot *depot)
{
    if (!depot)
        return;
    for (uint32_t i = 0; i < depot->n_files; i++)
        kiln_free(depot->files[i]);
    kiln_array_free(&depot->budget, (void **)&depot->files, &depot->cap_files,
                    sizeof(*depot->files));
    kiln_array_free(&depot->budget, (void **)&depot->uploads, &depot->cap_uploads,
                    sizeof(*depot->uploads));
    kiln_array_free(&depot->budget, (void **)&depot->owners, &depot->cap_owners,
                    sizeof(*depot->owners));
    pthread_mutex_destroy(&depot->lock);
    kiln_free(depot);
}

void kiln_depot_on_upload(struct kiln_depot *depot,
                          void (*uploaded)(void *context, const struct kiln_depot_file *file),
                          void *context)
{
    depot->uploaded = uploaded;
    depot->context = context;
}

/* ---- the list; with the lock ---- */

static struct kiln_depot_had had_of(const struct kiln_depot_file *file)
{
    return (struct kiln_depot_had){.bytes = file->facts.bytes, .files = 1};
}

int kiln_depot_add(struct kiln_depot *depot, const struct kiln_depot_file *file)
{
    struct kiln_depot_entry *entry;
    int r = kiln_grow(&depot->budget, (void **)&depot->files, &depot->cap_files,
                      depot->n_files + UINT64_C(1), sizeof(*depot->files), KILN_DEPOT_FILES_MAX);

    if (r < 0)
        return r;
    entry = kiln_calloc(1, sizeof(*entry));
    r = entry ? kiln_depot_charge(depot, file->tenant, had_of(file)) : -ENOMEM;
    if (r < 0) {
        kiln_free(entry);
        return r;
    }
    entry->file = *file;
    entry->saved_ns = file->used_ns;
    depot->files[depot->n_files++] = entry;
    return 0;
}

static void take_out(struct kiln_depot *depot, uint32_t i)
{
    struct kiln_depot_entry *entry = depot->files[i];

    kiln_depot_release(depot, entry->file.tenant, had_of(&entry->file));
    depot->files[i] = depot->files[--depot->n_files];
    kiln_free(entry);
}

/* The file goes before what is told of it, which means nothing alone. */
int kiln_depot_remove_at(struct kiln_depot *depot, uint32_t i)
{
    struct kiln_io *io = depot->opts.io;
    char path[KILN_DEPOT_PATH_MAX], aside[KILN_DEPOT_PATH_MAX];
    int r;

    kiln_depot_path(&depot->files[i]->file, "", path);
    kiln_depot_path(&depot->files[i]->file, ".json", aside);
    r = io->unlink(io, path);
    if (r < 0 && r != -ENOENT)
        return r;
    (void)io->unlink(io, aside);
    take_out(depot, i);
    return 0;
}

int kiln_depot_replace(struct kiln_depot *depot, const struct kiln_depot_file *file)
{
    char path[KILN_DEPOT_PATH_MAX], other[KILN_DEPOT_PATH_MAX];

    kiln_depot_path(file, "", path);
    for (uint32_t i = 0; i < depot->n_files; i++) {
        kiln_depot_path(&depot->files[i]->file, "", other);
        if (strcmp(path, other) == 0) {
            take_out(depot, i);
            break;
        }
    }
    return kiln_depot_add(depot, file);
}

static bool is_of(const struct kiln_depot_file *file, struct kiln_str build_id)
{
    if (file->of[0])
        return kiln_str_eq(kiln_str_of(file->of), build_id);
    return kiln_debug_facts_match(&file->facts, build_id);
}

struct kiln_depot_entry *kiln_depot_find(struct kiln_depot *depot, const char *tenant,
                                         struct kiln_str build_id, enum kiln_debug_kind kind)
{
    for (uint32_t i = 0; i < depot->n_files; i++) {
        struct kiln_depot_file *file = &depot->files[i]->file;

        if (file->facts.kind == kind && strcmp(file->tenant, tenant) == 0 && is_of(file, build_id))
            return depot->files[i];
    }
    return NULL;
}

/* ---- out ---- */

int kiln_depot_get(struct kiln_depot *depot, const char *tenant, struct kiln_str build_id,
                   enum kiln_debug_kind kind, int *ret_fd)
{
    struct kiln_io *io = depot->opts.io;
    struct kiln_depot_entry *entry;
    char path[KILN_DEPOT_PATH_MAX];
    int fd = -ENOENT;

    pthread_mutex_lock(&depot->lock);
    entry = kiln_depot_find(depot, tenant, build_id, kind);
    if (entry) {
        entry->file.used_ns = kiln_clock_unix_ns();
        kiln_depot_path(&entry->file, "", path);
        fd = io->open(io, path, O_RDONLY);
    }
    pthread_mutex_unlock(&depot->lock);
    if (fd < 0)
        return fd;
    *ret_fd = fd;
    return 0;
}

int kiln_depot_look(struct kiln_depot *depot, const char *tenant, struct kiln_str build_id,
                    enum kiln_debug_kind kind, struct kiln_depot_file *ret_file)
{
    struct kiln_depot_entry *entry;

    pthread_mutex_lock(&depot->lock);
    entry = kiln_depot_find(depot, tenant, build_id, kind);
    if (entry)
        *ret_file = entry->file;
    pthread_mutex_unlock(&depot->lock);
    return entry ? 0 : -ENOENT;
}

void kiln_depot_each(struct kiln_depot *depot, const char *tenant,
                     void (*each)(void *context, const struct kiln_depot_file *file), void *context)
{
    pthread_mutex_lock(&depot->lock);
    for (uint32_t i = 0; i < depot->n_files; i++)
        if (!tenant || strcmp(depot->files[i]->file.tenant, tenant) == 0)
            each(context, &depot->files[i]->file);
    pthread_mutex_unlock(&depot->lock);
}

int kiln_depot_delete(struct kiln_depot *depot, const char *tenant, struct kiln_str build_id,
                      uint32_t *ret_n, struct kiln_err *err)
{
    uint32_t n = 0;
    int r = 0;

    pthread_mutex_lock(&depot->lock);
    for (uint32_t i = depot->n_files; r == 0 && i-- > 0;) {
        if (strcmp(depot->files[i]->file.tenant, tenant) != 0 ||
            !is_of(&depot->files[i]->file, build_id))
            continue;
        r = kiln_depot_remove_at(depot, i);
        n += r == 0;
    }
    pthread_mutex_unlock(&depot->lock);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "cannot be removed: %s", kiln_err_text(r));
    *ret_n = n;
    return 0;
}

/* ---- keeping ---- */

void kiln_depot_use(struct kiln_depot *depot, const char *tenant, struct kiln_str build_id,
                    uint64_t now_ns)
{
    pthread_mutex_lock(&depot->lock);
    for (uint32_t i = 0; i < depot->n_files; i++) {
        struct kiln_depot_file *file = &depot->files[i]->file;

        if ((strcmp(file->tenant, tenant) == 0 || strcmp(file->tenant, KILN_DEPOT_SHARED) == 0) &&
            file->used_ns < now_ns && is_of(file, build_id))
            file->used_ns = now_ns;
    }
    pthread_mutex_unlock(&depot->lock);
}

/* The next file whose use the disk should know of; false: there is none. */
static bool next_unsaved(struct kiln_depot *depot, struct kiln_depot_file *ret_file)
{
    bool found = false;

    pthread_mutex_lock(&depot->lock);
    for (uint32_t i = 0; !found && i < depot->n_files; i++) {
        struct kiln_depot_entry *entry = depot->files[i];

        found = entry->file.used_ns > entry->saved_ns &&
                entry->file.used_ns - entry->saved_ns > SAVE_NS;
        if (found) {
            entry->saved_ns = entry->file.used_ns;
            *ret_file = entry->file;
        }
    }
    pthread_mutex_unlock(&depot->lock);
    return found;
}

void kiln_depot_retire(struct kiln_depot *depot, uint64_t now_ns, uint64_t age_ns)
{
    struct kiln_depot_file file;

    kiln_depot_forget_uploads(depot, now_ns > UPLOAD_NS ? now_ns - UPLOAD_NS : 0);
    pthread_mutex_lock(&depot->lock);
    for (uint32_t i = depot->n_files; i-- > 0;) {
        char path[KILN_DEPOT_PATH_MAX];
        uint64_t used_ns = depot->files[i]->file.used_ns;

        if (used_ns >= now_ns || now_ns - used_ns <= age_ns)
            continue;
        kiln_depot_path(&depot->files[i]->file, "", path);
        if (kiln_depot_remove_at(depot, i) < 0)
            continue;
        kiln_metric_add(depot->retired, 1);
        kiln_log(depot->opts.log, KILN_LOG_INFO, "a debug file was not used for long, and is gone",
                 "path", "%s", path, NULL);
    }
    pthread_mutex_unlock(&depot->lock);
    while (next_unsaved(depot, &file))
        if (kiln_depot_save(depot, &file) < 0)
            break;
}

void kiln_depot_stats(struct kiln_depot *depot, const char *tenant,
                      struct kiln_depot_stats *ret_stats)
{
    struct kiln_depot_had had;

    pthread_mutex_lock(&depot->lock);
    had = tenant ? kiln_depot_had(depot, tenant)
                 : (struct kiln_depot_had){depot->bytes, depot->n_files, depot->n_uploads};
    *ret_stats = (struct kiln_depot_stats){.quota_bytes = tenant ? depot->opts.tenant_quota_bytes
                                                                 : depot->opts.quota_bytes,
                                           .used_bytes = had.bytes,
                                           .files = had.files,
                                           .uploads = had.uploads};
    pthread_mutex_unlock(&depot->lock);
}

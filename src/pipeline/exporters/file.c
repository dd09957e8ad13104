/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/exporters/file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/otlp.h"
#include "codec/otlp_json.h"
#include "pipeline/exporters/file_groups.h"
#include "pipeline/exporters/pprof_folder.h"

enum { PATH_BYTES = 4096, RETRY_AFTER_S = 5, TIME_BYTES = 32 };
#define RECORD_MAX  ((size_t)1 << 30)
#define BACKUPS_MAX (1u << 20)

struct file_exporter {
    struct kiln_consumer consumer; /* first */
    struct kiln_file_export_opts opts;
    struct kiln_metric *sent, *failed;
    struct kiln_file_groups *groups; /* that have files instead of it; NULL: none */
    pthread_mutex_t lock;            /* of all below */
    int fd;
    uint64_t bytes;
    struct kiln_pprof_folder folder; /* of pprof, instead of a file */
};

/* ---- names ---- */

/* Where the ending of a path begins, and where its last part does. */
static void split_path(const char *path, size_t *ret_base, size_t *ret_end)
{
    const char *slash = strrchr(path, '/');
    const char *dot;

    *ret_base = slash ? (size_t)(slash - path) + 1 : 0;
    dot = strrchr(path + *ret_base, '.');
    *ret_end = dot && dot != path + *ret_base ? (size_t)(dot - path) : strlen(path);
}

/* "profiles-2026-03-01T12-00-00.123.json" of "profiles.json" */
static void backup_name(const struct file_exporter *x, uint64_t now, char name[PATH_BYTES])
{
    time_t seconds = (time_t)(now / KILN_NS_PER_S);
    char text[TIME_BYTES];
    struct tm at;
    size_t base, end;

    split_path(x->opts.path, &base, &end);
    if (x->opts.local_time)
        localtime_r(&seconds, &at);
    else
        gmtime_r(&seconds, &at);
    strftime(text, sizeof(text), "%Y-%m-%dT%H-%M-%S", &at);
    snprintf(name, PATH_BYTES, "%.*s-%s.%03u%s", (int)end, x->opts.path, text,
             (unsigned)(now / KILN_NS_PER_MS % 1000), x->opts.path + end);
}

/* ---- backups ---- */

struct backups {
    char **names;
    uint32_t n, cap;
    struct kiln_budget budget;
};

/* "-2026-03-01T12-00-00.123", and nothing that somebody else may have meant. */
static bool is_time(struct kiln_str text)
{
    static const char shape[] = "-dddd-dd-ddTdd-dd-dd.ddd";

    if (text.len != strlen(shape))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (shape[i] == 'd' ? !isdigit((unsigned char)text.ptr[i]) : text.ptr[i] != shape[i])
            return false;
    return true;
}

static bool is_backup(const struct file_exporter *x, struct kiln_str name)
{
    const char *path = x->opts.path;
    struct kiln_str stem, ending;
    size_t base, end;

    split_path(path, &base, &end);
    stem = (struct kiln_str){path + base, end - base};
    ending = kiln_str_of(path + end);
    return name.len > stem.len + ending.len && kiln_str_starts(name, stem) &&
           kiln_str_ends(name, ending) &&
           is_time((struct kiln_str){name.ptr + stem.len, name.len - stem.len - ending.len});
}

static int add_name(struct backups *b, const char *name)
{
    size_t n = strlen(name) + 1;
    char *copy = kiln_malloc(n);
    int r = copy ? kiln_grow(&b->budget, (void **)&b->names, &b->cap, (uint64_t)b->n + 1,
                             sizeof(b->names[0]), BACKUPS_MAX)
                 : -ENOMEM;

    if (r < 0) {
        kiln_free(copy);
        return r;
    }
    b->names[b->n++] = memcpy(copy, name, n);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_old(const struct file_exporter *x, int dir, const char *name)
{
    struct stat info;

    return x->opts.age_max_ns && fstatat(dir, name, &info, 0) == 0 &&
           kiln_timespec_ns(info.st_mtim) + x->opts.age_max_ns < kiln_clock_unix_ns();
}

/* The oldest go first: their names are in the order of time. */
static void remove_backups(const struct file_exporter *x)
{
    struct backups b = {.budget = {.limit = SIZE_MAX / 2}};
    char folder[PATH_BYTES];
    struct dirent *entry;
    size_t base, end;
    DIR *dir;

    split_path(x->opts.path, &base, &end);
    snprintf(folder, sizeof(folder), "%.*s", base ? (int)base : 1, base ? x->opts.path : ".");
    dir = opendir(folder);
    if (!dir)
        return;
    while ((entry = readdir(dir)))
        if (is_backup(x, kiln_str_of(entry->d_name)) && add_name(&b, entry->d_name) < 0)
            break;
    if (b.n)
        qsort(b.names, b.n, sizeof(b.names[0]), by_name);
    for (uint32_t i = 0; i < b.n; i++) {
        if ((x->opts.backups_max && b.n - i > x->opts.backups_max) ||
            is_old(x, dirfd(dir), b.names[i]))
            (void)!unlinkat(dirfd(dir), b.names[i], 0);
        kiln_free(b.names[i]);
    }
    kiln_free(b.names);
    closedir(dir);
}

/* ---- the file ---- */

static int open_file(struct file_exporter *x, bool append)
{
    struct stat info;
    int fd = open(x->opts.path, O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | (append ? 0 : O_TRUNC),
                  0640);

    if (fd < 0)
        return -errno;
    if (x->fd >= 0)
        close(x->fd);
    x->fd = fd;
    x->bytes = fstat(fd, &info) == 0 ? (uint64_t)info.st_size : 0;
    return 0;
}

/* Not over one that is there.  A file system that cannot promise that is asked before. */
static int rename_to_new(const char *path, const char *name)
{
    if (renameat2(AT_FDCWD, path, AT_FDCWD, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (access(name, F_OK) == 0)
        return -EEXIST;
    return rename(path, name) < 0 ? -errno : 0;
}

static int rotate(struct file_exporter *x)
{
    uint64_t now = kiln_clock_unix_ns();
    char name[PATH_BYTES];
    int r;

    do { /* of two in a millisecond, one has the name of the next */
        backup_name(x, now, name);
        r = rename_to_new(x->opts.path, name);
        now += KILN_NS_PER_MS;
    } while (r == -EEXIST);
    if (r < 0 && r != -ENOENT)
        return r;
    r = open_file(x, false);
    if (r == 0)
        remove_backups(x);
    return r;
}

/* All of it, or nothing of it: half a record would spoil those behind it. */
static int append_record(struct file_exporter *x, struct kiln_str record)
{
    int r = 0;

    pthread_mutex_lock(&x->lock);
    if (x->opts.rotate_bytes && x->bytes && x->bytes + record.len > x->opts.rotate_bytes)
        r = rotate(x);
    if (r == 0)
        r = kiln_fd_write(x->fd, record);
    if (r == 0)
        x->bytes += record.len;
    else
        (void)!ftruncate(x->fd, (off_t)x->bytes);
    pthread_mutex_unlock(&x->lock);
    return r;
}

/* ---- records ---- */

static void put_length(struct kiln_buf *out, size_t n)
{
    const char bytes[4] = {(char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};

    kiln_buf_add(out, bytes, sizeof(bytes));
}

static int encode(const struct file_exporter *x, const struct kiln_batch *batch,
                  struct kiln_buf *out, struct kiln_err *err)
{
    struct kiln_buf plain, packed;
    int r;

    kiln_buf_init(&plain, RECORD_MAX);
    kiln_buf_init(&packed, RECORD_MAX);
    r = x->opts.format == KILN_FILE_PROTO ? kiln_otlp_encode(batch, NULL, &plain, err)
                                          : kiln_otlp_json_encode(batch, &plain, err);
    if (r == 0 && x->opts.zstd)
        r = kiln_compress(KILN_ZSTD, x->opts.level, kiln_buf_str(&plain), &packed);
    if (r == 0) {
        const struct kiln_buf *content = x->opts.zstd ? &packed : &plain;

        if (x->opts.format == KILN_FILE_PROTO || x->opts.zstd)
            put_length(out, content->len);
        kiln_buf_add_str(out, kiln_buf_str(content)); /* JSON ends its line itself */
        r = out->error;
    }
    kiln_buf_done(&plain);
    kiln_buf_done(&packed);
    return r;
}

static int write_record(struct file_exporter *x, const struct kiln_batch *batch,
                        struct kiln_err *err)
{
    struct kiln_buf record;
    int r;

    kiln_buf_init(&record, RECORD_MAX);
    r = encode(x, batch, &record, err);
    if (r == 0)
        r = append_record(x, kiln_buf_str(&record));
    kiln_buf_done(&record);
    return r;
}

static int write_files(struct file_exporter *x, const struct kiln_batch *batch,
                       struct kiln_err *err)
{
    int r;

    pthread_mutex_lock(&x->lock);
    r = kiln_pprof_folder_write(&x->folder, batch, err);
    pthread_mutex_unlock(&x->lock);
    return r;
}

int kiln_file_exporter_write(struct kiln_consumer *exporter, const struct kiln_batch *batch,
                             struct kiln_err *err)
{
    struct file_exporter *x = (struct file_exporter *)exporter;

    return x->opts.format == KILN_FILE_PPROF ? write_files(x, batch, err)
                                             : write_record(x, batch, err);
}

/* What is not taken is counted here, and leaves *samples. */
static int write_groups(struct file_exporter *x, const struct kiln_batch *batch, uint32_t *samples,
                        struct kiln_outcome *outcome)
{
    struct kiln_file_rejects rejects = {0};
    int r = kiln_file_groups_write(x->groups, batch, &rejects, &outcome->err);

    if (r < 0 || !rejects.profiles)
        return r;
    (void)!kiln_err_set(&outcome->err, KILN_E_MALFORMED, NULL,
                        "the resource has no attribute \"%.60s\" that is the name of a file",
                        x->opts.group_by);
    outcome->rejected = rejects.profiles;
    kiln_metric_add(x->failed, rejects.samples);
    *samples -= rejects.samples;
    return 0;
}

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct file_exporter *x = (struct file_exporter *)consumer;
    struct kiln_outcome outcome = {.retry_after_s = RETRY_AFTER_S};
    uint32_t samples = delivery->batch ? delivery->batch->n_samples : 0;
    int r = 0;

    if (delivery->batch)
        r = x->groups ? write_groups(x, delivery->batch, &samples, &outcome)
                      : kiln_file_exporter_write(consumer, delivery->batch, &outcome.err);
    outcome.code = r == -ENOMEM ? -EAGAIN : r;
    if (r < 0) {
        (void)!kiln_err_set(&outcome.err, r, x->opts.path, "%s", kiln_err_text(r));
        if (r != -ENOMEM && r != -ENOSPC && r > -4096)
            outcome.code = -EIO;
    }
    kiln_metric_add(r < 0 ? x->failed : x->sent, samples);
    kiln_delivery_end(delivery, &outcome);
}

/* ---- made and ended ---- */

int kiln_file_exporter_new(const struct kiln_file_export_opts *opts,
                           struct kiln_consumer **ret_exporter, struct kiln_err *err)
{
    struct file_exporter *x = kiln_calloc(1, sizeof(*x));

    if (!x)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    x->consumer.consume = consume;
    x->opts = *opts;
    x->fd = -1;
    x->folder = (struct kiln_pprof_folder){.path = opts->path,
                                           .zstd = opts->zstd,
                                           .level = opts->level,
                                           .files_max = opts->backups_max,
                                           .bytes_max = opts->rotate_bytes,
                                           .age_max_ns = opts->age_max_ns};
    pthread_mutex_init(&x->lock, NULL);
    if (opts->group_by && kiln_file_groups_new(opts, &x->groups) < 0) {
        kiln_file_exporter_free(&x->consumer);
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    }
    x->sent = kiln_metric_get(opts->metrics, KILN_COUNTER, "otelcol_exporter_sent_profile_samples",
                              "Successfully sent to the destination.",
                              KILN_LABELS("exporter", opts->name));
    x->failed = kiln_metric_get(
        opts->metrics, KILN_COUNTER, "otelcol_exporter_send_failed_profile_samples",
        "In failed attempts to send to the destination.", KILN_LABELS("exporter", opts->name));
    *ret_exporter = &x->consumer;
    return 0;
}

/* A folder with all that it is in. */
static int make_folders(const struct file_exporter *x, const char *path, struct kiln_err *err)
{
    int r = kiln_file_make_folders(path, x->opts.folder_mode ? x->opts.folder_mode : 0755);

    return r < 0 ? kiln_err_set(err, r, path, "cannot be made: %s", kiln_err_text(r)) : 0;
}

static int open_folder(const struct file_exporter *x, struct kiln_err *err)
{
    struct stat info;
    int r = x->opts.create_directory ? make_folders(x, x->opts.path, err) : 0;

    if (r == 0 && (stat(x->opts.path, &info) < 0 || !S_ISDIR(info.st_mode)))
        r = kiln_err_set(err, -ENOTDIR, x->opts.path,
                         "is no folder: make it, or say create_directory: true");
    return r;
}

int kiln_file_exporter_start(struct kiln_consumer *exporter, struct kiln_err *err)
{
    struct file_exporter *x = (struct file_exporter *)exporter;
    char folder[PATH_BYTES];
    size_t base, end;
    int r = 0;

    if (x->groups) /* files are opened as they come */
        return 0;
    if (x->opts.format == KILN_FILE_PPROF)
        return open_folder(x, err);
    split_path(x->opts.path, &base, &end);
    snprintf(folder, sizeof(folder), "%.*s", base > 1 ? (int)base - 1 : 0, x->opts.path);
    if (x->opts.create_directory && folder[0])
        r = make_folders(x, folder, err);
    if (r == 0)
        r = open_file(x, x->opts.append || x->opts.rotate_bytes);
    return r < 0 ? kiln_err_set(err, r, x->opts.path, "cannot be written: %s", kiln_err_text(r))
                 : 0;
}

void kiln_file_exporter_free(struct kiln_consumer *exporter)
{
    struct file_exporter *x = (struct file_exporter *)exporter;

    if (!x)
        return;
    if (x->fd >= 0)
        close(x->fd);
    kiln_file_groups_free(x->groups);
    pthread_mutex_destroy(&x->lock);
    kiln_free(x);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An upload grows by its parts.  The last one makes it whole: it is synced, compared with what was
 * announced, looked at, and renamed.  Whatever is wrong with it, it is removed then: nobody could
 * go on with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/bytetext.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "naming/depot_int.h"

#define PIECE ((size_t)1 << 20)

/* ---- the list; with the lock ---- */

static struct kiln_depot_upload *find(struct kiln_depot *depot, const char *tenant,
                                      const char *sha256)
{
    for (uint32_t i = 0; i < depot->n_uploads; i++)
        if (strcmp(depot->uploads[i].sha256, sha256) == 0 &&
            strcmp(depot->uploads[i].tenant, tenant) == 0)
            return &depot->uploads[i];
    return NULL;
}

static void forget(struct kiln_depot *depot, struct kiln_depot_upload *upload)
{
    kiln_depot_release(depot, upload->tenant,
                       (struct kiln_depot_had){.bytes = upload->held, .uploads = 1});
    *upload = depot->uploads[--depot->n_uploads];
}

/* What it is charged with from now on; room for more was made before. */
static void hold(struct kiln_depot *depot, struct kiln_depot_upload *upload, uint64_t bytes)
{
    kiln_depot_release(depot, upload->tenant, (struct kiln_depot_had){.bytes = upload->held});
    upload->held = bytes;
    if (kiln_depot_charge(depot, upload->tenant, (struct kiln_depot_had){.bytes = bytes}) < 0)
        upload->held = 0; /* cannot be: the upload itself is charged */
}

static int begin(struct kiln_depot *depot, const char *tenant, const char *sha256,
                 struct kiln_depot_upload **ret_upload, struct kiln_err *err)
{
    struct kiln_depot_upload *upload;
    int r = kiln_depot_make_place(depot, tenant);

    if (r < 0)
        return kiln_err_set(err, r, NULL,
                            "too many uploads are under way: finish some of them first");
    r = kiln_grow(&depot->budget, (void **)&depot->uploads, &depot->cap_uploads,
                  depot->n_uploads + UINT64_C(1), sizeof(*depot->uploads), KILN_DEPOT_UPLOADS_MAX);
    if (r == 0)
        r = kiln_depot_folder(depot, tenant);
    if (r == 0)
        r = kiln_depot_charge(depot, tenant, (struct kiln_depot_had){.uploads = 1});
    if (r < 0)
        return kiln_err_set(err, r, NULL, "there is no folder for it: %s", kiln_err_text(r));
    upload = &depot->uploads[depot->n_uploads++];
    *upload = (struct kiln_depot_upload){.touched_ns = kiln_clock_unix_ns()};
    snprintf(upload->tenant, sizeof(upload->tenant), "%s", tenant);
    snprintf(upload->sha256, sizeof(upload->sha256), "%s", sha256);
    *ret_upload = upload;
    return 0;
}

/* Every part has the same total.  An upload found at the start has none yet. */
static int announce(struct kiln_depot *depot, struct kiln_depot_upload *upload, uint64_t total,
                    struct kiln_err *err)
{
    int r;

    if (upload->total == total && upload->received <= total)
        return 0;
    if (upload->total)
        return kiln_err_set(err, -EINVAL, "total", "another part of it said %llu",
                            (unsigned long long)upload->total);
    if (upload->received > total) { /* of a file that was not what it is now */
        upload->received = 0;
        hold(depot, upload, 0);
    }
    r = kiln_depot_check_total(depot, upload->tenant, total, total - upload->received, err);
    if (r == 0)
        upload->total = total;
    return r;
}

/* Room for what a part brings that has not come yet.  Others may go for it, and the list move. */
static int reserve(struct kiln_depot *depot, const struct kiln_depot_part *part, const char *sha256,
                   struct kiln_depot_upload **upload, struct kiln_err *err)
{
    uint64_t have = (*upload)->received - part->offset;
    uint64_t more = part->bytes.len > have ? part->bytes.len - have : 0;
    int r;

    (*upload)->busy = true;
    r = more ? kiln_depot_make_room(depot, part->tenant, more, err) : 0;
    *upload = find(depot, part->tenant, sha256);
    (*upload)->busy = r == 0;
    if (r == 0)
        hold(depot, *upload, (*upload)->received + more);
    return r;
}

void kiln_depot_drop_upload(struct kiln_depot *depot, struct kiln_depot_upload *upload)
{
    char path[KILN_DEPOT_PATH_MAX];

    kiln_depot_upload_path(upload, path);
    (void)depot->opts.io->unlink(depot->opts.io, path);
    forget(depot, upload);
}

void kiln_depot_forget_uploads(struct kiln_depot *depot, uint64_t before_ns)
{
    pthread_mutex_lock(&depot->lock);
    for (uint32_t i = depot->n_uploads; i-- > 0;)
        if (!depot->uploads[i].busy && depot->uploads[i].touched_ns < before_ns)
            kiln_depot_drop_upload(depot, &depot->uploads[i]);
    pthread_mutex_unlock(&depot->lock);
}

/* ---- from an upload to a file ---- */

static int hash_file(struct kiln_io *io, int fd, uint8_t ret_digest[KILN_SHA256_BYTES])
{
    char *piece = kiln_malloc(PIECE);
    struct kiln_sha256_run run;
    uint64_t at = 0;
    ssize_t n = 0;

    if (!piece)
        return -ENOMEM;
    kiln_sha256_begin(&run);
    while ((n = io->pread(io, fd, piece, PIECE, at)) > 0) {
        kiln_sha256_add(&run, (struct kiln_str){piece, (size_t)n});
        at += (uint64_t)n;
    }
    kiln_sha256_end(&run, ret_digest);
    kiln_free(piece);
    return n < 0 ? (int)n : 0;
}

static bool is_hex(struct kiln_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (kiln_hex_digit(text.ptr[i]) < 0)
            return false;
    return text.len > 0;
}

/* A dwp has no build id: it is of the program that it is said to be of. */
static int check_id(struct kiln_depot_file *file, struct kiln_str build_id, struct kiln_err *err)
{
    if (file->facts.kind == KILN_DEBUG_DWP) {
        if (!is_hex(build_id) || build_id.len > 2 * KILN_BUILD_ID_MAX)
            return kiln_err_set(err, -EINVAL, "build_id", "a dwp is kept by GNU's build id");
        snprintf(file->of, sizeof(file->of), "%.*s", KILN_STR_ARG(build_id));
        return 0;
    }
    if (kiln_debug_facts_match(&file->facts, build_id))
        return 0;
    return kiln_err_set(err, -EKEYREJECTED, "build_id", "the file is of build id %.64s",
                        kiln_debug_build_id(&file->facts));
}

/* A whole file that has no name yet. */
struct source {
    const char *path;
    int fd;
    struct kiln_str build_id;
    const char *sha256; /* of its upload; NULL: it was none */
};

/* From now on the file is charged and no longer the upload. */
static int enlist(struct kiln_depot *depot, const struct kiln_depot_file *file, const char *sha256)
{
    struct kiln_depot_upload *upload;
    int r;

    pthread_mutex_lock(&depot->lock);
    upload = sha256 ? find(depot, file->tenant, sha256) : NULL;
    r = kiln_depot_replace(depot, file);
    if (upload && r == 0)
        hold(depot, upload, 0);
    pthread_mutex_unlock(&depot->lock);
    return r;
}

/* Looks at a whole file that is synced, and gives it its name. */
static int settle(struct kiln_depot *depot, const struct source *from, struct kiln_depot_file *file,
                  struct kiln_err *err)
{
    struct kiln_io *io = depot->opts.io;
    char target[KILN_DEPOT_PATH_MAX], folder[KILN_DEPOT_PATH_MAX];
    int r = kiln_depot_inspect(io, from->fd, &file->facts, err);

    if (r == 0)
        r = check_id(file, from->build_id, err);
    if (r < 0)
        return r;
    file->came_ns = file->used_ns = kiln_clock_unix_ns();
    kiln_depot_path(file, "", target);
    memcpy(folder, target, sizeof(folder));
    *strrchr(folder, '/') = '\0';
    r = kiln_depot_save(depot, file);
    if (r == 0)
        r = io->rename(io, from->path, target);
    if (r == 0)
        r = io->sync_dir(io, folder);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "cannot be kept: %s", kiln_err_text(r));
    r = enlist(depot, file, from->sha256);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

static int finish(struct kiln_depot *depot, const struct kiln_depot_upload *upload,
                  const struct kiln_depot_part *part, struct kiln_depot_file *file,
                  struct kiln_err *err)
{
    struct kiln_io *io = depot->opts.io;
    uint8_t announced[KILN_SHA256_BYTES] = {0};
    char path[KILN_DEPOT_PATH_MAX];
    int fd, r;

    snprintf(file->tenant, sizeof(file->tenant), "%s", upload->tenant);
    snprintf(file->name, sizeof(file->name), "%.*s", KILN_STR_ARG(part->name));
    kiln_depot_upload_path(upload, path);
    fd = io->open(io, path, O_RDWR);
    if (fd < 0)
        return kiln_err_set(err, fd, NULL, "%s", kiln_err_text(fd));
    r = io->sync(io, fd);
    if (r == 0)
        r = hash_file(io, fd, file->sha256);
    if (r < 0)
        kiln_err_set(err, r, NULL, "cannot be written: %s", kiln_err_text(r));
    if (r == 0 && (kiln_hex_decode(kiln_str_of(upload->sha256), announced, sizeof(announced)) < 0 ||
                   memcmp(announced, file->sha256, sizeof(announced)) != 0))
        r = kiln_err_set(err, KILN_E_CORRUPT, "sha256",
                         "what came is not what was announced: send it again");
    if (r == 0)
        r = settle(depot, &(struct source){path, fd, part->build_id, upload->sha256}, file, err);
    io->close(io, fd);
    return r;
}

/* ---- a part ---- */

static int check_part(const struct kiln_depot_part *part, char ret_sha256[65], struct kiln_err *err)
{
    uint8_t digest[KILN_SHA256_BYTES];

    if (part->build_id.len == 0 || part->build_id.len > KILN_DEBUG_ID_MAX)
        return kiln_err_set(err, -EINVAL, "build_id", "this is no build id");
    if (part->total == 0 || part->offset > part->total ||
        part->bytes.len > part->total - part->offset)
        return kiln_err_set(err, -EINVAL, "offset", "the part ends behind the total");
    if (part->sha256.len == 0) {
        if (part->offset || part->bytes.len != part->total)
            return kiln_err_set(err, -EINVAL, "sha256", "of a file in parts it must be said");
        kiln_sha256(part->bytes, digest);
    } else if (kiln_hex_decode(part->sha256, digest, sizeof(digest)) < 0) {
        return kiln_err_set(err, -EINVAL, "sha256", "not 64 hexadecimal digits");
    }
    kiln_hex_encode(digest, sizeof(digest), ret_sha256);
    ret_sha256[64] = '\0';
    return 0;
}

/* Whether the tenant has this very file. */
static bool is_known(struct kiln_depot *depot, const struct kiln_depot_part *part,
                     const char *sha256, struct kiln_depot_state *ret_state)
{
    uint8_t digest[KILN_SHA256_BYTES];

    if (kiln_hex_decode(kiln_str_of(sha256), digest, sizeof(digest)) < 0)
        return false;
    for (uint32_t kind = 0; kind < KILN_DEBUG_KINDS; kind++) {
        const struct kiln_depot_entry *entry =
            kiln_depot_find(depot, part->tenant, part->build_id, (enum kiln_debug_kind)kind);

        if (!entry || memcmp(entry->file.sha256, digest, sizeof(digest)) != 0)
            continue;
        *ret_state = (struct kiln_depot_state){.received = part->total,
                                               .total = part->total,
                                               .complete = true,
                                               .known = true,
                                               .kind = (enum kiln_debug_kind)kind};
        snprintf(ret_state->build_id, sizeof(ret_state->build_id), "%s",
                 kiln_depot_file_id(&entry->file));
        return true;
    }
    return false;
}

/* The upload that a part is of, made busy; 1: nothing is to be done. */
static int enter(struct kiln_depot *depot, const struct kiln_depot_part *part, const char *sha256,
                 struct kiln_depot_upload *ret_upload, struct kiln_depot_state *ret_state,
                 struct kiln_err *err)
{
    struct kiln_depot_upload *upload;
    int r = 0;

    if (is_known(depot, part, sha256, ret_state))
        return 1;
    upload = find(depot, part->tenant, sha256);
    if (upload && upload->busy)
        return kiln_err_set(err, -EAGAIN, NULL, "somebody else is sending the same file");
    if (!upload)
        r = begin(depot, part->tenant, sha256, &upload, err);
    if (r < 0)
        return r;
    r = announce(depot, upload, part->total, err);
    if (r == 0 && part->offset > upload->received) {
        *ret_state = (struct kiln_depot_state){.received = upload->received, .total = part->total};
        r = kiln_err_set(err, -ESTALE, "offset", "%llu bytes have come: go on there",
                         (unsigned long long)upload->received);
    }
    if (r == 0)
        r = reserve(depot, part, sha256, &upload, err);
    if (r < 0) {
        if (upload->received == 0)
            forget(depot, upload);
        return r;
    }
    *ret_upload = *upload;
    return 0;
}

static int write_part(struct kiln_depot *depot, struct kiln_depot_upload *upload,
                      const struct kiln_depot_part *part, struct kiln_err *err)
{
    struct kiln_io *io = depot->opts.io;
    uint64_t have = upload->received - part->offset;
    char path[KILN_DEPOT_PATH_MAX];
    int fd, r;

    if (have >= part->bytes.len)
        return 0;
    kiln_depot_upload_path(upload, path);
    fd = io->open(io, path, O_RDWR | O_CREAT);
    r = fd < 0 ? fd : io->truncate(io, fd, upload->received);
    if (r == 0)
        r = io->pwrite(io, fd, part->bytes.ptr + have, part->bytes.len - have, upload->received);
    if (fd >= 0)
        io->close(io, fd);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "cannot be written: %s", kiln_err_text(r));
    upload->received += part->bytes.len - have;
    return 0;
}

/* What became of it: kept, given up, or waiting for more. */
static void leave(struct kiln_depot *depot, const struct kiln_depot_upload *upload, bool over)
{
    struct kiln_depot_upload *listed;

    pthread_mutex_lock(&depot->lock);
    listed = find(depot, upload->tenant, upload->sha256);
    if (listed && over) {
        kiln_depot_drop_upload(depot, listed);
    } else if (listed) {
        listed->received = upload->received;
        hold(depot, listed, upload->received);
        listed->touched_ns = kiln_clock_unix_ns();
        listed->busy = false;
    }
    pthread_mutex_unlock(&depot->lock);
}

/* The part of an upload that is ours alone by now. */
static int take_part(struct kiln_depot *depot, struct kiln_depot_upload *upload,
                     const struct kiln_depot_part *part, struct kiln_depot_state *ret_state,
                     struct kiln_err *err)
{
    struct kiln_depot_file file = {.came_ns = 0};
    int r = write_part(depot, upload, part, err);
    bool whole = r == 0 && upload->received == upload->total;

    if (whole)
        r = finish(depot, upload, part, &file, err);
    leave(depot, upload, whole || upload->received == 0);
    if (r < 0) {
        kiln_metric_add(depot->refused, 1);
        return r;
    }
    *ret_state = (struct kiln_depot_state){
        .received = upload->received, .total = upload->total, .complete = whole};
    if (!whole)
        return 0;
    ret_state->kind = file.facts.kind;
    snprintf(ret_state->build_id, sizeof(ret_state->build_id), "%s", kiln_depot_file_id(&file));
    kiln_metric_add(depot->taken, 1);
    if (depot->uploaded)
        depot->uploaded(depot->context, &file);
    return 0;
}

int kiln_depot_put(struct kiln_depot *depot, const struct kiln_depot_part *part,
                   struct kiln_depot_state *ret_state, struct kiln_err *err)
{
    struct kiln_depot_upload upload;
    char sha256[65];
    int r = check_part(part, sha256, err);

    if (r < 0)
        return r;
    pthread_mutex_lock(&depot->lock);
    r = enter(depot, part, sha256, &upload, ret_state, err);
    pthread_mutex_unlock(&depot->lock);
    if (r != 0)
        return r < 0 ? r : 0;
    return take_part(depot, &upload, part, ret_state, err);
}

/* ---- a file that somebody else writes ---- */

/* How large a file may be so that both the quota and the disk hold it. */
static int find_most(struct kiln_depot *depot, uint64_t *most, struct kiln_err *err)
{
    struct kiln_io *io = depot->opts.io;
    uint64_t free_bytes, all_bytes, keep = depot->opts.min_free_bytes;
    int r = io->space(io, &free_bytes, &all_bytes);

    if (r == 0 && free_bytes <= keep)
        return kiln_err_set(err, -ENOSPC, NULL, "the disk is too full");
    if (r == 0 && *most > free_bytes - keep)
        *most = free_bytes - keep;
    if (*most > depot->opts.quota_bytes)
        *most = depot->opts.quota_bytes;
    return 0;
}

int kiln_depot_fetch_begin(struct kiln_depot *depot, const char *tenant, uint64_t max,
                           struct kiln_depot_fetch *ret_fetch, struct kiln_err *err)
{
    struct kiln_depot_fetch fetch = {.fd = -1, .max = max};
    struct kiln_io *io = depot->opts.io;
    int r = find_most(depot, &fetch.max, err);

    if (r < 0)
        return r;
    r = kiln_depot_folder(depot, tenant);
    snprintf(fetch.path, sizeof(fetch.path), "debug/%s/%llx.fetch", tenant,
             (unsigned long long)kiln_clock_mono_ns());
    if (r == 0)
        r = fetch.fd = io->open(io, fetch.path, O_RDWR | O_CREAT | O_EXCL);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "cannot be made: %s", kiln_err_text(r));
    *ret_fetch = fetch;
    return 0;
}

/* Syncs, counts, and makes room for what came. */
static int weigh(struct kiln_depot *depot, const struct kiln_depot_fetch *fetch, const char *tenant,
                 struct kiln_depot_file *file, struct kiln_err *err)
{
    struct kiln_io *io = depot->opts.io;
    uint64_t size = 0;
    int r = io->size(io, fetch->fd, &size);

    if (r == 0)
        r = io->sync(io, fetch->fd);
    if (r == 0)
        r = hash_file(io, fetch->fd, file->sha256);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "cannot be written: %s", kiln_err_text(r));
    pthread_mutex_lock(&depot->lock);
    r = kiln_depot_make_room(depot, tenant, size, err);
    pthread_mutex_unlock(&depot->lock);
    return r;
}

int kiln_depot_fetch_end(struct kiln_depot *depot, struct kiln_depot_fetch *fetch,
                         const char *tenant, struct kiln_str build_id, bool keep,
                         struct kiln_err *err)
{
    struct kiln_depot_file file = {.came_ns = 0};
    struct kiln_io *io = depot->opts.io;
    int r = keep ? weigh(depot, fetch, tenant, &file, err) : 0;

    snprintf(file.tenant, sizeof(file.tenant), "%s", tenant);
    if (keep && r == 0)
        r = settle(depot, &(struct source){fetch->path, fetch->fd, build_id, NULL}, &file, err);
    if (!keep || r < 0)
        (void)io->unlink(io, fetch->path);
    io->close(io, fetch->fd);
    if (keep && r == 0)
        kiln_metric_add(depot->taken, 1);
    return r;
}

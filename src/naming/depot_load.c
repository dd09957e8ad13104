/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a start finds.  What a file is, it says itself; the small file beside it only tells what the
 * file cannot: {"name": ..., "of": ..., "sha256": ..., "bytes": ..., "came_ns": ..., "used_ns":
 * ...}. Without it, or with one of another size (of a file that did not get its name in time), the
 * file came now.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/bytetext.h"
#include "base/clock.h"
#include "base/json.h"
#include "naming/depot_int.h"

#define ROOT     "debug"
#define JSON_MAX ((size_t)8 << 10)

/* ---- names ---- */

void kiln_depot_path(const struct kiln_depot_file *file, const char *ending,
                     char ret_path[KILN_DEPOT_PATH_MAX])
{
    const char *id = file->of[0]          ? file->of
                     : file->facts.gnu[0] ? file->facts.gnu
                                          : file->facts.hash;

    snprintf(ret_path, KILN_DEPOT_PATH_MAX, ROOT "/%s/%s.%s%s", file->tenant, id,
             kiln_debug_kind_name(file->facts.kind), ending);
}

void kiln_depot_upload_path(const struct kiln_depot_upload *upload,
                            char ret_path[KILN_DEPOT_PATH_MAX])
{
    snprintf(ret_path, KILN_DEPOT_PATH_MAX, ROOT "/%s/%s.part", upload->tenant, upload->sha256);
}

int kiln_depot_folder(struct kiln_depot *depot, const char *tenant)
{
    struct kiln_io *io = depot->opts.io;
    char path[KILN_DEPOT_PATH_MAX];
    int r = io->mkdir(io, ROOT);

    snprintf(path, sizeof(path), ROOT "/%s", tenant);
    if (r == 0)
        r = io->mkdir(io, path);
    if (r == 0)
        r = io->sync_dir(io, ROOT);
    return r < 0 ? r : io->sync_dir(io, ".");
}

/* ---- what a file says ---- */

static int read_bytes(const struct kiln_bytes *bytes, uint64_t offset, void *to, size_t n)
{
    struct kiln_io *io = (struct kiln_io *)(uintptr_t)bytes->data;
    ssize_t got = io->pread(io, bytes->fd, to, n, offset);

    return got < 0 ? (int)got : (size_t)got < n ? KILN_E_TRUNCATED : 0;
}

int kiln_depot_inspect(struct kiln_io *io, int fd, struct kiln_debug_facts *ret_facts,
                       struct kiln_err *err)
{
    struct kiln_bytes bytes = {.read = read_bytes, .fd = fd, .data = io};
    int r = io->size(io, fd, &bytes.size);

    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r))
                 : kiln_debug_inspect(&bytes, ret_facts, err);
}

/* ---- what a file cannot say ---- */

static void put_text(struct kiln_json_out *w, const char *name, const char *text)
{
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, kiln_str_of(text));
}

static void put_number(struct kiln_json_out *w, const char *name, uint64_t number)
{
    kiln_json_put_name(w, name);
    kiln_json_put_u64(w, number);
}

int kiln_depot_save(struct kiln_depot *depot, const struct kiln_depot_file *file)
{
    char path[KILN_DEPOT_PATH_MAX], digits[65] = {0};
    struct kiln_json_out w;
    struct kiln_buf text;
    int r;

    kiln_hex_encode(file->sha256, sizeof(file->sha256), digits);
    kiln_depot_path(file, ".json", path);
    kiln_buf_init(&text, JSON_MAX);
    kiln_json_out_init(&w, &text, 0);
    kiln_json_put_object(&w);
    put_text(&w, "name", file->name);
    put_text(&w, "of", file->of);
    put_text(&w, "sha256", digits);
    put_number(&w, "bytes", file->facts.bytes);
    put_number(&w, "came_ns", file->came_ns);
    put_number(&w, "used_ns", file->used_ns);
    kiln_json_end_object(&w);
    r = text.error ? text.error : kiln_io_put(depot->opts.io, path, text.ptr, text.len);
    kiln_buf_done(&text);
    return r;
}

static int read_member(struct kiln_json *json, struct kiln_str name, struct kiln_depot_file *file,
                       uint64_t *bytes)
{
    struct kiln_str text;
    int r;

    if (kiln_str_eq(name, KILN_STR("bytes")))
        return kiln_json_u64(json, bytes);
    if (kiln_str_eq(name, KILN_STR("came_ns")))
        return kiln_json_u64(json, &file->came_ns);
    if (kiln_str_eq(name, KILN_STR("used_ns")))
        return kiln_json_u64(json, &file->used_ns);
    if (kiln_json_peek(json) != KILN_JSON_STRING)
        return kiln_json_skip(json);
    r = kiln_json_string(json, &text);
    if (r == 0 && kiln_str_eq(name, KILN_STR("name")))
        snprintf(file->name, sizeof(file->name), "%.*s", KILN_STR_ARG(text));
    else if (r == 0 && kiln_str_eq(name, KILN_STR("sha256")))
        r = kiln_hex_decode(text, file->sha256, sizeof(file->sha256));
    return r;
}

static void read_aside(struct kiln_depot *depot, struct kiln_depot_file *file)
{
    struct kiln_depot_file told = *file;
    char path[KILN_DEPOT_PATH_MAX];
    struct kiln_json json;
    struct kiln_str name;
    uint64_t bytes = 0;
    size_t n;
    void *data;
    int r;

    kiln_depot_path(file, ".json", path);
    if (kiln_io_get(depot->opts.io, path, JSON_MAX, &data, &n) < 0)
        return;
    kiln_json_init(&json, (struct kiln_str){data, n}, NULL);
    r = kiln_json_object(&json);
    while (r == 0 && (r = kiln_json_member(&json, &name)) > 0)
        r = read_member(&json, name, &told, &bytes);
    kiln_json_done(&json);
    kiln_free(data);
    if (r == 0 && bytes == file->facts.bytes)
        *file = told;
}

/* ---- the start ---- */

struct loading {
    struct kiln_depot *depot;
    const char *tenant;
    uint64_t now_ns;
};

static void drop(struct loading *loading, const char *name, const char *why)
{
    struct kiln_io *io = loading->depot->opts.io;
    char path[KILN_DEPOT_PATH_MAX];

    snprintf(path, sizeof(path), ROOT "/%s/%s", loading->tenant, name);
    if (io->unlink(io, path) == 0 && why)
        kiln_log(loading->depot->opts.log, KILN_LOG_WARN,
                 "a debug file is damaged, and was removed", "path", "%s", path, "reason", "%s",
                 why, NULL);
}

static int load_part(struct loading *loading, struct kiln_str name)
{
    struct kiln_depot *depot = loading->depot;
    struct kiln_io *io = depot->opts.io;
    struct kiln_depot_upload upload = {.touched_ns = loading->now_ns};
    char path[KILN_DEPOT_PATH_MAX];
    int fd, r;

    if (name.len != 64 || depot->n_uploads >= KILN_DEPOT_UPLOADS_MAX)
        return -EINVAL;
    snprintf(upload.tenant, sizeof(upload.tenant), "%s", loading->tenant);
    memcpy(upload.sha256, name.ptr, name.len);
    kiln_depot_upload_path(&upload, path);
    fd = io->open(io, path, O_RDONLY);
    if (fd < 0)
        return fd;
    r = io->size(io, fd, &upload.received);
    io->close(io, fd);
    if (r == 0)
        r = kiln_grow(&depot->budget, (void **)&depot->uploads, &depot->cap_uploads,
                      depot->n_uploads + UINT64_C(1), sizeof(upload), KILN_DEPOT_UPLOADS_MAX);
    upload.held = upload.received;
    if (r == 0)
        r = kiln_depot_charge(depot, upload.tenant,
                              (struct kiln_depot_had){.bytes = upload.held, .uploads = 1});
    if (r == 0)
        depot->uploads[depot->n_uploads++] = upload;
    return r;
}

/* ID.KIND; anything else in the name is not ours. */
static bool read_name(const char *name, enum kiln_debug_kind *ret_kind, size_t *ret_id_len)
{
    const char *dot = strrchr(name, '.');

    for (uint32_t kind = 0; dot && kind < KILN_DEBUG_KINDS; kind++) {
        if (strcmp(dot + 1, kiln_debug_kind_name((enum kiln_debug_kind)kind)) == 0) {
            *ret_kind = (enum kiln_debug_kind)kind;
            *ret_id_len = (size_t)(dot - name);
            return *ret_id_len > 0 && *ret_id_len <= KILN_DEBUG_ID_MAX;
        }
    }
    return false;
}

static int look_at(struct loading *loading, const char *name, struct kiln_depot_file *file,
                   struct kiln_err *err)
{
    struct kiln_io *io = loading->depot->opts.io;
    char path[KILN_DEPOT_PATH_MAX];
    int fd, r;

    snprintf(path, sizeof(path), ROOT "/%s/%s", loading->tenant, name);
    fd = io->open(io, path, O_RDONLY);
    if (fd < 0)
        return fd;
    r = kiln_depot_inspect(io, fd, &file->facts, err);
    io->close(io, fd);
    return r;
}

static int load_file(struct loading *loading, const char *name)
{
    struct kiln_depot_file file = {.came_ns = loading->now_ns, .used_ns = loading->now_ns};
    struct kiln_err err = {0};
    enum kiln_debug_kind kind;
    char again[KILN_DEPOT_PATH_MAX];
    size_t id_len;
    int r;

    if (!read_name(name, &kind, &id_len))
        return 0;
    snprintf(file.tenant, sizeof(file.tenant), "%s", loading->tenant);
    r = look_at(loading, name, &file, &err);
    if (r == -ENOMEM)
        return r;
    if (r == 0 && kind == KILN_DEBUG_DWP)
        snprintf(file.of, sizeof(file.of), "%.*s", (int)id_len, name);
    kiln_depot_path(&file, "", again);
    if (r < 0 || strcmp(strrchr(again, '/') + 1, name) != 0) {
        drop(loading, name, r < 0 ? err.text : "it is not what its name says");
        return 0;
    }
    read_aside(loading->depot, &file);
    return kiln_depot_add(loading->depot, &file);
}

static int load_name(void *context, const char *name)
{
    struct loading *loading = context;
    struct kiln_str text = kiln_str_of(name);

    if (kiln_str_ends(text, KILN_STR(".part"))) {
        text.len -= strlen(".part");
        if (load_part(loading, text) < 0)
            drop(loading, name, NULL);
        return 0;
    }
    if (kiln_str_ends(text, KILN_STR(".tmp")) || kiln_str_ends(text, KILN_STR(".fetch"))) {
        drop(loading, name, NULL);
        return 0;
    }
    return load_file(loading, name);
}

static int load_tenant(void *context, const char *name)
{
    struct loading *loading = context;
    char path[KILN_DEPOT_PATH_MAX];

    if (!kiln_tenant_valid(kiln_str_of(name)) && strcmp(name, KILN_DEPOT_SHARED) != 0)
        return 0;
    loading->tenant = name;
    snprintf(path, sizeof(path), ROOT "/%s", name);
    return loading->depot->opts.io->list(loading->depot->opts.io, path, load_name, loading);
}

int kiln_depot_load(struct kiln_depot *depot, struct kiln_err *err)
{
    struct loading loading = {.depot = depot, .now_ns = kiln_clock_unix_ns()};
    int r = depot->opts.io->list(depot->opts.io, ROOT, load_tenant, &loading);

    if (r < 0 && r != -ENOENT)
        return kiln_err_set(err, r, ROOT, "debug files cannot be listed: %s", kiln_err_text(r));
    return 0;
}

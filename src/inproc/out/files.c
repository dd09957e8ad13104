/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/out/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/gzip.h"
#include "base/json.h"
#include "base/mem.h"
#include "codec/pprof.h"
#include "core/remap.h"
#include "core/type.h"
#include "inproc/out/files_int.h"
#include "inproc/out/prepare.h"

enum { PPROF_MAX = 64 << 20, JSON_MAX = 1 << 20, TRIES = 3 };

/* ---- a part of a batch ---- */

static void copy_samples(struct kiln_remap *remap, struct kiln_builder *b,
                         const struct kiln_batch *batch, uint32_t profile, uint32_t to)
{
    const struct kiln_profile *p = &batch->profiles[profile];

    for (uint32_t i = p->first_sample; i < p->first_sample + p->n_samples; i++) {
        const struct kiln_sample *s = &batch->samples[i];

        kiln_builder_add_sample(b, to, kiln_remap_stack(remap, s->stack),
                                kiln_remap_set(remap, s->attrs), kiln_remap_link(remap, s->link),
                                kiln_sample_values(batch, s), kiln_sample_times(batch, s), s->n);
    }
}

static void copy_scope(struct kiln_remap *remap, struct kiln_builder *b,
                       const struct kiln_batch *batch, uint32_t scope)
{
    const struct kiln_scope *from = &batch->scopes[scope];
    struct kiln_scope head = kiln_remap_scope(remap, scope);

    kiln_builder_add_scope(b, &head);
    for (uint32_t i = from->first_profile; i < from->first_profile + from->n_profiles; i++) {
        struct kiln_profile profile = kiln_remap_profile(remap, i);

        copy_samples(remap, b, batch, i, kiln_builder_add_profile(b, &profile));
    }
}

/* One scope of a batch, with its resource, as a batch of its own. */
static int take_scope(const struct kiln_batch *batch, uint32_t resource, uint32_t scope,
                      struct kiln_batch **ret_part, struct kiln_err *err)
{
    struct kiln_remap *remap = NULL;
    struct kiln_builder *b;
    int r = kiln_builder_new(NULL, &b);

    if (r < 0)
        return r;
    r = kiln_remap_new(b, batch, NULL, &remap);
    if (r < 0) {
        kiln_builder_free(b);
        return r;
    }
    kiln_remap_add_resource(remap, resource);
    copy_scope(remap, b, batch, scope);
    kiln_remap_free(remap);
    return kiln_builder_finish(b, ret_part, err);
}

/* ---- what is written ---- */

static int encode(const struct kiln_batch *part, struct kiln_buf *out, struct kiln_err *err)
{
    struct kiln_buf plain;
    int r;

    kiln_buf_init(&plain, PPROF_MAX);
    r = kiln_pprof_encode(part, NULL, &plain, err);
    if (r == 0)
        r = kiln_gzip(KILN_IN_GZIP_LEVEL, kiln_buf_str(&plain), out);
    kiln_buf_done(&plain);
    return r;
}

/* A time as people and `kiln push` read it: "2026-03-01T12:00:00.250Z". */
static void put_time(struct kiln_json_out *w, const char *name, uint64_t ns)
{
    char text[40];

    kiln_in_files_time(ns, false, text);
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, kiln_str_of(text));
}

/* Its own member for what has one, an attribute for the rest. */
static void put_attributes(struct kiln_json_out *w, const struct kiln_batch *part)
{
    static const struct {
        struct kiln_str key;
        const char *name;
    } known[] = {
        {{"service.name", 12}, "service"},
        {{"service.version", 15}, "version"},
        {{"git.commit", 10}, "commit"},
        {{"deployment.environment", 22}, "environment"},
    };
    uint32_t set = part->n_resources ? part->resources[0].attrs : 0;
    struct kiln_range range = part->dict.sets[set];

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct kiln_str value = kiln_set_text(part, set, known[i].key);

        if (!value.len)
            continue;
        kiln_json_put_name(w, known[i].name);
        kiln_json_put_str(w, value);
    }
    kiln_json_put_name(w, "attributes");
    kiln_json_put_object(w);
    for (uint32_t i = 0; i < range.n; i++) {
        const struct kiln_attr *attr = &part->dict.attrs[part->dict.members[range.first + i]];

        if (attr->value.kind != KILN_VALUE_STRING)
            continue;
        kiln_json_put_name_str(w, kiln_batch_str(part, attr->key));
        kiln_json_put_str(w, kiln_batch_str(part, (uint32_t)attr->value.str));
    }
    kiln_json_end_object(w);
}

static void put_losses(struct kiln_json_out *w, const struct kiln_in_files_loss *losses, uint32_t n)
{
    kiln_json_put_name(w, "lost");
    kiln_json_put_object(w);
    for (uint32_t i = 0; i < n; i++) {
        kiln_json_put_name(w, losses[i].name);
        kiln_json_put_u64(w, losses[i].n);
    }
    kiln_json_end_object(w);
}

static void describe(const struct kiln_batch *part, struct kiln_str kind,
                     const struct kiln_in_files_loss *losses, uint32_t n_losses,
                     struct kiln_buf *out)
{
    const struct kiln_profile *first = &part->profiles[0];
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 2);
    kiln_json_put_object(&w);
    put_attributes(&w, part);
    kiln_json_put_name(&w, "type");
    kiln_json_put_str(&w, kind);
    put_time(&w, "window_start", first->time_ns);
    put_time(&w, "window_end", first->time_ns + first->duration_ns);
    put_losses(&w, losses, n_losses);
    kiln_json_end_object(&w);
    kiln_buf_putc(out, '\n');
}

/* ---- writing ---- */

/* Not by way of the process' umask, as kiln_file_write() does: it is the program's. */
static int write_file(const char *path, struct kiln_str data)
{
    char temporary[KILN_IN_FILES_PATH + 16];
    int fd, r;

    snprintf(temporary, sizeof(temporary), "%s.tmp", path);
    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return -errno;
    r = kiln_fd_write(fd, data);
    if (close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && rename(temporary, path) < 0)
        r = -errno;
    if (r < 0)
        unlink(temporary);
    return r;
}

/* Where the disk is full an older one makes room, a few times. */
static int write_in_room(struct kiln_in_files *files, const char *path, struct kiln_str data)
{
    int r = write_file(path, data);

    for (int i = 0; i < TRIES && (r == -ENOSPC || r == -EDQUOT); i++) {
        if (!kiln_in_files_remove_oldest(files))
            return r;
        r = write_file(path, data);
    }
    return r;
}

static int write_both(struct kiln_in_files *files, const char *stem, struct kiln_str profile,
                      struct kiln_str text)
{
    char path[KILN_IN_FILES_PATH + 8];
    int r;

    snprintf(path, sizeof(path), "%s.json", stem);
    r = write_in_room(files, path, text);
    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "%s.pb.gz", stem);
    r = write_in_room(files, path, profile);
    if (r < 0) {
        snprintf(path, sizeof(path), "%s.json", stem);
        unlink(path);
    }
    return r;
}

static int write_part(struct kiln_in_files *files, const struct kiln_batch *part,
                      struct kiln_str kind, const struct kiln_in_files_loss *losses,
                      uint32_t n_losses)
{
    struct kiln_buf profile, text;
    char stem[KILN_IN_FILES_PATH];
    struct kiln_err err = {0};
    int r;

    kiln_buf_init(&profile, PPROF_MAX);
    kiln_buf_init(&text, JSON_MAX);
    r = encode(part, &profile, &err);
    describe(part, kind, losses, n_losses, &text);
    if (r == 0)
        r = text.error;
    if (r == 0)
        r = kiln_in_files_stem(files, part, kind, stem);
    if (r == 0)
        r = write_both(files, stem, kiln_buf_str(&profile), kiln_buf_str(&text));
    kiln_buf_done(&profile);
    kiln_buf_done(&text);
    return r;
}

static bool is_empty(const struct kiln_batch *batch, const struct kiln_scope *scope)
{
    for (uint32_t i = 0; i < scope->n_profiles; i++)
        if (batch->profiles[scope->first_profile + i].n_samples)
            return false;
    return true;
}

/* Each scope of a resource; the first error. */
static int write_scopes(struct kiln_in_files *files, const struct kiln_batch *batch,
                        const struct kiln_type *types, const struct kiln_in_files_loss *losses,
                        uint32_t n_losses)
{
    int result = 0;

    for (uint32_t k = 0; k < batch->n_resources; k++) {
        const struct kiln_resource *resource = &batch->resources[k];

        for (uint32_t i = resource->first_scope; i < resource->first_scope + resource->n_scopes;
             i++) {
            struct kiln_batch *part = NULL;
            int r;

            if (is_empty(batch, &batch->scopes[i]))
                continue;
            r = take_scope(batch, k, i, &part, NULL);
            if (r == 0)
                r = write_part(files, part, types[batch->scopes[i].first_profile].name, losses,
                               n_losses);
            kiln_batch_unref(part);
            files->written += r == 0;
            files->lost += r < 0;
            result = result ? result : r;
        }
    }
    return result;
}

int kiln_in_files_write(struct kiln_in_files *files, const struct kiln_batch *batch,
                        const struct kiln_in_files_loss *losses, uint32_t n_losses,
                        struct kiln_err *err)
{
    struct kiln_type *types;
    int r = kiln_types_of_batch(batch, true, &types);

    if (r == 0) {
        (void)mkdir(files->folder, 0755);
        files->windows++;
        r = write_scopes(files, batch, types, losses, n_losses);
        kiln_free(types);
        kiln_in_files_rotate(files);
    }
    return r < 0 ? kiln_err_set(err, r, files->folder, "%s", kiln_err_text(r)) : 0;
}

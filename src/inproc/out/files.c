/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/out/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/gzip.h"
#include "base/mem.h"
#include "codec/pprof.h"
#include "core/part.h"
#include "core/type.h"
#include "inproc/out/files_int.h"
#include "inproc/out/prepare.h"

enum { PPROF_MAX = 64 << 20, JSON_MAX = 1 << 20, TRIES = 3 };

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

/* ---- writing ---- */

/*
 * Profiles are for the program's user alone.  The new file is never one that was there before:
 * in a folder such as /tmp, another user could have made it.  kiln_file_write() is not used because
 * it depends on the umask, which is the program's.
 */
static int write_file(const char *path, struct kiln_str data)
{
    char temporary[KILN_IN_FILES_PATH + 16];
    int fd, r;

    snprintf(temporary, sizeof(temporary), "%s.tmp", path);
    unlink(temporary); /* of a process of the same number that died while it wrote */
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
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
                      struct kiln_str kind, const struct kiln_sidecar_loss *losses,
                      uint32_t n_losses)
{
    struct kiln_buf profile, text;
    char stem[KILN_IN_FILES_PATH];
    struct kiln_err err = {0};
    int r;

    kiln_buf_init(&profile, PPROF_MAX);
    kiln_buf_init(&text, JSON_MAX);
    r = encode(part, &profile, &err);
    kiln_sidecar_encode(part, kind, losses, n_losses, &text);
    if (r == 0)
        r = text.error;
    if (r == 0)
        r = kiln_sidecar_stem(files->folder, part, kind, files->windows, stem, sizeof(stem));
    if (r == 0)
        r = write_both(files, stem, kiln_buf_str(&profile), kiln_buf_str(&text));
    kiln_buf_done(&profile);
    kiln_buf_done(&text);
    return r;
}

/* Each scope of a resource; the first error. */
static int write_scopes(struct kiln_in_files *files, const struct kiln_batch *batch,
                        const struct kiln_type *types, const struct kiln_sidecar_loss *losses,
                        uint32_t n_losses)
{
    int result = 0;

    for (uint32_t k = 0; k < batch->n_resources; k++) {
        const struct kiln_resource *resource = &batch->resources[k];

        for (uint32_t i = resource->first_scope; i < resource->first_scope + resource->n_scopes;
             i++) {
            struct kiln_batch *part = NULL;
            int r;

            if (kiln_part_is_empty(batch, i))
                continue;
            r = kiln_part_scope(batch, k, i, &part, NULL);
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

/* False: the next file will tell why. */
static bool make_folder(const char *path)
{
    return mkdir(path, 0755) == 0 || (errno == ENOENT && kiln_file_make_folders(path, 0755) == 0);
}

int kiln_in_files_write(struct kiln_in_files *files, const struct kiln_batch *batch,
                        const struct kiln_sidecar_loss *losses, uint32_t n_losses,
                        struct kiln_err *err)
{
    struct kiln_type *types;
    int r = kiln_types_of_batch(batch, true, &types);

    if (r == 0) {
        (void)make_folder(files->folder);
        files->windows++;
        r = write_scopes(files, batch, types, losses, n_losses);
        kiln_free(types);
        kiln_in_files_rotate(files);
    }
    return r < 0 ? kiln_err_set(err, r, files->folder, "%s", kiln_err_text(r)) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files at rest never change, so a backup of them is hard links where that can be.  store.json
 * comes last: a directory without it is no store, and half a backup is not taken for a whole one.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "store/backup.h"
#include "store/names.h"
#include "store/store_int.h"

#define NAMES_BYTES ((size_t)64 << 20)
#define IDENTITY    "store.json"

struct transfer {
    struct kiln_io *from, *to;
    const struct kiln_transfer_opts *opts;
    struct kiln_err *err;
    uint32_t done, all;
};

static int failed(struct transfer *t, const char *path, int code)
{
    return kiln_err_set(t->err, code, path, "cannot be copied: %s", kiln_err_text(code));
}

static int transfer_file(struct transfer *t, const char *path)
{
    int r = t->opts && t->opts->copy ? kiln_io_copy_across(t->from, path, t->to, path)
                                     : kiln_io_link_across(t->from, path, t->to, path);

    t->done++;
    if (t->opts && t->opts->progress)
        t->opts->progress(t->opts->context, t->done, t->all);
    return r < 0 ? failed(t, path, r) : 0;
}

/* Makes the folder of a path where it is another than that of the path before; syncs that one. */
static int change_folder(struct transfer *t, const char *path, char *folder, size_t size)
{
    const char *slash = strrchr(path, '/');
    size_t n = (size_t)(slash - path);
    int r = 0;

    if (strlen(folder) == n && memcmp(folder, path, n) == 0)
        return 0;
    if (folder[0])
        r = t->to->sync_dir(t->to, folder);
    if (r == 0 && snprintf(folder, size, "%.*s", (int)n, path) >= (int)size)
        r = -ENAMETOOLONG;
    if (r == 0)
        r = t->to->mkdir(t->to, folder);
    return r < 0 ? failed(t, path, r) : 0;
}

static int transfer_below(struct transfer *t, const char *top, const struct kiln_names *names)
{
    char folder[KILN_PATH_MAX * 2] = "";
    int r = t->to->mkdir(t->to, top);

    if (r < 0)
        return failed(t, top, r);
    for (uint32_t i = 0; r == 0 && i < names->n; i++) {
        const char *path = kiln_names_get(names, i);

        r = change_folder(t, path, folder, sizeof(folder));
        if (r == 0)
            r = transfer_file(t, path);
    }
    if (r < 0)
        return r;
    if (folder[0])
        r = t->to->sync_dir(t->to, folder);
    if (r == 0)
        r = t->to->sync_dir(t->to, top);
    return r < 0 ? failed(t, top, r) : 0;
}

/* Folders whose files are replaced as a whole, or not at all; temporary names have other endings.
 */
static const struct {
    const char *name, *ending;
} folders[] = {{"blocks", NULL}, {"symbols", NULL}, {"kept", ".json"}};

static int transfer_all(struct transfer *t, struct kiln_names *names)
{
    int r = 0;

    t->all = 1;
    for (uint32_t i = 0; r == 0 && i < KILN_ARRAY_LEN(folders); i++) {
        r = kiln_names_below(&names[i], t->from, folders[i].name, folders[i].ending);
        t->all += names[i].n;
    }
    if (r < 0)
        return failed(t, "blocks", r);
    for (uint32_t i = 0; r == 0 && i < KILN_ARRAY_LEN(folders); i++)
        if (names[i].n || !folders[i].ending)
            r = transfer_below(t, folders[i].name, &names[i]);
    if (r == 0)
        r = transfer_file(t, IDENTITY);
    if (r == 0) {
        r = t->to->sync_dir(t->to, ".");
        r = r < 0 ? failed(t, ".", r) : 0;
    }
    return r;
}

/* All that is at rest in one directory into another, empty one; synced. */
static int transfer(struct kiln_io *from, struct kiln_io *to, const struct kiln_transfer_opts *opts,
                    struct kiln_err *err)
{
    struct transfer t = {.from = from, .to = to, .opts = opts, .err = err};
    struct kiln_names names[KILN_ARRAY_LEN(folders)];
    int r;

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(folders); i++)
        kiln_names_init(&names[i], NAMES_BYTES);
    r = transfer_all(&t, names);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(folders); i++)
        kiln_names_done(&names[i]);
    return r;
}

static int is_foreign(void *context, const char *name)
{
    (void)context;
    return strcmp(name, "LOCK") == 0 ? 0 : -ENOTEMPTY;
}

/* Looked at before it is opened, which would leave a lock in it. */
static int check_empty(const char *dir)
{
    struct kiln_io *io;
    int r = kiln_io_open(dir, true, &io);

    if (r < 0)
        return r == -ENOENT ? 0 : r;
    r = io->list(io, ".", is_foreign, NULL);
    kiln_io_close(io);
    return r;
}

/* `shown` is what people know the directory by. */
static int open_target(const char *dir, const char *shown, struct kiln_io **ret_io,
                       struct kiln_err *err)
{
    int r = check_empty(dir);

    if (r == -ENOTEMPTY)
        return kiln_err_set(err, r, shown, "the directory is not empty");
    if (r == 0)
        r = kiln_io_open(dir, false, ret_io);
    if (r == -EWOULDBLOCK)
        return kiln_err_set(err, r, shown, "the target directory is used by another process");
    if (r == -EACCES)
        return kiln_err_set(err, r, shown,
                            "user %u, who writes the backup, has no access: %s (make a directory "
                            "that belongs to this user)",
                            (unsigned)geteuid(), kiln_err_text(r));
    return r < 0 ? kiln_err_set(err, r, shown, "cannot be opened: %s", kiln_err_text(r)) : 0;
}

/* No block goes away while `merging` is held; what a cut adds meanwhile does no harm. */
static int back_up(struct kiln_engine *engine, const char *target_dir, const char *shown,
                   struct kiln_err *err)
{
    struct kiln_store *store = kiln_store_of(engine);
    struct kiln_io *target;
    int r = open_target(target_dir, shown, &target, err);

    if (r < 0)
        return r;
    if (!store->opts.read_only)
        r = kiln_store_flush(engine, err);
    if (r == 0) {
        pthread_mutex_lock(&store->keep.merging);
        r = transfer(store->io, target, NULL, err);
        pthread_mutex_unlock(&store->keep.merging);
    }
    kiln_io_close(target);
    return r;
}

int kiln_store_backup(struct kiln_engine *engine, const char *target_dir, struct kiln_err *err)
{
    return back_up(engine, target_dir, target_dir, err);
}

int kiln_store_backup_in(struct kiln_engine *engine, const char *dir, const char *name,
                         struct kiln_err *err)
{
    int fd = kiln_io_open_dir_in(dir, name), r;
    char path[32];

    if (fd == -EINVAL)
        return kiln_err_set(err, fd, "dir",
                            "a backup has one name in %s, without / and a dot first", dir);
    if (fd == -ENOTDIR || fd == -ELOOP)
        return kiln_err_set(err, -ENOTEMPTY, name, "this is there, and is no directory");
    if (fd < 0)
        return kiln_err_set(err, fd == -ENOENT ? -EIO : fd, dir,
                            "the directory for backups cannot be used: %s", kiln_err_text(fd));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    r = back_up(engine, path, name, err);
    close(fd);
    return r;
}

int kiln_store_restore(const char *backup_dir, const char *data_dir,
                       const struct kiln_transfer_opts *opts, struct kiln_store_check *ret_check,
                       struct kiln_err *err)
{
    struct kiln_transfer_opts copy = opts ? *opts : (struct kiln_transfer_opts){0};
    struct kiln_io *from, *to;
    int r = kiln_io_open(backup_dir, true, &from);

    *ret_check = (struct kiln_store_check){0};
    copy.copy = true;
    if (r < 0)
        return kiln_err_set(err, r, backup_dir, "cannot be opened: %s", kiln_err_text(r));
    r = kiln_store_check(from, NULL, ret_check, err);
    if (r < 0)
        kiln_err_within(err, "%s", backup_dir);
    if (r == 0 && ret_check->n_damages)
        r = kiln_err_set(err, KILN_E_CORRUPT, backup_dir, "the backup is damaged");
    if (r == 0)
        r = open_target(data_dir, data_dir, &to, err);
    if (r == 0) {
        r = transfer(from, to, &copy, err);
        kiln_io_close(to);
    }
    kiln_io_close(from);
    return r;
}

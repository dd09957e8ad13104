/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of functions over the simulated disk.  enter() takes the lock, counts the call and says
 * whether it fails; an operation during which the power fails still becomes pending, so that the
 * cut may let a part of it survive.
 */
#include "sim_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_int.h"

/* Calls that never run out of space. */
static bool reads_only(const char *call)
{
    return strcmp(call, "open") == 0 || strcmp(call, "pread") == 0 || strcmp(call, "size") == 0 ||
           strcmp(call, "list") == 0 || strcmp(call, "space") == 0 || strcmp(call, "unlink") == 0;
}

/* Takes the lock and counts.  Returns 0, or what the call shall answer; then it does nothing. */
static int enter(struct sim *sim, const char *call, const char *path)
{
    pthread_mutex_lock(&sim->lock);
    sim->calls++;
    if (sim->dead)
        return -EIO;
    if (sim->fail_at && --sim->fail_at == 0) {
        snprintf(sim->last_failure, sizeof(sim->last_failure), "%s %s", call, path);
        return sim->fail_code == -ENOSPC && reads_only(call) ? -EIO : sim->fail_code;
    }
    return 0;
}

static int leave(struct sim *sim, int code)
{
    pthread_mutex_unlock(&sim->lock);
    return code;
}

/* The power may fail now: the answer of an operation that was done. */
static int operated(struct sim *sim)
{
    sim->operations++;
    if (sim->cut_at && --sim->cut_at == 0)
        sim->dead = true;
    return sim->dead ? -EIO : 0;
}

/* ---- names ---- */

static struct sim_change *change_names(struct sim *sim, const char *remove, const char *add,
                                       struct sim_file *file)
{
    struct sim_change *change = calloc(1, sizeof(*change));

    if (!change)
        abort();
    memcpy(change->remove, remove, strlen(remove));
    memcpy(change->add, add, strlen(add));
    change->file = file;
    sim_tree_apply(&sim->now, change);
    *sim->changes_end = change;
    sim->changes_end = &change->next;
    return change;
}

/* The folder of a new name must be there. */
static int check_new(struct sim *sim, const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[SIM_PATH] = "";
    struct sim_name *name;

    if (strlen(path) >= SIM_PATH)
        return -ENAMETOOLONG;
    if (!slash)
        return 0;
    memcpy(folder, path, (size_t)(slash - path));
    name = sim_tree_find(&sim->now, folder);
    if (!name)
        return -ENOENT;
    return name->file ? -ENOTDIR : 0;
}

/* Frees files that nothing refers to. */
void sim_collect(struct sim *sim)
{
    for (struct sim_file *file = sim->files; file; file = file->next)
        file->used = file->open > 0;
    for (uint32_t i = 0; i < sim->now.n; i++)
        if (sim->now.names[i].file)
            sim->now.names[i].file->used = true;
    for (uint32_t i = 0; i < sim->durable.n; i++)
        if (sim->durable.names[i].file)
            sim->durable.names[i].file->used = true;
    for (struct sim_change *change = sim->changes; change; change = change->next)
        if (change->file)
            change->file->used = true;
    for (struct sim_file **at = &sim->files; *at;) {
        struct sim_file *file = *at;

        if (file->used) {
            at = &file->next;
        } else {
            *at = file->next;
            sim_file_free(file);
        }
    }
}

/* Bytes of files that have a name or are open. */
uint64_t sim_used_bytes(struct sim *sim)
{
    uint64_t bytes = 0;

    for (struct sim_file *file = sim->files; file; file = file->next)
        file->used = file->open > 0;
    for (uint32_t i = 0; i < sim->now.n; i++)
        if (sim->now.names[i].file)
            sim->now.names[i].file->used = true;
    for (struct sim_file *file = sim->files; file; file = file->next)
        bytes += file->used ? file->now.n : 0;
    return bytes;
}

/* ---- descriptors ---- */

static struct sim_file *file_of(struct sim *sim, int fd)
{
    for (struct sim_descriptor *d = sim->descriptors; d; d = d->next)
        if (d->fd == fd)
            return d->file;
    return NULL;
}

static int new_descriptor(struct sim *sim, struct sim_file *file)
{
    struct sim_descriptor *d = malloc(sizeof(*d));

    if (!d)
        abort();
    *d = (struct sim_descriptor){sim->next_fd++, file, sim->descriptors};
    sim->descriptors = d;
    file->open++;
    return d->fd;
}

static int make_file(struct sim *sim, const char *path, struct sim_file **ret_file)
{
    int r = check_new(sim, path);

    if (r < 0)
        return r;
    if (sim->limit != UINT64_MAX && sim_used_bytes(sim) >= sim->limit)
        return -ENOSPC;
    *ret_file = sim_file_new();
    (*ret_file)->next = sim->files;
    sim->files = *ret_file;
    change_names(sim, "", path, *ret_file);
    return operated(sim);
}

static int sim_open(struct kiln_io *io, const char *path, int flags)
{
    struct sim *sim = sim_of(io);
    struct sim_file *file = NULL;
    struct sim_name *name;
    int r = enter(sim, flags & O_CREAT ? "create" : "open", path);

    if (r < 0)
        return leave(sim, r);
    name = sim_tree_find(&sim->now, path);
    if (name && (flags & O_CREAT) && (flags & O_EXCL))
        r = -EEXIST;
    else if (name && !name->file)
        r = -EISDIR;
    else if (name)
        file = name->file;
    else if (flags & O_CREAT)
        r = make_file(sim, path, &file);
    else
        r = -ENOENT;
    return leave(sim, r < 0 ? r : new_descriptor(sim, file));
}

static int sim_close(struct kiln_io *io, int fd)
{
    struct sim *sim = sim_of(io);

    pthread_mutex_lock(&sim->lock);
    for (struct sim_descriptor **at = &sim->descriptors; *at; at = &(*at)->next) {
        struct sim_descriptor *d = *at;

        if (d->fd == fd) {
            d->file->open--;
            *at = d->next;
            free(d);
            return leave(sim, 0);
        }
    }
    return leave(sim, -EBADF);
}

/* ---- content ---- */

static ssize_t sim_pread(struct kiln_io *io, int fd, void *buf, size_t n, uint64_t offset)
{
    struct sim *sim = sim_of(io);
    int r = enter(sim, "pread", "");
    struct sim_file *file = r < 0 ? NULL : file_of(sim, fd);

    if (r == 0 && !file)
        r = -EBADF;
    if (r < 0)
        return leave(sim, r);
    if (offset >= file->now.n)
        n = 0;
    else if (n > file->now.n - offset)
        n = file->now.n - offset;
    if (n)
        memcpy(buf, file->now.ptr + offset, n);
    leave(sim, 0);
    return (ssize_t)n;
}

/* Bytes of a write for which there is room. */
static uint64_t room_for(struct sim *sim, const struct sim_file *file, uint64_t n, uint64_t offset)
{
    uint64_t more = offset + n > file->now.n ? offset + n - file->now.n : 0;
    uint64_t used;

    if (sim->limit == UINT64_MAX)
        return n;
    used = sim_used_bytes(sim);
    if (used + more <= sim->limit)
        return n;
    more -= used < sim->limit ? sim->limit - used : 0;
    return more < n ? n - more : 0;
}

static int write_locked(struct sim *sim, int fd, const void *buf, size_t n, uint64_t offset)
{
    struct sim_file *file = file_of(sim, fd);
    uint64_t fits;
    int r;

    if (!file)
        return -EBADF;
    fits = room_for(sim, file, n, offset);
    sim_file_write(file, buf, fits, offset);
    r = operated(sim);
    return r < 0 || fits == n ? r : -ENOSPC;
}

static int sim_pwrite(struct kiln_io *io, int fd, const void *buf, size_t n, uint64_t offset)
{
    struct sim *sim = sim_of(io);
    int r = enter(sim, "pwrite", "");

    if (r < 0 && !sim->dead) /* it fails half-way */
        write_locked(sim, fd, buf, n / 2, offset);
    return leave(sim, r < 0 ? r : write_locked(sim, fd, buf, n, offset));
}

/* As one write: a cut tears it anywhere. */
static int sim_pwritev(struct kiln_io *io, int fd, const struct iovec *pieces, int n,
                       uint64_t offset)
{
    size_t bytes = 0;
    uint8_t *joined;
    int r;

    for (int i = 0; i < n; i++)
        bytes += pieces[i].iov_len;
    joined = malloc(bytes ? bytes : 1);
    if (!joined)
        abort();
    bytes = 0;
    for (int i = 0; i < n; i++) {
        if (pieces[i].iov_len)
            memcpy(joined + bytes, pieces[i].iov_base, pieces[i].iov_len);
        bytes += pieces[i].iov_len;
    }
    r = sim_pwrite(io, fd, joined, bytes, offset);
    free(joined);
    return r;
}

/* Whether this sync fails, and what it then answers. */
static int sync_fails(struct sim *sim)
{
    int r = operated(sim);

    if (r < 0 || sim->fail_syncs == 0)
        return r;
    sim->fail_syncs--;
    return sim->sync_code;
}

static int sim_sync(struct kiln_io *io, int fd)
{
    struct sim *sim = sim_of(io);
    int r = enter(sim, "sync", "");
    struct sim_file *file = sim->dead ? NULL : file_of(sim, fd);

    if (!file)
        return leave(sim, r < 0 ? r : -EBADF);
    if (r == 0)
        r = sync_fails(sim);
    if (r < 0 && !sim->dead)
        sim_file_settle(file, SIM_MIX, &sim->random);
    else if (r == 0 && !sim->lie)
        sim_file_sync(file);
    return leave(sim, r);
}

static int sim_truncate(struct kiln_io *io, int fd, uint64_t size)
{
    struct sim *sim = sim_of(io);
    int r = enter(sim, "truncate", "");
    struct sim_file *file = r < 0 ? NULL : file_of(sim, fd);

    if (r == 0 && !file)
        r = -EBADF;
    if (r == 0)
        r = sim->truncate_code;
    if (r < 0)
        return leave(sim, r);
    sim_file_truncate(file, size);
    return leave(sim, operated(sim));
}

static int sim_size(struct kiln_io *io, int fd, uint64_t *ret_size)
{
    struct sim *sim = sim_of(io);
    int r = enter(sim, "size", "");
    struct sim_file *file = r < 0 ? NULL : file_of(sim, fd);

    if (r == 0 && !file)
        r = -EBADF;
    if (r == 0)
        *ret_size = file->now.n;
    return leave(sim, r);
}

/* ---- folders ---- */

static void move(struct sim *sim, const char *from, const char *to, struct sim_file *file)
{
    const char *slash = strrchr(to, '/');
    char folder[SIM_PATH] = ".";
    struct sim_change *added;

    if (slash) {
        memcpy(folder, to, (size_t)(slash - to));
        folder[slash - to] = '\0';
    }
    if (sim_is_in(from, folder)) {
        change_names(sim, from, to, file);
        return;
    }
    added = change_names(sim, "", to, file);
    change_names(sim, from, "", NULL)->needs = added;
}

static int sim_has_name(struct kiln_io *io, int fd, const char *path)
{
    struct sim *sim = sim_of(io);
    int r = enter(sim, "has_name", path);
    struct sim_file *file = r < 0 ? NULL : file_of(sim, fd);
    struct sim_name *name = r < 0 ? NULL : sim_tree_find(&sim->now, path);

    if (r == 0 && !file)
        r = -EBADF;
    if (r == 0 && (!name || name->file != file))
        r = -ENOENT;
    return leave(sim, r);
}

static int sim_rename(struct kiln_io *io, const char *from, const char *to)
{
    struct sim *sim = sim_of(io);
    int r = enter(sim, "rename", to);
    struct sim_name *source;
    struct sim_name *target;

    if (r == 0)
        r = check_new(sim, to);
    if (r < 0)
        return leave(sim, r);
    source = sim_tree_find(&sim->now, from);
    target = sim_tree_find(&sim->now, to);
    if (!source)
        return leave(sim, -ENOENT);
    if (!source->file) /* folders are not renamed by anybody */
        return leave(sim, -EOPNOTSUPP);
    if (target && !target->file)
        return leave(sim, -EISDIR);
    if (target && target->file == source->file) /* POSIX: two links of one file both stay */
        return leave(sim, operated(sim));
    move(sim, from, to, source->file);
    return leave(sim, operated(sim));
}

static int sim_link(struct kiln_io *io, const char *from, const char *to)
{
    struct sim *sim = sim_of(io);
    int r = enter(sim, "link", to);
    struct sim_name *source;

    if (r == 0)
        r = check_new(sim, to);
    if (r < 0)
        return leave(sim, r);
    source = sim_tree_find(&sim->now, from);
    if (!source || !source->file)
        return leave(sim, source ? -EPERM : -ENOENT);
    if (sim_tree_find(&sim->now, to))
        return leave(sim, -EEXIST);
    change_names(sim, "", to, source->file);
    return leave(sim, operated(sim));
}

static int sim_unlink(struct kiln_io *io, const char *path)
{
    struct sim *sim = sim_of(io);
    int r = enter(sim, "unlink", path);
    struct sim_name *name = r < 0 ? NULL : sim_tree_find(&sim->now, path);

    if (r == 0 && !name)
        r = -ENOENT;
    if (r == 0 && !name->file)
        r = -EISDIR;
    if (r < 0)
        return leave(sim, r);
    change_names(sim, path, "", NULL);
    return leave(sim, operated(sim));
}

static int sim_mkdir(struct kiln_io *io, const char *path)
{
    struct sim *sim = sim_of(io);
    int r = enter(sim, "mkdir", path);

    if (r == 0)
        r = check_new(sim, path);
    if (r < 0 || sim_tree_find(&sim->now, path))
        return leave(sim, r);
    change_names(sim, "", path, NULL);
    return leave(sim, operated(sim));
}

static bool touches(const struct sim_change *change, const char *folder)
{
    return (change->remove[0] && sim_is_in(change->remove, folder)) ||
           (change->add[0] && sim_is_in(change->add, folder));
}

/* A change that needed this one needs nothing any more. */
static void release(struct sim *sim, const struct sim_change *gone)
{
    for (struct sim_change *change = sim->changes; change; change = change->next)
        if (change->needs == gone)
            change->needs = NULL;
}

static void sync_names(struct sim *sim, const char *folder)
{
    for (struct sim_change **at = &sim->changes; *at;) {
        struct sim_change *change = *at;

        if (!touches(change, folder) || change->needs) {
            at = &change->next;
            continue;
        }
        sim_tree_apply(&sim->durable, change);
        *at = change->next;
        release(sim, change);
        free(change);
    }
    sim->changes_end = &sim->changes;
    while (*sim->changes_end)
        sim->changes_end = &(*sim->changes_end)->next;
    sim_collect(sim);
}

static int sim_sync_dir(struct kiln_io *io, const char *path)
{
    struct sim *sim = sim_of(io);
    int r = enter(sim, "sync_dir", path);
    struct sim_name *name;

    if (r < 0)
        return leave(sim, r);
    name = sim_tree_find(&sim->now, path);
    if (strcmp(path, ".") != 0 && (!name || name->file))
        return leave(sim, name ? -ENOTDIR : -ENOENT);
    r = sync_fails(sim);
    if (r == 0 && !sim->lie)
        sync_names(sim, path);
    return leave(sim, r);
}

/* The names in a folder, one after the other, each ended by NUL; the last is empty. */
static char *copy_names(struct sim *sim, const char *path)
{
    char *names = calloc(sim->now.n + 1, SIM_PATH);
    char *at = names;

    for (uint32_t i = 0; names && i < sim->now.n; i++) {
        const char *name = sim->now.names[i].path;

        if (!sim_is_in(name, path))
            continue;
        name = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
        memcpy(at, name, strlen(name) + 1);
        at += strlen(name) + 1;
    }
    return names;
}

static int sim_list(struct kiln_io *io, const char *path,
                    int (*each)(void *context, const char *name), void *context)
{
    struct sim *sim = sim_of(io);
    int r = enter(sim, "list", path);
    struct sim_name *name;
    char *names;

    if (r < 0)
        return leave(sim, r);
    name = sim_tree_find(&sim->now, path);
    if (strcmp(path, ".") != 0 && (!name || name->file))
        return leave(sim, name ? -ENOTDIR : -ENOENT);
    names = copy_names(sim, path);
    leave(sim, 0);
    if (!names)
        abort();
    for (const char *at = names; r >= 0 && *at; at += strlen(at) + 1)
        r = each(context, at);
    free(names);
    return r < 0 ? r : 0;
}

static int sim_space(struct kiln_io *io, uint64_t *ret_free, uint64_t *ret_total)
{
    struct sim *sim = sim_of(io);
    uint64_t total;
    uint64_t used;
    int r = enter(sim, "space", "");

    if (r < 0)
        return leave(sim, r);
    total = sim->limit == UINT64_MAX ? UINT64_C(1) << 40 : sim->limit;
    used = sim_used_bytes(sim);
    *ret_total = total;
    *ret_free = used < total ? total - used : 0;
    return leave(sim, 0);
}

const struct kiln_io sim_table = {
    .open = sim_open,
    .close = sim_close,
    .pread = sim_pread,
    .pwrite = sim_pwrite,
    .pwritev = sim_pwritev,
    .sync = sim_sync,
    .truncate = sim_truncate,
    .size = sim_size,
    .has_name = sim_has_name,
    .rename = sim_rename,
    .link = sim_link,
    .unlink = sim_unlink,
    .mkdir = sim_mkdir,
    .sync_dir = sim_sync_dir,
    .list = sim_list,
    .space = sim_space,
};

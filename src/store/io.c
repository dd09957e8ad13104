/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real table: everything is opened relative to the descriptor of the root folder.  Names that
 * could lead out of it (absolute, "..") are refused before the kernel sees them, whatever they were
 * made from; a last component that is a symbolic link is not followed.
 *
 * Files are synced with fdatasync, folders with fsync, and a folder that kiln_io_open() makes is
 * synced into its parent: its name must survive a power cut as much as what will be in it.
 */
#include "store/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

#define FOLDER_MODE 0750
#define FILE_MODE   0640
#define TEMPORARY   ".tmp"

struct real_io {
    struct kiln_io table;
    int root;
    int lock; /* -1: read only */
};

/* The call again while a signal interrupts it. */
#define AGAIN(result, call)                                                                        \
    do                                                                                             \
        (result) = (call);                                                                         \
    while ((result) < 0 && errno == EINTR)

static int root_of(struct kiln_io *io)
{
    return ((struct real_io *)(void *)io)->root;
}

static int code_of(int result)
{
    return result < 0 ? -errno : 0;
}

/* Whether no component is empty or "..": such a path stays below the root. */
static bool is_below(const char *path)
{
    for (;;) {
        size_t n = strcspn(path, "/");

        if (n == 0 || (n == 2 && memcmp(path, "..", 2) == 0))
            return false;
        if (!path[n])
            return true;
        path += n + 1;
    }
}

static int real_open(struct kiln_io *io, const char *path, int flags)
{
    int fd;

    if (!is_below(path))
        return -EINVAL;
    AGAIN(fd, openat(root_of(io), path, flags | O_CLOEXEC | O_NOFOLLOW, FILE_MODE));
    return fd < 0 ? -errno : fd;
}

static int real_close(struct kiln_io *io, int fd)
{
    (void)io;
    /* On Linux the descriptor is gone also after EINTR. */
    return close(fd) < 0 && errno != EINTR ? -errno : 0;
}

static ssize_t real_pread(struct kiln_io *io, int fd, void *buf, size_t n, uint64_t offset)
{
    size_t done = 0;

    (void)io;
    while (done < n) {
        ssize_t got = pread(fd, (char *)buf + done, n - done, (off_t)(offset + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static int real_pwrite(struct kiln_io *io, int fd, const void *buf, size_t n, uint64_t offset)
{
    const char *at = buf;

    (void)io;
    while (n) {
        ssize_t put = pwrite(fd, at, n, (off_t)offset);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return put < 0 ? -errno : -ENOSPC;
        at += put;
        n -= (size_t)put;
        offset += (uint64_t)put;
    }
    return 0;
}

static int real_pwritev(struct kiln_io *io, int fd, const struct iovec *pieces, int n,
                        uint64_t offset)
{
    size_t put;
    ssize_t r;

    AGAIN(r, pwritev(fd, pieces, n, (off_t)offset));
    if (r < 0)
        return -errno;
    put = (size_t)r;
    for (; n > 0; pieces++, n--) {
        size_t done = put < pieces->iov_len ? put : pieces->iov_len;
        int code;

        if (done == pieces->iov_len) {
            offset += done;
            put -= done;
            continue;
        }
        offset += done;
        put = 0;
        code = real_pwrite(io, fd, (const char *)pieces->iov_base + done, pieces->iov_len - done,
                           offset);
        if (code < 0)
            return code;
        offset += pieces->iov_len - done;
    }
    return 0;
}

static int real_sync(struct kiln_io *io, int fd)
{
    int r;

    (void)io;
    AGAIN(r, fdatasync(fd));
    return code_of(r);
}

static int real_truncate(struct kiln_io *io, int fd, uint64_t size)
{
    int r;

    (void)io;
    AGAIN(r, ftruncate(fd, (off_t)size));
    return code_of(r);
}

static int real_size(struct kiln_io *io, int fd, uint64_t *ret_size)
{
    struct stat st;

    (void)io;
    if (fstat(fd, &st) < 0)
        return -errno;
    *ret_size = (uint64_t)st.st_size;
    return 0;
}

static int real_has_name(struct kiln_io *io, int fd, const char *path)
{
    struct stat open, named;

    if (!is_below(path))
        return -EINVAL;
    if (fstat(fd, &open) < 0 || fstatat(root_of(io), path, &named, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return open.st_ino == named.st_ino && open.st_dev == named.st_dev ? 0 : -ENOENT;
}

static int real_rename(struct kiln_io *io, const char *from, const char *to)
{
    if (!is_below(from) || !is_below(to))
        return -EINVAL;
    return code_of(renameat(root_of(io), from, root_of(io), to));
}

static int real_link(struct kiln_io *io, const char *from, const char *to)
{
    if (!is_below(from) || !is_below(to))
        return -EINVAL;
    return code_of(linkat(root_of(io), from, root_of(io), to, 0));
}

static int real_unlink(struct kiln_io *io, const char *path)
{
    return is_below(path) ? code_of(unlinkat(root_of(io), path, 0)) : -EINVAL;
}

static int real_mkdir(struct kiln_io *io, const char *path)
{
    if (!is_below(path))
        return -EINVAL;
    return mkdirat(root_of(io), path, FOLDER_MODE) < 0 && errno != EEXIST ? -errno : 0;
}

static int sync_folder(int at, const char *path)
{
    int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r;

    if (fd < 0)
        return -errno;
    AGAIN(r, fsync(fd));
    r = code_of(r);
    close(fd);
    return r;
}

static int real_sync_dir(struct kiln_io *io, const char *path)
{
    return is_below(path) ? sync_folder(root_of(io), path) : -EINVAL;
}

static int list_folder(DIR *folder, int (*each)(void *context, const char *name), void *context)
{
    for (;;) {
        struct dirent *entry;
        int r;

        errno = 0;
        entry = readdir(folder);
        if (!entry)
            return -errno;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        r = each(context, entry->d_name);
        if (r < 0)
            return r;
    }
}

static int real_list(struct kiln_io *io, const char *path,
                     int (*each)(void *context, const char *name), void *context)
{
    DIR *folder;
    int fd;
    int r;

    if (!is_below(path))
        return -EINVAL;
    fd = openat(root_of(io), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    folder = fdopendir(fd);
    if (!folder) {
        r = -errno;
        close(fd);
        return r;
    }
    r = list_folder(folder, each, context);
    closedir(folder);
    return r;
}

static int real_space(struct kiln_io *io, uint64_t *ret_free, uint64_t *ret_total)
{
    struct statvfs st;

    if (fstatvfs(root_of(io), &st) < 0)
        return -errno;
    *ret_free = (uint64_t)st.f_bavail * st.f_frsize;
    *ret_total = (uint64_t)st.f_blocks * st.f_frsize;
    return 0;
}

static const struct kiln_io real_table = {
    .open = real_open,
    .close = real_close,
    .pread = real_pread,
    .pwrite = real_pwrite,
    .pwritev = real_pwritev,
    .sync = real_sync,
    .truncate = real_truncate,
    .size = real_size,
    .has_name = real_has_name,
    .rename = real_rename,
    .link = real_link,
    .unlink = real_unlink,
    .mkdir = real_mkdir,
    .sync_dir = real_sync_dir,
    .list = real_list,
    .space = real_space,
};

/* The folder a path is in, into `ret`, which has room for the path and two bytes more. */
static void folder_of(const char *path, char *ret)
{
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n && path[n - 1] != '/')
        n--;
    while (n > 1 && path[n - 1] == '/')
        n--;
    memcpy(ret, n ? path : ".", n ? n : 1);
    ret[n ? n : 1] = '\0';
}

/* Makes a folder and syncs its name into its parent, which must be there. */
static int make_one(const char *path)
{
    char parent[PATH_MAX + 2];

    if (mkdir(path, FOLDER_MODE) < 0)
        return errno == EEXIST ? 0 : -errno;
    folder_of(path, parent);
    return sync_folder(AT_FDCWD, parent);
}

static int make_root(const char *path)
{
    char partial[PATH_MAX];
    size_t n = strlen(path);

    if (n == 0 || n >= sizeof(partial))
        return n ? -ENAMETOOLONG : -ENOENT;
    for (size_t i = 1; i <= n; i++) {
        int r;

        if (i < n && path[i] != '/')
            continue;
        memcpy(partial, path, i);
        partial[i] = '\0';
        r = make_one(partial);
        if (r < 0)
            return r;
    }
    return 0;
}

static int take_lock(struct real_io *real)
{
    int r;

    real->lock = openat(real->root, "LOCK", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    if (real->lock < 0)
        return -errno;
    AGAIN(r, flock(real->lock, LOCK_EX | LOCK_NB));
    return code_of(r);
}

static int open_root(struct real_io *real, const char *root, bool read_only)
{
    int r = read_only ? 0 : make_root(root);

    if (r < 0)
        return r;
    AGAIN(real->root, open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (real->root < 0)
        return -errno;
    return read_only ? 0 : take_lock(real);
}

int kiln_io_open(const char *root, bool read_only, struct kiln_io **ret_io)
{
    struct real_io *real = kiln_malloc(sizeof(*real));
    int r;

    if (!real)
        return -ENOMEM;
    *real = (struct real_io){.table = real_table, .root = -1, .lock = -1};
    r = open_root(real, root, read_only);
    if (r < 0) {
        kiln_io_close(&real->table);
        return r;
    }
    *ret_io = &real->table;
    return 0;
}

void kiln_io_close(struct kiln_io *io)
{
    struct real_io *real = (struct real_io *)(void *)io;

    if (!io)
        return;
    if (real->lock >= 0)
        close(real->lock);
    if (real->root >= 0)
        close(real->root);
    kiln_free(real);
}

static bool is_name(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n <= NAME_MAX && name[0] != '.' && !strchr(name, '/');
}

int kiln_io_open_dir_in(const char *root, const char *name)
{
    int dir, fd, r = 0;

    if (!is_name(name))
        return -EINVAL;
    dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    if (mkdirat(dir, name, FOLDER_MODE) < 0 ? errno != EEXIST : fsync(dir) < 0)
        r = -errno;
    fd = r < 0 ? -1 : openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (r == 0 && fd < 0)
        r = -errno;
    close(dir);
    return r < 0 ? r : fd;
}

/* The content under a temporary name, synced. */
static int put_temporary(struct kiln_io *io, const char *path, const void *data, size_t n)
{
    int fd;
    int r;

    r = io->unlink(io, path);
    if (r < 0 && r != -ENOENT)
        return r;
    fd = io->open(io, path, O_RDWR | O_CREAT | O_EXCL);
    if (fd < 0)
        return fd;
    r = n ? io->pwrite(io, fd, data, n, 0) : 0;
    if (r == 0)
        r = io->sync(io, fd);
    if (r == 0)
        return io->close(io, fd);
    io->close(io, fd);
    return r;
}

int kiln_io_put(struct kiln_io *io, const char *path, const void *data, size_t n)
{
    char temporary[PATH_MAX];
    char folder[PATH_MAX];
    int r;

    if (snprintf(temporary, sizeof(temporary), "%s" TEMPORARY, path) >= (int)sizeof(temporary))
        return -ENAMETOOLONG;
    folder_of(path, folder);
    r = put_temporary(io, temporary, data, n);
    if (r == 0)
        r = io->rename(io, temporary, path);
    if (r < 0) {
        io->unlink(io, temporary);
        return r;
    }
    return io->sync_dir(io, folder);
}

static int get_whole(struct kiln_io *io, int fd, size_t max, void **ret_data, size_t *ret_n)
{
    uint64_t size;
    ssize_t got;
    void *data;
    int r;

    r = io->size(io, fd, &size);
    if (r < 0)
        return r;
    if (size > max)
        return KILN_E_LIMIT;
    data = kiln_malloc((size_t)size);
    if (!data)
        return -ENOMEM;
    got = io->pread(io, fd, data, (size_t)size, 0);
    if (got < 0) {
        kiln_free(data);
        return (int)got;
    }
    *ret_data = data;
    *ret_n = (size_t)got;
    return 0;
}

int kiln_io_get(struct kiln_io *io, const char *path, size_t max, void **ret_data, size_t *ret_n)
{
    int fd = io->open(io, path, O_RDONLY);
    int r;

    if (fd < 0)
        return fd;
    r = get_whole(io, fd, max, ret_data, ret_n);
    io->close(io, fd);
    return r;
}

/* ---- two directories ---- */

#define COPY_BYTES ((size_t)1 << 20)

static int copy_bytes(struct kiln_io *from_io, int from, struct kiln_io *to_io, int to)
{
    char *chunk = kiln_malloc(COPY_BYTES);
    uint64_t offset = 0;
    ssize_t n = chunk ? 1 : -ENOMEM;

    while (n > 0) {
        n = from_io->pread(from_io, from, chunk, COPY_BYTES, offset);
        if (n > 0) {
            int r = to_io->pwrite(to_io, to, chunk, (size_t)n, offset);

            offset += (uint64_t)n;
            n = r < 0 ? r : n;
        }
    }
    kiln_free(chunk);
    return n < 0 ? (int)n : to_io->sync(to_io, to);
}

int kiln_io_copy_across(struct kiln_io *from_io, const char *from, struct kiln_io *to_io,
                        const char *to)
{
    int in = from_io->open(from_io, from, O_RDONLY);
    int out = in < 0 ? in : to_io->open(to_io, to, O_RDWR | O_CREAT | O_EXCL);
    int r = out < 0 ? out : copy_bytes(from_io, in, to_io, out);
    int closed = out < 0 ? 0 : to_io->close(to_io, out);

    if (in >= 0)
        from_io->close(from_io, in);
    return r < 0 ? r : closed;
}

int kiln_io_link_across(struct kiln_io *from_io, const char *from, struct kiln_io *to_io,
                        const char *to)
{
    if (from_io->link == real_link && to_io->link == real_link && is_below(from) && is_below(to)) {
        int r = code_of(linkat(root_of(from_io), from, root_of(to_io), to, 0));

        if (r != -EXDEV && r != -EPERM && r != -EMLINK)
            return r;
    }
    return kiln_io_copy_across(from_io, from, to_io, to);
}

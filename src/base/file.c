/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is replaced by writing NAME.XXXXXX beside it, syncing, and renaming.  Symbolic links are
 * followed first, so that the file they name is replaced and not the link.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define CHUNK_BYTES ((size_t)64 << 10)

static int fail(struct kiln_err *err, int code)
{
    return kiln_err_set(err, code, NULL, "%s", kiln_err_text(code));
}

static int too_large(struct kiln_err *err, size_t max)
{
    return kiln_err_set(err, KILN_E_LIMIT, NULL, "larger than the limit of %zu bytes", max);
}

/* The room for the next read: one more than a file of known size, to see its end in one call. */
static size_t next_chunk(const struct kiln_buf *out, size_t expected)
{
    size_t room = out->max - out->len;
    size_t want = expected > out->len ? expected - out->len + 1 : CHUNK_BYTES;

    return want < room ? want : room;
}

/* At the limit: fine if nothing more comes. */
static int expect_end(int fd, size_t max, struct kiln_err *err)
{
    char byte;
    ssize_t n;

    do
        n = read(fd, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return fail(err, -errno);
    return n ? too_large(err, max) : 0;
}

static int read_all(int fd, size_t expected, struct kiln_buf *out, struct kiln_err *err)
{
    for (;;) {
        size_t want = next_chunk(out, expected);
        char *at;
        ssize_t n;

        if (want == 0)
            return expect_end(fd, out->max, err);
        at = kiln_buf_reserve(out, want);
        if (!at)
            return fail(err, out->error);
        n = read(fd, at, want);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail(err, -errno);
        if (n == 0)
            return 0;
        out->len += (size_t)n;
    }
}

static int (*opener)(const char *path); /* NULL: there is none */

void kiln_file_open_by(int (*open_refused)(const char *path))
{
    opener = open_refused;
}

int kiln_file_open(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), r;

    if (fd >= 0 || errno != EACCES || !opener)
        return fd < 0 ? -errno : fd;
    r = opener(path);
    return r == -EPIPE ? -EACCES : r;
}

int kiln_file_read(const char *path, struct kiln_buf *out, struct kiln_err *err)
{
    bool standard = strcmp(path, "-") == 0;
    int fd = standard ? STDIN_FILENO : kiln_file_open(path);
    struct stat st;
    int r;

    if (fd < 0)
        return fail(err, fd);
    if (fstat(fd, &st) < 0)
        r = fail(err, -errno);
    else if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > out->max - out->len)
        r = too_large(err, out->max);
    else
        r = read_all(fd, S_ISREG(st.st_mode) ? out->len + (size_t)st.st_size : 0, out, err);
    if (!standard)
        close(fd);
    return r;
}

int kiln_fd_write(int fd, struct kiln_str data)
{
    while (data.len) {
        ssize_t n = write(fd, data.ptr, data.len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        data.ptr += n;
        data.len -= (size_t)n;
    }
    return 0;
}

static int write_plain(const char *path, struct kiln_str data)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_CREAT, 0666);
    int r;

    if (fd < 0)
        return -errno;
    r = kiln_fd_write(fd, data);
    if (close(fd) < 0 && r == 0)
        r = -errno;
    return r;
}

static mode_t default_mode(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return 0666 & ~mask;
}

static int fill_temporary(int fd, mode_t mode, struct kiln_str data)
{
    int r = kiln_fd_write(fd, data);

    if (r == 0 && fchmod(fd, mode) < 0)
        r = -errno;
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (close(fd) < 0 && r == 0)
        r = -errno;
    return r;
}

static int replace(const char *path, mode_t mode, struct kiln_str data)
{
    char temporary[PATH_MAX + 8];
    int fd;
    int r;

    if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= (int)sizeof(temporary))
        return -ENAMETOOLONG;
    fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = fill_temporary(fd, mode, data);
    if (r == 0 && rename(temporary, path) < 0)
        r = -errno;
    if (r < 0)
        unlink(temporary);
    return r;
}

int kiln_file_write(const char *path, struct kiln_str data, struct kiln_err *err)
{
    char resolved[PATH_MAX];
    struct stat st, link;
    int r;

    if (strcmp(path, "-") == 0)
        r = kiln_fd_write(STDOUT_FILENO, data);
    else if (stat(path, &st) < 0)
        r = errno == ENOENT ? replace(path, default_mode(), data) : -errno;
    else if (!S_ISREG(st.st_mode))
        r = S_ISDIR(st.st_mode) ? -EISDIR : write_plain(path, data);
    else if (lstat(path, &link) == 0 && !S_ISLNK(link.st_mode))
        r = replace(path, st.st_mode & 07777, data); /* its folder may be one that is only open */
    else
        r = realpath(path, resolved) ? replace(resolved, st.st_mode & 07777, data) : -errno;
    return r < 0 ? fail(err, r) : 0;
}

int kiln_file_replace(const char *path, struct kiln_str data, struct kiln_err *err)
{
    struct stat st;
    bool is_file = lstat(path, &st) == 0 && S_ISREG(st.st_mode);
    int r = replace(path, is_file ? st.st_mode & 07777 : default_mode(), data);

    return r < 0 ? fail(err, r) : 0;
}

int kiln_file_stat(const char *path, struct stat *ret_stat)
{
    int fd, r = stat(path, ret_stat) < 0 ? -errno : 0;

    if (r != -EACCES)
        return r;
    fd = kiln_file_open(path);
    if (fd < 0)
        return fd;
    r = fstat(fd, ret_stat) < 0 ? -errno : 0;
    close(fd);
    return r;
}

int kiln_file_open_plain(const char *path, int *ret_fd)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int r = 0;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        r = -errno;
    else if (!S_ISREG(st.st_mode))
        r = S_ISDIR(st.st_mode) ? -EISDIR : KILN_E_UNKNOWN;
    if (r < 0)
        close(fd);
    else
        *ret_fd = fd;
    return r;
}

int kiln_file_make_folders(const char *path, uint32_t mode)
{
    char part[PATH_MAX];
    size_t n = strlen(path);

    if (n >= sizeof(part))
        return -ENAMETOOLONG;
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, (mode_t)mode) < 0 && errno != EEXIST)
            return -errno;
    }
    return 0;
}

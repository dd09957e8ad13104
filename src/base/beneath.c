/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing is opened for reading before it is known to be a regular file: opening a device may do
 * something, and opening a pipe may wait.  So a file is first only named (O_PATH), looked at, and
 * then opened through /proc/self/fd.
 */
#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"

enum { NAME_BYTES = 256 };

/* Keeps what is a regular file. */
static int check_regular(int at, struct stat *ret_st)
{
    if (fstat(at, ret_st) == 0 && S_ISREG(ret_st->st_mode))
        return at;
    close(at);
    return -ENOENT;
}

int kiln_open_reached(int at)
{
    char name[32];
    int fd, r;

    snprintf(name, sizeof(name), "/proc/self/fd/%d", at);
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    r = fd < 0 ? -errno : fd;
    close(at);
    return r;
}

/* One component; `*dir` is closed where it is not the first. */
static int step(int first, int *dir, struct kiln_str name, bool last)
{
    char text[NAME_BYTES];
    int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC | (last ? 0 : O_DIRECTORY), at = -ENAMETOOLONG;

    if (name.len < sizeof(text)) {
        memcpy(text, name.ptr, name.len);
        text[name.len] = '\0';
        at = strcmp(text, "..") == 0 ? -EXDEV : openat(*dir, text, flags);
        at = at == -1 ? -errno : at;
    }
    if (*dir != first)
        close(*dir);
    *dir = at;
    return at;
}

int kiln_walk_beneath(int dir, const char *path, struct stat *ret_st)
{
    struct kiln_str rest = kiln_str_of(path);
    int at = dir;

    if (path[0] == '/' || path[0] == '\0')
        return -EXDEV;
    while (at >= 0 && rest.ptr) {
        struct kiln_str name = kiln_str_cut(&rest, '/');

        if (name.len && step(dir, &at, name, !rest.ptr) < 0)
            return at;
    }
    if (at == dir)
        return -ENOENT;
    return check_regular(at, ret_st);
}

int kiln_reach_beneath(int dir, const char *path, uint64_t resolve, struct stat *ret_st)
{
    const uint64_t strict = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = resolve};
    int at = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));

    /* Some containers refuse what they do not know as something that is not allowed. */
    if (at < 0 && (errno == ENOSYS || errno == EPERM) && (resolve & strict) == strict)
        return kiln_walk_beneath(dir, path, ret_st);
    return at < 0 ? -errno : check_regular(at, ret_st);
}

int kiln_open_beneath(int dir, const char *path, uint64_t resolve, struct stat *ret_st)
{
    int at = kiln_reach_beneath(dir, path, resolve, ret_st);

    return at < 0 ? at : kiln_open_reached(at);
}

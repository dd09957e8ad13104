/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each entry is opened without following links (O_PATH), looked at, and given away through that
 * descriptor, so that a name that is exchanged meanwhile changes nothing.  A directory is given
 * away after what is in it: a run that was interrupted leaves directories of root, whose content
 * the next run can trust.
 */
#include "base/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct walk {
    const struct kiln_own_opts *opts;
    uid_t before; /* the owner of the directory so far: what is its is given away too */
    dev_t dev;
    uint64_t n, seen;
};

/* Only root could put something there. */
static bool is_roots(const struct stat *dir)
{
    return dir->st_uid == 0 && !(dir->st_mode & (S_IWGRP | S_IWOTH));
}

static int give(struct walk *walk, int fd, const struct stat *st, bool from_root)
{
    const struct kiln_own_opts *opts = walk->opts;

    if (st->st_uid == opts->uid || (st->st_uid != 0 && st->st_uid != walk->before))
        return 0;
    if (!S_ISDIR(st->st_mode) && st->st_nlink > 1 && !from_root)
        return 0;
    if (fchownat(fd, "", opts->uid, opts->gid, AT_EMPTY_PATH) < 0)
        return -errno;
    walk->n++;
    return 0;
}

static int give_beneath(struct walk *walk, int fd, const struct stat *st, int depth);

static int give_entry(struct walk *walk, int dir, const char *name, bool from_root, int depth)
{
    int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), r = 0;
    struct stat st;

    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    if (fstat(fd, &st) < 0)
        r = -errno;
    else if (st.st_dev != walk->dev)
        r = 0;
    else if (++walk->seen > KILN_OWN_FILES_MAX || depth > KILN_OWN_DEPTH_MAX)
        r = -E2BIG;
    else {
        if (S_ISDIR(st.st_mode))
            r = give_beneath(walk, fd, &st, depth);
        if (r == 0)
            r = give(walk, fd, &st, from_root);
    }
    close(fd);
    return r;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int give_beneath(struct walk *walk, int fd, const struct stat *st, int depth)
{
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    struct dirent *entry;

    if (!dir) {
        r = -errno;
        if (own >= 0)
            close(own);
        return r;
    }
    while (r == 0 && (entry = readdir(dir)))
        if (!is_dots(entry->d_name))
            r = give_entry(walk, own, entry->d_name, is_roots(st), depth + 1);
    closedir(dir);
    return r;
}

/* ---- the directory ---- */

static bool is_listed(const struct kiln_own_opts *opts, const char *name)
{
    for (const char *const *at = opts->names; *at; at++) {
        size_t n = strlen(*at);

        if (strncmp(name, *at, n) == 0 && (name[n] == '\0' || name[n] == '.'))
            return true;
    }
    return false;
}

static int give_listed(struct walk *walk, int fd, const struct stat *st)
{
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    struct dirent *entry;

    if (!dir)
        return -errno;
    while (r == 0 && (entry = readdir(dir)))
        if (is_listed(walk->opts, entry->d_name))
            r = give_entry(walk, own, entry->d_name, is_roots(st), 1);
    closedir(dir);
    return r;
}

/* Root that gave up its capabilities, and others of root's group, can still write to it; another
 * group gets nothing that it did not have. */
static int give_directory(struct walk *walk, int fd, const struct stat *st)
{
    const struct kiln_own_opts *opts = walk->opts;
    mode_t group = st->st_gid == 0 ? S_IRWXG : 0;

    if (st->st_uid == opts->uid)
        return 0;
    if (fchown(fd, opts->uid, (gid_t)-1) < 0 ||
        fchmod(fd, (st->st_mode & 07777) | S_IRWXU | group) < 0)
        return -errno;
    walk->n++;
    return 0;
}

int kiln_own(const struct kiln_own_opts *opts, uint64_t *ret_n, struct kiln_err *err)
{
    int fd = open(opts->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    struct walk walk = {.opts = opts};
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        r = -errno;
    if (r == 0) {
        walk.dev = st.st_dev;
        walk.before = st.st_uid;
        r = give_listed(&walk, fd, &st);
    }
    if (r == 0)
        r = give_directory(&walk, fd, &st);
    if (fd >= 0)
        close(fd);
    *ret_n = walk.n;
    return r < 0 ? kiln_err_set(err, r, opts->dir, "files of root cannot be given away: %s",
                                kiln_err_text(r))
                 : 0;
}

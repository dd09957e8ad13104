/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path is followed one name at a time from an open directory.  Owner and target of a link are
 * read through one descriptor of it (O_PATH), so that a link which is exchanged meanwhile changes
 * nothing.
 */
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct walk {
    int dir; /* -1: none */
    uid_t untrusted;
    unsigned links;
    char rest[PATH_MAX]; /* what is still to be followed */
};

static int enter(struct walk *walk, const char *name)
{
    int next = openat(walk->dir < 0 ? AT_FDCWD : walk->dir, name,
                      O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (next < 0)
        return -errno;
    if (walk->dir >= 0)
        close(walk->dir);
    walk->dir = next;
    return 0;
}

/* Puts a path before the rest, and starts from the root if it is absolute. */
static int follow(struct walk *walk, const char *target)
{
    char joined[PATH_MAX];
    int n =
        snprintf(joined, sizeof(joined), "%s%s%s", target, walk->rest[0] ? "/" : "", walk->rest);

    if (n >= (int)sizeof(joined))
        return -ENAMETOOLONG;
    memcpy(walk->rest, joined, (size_t)n + 1);
    return target[0] == '/' ? enter(walk, "/") : 0;
}

/* 1: it was a link, and its target is to be followed now.  0: it is none, or not there. */
static int follow_link(struct walk *walk, const char *name)
{
    char target[PATH_MAX];
    struct stat st;
    ssize_t n = -1;
    int link = openat(walk->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), r;

    if (link < 0)
        return errno == ENOENT ? 0 : -errno;
    if (fstat(link, &st) < 0)
        r = -errno;
    else if (!S_ISLNK(st.st_mode))
        r = 0;
    else if (st.st_uid == walk->untrusted || ++walk->links > KILN_PATH_LINKS_MAX)
        r = -ELOOP;
    else
        r = (n = readlinkat(link, "", target, sizeof(target) - 1)) < 0 ? -errno : 1;
    close(link);
    if (r <= 0)
        return r;
    target[n] = '\0';
    r = follow(walk, target);
    return r < 0 ? r : 1;
}

/* Takes the next name off the rest; false: there is none. */
static bool take_name(struct walk *walk, char ret_name[PATH_MAX])
{
    const char *at = walk->rest + strspn(walk->rest, "/");
    size_t n = strcspn(at, "/");

    memcpy(ret_name, at, n);
    ret_name[n] = '\0';
    at += n + strspn(at + n, "/");
    memmove(walk->rest, at, strlen(at) + 1);
    return n > 0;
}

/* Up to the last name. */
static int run(struct walk *walk, char ret_name[NAME_MAX + 1])
{
    char name[PATH_MAX];
    int r = 0;

    snprintf(ret_name, NAME_MAX + 1, ".");
    while (r >= 0 && take_name(walk, name)) {
        r = follow_link(walk, name);
        if (r != 0)
            continue;
        if (strlen(name) > NAME_MAX)
            return -ENAMETOOLONG;
        if (walk->rest[0] || strcmp(name, "..") == 0)
            r = enter(walk, name);
        else
            snprintf(ret_name, NAME_MAX + 1, "%.*s", NAME_MAX, name);
    }
    return r < 0 ? r : 0;
}

int kiln_path_resolve(const char *path, uid_t untrusted, struct kiln_path_end *ret_end)
{
    struct walk walk = {.dir = -1, .untrusted = untrusted};
    int r = path[0] ? enter(&walk, ".") : -ENOENT;

    if (r == 0)
        r = follow(&walk, path);
    if (r == 0)
        r = run(&walk, ret_end->name);
    if (r < 0 && walk.dir >= 0)
        close(walk.dir);
    ret_end->dir = r < 0 ? -1 : walk.dir;
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "folder.h"
#include "test.h"

#define NO_USER ((uid_t)-1)

struct place {
    char dir[FOLDER_NAME], path[FOLDER_NAME + 64];
};

static const char *in(struct place *p, const char *name)
{
    snprintf(p->path, sizeof(p->path), "%s/%s", p->dir, name);
    return p->path;
}

static void make(struct place *p)
{
    folder_make(p->dir);
    CHECK_OK(mkdir(in(p, "a"), 0755));
    CHECK_OK(mkdir(in(p, "a/b"), 0755));
    CHECK_OK(kiln_file_write(in(p, "a/b/file"), KILN_STR("x"), NULL));
    CHECK_OK(symlink("b/file", in(p, "a/short")));
    CHECK_OK(symlink("../a/./b/../short", in(p, "a/long")));
    CHECK_OK(symlink(p->dir, in(p, "a/absolute")));
    CHECK_OK(symlink("loop", in(p, "a/loop")));
    CHECK_OK(symlink("gone", in(p, "a/dangling")));
}

/* Whether both are the same file. */
static bool leads_to(struct place *p, const char *from, const char *to)
{
    struct kiln_path_end end;
    struct stat st, expected;
    bool same;

    CHECK_OK(kiln_path_resolve(in(p, from), NO_USER, &end));
    CHECK_OK(lstat(in(p, to), &expected));
    same =
        fstatat(end.dir, end.name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == expected.st_ino;
    close(end.dir);
    return same;
}

static int error_of(struct place *p, const char *name, uid_t untrusted)
{
    struct kiln_path_end end;
    int r = kiln_path_resolve(in(p, name), untrusted, &end);

    if (r == 0)
        close(end.dir);
    return r;
}

TEST(path, leads_where_the_kernel_does)
{
    struct place p;

    make(&p);
    CHECK(leads_to(&p, "a/b/file", "a/b/file"));
    CHECK(leads_to(&p, "a//b/./../b/file", "a/b/file"));
    CHECK(leads_to(&p, "a/short", "a/b/file"));
    CHECK(leads_to(&p, "a/long", "a/b/file"));
    CHECK(leads_to(&p, "a/absolute/a/absolute/a/short", "a/b/file"));
    CHECK(leads_to(&p, "a/b/", "a/b"));
    CHECK(leads_to(&p, "a/b/..", "a"));
    CHECK(leads_to(&p, "a/absolute", "."));
    folder_remove(p.dir);
}

TEST(path, the_last_name_need_not_exist)
{
    struct kiln_path_end end;
    struct place p;

    make(&p);
    CHECK_OK(kiln_path_resolve(in(&p, "a/b/new"), NO_USER, &end));
    CHECK(strcmp(end.name, "new") == 0);
    close(end.dir);
    CHECK_OK(kiln_path_resolve(in(&p, "a/dangling"), NO_USER, &end));
    CHECK(strcmp(end.name, "gone") == 0);
    close(end.dir);
    CHECK_EQ(error_of(&p, "gone/new", NO_USER), -ENOENT);
    CHECK_EQ(error_of(&p, "a/b/file/new", NO_USER), -ENOTDIR);
    CHECK_EQ(kiln_path_resolve("", NO_USER, &end), -ENOENT);
    folder_remove(p.dir);
}

TEST(path, loops_and_links_of_the_untrusted_user_are_refused)
{
    struct place p;

    make(&p);
    CHECK_EQ(error_of(&p, "a/loop", NO_USER), -ELOOP);
    CHECK_EQ(error_of(&p, "a/short", geteuid()), -ELOOP);
    CHECK_EQ(error_of(&p, "a/absolute/a/b/file", geteuid()), -ELOOP);
    CHECK_EQ(error_of(&p, "a/b/file", geteuid()), 0);
    folder_remove(p.dir);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "test.h"

enum { USER = 4711, GROUP = 4712, STRANGER = 4713 };

static const char *const names[] = {"wal", "LOCK", NULL};

static const char *in(const char *dir, const char *name)
{
    static char paths[2][FOLDER_NAME + 64];
    static int turn;

    turn = !turn;
    snprintf(paths[turn], sizeof(paths[turn]), "%s/%s", dir, name);
    return paths[turn];
}

static void make_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    close(fd);
}

static uid_t owner(const char *path)
{
    struct stat st;

    CHECK_OK(lstat(path, &st));
    return st.st_uid;
}

static uint64_t own(const char *dir)
{
    const struct kiln_own_opts opts = {.dir = dir, .uid = USER, .gid = GROUP, .names = names};
    struct kiln_err err = {0};
    uint64_t n = 0;

    CHECK_OK(kiln_own(&opts, &n, &err));
    return n;
}

TEST(own, gives_away_what_is_listed_with_all_beneath_it)
{
    char dir[FOLDER_NAME];
    struct stat st;

    if (geteuid() != 0)
        SKIP("only root gives files away");
    folder_make(dir);
    CHECK_OK(mkdir(in(dir, "wal"), 0750));
    CHECK_OK(mkdir(in(dir, "wal/deep"), 0750));
    make_file(in(dir, "wal/deep/file"));
    make_file(in(dir, "LOCK"));
    make_file(in(dir, "LOCK.tmp"));
    make_file(in(dir, "LOCKED"));
    CHECK_EQ(own(dir), 6);
    CHECK_EQ(owner(in(dir, "wal/deep/file")), USER);
    CHECK_EQ(owner(in(dir, "wal")), USER);
    CHECK_EQ(owner(in(dir, "LOCK.tmp")), USER);
    CHECK_EQ(owner(in(dir, "LOCKED")), 0);
    CHECK_OK(stat(dir, &st));
    CHECK_EQ(st.st_uid, USER);
    CHECK_EQ(st.st_gid, 0); /* root, without capabilities, may still write by its group */
    CHECK_EQ(st.st_mode & 0777, 0770);
    CHECK_EQ(own(dir), 0);
    folder_remove(dir);
}

TEST(own, a_group_of_others_gets_no_right_to_write)
{
    char dir[FOLDER_NAME];
    struct stat st;

    if (geteuid() != 0)
        SKIP("only root gives files away");
    folder_make(dir);
    CHECK_OK(chown(dir, 0, GROUP));
    CHECK_OK(chmod(dir, 02750));
    CHECK_EQ(own(dir), 1);
    CHECK_OK(stat(dir, &st));
    CHECK_EQ(st.st_uid, USER);
    CHECK_EQ(st.st_gid, GROUP);
    CHECK_EQ(st.st_mode & 07777, 02750);
    folder_remove(dir);
}

TEST(own, follows_no_link_and_leaves_what_is_a_strangers)
{
    char dir[FOLDER_NAME], outside[FOLDER_NAME];

    if (geteuid() != 0)
        SKIP("only root gives files away");
    folder_make(dir);
    folder_make(outside);
    make_file(in(outside, "file"));
    CHECK_OK(mkdir(in(dir, "wal"), 0750));
    CHECK_OK(symlink(outside, in(dir, "wal/link")));
    CHECK_OK(symlink(in(outside, "file"), in(dir, "LOCK")));
    make_file(in(dir, "wal/theirs"));
    CHECK_OK(chown(in(dir, "wal/theirs"), STRANGER, STRANGER));
    (void)own(dir);
    CHECK_EQ(owner(outside), 0);
    CHECK_EQ(owner(in(outside, "file")), 0);
    CHECK_EQ(owner(in(dir, "wal/link")), USER); /* the link itself */
    CHECK_EQ(owner(in(dir, "wal/theirs")), STRANGER);
    folder_remove(dir);
    folder_remove(outside);
}

TEST(own, a_hard_link_counts_only_where_root_alone_can_make_one)
{
    char dir[FOLDER_NAME], outside[FOLDER_NAME];

    if (geteuid() != 0)
        SKIP("only root gives files away");
    folder_make(dir);
    folder_make(outside);
    make_file(in(outside, "one"));
    make_file(in(outside, "two"));
    CHECK_OK(mkdir(in(dir, "wal"), 0750));
    CHECK_OK(link(in(outside, "one"), in(dir, "wal/one")));
    CHECK_EQ(own(dir), 3); /* of a backup, say */
    CHECK_EQ(owner(in(outside, "one")), USER);
    CHECK_OK(link(in(outside, "two"), in(dir, "wal/two"))); /* the directory is the user's by now */
    CHECK_EQ(own(dir), 0);
    CHECK_EQ(owner(in(outside, "two")), 0);
    folder_remove(dir);
    folder_remove(outside);
}

TEST(own, a_user_that_follows_another_takes_its_files)
{
    char dir[FOLDER_NAME];

    if (geteuid() != 0)
        SKIP("only root gives files away");
    folder_make(dir);
    make_file(in(dir, "LOCK"));
    CHECK_OK(chown(in(dir, "LOCK"), STRANGER, STRANGER));
    CHECK_OK(chown(dir, STRANGER, STRANGER));
    CHECK_EQ(own(dir), 2);
    CHECK_EQ(owner(in(dir, "LOCK")), USER);
    folder_remove(dir);
}

TEST(own, a_directory_that_is_not_there_is_an_error)
{
    const struct kiln_own_opts opts = {.dir = "/nonexistent", .uid = USER, .names = names};
    struct kiln_err err = {0};
    uint64_t n = 0;

    CHECK_EQ(kiln_own(&opts, &n, &err), -ENOENT);
}

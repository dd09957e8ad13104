/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "test.h"

/* A fresh directory, and a path in it, in static buffers. */
static const char *directory(void)
{
    static char made[64];

    snprintf(made, sizeof(made), "/tmp/kiln-file-test-XXXXXX");
    assert_non_null(mkdtemp(made));
    return made;
}

static const char *inside(const char *dir, const char *name)
{
    static char paths[2][128];
    static int turn;

    turn = !turn;
    snprintf(paths[turn], sizeof(paths[turn]), "%s/%s", dir, name);
    return paths[turn];
}

static int read_limited(const char *path, size_t max, struct kiln_buf *out, struct kiln_err *err)
{
    kiln_buf_init(out, max);
    return kiln_file_read(path, out, err);
}

TEST(file, what_is_written_is_read_back)
{
    const char *dir = directory();
    const char *path = inside(dir, "a");
    struct kiln_buf out;

    CHECK_OK(kiln_file_write(path, KILN_STR("one\0two"), NULL));
    CHECK_OK(read_limited(path, 100, &out, NULL));
    CHECK_EQ(out.len, 7);
    CHECK(memcmp(out.ptr, "one\0two", 7) == 0);
    kiln_buf_done(&out);
    unlink(path);
    rmdir(dir);
}

TEST(file, a_file_of_exactly_the_limit_is_read_and_one_byte_more_is_refused)
{
    const char *dir = directory();
    const char *path = inside(dir, "a");
    struct kiln_err err = {0};
    struct kiln_buf out;

    CHECK_OK(kiln_file_write(path, KILN_STR("12345"), NULL));
    CHECK_OK(read_limited(path, 5, &out, NULL));
    CHECK_EQ(out.len, 5);
    kiln_buf_done(&out);
    CHECK_EQ(read_limited(path, 4, &out, &err), KILN_E_LIMIT);
    CHECK_TEXT(err.text, "larger than the limit of 4 bytes");
    kiln_buf_done(&out);
    unlink(path);
    rmdir(dir);
}

TEST(file, an_endless_device_stops_at_the_limit)
{
    struct kiln_buf out;

    CHECK_EQ(read_limited("/dev/zero", 1000, &out, NULL), KILN_E_LIMIT);
    CHECK(out.cap <= 1000);
    kiln_buf_done(&out);
}

TEST(file, missing_files_and_directories_are_told_apart)
{
    struct kiln_buf out;

    CHECK_EQ(read_limited("/nonexistent/file", 10, &out, NULL), -ENOENT);
    CHECK_EQ(read_limited("/", SIZE_MAX / 2, &out, NULL), -EISDIR);
    CHECK_EQ(kiln_file_write("/", KILN_STR("x"), NULL), -EISDIR);
    CHECK_EQ(kiln_file_write("/nonexistent/file", KILN_STR("x"), NULL), -ENOENT);
    kiln_buf_done(&out);
}

TEST(file, a_full_disk_is_an_error)
{
    if (access("/dev/full", W_OK) != 0)
        SKIP("there is no /dev/full");
    CHECK_EQ(kiln_file_write("/dev/full", KILN_STR("x"), NULL), -ENOSPC);
}

TEST(file, replacing_keeps_the_mode_and_writes_through_a_link)
{
    const char *dir = directory();
    const char *path = inside(dir, "a");
    const char *link = inside(dir, "link");
    struct stat st;

    CHECK_OK(kiln_file_write(path, KILN_STR("old"), NULL));
    CHECK_OK(chmod(path, 0640));
    CHECK_OK(symlink("a", link));
    CHECK_OK(kiln_file_write(link, KILN_STR("newer"), NULL));
    CHECK_OK(lstat(link, &st));
    CHECK(S_ISLNK(st.st_mode));
    CHECK_OK(stat(path, &st));
    CHECK_EQ(st.st_size, 5);
    CHECK_EQ(st.st_mode & 07777, 0640);
    unlink(link);
    unlink(path);
    CHECK_OK(rmdir(dir)); /* no temporary file is left */
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "store/io.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "starved.h"
#include "test.h"

static char folder[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

static struct kiln_io *start(void)
{
    struct kiln_io *io = NULL;

    snprintf(folder, sizeof(folder), "/tmp/kiln-io-XXXXXX");
    CHECK(mkdtemp(folder));
    CHECK_OK(kiln_io_open(folder, false, &io));
    return io;
}

static void stop(struct kiln_io *io)
{
    kiln_io_close(io);
    CHECK_OK(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS));
}

/* Names, each followed by a blank, as a text. */
struct names {
    char text[256];
};

static int add_name(void *context, const char *name)
{
    struct names *names = context;

    strncat(names->text, name, 100);
    strncat(names->text, " ", 2);
    return 0;
}

static int refuse(void *context, const char *name)
{
    (void)context;
    (void)name;
    return -ECANCELED;
}

TEST(io, what_is_put_is_got_back)
{
    struct kiln_io *io = start();
    void *data;
    size_t n;

    CHECK_OK(io->mkdir(io, "a"));
    CHECK_OK(io->mkdir(io, "a"));
    CHECK_OK(kiln_io_put(io, "a/file", "hello", 5));
    CHECK_OK(kiln_io_put(io, "a/file", "good day", 8));
    CHECK_OK(kiln_io_put(io, "empty", NULL, 0));
    CHECK_OK(kiln_io_get(io, "a/file", 8, &data, &n));
    CHECK_STR(((struct kiln_str){data, n}), "good day");
    kiln_free(data);
    CHECK_EQ(kiln_io_get(io, "a/file", 7, &data, &n), KILN_E_LIMIT);
    CHECK_EQ(kiln_io_get(io, "a/other", 7, &data, &n), -ENOENT);
    CHECK_OK(kiln_io_get(io, "empty", 0, &data, &n));
    CHECK_EQ(n, 0);
    kiln_free(data);
    stop(io);
}

TEST(io, a_put_that_fails_leaves_no_temporary_file)
{
    struct kiln_io *io = start();
    struct names names = {""};

    CHECK_OK(io->mkdir(io, "a"));
    CHECK_OK(io->mkdir(io, "a/file"));
    CHECK_EQ(kiln_io_put(io, "a/file", "hello", 5), -EISDIR);
    CHECK_OK(io->list(io, "a", add_name, &names));
    CHECK_TEXT(names.text, "file ");
    stop(io);
}

TEST(io, no_name_leads_out_of_the_root)
{
    static const char *const names[] = {"/etc/passwd", "../x", "a/../../x", "a/..", "", "a//b"};
    struct kiln_io *io = start();

    CHECK_OK(io->mkdir(io, "a"));
    for (size_t i = 0; i < KILN_ARRAY_LEN(names); i++) {
        CHECK_EQ(io->open(io, names[i], O_RDWR | O_CREAT), -EINVAL);
        CHECK_EQ(io->unlink(io, names[i]), -EINVAL);
        CHECK_EQ(io->mkdir(io, names[i]), -EINVAL);
        CHECK_EQ(io->sync_dir(io, names[i]), -EINVAL);
        CHECK_EQ(io->rename(io, "a", names[i]), -EINVAL);
        CHECK_EQ(io->link(io, names[i], "b"), -EINVAL);
        CHECK_EQ(io->list(io, names[i], refuse, NULL), -EINVAL);
    }
    CHECK_OK(kiln_io_put(io, "..a", "x", 1));
    stop(io);
}

TEST(io, a_symbolic_link_is_not_followed)
{
    struct kiln_io *io = start();
    char path[128];

    snprintf(path, sizeof(path), "%s/link", folder);
    CHECK_OK(symlink("/etc/passwd", path));
    CHECK_EQ(io->open(io, "link", O_RDONLY), -ELOOP);
    stop(io);
}

TEST(io, a_second_process_is_kept_out_and_a_reader_is_not)
{
    struct kiln_io *io = start();
    struct kiln_io *other = NULL;

    CHECK_EQ(kiln_io_open(folder, false, &other), -EWOULDBLOCK);
    CHECK_OK(kiln_io_open(folder, true, &other));
    kiln_io_close(other);
    kiln_io_close(io);
    CHECK_OK(kiln_io_open(folder, false, &io));
    stop(io);
}

TEST(io, the_root_is_made_with_its_parents_unless_only_read)
{
    struct kiln_io *io = start();
    struct kiln_io *deep = NULL;
    char path[128];

    snprintf(path, sizeof(path), "%s/x/y//z/", folder);
    CHECK_EQ(kiln_io_open(path, true, &deep), -ENOENT);
    CHECK_OK(kiln_io_open(path, false, &deep));
    CHECK_OK(kiln_io_put(deep, "f", "1", 1));
    kiln_io_close(deep);
    CHECK_EQ(kiln_io_open("", false, &deep), -ENOENT);
    stop(io);
}

TEST(io, pieces_are_written_one_after_the_other)
{
    struct kiln_io *io = start();
    struct iovec pieces[] = {{(char *)"abc", 3}, {NULL, 0}, {(char *)"defg", 4}};
    char back[16];
    uint64_t size;
    int fd = io->open(io, "f", O_RDWR | O_CREAT | O_EXCL);

    CHECK(fd >= 0);
    CHECK_OK(io->pwritev(io, fd, pieces, 3, 2));
    CHECK_OK(io->size(io, fd, &size));
    CHECK_EQ(size, 9);
    CHECK_OK(io->truncate(io, fd, 6));
    CHECK_EQ(io->pread(io, fd, back, sizeof(back), 0), 6);
    CHECK_EQ(memcmp(back, "\0\0abcd", 6), 0);
    CHECK_OK(io->sync(io, fd));
    CHECK_OK(io->sync_dir(io, "."));
    CHECK_OK(io->close(io, fd));
    CHECK_EQ(io->open(io, "f", O_RDWR | O_CREAT | O_EXCL), -EEXIST);
    stop(io);
}

TEST(io, names_are_linked_renamed_listed_and_removed)
{
    struct kiln_io *io = start();
    struct names names = {""};
    uint64_t free_bytes = 0;
    uint64_t total = 0;

    CHECK_OK(io->mkdir(io, "d"));
    CHECK_OK(kiln_io_put(io, "d/a", "1", 1));
    CHECK_OK(io->link(io, "d/a", "d/b"));
    CHECK_OK(io->unlink(io, "d/a"));
    CHECK_OK(io->rename(io, "d/b", "d/c"));
    CHECK_OK(io->list(io, "d", add_name, &names));
    CHECK_TEXT(names.text, "c ");
    CHECK_EQ(io->list(io, "d", refuse, NULL), -ECANCELED);
    CHECK_OK(io->unlink(io, "d/c"));
    CHECK_OK(io->list(io, "d", refuse, NULL));
    CHECK_EQ(io->list(io, "e", refuse, NULL), -ENOENT);
    CHECK_OK(io->space(io, &free_bytes, &total));
    CHECK(free_bytes <= total && total);
    stop(io);
}

TEST(io, without_memory_nothing_is_left_behind)
{
    struct kiln_starved s = {0};
    struct kiln_io *io = NULL;

    snprintf(folder, sizeof(folder), "/tmp/kiln-io-XXXXXX");
    CHECK(mkdtemp(folder));
    while (kiln_test_starve(&s))
        s.r = kiln_io_open(folder, false, &io);
    stop(io);
}

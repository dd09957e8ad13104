/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated disk must lose what a disk may lose, and keep what it must keep. */
#include "sim_io.h"

#include <errno.h>
#include <fcntl.h>

#include "base/mem.h"
#include "test.h"

enum { SEEDS = 200 };

static int create(struct kiln_io *io, const char *path, const char *text)
{
    int fd = io->open(io, path, O_RDWR | O_CREAT);

    CHECK(fd >= 0);
    CHECK_OK(io->pwrite(io, fd, text, strlen(text), 0));
    return fd;
}

static bool reads(struct kiln_io *io, const char *path, const char *text)
{
    void *data = NULL;
    size_t n = 0;
    bool same;

    if (kiln_io_get(io, path, 1 << 20, &data, &n) < 0)
        return false;
    same = n == strlen(text) && memcmp(data, text, n) == 0;
    kiln_free(data);
    return same;
}

static bool exists(struct kiln_io *io, const char *path)
{
    int fd = io->open(io, path, O_RDONLY);

    if (fd >= 0)
        io->close(io, fd);
    return fd >= 0;
}

TEST(sim_io, what_is_put_survives_every_cut)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kiln_io *io = kiln_sim_new();

        CHECK_OK(io->mkdir(io, "a"));
        CHECK_OK(io->sync_dir(io, "."));
        CHECK_OK(kiln_io_put(io, "a/f", "first", 5));
        CHECK_OK(kiln_io_put(io, "a/f", "second", 6));
        kiln_sim_cut(io, seed);
        CHECK(reads(io, "a/f", "second"));
        kiln_sim_free(io);
    }
}

TEST(sim_io, a_put_that_is_cut_anywhere_leaves_the_old_or_the_new_file)
{
    uint32_t old = 0;
    uint32_t new = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kiln_io *io = kiln_sim_new();

        CHECK_OK(kiln_io_put(io, "f", "first", 5));
        kiln_sim_cut_at(io, 1 + seed % 6);
        CHECK(kiln_io_put(io, "f", "second", 6) == (seed % 6 == 5 ? 0 : -EIO));
        kiln_sim_cut(io, seed);
        old += reads(io, "f", "first");
        new += reads(io, "f", "second");
        kiln_sim_free(io);
    }
    CHECK_EQ(old + new, SEEDS);
    CHECK(old && new);
}

TEST(sim_io, a_synced_file_without_a_synced_name_may_be_gone)
{
    uint32_t there = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kiln_io *io = kiln_sim_new();
        int fd = create(io, "f", "text");

        CHECK_OK(io->sync(io, fd));
        kiln_sim_cut(io, seed);
        CHECK(!exists(io, "f") || reads(io, "f", "text"));
        there += exists(io, "f");
        kiln_sim_free(io);
    }
    CHECK(there > 0 && there < SEEDS);
}

TEST(sim_io, a_rename_may_survive_without_the_content_it_commits)
{
    uint32_t hollow = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kiln_io *io = kiln_sim_new();

        CHECK_OK(kiln_io_put(io, "f", "first", 5));
        create(io, "f.new", "second");
        CHECK_OK(io->rename(io, "f.new", "f"));
        kiln_sim_cut(io, seed);
        CHECK(exists(io, "f"));
        hollow += !reads(io, "f", "first") && !reads(io, "f", "second");
        kiln_sim_free(io);
    }
    CHECK(hollow > SEEDS / 10);
}

TEST(sim_io, a_removal_may_survive_when_an_earlier_rename_does_not)
{
    uint32_t both_gone = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kiln_io *io = kiln_sim_new();

        CHECK_OK(kiln_io_put(io, "old", "x", 1));
        CHECK_OK(kiln_io_put(io, "tmp", "y", 1));
        CHECK_OK(io->rename(io, "tmp", "new"));
        CHECK_OK(io->unlink(io, "old"));
        kiln_sim_cut(io, seed);
        both_gone += !exists(io, "old") && !exists(io, "new");
        kiln_sim_free(io);
    }
    CHECK(both_gone);
}

TEST(sim_io, a_file_moved_between_folders_is_never_nowhere)
{
    uint32_t in_both = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kiln_io *io = kiln_sim_new();

        CHECK_OK(io->mkdir(io, "a"));
        CHECK_OK(io->mkdir(io, "b"));
        CHECK_OK(io->sync_dir(io, "."));
        CHECK_OK(kiln_io_put(io, "a/f", "x", 1));
        CHECK_OK(io->rename(io, "a/f", "b/f"));
        CHECK(!exists(io, "a/f") && exists(io, "b/f"));
        CHECK_OK(io->sync_dir(io, seed % 2 ? "a" : "b"));
        kiln_sim_cut(io, seed);
        CHECK(exists(io, "a/f") || exists(io, "b/f"));
        in_both += exists(io, "a/f") && exists(io, "b/f");
        kiln_sim_free(io);
    }
    CHECK(in_both);
}

TEST(sim_io, files_in_a_folder_that_was_not_synced_go_with_it)
{
    struct kiln_io *io = kiln_sim_new();
    uint64_t seed = 0;

    do {
        kiln_sim_free(io);
        io = kiln_sim_new();
        CHECK_OK(io->mkdir(io, "a"));
        CHECK_OK(kiln_io_put(io, "a/f", "x", 1));
        kiln_sim_cut(io, seed++);
    } while (exists(io, "a/f"));
    CHECK_EQ(io->sync_dir(io, "a"), -ENOENT);
    kiln_sim_free(io);
}

TEST(sim_io, unsynced_writes_are_torn_at_sectors)
{
    char text[4097];
    uint32_t kinds[4] = {0};

    memset(text, 'x', 4096);
    text[4096] = '\0';
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kiln_io *io = kiln_sim_new();
        void *data;
        size_t n;
        size_t kept = 0;

        CHECK_OK(kiln_io_put(io, "f", "", 0));
        io->close(io, create(io, "f", text));
        kiln_sim_cut(io, seed);
        CHECK_OK(kiln_io_get(io, "f", 4096, &data, &n));
        for (size_t i = 0; i < n; i++)
            kept += ((char *)data)[i] == 'x';
        kinds[n == 0 ? 0 : kept == 4096 ? 1 : kept >= 512 ? 2 : 3]++;
        kiln_free(data);
        kiln_sim_free(io);
    }
    CHECK(kinds[0] && kinds[1] && kinds[2] && kinds[3]);
}

TEST(sim_io, after_a_failed_sync_a_second_one_brings_nothing_back)
{
    uint32_t lost = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kiln_io *io = kiln_sim_new();
        int fd;

        CHECK_OK(kiln_io_put(io, "f", "", 0));
        kiln_sim_cut(io, seed);
        fd = create(io, "f", "text");
        kiln_sim_fail_syncs(io, 1, -EIO);
        CHECK_EQ(io->sync(io, fd), -EIO);
        CHECK(reads(io, "f", "text"));
        CHECK_OK(io->sync(io, fd));
        kiln_sim_cut(io, seed);
        lost += !reads(io, "f", "text");
        kiln_sim_free(io);
    }
    CHECK(lost);
}

TEST(sim_io, a_full_disk_takes_what_fits)
{
    struct kiln_io *io = kiln_sim_new();
    uint64_t free_bytes;
    uint64_t total;
    int fd = create(io, "f", "1234");

    kiln_sim_limit(io, 6);
    CHECK_OK(io->space(io, &free_bytes, &total));
    CHECK_EQ(free_bytes, 2);
    CHECK_EQ(io->pwrite(io, fd, "56789", 5, 4), -ENOSPC);
    CHECK(reads(io, "f", "123456"));
    CHECK_OK(io->pwrite(io, fd, "abc", 3, 0));
    CHECK_EQ(io->open(io, "g", O_RDWR | O_CREAT), -ENOSPC);
    kiln_sim_limit(io, 7);
    CHECK_OK(io->pwrite(io, fd, "d", 1, 6));
    CHECK_OK(io->close(io, fd));
    CHECK_OK(io->unlink(io, "f"));
    CHECK_EQ(kiln_sim_used(io), 0);
    kiln_sim_free(io);
}

TEST(sim_io, the_call_that_shall_fail_does)
{
    struct kiln_io *io = kiln_sim_new();
    int fd = create(io, "f", "1234");

    kiln_sim_fail_at(io, 2, -EMFILE);
    CHECK_OK(io->sync(io, fd));
    CHECK_EQ(io->open(io, "f", O_RDONLY), -EMFILE);
    kiln_sim_fail_at(io, 1, -EIO);
    CHECK_EQ(io->pwrite(io, fd, "abcd", 4, 0), -EIO);
    CHECK(reads(io, "f", "ab34"));
    CHECK(kiln_sim_flip(io, "f", 3, 0));
    CHECK(reads(io, "f", "ab35"));
    CHECK(!kiln_sim_flip(io, "f", 4, 0));
    kiln_sim_free(io);
}

TEST(sim_io, after_the_cut_everything_fails_until_power_is_back)
{
    struct kiln_io *io = kiln_sim_new();
    int fd = create(io, "f", "1234");

    kiln_sim_cut_at(io, 1);
    CHECK_EQ(io->sync(io, fd), -EIO);
    CHECK(kiln_sim_is_dead(io));
    CHECK_EQ(io->open(io, "g", O_RDWR | O_CREAT), -EIO);
    CHECK_EQ(io->sync_dir(io, "."), -EIO);
    kiln_sim_cut(io, 1);
    CHECK_EQ(io->sync(io, fd), -EBADF);
    CHECK_OK(io->sync_dir(io, "."));
    kiln_sim_free(io);
}

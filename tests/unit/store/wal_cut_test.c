/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log on a disk that fails: whatever happens, what was acknowledged is there afterwards, once
 * and in order, and nothing is reported as damage that the failure explains.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "log_writer.h"
#include "sim_io.h"
#include "store/wal.h"
#include "test.h"

static struct kiln_io *io;
static struct kiln_wal *wal;
static struct kiln_log_writer writer;
static struct kiln_log_read back;

static uint32_t times(uint32_t often, uint32_t many)
{
    return getenv("KILN_TORTURE") ? many : often;
}

static void start(void)
{
    io = kiln_sim_new();
    wal = NULL;
    kiln_log_writer_init(&writer, NULL);
}

static void stop(void)
{
    kiln_wal_close(wal);
    wal = NULL;
    kiln_log_writer_done(&writer);
    kiln_sim_free(io);
}

/* Opens the log and compares it with what was acknowledged; NULL, or what is wrong. */
static const char *open_and_compare(void)
{
    const char *wrong;

    if (kiln_log_open(io, writer.trimmed, &back, &wal) < 0)
        return kiln_sim_is_dead(io) ? NULL : "the log does not open";
    writer.wal = wal;
    wrong = kiln_log_compare(&writer, &back);
    return wrong ? wrong : back.damaged ? "damage is reported" : NULL;
}

/* Appends in groups of different sizes, trimming now and then, until the power fails. */
static void work(uint64_t *random, uint32_t rounds)
{
    for (uint32_t i = 0; wal && i < rounds && !kiln_sim_is_dead(io); i++) {
        kiln_log_writer_append(&writer, 1 + (uint32_t)(kiln_sim_random(random) % 12));
        if (kiln_sim_random(random) % 8 == 0) {
            writer.trimmed = kiln_wal_durable(wal) / 2;
            if (kiln_wal_trim(wal, writer.trimmed) < 0)
                break;
        }
    }
}

/* Work, cut, open, several times over.  NULL, or what went wrong. */
static const char *live_and_die(uint64_t seed)
{
    uint64_t random = seed;
    const char *wrong = NULL;

    start();
    for (int life = 0; life < 4 && !wrong; life++) {
        kiln_sim_cut_at(io, 1 + kiln_sim_random(&random) % 60);
        wrong = open_and_compare();
        work(&random, 20);
        kiln_wal_close(wal);
        wal = NULL;
        kiln_sim_cut(io, kiln_sim_random(&random));
    }
    if (!wrong)
        wrong = open_and_compare();
    stop();
    return wrong;
}

TEST(wal_cut, no_acknowledged_record_is_lost_and_none_is_there_twice)
{
    for (uint64_t seed = 1; seed <= times(500, 5000); seed++) {
        const char *wrong = live_and_die(seed);

        if (wrong)
            printf("seed %llu: %s\n", (unsigned long long)seed, wrong);
        CHECK(!wrong);
    }
}

static int sync_nothing(struct kiln_io *unused, int fd)
{
    (void)unused;
    (void)fd;
    return 0;
}

static int sync_no_folder(struct kiln_io *unused, const char *path)
{
    (void)unused;
    (void)path;
    return 0;
}

/* Whether the check above sees that a table is broken. */
static bool is_caught(void (*sabotage)(struct kiln_io *io))
{
    uint32_t caught = 0;

    for (uint64_t seed = 1; seed <= 40; seed++) {
        const char *wrong = NULL;
        uint64_t random = seed;

        start();
        sabotage(io);
        for (int life = 0; life < 4 && !wrong; life++) {
            wrong = open_and_compare();
            work(&random, 5);
            kiln_wal_close(wal);
            wal = NULL;
            kiln_sim_cut(io, seed);
        }
        caught += wrong != NULL;
        stop();
    }
    return caught > 10;
}

static void break_nothing(struct kiln_io *broken)
{
    (void)broken;
}

static void break_sync(struct kiln_io *broken)
{
    broken->sync = sync_nothing;
}

static void break_sync_dir(struct kiln_io *broken)
{
    broken->sync_dir = sync_no_folder;
}

static void make_lie(struct kiln_io *broken)
{
    kiln_sim_lie(broken, true);
}

TEST(wal_cut, the_check_sees_when_nothing_is_synced)
{
    CHECK(!is_caught(break_nothing));
    CHECK(is_caught(break_sync));
    CHECK(is_caught(break_sync_dir));
    CHECK(is_caught(make_lie));
}

TEST(wal_cut, a_full_disk_fails_appends_until_there_is_room)
{
    start();
    CHECK(!open_and_compare());
    CHECK_OK(kiln_log_writer_append(&writer, 20));
    for (int i = 0; i < 20; i++) {
        kiln_sim_limit(io, kiln_sim_used(io) + (uint64_t)i * 13);
        while (kiln_log_writer_append(&writer, 3) == 0)
            ;
        CHECK_EQ(writer.codes[writer.submitted - 1], -ENOSPC);
        kiln_sim_limit(io, UINT64_MAX);
        CHECK_OK(kiln_log_writer_append(&writer, 2));
    }
    kiln_wal_close(wal);
    kiln_sim_cut(io, 5);
    CHECK(!open_and_compare());
    stop();
}

TEST(wal_cut, a_full_disk_and_a_failing_truncate_make_a_new_segment)
{
    start();
    CHECK(!open_and_compare());
    CHECK_OK(kiln_log_writer_append(&writer, 20));
    kiln_sim_fail_truncate(io, -EIO);
    kiln_sim_limit(io, kiln_sim_used(io) + 100);
    CHECK_EQ(kiln_log_writer_append(&writer, 30), -ENOSPC);
    kiln_sim_limit(io, UINT64_MAX);
    CHECK_OK(kiln_log_writer_append(&writer, 2));
    kiln_wal_close(wal);
    CHECK(!open_and_compare());
    stop();
}

TEST(wal_cut, a_failed_sync_fails_its_records_and_no_others)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        start();
        CHECK(!open_and_compare());
        CHECK_OK(kiln_log_writer_append(&writer, 5));
        kiln_sim_fail_syncs(io, 1, -EIO);
        CHECK_EQ(kiln_log_writer_append(&writer, 1), -EIO);
        CHECK_OK(kiln_log_writer_append(&writer, 5));
        kiln_sim_fail_syncs(io, UINT32_MAX, -EIO);
        CHECK_EQ(kiln_log_writer_append(&writer, 5), -EIO);
        CHECK_EQ(kiln_log_writer_append(&writer, 5), -EIO);
        kiln_sim_fail_syncs(io, 0, 0);
        CHECK_OK(kiln_log_writer_append(&writer, 5));
        kiln_wal_close(wal);
        kiln_sim_cut(io, seed);
        CHECK(!open_and_compare());
        stop();
    }
}

/* Every call in turn fails, with and without a cut afterwards. */
TEST(wal_cut, any_call_may_fail)
{
    static const int codes[] = {-EIO, -ENOSPC, -EMFILE, -EINTR};

    for (uint64_t n = 1; n < 120; n++) {
        uint64_t random = n;
        const char *wrong;

        start();
        kiln_sim_fail_at(io, n, codes[n % 4]);
        if (open_and_compare())
            CHECK(!open_and_compare()); /* it failed; the second time it does not */
        work(&random, 20);
        kiln_wal_close(wal);
        wal = NULL;
        kiln_sim_fail_at(io, 0, 0);
        if (n % 2)
            kiln_sim_cut(io, n);
        wrong = open_and_compare();
        if (wrong)
            printf("call %llu: %s\n", (unsigned long long)n, wrong);
        CHECK(!wrong);
        stop();
    }
}

static void *append_some(void *argument)
{
    (void)argument;
    for (int i = 0; i < 40; i++) {
        kiln_log_writer_submit(&writer);
        if (i % 10 == 9)
            kiln_log_writer_wait(&writer);
    }
    return NULL;
}

TEST(wal_cut, many_threads_append_while_the_power_fails)
{
    for (uint64_t seed = 1; seed <= times(20, 200); seed++) {
        pthread_t threads[4];

        start();
        CHECK(!open_and_compare());
        kiln_sim_cut_at(io, seed * 3);
        for (int i = 0; i < 4; i++)
            CHECK_OK(pthread_create(&threads[i], NULL, append_some, NULL));
        for (uint64_t i = 0; i < 50; i++)
            if (kiln_wal_trim(wal, 0) < 0)
                break;
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        kiln_wal_close(wal);
        kiln_sim_cut(io, seed);
        CHECK(!open_and_compare());
        stop();
    }
}

TEST(wal_cut, closing_commits_what_waits_and_refuses_what_comes_later)
{
    start();
    CHECK(!open_and_compare());
    for (int i = 0; i < 100; i++)
        kiln_log_writer_submit(&writer);
    kiln_wal_close(wal);
    CHECK_EQ(writer.answered, 100);
    CHECK(!open_and_compare());
    CHECK_EQ(back.n, 100);
    stop();
}

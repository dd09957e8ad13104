/* SPDX-License-Identifier: Apache-2.0 */
#include "store/wal_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/mem.h"
#include "log_writer.h"
#include "sim_io.h"
#include "starved.h"
#include "test.h"

static struct kiln_io *io;
static struct kiln_wal *wal;
static struct kiln_log_writer writer;
static struct kiln_log_read back;

static void start(void)
{
    io = kiln_sim_new();
    CHECK_OK(kiln_log_open(io, 0, &back, &wal));
    CHECK_EQ(back.n, 0);
    kiln_log_writer_init(&writer, wal);
}

/* Closes the log and opens it again, reading all of it into `back`. */
static void reopen(void)
{
    kiln_wal_close(wal);
    CHECK_OK(kiln_log_open(io, writer.trimmed, &back, &wal));
    writer.wal = wal;
}

static void stop(void)
{
    kiln_wal_close(wal);
    kiln_log_writer_done(&writer);
    kiln_sim_free(io);
}

/* ---- names of segments ---- */

struct names {
    uint32_t n;
    char names[64][32];
};

static int add_name(void *context, const char *name)
{
    struct names *names = context;

    snprintf(names->names[names->n++], sizeof(names->names[0]), "wal/%.24s", name);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static struct names *segments(void)
{
    static struct names names;

    names.n = 0;
    CHECK_OK(io->list(io, "wal", add_name, &names));
    qsort(names.names, names.n, sizeof(names.names[0]), by_name);
    return &names;
}

static uint64_t size_of(const char *path)
{
    uint64_t size = 0;
    int fd = io->open(io, path, O_RDONLY);

    CHECK(fd >= 0);
    CHECK_OK(io->size(io, fd, &size));
    CHECK_OK(io->close(io, fd));
    return size;
}

static void add_bytes(const char *path, const char *bytes, size_t n)
{
    uint64_t size = size_of(path);
    int fd = io->open(io, path, O_RDWR);

    CHECK_OK(io->pwrite(io, fd, bytes, n, size));
    CHECK_OK(io->close(io, fd));
}

static void copy(const char *from, const char *to)
{
    void *data;
    size_t n;

    CHECK_OK(kiln_io_get(io, from, 1 << 20, &data, &n));
    CHECK_OK(kiln_io_put(io, to, data, n));
    kiln_free(data);
}

/* ---- tests ---- */

TEST(wal, a_segment_that_was_removed_takes_no_records)
{
    start();
    CHECK_OK(kiln_log_writer_append(&writer, 1));
    CHECK_OK(io->unlink(io, segments()->names[0]));
    CHECK_EQ(kiln_log_writer_append(&writer, 1), -ENOENT);
    CHECK_OK(kiln_log_writer_append(&writer, 1)); /* into the next one */
    CHECK_EQ(segments()->n, 1);
    stop();
}

TEST(wal, what_was_appended_is_replayed_in_order)
{
    start();
    CHECK_OK(kiln_log_writer_append(&writer, 1));
    CHECK_OK(kiln_log_writer_append(&writer, 700));
    CHECK_EQ(kiln_wal_durable(wal), 701);
    CHECK(kiln_wal_bytes(wal) > 701 * 60);
    reopen();
    CHECK_EQ(back.n, 701);
    CHECK(!kiln_log_compare(&writer, &back));
    CHECK_EQ(kiln_wal_durable(wal), 701);
    CHECK_EQ(kiln_wal_bytes(wal), kiln_sim_used(io));
    stop();
}

TEST(wal, numbers_go_on_after_a_restart_and_above_what_blocks_cover)
{
    start();
    CHECK_OK(kiln_log_writer_append(&writer, 3));
    reopen();
    CHECK_OK(kiln_log_writer_append(&writer, 1));
    CHECK_EQ(writer.numbers[3], 4);
    kiln_wal_close(wal);
    CHECK_OK(kiln_log_open(io, 1000, &back, &wal));
    writer.wal = wal;
    CHECK_OK(kiln_log_writer_append(&writer, 1));
    CHECK_EQ(writer.numbers[4], 1001);
    reopen();
    CHECK_EQ(back.n, 5);
    CHECK_EQ(back.damaged, 0);
    CHECK(!kiln_log_compare(&writer, &back));
    stop();
}

TEST(wal, a_new_segment_is_begun_when_one_is_full)
{
    start();
    for (int i = 0; i < 200; i++)
        CHECK_OK(kiln_log_writer_append(&writer, 1));
    CHECK(segments()->n > 4);
    for (uint32_t i = 0; i < segments()->n; i++)
        CHECK(size_of(segments()->names[i]) < 8192 + 3200);
    reopen();
    CHECK_EQ(back.n, 200);
    stop();
}

TEST(wal, a_record_larger_than_a_segment_is_kept)
{
    static char body[100000];
    struct kiln_wal_record record = {.tenant = KILN_STR("big"), .body = {body, sizeof(body)}};
    struct kiln_wal_append append = {.record = record};

    start();
    kiln_log_writer_submit_foreign(&writer, &append);
    CHECK_OK(kiln_log_writer_append(&writer, 1));
    reopen();
    CHECK_EQ(back.n, 2);
    CHECK_EQ(back.wrong, 1);
    CHECK_EQ(back.times[0], 1);
    stop();
}

TEST(wal, too_large_a_record_is_refused_alone)
{
    char tenant[KILN_WAL_TENANT_MAX + 1];
    struct kiln_wal_append append = {.record = {.tenant = {tenant, sizeof(tenant)}}};

    memset(tenant, 'x', sizeof(tenant));
    start();
    CHECK_EQ(kiln_log_writer_submit_foreign(&writer, &append), KILN_E_LIMIT);
    append.record = (struct kiln_wal_record){.body = {"", KILN_WAL_BODY_MAX + (size_t)1}};
    CHECK_EQ(kiln_log_writer_submit_foreign(&writer, &append), KILN_E_LIMIT);
    append.record = (struct kiln_wal_record){.recipe = {"", 1}, .body = {"", KILN_WAL_BODY_MAX}};
    CHECK_EQ(kiln_log_writer_submit_foreign(&writer, &append), KILN_E_LIMIT);
    CHECK_OK(kiln_log_writer_append(&writer, 3));
    reopen();
    CHECK_EQ(back.n, 3);
    stop();
}

TEST(wal, trim_removes_what_is_covered_and_nothing_else)
{
    uint64_t before;

    start();
    for (int i = 0; i < 200; i++)
        CHECK_OK(kiln_log_writer_append(&writer, 1));
    before = segments()->n;
    writer.trimmed = writer.numbers[100];
    CHECK_OK(kiln_wal_trim(wal, writer.trimmed));
    CHECK(segments()->n > 1 && segments()->n < before);
    CHECK_EQ(kiln_wal_bytes(wal), kiln_sim_used(io));
    reopen();
    CHECK(!kiln_log_compare(&writer, &back));
    CHECK(back.n >= 99 && back.n < 200);
    CHECK_EQ(back.damaged, 0);
    writer.trimmed = kiln_wal_durable(wal);
    CHECK_OK(kiln_log_writer_append(&writer, 1));
    CHECK_OK(kiln_wal_trim(wal, writer.trimmed));
    reopen();
    CHECK_EQ(back.n, 1);
    stop();
}

TEST(wal, a_covered_segment_that_is_being_written_goes_too)
{
    start();
    CHECK_OK(kiln_log_writer_append(&writer, 5));
    writer.trimmed = kiln_wal_durable(wal);
    /* The committer may still be on its way back to sleep: then the segment stays this time. */
    while (segments()->n)
        CHECK_OK(kiln_wal_trim(wal, writer.trimmed));
    CHECK_EQ(kiln_wal_bytes(wal), 0);
    CHECK_OK(kiln_log_writer_append(&writer, 2));
    reopen();
    CHECK_EQ(back.n, 2);
    CHECK_EQ(back.numbers[6], 7);
    CHECK_EQ(back.damaged, 0);
    stop();
}

TEST(wal, blocks_that_are_gone_do_not_look_like_lost_records)
{
    start();
    CHECK_OK(kiln_log_writer_append(&writer, 100));
    writer.trimmed = writer.numbers[80];
    CHECK_OK(kiln_wal_trim(wal, writer.trimmed));
    CHECK_OK(kiln_log_writer_append(&writer, 1));
    kiln_wal_close(wal);
    CHECK_OK(kiln_log_open(io, 0, &back, &wal));
    CHECK_EQ(back.damaged, 0);
    stop();
}

TEST(wal, zeros_garbage_and_half_a_record_at_the_end_are_a_torn_tail)
{
    static const char zeros[5000];
    char garbage[3001];
    uint64_t random = 7;

    for (size_t i = 0; i < sizeof(garbage); i++)
        garbage[i] = (char)kiln_sim_random(&random);
    start();
    CHECK_OK(kiln_log_writer_append(&writer, 3));
    add_bytes(segments()->names[0], zeros, sizeof(zeros));
    reopen();
    CHECK_OK(kiln_log_writer_append(&writer, 3));
    add_bytes(segments()->names[1], garbage, sizeof(garbage));
    reopen();
    CHECK_OK(kiln_log_writer_append(&writer, 3));
    add_bytes(segments()->names[2], garbage, 13);
    reopen();
    CHECK_EQ(back.n, 9);
    CHECK_EQ(back.damaged, 0);
    CHECK(!kiln_log_compare(&writer, &back));
    stop();
}

TEST(wal, a_copied_segment_gives_nothing_twice)
{
    start();
    CHECK_OK(kiln_log_writer_append(&writer, 20));
    copy(segments()->names[0], "wal/00000000000000000005.log");
    copy(segments()->names[0], "wal/00000000000000099999.log");
    copy(segments()->names[0], "wal/unknown");
    reopen();
    CHECK_EQ(back.n, 20);
    CHECK(!kiln_log_compare(&writer, &back));
    CHECK_OK(kiln_log_writer_append(&writer, 1));
    CHECK(writer.numbers[20] > 99999);
    reopen();
    CHECK_EQ(back.n, 21);
    CHECK_EQ(back.damaged, 0);
    stop();
}

/* Turns each byte of a log of three segments in turn. */
TEST(wal, a_flipped_bit_costs_at_most_its_record_and_is_reported)
{
    uint64_t n_flips = 0;

    start();
    CHECK_OK(kiln_log_writer_append(&writer, 4));
    for (int i = 0; i < 2; i++) {
        reopen();
        CHECK_OK(kiln_log_writer_append(&writer, 4));
    }
    for (uint32_t s = 0; s < 3; s++) {
        for (uint64_t at = 0; at < size_of(segments()->names[s]); at += 3) {
            CHECK(kiln_sim_flip(io, segments()->names[s], at, (int)(at % 8)));
            reopen();
            CHECK_EQ(back.wrong, 0);
            CHECK(back.n >= 11);
            /* What was written last has nobody behind it to vouch for it. */
            CHECK(back.damaged <= 1);
            if (s < 2)
                CHECK_EQ(back.damaged, back.n == 11 || at < 32);
            CHECK(kiln_sim_flip(io, segments()->names[s], at, (int)(at % 8)));
            n_flips++;
        }
    }
    CHECK(n_flips > 500);
    stop();
}

TEST(wal, a_damaged_segment_is_set_aside_when_it_is_covered)
{
    start();
    CHECK_OK(kiln_log_writer_append(&writer, 4));
    reopen();
    CHECK_OK(kiln_log_writer_append(&writer, 4));
    CHECK(kiln_sim_flip(io, segments()->names[0], 100, 3));
    reopen();
    CHECK_EQ(back.n, 7);
    CHECK_EQ(back.damaged, 1);
    CHECK_EQ(back.lost_after, 1);
    CHECK_EQ(back.lost_up_to, 2);
    CHECK_TEXT(back.path, "wal/00000000000000000001.log");
    CHECK_OK(kiln_wal_trim(wal, 8));
    CHECK_EQ(segments()->n, 0);
    CHECK(io->open(io, "aside/00000000000000000001.log", O_RDONLY) >= 0);
    CHECK_EQ(io->open(io, "aside/00000000000000000005.log", O_RDONLY), -ENOENT);
    stop();
}

TEST(wal, a_segment_that_is_missing_is_reported)
{
    start();
    for (int i = 0; i < 3; i++) {
        CHECK_OK(kiln_log_writer_append(&writer, 4));
        reopen();
    }
    CHECK_OK(io->unlink(io, segments()->names[1]));
    reopen();
    CHECK_EQ(back.n, 8);
    CHECK_EQ(back.damaged, 1);
    CHECK_EQ(back.lost_after, 4);
    CHECK_EQ(back.lost_up_to, 8);
    stop();
}

static ssize_t (*real_pread)(struct kiln_io *, int, void *, size_t, uint64_t);
static int bad_reads; /* how many fail from now on */

static ssize_t bad_pread(struct kiln_io *of, int fd, void *buf, size_t n, uint64_t offset)
{
    return bad_reads-- > 0 ? -EIO : real_pread(of, fd, buf, n, offset);
}

static void open_with_bad_reads(int n)
{
    kiln_wal_close(wal);
    real_pread = io->pread;
    io->pread = bad_pread;
    bad_reads = n;
    CHECK_OK(kiln_log_open(io, 0, &back, &wal));
    io->pread = real_pread;
}

TEST(wal, a_segment_the_disk_cannot_read_stops_nothing)
{
    start();
    for (int i = 0; i < 3; i++) {
        CHECK_OK(kiln_log_writer_append(&writer, 4));
        reopen();
    }
    open_with_bad_reads(1); /* a bad moment, not a bad place */
    CHECK_EQ(back.n, 12);
    CHECK(!back.damaged);
    open_with_bad_reads(2);
    CHECK_EQ(back.n, 8);
    CHECK(back.damaged);
    stop();
}

TEST(wal, a_newer_format_is_refused_in_one_sentence)
{
    struct kiln_wal_opts opts = {0};
    struct kiln_err err = {0};
    uint8_t head[32];

    start();
    CHECK_OK(kiln_log_writer_append(&writer, 4));
    kiln_wal_close(wal);
    kiln_log_head_of_version(3, head);
    CHECK_OK(kiln_io_put(io, "wal/00000000000000000009.log", head, sizeof(head)));
    CHECK_EQ(kiln_wal_open(io, &opts, 0, kiln_log_read_record, &back, &wal, &err),
             KILN_E_UNSUPPORTED);
    CHECK_TEXT(err.where, "wal/00000000000000000009.log");
    CHECK_TEXT(err.text, "was written by a newer Kiln (log format 3, this one reads up to 2)");
    CHECK_OK(io->unlink(io, "wal/00000000000000000009.log"));
    CHECK_OK(kiln_log_open(io, 0, &back, &wal));
    stop();
}

/* Writes the first `n` records to a file, for a fixture of a new format. */
static void make_fixture(const char *path, uint32_t n)
{
    FILE *file = fopen(path, "wb");
    void *bytes = NULL;
    size_t len = 0;

    CHECK(file);
    start();
    CHECK_OK(kiln_log_writer_append(&writer, n));
    CHECK_OK(kiln_io_get(io, segments()->names[0], 1 << 20, &bytes, &len));
    CHECK_EQ(fwrite(bytes, 1, len, file), len);
    CHECK_OK(fclose(file));
    kiln_free(bytes);
    stop();
}

static void check_fixture(const char *path, uint32_t expected)
{
    size_t n = 0;
    char *bytes = kiln_test_read(path, &n);

    CHECK(bytes);
    io = kiln_sim_new();
    CHECK_OK(io->mkdir(io, "wal"));
    CHECK_OK(kiln_io_put(io, "wal/00000000000000000001.log", bytes, n));
    free(bytes);
    CHECK_OK(kiln_log_open(io, 0, &back, &wal));
    CHECK_EQ(back.n, expected);
    CHECK_EQ(back.wrong, 0);
    CHECK_EQ(back.numbers[expected - 1], expected);
    kiln_log_writer_init(&writer, wal);
    stop();
}

/* Written by older versions of the format: they are read for ever. */
TEST(wal, a_segment_of_version_1_is_read)
{
    check_fixture(KILN_SOURCE_DIR "/tests/fixtures/wal-v1.log", 4);
}

/* With a recipe in it; made when KILN_WRITE_FIXTURE says where. */
TEST(wal, a_segment_of_version_2_is_read)
{
    if (getenv("KILN_WRITE_FIXTURE"))
        make_fixture(getenv("KILN_WRITE_FIXTURE"), 6);
    check_fixture(KILN_SOURCE_DIR "/tests/fixtures/wal-v2.log", 6);
}

TEST(wal, a_recipe_that_is_longer_than_its_body_is_damage)
{
    static const uint32_t lengths[] = {0, 9, UINT32_MAX};
    struct wal_record_head head = {.has_recipe = true};

    for (size_t i = 0; i < KILN_ARRAY_LEN(lengths); i++) {
        char bytes[12] = {0};
        struct kiln_str body = {bytes, sizeof(bytes)}, recipe;

        memcpy(bytes, &lengths[i], sizeof(lengths[i]));
        CHECK(!wal_recipe_cut(&head, &body, &recipe));
        body = (struct kiln_str){bytes, 3};
        CHECK(!wal_recipe_cut(&head, &body, &recipe));
    }
}

static int refuse_second(void *context, const struct kiln_wal_record *record)
{
    (void)context;
    return record->number == 2 ? -EIO : 0;
}

TEST(wal, a_reader_may_stop_the_replay)
{
    struct kiln_wal_opts opts = {0};
    struct kiln_err err = {0};

    start();
    CHECK_OK(kiln_log_writer_append(&writer, 4));
    kiln_wal_close(wal);
    CHECK_EQ(kiln_wal_open(io, &opts, 0, refuse_second, NULL, &wal, &err), -EIO);
    CHECK_OK(kiln_log_open(io, 0, &back, &wal));
    stop();
}

TEST(wal, a_reader_changes_nothing_and_may_not_append)
{
    struct kiln_wal_opts opts = {.read_only = true, .damaged = kiln_log_read_damage};
    struct kiln_io *empty = kiln_sim_new();
    uint64_t operations;

    start();
    CHECK_OK(kiln_log_writer_append(&writer, 4));
    kiln_wal_close(wal);
    operations = kiln_sim_operations(io);
    memset(&back, 0, sizeof(back));
    CHECK_OK(kiln_wal_open(io, &opts, 0, kiln_log_read_record, &back, &wal, NULL));
    CHECK_EQ(back.n, 4);
    writer.wal = wal;
    CHECK_EQ(kiln_log_writer_append(&writer, 1), -EROFS);
    kiln_wal_close(wal);
    CHECK_EQ(kiln_sim_operations(io), operations);
    CHECK_OK(kiln_wal_open(empty, &opts, 0, kiln_log_read_record, &back, &wal, NULL));
    stop();
    kiln_sim_free(empty);
}

TEST(wal, without_memory_opening_fails_cleanly)
{
    struct kiln_starved s = {0};

    start();
    CHECK_OK(kiln_log_writer_append(&writer, 40));
    kiln_wal_close(wal);
    while (kiln_test_starve(&s))
        s.r = kiln_log_open(io, 0, &back, &wal);
    CHECK(s.n > 3);
    CHECK_EQ(back.n, 40);
    stop();
}

TEST(wal, appends_bytes_syncs_and_failures_are_counted)
{
    struct kiln_metrics *metrics;
    struct kiln_wal_opts opts = {0};
    struct kiln_buf text;

    CHECK_OK(kiln_metrics_new(&metrics));
    opts.metrics = metrics;
    io = kiln_sim_new();
    CHECK_OK(kiln_wal_open(io, &opts, 0, kiln_log_read_record, &back, &wal, NULL));
    kiln_log_writer_init(&writer, wal);
    CHECK_OK(kiln_log_writer_append(&writer, 3));
    kiln_sim_fail_syncs(io, 1, -EIO);
    CHECK_EQ(kiln_log_writer_append(&writer, 1), -EIO);
    kiln_sim_limit(io, 0);
    CHECK_EQ(kiln_log_writer_append(&writer, 1), -ENOSPC);
    kiln_buf_init(&text, 1 << 20);
    kiln_metrics_format(metrics, &text);
    kiln_buf_putc(&text, '\0');
    CHECK(strstr(text.ptr, "\nkiln_wal_appends_total 3\n"));
    CHECK(strstr(text.ptr, "\nkiln_wal_failures_total{reason=\"sync\"} 1\n"));
    CHECK(strstr(text.ptr, "\nkiln_wal_failures_total{reason=\"no_space\"} 1\n"));
    CHECK(strstr(text.ptr, "\nkiln_wal_sync_seconds_count "));
    kiln_buf_done(&text);
    stop();
    kiln_metrics_free(metrics);
}

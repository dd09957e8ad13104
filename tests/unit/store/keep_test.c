/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compaction, retention and deletion on a simulated disk: what a question finds is the same before
 * and after, but for what was to go.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "drawn.h"
#include "random_batch.h"
#include "store/backup.h"
#include "store/store.h"
#include "store/store_int.h"
#include "store/usage.h"
#include "store_kit.h"
#include "test.h"

#define NOW  (UINT64_C(1700000000) * KILN_NS_PER_S)
#define HOUR (3600 * KILN_NS_PER_S)
#define DAY  (24 * HOUR)

static void put(struct store_kit *kit, const char *service, const char *stacks, uint64_t time_ns)
{
    char resource[64];
    struct kiln_drawn p = {.stacks = stacks, .time_ns = time_ns, .resource = resource};

    snprintf(resource, sizeof(resource), "service.name=%s", service);
    kit_put(kit, kiln_test_batch(&p, 1));
}

static void flush(struct store_kit *kit)
{
    CHECK_OK(kiln_store_flush(kit->engine, NULL));
}

/* A block for each profile. */
static void put_blocks(struct store_kit *kit, const char *service, uint32_t n, uint64_t first_ns)
{
    for (uint32_t i = 0; i < n; i++) {
        char stacks[64];

        snprintf(stacks, sizeof(stacks), "main;%s 1\nmain;f%u 1\n", service, i % 3);
        put(kit, service, stacks, first_ns + i * KILN_NS_PER_S);
        flush(kit);
    }
}

static void compact(struct store_kit *kit)
{
    struct kiln_err err = {0};
    int r = kiln_store_compact(kit->engine, true, &err);

    if (r < 0)
        print_message("%s: %s\n", err.where, err.text);
    CHECK_OK(r);
}

TEST(keep, merging_changes_no_answer)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put_blocks(&kit, "shop", 5, NOW);
    put_blocks(&kit, "cart", 3, NOW + 2);
    CHECK_EQ(kit_stats(&kit).blocks, 8);
    CHECK_TEXT(kit_drawing(&kit, 0, 0),
               "main;cart 3\nmain;f0 3\nmain;f1 3\nmain;f2 2\nmain;shop 5\n");
    compact(&kit);
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    CHECK_EQ(kit_stats(&kit).profiles, 8);
    CHECK_TEXT(kit_drawing(&kit, 0, 0),
               "main;cart 3\nmain;f0 3\nmain;f1 3\nmain;f2 2\nmain;shop 5\n");
    CHECK_TEXT(kit_drawing(&kit, NOW + KILN_NS_PER_S, NOW + 2 * KILN_NS_PER_S),
               "main;cart 1\nmain;f1 2\nmain;shop 1\n");
    kit_reopen(&kit);
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    CHECK_TEXT(kit_drawing(&kit, 0, 0),
               "main;cart 3\nmain;f0 3\nmain;f1 3\nmain;f2 2\nmain;shop 5\n");
    kit_done(&kit);
}

TEST(keep, one_round_merges_what_is_due_and_nothing_else)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put_blocks(&kit, "shop", 7, NOW);
    CHECK_OK(kiln_store_compact(kit.engine, false, NULL));
    CHECK_EQ(kit_stats(&kit).blocks, 7);
    kiln_clock_set(NOW + HOUR);
    CHECK_OK(kiln_store_compact(kit.engine, false, NULL));
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    kit_done(&kit);
}

TEST(keep, a_merge_that_waits_for_memory_ends_when_there_is_nothing_left_to_merge)
{
    struct store_kit kit;
    uint64_t n;

    kit_init(&kit, NOW);
    put_blocks(&kit, "shop", 3, NOW);
    kiln_store_of(kit.engine)->keep.n_busy = 1; /* as if there had been no memory */
    CHECK_OK(kit.engine->ops->delete_service(kit.engine, KILN_STR("anonymous"), KILN_STR("shop"),
                                             &n, NULL));
    CHECK_EQ(n, 3);
    compact(&kit);
    CHECK_EQ(kiln_store_of(kit.engine)->keep.n_busy, 0);
    kit_done(&kit);
}

/* ---- crashes ---- */

TEST(keep, a_power_cut_at_any_moment_of_a_merge_loses_and_doubles_nothing)
{
    const char *all = "main;f0 2\nmain;f1 2\nmain;f2 1\nmain;shop 5\n";

    for (uint64_t n = 1;; n++) {
        struct store_kit kit;
        bool survived;

        kit_init(&kit, NOW);
        put_blocks(&kit, "shop", 5, NOW);
        kiln_sim_cut_at(kit.io, n);
        survived = kiln_store_compact(kit.engine, true, NULL) == 0 && !kiln_sim_is_dead(kit.io);
        kit_cut_power(&kit, n);
        kit_open(&kit);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), all);
        compact(&kit);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), all);
        CHECK_EQ(kit_stats(&kit).profiles, 5);
        kit_done(&kit);
        if (survived)
            break;
        CHECK(n < 1000);
    }
}

TEST(keep, a_call_that_fails_in_a_merge_is_made_good_by_the_next)
{
    const char *all = "main;f0 2\nmain;f1 2\nmain;f2 1\nmain;shop 5\n";

    for (uint64_t n = 1;; n++) {
        struct store_kit kit;
        uint64_t calls;
        bool reached;

        kit_init(&kit, NOW);
        put_blocks(&kit, "shop", 5, NOW);
        calls = kiln_sim_calls(kit.io);
        kiln_sim_fail_at(kit.io, n, -EIO);
        (void)!kiln_store_compact(kit.engine, true, NULL);
        reached = kiln_sim_calls(kit.io) - calls >= n;
        kiln_sim_fail_at(kit.io, 0, 0);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), all);
        (void)!kiln_store_compact(kit.engine, true, NULL);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), all);
        kit_reopen(&kit);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), all);
        CHECK_EQ(kit_stats(&kit).profiles, 5);
        kit_done(&kit);
        if (!reached)
            break;
        CHECK(n < 2000);
    }
}

TEST(keep, a_full_disk_stops_merging_and_nothing_else)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put_blocks(&kit, "shop", 5, NOW);
    kiln_sim_limit(kit.io, kiln_sim_used(kit.io) + 100);
    CHECK(kiln_store_compact(kit.engine, true, NULL) < 0);
    CHECK_EQ(kit_stats(&kit).blocks, 5);
    kiln_sim_limit(kit.io, UINT64_MAX);
    compact(&kit);
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    CHECK_EQ(kit_stats(&kit).profiles, 5);
    kit_done(&kit);
}

/* ---- damage ---- */

struct nth {
    uint32_t wanted, at;
    char path[128];
};

static int note_nth(void *context, const char *name)
{
    struct nth *nth = context;

    if (kiln_str_ends(kiln_str_of(name), KILN_STR(".kb")) && nth->at++ == nth->wanted)
        snprintf(nth->path, sizeof(nth->path), "blocks/anonymous/%.60s", name);
    return 0;
}

TEST(keep, what_is_left_of_a_damaged_block_is_merged_with_the_others)
{
    for (uint64_t offset = 20; offset < 400; offset += 37) {
        struct nth nth = {.wanted = 2};
        struct store_kit kit;
        uint64_t left;

        kit_init(&kit, NOW);
        put_blocks(&kit, "shop", 5, NOW);
        CHECK_OK(kit.io->list(kit.io, "blocks/anonymous", note_nth, &nth));
        CHECK(kiln_sim_flip(kit.io, nth.path, offset, 3));
        compact(&kit);
        left = kit_stats(&kit).profiles;
        CHECK(left == 4 || left == 5);         /* 5 where the bit was of the footer, read before */
        CHECK(kit_stats(&kit).set_aside <= 1); /* also where only names are lost */
        CHECK(kit_stats(&kit).set_aside >= 5 - left);
        CHECK_EQ(kit_stats(&kit).blocks, 1);
        kit_done(&kit);
    }
}

/* ---- memory ---- */

TEST(keep, little_memory_makes_smaller_merges_and_no_failure)
{
    struct store_kit kit;
    struct kiln_pool pool;

    kit_init(&kit, NOW);
    kit_close(&kit);
    kiln_pool_init(&pool, "test", (size_t)96 << 20, NULL);
    kit.opts.pool = &pool;
    kit_open(&kit);
    put_blocks(&kit, "shop", 30, NOW);
    compact(&kit);
    CHECK_EQ(kit_stats(&kit).profiles, 30);
    CHECK(kit_stats(&kit).blocks < 30);
    CHECK(pool.peak <= pool.limit);
    kit_done(&kit);
    CHECK_EQ(pool.used, 0);
}

TEST(keep, an_allocation_that_fails_leaves_everything_as_it_was)
{
    const char *all = "main;f0 1\nmain;f1 1\nmain;f2 1\nmain;shop 3\n";
    bool failed = true;

    for (uint64_t n = 1; failed; n += 1 + n / 16) {
        struct store_kit kit;

        kit_init(&kit, NOW);
        put_blocks(&kit, "shop", 3, NOW);
        kiln_mem_fail_at(n);
        (void)!kiln_store_compact(kit.engine, true, NULL);
        failed = kiln_mem_failed();
        kiln_mem_fail_at(0);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), all);
        compact(&kit);
        kit_reopen(&kit);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), all);
        CHECK_EQ(kit_stats(&kit).profiles, 3);
        kit_done(&kit);
        CHECK(n < 100000);
    }
    CHECK_EQ(kiln_mem_live(), 0);
}

/* ---- retention ---- */

TEST(keep, blocks_that_are_out_go_and_the_log_does_not_bring_them_back)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "shop", "old 1\n", NOW - 13 * DAY);
    flush(&kit);
    put(&kit, "shop", "new 1\n", NOW);
    CHECK_OK(kiln_store_retire(kit.engine, NOW, NULL));
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "new 1\nold 1\n");
    CHECK_OK(kiln_store_retire(kit.engine, NOW + 2 * DAY, NULL));
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "new 1\n");
    kit_cut_power(&kit, 3);
    kit_open(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "new 1\n");
    kit_done(&kit);
}

TEST(keep, a_service_with_less_time_leaves_blocks_that_others_keep)
{
    struct kiln_retention_rule rule = {.service = "cart", .age_ns = DAY};
    struct store_kit kit;

    kit_init(&kit, NOW);
    kit_close(&kit);
    kit.opts.rules = &rule;
    kit.opts.n_rules = 1;
    kit_open(&kit);
    put(&kit, "shop", "main;shop 1\n", NOW);
    put(&kit, "cart", "main;cart 1\n", NOW);
    flush(&kit);
    CHECK_OK(kiln_store_retire(kit.engine, NOW + HOUR, NULL));
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;cart 1\nmain;shop 1\n");
    CHECK_OK(kiln_store_retire(kit.engine, NOW + 2 * DAY, NULL));
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;shop 1\n");
    CHECK_EQ(kit_stats(&kit).series, 1);
    kit_reopen(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;shop 1\n");
    kit_done(&kit);
}

TEST(keep, a_power_cut_during_retention_takes_nothing_that_stays)
{
    struct kiln_retention_rule rule = {.service = "cart", .age_ns = DAY};

    for (uint64_t n = 1;; n++) {
        struct store_kit kit;
        bool survived;

        kit_init(&kit, NOW);
        kit_close(&kit);
        kit.opts.rules = &rule;
        kit.opts.n_rules = 1;
        kit_open(&kit);
        put(&kit, "shop", "main;shop 1\n", NOW);
        put(&kit, "cart", "main;cart 1\n", NOW);
        flush(&kit);
        put(&kit, "cart", "main;cart 2\n", NOW);
        flush(&kit);
        put(&kit, "shop", "main;shop 2\n", NOW + 1);
        kiln_sim_cut_at(kit.io, n);
        survived = kiln_store_retire(kit.engine, NOW + 2 * DAY, NULL) == 0;
        kit_cut_power(&kit, n);
        kit_open(&kit);
        CHECK(strstr(kit_drawing(&kit, 0, 0), "main;shop 3\n") != NULL);
        CHECK(!survived || !strstr(kit_drawing(&kit, 0, 0), "cart"));
        CHECK_OK(kiln_store_retire(kit.engine, NOW + 2 * DAY, NULL));
        CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;shop 3\n");
        kit_done(&kit);
        if (survived)
            break;
        CHECK(n < 1000);
    }
}

TEST(keep, retention_by_age_keeps_all_that_is_young_enough)
{
    uint64_t cutoff = NOW - 2 * DAY;

    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct dice dice = {seed * 7919};
        uint64_t young = 0, old = 0;
        struct store_kit kit;
        char expected[64];

        kit_init(&kit, NOW);
        for (uint32_t i = 0; i < 40; i++) {
            uint64_t time_ns = NOW - dice_roll(&dice, 4 * DAY / HOUR) * HOUR - i;

            put(&kit, "shop", time_ns >= cutoff ? "young 1\n" : "old 1\n", time_ns);
            young += time_ns >= cutoff;
            old += time_ns < cutoff;
            if (dice_roll(&dice, 8) == 0)
                flush(&kit);
        }
        kit_close(&kit);
        kit.opts.retention.age_ns = 2 * DAY;
        kit_open(&kit);
        CHECK_OK(kiln_store_retire(kit.engine, NOW, NULL));
        CHECK(kit_stats(&kit).profiles >= young && kit_stats(&kit).profiles < young + old);
        snprintf(expected, sizeof(expected), "young %llu\n", (unsigned long long)young);
        CHECK(strstr(kit_drawing(&kit, 0, 0), expected) != NULL);
        kit_done(&kit);
    }
}

TEST(keep, by_bytes_the_oldest_block_goes)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put_blocks(&kit, "shop", 3, NOW);
    kit_close(&kit);
    kit.opts.retention.bytes = 1;
    kit_open(&kit);
    CHECK_OK(kiln_store_retire(kit.engine, NOW, NULL));
    CHECK_EQ(kit_stats(&kit).blocks, 0);
    put(&kit, "shop", "again 1\n", NOW + HOUR);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "again 1\n");
    kit_done(&kit);
}

/* ---- deletion ---- */

/* Whether a text stands in any file of the store. */
struct grep {
    struct kiln_io *io;
    const char *text;
    char folder[128];
    bool found;
};

static int grep_file(void *context, const char *name)
{
    struct grep *grep = context;
    char path[300];
    void *data;
    size_t n;

    snprintf(path, sizeof(path), "%s/%s", grep->folder, name);
    if (kiln_io_get(grep->io, path, 1 << 20, &data, &n) < 0)
        return 0;
    grep->found = grep->found || memmem(data, n, grep->text, strlen(grep->text));
    kiln_free(data);
    return 0;
}

static bool stands_somewhere(struct kiln_io *io, const char *text)
{
    static const char *const folders[] = {".", "wal", "blocks/anonymous", "aside"};
    struct grep grep = {.io = io, .text = text};

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(grep.folder, sizeof(grep.folder), "%s", folders[i]);
        (void)!io->list(io, folders[i], grep_file, &grep);
    }
    return grep.found;
}

static uint64_t delete_service(struct store_kit *kit, struct kiln_str service)
{
    struct kiln_err err = {0};
    uint64_t profiles = 99;
    int r = kit->engine->ops->delete_service(kit->engine, KILN_STR("anonymous"), service, &profiles,
                                             &err);

    if (r < 0)
        print_message("%s: %s\n", err.where, err.text);
    CHECK_OK(r);
    return profiles;
}

TEST(keep, a_deleted_service_is_gone_from_blocks_head_and_log)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "cart", "main;TellTaleName 1\n", NOW);
    put(&kit, "shop", "main;Innocent 1\n", NOW);
    flush(&kit);
    put(&kit, "cart", "main;TellTaleName 2\n", NOW + 1);
    flush(&kit);
    put(&kit, "cart", "main;TellTaleName 4\n", NOW + 2);
    put(&kit, "shop", "main;Innocent 2\n", NOW + 2);
    CHECK(stands_somewhere(kit.io, "TellTaleName"));
    CHECK_EQ(delete_service(&kit, KILN_STR("cart")), 3);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;Innocent 3\n");
    CHECK(!stands_somewhere(kit.io, "TellTaleName"));
    CHECK_EQ(kit_stats(&kit).series, 1);
    kit_cut_power(&kit, 5);
    kit_open(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;Innocent 3\n");
    CHECK_EQ(delete_service(&kit, KILN_STR("cart")), 0);
    CHECK_EQ(delete_service(&kit, KILN_STR("shop")), 2);
    CHECK_EQ(kit_stats(&kit).blocks, 0);
    kit_done(&kit);
}

TEST(keep, what_was_deleted_may_come_again)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "cart", "main 1\n", NOW);
    CHECK_EQ(delete_service(&kit, KILN_STR("cart")), 1);
    put(&kit, "cart", "main 1\n", NOW);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main 1\n");
    CHECK_EQ(delete_service(&kit, KILN_STR("unknown")), 0);
    kit_done(&kit);
}

TEST(keep, a_power_cut_during_a_deletion_leaves_all_or_less_never_others_missing)
{
    for (uint64_t n = 1;; n++) {
        struct store_kit kit;
        uint64_t profiles;
        bool survived;

        kit_init(&kit, NOW);
        put(&kit, "cart", "main;cart 1\n", NOW);
        put(&kit, "shop", "main;shop 1\n", NOW);
        flush(&kit);
        put(&kit, "shop", "main;shop 2\n", NOW + 1);
        kiln_sim_cut_at(kit.io, n);
        survived = kit.engine->ops->delete_service(kit.engine, KILN_STR("anonymous"),
                                                   KILN_STR("cart"), &profiles, NULL) == 0;
        kit_cut_power(&kit, n);
        kit_open(&kit);
        CHECK(strstr(kit_drawing(&kit, 0, 0), "main;shop 3\n") != NULL);
        CHECK(!survived || !strstr(kit_drawing(&kit, 0, 0), "cart"));
        CHECK_EQ(delete_service(&kit, KILN_STR("cart")) <= 1, 1);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;shop 3\n");
        kit_done(&kit);
        if (survived)
            break;
        CHECK(n < 1000);
    }
}

/* ---- backup ---- */

static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof(folder), "/tmp/kiln-keep-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
}

static void remove_folder(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    CHECK_EQ((system)(command), 0);
}

static const char *below(const char *name)
{
    static char path[2][128];
    static int turn;

    turn = !turn;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
    return path[turn];
}

/* What a store in a real directory draws. */
static const char *drawing_of(const char *dir)
{
    struct store_kit other = {0};
    const char *text;

    CHECK_OK(kiln_io_open(dir, false, &other.io));
    other.opts.no_background = true;
    kit_open(&other);
    text = kit_drawing(&other, 0, 0);
    kit_close(&other);
    kiln_io_close(other.io);
    return text;
}

TEST(keep, a_backup_is_a_store_and_so_is_what_is_restored_from_it)
{
    struct kiln_store_check check;
    struct store_kit kit;

    make_folder();
    kit_init(&kit, NOW);
    put_blocks(&kit, "shop", 2, NOW);
    put(&kit, "shop", "head 1\n", NOW + HOUR);
    CHECK_OK(kiln_store_backup(kit.engine, below("backup"), NULL));
    CHECK_EQ(kiln_store_backup(kit.engine, below("backup"), NULL), -ENOTEMPTY);
    put(&kit, "shop", "later 1\n", NOW + HOUR);
    CHECK_TEXT(drawing_of(below("backup")), "head 1\nmain;f0 1\nmain;f1 1\nmain;shop 2\n");
    CHECK_OK(kiln_store_restore(below("backup"), below("restored"), NULL, &check, NULL));
    CHECK_EQ(check.blocks, 3);
    kiln_store_check_done(&check);
    CHECK_TEXT(drawing_of(below("restored")), "head 1\nmain;f0 1\nmain;f1 1\nmain;shop 2\n");
    CHECK_EQ(kiln_store_restore(below("backup"), below("restored"), NULL, &check, NULL),
             -ENOTEMPTY);
    kiln_store_check_done(&check);
    kit_done(&kit);
    remove_folder();
}

/* What people told the server is in no block. */
TEST(keep, a_backup_has_what_is_kept_beside_profiles)
{
    struct kiln_store_check check;
    struct store_kit kit;
    struct kiln_io *io;
    void *text;
    size_t n;

    make_folder();
    kit_init(&kit, NOW);
    CHECK_OK(kit.io->mkdir(kit.io, "kept"));
    CHECK_OK(kit.io->mkdir(kit.io, "kept/anonymous"));
    CHECK_OK(kiln_io_put(kit.io, "kept/anonymous/annotations.json", "{}", 2));
    CHECK_OK(kiln_io_put(kit.io, "kept/anonymous/annotations.json.tmp", "{", 1));
    CHECK_OK(kiln_store_backup(kit.engine, below("backup"), NULL));
    CHECK_OK(kiln_store_restore(below("backup"), below("restored"), NULL, &check, NULL));
    kiln_store_check_done(&check);
    CHECK_OK(kiln_io_open(below("restored"), true, &io));
    CHECK_OK(kiln_io_get(io, "kept/anonymous/annotations.json", 100, &text, &n));
    CHECK_STR(((struct kiln_str){text, n}), "{}");
    kiln_free(text);
    CHECK_EQ(kiln_io_get(io, "kept/anonymous/annotations.json.tmp", 100, &text, &n), -ENOENT);
    kiln_io_close(io);
    kit_done(&kit);
    remove_folder();
}

TEST(keep, a_damaged_backup_is_not_restored)
{
    struct kiln_store_check check;
    struct nth nth = {.wanted = 0};
    struct store_kit kit;

    make_folder();
    kit_init(&kit, NOW);
    put_blocks(&kit, "shop", 2, NOW);
    CHECK_OK(kit.io->list(kit.io, "blocks/anonymous", note_nth, &nth));
    CHECK(kiln_sim_flip(kit.io, nth.path, 100, 1));
    CHECK_OK(kiln_store_backup(kit.engine, below("backup"), NULL));
    CHECK_EQ(kiln_store_restore(below("backup"), below("restored"), NULL, &check, NULL),
             KILN_E_CORRUPT);
    CHECK_EQ(check.n_damages, 1);
    CHECK_TEXT(check.damages[0].path, nth.path);
    kiln_store_check_done(&check);
    kit_done(&kit);
    remove_folder();
}

/* ---- symbols ---- */

TEST(keep, names_that_come_late_name_what_is_there_already)
{
    struct kiln_symbol_frame late = {.name = KILN_STR("late_name")};
    struct kiln_symbol symbol = {.address = 0x1000, .size = 0x100, .frames = &late, .n = 1};
    struct kiln_location nameless = {.address = 0x401010};
    struct kiln_mapping mapping = {.start = 0x400000, .limit = 0x500000};
    struct kiln_profile profile = {.time_ns = NOW};
    struct kiln_batch *batch;
    struct kiln_builder *b;
    struct store_kit kit;
    uint32_t attr, frame, p;

    kit_init(&kit, NOW);
    CHECK_OK(kiln_builder_new(NULL, &b));
    attr = kiln_builder_text_attr(b, KILN_STR("process.executable.build_id.gnu"), KILN_STR("abc"));
    mapping.attrs = kiln_builder_set(b, &attr, 1, NULL);
    mapping.filename = kiln_builder_string(b, KILN_STR("/bin/app"));
    nameless.mapping = kiln_builder_mapping(b, &mapping);
    frame = kiln_builder_location(b, &nameless, NULL, 0);
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    p = kiln_builder_add_profile(b, &profile);
    kiln_builder_add_value(b, p, kiln_builder_stack(b, &frame, 1), 0, 5);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    kit_put(&kit, batch);
    flush(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "app+0x1010 5\n");
    CHECK_OK(kit.engine->ops->put_symbols(kit.engine, KILN_STR("anonymous"), KILN_STR("abc"),
                                          &symbol, 1, NULL));
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "late_name 5\n");
    kit_reopen(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "late_name 5\n");
    kit_done(&kit);
}

/* ---- usage ---- */

TEST(keep, the_bytes_of_all_services_are_the_bytes_of_the_blocks)
{
    struct kiln_usage_list list;
    struct store_kit kit;
    uint64_t bytes = 0;

    kit_init(&kit, NOW);
    put_blocks(&kit, "shop", 3, NOW);
    put_blocks(&kit, "cart", 1, NOW);
    put(&kit, "shop", "head 1\n", NOW + 60 * KILN_NS_PER_S);
    CHECK_OK(kiln_usage_collect(kit.engine, KILN_STR_NONE, &list, NULL));
    CHECK_EQ(list.n, 2);
    CHECK_STR(list.rows[0].service, "cart");
    CHECK_STR(list.rows[1].service, "shop");
    CHECK_EQ(list.rows[1].profiles, 4);
    CHECK_EQ(list.rows[1].in_head, 1);
    CHECK_EQ(list.rows[1].levels[0], 3);
    CHECK_EQ(list.rows[1].max_ns, NOW + 60 * KILN_NS_PER_S);
    for (uint32_t i = 0; i < list.n; i++)
        bytes += list.rows[i].bytes;
    CHECK_EQ(bytes, kit_stats(&kit).block_bytes);
    kiln_usage_done(&list);
    CHECK_OK(kiln_usage_collect(kit.engine, KILN_STR("nobody"), &list, NULL));
    CHECK_EQ(list.n, 0);
    kiln_usage_done(&list);
    kit_done(&kit);
}

/* ---- all at once ---- */

enum { PUTS = 200 };

static void *put_many(void *context)
{
    struct store_kit *kit = context;

    for (uint32_t i = 0; i < PUTS; i++) {
        put(kit, "shop", "main;shop 1\n", NOW + i);
        put(kit, "cart", "main;cart 1\n", NOW + i);
        if (i % 10 == 0)
            flush(kit);
    }
    return NULL;
}

TEST(keep, everything_at_once_loses_nothing)
{
    struct store_kit kit;
    pthread_t putter;
    char shop[64];

    make_folder();
    kit_init(&kit, NOW);
    kit_close(&kit);
    kit.opts.no_background = false;
    kit_open(&kit);
    CHECK_EQ(pthread_create(&putter, NULL, put_many, &kit), 0);
    for (int i = 0; i < 10; i++) {
        char name[16];

        snprintf(name, sizeof(name), "backup%d", i);
        CHECK_OK(kiln_store_compact(kit.engine, i % 2, NULL));
        CHECK_OK(kiln_store_backup(kit.engine, below(name), NULL));
        CHECK_OK(kiln_store_retire(kit.engine, NOW, NULL));
        delete_service(&kit, KILN_STR("cart"));
        CHECK(kit_stats(&kit).set_aside == 0);
    }
    pthread_join(putter, NULL);
    delete_service(&kit, KILN_STR("cart"));
    snprintf(shop, sizeof(shop), "main;shop %d\n", PUTS);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), shop);
    CHECK(!stands_somewhere(kit.io, "cart"));
    kit_reopen(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), shop);
    CHECK(strstr(drawing_of(below("backup9")), "main;shop") != NULL);
    kit_done(&kit);
    remove_folder();
}

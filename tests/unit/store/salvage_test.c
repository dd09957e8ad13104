/* SPDX-License-Identifier: Apache-2.0 */
/* What was set aside comes back, once, whenever power fails, and nothing else changes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "base/clock.h"
#include "drawn.h"
#include "store/block_int.h"
#include "store/salvage.h"
#include "store/store_int.h"
#include "store_kit.h"
#include "test.h"

#define NOW  (UINT64_C(1700000000) * KILN_NS_PER_S)
#define ALL  "main;parse;read 4\nmain;pay 20\nmain;read 3\n"
#define CART "main;pay 20\n"
#define SHOP "main;parse;read 4\nmain;read 3\n"

static void put(struct store_kit *kit, const char *service, const char *stacks)
{
    char resource[64];
    struct kiln_drawn p = {.stacks = stacks, .time_ns = NOW, .resource = resource};

    snprintf(resource, sizeof(resource), "service.name=%s", service);
    kit_put(kit, kiln_test_batch(&p, 1));
}

static int note_name(void *context, const char *name)
{
    if (*name != '.')
        snprintf(context, 128, "%.120s", name);
    return 0;
}

static const char *only_file(struct store_kit *kit, const char *folder)
{
    static char name[128];

    name[0] = '\0';
    CHECK_OK(kit->io->list(kit->io, folder, note_name, name));
    CHECK(name[0]);
    return name;
}

static int count(void *context, const char *name)
{
    (void)name;
    ++*(uint32_t *)context;
    return 0;
}

static uint32_t files_in(struct store_kit *kit, const char *folder)
{
    uint32_t n = 0;

    CHECK_OK(kit->io->list(kit->io, folder, count, &n));
    return n;
}

/* As version 0.1 did with a whole block. */
static void set_block_aside(struct store_kit *kit)
{
    char from[256], to[300];
    const char *name;

    kit_close(kit);
    name = only_file(kit, "blocks/anonymous");
    snprintf(from, sizeof(from), "blocks/anonymous/%s", name);
    snprintf(to, sizeof(to), "aside/anonymous-%s", name);
    CHECK_OK(kit->io->rename(kit->io, from, to));
    CHECK_OK(kit->io->sync_dir(kit->io, "aside"));
    CHECK_OK(kit->io->sync_dir(kit->io, "blocks/anonymous"));
    kit_open(kit);
}

static void begin(struct store_kit *kit)
{
    kit_init(kit, NOW);
    kit->opts.retention.age_ns = UINT64_MAX;
    kit_reopen(kit);
    put(kit, "cart", CART);
    put(kit, "shop", SHOP);
    CHECK_OK(kiln_store_flush(kit->engine, NULL));
}

/* "recovered present unreadable state", and a mark where the file is gone. */
static const char *salvage_with(struct store_kit *kit, const struct kiln_salvage_opts *opts)
{
    static char text[256];
    struct kiln_salvage s;
    size_t at = 0;

    text[0] = '\0';
    CHECK_OK(kiln_store_salvage(kit->engine, opts, &s, NULL));
    for (uint32_t i = 0; i < s.n; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%llu %llu %llu %d%s\n",
                               (unsigned long long)s.files[i].recovered,
                               (unsigned long long)s.files[i].present,
                               (unsigned long long)s.files[i].unreadable, s.files[i].state,
                               s.files[i].removed ? " removed" : "");
    kiln_salvage_done(&s);
    return text;
}

static const char *salvage(struct store_kit *kit)
{
    return salvage_with(kit, &(struct kiln_salvage_opts){.dry_run = false});
}

static uint32_t damaged_in_window(struct store_kit *kit, uint64_t start_ns, uint64_t end_ns)
{
    const struct kiln_merge_wants tree = {.nodes_max = 100};
    const struct kiln_window window = {start_ns, end_ns};
    struct kiln_question q = kiln_test_question();
    struct kiln_merged *merged = NULL;
    uint32_t n;

    q.windows = &window;
    q.n_windows = 1;
    CHECK_OK(kit->engine->ops->merge(kit->engine, &q, &tree, &merged, NULL));
    n = merged->basis.n_damaged;
    kiln_merged_free(merged);
    return n;
}

static uint32_t damaged_in(struct store_kit *kit)
{
    return damaged_in_window(kit, 0, UINT64_MAX);
}

TEST(salvage, a_block_that_can_be_read_comes_back_once)
{
    struct store_kit kit;

    begin(&kit);
    set_block_aside(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "");
    CHECK_EQ(damaged_in(&kit), 1);
    CHECK_TEXT(salvage(&kit), "2 0 0 0 removed\n");
    CHECK_TEXT(kit_drawing(&kit, 0, 0), ALL);
    CHECK_EQ(damaged_in(&kit), 0);
    CHECK_EQ(files_in(&kit, "aside"), 0);
    CHECK_TEXT(salvage(&kit), "");
    kit_reopen(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), ALL);
    CHECK_EQ(damaged_in(&kit), 0);
    kit_done(&kit);
}

TEST(salvage, what_the_store_has_is_left_out)
{
    struct store_kit kit;

    begin(&kit);
    set_block_aside(&kit);
    put(&kit, "cart", CART); /* sent again */
    CHECK_TEXT(salvage(&kit), "1 1 0 0 removed\n");
    CHECK_TEXT(kit_drawing(&kit, 0, 0), ALL);
    kit_done(&kit);
}

TEST(salvage, a_dry_run_counts_and_changes_nothing)
{
    const struct kiln_salvage_opts dry = {.dry_run = true, .discard = true};
    struct store_kit kit;

    begin(&kit);
    set_block_aside(&kit);
    CHECK_TEXT(salvage_with(&kit, &dry), "2 0 0 0\n");
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "");
    CHECK_EQ(files_in(&kit, "aside"), 1);
    kit_done(&kit);
}

TEST(salvage, files_of_other_tenants_are_left_alone)
{
    const struct kiln_salvage_opts other = {.tenant = KILN_STR("other")};
    struct store_kit kit;

    begin(&kit);
    set_block_aside(&kit);
    CHECK_TEXT(salvage_with(&kit, &other), "");
    CHECK_EQ(files_in(&kit, "aside"), 1);
    kit_done(&kit);
}

/* The middle of the first page of rows of the block: that of cart. */
static uint64_t cart_rows(struct store_kit *kit, const char *path)
{
    struct kiln_block *block;
    uint64_t offset;

    CHECK_OK(kiln_block_open(kit->io, path, &block, NULL));
    offset = block->footer.pages[0].offset + block->footer.pages[0].size / 2;
    kiln_block_unref(block);
    return offset;
}

TEST(salvage, what_cannot_be_read_is_kept_until_it_can_or_is_discarded)
{
    const struct kiln_salvage_opts discard = {.discard = true};
    char path[256], aside[256];
    struct store_kit kit;
    uint64_t at;

    for (int i = 0; i < 2; i++) {
        begin(&kit);
        snprintf(path, sizeof(path), "blocks/anonymous/%s", only_file(&kit, "blocks/anonymous"));
        snprintf(aside, sizeof(aside), "aside/anonymous-%s", path + strlen("blocks/anonymous/"));
        at = cart_rows(&kit, path);
        CHECK(kiln_sim_flip(kit.io, path, at, 2));
        (void)kit_drawing(&kit, 0, 0);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), SHOP);
        CHECK_TEXT(salvage(&kit), "0 1 1 1\n");
        CHECK_TEXT(salvage(&kit), "0 1 1 1\n");
        CHECK_TEXT(kit_drawing(&kit, 0, 0), SHOP);
        CHECK_EQ(damaged_in(&kit), 1);
        if (i == 0) {
            CHECK(kiln_sim_flip(kit.io, aside, at, 2)); /* the disk can read it again */
            CHECK_TEXT(salvage(&kit), "1 1 0 0 removed\n");
            CHECK_TEXT(kit_drawing(&kit, 0, 0), ALL);
        } else {
            CHECK_TEXT(salvage_with(&kit, &discard), "0 1 1 1 removed\n");
            CHECK_TEXT(kit_drawing(&kit, 0, 0), SHOP);
        }
        CHECK_EQ(damaged_in(&kit), 0);
        CHECK_EQ(files_in(&kit, "aside"), 0);
        kit_done(&kit);
    }
}

TEST(salvage, a_block_without_its_ends_comes_back)
{
    struct store_kit kit;
    char aside[256];

    begin(&kit);
    set_block_aside(&kit);
    snprintf(aside, sizeof(aside), "aside/%s", only_file(&kit, "aside"));
    CHECK(kiln_sim_flip(kit.io, aside, 3, 2)); /* its magic */
    CHECK_TEXT(salvage(&kit), "2 0 0 0 removed\n");
    CHECK_TEXT(kit_drawing(&kit, 0, 0), ALL);
    kit_done(&kit);
}

/* Version 0.1 wrote this block, could not read it, and set all of it aside. */
TEST(salvage, a_block_that_version_0_1_could_not_read_comes_back)
{
    struct store_kit kit;
    size_t len = 0;
    char *bytes =
        kiln_test_read(KILN_SOURCE_DIR "/tests/fixtures/block-v1-empty-attribute.kb", &len);

    CHECK(bytes && len);
    kit_init(&kit, NOW);
    kit.opts.retention.age_ns = UINT64_MAX;
    kit_reopen(&kit);
    CHECK_OK(
        kiln_io_put(kit.io, "aside/anonymous-0123456789abcdef0123456789abcdef.kb", bytes, len));
    free(bytes);
    CHECK(strstr(salvage(&kit), " 0 0 0 removed\n"));
    CHECK(kit_stats(&kit).profiles > 0);
    CHECK_EQ(files_in(&kit, "aside"), 0);
    kit_done(&kit);
}

static int refuse_cart(struct kiln_block *block, size_t memory_bytes, struct kiln_err *err)
{
    struct kiln_block_series s;

    CHECK_OK(kiln_block_series(block, 0, &s));
    if (kiln_str_starts(s.key, KILN_STR("cart")))
        return kiln_err_set(err, KILN_E_CORRUPT, "series", "refused");
    return kiln_block_verify_within(block, memory_bytes, err);
}

TEST(salvage, series_that_did_not_read_back_come_back)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    kit.opts.retention.age_ns = UINT64_MAX;
    kit.opts.verify = refuse_cart;
    kit_reopen(&kit);
    put(&kit, "cart", CART);
    put(&kit, "shop", SHOP);
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    CHECK_TEXT(kit_drawing(&kit, 0, 0), SHOP);
    CHECK_EQ(damaged_in(&kit), 1);
    kit.opts.verify = NULL;
    kit_reopen(&kit);
    CHECK_EQ(damaged_in(&kit), 1);
    CHECK_TEXT(salvage(&kit), "1 0 0 0 removed\n");
    CHECK_TEXT(kit_drawing(&kit, 0, 0), ALL);
    CHECK_EQ(damaged_in(&kit), 0);
    CHECK_EQ(files_in(&kit, "aside"), 0);
    kit_done(&kit);
}

/* A segment of the log in aside/, whose records are in a block. */
static void set_segment_aside(struct store_kit *kit)
{
    char from[256], to[300];

    kit_init(kit, NOW);
    kit->opts.retention.age_ns = UINT64_MAX;
    kit_reopen(kit);
    put(kit, "cart", CART);
    put(kit, "shop", SHOP);
    snprintf(from, sizeof(from), "wal/%s", only_file(kit, "wal"));
    snprintf(to, sizeof(to), "aside/%s", from + strlen("wal/"));
    CHECK_OK(kit->io->link(kit->io, from, to));
    CHECK_OK(kit->io->sync_dir(kit->io, "aside"));
    CHECK_OK(kiln_store_flush(kit->engine, NULL));
    kit_reopen(kit);
}

TEST(salvage, records_of_a_segment_of_the_log_come_back)
{
    struct store_kit kit;
    char path[256];

    set_segment_aside(&kit);
    CHECK_TEXT(salvage(&kit), "0 2 0 0 removed\n");
    CHECK_TEXT(kit_drawing(&kit, 0, 0), ALL);
    kit_done(&kit);
    set_segment_aside(&kit);
    kit_close(&kit);
    snprintf(path, sizeof(path), "blocks/anonymous/%s", only_file(&kit, "blocks/anonymous"));
    CHECK_OK(kit.io->unlink(kit.io, path));
    kit_open(&kit);
    CHECK_TEXT(salvage(&kit), "2 0 0 0 removed\n");
    CHECK_TEXT(kit_drawing(&kit, 0, 0), ALL);
    kit_done(&kit);
}

TEST(salvage, records_that_are_damaged_keep_their_segment)
{
    struct store_kit kit;
    char path[256];

    set_segment_aside(&kit);
    snprintf(path, sizeof(path), "aside/%s", only_file(&kit, "aside"));
    CHECK(kiln_sim_flip(kit.io, path, 120, 2)); /* in the first record */
    CHECK_TEXT(salvage(&kit), "0 1 0 1\n");
    CHECK_EQ(damaged_in(&kit), 1);
    CHECK_EQ(damaged_in_window(&kit, 0, 1000), 0);
    kit_done(&kit);
}

TEST(salvage, garbage_is_kept_and_harms_nothing)
{
    static const char *const names[] = {"aside/anonymous-0123456789abcdef0123456789abcdef.kb",
                                        "aside/00000000000000000001.log",
                                        "aside/anonymous-7.otlp",
                                        "aside/x.kb",
                                        "aside/-.otlp",
                                        "aside/store.json"};
    struct store_kit kit;

    begin(&kit);
    for (size_t i = 0; i < KILN_ARRAY_LEN(names); i++)
        CHECK_OK(kiln_io_put(kit.io, names[i], "no profiles", 11));
    kit_reopen(&kit);
    (void)salvage(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), ALL);
    CHECK_EQ(files_in(&kit, "aside"), KILN_ARRAY_LEN(names));
    kit_done(&kit);
}

TEST(salvage, a_power_cut_at_any_moment_loses_and_doubles_nothing)
{
    for (uint64_t n = 1;; n++) {
        const struct kiln_salvage_opts opts = {.dry_run = false};
        struct kiln_salvage s;
        struct store_kit kit;
        bool survived;

        begin(&kit);
        set_block_aside(&kit);
        kiln_sim_cut_at(kit.io, n);
        survived = kiln_store_salvage(kit.engine, &opts, &s, NULL) == 0;
        if (survived)
            kiln_salvage_done(&s);
        survived = survived && !kiln_sim_is_dead(kit.io);
        kit_cut_power(&kit, n);
        kit_open(&kit);
        (void)salvage(&kit);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), ALL);
        CHECK_EQ(kit_stats(&kit).profiles, 2);
        CHECK_EQ(damaged_in(&kit), 0);
        kit_done(&kit);
        if (survived)
            break;
        CHECK(n < 1000);
    }
}

static int count_batch(void *context, const struct kiln_salvaged *one, struct kiln_err *err)
{
    (void)err;
    CHECK_TEXT(one->tenant, "anonymous");
    *(uint32_t *)context += one->batch->n_profiles;
    return 0;
}

TEST(salvage, profiles_are_extracted_without_a_store)
{
    const struct kiln_salvage_opts opts = {.dry_run = false};
    struct kiln_salvage s;
    struct store_kit kit;
    uint32_t n = 0;

    begin(&kit);
    set_block_aside(&kit);
    CHECK_OK(kiln_salvage_extract(kit.io, &opts, count_batch, &n, &s, NULL));
    CHECK_EQ(n, 2);
    CHECK_EQ(s.n, 1);
    CHECK_EQ(kiln_salvage_worst(&s), KILN_SALVAGE_WHOLE);
    kiln_salvage_done(&s);
    CHECK_EQ(files_in(&kit, "aside"), 1);
    kit_done(&kit);
}

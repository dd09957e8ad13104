/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that are damaged where they lie: only what is damaged is lost, answers say so, and nothing
 * else is lost or doubled, whenever power or a call fails.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "answers.h"
#include "base/clock.h"
#include "drawn.h"
#include "store/block_int.h"
#include "store/check.h"
#include "store/rollup.h"
#include "store/store_int.h"
#include "store_kit.h"
#include "test.h"

#define NOW  (UINT64_C(1700000000) * KILN_NS_PER_S)

#define HOUR (3600 * KILN_NS_PER_S)

#define SHOP "main;read 3 n=7,s=a\nmain;parse;read 4 ^7.2\n"
#define CART "main;pay 20 n=8\n"
#define AUTH "main;sign 100\n"
#define REST "main;parse;read 4\nmain;pay 20\nmain;read 3\n" /* without auth */
#define ALL  "main;parse;read 4\nmain;pay 20\nmain;read 3\nmain;sign 100\n"

static void put(struct store_kit *kit, const char *service, const char *stacks, uint64_t time_ns)
{
    char resource[64];
    struct kiln_drawn p = {.stacks = stacks,
                           .time_ns = time_ns,
                           .duration_ns = 5,
                           .id = 3,
                           .attrs = "k=v",
                           .resource = resource,
                           .scope = "s"};

    snprintf(resource, sizeof(resource), "service.name=%s", service);
    kit_put(kit, kiln_test_batch(&p, 1));
}

static int note_block(void *context, const char *name)
{
    char *path = context;

    if (kiln_str_ends(kiln_str_of(name), KILN_STR(".kb")))
        snprintf(path, KILN_PATH_MAX, "blocks/anonymous/%.100s", name);
    return 0;
}

/* A store with one block of three services; where it is. */
static void begin(struct store_kit *kit, char path[KILN_PATH_MAX])
{
    kit_init(kit, NOW);
    put(kit, "shop", SHOP, NOW);
    put(kit, "cart", CART, NOW);
    put(kit, "auth", AUTH, NOW);
    CHECK_OK(kiln_store_flush(kit->engine, NULL));
    path[0] = '\0';
    CHECK_OK(kit->io->list(kit->io, "blocks/anonymous", note_block, path));
}

static void flip(struct store_kit *kit, const char *path, uint64_t offset)
{
    CHECK(kiln_sim_flip(kit->io, path, offset, 3));
}

/* The middle of the first page of a section. */
static uint64_t middle_of(struct store_kit *kit, const char *path, uint32_t kind)
{
    struct kiln_block *block;
    const struct kiln_section *s;
    const struct kiln_page_ref *page;
    uint64_t offset;

    CHECK_OK(kiln_block_open(kit->io, path, &block, NULL));
    s = kiln_footer_section(&block->footer, kind);
    CHECK(s && s->n_pages);
    page = &block->footer.pages[s->first_page];
    offset = page->offset + page->size / 2;
    kiln_block_unref(block);
    return offset;
}

static uint32_t damaged_in(struct store_kit *kit, const struct kiln_window *window)
{
    const struct kiln_merge_wants tree = {.nodes_max = 100};
    struct kiln_question q = kiln_test_question();
    struct kiln_merged *merged = NULL;
    uint32_t n;

    q.windows = window;
    q.n_windows = window != NULL;
    CHECK_OK(kit->engine->ops->merge(kit->engine, &q, &tree, &merged, NULL));
    n = merged->basis.n_damaged;
    kiln_merged_free(merged);
    return n;
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

static uint64_t damages(struct store_kit *kit)
{
    struct kiln_store_check check;
    uint64_t n;

    CHECK_OK(kiln_store_check(kit->io, NULL, &check, NULL));
    n = check.n_damages;
    kiln_store_check_done(&check);
    return n;
}

TEST(rescue, a_damaged_page_of_rows_costs_its_service_and_answers_say_so)
{
    const struct kiln_window now = {NOW, NOW + 1}, before = {1, 2};
    char path[KILN_PATH_MAX];
    struct store_kit kit;

    begin(&kit, path);
    flip(&kit, path, middle_of(&kit, path, KILN_SECTION_ROWS)); /* auth comes first */
    (void)kit_drawing(&kit, 0, 0);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;parse;read 4\nmain;pay 20\nmain;read 3\n");
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    CHECK_EQ(kit_stats(&kit).set_aside, 1);
    CHECK_EQ(files_in(&kit, "aside"), 2); /* the original and its note */
    CHECK_EQ(damages(&kit), 0);
    CHECK_EQ(damaged_in(&kit, &now), 1);
    CHECK_EQ(damaged_in(&kit, &before), 0);
    kit_reopen(&kit);
    CHECK_EQ(damaged_in(&kit, &now), 1);
    CHECK_EQ(damaged_in(&kit, &before), 0);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;parse;read 4\nmain;pay 20\nmain;read 3\n");
    kit_done(&kit);
}

TEST(rescue, a_note_goes_with_its_file)
{
    char path[KILN_PATH_MAX], aside[KILN_PATH_MAX];
    struct store_kit kit;

    begin(&kit, path);
    flip(&kit, path, middle_of(&kit, path, KILN_SECTION_ROWS));
    (void)kit_drawing(&kit, 0, 0);
    CHECK_EQ(damaged_in(&kit, NULL), 1);
    snprintf(aside, sizeof(aside), "aside/anonymous-%s", path + strlen("blocks/anonymous/"));
    CHECK_OK(kit.io->unlink(kit.io, aside));
    CHECK_OK(kiln_aside_load(kiln_store_of(kit.engine))); /* as once a minute */
    CHECK_EQ(damaged_in(&kit, NULL), 0);
    CHECK_EQ(files_in(&kit, "aside"), 0);
    kit_done(&kit);
}

TEST(rescue, other_tenants_are_told_nothing)
{
    char path[KILN_PATH_MAX];
    struct store_kit kit;
    struct kiln_drawn p = {.stacks = "a 1\n", .time_ns = NOW, .resource = "service.name=x"};
    struct kiln_batch *batch = kiln_test_batch(&p, 1);
    const struct kiln_merge_wants tree = {.nodes_max = 100};
    struct kiln_question q = kiln_test_question();
    struct kiln_merged *merged = NULL;

    begin(&kit, path);
    CHECK_EQ(kit_append_to(&kit, "other", batch).code, 0);
    kiln_batch_unref(batch);
    flip(&kit, path, middle_of(&kit, path, KILN_SECTION_ROWS));
    (void)kit_drawing(&kit, 0, 0);
    q.tenants = &KILN_STR("other");
    q.n_tenants = 1;
    CHECK_OK(kit.engine->ops->merge(kit.engine, &q, &tree, &merged, NULL));
    CHECK_EQ(merged->basis.n_damaged, 0);
    kiln_merged_free(merged);
    kit_done(&kit);
}

/* What refers to a damaged page is lost; what is left is as it was sent. */
TEST(rescue, a_damaged_page_of_the_dictionary_costs_the_profiles_that_refer_to_it)
{
    static const struct {
        uint32_t kind;
        const char *rest;
    } cases[] = {
        {KILN_SECTION_STACKS, REST},
        {KILN_SECTION_RANKS, REST},
        {KILN_SECTION_LINKS, "main;pay 20\nmain;sign 100\n"},
        {KILN_SECTION_STRINGS, ""},
        {KILN_SECTION_ATTRS, ""},
        {KILN_SECTION_SETS, ""},
        {KILN_SECTION_FUNCTIONS, ""},
        {KILN_SECTION_LOCATIONS, ""},
        {KILN_SECTION_RESOURCES, ""},
        {KILN_SECTION_SCOPES, ""},
        {KILN_SECTION_ORIGINS, ""},
        {KILN_SECTION_MOMENTS, ""},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        char path[KILN_PATH_MAX];
        struct store_kit kit;

        begin(&kit, path);
        flip(&kit, path, middle_of(&kit, path, cases[i].kind));
        (void)kit_drawing(&kit, 0, 0);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), cases[i].rest);
        CHECK_EQ(damaged_in(&kit, NULL), 1);
        CHECK_EQ(damages(&kit), 0);
        CHECK_EQ(files_in(&kit, "aside"), 2);
        kit_done(&kit);
    }
}

/* Strings are sorted: a service whose names are on another page is whole. */
TEST(rescue, a_damaged_page_of_names_costs_no_service_that_has_others)
{
    char path[KILN_PATH_MAX] = "";
    struct store_kit kit;
    struct kiln_buf text;

    kit_init(&kit, NOW);
    kiln_buf_init(&text, 1 << 22);
    for (int i = 0; i < 40000; i++) {
        char line[32];

        snprintf(line, sizeof(line), "aa%05d 1\n", i);
        kiln_buf_puts(&text, line);
    }
    kiln_buf_putc(&text, 0);
    put(&kit, "shop", text.ptr, NOW);
    put(&kit, "cart", "zz 20\n", NOW);
    kiln_buf_done(&text);
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    CHECK_OK(kit.io->list(kit.io, "blocks/anonymous", note_block, path));
    flip(&kit, path, middle_of(&kit, path, KILN_SECTION_STRINGS));
    (void)kit_drawing(&kit, 0, 0);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "zz 20\n");
    CHECK_EQ(damages(&kit), 0);
    kit_done(&kit);
}

/* What is read is as it was sent. */
static void check_lines(const char *text)
{
    for (const char *end; *text; text = end + 1) {
        char line[64];

        end = strchr(text, '\n');
        CHECK(end);
        snprintf(line, sizeof(line), "%.*s\n", (int)(end - text), text);
        CHECK(strstr(ALL, line));
    }
}

TEST(rescue, any_flipped_bit_is_mended_or_set_aside)
{
    uint64_t size = UINT64_MAX, partial = 0, none = 0;

    for (uint64_t at = 0; at < size; at += 3) {
        char path[KILN_PATH_MAX];
        struct store_kit kit;
        const char *text;
        int fd;

        begin(&kit, path);
        fd = kit.io->open(kit.io, path, 0);
        CHECK_OK(kit.io->size(kit.io, fd, &size));
        CHECK_OK(kit.io->close(kit.io, fd));
        flip(&kit, path, at);
        kit_reopen(&kit);
        (void)kit_drawing(&kit, 0, 0);
        text = kit_drawing(&kit, 0, 0);
        partial += kit_stats(&kit).blocks == 1 && strcmp(text, ALL) != 0;
        none += kit_stats(&kit).blocks == 0;
        check_lines(text);
        if (strcmp(text, ALL) != 0)
            CHECK_EQ(damaged_in(&kit, NULL), 1);
        CHECK_EQ(damages(&kit), 0);
        kit_done(&kit);
    }
    CHECK(partial > 0 && none > 0);
}

TEST(rescue, merges_go_on_with_what_is_left)
{
    char path[KILN_PATH_MAX];
    struct store_kit kit;

    begin(&kit, path);
    flip(&kit, path, middle_of(&kit, path, KILN_SECTION_ROWS));
    put(&kit, "auth", "main;later 1\n", NOW + 1);
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    CHECK_OK(kiln_store_compact(kit.engine, true, NULL));
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    CHECK_TEXT(kit_drawing(&kit, 0, 0),
               "main;later 1\nmain;parse;read 4\nmain;pay 20\nmain;read 3\n");
    CHECK_EQ(damaged_in(&kit, NULL), 1);
    kit_done(&kit);
}

TEST(rescue, damaged_roll_ups_cost_nothing_and_are_made_again)
{
    const struct kiln_rollup_limits usual = kiln_rollup_limits;
    char path[KILN_PATH_MAX];
    struct store_kit kit;
    uint64_t n;

    kiln_rollup_limits = (struct kiln_rollup_limits){.rows_min = 1,
                                                     .tree_rows = 1,
                                                     .node_rows = 1,
                                                     .nodes_min = 100,
                                                     .nodes_max = 100,
                                                     .nodes_coarse = 100,
                                                     .range_ns = 6 * HOUR,
                                                     .hour_ns = HOUR};
    begin(&kit, path);
    put(&kit, "auth", "main;sign 1\n", NOW + 1);
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    CHECK_OK(kiln_store_compact(kit.engine, true, NULL));
    CHECK_OK(kit.io->list(kit.io, "blocks/anonymous", note_block, path));
    flip(&kit, path, middle_of(&kit, path, KILN_SECTION_ROLLUP));
    CHECK_EQ(damages(&kit), 1);
    CHECK_EQ(damaged_in(&kit, NULL), 0);
    CHECK_OK(kit.engine->ops->delete_service(kit.engine, KILN_STR("anonymous"), KILN_STR("cart"),
                                             &n, NULL));
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;parse;read 4\nmain;read 3\nmain;sign 101\n");
    CHECK_EQ(kit_stats(&kit).set_aside, 0);
    CHECK_EQ(files_in(&kit, "aside"), 0);
    CHECK_EQ(damages(&kit), 0);
    kit_done(&kit);
    kiln_rollup_limits = usual;
}

TEST(rescue, a_service_is_deleted_from_a_damaged_block_too)
{
    char path[KILN_PATH_MAX];
    struct store_kit kit;
    uint64_t n = 0;

    begin(&kit, path);
    flip(&kit, path, middle_of(&kit, path, KILN_SECTION_ROWS));
    CHECK_OK(kit.engine->ops->delete_service(kit.engine, KILN_STR("anonymous"), KILN_STR("cart"),
                                             &n, NULL));
    CHECK_EQ(n, 1);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;parse;read 4\nmain;read 3\n");
    kit_done(&kit);
}

static int refuse(struct kiln_block *block, size_t memory_bytes, struct kiln_err *err)
{
    (void)block;
    (void)memory_bytes;
    return kiln_err_set(err, KILN_E_CORRUPT, "rows[0]", "refused");
}

TEST(rescue, a_block_that_cannot_be_rewritten_is_set_aside_as_a_whole)
{
    char path[KILN_PATH_MAX];
    struct store_kit kit;

    begin(&kit, path);
    kit.opts.verify = refuse;
    kit_reopen(&kit);
    flip(&kit, path, middle_of(&kit, path, KILN_SECTION_ROWS));
    (void)kit_drawing(&kit, 0, 0);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "");
    CHECK_EQ(kit_stats(&kit).set_aside, 1);
    CHECK_EQ(files_in(&kit, "blocks/anonymous"), 0);
    CHECK_EQ(files_in(&kit, "aside"), 2);
    kit_reopen(&kit);
    CHECK_EQ(kit_stats(&kit).set_aside, 0);
    CHECK_EQ(damaged_in(&kit, NULL), 1);
    kit_done(&kit);
}

/* Also right after a start: whether the rest is there is looked up in the new block. */
TEST(rescue, what_is_sent_again_is_taken_where_it_is_lost_and_only_there)
{
    char path[KILN_PATH_MAX];
    struct store_kit kit;

    begin(&kit, path);
    kit_reopen(&kit);
    flip(&kit, path, middle_of(&kit, path, KILN_SECTION_ROWS));
    (void)kit_drawing(&kit, 0, 0);
    put(&kit, "shop", SHOP, NOW);
    put(&kit, "cart", CART, NOW);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), REST);
    put(&kit, "auth", AUTH, NOW);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), ALL);
    kit_done(&kit);
}

TEST(rescue, what_is_sent_again_before_the_damage_is_found_is_not_there_twice)
{
    char path[KILN_PATH_MAX];
    struct store_kit kit;

    begin(&kit, path);
    flip(&kit, path, middle_of(&kit, path, KILN_SECTION_ROWS));
    kit_reopen(&kit);
    put(&kit, "shop", SHOP, NOW);
    put(&kit, "auth", AUTH, NOW);
    (void)kit_drawing(&kit, 0, 0);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), ALL);
    kit_done(&kit);
}

TEST(rescue, what_lacks_memory_stays_and_is_tried_again)
{
    char path[KILN_PATH_MAX];
    struct kiln_pool pool;
    struct store_kit kit;
    size_t taken;

    begin(&kit, path);
    kit_close(&kit);
    kiln_pool_init(&pool, "test", (size_t)64 << 20, NULL);
    kit.opts.pool = &pool;
    kit_open(&kit);
    flip(&kit, path, middle_of(&kit, path, KILN_SECTION_ROWS));
    taken = pool.limit - pool.used;
    CHECK_OK(kiln_pool_take(&pool, taken));
    (void)kit_drawing(&kit, 0, 0);
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    CHECK_EQ(kit_stats(&kit).set_aside, 0);
    kiln_pool_give(&pool, taken);
    (void)kit_drawing(&kit, 0, 0);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;parse;read 4\nmain;pay 20\nmain;read 3\n");
    CHECK_EQ(kit_stats(&kit).set_aside, 1);
    kit_done(&kit);
}

TEST(rescue, a_page_that_the_disk_cannot_read_is_tried_twice)
{
    for (uint64_t n = 1; n < 40; n++) {
        char path[KILN_PATH_MAX];
        struct store_kit kit;

        begin(&kit, path);
        kiln_sim_fail_at(kit.io, n, -EIO);
        (void)kit_drawing(&kit, 0, 0);
        kiln_sim_fail_at(kit.io, 0, 0);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), ALL);
        CHECK_EQ(kit_stats(&kit).set_aside, 0);
        kit_done(&kit);
    }
}

TEST(rescue, a_power_cut_at_any_moment_loses_and_doubles_nothing)
{
    for (uint64_t n = 1;; n++) {
        char path[KILN_PATH_MAX];
        struct store_kit kit;
        bool survived;

        begin(&kit, path);
        flip(&kit, path, middle_of(&kit, path, KILN_SECTION_ROWS));
        kiln_sim_cut_at(kit.io, n);
        CHECK_OK(kiln_store_compact(kit.engine, true, NULL)); /* it is alone: nothing is done */
        damaged_in(&kit, NULL);
        survived = !kiln_sim_is_dead(kit.io);
        kit_cut_power(&kit, n);
        kit_open(&kit);
        damaged_in(&kit, NULL);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), REST);
        CHECK_EQ(damaged_in(&kit, NULL), 1);
        CHECK_EQ(files_in(&kit, "aside"), 2);
        CHECK_EQ(damages(&kit), 0);
        kit_done(&kit);
        if (survived)
            break;
        CHECK(n < 1000);
    }
}

TEST(rescue, a_call_that_fails_loses_nothing)
{
    for (uint64_t n = 1;; n++) {
        char path[KILN_PATH_MAX];
        struct store_kit kit;
        uint64_t calls;
        bool reached;

        begin(&kit, path);
        flip(&kit, path, middle_of(&kit, path, KILN_SECTION_ROWS));
        calls = kiln_sim_calls(kit.io);
        kiln_sim_fail_at(kit.io, n, -ENOSPC);
        (void)kit_drawing(&kit, 0, 0);
        reached = kiln_sim_calls(kit.io) - calls >= n;
        kiln_sim_fail_at(kit.io, 0, 0);
        kit_reopen(&kit);
        (void)kit_drawing(&kit, 0, 0);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), REST);
        CHECK_EQ(damaged_in(&kit, NULL), 1);
        kit_done(&kit);
        if (!reached)
            break;
        CHECK(n < 2000);
    }
}

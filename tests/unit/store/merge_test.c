/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a merge does beside being right (answers_test.c, property_test.c): it uses what it has read
 * before, sees symbols that come later, stops when told to, and stays within its limits.
 */
#include <errno.h>

#include "answers.h"
#include "base/clock.h"
#include "drawn.h"
#include "store/scan_int.h"
#include "store_kit.h"
#include "test.h"

#define NOW 1000000
#define CPU .type = "cpu", .unit = "nanoseconds", .resource = "service.name=shop"

static const struct kiln_merge_wants all = {.nodes_max = 100, .functions = true, .profile = true};
static const struct kiln_merge_wants tree = {.nodes_max = 100};

static void put(struct store_kit *kit, const char *stacks, uint64_t time_ns)
{
    const struct kiln_drawn drawn = {CPU, .stacks = stacks, .time_ns = time_ns, .duration_ns = 5};

    kit_put(kit, kiln_test_batch(&drawn, 1));
}

static struct kiln_cache *cache_of(struct store_kit *kit)
{
    return &kiln_store_of(kit->engine)->cache;
}

/* Two blocks and a head. */
static void begin(struct store_kit *kit)
{
    kit_init(kit, NOW);
    put(kit, "main;parse;read 3\nmain;write 1\n", 1);
    CHECK_OK(kiln_store_flush(kit->engine, NULL));
    put(kit, "main;parse 2\nmain;parse>inlined 4\n", 2);
    CHECK_OK(kiln_store_flush(kit->engine, NULL));
    put(kit, "main;write 5\nother 6\n", 3);
}

#define WHOLE                                                                                      \
    "total 21 0\n"                                                                                 \
    "  main 15 0\n"                                                                                \
    "    parse 9 2\n"                                                                              \
    "      inlined 4 4\n"                                                                          \
    "      read 3 3\n"                                                                             \
    "    write 6 6\n"                                                                              \
    "  other 6 6\n"

#define TWO_BLOCKS                                                                                 \
    "total 10 0\n"                                                                                 \
    "  main 10 0\n"                                                                                \
    "    parse 9 2\n"                                                                              \
    "      inlined 4 4\n"                                                                          \
    "      read 3 3\n"                                                                             \
    "    write 1 1\n"

TEST(merge, blocks_and_heads_are_one_tree)
{
    struct kiln_question q = kiln_test_question();
    struct store_kit kit;

    begin(&kit);
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), WHOLE);
    CHECK_OK(kiln_store_compact(kit.engine, true, NULL));
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), WHOLE);
    kit_done(&kit);
}

TEST(merge, rows_of_a_block_are_added_up_once)
{
    const struct kiln_merge_wants functions = {.functions = true};
    struct kiln_window window = {1, 3}, half = {1, 2};
    struct kiln_question q = kiln_test_question();
    struct store_kit kit;

    begin(&kit);
    q.windows = &window;
    q.n_windows = 1;
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), TWO_BLOCKS);
    q.leash->bytes_read = 0;
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), TWO_BLOCKS);
    CHECK_EQ(q.leash->bytes_read, 0);
    /* Nobody asked for functions yet. */
    CHECK(*kiln_test_merge(kit.engine, &q, &functions));
    CHECK(q.leash->bytes_read > 0);
    q.leash->bytes_read = 0;
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), TWO_BLOCKS);
    CHECK_EQ(q.leash->bytes_read, 0);
    q.windows = &half;
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), "total 4 0\n"
                                                       "  main 4 0\n"
                                                       "    parse 3 0\n"
                                                       "      read 3 3\n"
                                                       "    write 1 1\n");
    kit_done(&kit);
}

TEST(merge, what_was_read_of_a_block_is_used_again)
{
    struct kiln_question q = kiln_test_question();
    uint64_t first, second, misses;
    struct store_kit kit;

    begin(&kit);
    q.leash->bytes_read = 0;
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), WHOLE);
    first = q.leash->bytes_read;
    misses = atomic_load(&cache_of(&kit)->misses);
    q.leash->bytes_read = 0;
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), WHOLE);
    second = q.leash->bytes_read;
    CHECK(second < first);
    CHECK_EQ(atomic_load(&cache_of(&kit)->misses), misses);
    CHECK(cache_of(&kit)->used > 0);
    kit_done(&kit);
}

TEST(merge, what_was_read_of_a_block_goes_with_the_block)
{
    struct kiln_question q = kiln_test_question();
    struct store_kit kit;
    uint64_t n;

    begin(&kit);
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), WHOLE);
    CHECK_OK(kit.engine->ops->delete_service(kit.engine, KILN_STR("anonymous"), KILN_STR("shop"),
                                             &n, NULL));
    CHECK_EQ(cache_of(&kit)->used, 0);
    kit_done(&kit);
}

TEST(merge, a_cache_without_room_answers_all_the_same)
{
    struct kiln_question q = kiln_test_question();
    struct store_kit kit;

    begin(&kit);
    cache_of(&kit)->limit = 0;
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), WHOLE);
    CHECK_EQ(cache_of(&kit)->used, 0);
    CHECK_EQ(q.leash->memory, 0);
    kit_done(&kit);
}

static int first_block(void *path, const char *name)
{
    if (*(char *)path == '\0')
        snprintf(path, 128, "blocks/anonymous/%s", name);
    return 0;
}

TEST(merge, a_damaged_block_is_left_out_and_counted)
{
    struct kiln_question q = kiln_test_question();
    struct kiln_merged *merged = NULL;
    struct store_kit kit;
    char path[128] = "";
    uint64_t size = 0;
    int fd;

    begin(&kit);
    CHECK_OK(kit.io->list(kit.io, "blocks/anonymous", first_block, path));
    fd = kit.io->open(kit.io, path, 0);
    CHECK_OK(kit.io->size(kit.io, fd, &size));
    CHECK_OK(kit.io->close(kit.io, fd));
    for (uint64_t i = size / 2; i < size; i++) /* its rows are whole, not what they mean */
        kiln_sim_flip(kit.io, path, i, 2);
    CHECK_OK(kit.engine->ops->merge(kit.engine, &q, &all, &merged, NULL));
    CHECK_EQ(merged->basis.n_damaged, 1);
    CHECK_EQ(merged->basis.n_blocks, 1);
    CHECK_EQ(merged->basis.n_profiles, 2);
    CHECK_EQ(merged->flame->nodes[0].total, merged->total);
    CHECK(merged->total == 17 || merged->total == 15);
    kiln_merged_free(merged);
    CHECK_EQ(kit_stats(&kit).set_aside, 1);
    CHECK_OK(kit.engine->ops->merge(kit.engine, &q, &all, &merged, NULL));
    CHECK_EQ(merged->basis.n_damaged, 1); /* it is still not there */
    kiln_merged_free(merged);
    q.windows = &(struct kiln_window){100, 200};
    q.n_windows = 1;
    CHECK_OK(kit.engine->ops->merge(kit.engine, &q, &all, &merged, NULL));
    CHECK_EQ(merged->basis.n_damaged, 0); /* nor was it there at that time */
    kiln_merged_free(merged);
    kit_done(&kit);
}

TEST(merge, symbols_that_come_later_name_what_was_read_before)
{
    static const struct kiln_symbol_frame frame = {.name = {"found", 5}, .file = {"f.c", 3}};
    static const struct kiln_symbol symbol = {
        .address = 0x1000, .size = 0x1000, .frames = &frame, .n = 1};
    struct kiln_question q = kiln_test_question();
    struct kiln_builder *b;
    struct kiln_batch *batch;
    struct store_kit kit;
    uint32_t id, profile, location, stack;

    kit_init(&kit, NOW);
    CHECK_OK(kiln_builder_new(NULL, &b));
    id = kiln_builder_text_attr(b, KILN_STR("process.executable.build_id.gnu"), KILN_STR("abcd"));
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    profile = kiln_builder_add_profile(b, &(struct kiln_profile){.time_ns = 1});
    location = kiln_builder_location(
        b,
        &(struct kiln_location){
            .address = 0x1234,
            .mapping = kiln_builder_mapping(
                b, &(struct kiln_mapping){.limit = 0x9000,
                                          .filename = kiln_builder_string(b, KILN_STR("bin")),
                                          .attrs = kiln_builder_set(b, &id, 1, NULL)})},
        NULL, 0);
    stack = kiln_builder_stack(b, &location, 1);
    kiln_builder_add_value(b, profile, stack, 0, 7);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    kit_put(&kit, kiln_batch_ref(batch));
    kiln_batch_unref(batch);
    for (uint32_t i = 0; i < 2; i++) { /* from the head, then from a block */
        CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree),
                   i ? "total 7 0\n  found 7 7\n" : "total 7 0\n  bin+0x1234 7 7\n");
        CHECK_OK(kit.engine->ops->put_symbols(kit.engine, KILN_STR("anonymous"), KILN_STR("abcd"),
                                              &symbol, 1, NULL));
        CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), "total 7 0\n  found 7 7\n");
        CHECK_OK(kiln_store_flush(kit.engine, NULL));
    }
    kit_done(&kit);
}

TEST(merge, stops_when_nobody_waits_or_time_is_up)
{
    struct kiln_question q = kiln_test_question();
    _Atomic bool gone = true;
    struct kiln_merged *merged = NULL;
    struct store_kit kit;

    begin(&kit);
    q.leash->gone = &gone;
    CHECK_EQ(kit.engine->ops->merge(kit.engine, &q, &all, &merged, NULL), -ECANCELED);
    q.leash->gone = NULL;
    q.leash->deadline_mono_ns = 1;
    CHECK_EQ(kit.engine->ops->merge(kit.engine, &q, &all, &merged, NULL), -ETIMEDOUT);
    q.leash->deadline_mono_ns = 0;
    CHECK(!merged);
    CHECK_EQ(q.leash->memory, 0);
    kit_done(&kit);
}

TEST(merge, reads_and_takes_no_more_than_it_may)
{
    struct kiln_question q = kiln_test_question();
    struct kiln_merged *merged = NULL;
    struct kiln_err err = {0};
    struct store_kit kit;

    begin(&kit);
    q.leash->bytes_max = 100;
    q.leash->bytes_read = 0;
    CHECK_EQ(kit.engine->ops->merge(kit.engine, &q, &all, &merged, &err), KILN_E_LIMIT);
    q.leash->bytes_max = 0;
    q.leash->memory_max = 1000;
    err = (struct kiln_err){0};
    CHECK_EQ(kit.engine->ops->merge(kit.engine, &q, &all, &merged, &err), KILN_E_LIMIT);
    CHECK(err.text[0]);
    q.leash->memory_max = 0;
    CHECK_EQ(q.leash->memory, 0);
    kit_done(&kit);
}

/* With each allocation failing in turn, until none is left; some can be done without. */
static void starve(struct store_kit *kit, const struct kiln_question *q, int64_t total)
{
    int64_t live = kiln_mem_live();
    uint64_t n = 0;
    bool failed;

    do {
        struct kiln_merged *merged = NULL;
        int r;

        kiln_mem_fail_at(++n);
        r = kit->engine->ops->merge(kit->engine, q, &all, &merged, NULL);
        failed = kiln_mem_failed();
        kiln_mem_fail_at(0);
        CHECK(r == 0 || (failed && (r == -ENOMEM || r == KILN_E_LIMIT)));
        if (r == 0)
            CHECK_EQ(merged->total, total);
        kiln_merged_free(merged);
        CHECK_EQ(kiln_mem_live(), live);
        CHECK_EQ(q->leash->memory, 0);
    } while (failed);
    CHECK(n > 100);
}

TEST(merge, running_out_of_memory_leaves_nothing_behind)
{
    struct kiln_question q = kiln_test_question();
    struct store_kit kit;

    begin(&kit);
    kiln_store_settle(kit.engine);
    cache_of(&kit)->limit = 0; /* everything is read anew each time */
    starve(&kit, &q, 21);
    q.average = true;
    starve(&kit, &q, 7);
    kit_done(&kit);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Roll-ups in a store: which questions they answer, and when they must not. */
#include <fcntl.h>

#include "answers.h"
#include "drawn.h"
#include "store/block_int.h"
#include "store/rollup.h"
#include "store/store_int.h"
#include "store_kit.h"
#include "test.h"

#define HOUR UINT64_C(3600000000000)
#define T0   (UINT64_C(20000) * 24 * HOUR)

static struct kiln_rollup_limits usual;

/* A store whose merged blocks have roll-ups of everything. */
static void begin(struct store_kit *kit)
{
    usual = kiln_rollup_limits;
    kiln_rollup_limits = (struct kiln_rollup_limits){.rows_min = 1,
                                                     .tree_rows = 1,
                                                     .node_rows = 1,
                                                     .nodes_min = 100,
                                                     .nodes_max = 100,
                                                     .nodes_coarse = 100,
                                                     .range_ns = 6 * HOUR,
                                                     .hour_ns = HOUR};
    kit_init(kit, T0 + 30 * HOUR);
}

static void end(struct store_kit *kit)
{
    kit_done(kit);
    kiln_rollup_limits = usual;
}

static void put(struct store_kit *kit, const char *resource, const char *stacks, uint64_t time_ns)
{
    kit_put(kit, kiln_test_batch(&(struct kiln_drawn){.stacks = stacks,
                                                      .type = "cpu",
                                                      .unit = "nanoseconds",
                                                      .resource = resource,
                                                      .time_ns = time_ns,
                                                      .duration_ns = HOUR / 2},
                                 1));
}

/* Two versions, each on two hosts, in the hours 1, 3 and 5. */
static void fill(struct store_kit *kit)
{
    put(kit, "service.name=shop,service.version=1,host.name=a", "main;old 3\n", T0 + HOUR);
    put(kit, "service.name=shop,service.version=1,host.name=b", "main;old 4\n", T0 + 3 * HOUR);
    CHECK_OK(kiln_store_flush(kit->engine, NULL));
    put(kit, "service.name=shop,service.version=2,host.name=a", "main;new 5\n", T0 + 3 * HOUR);
    put(kit, "service.name=shop,service.version=2,host.name=b", "main;new 6\n", T0 + 5 * HOUR);
    put(kit, "service.name=bank", "main;count 7\n", T0 + 5 * HOUR);
    CHECK_OK(kiln_store_flush(kit->engine, NULL));
    CHECK_OK(kiln_store_compact(kit->engine, true, NULL));
}

/* "rolled of read blocks: the tree and the functions" for a window in hours and one matcher. */
static const char *ask(struct store_kit *kit, const struct kiln_window *hours, const char *label,
                       const char *value)
{
    static char text[1024];
    struct kiln_window window = {T0 + hours->start_ns * HOUR, T0 + hours->end_ns * HOUR};
    struct kiln_matcher matcher = {kiln_str_of(label), kiln_str_of(value), KILN_MATCH_EQ, NULL};
    struct kiln_question q = kiln_test_question();
    struct kiln_merged *merged = NULL;

    q.windows = &window;
    q.n_windows = 1;
    q.matchers = &matcher;
    q.n_matchers = 1;
    CHECK_OK(kit->engine->ops->merge(
        kit->engine, &q, &(struct kiln_merge_wants){.nodes_max = 100, .functions = true}, &merged,
        NULL));
    snprintf(text, sizeof(text), "%u of %u\n%s", merged->basis.n_rolled, merged->basis.n_blocks,
             kiln_test_flame_text(merged->flame));
    kiln_merged_free(merged);
    return text;
}

static const struct kiln_window all_day = {0, 24}, to_noon = {2, 12}, short_time = {1, 5};

#define SHOP                                                                                       \
    "total 18 0\n  main 18 0\n    new 11 11\n    old 7 7\n"                                        \
    "new 11 11\nold 7 7\nmain 0 18\n"

TEST(rollup_store, a_day_of_a_service_comes_from_them)
{
    struct store_kit kit;

    begin(&kit);
    fill(&kit);
    CHECK_TEXT(ask(&kit, &all_day, "service_name", "shop"), "1 of 1\n" SHOP);
    CHECK_TEXT(ask(&kit, &all_day, "service.version", "2"),
               "1 of 1\ntotal 11 0\n  main 11 0\n    new 11 11\nnew 11 11\nmain 0 11\n");
    end(&kit);
}

TEST(rollup_store, a_part_of_a_day_comes_from_its_hours)
{
    struct store_kit kit;

    begin(&kit);
    fill(&kit);
    CHECK_TEXT(ask(&kit, &to_noon, "service_name", "shop"),
               "1 of 1\ntotal 15 0\n  main 15 0\n    new 11 11\n    old 4 4\n"
               "new 11 11\nold 4 4\nmain 0 15\n");
    end(&kit);
}

TEST(rollup_store, a_short_question_reads_samples)
{
    struct store_kit kit;

    begin(&kit);
    fill(&kit);
    CHECK_TEXT(ask(&kit, &short_time, "service_name", "shop"),
               "0 of 1\ntotal 12 0\n  main 12 0\n    new 5 5\n    old 7 7\n"
               "old 7 7\nnew 5 5\nmain 0 12\n");
    end(&kit);
}

TEST(rollup_store, a_question_about_a_part_of_a_group_reads_samples)
{
    struct store_kit kit;

    begin(&kit);
    fill(&kit);
    CHECK_TEXT(ask(&kit, &all_day, "host.name", "a"),
               "0 of 1\ntotal 8 0\n  main 8 0\n    new 5 5\n    old 3 3\n"
               "new 5 5\nold 3 3\nmain 0 8\n");
    end(&kit);
}

TEST(rollup_store, who_wants_it_exact_reads_samples)
{
    struct kiln_question q = kiln_test_question();
    struct kiln_merged *merged = NULL;
    struct store_kit kit;

    begin(&kit);
    kiln_rollup_limits.nodes_min = kiln_rollup_limits.nodes_max = 2;
    fill(&kit);
    CHECK_OK(kit.engine->ops->merge(kit.engine, &q,
                                    &(struct kiln_merge_wants){.nodes_max = 100, .exact = true},
                                    &merged, NULL));
    CHECK_EQ(merged->basis.n_rolled, 0);
    CHECK_EQ(merged->flame->error_bound, 0);
    CHECK_TEXT(kiln_test_flame_text(merged->flame), "total 25 0\n  main 25 0\n    count 7 7\n"
                                                    "    new 11 11\n    old 7 7\n");
    kiln_merged_free(merged);
    CHECK_OK(kit.engine->ops->merge(kit.engine, &q, &(struct kiln_merge_wants){.nodes_max = 100},
                                    &merged, NULL));
    CHECK_EQ(merged->basis.n_rolled, 1);
    CHECK_EQ(merged->flame->error_bound, 25);
    CHECK_TEXT(kiln_test_flame_text(merged->flame), "total 25 0\n  main 25 0\n    other 25 25\n");
    kiln_merged_free(merged);
    end(&kit);
}

TEST(rollup_store, nothing_of_a_deleted_service_is_left)
{
    struct store_kit kit;
    uint64_t profiles = 0;

    begin(&kit);
    fill(&kit);
    CHECK_OK(kit.engine->ops->delete_service(kit.engine, KILN_STR("anonymous"), KILN_STR("shop"),
                                             &profiles, NULL));
    CHECK_EQ(profiles, 4);
    CHECK_TEXT(ask(&kit, &all_day, "service_name", "shop"), "0 of 0\ntotal 0 0\n");
    CHECK_TEXT(ask(&kit, &all_day, "service_name", "bank"),
               "1 of 1\ntotal 7 0\n  main 7 0\n    count 7 7\ncount 7 7\nmain 0 7\n");
    end(&kit);
}

/* An address of a file with a build id; with a function that is made up, or without any. */
static struct kiln_batch *nameless(const char *made_up)
{
    struct kiln_builder *b;
    struct kiln_batch *batch;
    struct kiln_mapping mapping = {.limit = 0x9000};
    struct kiln_location location = {.address = 0x1234};
    struct kiln_function function = {0};
    struct kiln_line line = {0};
    uint32_t attr, profile, frame;

    CHECK_OK(kiln_builder_new(NULL, &b));
    attr = kiln_builder_text_attr(b, KILN_STR("service.name"), KILN_STR("shop"));
    kiln_builder_add_resource(
        b, &(struct kiln_resource){.attrs = kiln_builder_set(b, &attr, 1, NULL)});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    profile = kiln_builder_add_profile(b, &(struct kiln_profile){.time_ns = T0 + HOUR});
    attr = kiln_builder_text_attr(b, KILN_STR("process.executable.build_id.gnu"), KILN_STR("ab"));
    mapping.filename = kiln_builder_string(b, KILN_STR("bin"));
    mapping.attrs = kiln_builder_set(b, &attr, 1, NULL);
    location.mapping = kiln_builder_mapping(b, &mapping);
    function.name = kiln_builder_string(b, kiln_str_of(made_up));
    line.function = kiln_builder_function(b, &function);
    frame = kiln_builder_location(b, &location, &line, made_up[0] ? 1 : 0);
    kiln_builder_add_value(b, profile, kiln_builder_stack(b, &frame, 1), 0, 7);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

static void check_late_symbols(const char *made_up, const char *before)
{
    static const struct kiln_symbol_frame frame = {.name = {"found", 5}, .file = {"f.c", 3}};
    static const struct kiln_symbol symbol = {
        .address = 0x1000, .size = 0x1000, .frames = &frame, .n = 1};
    struct store_kit kit;

    begin(&kit);
    kit_put(&kit, nameless(made_up));
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    put(&kit, "service.name=bank", "main;count 7\n", T0 + 5 * HOUR);
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    CHECK_OK(kiln_store_compact(kit.engine, true, NULL));
    CHECK_TEXT(ask(&kit, &all_day, "service_name", "shop"), before);
    CHECK_OK(kit.engine->ops->put_symbols(kit.engine, KILN_STR("anonymous"), KILN_STR("ab"),
                                          &symbol, 1, NULL));
    CHECK_TEXT(ask(&kit, &all_day, "service_name", "shop"),
               "0 of 1\ntotal 7 0\n  found 7 7\nfound 7 7\n");
    CHECK_TEXT(ask(&kit, &all_day, "service_name", "bank"),
               "1 of 1\ntotal 7 0\n  main 7 0\n    count 7 7\ncount 7 7\nmain 0 7\n");
    CHECK_OK(kiln_store_compact(kit.engine, true, NULL)); /* gives the block its names */
    CHECK_TEXT(ask(&kit, &all_day, "service_name", "shop"),
               "1 of 1\ntotal 7 0\n  found 7 7\nfound 7 7\n");
    end(&kit);
}

TEST(rollup_store, symbols_that_come_later_are_seen)
{
    check_late_symbols("", "1 of 1\ntotal 7 0\n  bin+0x1234 7 7\nbin+0x1234 7 7\n");
    check_late_symbols("table", "1 of 1\ntotal 7 0\n  table 7 7\ntable 7 7\n");
    check_late_symbols("bin+0x1200", "1 of 1\ntotal 7 0\n  bin+0x1200 7 7\nbin+0x1200 7 7\n");
}

/* Turns a byte round, on the disk. */
static void flip(struct kiln_io *io, const char *path, uint64_t offset)
{
    int fd = io->open(io, path, O_RDWR);
    char byte;

    CHECK(fd >= 0);
    CHECK_EQ(io->pread(io, fd, &byte, 1, offset), 1);
    byte = (char)~byte;
    CHECK(io->pwrite(io, fd, &byte, 1, offset) >= 0);
    CHECK_OK(io->close(io, fd));
}

/* Damages all pages of a kind in the one block; returns how many there are. */
static int damage(struct store_kit *kit, uint32_t kind)
{
    struct kiln_tenant *tenant =
        kiln_tenant_find(kiln_store_of(kit->engine), KILN_STR("anonymous"));
    struct kiln_block_list list;
    const struct kiln_footer *f;
    int n = 0;

    CHECK_OK(kiln_catalog_list(tenant, &list));
    CHECK_EQ(list.n, 1);
    f = &list.blocks[0]->footer;
    for (uint32_t i = 0; i < f->n_sections; i++) {
        for (uint32_t k = 0; f->sections[i].kind == kind && k < f->sections[i].n_pages; k++, n++)
            flip(kit->io, list.blocks[0]->path, f->pages[f->sections[i].first_page + k].offset + 9);
    }
    kiln_block_list_done(&list);
    return n;
}

TEST(rollup_store, where_they_are_damaged_samples_are_read)
{
    static const uint32_t kinds[] = {KILN_SECTION_ROLLUP, KILN_SECTION_ROLLUP_NAMES,
                                     KILN_SECTION_ROLLUP_FUNCTIONS, KILN_SECTION_ROLLUP_NODES};

    for (size_t i = 0; i < KILN_ARRAY_LEN(kinds); i++) {
        struct store_kit kit;

        begin(&kit);
        fill(&kit);
        CHECK(damage(&kit, kinds[i]) > 0);
        CHECK_TEXT(ask(&kit, &all_day, "service_name", "shop"), "0 of 1\n" SHOP);
        CHECK_EQ(kit_stats(&kit).set_aside, 0);
        end(&kit);
    }
}

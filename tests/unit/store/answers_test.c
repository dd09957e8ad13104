/* SPDX-License-Identifier: Apache-2.0 */
/* What answers mean (store/engine.h), on stacks that are drawn. */
#include "answers.h"

#include "base/regex.h"
#include "drawn.h"
#include "store_kit.h"
#include "test.h"

/* The clock stands so early that times are short to draw. */
#define NOW    1000000

#define CPU    .type = "cpu", .unit = "nanoseconds", .period_type = "cpu", .period_unit = "nanoseconds"
#define HEAP   .type = "inuse_space", .unit = "bytes", .period_type = "space", .period_unit = "bytes"
#define SHOP   .resource = "service.name=shop"

#define CPU_ID "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

static const struct kiln_merge_wants tree = {.nodes_max = 1000};
static const struct kiln_merge_wants functions = {.functions = true};
static const struct kiln_timeline_opts tens = {.step_ns = 10};

/* A store with these profiles, half of them in a block. */
static void begin(struct store_kit *kit, const struct kiln_drawn *profiles, uint32_t n)
{
    kit_init(kit, NOW);
    for (uint32_t i = 0; i < n; i++) {
        kit_put(kit, kiln_test_batch(&profiles[i], 1));
        if (i == (n - 1) / 2)
            CHECK_OK(kiln_store_flush(kit->engine, NULL));
    }
}

#define BEGIN(kit, ...)                                                                            \
    do {                                                                                           \
        const struct kiln_drawn drawn_[] = {__VA_ARGS__};                                          \
        begin((kit), drawn_, KILN_ARRAY_LEN(drawn_));                                              \
    } while (0)

/* The total of what a condition on a label lets through. */
static int64_t total_where(struct store_kit *kit, const char *name, enum kiln_match_op op,
                           const char *value)
{
    struct kiln_question q = kiln_test_question();
    struct kiln_matcher m = {.name = kiln_str_of(name), .value = kiln_str_of(value), .op = op};
    struct kiln_merged *merged = NULL;
    int64_t total;

    q.matchers = &m;
    q.n_matchers = 1;
    if (op == KILN_MATCH_RE || op == KILN_MATCH_NRE)
        CHECK_OK(kiln_regex_new(m.value, KILN_REGEX_WHOLE, &m.regex, NULL));
    CHECK_OK(kit->engine->ops->merge(kit->engine, &q, &tree, &merged, NULL));
    total = merged->total;
    CHECK_EQ(total, merged->flame->total);
    kiln_regex_free(m.regex);
    kiln_merged_free(merged);
    return total;
}

static struct kiln_merged *merge(struct store_kit *kit, const struct kiln_question *q,
                                 const struct kiln_merge_wants *wants)
{
    struct kiln_merged *merged = NULL;

    CHECK_OK(kit->engine->ops->merge(kit->engine, q, wants, &merged, NULL));
    return merged;
}

static int64_t total_of(struct store_kit *kit, const struct kiln_question *q)
{
    struct kiln_merged *merged = merge(kit, q, &tree);
    int64_t total = merged->total;

    kiln_merged_free(merged);
    return total;
}

/* ---- trees ---- */

TEST(answers, a_merge_is_one_tree_of_everything)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();

    BEGIN(&kit, {CPU, .stacks = "main;read 3\nmain 1\n", SHOP, .time_ns = 1},
          {CPU, .stacks = "main;read 4\nmain;idle 5\n", .resource = "service.name=cart",
           .time_ns = 1},
          {CPU, .stacks = "main;read 7\n", SHOP, .time_ns = 5});
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), "total 20 0\n"
                                                       "  main 20 1\n"
                                                       "    idle 5 5\n"
                                                       "    read 14 14\n");
    kit_done(&kit);
}

TEST(answers, a_tree_keeps_the_largest_nodes_and_folds_the_others)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    struct kiln_merge_wants two = {.nodes_max = 2};

    BEGIN(&kit, {CPU, .stacks = "main;a 3\nmain;b 1\nmain;c 3\nmain;a;d 1\nx 1\n", .time_ns = 1});
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &two), "total 9 0\n"
                                                      "  main 8 0\n"
                                                      "    a 4 3\n"
                                                      "      other 1 1\n"
                                                      "    other 4 4\n"
                                                      "  other 1 1\n");
    kit_done(&kit);
}

TEST(answers, of_equal_nodes_the_less_deep_stay_and_no_more_than_were_asked_for)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    struct kiln_merge_wants three = {.nodes_max = 3};

    BEGIN(&kit, {CPU, .stacks = "main;a;x 2\nmain;b 2\nmain;c 1\n", .time_ns = 1});
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &three), "total 5 0\n"
                                                        "  main 5 0\n"
                                                        "    a 2 0\n"
                                                        "      other 2 2\n"
                                                        "    b 2 2\n"
                                                        "    other 1 1\n");
    kit_done(&kit);
}

TEST(answers, a_function_called_other_is_not_what_was_folded)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    struct kiln_merge_wants one = {.nodes_max = 1};
    struct kiln_merged *merged;

    BEGIN(&kit, {CPU, .stacks = "other 2\nb 1\n", .time_ns = 1});
    merged = merge(&kit, &q, &one);
    CHECK_EQ(merged->flame->n_nodes, 3);
    CHECK_EQ(merged->flame->nodes_all, 0); /* nobody counted what was folded */
    CHECK_NE(merged->flame->nodes[1].name, merged->flame->other);
    CHECK_EQ(merged->flame->nodes[2].name, merged->flame->other);
    CHECK_EQ(merged->flame->nodes[1].end, 2);
    CHECK_EQ(merged->flame->nodes[2].end, 3);
    CHECK_EQ(merged->flame->nodes[2].parent, 0);
    kiln_merged_free(merged);
    kit_done(&kit);
}

TEST(answers, a_function_that_recurses_counts_once_in_its_total)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();

    BEGIN(&kit, {CPU, .stacks = "main;f;g;f 3\nmain;f 2\n", .time_ns = 1},
          {CPU, .stacks = "main;h 5\n", .time_ns = 2});
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &functions), "f 5 5\n"
                                                            "h 5 5\n"
                                                            "main 0 10\n"
                                                            "g 0 3\n");
    kit_done(&kit);
}

TEST(answers, inlined_functions_are_nodes_and_addresses_have_the_name_of_their_module)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();

    BEGIN(&kit, {CPU, .stacks = "main;a>b 3\nmain;lib.so+0x10 2\n", .time_ns = 1});
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), "total 5 0\n"
                                                       "  main 5 0\n"
                                                       "    a 3 0\n"
                                                       "      b 3 3\n"
                                                       "    lib.so+0x10 2 2\n");
    kit_done(&kit);
}

TEST(answers, a_merged_profile_has_one_sample_for_each_stack)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    struct kiln_merge_wants wants = {.profile = true};
    struct kiln_merged *merged;
    struct kiln_view *view;

    BEGIN(&kit,
          {CPU, .stacks = "main;a@a.c:7 3 k=1\nmain;a@a.c:7 2 k=2\nmain;a@a.c:8 1\n", .period = 10,
           .time_ns = 1},
          {CPU, .stacks = "main;a@a.c:7 10\n", .period = 10, .time_ns = 2});
    merged = merge(&kit, &q, &wants);
    CHECK(!merged->flame);
    CHECK_EQ(merged->profile->n_profiles, 1);
    CHECK_EQ(merged->profile->n_samples, 2);
    CHECK_EQ(merged->total, 16);
    view = kiln_test_view(
        kiln_batch_ref(merged->profile),
        &(struct kiln_view_opts){.granularity = KILN_BY_LINE, .sample_type = KILN_STR(CPU_ID)});
    CHECK_TEXT(kiln_test_view_text(view), "main;a a.c:7 15\nmain;a a.c:8 1\n");
    kiln_view_free(view);
    kiln_merged_free(merged);
    kit_done(&kit);
}

TEST(answers, nothing_is_an_answer_too)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    struct kiln_merged *merged;

    kit_init(&kit, NOW);
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), "total 0 0\n");
    CHECK_TEXT(kiln_test_timeline(kit.engine, &q, &tens), "");
    CHECK_TEXT(kiln_test_labels(kit.engine, &q, NULL, 0), "");
    CHECK_TEXT(kiln_test_found(kit.engine, &q, &(struct kiln_found_opts){0}), "");
    merged = merge(&kit, &q, &tree);
    CHECK_EQ(merged->basis.n_profiles, 0);
    CHECK_EQ(merged->basis.min_ns, 0);
    CHECK_EQ(merged->basis.max_ns, 0);
    kiln_merged_free(merged);
    kit_done(&kit);
}

/* ---- labels ---- */

TEST(answers, labels_are_looked_for_in_series_sample_profile_scope_and_resource)
{
    struct store_kit kit;

    BEGIN(&kit, {CPU, .stacks = "main 1 color=red,n=7\nmain 2\nmain 4 pid=1\n", .time_ns = 1,
                 .attrs = "color=green", .scope = "s", .scope_attrs = "color=blue,size=xl",
                 .resource = "service.name=shop,color=pink,size=s,pid=9,host.name=web"});
    CHECK_EQ(total_where(&kit, "color", KILN_MATCH_EQ, "red"), 1);
    CHECK_EQ(total_where(&kit, "color", KILN_MATCH_EQ, "green"), 6);
    CHECK_EQ(total_where(&kit, "color", KILN_MATCH_EQ, "blue"), 0);
    CHECK_EQ(total_where(&kit, "size", KILN_MATCH_EQ, "xl"), 7);
    CHECK_EQ(total_where(&kit, "pid", KILN_MATCH_EQ, "1"), 4);
    CHECK_EQ(total_where(&kit, "pid", KILN_MATCH_EQ, "9"), 3);
    CHECK_EQ(total_where(&kit, "n", KILN_MATCH_EQ, "7"), 1);
    CHECK_EQ(total_where(&kit, "n", KILN_MATCH_NE, "7"), 6);
    CHECK_EQ(total_where(&kit, "host.name", KILN_MATCH_RE, "w.b"), 7);
    CHECK_EQ(total_where(&kit, "host.name", KILN_MATCH_RE, "w"), 0);
    kit_done(&kit);
}

TEST(answers, a_label_of_the_series_goes_before_an_attribute_of_the_sample)
{
    struct store_kit kit;

    BEGIN(&kit,
          {CPU, .stacks = "main 1 host.name=db,service.name=cart\n", .time_ns = 1,
           .resource = "service.name=shop,host.name=web"},
          {CPU, .stacks = "main 2 host.name=db\n", .time_ns = 1, SHOP});
    CHECK_EQ(total_where(&kit, "host.name", KILN_MATCH_EQ, "web"), 1);
    CHECK_EQ(total_where(&kit, "host.name", KILN_MATCH_EQ, "db"), 2);
    CHECK_EQ(total_where(&kit, "service.name", KILN_MATCH_EQ, "cart"), 0);
    CHECK_EQ(total_where(&kit, "service_name", KILN_MATCH_EQ, "shop"), 3);
    CHECK_EQ(total_where(&kit, "__service_name__", KILN_MATCH_EQ, "shop"), 3);
    kit_done(&kit);
}

TEST(answers, an_absent_label_is_empty)
{
    struct store_kit kit;

    BEGIN(&kit, {CPU, .stacks = "main 1 color=red\nmain 2\n", .time_ns = 1});
    CHECK_EQ(total_where(&kit, "color", KILN_MATCH_EQ, ""), 2);
    CHECK_EQ(total_where(&kit, "color", KILN_MATCH_NE, ""), 1);
    CHECK_EQ(total_where(&kit, "color", KILN_MATCH_NE, "red"), 2);
    CHECK_EQ(total_where(&kit, "color", KILN_MATCH_RE, ".*"), 3);
    CHECK_EQ(total_where(&kit, "color", KILN_MATCH_NRE, "r.*"), 2);
    CHECK_EQ(total_where(&kit, "shape", KILN_MATCH_EQ, ""), 3);
    kit_done(&kit);
}

TEST(answers, the_parts_of_a_type_are_labels)
{
    struct store_kit kit;

    BEGIN(&kit, {CPU, .stacks = "main 1\n", .time_ns = 1},
          {HEAP, .stacks = "main 2\n", .time_ns = 1});
    CHECK_EQ(total_where(&kit, "__profile_type__", KILN_MATCH_EQ, CPU_ID), 1);
    CHECK_EQ(total_where(&kit, "__name__", KILN_MATCH_EQ, "memory"), 2);
    CHECK_EQ(total_where(&kit, "__type__", KILN_MATCH_EQ, "inuse_space"), 2);
    CHECK_EQ(total_where(&kit, "__unit__", KILN_MATCH_EQ, "nanoseconds"), 1);
    CHECK_EQ(total_where(&kit, "__period_type__", KILN_MATCH_EQ, "space"), 2);
    CHECK_EQ(total_where(&kit, "__period_unit__", KILN_MATCH_EQ, "bytes"), 2);
    kit_done(&kit);
}

TEST(answers, names_of_labels_are_those_of_series_attributes_and_types)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();

    BEGIN(&kit, {CPU, .stacks = "main 1 color=red\n", .time_ns = 1, .attrs = "p=1", .scope = "s",
                 .scope_attrs = "s=1", .resource = "service.name=shop,host.name=web,r=1"});
    CHECK_TEXT(kiln_test_labels(kit.engine, &q, NULL, 0), "__name__\n"
                                                          "__period_type__\n"
                                                          "__period_unit__\n"
                                                          "__profile_type__\n"
                                                          "__service_name__\n"
                                                          "__type__\n"
                                                          "__unit__\n"
                                                          "color\n"
                                                          "host.name\n"
                                                          "p\n"
                                                          "r\n"
                                                          "s\n"
                                                          "service.name\n"
                                                          "service_name\n");
    kit_done(&kit);
}

TEST(answers, names_of_labels_are_of_what_the_question_is_about)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    struct kiln_matcher m = {.name = KILN_STR("color"), .value = KILN_STR("red")};
    const char *text;

    BEGIN(&kit, {CPU, .stacks = "main 1 color=red,a=1\nmain 1 color=blue,b=1\n", .time_ns = 1},
          {CPU, .stacks = "main 1 c=1\n", .time_ns = 1, .resource = "service.name=x,d=1"});
    q.matchers = &m;
    q.n_matchers = 1;
    text = kiln_test_labels(kit.engine, &q, NULL, 0);
    CHECK(strstr(text, "\na\ncolor\nservice"));
    CHECK(!strstr(text, "\nb\n") && !strstr(text, "\nc\n") && !strstr(text, "\nd\n"));
    kit_done(&kit);
}

TEST(answers, labels_tell_the_distinct_combinations_of_values)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    const struct kiln_str series[] = {KILN_STR("service_name"), KILN_STR("__type__")};
    const struct kiln_str samples[] = {KILN_STR("service_name"), KILN_STR("color")};

    BEGIN(&kit, {CPU, .stacks = "main 1 color=red\nmain 1\n", .time_ns = 1, SHOP},
          {CPU, .stacks = "main 1 color=red\n", .time_ns = 2, SHOP},
          {HEAP, .stacks = "main 1 color=blue\n", .time_ns = 3, SHOP},
          {CPU, .stacks = "main 1 color=red\n", .time_ns = 4, .resource = "service.name=cart"});
    CHECK_TEXT(kiln_test_labels(kit.engine, &q, series, 2), "cart,cpu\n"
                                                            "shop,cpu\n"
                                                            "shop,inuse_space\n");
    CHECK_TEXT(kiln_test_labels(kit.engine, &q, samples, 2), "cart,red\n"
                                                             "shop,\n"
                                                             "shop,blue\n"
                                                             "shop,red\n");
    q.type = KILN_STR(CPU_ID);
    CHECK_TEXT(kiln_test_labels(kit.engine, &q, samples + 1, 1), "\nred\n");
    kit_done(&kit);
}

TEST(answers, a_row_of_labels_has_the_times_and_sizes_of_its_series)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    struct kiln_labels *labels = NULL;
    const struct kiln_str name = KILN_STR("service_name");

    BEGIN(&kit, {CPU, .stacks = "main 1\n", .time_ns = 10, SHOP},
          {HEAP, .stacks = "main 1\n", .time_ns = 20, SHOP},
          {CPU, .stacks = "main 1\n", .time_ns = 30, SHOP},
          {CPU, .stacks = "main 1\n", .time_ns = 40, .resource = "service.name=cart"});
    CHECK_OK(kit.engine->ops->labels(kit.engine, &q, &name, 1, &labels, NULL));
    CHECK_EQ(labels->n_rows, 2);
    CHECK_STR(labels->rows[0].values[0], "cart");
    CHECK_EQ(labels->rows[1].n_profiles, 3);
    CHECK_EQ(labels->rows[1].min_ns, 10);
    CHECK_EQ(labels->rows[1].max_ns, 30);
    kiln_labels_free(labels);
    kit_done(&kit);
}

/* ---- time ---- */

TEST(answers, a_sample_counts_at_its_timestamp_and_else_at_the_start_of_its_profile)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    struct kiln_window w = {100, 200};

    BEGIN(&kit, {CPU, .stacks = "a 1@99 2@100 4@199 8@200\n", .time_ns = 98, SHOP},
          {CPU, .stacks = "b 16\n", .time_ns = 150, SHOP},
          {CPU, .stacks = "a 32@150\nb 64\n", .time_ns = 99, SHOP},
          {CPU, .stacks = "b 128\n", .time_ns = 100, SHOP},
          {CPU, .stacks = "b 256\n", .time_ns = 200, SHOP});
    q.windows = &w;
    q.n_windows = 1;
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), "total 182 0\n"
                                                       "  a 38 38\n"
                                                       "  b 144 144\n");
    kit_done(&kit);
}

TEST(answers, several_windows_count_together)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    const struct kiln_window w[] = {{10, 20}, {30, 31}, {50, 60}};

    BEGIN(&kit, {CPU, .stacks = "a 1@9 2@10 4@20 8@30 16@31 32@50 64@60\n", .time_ns = 5, SHOP},
          {CPU, .stacks = "b 1\n", .time_ns = 30, SHOP},
          {CPU, .stacks = "b 2\n", .time_ns = 31, SHOP},
          {CPU, .stacks = "b 4\n", .time_ns = 59, SHOP});
    q.windows = w;
    q.n_windows = 3;
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), "total 47 0\n"
                                                       "  a 42 42\n"
                                                       "  b 5 5\n");
    CHECK_TEXT(kiln_test_timeline(kit.engine, &q, &tens), ": 0=2 2=9 4=36\n");
    kit_done(&kit);
}

TEST(answers, timestamps_without_values_count_one_each)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();

    BEGIN(&kit, {.stacks = "a @10 @11 @25\nb @40\n",
                 .time_ns = 10,
                 .period_type = "cpu",
                 .period_unit = "nanoseconds",
                 .period = 100});
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), "total 400 0\n"
                                                       "  a 300 300\n"
                                                       "  b 100 100\n");
    CHECK_TEXT(kiln_test_timeline(kit.engine, &q, &tens), ": 1=200 2=100 4=100\n");
    kit_done(&kit);
}

/* ---- values ---- */

TEST(answers, samples_are_time_by_their_period)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    struct kiln_merged *merged;

    BEGIN(&kit,
          {.stacks = "a 3\n",
           .time_ns = 1,
           .period_type = "cpu",
           .period_unit = "nanoseconds",
           .period = 100},
          {.stacks = "a 3\n",
           .time_ns = 2,
           .period_type = "cpu",
           .period_unit = "nanoseconds",
           .period = 1000});
    q.type = KILN_STR(CPU_ID);
    merged = merge(&kit, &q, &tree);
    CHECK_EQ(merged->total, 3300);
    CHECK(merged->basis.count == 6);
    kiln_merged_free(merged);
    kit_done(&kit);
}

TEST(answers, samples_beside_time_stay_a_count_though_they_are_asked_for_alone)
{
    const struct kiln_drawn both[] = {{CPU, .period = 100, .stacks = "a 300\n", .time_ns = 1, SHOP},
                                      {.stacks = "a 3\n",
                                       .time_ns = 1,
                                       .period_type = "cpu",
                                       .period_unit = "nanoseconds",
                                       .period = 100}};
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();

    kit_init(&kit, NOW);
    kit_put(&kit, kiln_test_batch(both, 2));
    q.type = KILN_STR("process_cpu:samples:count:cpu:nanoseconds");
    CHECK_EQ(total_of(&kit, &q), 3);
    q.type = KILN_STR(CPU_ID);
    CHECK_EQ(total_of(&kit, &q), 300);
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    q.type = KILN_STR("process_cpu:samples:count:cpu:nanoseconds");
    CHECK_EQ(total_of(&kit, &q), 3);
    kit_done(&kit);
}

TEST(answers, a_level_is_the_mean_of_each_process_summed_over_processes)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();

    BEGIN(&kit,
          {HEAP, .stacks = "a 10\nb 2\n", .time_ns = 1,
           .resource = "service.name=shop,process.pid=1"},
          {HEAP, .stacks = "a 20\n", .time_ns = 2, .resource = "service.name=shop,process.pid=1"},
          {HEAP, .stacks = "a 7\n", .time_ns = 1, .resource = "service.name=shop,process.pid=2"},
          {HEAP, .stacks = "a 100\n", .time_ns = 1,
           .resource = "service.name=shop,host.name=x,process.pid=1"});
    CHECK_EQ(total_of(&kit, &q), 139);
    q.average = true;
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), "total 123 0\n"
                                                       "  a 122 122\n"
                                                       "  b 1 1\n");
    CHECK_TEXT(kiln_test_timeline(kit.engine, &q, &tens), ": 0=123\n");
    kit_done(&kit);
}

TEST(answers, a_profile_without_the_function_counts_in_the_mean_of_its_process)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    const struct kiln_str a = KILN_STR("a");

    BEGIN(&kit, {HEAP, .stacks = "a 10\n", .time_ns = 1, SHOP},
          {HEAP, .stacks = "b 20\n", .time_ns = 2, SHOP}, {HEAP, .time_ns = 3, SHOP},
          {HEAP, .stacks = "a 30\n", .time_ns = 14, SHOP});
    q.average = true;
    q.stacks.with = &a;
    q.stacks.n_with = 1;
    CHECK_EQ(total_of(&kit, &q), 10);
    CHECK_TEXT(kiln_test_timeline(kit.engine, &q, &tens), ": 0=3.33333 1=30\n");
    kit_done(&kit);
}

/* ---- stacks, links, ids, tenants ---- */

TEST(answers, stacks_are_chosen_by_how_they_begin_and_what_they_have)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    const struct kiln_str site[] = {KILN_STR("main"), KILN_STR("a")};

    BEGIN(&kit, {CPU, .stacks = "main;a;x 1\nmain;a 2\nmain;b;a 4\na;main 8\nmain;a>b 16\n",
                 .time_ns = 1});
    q.stacks.call_site = site;
    q.stacks.n_call_site = 2;
    CHECK_EQ(total_of(&kit, &q), 19);
    q.stacks = (struct kiln_stack_choice){.with = site + 1, .n_with = 1};
    CHECK_EQ(total_of(&kit, &q), 31);
    q.stacks = (struct kiln_stack_choice){.without = &KILN_STR("b"), .n_without = 1};
    CHECK_EQ(total_of(&kit, &q), 11);
    q.stacks.with = &KILN_STR("x");
    q.stacks.n_with = 1;
    CHECK_EQ(total_of(&kit, &q), 1);
    kit_done(&kit);
}

TEST(answers, expressions_match_any_part_of_a_name)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();

    BEGIN(&kit, {CPU, .stacks = "main;read_all 1\nmain;write 2\nspread 4\n- 8\n", .time_ns = 1});
    CHECK_OK(kiln_regex_new(KILN_STR("read"), 0, &q.stacks.with_regex, NULL));
    CHECK_EQ(total_of(&kit, &q), 5);
    CHECK_OK(kiln_regex_new(KILN_STR("^spr"), 0, &q.stacks.without_regex, NULL));
    CHECK_EQ(total_of(&kit, &q), 1);
    kiln_regex_free(q.stacks.with_regex);
    q.stacks.with_regex = NULL;
    CHECK_EQ(total_of(&kit, &q), 11);
    kiln_regex_free(q.stacks.without_regex);
    kit_done(&kit);
}

TEST(answers, samples_are_chosen_by_trace_and_span)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    const uint8_t traces[][16] = {{[15] = 7}, {[15] = 8}};
    const uint8_t spans[][8] = {{[7] = 1}};

    BEGIN(&kit, {CPU, .stacks = "a 1 ^7.1\na 2 ^7.2\na 4 ^8.1\na 8 ^9.1\na 16\n", .time_ns = 1},
          {CPU, .stacks = "a 32 ^7.1\n", .time_ns = 2});
    q.trace_ids = traces;
    q.n_trace_ids = 2;
    CHECK_EQ(total_of(&kit, &q), 39);
    q.span_ids = spans;
    q.n_span_ids = 1;
    CHECK_EQ(total_of(&kit, &q), 37);
    q.n_trace_ids = 0;
    CHECK_EQ(total_of(&kit, &q), 45);
    kit_done(&kit);
}

TEST(answers, profiles_are_chosen_by_id)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    const uint8_t ids[][16] = {{[15] = 3}, {[15] = 5}};

    BEGIN(&kit, {CPU, .stacks = "a 1\n", .id = 3, .time_ns = 1},
          {CPU, .stacks = "a 2\n", .id = 4, .time_ns = 1}, {CPU, .stacks = "a 4\n", .time_ns = 1},
          {CPU, .stacks = "a 8\n", .id = 5, .time_ns = 1});
    q.profile_ids = ids;
    q.n_profile_ids = 2;
    CHECK_EQ(total_of(&kit, &q), 9);
    kit_done(&kit);
}

TEST(answers, several_tenants_are_answered_for_together)
{
    const struct kiln_drawn drawn = {CPU, .stacks = "a 5\n", .time_ns = 1, SHOP};
    const struct kiln_str tenants[] = {KILN_STR("anonymous"), KILN_STR("blue"), KILN_STR("gone")};
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    struct kiln_batch *batch = kiln_test_batch(&drawn, 1);

    BEGIN(&kit, {CPU, .stacks = "a 1\n", .time_ns = 1, SHOP});
    CHECK_OK(kit_append_to(&kit, "blue", batch).code);
    CHECK_OK(kit_append_to(&kit, "red", batch).code);
    kiln_batch_unref(batch);
    q.tenants = tenants;
    q.n_tenants = 3;
    CHECK_EQ(total_of(&kit, &q), 6);
    CHECK_TEXT(kiln_test_labels(kit.engine, &q, &KILN_STR("service_name"), 1), "shop\n");
    CHECK_TEXT(kiln_test_timeline(kit.engine, &q, &tens), ": 0=6\n");
    kit_done(&kit);
}

/* ---- timelines ---- */

TEST(answers, a_timeline_has_a_series_for_each_value_of_a_label)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    const struct kiln_window w = {100, 130};
    const struct kiln_str by[] = {KILN_STR("service_name"), KILN_STR("color")};
    struct kiln_timeline_opts opts = {.step_ns = 10, .by = by, .n_by = 2};

    BEGIN(&kit, {CPU, .stacks = "a 1 color=red\nb 2\n", .time_ns = 100, SHOP},
          {CPU, .stacks = "a 4 color=red\nb 8\n", .time_ns = 109, SHOP},
          {CPU, .stacks = "a 16 color=red\n", .time_ns = 110, .resource = "service.name=cart"},
          {CPU, .stacks = "a 32 color=red\n", .time_ns = 129, SHOP},
          {CPU, .stacks = "a 64 color=red\n", .time_ns = 130, SHOP});
    q.windows = &w;
    q.n_windows = 1;
    CHECK_TEXT(kiln_test_timeline(kit.engine, &q, &opts), "cart,red: 1=16\n"
                                                          "shop,: 0=10\n"
                                                          "shop,red: 0=5 2=32\n");
    opts.n_by = 0;
    CHECK_TEXT(kiln_test_timeline(kit.engine, &q, &opts), ": 0=15 1=16 2=32\n");
    opts.mean = true;
    CHECK_TEXT(kiln_test_timeline(kit.engine, &q, &opts), ": 0=7.5 1=16 2=32\n");
    kit_done(&kit);
}

TEST(answers, a_limit_keeps_the_series_with_the_largest_sums)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    struct kiln_timeline_opts opts = {
        .step_ns = 10, .by = &KILN_STR("color"), .n_by = 1, .limit = 2};
    struct kiln_timeline *timeline = NULL;

    BEGIN(&kit, {CPU, .stacks = "a 5 color=a\na 7 color=b\na 9 color=c\n", .time_ns = 1},
          {CPU, .stacks = "a 3 color=a\n", .time_ns = 11});
    CHECK_TEXT(kiln_test_timeline(kit.engine, &q, &opts), "a: 0=5 1=3\nc: 0=9\n");
    CHECK_OK(kit.engine->ops->timeline(kit.engine, &q, &opts, &timeline, NULL));
    CHECK_EQ(timeline->n_dropped, 1);
    kiln_timeline_free(timeline);
    kit_done(&kit);
}

TEST(answers, more_buckets_than_allowed_are_an_error)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    struct kiln_timeline_opts opts = {.step_ns = 10, .buckets_max = 2};
    struct kiln_timeline *timeline = NULL;
    struct kiln_err err = {0};

    BEGIN(&kit, {CPU, .stacks = "a 1@10 1@20\n", .time_ns = 10});
    CHECK_TEXT(kiln_test_timeline(kit.engine, &q, &opts), ": 1=1 2=1\n");
    opts.step_ns = 5;
    opts.buckets_max = 1;
    CHECK_EQ(kit.engine->ops->timeline(kit.engine, &q, &opts, &timeline, &err), KILN_E_LIMIT);
    CHECK(strstr(err.text, "longer steps"));
    kit_done(&kit);
}

TEST(answers, an_exemplar_is_the_largest_profile_or_span_of_a_bucket)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    struct kiln_timeline_opts opts = {.step_ns = 10, .exemplars = true};

    BEGIN(&kit, {CPU, .stacks = "a 5 ^7.1\na 6 ^7.2\nb 3 ^7.1\n", .id = 1, .time_ns = 1},
          {CPU, .stacks = "a 9\nb 6\n", .id = 2, .time_ns = 2},
          {CPU, .stacks = "a 1\n", .id = 3, .time_ns = 12});
    CHECK_TEXT(kiln_test_timeline(kit.engine, &q, &opts), ": 0=29(15 of 2 0.0) 1=1(1 of 3 0.0)\n");
    opts.span_exemplars = true;
    CHECK_TEXT(kiln_test_timeline(kit.engine, &q, &opts), ": 0=29(8 of 0 7.1) 1=1\n");
    kit_done(&kit);
}

/* ---- profiles and spans ---- */

TEST(answers, profiles_are_found_newest_or_largest_first)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    struct kiln_found_opts opts = {.order = KILN_FOUND_NEWEST};
    struct kiln_found *found = NULL;

    BEGIN(&kit, {CPU, .stacks = "a 5\nb 1\n", .id = 1, .time_ns = 10, .duration_ns = 3},
          {CPU, .stacks = "a 2\n", .id = 2, .time_ns = 30},
          {CPU, .stacks = "a 9\n", .id = 3, .time_ns = 20}, {CPU, .id = 4, .time_ns = 40});
    CHECK_TEXT(kiln_test_found(kit.engine, &q, &opts), "30+0 2 1 2\n"
                                                       "20+0 9 1 3\n"
                                                       "10+3 6 2 1\n");
    opts = (struct kiln_found_opts){.order = KILN_FOUND_LARGEST, .limit = 2};
    CHECK_TEXT(kiln_test_found(kit.engine, &q, &opts), "20+0 9 1 3\n"
                                                       "10+3 6 2 1\n");
    CHECK_OK(kit.engine->ops->found(kit.engine, &q, &opts, &found, NULL));
    CHECK_EQ(found->n_all, 3);
    CHECK(kiln_str_starts(found->rows[0].series, KILN_STR("unknown_service")));
    kiln_found_free(found);
    kit_done(&kit);
}

TEST(answers, spans_are_found_with_all_their_samples)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    struct kiln_found_opts opts = {.spans = true, .order = KILN_FOUND_LARGEST};

    BEGIN(&kit, {CPU, .stacks = "a 5 ^7.1\nb 2@13 2@17 ^7.2\nc 100\n", .id = 1, .time_ns = 10},
          {CPU, .stacks = "a 1@45 ^7.1\nb 3 ^8.1\n", .time_ns = 30});
    CHECK_TEXT(kiln_test_found(kit.engine, &q, &opts), "10+35 6 2 7.1\n"
                                                       "13+4 4 2 7.2\n"
                                                       "30+0 3 1 8.1\n");
    kit_done(&kit);
}

TEST(answers, found_looks_only_at_what_was_asked_for)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    const struct kiln_str b = KILN_STR("b");

    BEGIN(&kit, {CPU, .stacks = "a 5\na;b 1\n", .id = 1, .time_ns = 10},
          {CPU, .stacks = "a 2\n", .id = 2, .time_ns = 30});
    q.stacks.with = &b;
    q.stacks.n_with = 1;
    CHECK_TEXT(kiln_test_found(kit.engine, &q, &(struct kiln_found_opts){0}), "10+0 1 1 1\n");
    kit_done(&kit);
}

/* ---- what stands behind ---- */

TEST(answers, a_basis_tells_how_much_there_was)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    struct kiln_merged *merged;

    BEGIN(&kit, {CPU, .stacks = "a 50\n", .period = 10, .time_ns = 10, .duration_ns = 10, SHOP},
          {CPU, .stacks = "a 20@17 20@44\n", .period = 10, .time_ns = 15, .duration_ns = 30, SHOP},
          {CPU, .period = 10, .time_ns = 40, .duration_ns = 5, SHOP});
    merged = merge(&kit, &q, &tree);
    CHECK_EQ(merged->basis.n_profiles, 2);
    CHECK(merged->basis.count == 7);
    CHECK_EQ(merged->basis.min_ns, 10);
    CHECK_EQ(merged->basis.max_ns, 44);
    CHECK_EQ(merged->basis.covered_ns, 35);
    kiln_merged_free(merged);
    kit_done(&kit);
}

static uint64_t covered_where(struct store_kit *kit, const char *name, const char *value)
{
    struct kiln_question q = kiln_test_question();
    struct kiln_matcher m = {.name = kiln_str_of(name), .value = kiln_str_of(value)};
    struct kiln_merged *merged;
    uint64_t covered;

    q.matchers = &m;
    q.n_matchers = 1;
    merged = merge(kit, &q, &tree);
    covered = merged->basis.covered_ns;
    kiln_merged_free(merged);
    return covered;
}

TEST(answers, a_thread_at_rest_covers_time_and_another_version_does_not)
{
    struct store_kit kit;

    BEGIN(&kit, {CPU, .stacks = "a 5 thread=gc\n", .time_ns = 10, .duration_ns = 10, SHOP},
          {CPU, .stacks = "a 5\n", .time_ns = 30, .duration_ns = 10, SHOP},
          {CPU, .stacks = "a 5\n", .time_ns = 50, .duration_ns = 10,
           .resource = "service.name=shop,service.version=1"},
          {CPU, .stacks = "a 5\n", .time_ns = 70, .duration_ns = 5,
           .resource = "service.name=shop,service.version=2"});
    CHECK_EQ(covered_where(&kit, "thread", "gc"), 35);
    CHECK_EQ(covered_where(&kit, "service.version", "1"), 10);
    CHECK_EQ(covered_where(&kit, "service.version", ""), 20);
    kit_done(&kit);
}

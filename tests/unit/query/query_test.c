/* SPDX-License-Identifier: Apache-2.0 */
#include "query/query.h"

#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/regex.h"
#include "fake_engine.h"
#include "test.h"

#define CPU   "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define INUSE "memory:inuse_space:bytes:space:bytes"

/* Types of two services; a second kind of CPU time came later, to "odd". */
static const struct kiln_fake_label there[] = {
    {{CPU, "shop"}, 100, 200, 1},
    {{INUSE, "shop"}, 100, 200, 1},
    {{"process_cpu:cpu:nanoseconds:wall:nanoseconds", "odd"}, 300, 400, 1},
};

struct kit {
    struct kiln_fake fake;
    struct kiln_metrics *metrics;
    struct kiln_querier *querier;
    struct kiln_err err;
    struct kiln_str selector;
};

static void set_up(struct kit *kit, struct kiln_query_limits limits)
{
    struct kiln_querier_opts opts = {.limits = limits};

    *kit = (struct kit){0};
    kiln_fake_init(&kit->fake);
    kit->fake.label_names[0] = "__profile_type__";
    kit->fake.label_names[1] = "service_name";
    kit->fake.labels = there;
    kit->fake.n_labels = KILN_ARRAY_LEN(there);
    CHECK_OK(kiln_metrics_new(&kit->metrics));
    opts.engine = &kit->fake.engine;
    opts.metrics = kit->metrics;
    CHECK_OK(kiln_querier_new(&opts, &kit->querier));
}

static void tear_down(struct kit *kit)
{
    kiln_querier_free(kit->querier);
    kiln_metrics_free(kit->metrics);
}

/* Opens a query of one selector; the code. */
static int open_ask(struct kit *kit, const char *selector, struct kiln_query query,
                    struct kiln_ask **ret_ask)
{
    kit->err = (struct kiln_err){0};
    kit->selector = kiln_str_of(selector);
    query.selectors = &kit->selector;
    query.n_selectors = 1;
    return kiln_ask_open(kit->querier, &query, ret_ask, &kit->err);
}

/* The type that a selector comes down to, or the error; lives until the next call. */
static const char *type_of(struct kit *kit, const char *selector, struct kiln_query query)
{
    static char text[512];
    struct kiln_ask *ask = NULL;
    int r = open_ask(kit, selector, query, &ask);

    if (r < 0)
        snprintf(text, sizeof(text), "%s", kit->err.text);
    else
        snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(ask->question.type));
    kiln_ask_close(ask);
    return text;
}

static double counted(struct kit *kit, const char *outcome)
{
    return kiln_metric_value(kiln_metric_get(kit->metrics, KILN_COUNTER, "kiln_queries_total", "",
                                             KILN_LABELS("outcome", outcome)));
}

TEST(query, a_five_part_type_is_taken_as_it_is)
{
    struct kit kit;

    set_up(&kit, (struct kiln_query_limits){0});
    CHECK_TEXT(type_of(&kit, "a:b:c:d:e{}", (struct kiln_query){0}), "a:b:c:d:e");
    CHECK_TEXT(type_of(&kit, "a:b:c:d:e:delta", (struct kiln_query){0}), "a:b:c:d:e");
    CHECK_TEXT(
        type_of(&kit, "{}", (struct kiln_query){.type = KILN_STR("threads:threads:count::")}),
        "threads:threads:count::");
    CHECK_EQ(kit.fake.n_labels_asked, 0);
    tear_down(&kit);
}

TEST(query, three_parts_are_resolved_among_the_types_of_the_services_in_question)
{
    struct kit kit;

    set_up(&kit, (struct kiln_query_limits){0});
    CHECK_TEXT(
        type_of(&kit, "process_cpu:cpu:nanoseconds{service_name=\"shop\"}", (struct kiln_query){0}),
        CPU);
    CHECK_TEXT(type_of(&kit, "cpu{}", (struct kiln_query){.start_ns = 1, .end_ns = 300}), CPU);
    CHECK_TEXT(
        type_of(&kit, "{__profile_type__=\"memory:inuse_space:bytes\"}", (struct kiln_query){0}),
        INUSE);
    tear_down(&kit);
}

TEST(query, a_type_that_fits_none_or_several_is_an_error_that_lists_them)
{
    struct kit kit;

    set_up(&kit, (struct kiln_query_limits){0});
    CHECK_TEXT(type_of(&kit, "process_cpu:cpu:nanoseconds{}", (struct kiln_query){0}),
               "process_cpu:cpu:nanoseconds fits 2 types: " CPU
               ", process_cpu:cpu:nanoseconds:wall:nanoseconds");
    CHECK_EQ(kit.err.code, KILN_E_AMBIGUOUS);
    CHECK_TEXT(
        type_of(&kit, "wall:wall:nanoseconds{service_name=\"shop\"}", (struct kiln_query){0}),
        "no type is wall:wall:nanoseconds; there are " CPU ", " INUSE);
    CHECK_EQ(kit.err.code, KILN_E_NOMATCH);
    CHECK_TEXT(type_of(&kit, "cpu", (struct kiln_query){.start_ns = 900, .end_ns = 901}),
               "no profiles are chosen in this time range");
    CHECK_EQ(kit.err.code, -ENOENT);
    CHECK_TEXT(type_of(&kit, "a:b:c:d", (struct kiln_query){0}),
               "a:b:c:d is no profile type: one is like " CPU);
    CHECK_EQ(kit.err.code, KILN_E_MALFORMED);
    CHECK_TEXT(
        type_of(&kit, "cpu{service_name=\"shop\"}", (struct kiln_query){.type = KILN_STR(INUSE)}),
        "two types are said: " INUSE " and cpu");
    CHECK_EQ(counted(&kit, "refused"), 5);
    tear_down(&kit);
}

/* ---- types made of others ---- */

#define OFF   "off_cpu:off_cpu:nanoseconds::"
#define WALL  "wall:wall:nanoseconds:wall:nanoseconds"
#define PARTS "process_cpu:cpu:nanoseconds off_cpu:off_cpu:nanoseconds "

/* Of "shop" both parts came, of "java" the whole too, of "idle" one part, and later the other. */
static const struct kiln_fake_label waiting[] = {
    {{CPU, "idle"}, 300, 400, 1},  {{OFF, "idle"}, 100, 200, 1},  {{CPU, "java"}, 100, 200, 1},
    {{OFF, "java"}, 100, 200, 1},  {{WALL, "java"}, 100, 200, 1}, {{CPU, "shop"}, 100, 200, 2},
    {{OFF, "shop"}, 150, 250, 30},
};

static void set_up_waiting(struct kit *kit)
{
    set_up(kit, (struct kiln_query_limits){0});
    kit->fake.labels = waiting;
    kit->fake.n_labels = KILN_ARRAY_LEN(waiting);
}

/* What the question of a selector is about: its parts, then the services it is itself of. */
static const char *parts_of(struct kit *kit, const char *selector)
{
    static char text[512];
    struct kiln_ask *ask = NULL;
    int n = 0;

    CHECK_OK(open_ask(kit, selector, (struct kiln_query){0}, &ask));
    text[0] = '\0';
    for (uint32_t i = 0; i < ask->question.n_parts; i++)
        n += snprintf(text + n, sizeof(text) - n, "%.*s ", KILN_STR_ARG(ask->question.parts[i]));
    for (uint32_t i = 0; i < ask->question.n_whole; i++)
        n += snprintf(text + n, sizeof(text) - n, "%.*s ", KILN_STR_ARG(ask->question.whole[i]));
    kiln_ask_close(ask);
    return text;
}

TEST(query, wall_time_is_asked_of_its_parts_but_where_a_service_has_it)
{
    struct kit kit;

    set_up_waiting(&kit);
    CHECK_TEXT(type_of(&kit, "wall{service_name=\"shop\"}", (struct kiln_query){0}), WALL);
    CHECK_TEXT(parts_of(&kit, "wall{service_name=\"shop\"}"), PARTS);
    CHECK_TEXT(parts_of(&kit, WALL "{service_name=\"shop\"}"), PARTS);
    CHECK_TEXT(parts_of(&kit, "{__profile_type__=\"wall:wall:nanoseconds\"}"), PARTS "java ");
    CHECK_TEXT(parts_of(&kit, CPU "{}"), "");
    tear_down(&kit);
}

TEST(query, a_service_with_one_part_now_and_the_other_later_has_wall_time)
{
    const struct kiln_query now = {.start_ns = 100, .end_ns = 200};
    struct kit kit;

    set_up_waiting(&kit);
    CHECK_TEXT(type_of(&kit, "wall{service_name=\"idle\"}", now), WALL);
    tear_down(&kit);
}

/* What labels are told of a selector, a line each. */
static const char *labels_of(struct kit *kit, const char *selector)
{
    const struct kiln_str names[] = {KILN_STR("service_name"), KILN_STR("__profile_type__")};
    static char text[1024];
    struct kiln_labels *labels = NULL;
    struct kiln_ask *ask = NULL;
    int n = 0;

    CHECK_OK(open_ask(kit, selector, (struct kiln_query){.end_ns = 260}, &ask));
    CHECK_OK(kiln_ask_labels(ask, names, 2, &labels, &kit->err));
    text[0] = '\0';
    for (uint32_t i = 0; i < labels->n_rows; i++) {
        const struct kiln_label_row *row = &labels->rows[i];

        n += snprintf(text + n, sizeof(text) - n, "%.*s %.*s %d-%d %d\n",
                      KILN_STR_ARG(row->values[0]), KILN_STR_ARG(row->values[1]), (int)row->min_ns,
                      (int)row->max_ns, (int)row->n_profiles);
    }
    kiln_labels_free(labels);
    kiln_ask_close(ask);
    return text;
}

TEST(query, wall_time_is_listed_where_both_its_parts_are)
{
    struct kit kit;

    set_up_waiting(&kit);
    CHECK_TEXT(labels_of(&kit, "{}"), "idle " OFF " 100-200 1\n"
                                      "java " OFF " 100-200 1\n"
                                      "java " CPU " 100-200 1\n"
                                      "java " WALL " 100-200 1\n"
                                      "shop " OFF " 150-250 30\n"
                                      "shop " CPU " 100-200 2\n"
                                      "shop " WALL " 100-250 32\n");
    tear_down(&kit);
}

TEST(query, who_asks_for_the_labels_of_wall_time_is_told_no_parts)
{
    struct kit kit;

    set_up_waiting(&kit);
    CHECK_TEXT(labels_of(&kit, WALL "{}"), "idle " WALL " 100-200 1\n"
                                           "java " WALL " 100-200 1\n"
                                           "shop " WALL " 100-250 32\n");
    tear_down(&kit);
}

TEST(query, where_a_type_is_needed_the_only_one_there_is_will_do)
{
    struct kit kit;

    set_up(&kit, (struct kiln_query_limits){0});
    CHECK_TEXT(type_of(&kit, "{service_name=\"odd\"}", (struct kiln_query){.needs_type = true}),
               "process_cpu:cpu:nanoseconds:wall:nanoseconds");
    CHECK_TEXT(type_of(&kit, "{service_name=\"shop\"}", (struct kiln_query){.needs_type = true}),
               "a type must be said, for there are 2: " CPU ", " INUSE);
    CHECK_TEXT(type_of(&kit, "{service_name=\"shop\"}", (struct kiln_query){0}), "");
    tear_down(&kit);
}

TEST(query, a_matcher_that_says_the_type_is_no_matcher_any_more)
{
    struct kit kit;
    struct kiln_ask *ask;

    set_up(&kit, (struct kiln_query_limits){0});
    CHECK_OK(open_ask(&kit, "{__profile_type__=\"" CPU "\", a=\"b\", __profile_type__!=\"x\"}",
                      (struct kiln_query){0}, &ask));
    CHECK_EQ(ask->question.n_matchers, 2);
    CHECK_STR(ask->question.matchers[0].name, "a");
    CHECK_STR(ask->type.name, "process_cpu");
    kiln_ask_close(ask);
    CHECK_OK(open_ask(&kit, "{__profile_type__=\"" INUSE "\"}",
                      (struct kiln_query){.type = KILN_STR(CPU)}, &ask));
    CHECK_EQ(ask->question.n_matchers, 1); /* both must hold: nothing will be found */
    kiln_ask_close(ask);
    tear_down(&kit);
}

TEST(query, levels_are_averaged_unless_sums_are_asked_for)
{
    struct kit kit;
    struct kiln_ask *ask;

    set_up(&kit, (struct kiln_query_limits){0});
    CHECK_OK(open_ask(&kit, INUSE, (struct kiln_query){0}, &ask));
    CHECK(ask->question.average);
    kiln_ask_close(ask);
    CHECK_OK(open_ask(&kit, INUSE, (struct kiln_query){.sum_levels = true}, &ask));
    CHECK(!ask->question.average);
    kiln_ask_close(ask);
    CHECK_OK(open_ask(&kit, CPU, (struct kiln_query){0}, &ask));
    CHECK(!ask->question.average);
    kiln_ask_close(ask);
    tear_down(&kit);
}

TEST(query, tenants_are_split_and_told_once)
{
    struct kit kit;
    struct kiln_ask *ask;

    set_up(&kit, (struct kiln_query_limits){0});
    CHECK_OK(open_ask(&kit, "", (struct kiln_query){.tenants = KILN_STR("a|b|a")}, &ask));
    CHECK_EQ(ask->question.n_tenants, 2);
    CHECK_STR(ask->question.tenants[0], "a");
    CHECK_STR(ask->question.tenants[1], "b");
    kiln_ask_close(ask);
    CHECK_OK(open_ask(&kit, "", (struct kiln_query){0}, &ask));
    CHECK_EQ(ask->question.n_tenants, 1);
    kiln_ask_close(ask);
    CHECK_EQ(open_ask(&kit, "", (struct kiln_query){.tenants = KILN_STR("a||b")}, &ask),
             KILN_E_MALFORMED);
    tear_down(&kit);
}

TEST(query, windows_are_sorted_and_joined)
{
    static const struct kiln_window windows[] = {{50, 60}, {10, 20}, {15, 30}, {30, 31}, {52, 55}};
    struct kit kit;
    struct kiln_ask *ask;

    set_up(&kit, (struct kiln_query_limits){0});
    CHECK_OK(open_ask(&kit, "", (struct kiln_query){.windows = windows, .n_windows = 5}, &ask));
    CHECK_EQ(ask->question.n_windows, 2);
    CHECK_EQ(ask->question.windows[0].start_ns, 10);
    CHECK_EQ(ask->question.windows[0].end_ns, 31);
    CHECK_EQ(ask->question.windows[1].start_ns, 50);
    CHECK_EQ(ask->question.windows[1].end_ns, 60);
    kiln_ask_close(ask);
    CHECK_OK(open_ask(&kit, "", (struct kiln_query){0}, &ask));
    CHECK_EQ(ask->question.n_windows, 0);
    kiln_ask_close(ask);
    tear_down(&kit);
}

TEST(query, a_range_that_is_turned_around_or_too_long_is_refused)
{
    struct kit kit;
    struct kiln_ask *ask;

    set_up(&kit, (struct kiln_query_limits){.range_ns = 3600 * KILN_NS_PER_S});
    CHECK_EQ(open_ask(&kit, "", (struct kiln_query){.start_ns = KILN_NS_PER_S, .end_ns = 5}, &ask),
             KILN_E_RANGE);
    CHECK_TEXT(kit.err.text, "the end of the time range, 1970-01-01T00:00:00.000000005Z is before "
                             "1970-01-01T00:00:01Z, its start");
    CHECK_EQ(open_ask(&kit, "", (struct kiln_query){.start_ns = 1, .end_ns = 7200 * KILN_NS_PER_S},
                      &ask),
             KILN_E_LIMIT);
    CHECK_TEXT(kit.err.text, "a time range of 2.0 h is more than the 1.0 h that may be asked for");
    CHECK_EQ(open_ask(&kit, "", (struct kiln_query){0}, &ask), KILN_E_LIMIT);
    CHECK_EQ(counted(&kit, "limited"), 2);
    tear_down(&kit);
}

TEST(query, the_leash_is_as_long_as_limits_and_client_say)
{
    struct kit kit;
    struct kiln_ask *ask;
    _Atomic bool gone = false;
    uint64_t before = kiln_clock_mono_ns();

    set_up(&kit, (struct kiln_query_limits){.time_ms = 1000, .bytes = 77, .memory_bytes = 99});
    CHECK_OK(open_ask(&kit, "", (struct kiln_query){.timeout_ms = 10, .gone = &gone}, &ask));
    CHECK(ask->question.leash == &ask->leash);
    CHECK(ask->leash.deadline_mono_ns >= before + 10 * KILN_NS_PER_MS);
    CHECK_EQ(ask->leash.deadline_mono_ns - ask->began_mono_ns, 10 * KILN_NS_PER_MS);
    CHECK_EQ(ask->leash.bytes_max, 77);
    CHECK_EQ(ask->leash.memory_max, 99);
    CHECK(ask->leash.gone == &gone);
    kiln_ask_close(ask);
    CHECK_OK(open_ask(&kit, "", (struct kiln_query){.timeout_ms = 5000}, &ask));
    CHECK_EQ(ask->leash.deadline_mono_ns - ask->began_mono_ns, 1000 * KILN_NS_PER_MS);
    kiln_ask_close(ask);
    CHECK_EQ(kiln_querier_limits(kit.querier)->nodes_max, 1048576);
    tear_down(&kit);
}

TEST(query, what_the_engine_says_is_told_in_words_and_counted)
{
    static const struct {
        int code;
        const char *outcome, *text;
    } cases[] = {
        {-ETIMEDOUT, "timeout",
         "the answer takes longer than 60 s: ask for less time or fewer series"},
        {-ECANCELED, "canceled", "nobody waits for the answer any more"},
        {KILN_E_LIMIT, "limited",
         "the question needs more than a question may take: ask for less time or fewer series"},
        {-EIO, "failed", "Input/output error"},
    };
    const struct kiln_merge_wants wants = {.functions = true};
    struct kiln_merged *merged = NULL;
    struct kiln_ask *ask;
    struct kit kit;

    set_up(&kit, (struct kiln_query_limits){0});
    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        kit.fake.code = cases[i].code;
        CHECK_OK(open_ask(&kit, "", (struct kiln_query){0}, &ask));
        CHECK_EQ(kiln_ask_merge(ask, &wants, &merged, &kit.err), cases[i].code);
        CHECK_TEXT(kit.err.text, cases[i].text);
        kiln_ask_close(ask);
        CHECK_EQ(counted(&kit, cases[i].outcome), 1);
    }
    kit.fake.code = 0;
    CHECK_OK(open_ask(&kit, "", (struct kiln_query){0}, &ask));
    CHECK_OK(kiln_ask_merge(ask, &wants, &merged, &kit.err));
    kiln_ask_close(ask);
    CHECK_EQ(counted(&kit, "answered"), 1);
    tear_down(&kit);
}

TEST(query, an_expression_that_gave_up_makes_an_error_of_the_answer)
{
    char evil[64];
    struct kit kit;
    struct kiln_ask *ask;
    struct kiln_merged *merged = NULL;
    const struct kiln_merge_wants wants = {.functions = true};

    memset(evil, 'a', sizeof(evil));
    memcpy(evil + 60, "!b!b", 4);
    set_up(&kit, (struct kiln_query_limits){0});
    CHECK_OK(open_ask(&kit, "{a=~\"(a*)*(a*)*(a*)*b\"}", (struct kiln_query){0}, &ask));
    CHECK(kiln_regex_matches(ask->question.matchers[0].regex,
                             (struct kiln_str){evil, sizeof(evil)}) < 0);
    CHECK_EQ(kiln_ask_merge(ask, &wants, &merged, &kit.err), KILN_E_LIMIT);
    CHECK_TEXT(kit.err.text, "the expression (a*)*(a*)*(a*)*b takes too many steps to match");
    kiln_ask_close(ask);
    CHECK_EQ(counted(&kit, "limited"), 1);
    tear_down(&kit);
}

TEST(query, no_memory_is_an_ordinary_error)
{
    static const struct kiln_window windows[] = {{1, 2}, {4, 5}};
    const struct kiln_str selectors[] = {KILN_STR("a:b:c:d:e{x=~\"y\", z=\"z\"}")};
    const struct kiln_query query = {.tenants = KILN_STR("a|b"),
                                     .selectors = selectors,
                                     .n_selectors = 1,
                                     .windows = windows,
                                     .n_windows = 2};
    struct kit kit;
    int64_t live;
    int r = -1;

    set_up(&kit, (struct kiln_query_limits){0});
    live = kiln_mem_live();
    for (uint64_t n = 1; r < 0; n++) {
        struct kiln_ask *ask = NULL;

        kiln_mem_fail_at(n);
        r = kiln_ask_open(kit.querier, &query, &ask, NULL);
        kiln_mem_fail_at(0);
        kiln_ask_close(ask);
        CHECK_EQ(kiln_mem_live(), live);
        CHECK(n < 1000);
    }
    tear_down(&kit);
}

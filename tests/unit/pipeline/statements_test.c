/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/processors/statements.h"

#include "base/buf.h"
#include "base/mem.h"
#include "codec/otlp_check.h"
#include "collector/processors/statements.h"
#include "core/pick.h"
#include "drawn.h"
#include "random_batch.h"
#include "resolve.h"
#include "test.h"

static struct kiln_batch *two_services(void)
{
    static const struct kiln_drawn profiles[] = {
        {.resource = "service.name=shop", .type = "cpu", .stacks = "main;a 1 thread=x\nmain;b 2\n"},
        {.type = "wall", .stacks = "main;c 3 thread=idle\n"},
        {.resource = "service.name=noise", .type = "cpu", .stacks = "main;d 4\n"},
    };

    return kiln_test_batch(profiles, 3);
}

/* Counts what OTLP's rules forbid in a batch as it is sent: duplicates and orphans too. */
static uint64_t mistakes(const struct kiln_batch *batch)
{
    const struct kiln_check_opts opts = {.dupes = true, .orphans = true};
    struct kiln_check *check;
    struct kiln_buf out;
    uint64_t n;

    kiln_buf_init(&out, 1 << 24);
    CHECK_OK(kiln_otlp_encode(batch, NULL, &out, NULL));
    CHECK_OK(kiln_otlp_check(kiln_buf_str(&out), &opts, &check, NULL));
    n = check->n_errors;
    kiln_check_free(check);
    kiln_buf_done(&out);
    return n;
}

typedef int (*change_fn)(void *, struct kiln_batch **, struct kiln_err *);

/* What becomes of two services: "resources profiles samples", or the error. */
static const char *becomes(const char *yaml, change_fn change, enum kiln_error_mode mode,
                           struct kiln_batch **ret_batch)
{
    static char text[400];
    bool conditions = change == kiln_statements_filter;
    struct kiln_statements statements = {.mode = mode};
    struct kiln_batch *batch = two_services(), *before = batch;
    uint32_t n_samples = batch->n_samples;
    struct kiln_metrics *metrics;
    struct kiln_config *config;
    struct kiln_err err = {0};
    int r;

    CHECK_OK(kiln_metrics_new(&metrics));
    statements.filtered = kiln_metric_get(metrics, KILN_COUNTER, "filtered", "", NULL);

    CHECK_OK(kiln_config_parse_plain(kiln_str_of(yaml), &config, &err));
    if (kiln_statements_read(kiln_config_root(config), conditions, KILN_OTTL_CONTEXTS, &statements,
                             &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
    r = change(&statements, &batch, &err);
    if (r < 0) {
        snprintf(text, sizeof(text), "%s", err.text);
    } else {
        CHECK(r == 1 || batch == before);
        check_invariants(batch);
        CHECK_EQ(kiln_metric_value(statements.filtered), n_samples - batch->n_samples);
        snprintf(text, sizeof(text), "%u %u %u", batch->n_resources, batch->n_profiles,
                 batch->n_samples);
    }
    kiln_statements_done(&statements);
    kiln_metrics_free(metrics);
    kiln_config_free(config);
    if (ret_batch)
        *ret_batch = batch;
    else
        kiln_batch_unref(batch);
    return text;
}

static const char *filtered(const char *yaml)
{
    struct kiln_batch *batch;
    const char *text = becomes(yaml, kiln_statements_filter, KILN_ERROR_PROPAGATE, &batch);

    check_no_orphans(batch);
    kiln_batch_unref(batch);
    CHECK_EQ(kiln_mem_live(), 0);
    return text;
}

TEST(filter, drops_what_a_condition_holds_for_with_all_that_is_in_it)
{
    CHECK_TEXT(filtered("[]"), "2 3 4");
    CHECK_TEXT(filtered("['resource.attributes[\"service.name\"] == \"noise\"']"), "1 2 3");
    CHECK_TEXT(filtered("['profile.sample_type.type == \"wall\"']"), "2 2 3");
    CHECK_TEXT(filtered("['profile.sample_type.type == \"cpu\"']"), "1 1 1");
    CHECK_TEXT(filtered("['sample.attributes[\"thread\"] == \"x\"']"), "2 3 3");
    CHECK_TEXT(filtered("['sample.attributes[\"thread\"] == \"idle\"']"), "2 2 3");
    CHECK_TEXT(filtered("['scope.name == \"none\"', 'sample.values[0] > 2']"), "1 1 2");
    CHECK_TEXT(filtered("['sample.values[0] > 0']"), "0 0 0");
    CHECK_TEXT(filtered("[{context: sample, conditions: ['attributes[\"thread\"] != nil']}]"),
               "2 2 2");
}

TEST(filter, what_cannot_be_told_is_an_error_or_ignored)
{
    const char *yaml = "['SHA256(resource.attributes[\"none\"]) == \"x\"']";

    CHECK_TEXT(becomes(yaml, kiln_statements_filter, KILN_ERROR_PROPAGATE, NULL),
               "a text is needed, this is something else");
    CHECK_TEXT(becomes(yaml, kiln_statements_filter, KILN_ERROR_IGNORE, NULL), "2 3 4");
    CHECK_TEXT(becomes(yaml, kiln_statements_filter, KILN_ERROR_SILENT, NULL), "2 3 4");
    CHECK_EQ(kiln_mem_live(), 0);
}

static struct kiln_batch *transformed(const char *yaml)
{
    struct kiln_batch *batch;

    becomes(yaml, kiln_statements_transform, KILN_ERROR_PROPAGATE, &batch);
    return batch;
}

TEST(transform, statements_run_on_all_that_they_are_for)
{
    struct kiln_batch *batch =
        transformed("- set(resource.attributes[\"env\"], \"prod\")\n"
                    "- {context: sample, conditions: ['attributes[\"thread\"] == \"idle\"', "
                    "'values[0] == 4'],\n"
                    "   statements: ['delete_key(attributes, \"thread\")', "
                    "'set(attributes[\"seen\"], true)']}\n"
                    "- set(profile.attributes[\"type\"], profile.sample_type.type) where "
                    "profile.sample_type.type == \"wall\"\n");
    uint32_t seen = 0, typed = 0;

    for (uint32_t i = 0; i < batch->n_resources; i++)
        CHECK_STR(kiln_set_text(batch, batch->resources[i].attrs, KILN_STR("env")), "prod");
    for (uint32_t i = 0; i < batch->n_samples; i++) {
        seen += kiln_set_find(batch, batch->samples[i].attrs, KILN_STR("seen")) != NULL;
        CHECK(!kiln_str_eq(kiln_set_text(batch, batch->samples[i].attrs, KILN_STR("thread")),
                           KILN_STR("idle")));
    }
    for (uint32_t i = 0; i < batch->n_profiles; i++)
        typed += kiln_set_find(batch, batch->profiles[i].attrs, KILN_STR("type")) != NULL;
    CHECK_EQ(seen, 2); /* guards are asked once, before the first statement of their group */
    CHECK_EQ(typed, 1);
    kiln_batch_unref(batch);
    CHECK_EQ(kiln_mem_live(), 0);
}

/* As in the Collector: texts in a row are a group, and one item has all of them before the next. */
TEST(transform, statements_that_stand_together_share_a_cache)
{
    struct kiln_batch *batch =
        transformed("- set(profile.cache[\"type\"], profile.sample_type.type)\n"
                    "- set(resource.attributes[\"last\"], profile.cache[\"type\"])\n"
                    "- set(profile.attributes[\"mine\"], resource.attributes[\"last\"])\n"
                    "- {context: profile, statements: ['set(attributes[\"left\"], "
                    "cache[\"type\"])']}\n");

    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        const struct kiln_profile *profile = &batch->profiles[i];
        struct kiln_str type = kiln_batch_str(batch, profile->sample_type.type);

        CHECK(kiln_str_eq(kiln_set_text(batch, profile->attrs, KILN_STR("mine")), type));
        CHECK(!kiln_set_find(batch, profile->attrs, KILN_STR("left")));
    }
    CHECK_EQ(mistakes(batch), 0);
    kiln_batch_unref(batch);
    CHECK_EQ(kiln_mem_live(), 0);
}

/* Longer, shorter and of another shape: what is sent is still sound. */
TEST(transform, observations_may_be_replaced)
{
    struct kiln_batch *batch =
        transformed("- set(sample.values, [sample.values[0] * 10])\n"
                    "- set(sample.timestamps_unix_nano, [profile.time_unix_nano])\n");
    int64_t total = 0;

    for (uint32_t i = 0; i < batch->n_samples; i++) {
        CHECK(batch->samples[i].has_times);
        total += kiln_sample_total(batch, &batch->samples[i]);
    }
    CHECK_EQ(total, 100);
    CHECK_EQ(mistakes(batch), 0);
    kiln_batch_unref(batch);
    CHECK_EQ(kiln_mem_live(), 0);
}

/* Conditions of samples beside statements of resources: every sample is asked. */
TEST(transform, conditions_of_a_group_are_asked_where_they_belong)
{
    struct kiln_batch *batch =
        transformed("- conditions: ['sample.attributes[\"thread\"] == \"idle\"']\n"
                    "  statements: ['set(resource.attributes[\"lazy\"], true)', "
                    "'set(profile.period, 7)']\n");

    CHECK(kiln_set_find(batch, batch->resources[0].attrs, KILN_STR("lazy")));
    CHECK(!kiln_set_find(batch, batch->resources[1].attrs, KILN_STR("lazy")));
    CHECK_EQ(batch->profiles[1].period, 7);
    CHECK(batch->profiles[0].period != 7 && batch->profiles[2].period != 7);
    kiln_batch_unref(batch);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(transform, a_group_has_an_error_mode_of_its_own)
{
    static const char fails[] = "'set(profile.period, \"x\")'";
    char yaml[200];

    snprintf(yaml, sizeof(yaml), "[{error_mode: silent, statements: [%s]}]", fails);
    CHECK_TEXT(becomes(yaml, kiln_statements_transform, KILN_ERROR_PROPAGATE, NULL), "2 3 4");
    snprintf(yaml, sizeof(yaml), "[{error_mode: silent, statements: [%s]}, %s]", fails, fails);
    CHECK_TEXT(becomes(yaml, kiln_statements_transform, KILN_ERROR_PROPAGATE, NULL),
               "a number belongs into this field");
    snprintf(yaml, sizeof(yaml), "[{error_mode: propagate, statements: [%s]}]", fails);
    CHECK_TEXT(becomes(yaml, kiln_statements_transform, KILN_ERROR_IGNORE, NULL),
               "a number belongs into this field");
    CHECK_TEXT(becomes("[{error_mode: propagate, conditions: "
                       "['SHA256(resource.attributes[\"none\"]) == \"x\"']}]",
                       kiln_statements_filter, KILN_ERROR_IGNORE, NULL),
               "a text is needed, this is something else");
    CHECK_EQ(kiln_mem_live(), 0);
}

/* As in the Collector: what cannot be run is logged, and the sender is not told to drop it. */
TEST(statements, failures_are_ignored_where_nothing_is_said)
{
    struct kiln_statements statements = {0};

    CHECK_EQ(statements.mode, KILN_ERROR_IGNORE);
    CHECK_OK(kiln_error_mode_read(NULL, &statements.mode, NULL));
    CHECK_EQ(statements.mode, KILN_ERROR_IGNORE);
}

TEST(transform, a_failure_refuses_all_or_is_ignored)
{
    const char *yaml = "['set(profile.period, \"x\")', 'set(scope.name, \"y\")']";
    struct kiln_batch *batch;

    CHECK_TEXT(becomes(yaml, kiln_statements_transform, KILN_ERROR_PROPAGATE, NULL),
               "a number belongs into this field");
    becomes(yaml, kiln_statements_transform, KILN_ERROR_IGNORE, &batch);
    CHECK_STR(kiln_batch_str(batch, batch->scopes[0].name), "y");
    kiln_batch_unref(batch);
    CHECK_EQ(kiln_mem_live(), 0);
}

/* Statement 75: deleting and renaming leave a dictionary that keeps the rules. */
TEST(transform, what_is_sent_has_no_orphans_and_no_duplicates)
{
    static const char yaml[] =
        "- delete_matching_keys(resource.attributes, \".*\")\n"
        "- replace_all_patterns(sample.attributes, \"key\", \"^(.)\", \"x$1\")\n"
        "- keep_keys(profile.attributes, [\"none\"])\n"
        "- set(sample.attributes[\"new\"], \"value\") where Len(sample.values) > 0\n";
    struct kiln_statements statements = {0};
    struct kiln_config *config;
    struct kiln_err err = {0};
    uint32_t clean = 0;

    CHECK_OK(kiln_config_parse_plain(kiln_str_of(yaml), &config, &err));
    CHECK_OK(kiln_statements_read(kiln_config_root(config), false, KILN_OTTL_CONTEXTS, &statements,
                                  &err));
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct kiln_batch *batch = random_batch(&(struct random_opts){.seed = seed});
        uint64_t before = mistakes(batch);

        CHECK_EQ(kiln_statements_transform(&statements, &batch, &err), 1);
        check_invariants(batch);
        CHECK(mistakes(batch) <= before);
        clean += before == 0;
        kiln_batch_unref(batch);
    }
    CHECK(clean > 0);
    kiln_statements_done(&statements);
    kiln_config_free(config);
}

/* Of batches made of dice: what stays says what it said. */
TEST(pick, what_is_not_dropped_stays_as_it_was)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct random_opts opts = {.seed = seed, .orphans = seed & 1};
        struct kiln_batch *batch = random_batch(&opts), *parts[2];
        uint8_t none[1000] = {0}, odd[2][1000];
        struct resolved both = {0};
        char *a, *b;

        CHECK(batch->n_samples < 1000 && batch->n_profiles < 1000);
        for (uint32_t i = 0; i < 1000; i++)
            odd[0][i] = !(odd[1][i] = i & 1);
        for (int i = 0; i < 2; i++) {
            CHECK_OK(kiln_pick(batch, none, odd[i], &parts[i], NULL));
            check_invariants(parts[i]);
            check_no_orphans(parts[i]);
        }
        CHECK_EQ(parts[0]->n_samples + parts[1]->n_samples, batch->n_samples);
        resolve_add(&both, parts[0], 0);
        resolve_add(&both, parts[1], 0);
        a = resolve_text(&both);
        b = resolve_batch(batch, 0);
        CHECK(strlen(a) >= strlen(b)); /* empty profiles are in both */
        kiln_free(a);
        kiln_free(b);
        kiln_batch_unref(parts[0]);
        kiln_batch_unref(parts[1]);
        kiln_batch_unref(batch);
    }
}

static void starve(const char *yaml, change_fn change)
{
    struct kiln_statements statements = {0};
    struct kiln_config *config;
    struct kiln_err err = {0};
    uint64_t n = 0;
    bool failed;

    CHECK_OK(kiln_config_parse_plain(kiln_str_of(yaml), &config, &err));
    CHECK_OK(kiln_statements_read(kiln_config_root(config), change == kiln_statements_filter,
                                  KILN_OTTL_CONTEXTS, &statements, &err));
    do {
        struct kiln_batch *batch = two_services(), *other = kiln_batch_ref(batch);
        struct kiln_err why = {0};
        int r;

        kiln_mem_fail_at(++n);
        r = change(&statements, &batch, &why);
        failed = kiln_mem_failed();
        kiln_mem_fail_at(0);
        CHECK(r == 1 || (failed && why.text[0]));
        kiln_batch_unref(batch);
        kiln_batch_unref(other);
    } while (failed);
    CHECK(n > 5);
    kiln_statements_done(&statements);
    kiln_config_free(config);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(statements, without_memory_are_refused)
{
    starve("['sample.values[0] > 2']", kiln_statements_filter);
    starve("['set(sample.attributes[\"a\"], Concat([profile.sample_type.type, 1], \"-\"))']",
           kiln_statements_transform);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/ottl/ottl.h"

#include <stdlib.h>

#include "base/mem.h"
#include "core/reopen.h"
#include "drawn.h"
#include "resolve.h"
#include "test.h"

static struct kiln_batch *drawn(void)
{
    static const struct kiln_drawn profile = {
        .resource = "service.name=shop,n=7",
        .scope = "kiln",
        .scope_attrs = "build=debug",
        .type = "cpu",
        .unit = "nanoseconds",
        .period_type = "cpu",
        .period_unit = "nanoseconds",
        .period = 50,
        .time_ns = 1000,
        .duration_ns = 10,
        .id = 5,
        .attrs = "kind=host",
        .stacks = "main;a 3 thread=main,n=1\nmain;b 5@100 6@200 thread=gc-1\n",
    };

    return kiln_test_batch(&profile, 1);
}

/* Whether a condition holds for the first sample: 1, 0, or below 0. */
static int holds(const char *text)
{
    struct kiln_batch *batch = drawn();
    struct kiln_ottl_item item = {.batch = batch};
    struct kiln_ottl *ottl;
    struct kiln_err err = {0};
    int r;

    if (kiln_ottl_condition(kiln_str_of(text), KILN_OTTL_SAMPLE, &ottl, &err) < 0)
        fail_msg("%s: %s: %s", text, err.where, err.text);
    r = kiln_ottl_holds(ottl, &item, &err);
    kiln_ottl_free(ottl);
    kiln_batch_unref(batch);
    CHECK_EQ(kiln_mem_live(), 0);
    return r;
}

#define TRUE(text)  CHECK_EQ(holds(text), 1)
#define FALSE(text) CHECK_EQ(holds(text), 0)

TEST(ottl, comparisons)
{
    TRUE("1 == 1");
    TRUE("1 == 1.0");
    TRUE("1 < 1.5 and 2 >= 2 and 2 <= 2 and 3 > -3");
    FALSE("1 != 1");
    TRUE("\"a\" < \"b\"");
    TRUE("true and not false");
    TRUE("0x6b69 == 0x6b69");
    FALSE("\"1\" == 1");
    TRUE("\"1\" != 1");
    FALSE("nil < 1");
    TRUE("nil == nil");
}

TEST(ottl, and_binds_more_than_or_and_not_more_than_both)
{
    TRUE("true or false and false");
    FALSE("(true or false) and false");
    FALSE("not true or false");
    TRUE("not (true and false)");
    TRUE("not not true");
}

TEST(ottl, paths_say_what_the_profile_says)
{
    TRUE("resource.attributes[\"service.name\"] == \"shop\"");
    TRUE("resource.attributes[\"n\"] == 7");
    TRUE("resource.attributes[\"none\"] == nil");
    TRUE("scope.name == \"kiln\" and instrumentation_scope.version == \"\"");
    TRUE("scope.attributes[\"build\"] == \"debug\"");
    TRUE("profile.sample_type.type == \"cpu\" and profile.sample_type.unit == \"nanoseconds\"");
    TRUE("profile.period_type.type == \"cpu\" and profile.period == 50");
    TRUE("profile.time_unix_nano == 1000 and profile.duration_unix_nano == 10");
    TRUE("profile.profile_id.string == \"00000000000000000000000000000005\"");
    TRUE("profile.profile_id == 0x00000000000000000000000000000005");
    TRUE("profile.attributes[\"kind\"] == \"host\"");
    TRUE("profile.dropped_attributes_count == 0 and profile.original_payload_format == \"\"");
    TRUE("attributes[\"thread\"] == \"main\"");
    TRUE("sample.values[0] == 3 and profilesample.values[1] == nil");
    TRUE("Len(sample.values) == 1 and Len(timestamps_unix_nano) == 0");
    TRUE("link_index == 0 and Len(attributes) == 2");
    TRUE("profile.time == Unix(0, 1000) and UnixNano(profile.time) == 1000");
    TRUE("profile.time < Now() and Len(profile.sample) == 2");
    TRUE("profile.sample_type == profile.period_type");
    TRUE("Len(sample.attribute_indices) == 2 and profile.attribute_indices[1] == nil");
    TRUE("Len(sample.timestamps) == 0 and Len(cache) == 0 and cache[\"a\"] == nil");
}

TEST(ottl, converters)
{
    TRUE("IsMatch(attributes[\"thread\"], \"^ma.n$\")");
    TRUE("IsMatch(attributes[\"n\"], \"^1$\") and IsMatch(true, \"^true$\")");
    TRUE("IsMatch(0.1, \"^0[.]1$\") and IsMatch(profile.profile_id, \"^0{31}5$\")");
    TRUE("IsMatch(sample.values, \"^.3.$\")");
    TRUE("String(sample.attributes) == \"{\\\"thread\\\":\\\"main\\\",\\\"n\\\":1}\"");
    FALSE("IsMatch(attributes[\"none\"], \".*\") or IsMatch(attributes[\"n\"], \"2\")");
    TRUE("IsString(attributes[\"thread\"]) and IsInt(attributes[\"n\"]) and IsMap(attributes)");
    FALSE("IsString(nil) or IsBool(1) or IsDouble(1) or IsList(1)");
    TRUE("Concat([attributes[\"thread\"], 1, true], \"-\") == \"main-1-true\"");
    TRUE("Concat([attributes[\"none\"], 1], \"-\") == \"<nil>-1\"");
    TRUE("SHA256(\"abc\") == "
         "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"");
    TRUE("ConvertCase(\"HttpServer\", \"snake\") == \"http_server\"");
    TRUE("ConvertCase(\"http_server\", \"camel\") == \"HttpServer\"");
    TRUE("ToUpperCase(\"ab\") == \"AB\" and ToLowerCase(\"AB\") == \"ab\"");
    TRUE("HasPrefix(\"kiln\", \"ki\") and HasSuffix(\"kiln\", \"ln\")");
    TRUE("Substring(\"kiln\", 1, 2) == \"il\"");
    TRUE("Int(\"42\") == 42 and Int(4.9) == 4 and Double(\"1.5\") == 1.5 and Int(\"x\") == nil");
    TRUE("String(42) == \"42\"");
    CHECK(holds("Substring(\"kiln\", 3, 2) == \"x\"") < 0);
    CHECK(holds("1 and true") < 0);
    CHECK(holds("SHA256(1) == 1") < 0);
}

/* The attributes of a set: k=v in the order of their keys, texts and numbers. */
static void put_set(char *to, size_t size, const char *owner, const struct kiln_batch *batch,
                    uint32_t set)
{
    static const char *const keys[] = {"a",       "build",        "kind", "n",
                                       "service", "service.name", "team", "thread"};

    snprintf(to + strlen(to), size - strlen(to), "%s", owner);
    for (size_t i = 0; i < KILN_ARRAY_LEN(keys); i++) {
        const struct kiln_attr *attr = kiln_set_find(batch, set, kiln_str_of(keys[i]));
        size_t at = strlen(to);

        if (attr && attr->value.kind == KILN_VALUE_STRING)
            snprintf(to + at, size - at, " %s=%.*s", keys[i],
                     KILN_STR_ARG(kiln_batch_str(batch, (uint32_t)attr->value.str)));
        else if (attr)
            snprintf(to + at, size - at, " %s=%lld", keys[i], (long long)attr->value.i);
    }
}

/* What a statement makes of the batch, run for the first of each: all attributes, and a few
 * fields. */
static const char *ran(const char *text)
{
    static char after[1024];
    struct kiln_batch *batch = drawn();
    struct kiln_ottl_item item = {0};
    struct kiln_ottl *ottl;
    struct kiln_err err = {0};

    if (kiln_ottl_statement(kiln_str_of(text), KILN_OTTL_CONTEXTS, &ottl, &err) < 0)
        fail_msg("%s: %s: %s", text, err.where, err.text);
    CHECK_OK(kiln_reopen(batch, &item.b, &err));
    item.batch = kiln_builder_peek(item.b);
    CHECK_OK(kiln_ottl_run(ottl, &item, &err));
    CHECK_OK(kiln_builder_finish(item.b, &batch, &err));
    check_invariants(batch);
    after[0] = '\0';
    put_set(after, sizeof(after), "resource", batch, batch->resources[0].attrs);
    put_set(after, sizeof(after), " scope", batch, batch->scopes[0].attrs);
    put_set(after, sizeof(after), " profile", batch, batch->profiles[0].attrs);
    put_set(after, sizeof(after), " sample", batch, batch->samples[0].attrs);
    snprintf(after + strlen(after), sizeof(after) - strlen(after), " name=%.*s period=%lld",
             KILN_STR_ARG(kiln_batch_str(batch, batch->scopes[0].name)),
             (long long)batch->profiles[0].period);
    kiln_ottl_free(ottl);
    kiln_batch_unref(batch);
    CHECK_EQ(kiln_mem_live(), 0);
    return after;
}

#define RAN(text, resource, scope, profile, sample)                                                \
    CHECK_TEXT(ran(text), "resource" resource " scope" scope " profile" profile " sample" sample   \
                          " name=kiln period=50")
#define R " n=7 service.name=shop"
#define S " build=debug"
#define P " kind=host"
#define M " n=1 thread=main"

TEST(ottl, set_changes_one_and_leaves_the_others)
{
    RAN("set(resource.attributes[\"team\"], \"pay\")", " n=7 service.name=shop team=pay", S, P, M);
    RAN("set(sample.attributes[\"n\"], 7)", R, S, P, " n=7 thread=main");
    RAN("set(profile.attributes[\"a\"], sample.attributes[\"n\"]) where sample.values[0] > 2", R, S,
        " a=1 kind=host", M);
    RAN("set(scope.attributes, profile.attributes)", R, " kind=host", P, M);
    RAN("set(resource.attributes[\"n\"], nil)", R, S, P, M);
    RAN("set(sample.attributes[\"n\"], 9) where sample.attributes[\"thread\"] == \"x\"", R, S, P,
        M);
}

TEST(ottl, set_changes_fields)
{
    CHECK(strstr(ran("set(scope.name, Concat([scope.name, \"x\"], \"\"))"), "name=kilnx"));
    CHECK(strstr(ran("set(profile.period, 99)"), "period=99"));
}

/* A statement, and a condition that holds behind it and not before; 0, or what the first returns.
 */
static int makes(const char *statement, const char *condition)
{
    struct kiln_ottl_item item = {0};
    struct kiln_ottl *change, *look;
    struct kiln_batch *batch = drawn();
    struct kiln_err err = {0};
    int r;

    CHECK_OK(kiln_ottl_statement(kiln_str_of(statement), KILN_OTTL_SAMPLE, &change, &err));
    CHECK_OK(kiln_ottl_condition(kiln_str_of(condition), KILN_OTTL_SAMPLE, &look, &err));
    CHECK_OK(kiln_reopen(batch, &item.b, &err));
    item.batch = kiln_builder_peek(item.b);
    CHECK_EQ(kiln_ottl_holds(look, &item, &err), 0);
    r = kiln_ottl_run(change, &item, &err);
    CHECK_EQ(kiln_ottl_holds(look, &item, &err), r == 0);
    CHECK_OK(kiln_builder_finish(item.b, &batch, &err));
    kiln_batch_unref(batch);
    kiln_ottl_free(change);
    kiln_ottl_free(look);
    CHECK_EQ(kiln_mem_live(), 0);
    return r;
}

TEST(ottl, fields_of_profiles_and_samples_are_written)
{
    static const char id[] = "profile.profile_id.string == \"00112233445566778899aabbccddeeff\"";

    CHECK_OK(makes("set(profile.profile_id, 0x00112233445566778899aabbccddeeff)", id));
    CHECK_OK(makes("set(profile.profile_id.string, \"00112233445566778899aabbccddeeff\")", id));
    CHECK_OK(makes("set(profile.profile_id, ProfileID(\"00112233445566778899aabbccddeeff\"))", id));
    CHECK_OK(makes("set(profile.profile_id, ProfileID(0x00112233445566778899aabbccddeeff))", id));
    CHECK(makes("set(profile.profile_id, ProfileID(\"0011\"))", id) < 0);
    CHECK(makes("set(profile.profile_id, 0x0011)", id) < 0);
    CHECK(makes("set(profile.profile_id.string, \"00000000000000000000000000000000\")", id) < 0);
    CHECK(makes("set(profile.profile_id.string, \"zz112233445566778899aabbccddeeff\")", id) < 0);
    CHECK_OK(makes("set(profile.duration, 77)", "profile.duration_unix_nano == 77"));
    CHECK_OK(makes("set(profile.original_payload, 0x6b69)", "profile.original_payload == 0x6b69"));
    CHECK(makes("set(profile.original_payload, \"ki\")", "Len(profile.original_payload) == 2") < 0);
    CHECK(makes("set(sample.link_index, 1)", "sample.link_index == 1") < 0);
    CHECK(makes("set(sample.link_index, -1)", "sample.link_index == -1") < 0);
    CHECK_OK(makes("set(profile.time_unix_nano, 99)", "profile.time == Unix(0, 99)"));
    CHECK(makes("set(profile.time_unix_nano, -1)", "profile.time_unix_nano == -1") < 0);
    CHECK_OK(makes("set(profile.time, Unix(7, 5))", "profile.time_unix_nano == 7000000005"));
    CHECK(makes("set(profile.time, 5)", "profile.time_unix_nano == 5") < 0);
    CHECK_OK(makes("set(profile.time, Now())", "UnixSeconds(profile.time) > 1600000000"));
    CHECK_OK(makes("set(profile.sample_type.unit, \"n\")", "profile.sample_type.unit == \"n\""));
    CHECK_OK(makes("set(profile.period_type.type, \"x\")",
                   "profile.sample_type != profile.period_type"));
    CHECK(makes("set(profile.sample_type, \"x\")", "profile.sample_type.type == \"x\"") < 0);
    CHECK_OK(
        makes("set(profile.period, profile.period * 3 - (4 + 2) / 2)", "profile.period == 147"));
    CHECK_OK(makes("set(profile.period, Int(profile.period * 0.5))", "profile.period == 25"));
    CHECK(makes("set(profile.period, 1 / 0)", "profile.period == 1") < 0);
    CHECK(makes("set(profile.period, 1 + \"a\")", "profile.period == 1") < 0);
    CHECK_OK(makes("set(profile.period, -9223372036854775808 / -1)",
                   "profile.period == -9223372036854775808"));
}

/* The first sample has a value, the second two with their times. */
TEST(ottl, observations_of_samples_are_written)
{
    CHECK_OK(makes("set(sample.values, [7])", "sample.values[0] == 7"));
    CHECK_OK(makes("set(sample.values[0], sample.values[0] * 2)", "sample.values[0] == 6"));
    CHECK_OK(makes("set(sample.values, [1, 2, 3])", "Len(sample.values) == 3"));
    CHECK_OK(makes("set(sample.timestamps_unix_nano, [900])",
                   "sample.timestamps_unix_nano[0] == 900 and sample.values[0] == 3 and "
                   "sample.timestamps[0] == Unix(0, 900)"));
    CHECK(makes("set(sample.timestamps_unix_nano, [1, 2])", "Len(timestamps_unix_nano) == 2") < 0);
    CHECK(makes("set(sample.values, [])", "Len(sample.values) == 0") < 0);
    CHECK(makes("set(sample.values, [1.5])", "Len(sample.values) == 2") < 0);
    CHECK(makes("set(sample.values, 5)", "sample.values[0] == 5") < 0);
    CHECK(makes("set(sample.values[1], 5)", "sample.values[1] == 5") < 0);
    CHECK(makes("set(sample.values[0], \"5\")", "sample.values[0] == 5") < 0);
}

TEST(ottl, a_sample_that_loses_its_times_keeps_their_number)
{
    static const struct kiln_drawn profile = {.resource = "service.name=shop",
                                              .type = "samples",
                                              .unit = "count",
                                              .stacks = "main;a @100 @200 @300\n"};
    struct kiln_batch *batch = kiln_test_batch(&profile, 1);
    struct kiln_ottl_item item = {0};
    struct kiln_ottl *ottl;
    struct kiln_err err = {0};

    CHECK_OK(kiln_ottl_statement(KILN_STR("set(sample.timestamps_unix_nano, [])"), KILN_OTTL_SAMPLE,
                                 &ottl, &err));
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[0]), 3);
    CHECK_OK(kiln_reopen(batch, &item.b, &err));
    item.batch = kiln_builder_peek(item.b);
    CHECK_OK(kiln_ottl_run(ottl, &item, &err));
    CHECK_OK(kiln_builder_finish(item.b, &batch, &err));
    check_invariants(batch);
    CHECK(!batch->samples[0].has_times && batch->samples[0].n == 1);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[0]), 3);
    kiln_batch_unref(batch);
    kiln_ottl_free(ottl);
}

TEST(ottl, attributes_are_chosen_by_their_numbers)
{
    CHECK_OK(makes("set(sample.attribute_indices, [])", "Len(sample.attributes) == 0"));
    CHECK_OK(makes("set(sample.attribute_indices, profile.attribute_indices)",
                   "sample.attributes[\"kind\"] == \"host\" and Len(sample.attributes) == 1"));
    CHECK(makes("set(sample.attribute_indices, [0])", "Len(sample.attributes) == 1") < 0);
    CHECK(makes("set(sample.attribute_indices, [99])", "Len(sample.attributes) == 1") < 0);
    CHECK(makes("set(sample.attribute_indices, [\"a\"])", "Len(sample.attributes) == 1") < 0);
}

TEST(ottl, values_have_parts)
{
    CHECK_OK(makes("set(sample.attributes[\"a\"], [1, \"b\", [true]])",
                   "sample.attributes[\"a\"][1] == \"b\" and sample.attributes[\"a\"][2][0]"));
    CHECK_OK(makes("set(sample.attributes[\"a\"][\"b\"][2], 5)",
                   "sample.attributes[\"a\"][\"b\"][2] == 5"));
    CHECK(makes("set(sample.attributes[\"n\"][\"b\"], 5)", "attributes[\"n\"] == 5") < 0);
    CHECK(makes("set(sample.attributes[\"a\"][1000000], 5)", "attributes[\"a\"] != nil") < 0);
    CHECK_OK(makes("set(sample.attributes[\"all\"], profile.attributes)",
                   "sample.attributes[\"all\"][\"kind\"] == \"host\""));
    CHECK_OK(makes("set(sample.attributes[\"v\"], sample.values)", "attributes[\"v\"][0] == 3"));
    CHECK(makes("set(sample.attributes[\"t\"], profile.time)", "attributes[\"t\"] != nil") < 0);
}

/* Runs statements one after the other with one cache; what the first failure is. */
static int run_together(const char *const *texts, size_t n, const char *condition)
{
    struct kiln_batch *batch = drawn();
    struct kiln_ottl_item item = {0};
    struct kiln_ottl *ottl;
    struct kiln_err err = {0};
    uint32_t cache = 0;
    int r = 0;

    CHECK_OK(kiln_reopen(batch, &item.b, &err));
    item.batch = kiln_builder_peek(item.b);
    item.cache = &cache;
    for (size_t i = 0; i < n && r == 0; i++) {
        CHECK_OK(kiln_ottl_statement(kiln_str_of(texts[i]), KILN_OTTL_SAMPLE, &ottl, &err));
        r = kiln_ottl_run(ottl, &item, &err);
        kiln_ottl_free(ottl);
    }
    CHECK_OK(kiln_ottl_condition(kiln_str_of(condition), KILN_OTTL_SAMPLE, &ottl, &err));
    CHECK_EQ(kiln_ottl_holds(ottl, &item, &err), r == 0);
    kiln_ottl_free(ottl);
    CHECK_OK(kiln_builder_finish(item.b, &batch, &err));
    check_invariants(batch);
    kiln_batch_unref(batch);
    CHECK_EQ(kiln_mem_live(), 0);
    return r;
}

TEST(ottl, statements_tell_each_other_in_the_cache)
{
    static const char *const copied[] = {
        "set(cache[\"all\"], resource.attributes)",
        "keep_matching_keys(sample.cache[\"all\"], \"^service\")",
        "set(sample.attributes[\"kept\"], cache[\"all\"])",
        "set(cache, sample.attributes[\"kept\"])",
        "delete_key(cache, \"service.name\")",
    };
    static const char *const deep[] = {
        "set(cache[\"a\"], 1)",     "set(cache[\"a\"], cache)", "set(cache[\"b\"], cache)",
        "set(cache[\"a\"], cache)", "set(cache[\"b\"], cache)", "set(cache[\"a\"], cache)",
        "set(cache[\"b\"], cache)", "set(cache[\"a\"], cache)", "set(cache[\"b\"], cache)",
        "set(cache[\"a\"], cache)", "set(cache[\"b\"], cache)", "set(cache[\"a\"], cache)",
        "set(cache[\"b\"], cache)", "set(cache[\"a\"], cache)", "set(cache[\"b\"], cache)",
        "set(cache[\"a\"], cache)", "set(cache[\"b\"], cache)", "set(cache[\"a\"], cache)",
        "set(cache[\"b\"], cache)", "set(cache[\"a\"], cache)", "set(cache[\"b\"], cache)",
        "set(cache[\"a\"], cache)", "set(cache[\"b\"], cache)", "set(cache[\"a\"], cache)",
        "set(cache[\"b\"], cache)", "set(cache[\"a\"], cache)", "set(cache[\"b\"], cache)",
        "set(cache[\"a\"], cache)", "set(cache[\"b\"], cache)", "set(cache[\"c\"], cache)",
    };
    static const char *const types[] = {
        "set(profile.sample_type.unit, \"By\")",
        "set(profile.period_type, profile.sample_type)",
    };

    CHECK_OK(run_together(types, 2, "profile.period_type.unit == \"By\""));
    CHECK_OK(run_together(copied, KILN_ARRAY_LEN(copied),
                          "sample.attributes[\"kept\"][\"service.name\"] == \"shop\" and "
                          "Len(sample.attributes[\"kept\"]) == 1 and Len(cache) == 0"));
    CHECK_EQ(run_together(deep, KILN_ARRAY_LEN(deep), "cache[\"c\"] != nil"), KILN_E_LIMIT);
}

TEST(ottl, editors_of_keys)
{
    RAN("delete_key(resource.attributes, \"n\")", " service.name=shop", S, P, M);
    RAN("delete_matching_keys(resource.attributes, \"^service\")", " n=7", S, P, M);
    RAN("keep_keys(sample.attributes, [\"thread\"])", R, S, P, " thread=main");
    RAN("keep_matching_keys(sample.attributes, \"^n$\")", R, S, P, " n=1");
    RAN("limit(resource.attributes, 1, [\"n\"])", " n=7", S, P, M);
    RAN("limit(resource.attributes, 9)", R, S, P, M);
    RAN("merge_maps(sample.attributes, resource.attributes, \"insert\")", R, S, P,
        " n=1 service.name=shop thread=main");
    RAN("merge_maps(sample.attributes, resource.attributes, \"update\")", R, S, P,
        " n=7 thread=main");
    RAN("merge_maps(sample.attributes, resource.attributes, \"upsert\")", R, S, P,
        " n=7 service.name=shop thread=main");
}

TEST(ottl, merges_maps_that_are_values)
{
    static const char *const nested[] = {
        "set(sample.attributes[\"kept\"][\"a\"][\"b\"], 5)",
        "set(sample.attributes[\"kept\"][\"c\"], 6)",
        "merge_maps(sample.attributes, sample.attributes[\"kept\"][\"a\"], \"insert\")",
        "merge_maps(sample.attributes, sample.attributes[\"kept\"], \"upsert\")",
    };

    CHECK_OK(run_together(nested, KILN_ARRAY_LEN(nested),
                          "sample.attributes[\"b\"] == 5 and sample.attributes[\"c\"] == 6 and "
                          "sample.attributes[\"a\"][\"b\"] == 5"));
}

TEST(ottl, editors_of_texts)
{
    RAN("replace_pattern(sample.attributes[\"thread\"], \"^(m)a\", \"$1o\")", R, S, P,
        " n=1 thread=moin");
    RAN("replace_pattern(sample.attributes[\"thread\"], \"^(?P<first>.)a\", \"${first}o\")", R, S,
        P, " n=1 thread=moin");
    RAN("replace_all_patterns(resource.attributes, \"value\", \"sh\", \"c\")",
        " n=7 service.name=cop", S, P, M);
    RAN("replace_all_patterns(resource.attributes, \"key\", \"\\\\.name$\", \"\")",
        " n=7 service=shop", S, P, M);
    RAN("truncate_all(resource.attributes, 2)", " n=7 service.name=sh", S, P, M);
}

static const char *refused(const char *text, bool statement)
{
    static char said[600];
    struct kiln_ottl *ottl;
    struct kiln_err err = {0};
    int r = statement ? kiln_ottl_statement(kiln_str_of(text), KILN_OTTL_CONTEXTS, &ottl, &err)
                      : kiln_ottl_condition(kiln_str_of(text), KILN_OTTL_CONTEXTS, &ottl, &err);

    CHECK(r < 0);
    CHECK_EQ(kiln_mem_live(), 0);
    snprintf(said, sizeof(said), "%s: %s", err.where, err.text);
    return said;
}

TEST(ottl, mistakes_say_where_they_are)
{
    CHECK_TEXT(refused("set(resource.attributes[\"a\"])", true),
               "column 1: this lacks an argument: \"set(resource.attributes[\"a\"])\"");
    CHECK_TEXT(refused("put(resource.attributes[\"a\"], 1)", true),
               "column 1: there is no such editor: \"put(resource.attributes[\"a\"], 1)\"");
    CHECK_TEXT(refused("profile.nothing == 1", false),
               "column 1: there is no such path: \"profile.nothing == 1\"");
    CHECK_TEXT(refused("1 == 1", false),
               "column 1: no path says which context this is for: \"1 == 1\"");
    CHECK_TEXT(refused("profile.period == ", false),
               "column 19: a value belongs here: \"profile.period == \"");
    CHECK_TEXT(refused("profile.period == 1 1", false),
               "column 21: this does not belong here: \"profile.period == 1 1\"");
    CHECK(strstr(refused("IsMatch(profile.attributes[\"a\"], \"(\")", false), "bad pattern"));
    CHECK(strstr(refused("set(sample.timestamps, 1)", true), "as timestamps_unix_nano"));
    CHECK(strstr(refused("set(profile.sample, profile.sample)", true), "one by one"));
    CHECK(strstr(refused("set(sample.attribute_indices[0], 1)", true), "all at once"));
    CHECK(strstr(refused("set(1, 1)", true), "a path belongs here"));
    CHECK(strstr(refused("merge_maps(scope.attributes, resource.attributes, \"x\")", true),
                 "insert, update or upsert"));
    CHECK(strstr(refused("delete_key(scope.name, \"b\")", true), "attributes belong here"));
    CHECK(strstr(refused("set(profile.period, 1 + [2])", true), "calculated with"));
    CHECK(strstr(refused("profile.period == [1]", false), "cannot be compared"));
    CHECK(strstr(refused("set(profile.period, - profile.period)", true), "a number belongs here"));
    CHECK(strstr(refused("set(profile.cache[\"a\"], resource.cache[\"a\"])", true), "one cache"));
    CHECK(strstr(refused("set(resource.cache[\"a\"], profile.period)", true), "innermost context"));
    CHECK(strstr(refused("profile.attributes[\"a] == 1", false), "belongs here"));
}

TEST(ottl, depth_and_length_are_limited)
{
    char deep[40 * 4 + 1] = "";
    char *huge = malloc(20000);

    memset(deep, '(', 40);
    CHECK(strstr(refused(deep, false), "too deeply"));
    for (size_t i = 0; i < 40; i++)
        memcpy(deep + 4 * i, "not ", 4);
    CHECK(strstr(refused(deep, false), "too deeply"));
    memset(huge, ' ', 19999);
    huge[19999] = '\0';
    CHECK(strstr(refused(huge, false), "16 KiB"));
    free(huge);
}

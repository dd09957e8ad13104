/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "codec/otlp_check.h"
#include "codec/pb.h"
#include "test.h"

/*
 * One small message that keeps every rule, and the same with one thing wrong at a time.
 * Strings: "", cpu, nanoseconds, work, build-id key, "x", /bin/app, key.
 */
enum defect {
    NOTHING,
    NO_STACK_TABLE,
    STRING_0_NOT_EMPTY,
    MAPPING_0_NOT_ZERO,
    STACK_INDEX_OUTSIDE,
    NEGATIVE_STACK_INDEX,
    LOCATION_INDEX_OUTSIDE,
    TYPE_OUTSIDE,
    SAME_KEY_TWICE,
    TWO_KEYS_IN_ONE,
    RESOURCE_KEY_TWICE,
    NO_OBSERVATION,
    UNPAIRED_OBSERVATIONS,
    TWO_VALUES_WITHOUT_TIMES,
    MIXED_SHAPES,
    SAME_IDENTITY,
    TIME_OUTSIDE,
    TIME_AT_THE_END,
    ADDRESS_OUTSIDE,
    MAPPING_BACKWARDS,
    NAMELESS_FUNCTION,
    PAYLOAD_WITHOUT_FORMAT,
    NO_BUILD_ID,
    SHORT_PROFILE_ID,
    SHORT_SPAN_ID,
    BAD_UTF8,
    NEGATIVE_LINE,
    NO_PROFILES,
    STRING_TWICE,
    UNUSED_STRING,
    REVISION_1_9,
};

static void put_number(struct kiln_pb_out *w, uint32_t field, uint64_t v)
{
    kiln_pb_raw_varint(w, v);
    kiln_pb_raw_varint(w, KILN_PB_VARINT(field));
}

static void put_packed(struct kiln_pb_out *w, uint32_t field, uint64_t a, uint64_t b, int n)
{
    size_t mark = kiln_pb_mark(w);

    if (n > 1)
        kiln_pb_raw_varint(w, b);
    kiln_pb_raw_varint(w, a);
    kiln_pb_put_message(w, field, mark);
}

static void put_attr(struct kiln_pb_out *w, uint32_t key)
{
    size_t mark = kiln_pb_mark(w), value;

    put_number(w, 3, 5);
    value = kiln_pb_mark(w);
    put_number(w, 3, key);
    kiln_pb_put_message(w, 2, value);
    put_number(w, 1, key);
    kiln_pb_put_message(w, 6, mark);
}

static void put_strings(struct kiln_pb_out *w, enum defect defect)
{
    static const char *const strings[] = {
        "",  "cpu",      "nanoseconds", "work", "process.executable.build_id.gnu",
        "x", "/bin/app", "key"};

    if (defect == STRING_TWICE)
        kiln_pb_put_element(w, 5, KILN_STR("cpu"));
    if (defect == UNUSED_STRING)
        kiln_pb_put_element(w, 5, KILN_STR("nobody"));
    if (defect == BAD_UTF8)
        kiln_pb_put_element(w, 5, KILN_STR("\xff"));
    for (uint32_t i = 8; i-- > 1;)
        kiln_pb_put_element(w, 5, kiln_str_of(strings[i]));
    kiln_pb_put_element(w, 5, defect == STRING_0_NOT_EMPTY ? KILN_STR("zero") : KILN_STR(""));
}

static void put_location(struct kiln_pb_out *w, enum defect defect)
{
    size_t mark = kiln_pb_mark(w), line = mark;

    put_number(w, 2, defect == NEGATIVE_LINE ? (uint64_t)-3 : 3);
    put_number(w, 1, 1);
    kiln_pb_put_message(w, 3, line);
    put_number(w, 2, defect == ADDRESS_OUTSIDE ? 0x3000 : 0x1800);
    put_number(w, 1, 1);
    kiln_pb_put_message(w, 2, mark);
    kiln_pb_put_element(w, 2, KILN_STR_NONE);
}

static void put_mapping(struct kiln_pb_out *w, enum defect defect)
{
    size_t mark = kiln_pb_mark(w);

    if (defect != NO_BUILD_ID)
        put_packed(w, 5, 1, 0, 1);
    put_number(w, 4, 6);
    put_number(w, 2, defect == MAPPING_BACKWARDS ? 0x800 : 0x2000);
    put_number(w, 1, 0x1000);
    kiln_pb_put_message(w, 1, mark);
    mark = kiln_pb_mark(w);
    if (defect == MAPPING_0_NOT_ZERO)
        put_number(w, 1, 0x1000);
    kiln_pb_put_message(w, 1, mark);
}

static void put_dictionary(struct kiln_pb_out *w, enum defect defect)
{
    size_t dictionary = kiln_pb_mark(w), mark = dictionary;

    if (defect != NO_STACK_TABLE) {
        put_packed(w, 1, defect == LOCATION_INDEX_OUTSIDE ? 9 : 1, 0, 1);
        kiln_pb_put_message(w, 7, mark);
        kiln_pb_put_element(w, 7, KILN_STR_NONE);
    }
    put_attr(w, 7);
    put_attr(w, 7);
    put_attr(w, 4);
    kiln_pb_put_element(w, 6, KILN_STR_NONE);
    put_strings(w, defect);
    mark = kiln_pb_mark(w);
    kiln_pb_put_bytes(w, 2, defect == SHORT_SPAN_ID ? KILN_STR("short") : KILN_STR("8 bytes."));
    kiln_pb_put_bytes(w, 1, KILN_STR("sixteen bytes..."));
    kiln_pb_put_message(w, 4, mark);
    kiln_pb_put_element(w, 4, KILN_STR_NONE);
    mark = kiln_pb_mark(w);
    put_number(w, 4, 1);
    if (defect != NAMELESS_FUNCTION)
        put_number(w, 1, 3);
    kiln_pb_put_message(w, 3, mark);
    kiln_pb_put_element(w, 3, KILN_STR_NONE);
    put_location(w, defect);
    put_mapping(w, defect);
    kiln_pb_put_message(w, 2, dictionary);
}

static void put_time(struct kiln_pb_out *w, uint64_t time)
{
    size_t mark = kiln_pb_mark(w);

    kiln_pb_raw_fixed64(w, time);
    kiln_pb_put_message(w, 5, mark);
}

static void put_sample(struct kiln_pb_out *w, enum defect defect)
{
    size_t mark = kiln_pb_mark(w);

    if (defect == REVISION_1_9) {
        put_packed(w, 3, 2, 0, 1);
        put_packed(w, 2, 40, 0, 1);
        put_number(w, 1, 1);
        kiln_pb_put_message(w, 2, mark);
        return;
    }
    if (defect != NO_OBSERVATION && defect != TWO_VALUES_WITHOUT_TIMES)
        put_time(w, defect == TIME_OUTSIDE ? 5000 : defect == TIME_AT_THE_END ? 1100 : 1050);
    if (defect != NO_OBSERVATION)
        put_packed(w, 4, 10, 20,
                   defect == UNPAIRED_OBSERVATIONS || defect == TWO_VALUES_WITHOUT_TIMES ? 2 : 1);
    put_number(w, 3, 1);
    put_packed(w, 2, 2, 3, defect == SAME_KEY_TWICE ? 2 : 1);
    put_number(w, 1,
               defect == STACK_INDEX_OUTSIDE    ? 7
               : defect == NEGATIVE_STACK_INDEX ? (uint64_t)-1
                                                : 1);
    kiln_pb_put_message(w, 2, mark);
}

static void put_profile(struct kiln_pb_out *w, enum defect defect)
{
    size_t profile = kiln_pb_mark(w), mark;

    if (defect == PAYLOAD_WITHOUT_FORMAT)
        kiln_pb_put_bytes(w, 10, KILN_STR("payload"));
    kiln_pb_put_bytes(w, 7,
                      defect == SHORT_PROFILE_ID ? KILN_STR("0123456789abcde")
                                                 : KILN_STR("0123456789abcdef"));
    put_number(w, 4, 100);
    kiln_pb_put_fixed64(w, 3, 1000);
    if (defect == MIXED_SHAPES) {
        mark = kiln_pb_mark(w);
        put_packed(w, 4, 10, 0, 1);
        kiln_pb_put_message(w, 2, mark);
    }
    if (defect == SAME_IDENTITY)
        put_sample(w, defect);
    put_sample(w, defect);
    mark = kiln_pb_mark(w);
    put_number(w, 2, 2);
    put_number(w, 1, defect == TYPE_OUTSIDE ? 99 : 1);
    kiln_pb_put_message(w, 1, mark);
    kiln_pb_put_message(w, 2, profile);
}

static void put_resource_attr(struct kiln_pb_out *w, enum defect defect)
{
    size_t mark = kiln_pb_mark(w);

    if (defect == TWO_KEYS_IN_ONE)
        put_number(w, 3, 7);
    kiln_pb_put_element(w, 2, KILN_STR_NONE);
    kiln_pb_put_bytes(w, 1, KILN_STR("service.name"));
    kiln_pb_put_message(w, 1, mark);
}

static void put_message(struct kiln_pb_out *w, enum defect defect)
{
    size_t resource, scope, mark;

    put_dictionary(w, defect);
    resource = scope = kiln_pb_mark(w);
    if (defect != NO_PROFILES)
        put_profile(w, defect);
    kiln_pb_put_message(w, 2, scope);
    mark = kiln_pb_mark(w);
    if (defect == RESOURCE_KEY_TWICE)
        put_resource_attr(w, defect);
    put_resource_attr(w, defect);
    kiln_pb_put_message(w, 1, mark);
    kiln_pb_put_message(w, 1, resource);
}

static struct kiln_check *check(enum defect defect, const struct kiln_check_opts *opts)
{
    struct kiln_pb_out w;
    struct kiln_buf out;
    struct kiln_check *result;

    kiln_pb_out_init(&w, 0, 1 << 20);
    kiln_buf_init(&out, 1 << 20);
    put_message(&w, defect);
    CHECK_OK(kiln_pb_out_flush(&w, &out));
    CHECK_OK(kiln_otlp_check(kiln_buf_str(&out), opts, &result, NULL));
    kiln_buf_done(&out);
    kiln_pb_out_done(&w);
    return result;
}

static const struct kiln_check_opts usual = {.sample_shapes = true};

/* The defect gives exactly this finding (the first), of this level. */
static void check_finds(enum defect defect, enum kiln_finding_level level, const char *rule,
                        const char *where)
{
    struct kiln_check_opts opts = {
        .sample_shapes = true, .dupes = defect == STRING_TWICE, .orphans = defect == UNUSED_STRING};
    struct kiln_check *result = check(defect, &opts);

    CHECK(result->n_findings > 0);
    CHECK_TEXT(result->findings[0].rule, rule);
    CHECK_TEXT(result->findings[0].where, where);
    CHECK_EQ(result->findings[0].level, level);
    CHECK(result->findings[0].text[0] != '\0');
    kiln_check_free(result);
}

#define SCOPE   "resource_profiles[0].scope_profiles[0]"
#define PROFILE SCOPE ".profiles[0]"
#define SAMPLE  PROFILE ".samples[0]"

TEST(otlp_check, a_message_that_keeps_the_rules_has_no_finding)
{
    struct kiln_check *result = check(NOTHING, &usual);

    CHECK_EQ(result->n_errors, 0);
    CHECK_EQ(result->n_warnings, 0);
    CHECK_EQ(result->n_profiles, 1);
    CHECK_EQ(result->n_samples, 1);
    kiln_check_free(result);
}

TEST(otlp_check, what_must_hold_and_does_not_is_an_error_at_its_place)
{
    static const struct {
        enum defect defect;
        const char *rule, *where;
    } cases[] = {
        {NO_STACK_TABLE, "zero-value", "dictionary.stack_table"},
        {STRING_0_NOT_EMPTY, "zero-value", "dictionary.string_table[0]"},
        {MAPPING_0_NOT_ZERO, "zero-value", "dictionary.mapping_table[0]"},
        {STACK_INDEX_OUTSIDE, "index", SAMPLE ".stack_index"},
        {NEGATIVE_STACK_INDEX, "index", SAMPLE ".stack_index"},
        {LOCATION_INDEX_OUTSIDE, "index", "dictionary.stack_table[1].location_indices"},
        {TYPE_OUTSIDE, "index", PROFILE ".sample_type.type_strindex"},
        {SAME_KEY_TWICE, "unique-keys", SAMPLE},
        {TWO_KEYS_IN_ONE, "one-key", "resource_profiles[0].resource"},
        {RESOURCE_KEY_TWICE, "unique-keys", "resource_profiles[0].resource"},
        {NO_OBSERVATION, "observations", SAMPLE},
        {UNPAIRED_OBSERVATIONS, "observations", SAMPLE},
        {TWO_VALUES_WITHOUT_TIMES, "observations", SAMPLE},
        {MIXED_SHAPES, "sample-shape", PROFILE ".samples[1]"},
        {TIME_OUTSIDE, "time-range", SAMPLE},
        {MAPPING_BACKWARDS, "mapping-range", "dictionary.mapping_table[1]"},
        {NAMELESS_FUNCTION, "nameless", "dictionary.function_table[1]"},
        {PAYLOAD_WITHOUT_FORMAT, "payload", PROFILE},
        {SHORT_PROFILE_ID, "id-length", PROFILE},
        {SHORT_SPAN_ID, "id-length", "dictionary.link_table[1]"},
        {BAD_UTF8, "utf-8", "dictionary.string_table[8]"},
        {NEGATIVE_LINE, "negative", "dictionary.location_table[1]"},
        {NO_PROFILES, "empty", SCOPE},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++)
        check_finds(cases[i].defect, KILN_FINDING_ERROR, cases[i].rule, cases[i].where);
}

TEST(otlp_check, what_should_hold_and_does_not_is_a_warning)
{
    check_finds(SAME_IDENTITY, KILN_FINDING_WARNING, "identity", PROFILE ".samples[1]");
    check_finds(TIME_AT_THE_END, KILN_FINDING_WARNING, "time-range", SAMPLE);
    check_finds(ADDRESS_OUTSIDE, KILN_FINDING_WARNING, "address-range",
                "dictionary.location_table[1]");
    check_finds(NO_BUILD_ID, KILN_FINDING_WARNING, "build-id", "dictionary.mapping_table[1]");
}

TEST(otlp_check, who_asks_for_duplicates_and_orphans_gets_errors)
{
    check_finds(STRING_TWICE, KILN_FINDING_ERROR, "duplicate", "dictionary.string_table[8]");
    check_finds(UNUSED_STRING, KILN_FINDING_ERROR, "orphan", "dictionary.string_table[8]");
}

TEST(otlp_check, strictness_turns_warnings_into_errors)
{
    struct kiln_check_opts strict = {.sample_shapes = true, .strict = true};
    struct kiln_check *result = check(NO_BUILD_ID, &strict);

    CHECK(result->n_errors > 0);
    CHECK_EQ(result->n_warnings, 0);
    kiln_check_free(result);
}

TEST(otlp_check, shapes_are_compared_only_when_asked)
{
    struct kiln_check_opts no_shapes = {0};
    struct kiln_check *result = check(MIXED_SHAPES, &no_shapes);

    CHECK_EQ(result->n_errors, 0);
    kiln_check_free(result);
}

TEST(otlp_check, an_older_revision_is_named_and_its_translation_checked)
{
    struct kiln_check *result = check(REVISION_1_9, &usual);

    CHECK_EQ(result->revision, KILN_OTLP_1_9);
    CHECK_EQ(result->n_errors, 1);
    CHECK_TEXT(result->findings[0].rule, "revision");
    CHECK_EQ(result->n_samples, 1);
    kiln_check_free(result);
}

TEST(otlp_check, bytes_that_are_no_message_are_an_error_not_a_crash)
{
    struct kiln_check *result;

    CHECK_OK(kiln_otlp_check(KILN_STR("\xff\xff\xff"), &usual, &result, NULL));
    CHECK(result->n_errors > 0);
    CHECK_TEXT(result->findings[0].rule, "wire");
    kiln_check_free(result);
}

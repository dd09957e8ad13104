/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/otlp.h"
#include "codec/otlp_json.h"
#include "decoded.h"

/* One profile of two samples, with something in every field. */
#define RESOURCE_PROFILES                                                                          \
    "\"resourceProfiles\":[{"                                                                      \
    "\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":\"shop\"}" \
    "}],"                                                                                          \
    "\"droppedAttributesCount\":2,\"entityRefs\":[{\"schemaUrl\":\"u\",\"type\":\"service\","      \
    "\"idKeys\":[\"service.name\"],\"descriptionKeys\":[\"a\",\"b\"]}]},"                          \
    "\"scopeProfiles\":[{\"scope\":{\"name\":\"tester\",\"version\":\"1\"},\"profiles\":[{"        \
    "\"sampleType\":{\"typeStrindex\":1,\"unitStrindex\":2},"                                      \
    "\"samples\":["                                                                                \
    "{\"stackIndex\":1,\"attributeIndices\":[1],\"linkIndex\":1,\"values\":[\"5\",6],"             \
    "\"timestampsUnixNano\":[\"1700000000000000001\",1700000000000000002]},"                       \
    "{\"stackIndex\":2,\"values\":[\"-7\"]}],"                                                     \
    "\"timeUnixNano\":\"1700000000000000000\",\"durationNano\":\"1000\","                          \
    "\"periodType\":{\"typeStrindex\":1,\"unitStrindex\":2},\"period\":\"10\","                    \
    "\"profileId\":\"000102030405060708090A0B0C0D0E0F\",\"droppedAttributesCount\":1,"             \
    "\"originalPayloadFormat\":\"pprof\",\"originalPayload\":\"Zm9v\",\"attributeIndices\":[2]"    \
    "}],\"schemaUrl\":\"scope-url\"}],\"schemaUrl\":\"resource-url\"}]"

#define DICTIONARY                                                                                 \
    "\"dictionary\":{"                                                                             \
    "\"mappingTable\":[{},{\"memoryStart\":\"4096\",\"memoryLimit\":8192,\"fileOffset\":\"1\","    \
    "\"filenameStrindex\":6}],"                                                                    \
    "\"locationTable\":[{},"                                                                       \
    "{\"mappingIndex\":1,\"address\":\"18446744073709551615\",\"lines\":["                         \
    "{\"functionIndex\":2,\"line\":\"3\",\"column\":\"4\"},{\"functionIndex\":1}]},"               \
    "{\"lines\":[{\"functionIndex\":1}]}],"                                                        \
    "\"functionTable\":[{},{\"nameStrindex\":3},{\"nameStrindex\":4,\"systemNameStrindex\":5,"     \
    "\"filenameStrindex\":6,\"startLine\":\"2\"}],"                                                \
    "\"linkTable\":[{},{\"traceId\":\"000102030405060708090a0b0c0d0e0f\","                         \
    "\"spanId\":\"0001020304050607\"}],"                                                           \
    "\"stringTable\":[\"\",\"cpu\",\"nanoseconds\",\"main\",\"read\",\"_read\",\"x\\n.c\"],"       \
    "\"attributeTable\":[{},{\"keyStrindex\":6,\"value\":{\"intValue\":\"-9223372036854775808\"}," \
    "\"unitStrindex\":2},{\"keyStrindex\":1,\"value\":{\"arrayValue\":{\"values\":["               \
    "{\"stringValue\":\"\"},{\"boolValue\":false},{\"doubleValue\":0.1},{\"bytesValue\":\"/"       \
    "w==\"},"                                                                                      \
    "{\"kvlistValue\":{\"values\":[{\"key\":\"k\",\"value\":{}}]}},{}]}}}],"                       \
    "\"stackTable\":[{},{\"locationIndices\":[1,2]},{\"locationIndices\":[2]}]}"

static struct kiln_batch *decode(const char *text)
{
    return kiln_test_decode(kiln_otlp_json_decode, kiln_str_of(text));
}

static void check_equal(const char *a, const char *b)
{
    struct kiln_batch *x = decode(a), *y = decode(b);

    CHECK(kiln_batch_equal(x, y));
    kiln_batch_unref(x);
    kiln_batch_unref(y);
}

TEST(otlp_json, a_profile_is_read_with_all_its_fields)
{
    struct kiln_batch *batch = decode("{" RESOURCE_PROFILES "," DICTIONARY "}");
    const struct kiln_profile *p = &batch->profiles[0];
    const struct kiln_sample *s = &batch->samples[p->first_sample];

    CHECK_TEXT(kiln_test_stacks(batch, 0), "main;main;(read) 11\nmain -7\n");
    CHECK_STR(kiln_set_text(batch, batch->resources[0].attrs, KILN_STR("service.name")), "shop");
    CHECK_EQ(batch->resources[0].dropped_attrs, 2);
    CHECK_STR(kiln_batch_str(batch, batch->resources[0].schema_url), "resource-url");
    CHECK_EQ(batch->entities[0].n_id_keys, 1);
    CHECK_EQ(batch->entities[0].n_description_keys, 2);
    CHECK_STR(kiln_batch_str(batch, batch->entity_keys[2]), "b");
    CHECK_STR(kiln_batch_str(batch, batch->scopes[0].name), "tester");
    CHECK_STR(kiln_batch_str(batch, batch->scopes[0].schema_url), "scope-url");
    CHECK_STR(kiln_batch_str(batch, p->sample_type.type), "cpu");
    CHECK(p->time_ns == 1700000000000000000u && p->duration_ns == 1000 && p->period == 10);
    CHECK_EQ(p->id[15], 0x0f);
    CHECK_EQ(p->dropped_attrs, 1);
    CHECK_STR(p->payload, "foo");
    CHECK_STR(kiln_batch_str(batch, p->payload_format), "pprof");
    CHECK(kiln_sample_times(batch, s)[1] == 1700000000000000002u);
    CHECK_EQ(batch->dict.links[s->link].span_id[7], 7);
    CHECK(kiln_set_find(batch, s->attrs, KILN_STR("x\n.c"))->value.i == INT64_MIN);
    CHECK(kiln_set_find(batch, p->attrs, KILN_STR("cpu"))->value.n == 6);
    kiln_batch_unref(batch);
}

TEST(otlp_json, the_dictionary_may_come_first_or_last_and_its_tables_in_any_order)
{
    check_equal("{" RESOURCE_PROFILES "," DICTIONARY "}", "{" DICTIONARY "," RESOURCE_PROFILES "}");
    check_equal(
        "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[{"
        "\"stackIndex\":1,\"values\":[1]}]}]}]}],\"dictionary\":{\"stackTable\":[{},"
        "{\"locationIndices\":[1]}],\"stringTable\":[\"\",\"a\"],\"functionTable\":[{},"
        "{\"nameStrindex\":1}],\"locationTable\":[{},{\"lines\":[{\"functionIndex\":1}]}]}}",
        "{\"dictionary\":{\"locationTable\":[{},{\"lines\":[{\"functionIndex\":1}]}],"
        "\"functionTable\":[{},{\"nameStrindex\":1}],\"stringTable\":[\"\",\"a\"],"
        "\"stackTable\":[{},{\"locationIndices\":[1]}]},\"resourceProfiles\":[{"
        "\"scopeProfiles\":[{\"profiles\":[{\"samples\":[{\"stackIndex\":1,"
        "\"values\":[1]}]}]}]}]}");
}

/* A document of one scope with this profile and these strings. */
#define PROFILE(profile)                                                                           \
    "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{" profile "}]}]}],"                \
    "\"dictionary\":{\"stringTable\":[\"\",\"cpu\"],\"stackTable\":[{}]}}"

TEST(otlp_json, names_in_snake_case_null_and_unknown_names_are_accepted)
{
    check_equal(
        PROFILE("\"timeUnixNano\":5,\"samples\":[{\"stackIndex\":0,\"values\":[1]}]"),
        "{\"resource_profiles\":[{\"resource\":null,\"scope_profiles\":[{\"scope\":null,"
        "\"profiles\":[{\"time_unix_nano\":\"5\",\"duration_nano\":null,\"what\":{\"a\":[1]},"
        "\"samples\":[{\"stack_index\":null,\"values\":[1],\"timestamps_unix_nano\":null}],"
        "\"attribute_indices\":null}],\"schema_url\":null}]}],\"more\":[],"
        "\"dictionary\":{\"string_table\":[\"\",\"cpu\"],\"stack_table\":[null],"
        "\"link_table\":null}}");
}

TEST(otlp_json, names_of_revision_1_8_are_accepted)
{
    check_equal(PROFILE("\"timeUnixNano\":5,\"durationNano\":6,\"samples\":[{\"values\":[1]}]"),
                PROFILE("\"timeNanos\":5,\"durationNanos\":6,\"sample\":[{\"values\":[1]}]"));
}

TEST(otlp_json, older_revisions_are_refused_by_name)
{
    struct kiln_err err;

    CHECK_EQ(kiln_test_refused(kiln_otlp_json_decode,
                               KILN_STR(PROFILE("\"sample\":[{\"locationsStartIndex\":0}]")), &err),
             KILN_E_UNSUPPORTED);
    CHECK_EQ(
        kiln_test_refused(kiln_otlp_json_decode, KILN_STR(PROFILE("\"sampleType\":[{}]")), &err),
        KILN_E_UNSUPPORTED);
}

TEST(otlp_json, a_profile_id_may_be_base64)
{
    check_equal(PROFILE("\"profileId\":\"000102030405060708090a0b0c0d0e0f\""),
                PROFILE("\"profileId\":\"AAECAwQFBgcICQoLDA0ODw==\""));
    check_equal(PROFILE("\"profileId\":\"\""), PROFILE(""));
}

TEST(otlp_json, an_entry_0_that_is_not_the_zero_value_is_used_as_it_is)
{
    struct kiln_batch *batch = decode("{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{"
                                      "\"sampleType\":{\"typeStrindex\":0}}]}]}],"
                                      "\"dictionary\":{\"stringTable\":[\"wall\"]}}");

    CHECK_STR(kiln_batch_str(batch, batch->profiles[0].sample_type.type), "wall");
    kiln_batch_unref(batch);
}

TEST(otlp_json, attributes_of_resources_may_refer_to_the_string_table)
{
    struct kiln_batch *batch =
        decode("{\"resourceProfiles\":[{\"resource\":{\"attributes\":["
               "{\"keyStrindex\":1,\"value\":{\"stringValueStrindex\":2}},"
               "{\"key\":\"inline\",\"keyStrindex\":1,\"value\":{\"doubleValue\":\"NaN\"}},"
               "{\"key\":\"d\",\"value\":{\"doubleValue\":\"1.5\"}}]}}],"
               "\"dictionary\":{\"stringTable\":[\"\",\"k\",\"v\"]}}");
    uint32_t set = batch->resources[0].attrs;

    CHECK_STR(kiln_set_text(batch, set, KILN_STR("k")), "v");
    CHECK(isnan(kiln_set_find(batch, set, KILN_STR("inline"))->value.d));
    CHECK(kiln_set_find(batch, set, KILN_STR("d"))->value.d == 1.5);
    kiln_batch_unref(batch);
}

TEST(otlp_json, json_lines_go_into_one_batch)
{
    struct kiln_batch *batch =
        decode(PROFILE("\"samples\":[{\"values\":[1]}],\"sampleType\":{\"typeStrindex\":"
                       "1}") "\n"
                             "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{"
                             "\"sampleType\":"
                             "{\"typeStrindex\":1}}]}]}],\"dictionary\":{\"stringTable\":["
                             "\"\",\"wall\"]}}\n");

    CHECK_EQ(batch->n_profiles, 2);
    CHECK_STR(kiln_batch_str(batch, batch->profiles[0].sample_type.type), "cpu");
    CHECK_STR(kiln_batch_str(batch, batch->profiles[1].sample_type.type), "wall");
    kiln_batch_unref(batch);
}

TEST(otlp_json, errors_name_the_path_and_the_place)
{
    static const struct {
        const char *text, *where, *what;
        int code;
    } cases[] = {
        {PROFILE("\"samples\":[{},{\"stackIndex\":1}]"),
         "resourceProfiles[0].scopeProfiles[0].profiles[0].samples[1].stackIndex",
         "1 is outside stackTable, which has 1 entries at line 1, column 82", KILN_E_RANGE},
        {PROFILE("\"samples\":[{\"linkIndex\":-1}]"),
         "resourceProfiles[0].scopeProfiles[0].profiles[0].samples[0].linkIndex",
         "-1 is outside linkTable, which has 0 entries at line 1, column 78", KILN_E_RANGE},
        {PROFILE("\"samples\":[{\"attributeIndices\":[0,3]}]"),
         "resourceProfiles[0].scopeProfiles[0].profiles[0].samples[0].attributeIndices[1]",
         "3 is outside attributeTable, which has 0 entries at line 1, column 88", KILN_E_RANGE},
        {PROFILE("\"samples\":[{\"values\":[1,2],\"timestampsUnixNano\":[1]}]"),
         "resourceProfiles[0].scopeProfiles[0].profiles[0].samples[0]",
         "has 2 values for 1 timestamps: they must be pairs at line 1, column 103",
         KILN_E_MALFORMED},
        {PROFILE("\"samples\":[{\"values\":[\"x\"]}]"),
         "resourceProfiles[0].scopeProfiles[0].profiles[0].samples[0].values[0]",
         "\"x\" is no integer at line 1, column 76", KILN_E_MALFORMED},
        {PROFILE("\"samples\":5"), "resourceProfiles[0].scopeProfiles[0].profiles[0].samples",
         "expected an array, found '5' at line 1, column 64", KILN_E_MALFORMED},
        {PROFILE("\"profileId\":\"12\""),
         "resourceProfiles[0].scopeProfiles[0].profiles[0].profileId",
         "neither 32 hexadecimal digits nor base64 of 16 bytes at line 1, column 66",
         KILN_E_MALFORMED},
        {"{\"dictionary\":{\"linkTable\":[{},{\"traceId\":\"zz\"}]}}",
         "dictionary.linkTable[1].traceId", "not 32 hexadecimal digits at line 1, column 43",
         KILN_E_MALFORMED},
        {"{\"dictionary\":{\"stackTable\":[{\"locationIndices\":[7]}]}}",
         "dictionary.stackTable[0].locationIndices[0]",
         "7 is outside locationTable, which has 0 entries at line 1, column 50", KILN_E_RANGE},
        {"{}\n{\"resourceProfiles\":[{\"schemaUrl\":1}]}",
         "document 2.resourceProfiles[0].schemaUrl",
         "expected a string, found '1' at line 2, column 35", KILN_E_MALFORMED},
        {"{\"dictionary\":{},\"dictionary\":{}}", "dictionary",
         "a second dictionary at line 1, column 18", KILN_E_MALFORMED},
        {"{\"resourceProfiles\":[{]}", "resourceProfiles",
         "expected a name in quotes, found ']' at line 1, column 23", KILN_E_MALFORMED},
        {"[]", "", "expected an object, found '[' at line 1, column 1", KILN_E_MALFORMED},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct kiln_err err;
        int r = kiln_test_refused(kiln_otlp_json_decode, kiln_str_of(cases[i].text), &err);

        CHECK_TEXT(err.where, cases[i].where);
        CHECK_TEXT(err.text, cases[i].what);
        CHECK_EQ(r, cases[i].code);
    }
}

TEST(otlp_json, values_nested_too_deep_are_refused)
{
    struct kiln_buf text;
    struct kiln_err err;

    kiln_buf_init(&text, 1u << 20);
    kiln_buf_puts(&text, "{\"dictionary\":{\"attributeTable\":[{\"value\":");
    for (int i = 0; i < 65; i++)
        kiln_buf_puts(&text, "{\"arrayValue\":{\"values\":[");
    for (int i = 0; i < 65; i++)
        kiln_buf_puts(&text, "]}}");
    kiln_buf_puts(&text, "}]}}");
    CHECK_EQ(kiln_test_refused(kiln_otlp_json_decode, kiln_buf_str(&text), &err), KILN_E_LIMIT);
    kiln_buf_done(&text);
}

TEST(otlp_json, running_out_of_memory_is_an_error_and_leaks_nothing)
{
    kiln_test_decode_starved(kiln_otlp_json_decode,
                             KILN_STR("{" RESOURCE_PROFILES "," DICTIONARY "}"));
}

/* ---- writing ---- */

static struct kiln_buf encode(const struct kiln_batch *batch)
{
    struct kiln_err err = {0};
    struct kiln_buf out;

    kiln_buf_init(&out, 64u << 20);
    CHECK_OK(kiln_otlp_json_encode(batch, &out, &err));
    return out;
}

static void check_written(const char *json)
{
    struct kiln_batch *batch = decode(json), *again;
    struct kiln_buf text = encode(batch), twice;

    again = kiln_test_decode(kiln_otlp_json_decode, kiln_buf_str(&text));
    CHECK(kiln_batch_equal(batch, again));
    twice = encode(again);
    CHECK(kiln_str_eq(kiln_buf_str(&text), kiln_buf_str(&twice)));
    kiln_buf_done(&text);
    kiln_buf_done(&twice);
    kiln_batch_unref(batch);
    kiln_batch_unref(again);
}

TEST(otlp_json, what_is_written_reads_back_the_same)
{
    check_written("{" RESOURCE_PROFILES "," DICTIONARY "}");
}

TEST(otlp_json, empty_lists_are_written_and_read)
{
    check_written(
        "{\"resourceProfiles\":[{\"resource\":{\"attributes\":["
        "{\"key\":\"a\",\"value\":{\"arrayValue\":{}}},"
        "{\"key\":\"b\",\"value\":{\"kvlistValue\":{\"values\":[]}}}],"
        "\"entityRefs\":[{}]},\"scopeProfiles\":[{\"profiles\":[{\"samples\":[{}]}]}]}]}");
}

TEST(otlp_json, the_empty_batch_has_all_tables_with_their_zero_values)
{
    struct kiln_batch *batch = decode("{}");
    struct kiln_buf text = encode(batch);

    CHECK_STR(
        kiln_buf_str(&text),
        "{\"resourceProfiles\":[],\"dictionary\":{\"mappingTable\":[{}],\"locationTable\":[{}],"
        "\"functionTable\":[{}],\"linkTable\":[{}],\"stringTable\":[\"\"],"
        "\"attributeTable\":[{}],\"stackTable\":[{}]}}\n");
    kiln_buf_done(&text);
    kiln_batch_unref(batch);
}

/* protobuf -> batch -> JSON -> batch -> protobuf: nothing may be lost on the way. */
static void check_lossless(const char *path)
{
    struct kiln_err err = {0};
    struct kiln_batch *batch = NULL, *again;
    struct kiln_builder *b;
    struct kiln_buf text, bytes, bytes_again;
    size_t len;
    char *file = kiln_test_read(path, &len);

    CHECK(file != NULL);
    CHECK_OK(kiln_builder_new(NULL, &b));
    CHECK_OK(kiln_otlp_decode((struct kiln_str){file, len}, NULL, b, NULL, &err));
    CHECK_OK(kiln_builder_finish(b, &batch, &err));
    text = encode(batch);
    again = kiln_test_decode(kiln_otlp_json_decode, kiln_buf_str(&text));
    CHECK(kiln_batch_equal(batch, again));
    kiln_buf_init(&bytes, 64u << 20);
    kiln_buf_init(&bytes_again, 64u << 20);
    CHECK_OK(kiln_otlp_encode(batch, NULL, &bytes, &err));
    CHECK_OK(kiln_otlp_encode(again, NULL, &bytes_again, &err));
    CHECK(kiln_str_eq(kiln_buf_str(&bytes), kiln_buf_str(&bytes_again)));
    kiln_buf_done(&text);
    kiln_buf_done(&bytes);
    kiln_buf_done(&bytes_again);
    kiln_batch_unref(batch);
    kiln_batch_unref(again);
    free(file);
}

CAPTURE_TEST(otlp_json, real_captures_survive_the_way_to_json_and_back)
{
    const char *path = kiln_test_data("otlp/ebpf-host.1.8.otlp");
    char folder[512], file[1024];
    struct dirent *entry;
    DIR *dir;

    if (!path)
        SKIP("no real captures here");
    check_lossless(path);
    snprintf(folder, sizeof(folder), "%s", kiln_test_data("otlp/host-mix.1.11"));
    dir = opendir(folder);
    CHECK(dir != NULL);
    while ((entry = readdir(dir))) {
        if (!kiln_str_ends(kiln_str_of(entry->d_name), KILN_STR(".otlp")))
            continue;
        snprintf(file, sizeof(file), "%s/%s", folder, entry->d_name);
        check_lossless(file);
    }
    closedir(dir);
}

TEST(otlp_json, it_is_known_by_its_names)
{
    CHECK(kiln_otlp_json_detect(KILN_STR("{\"resourceProfiles\":[]}")));
    CHECK(kiln_otlp_json_detect(KILN_STR(" {\"x\":1,\"resource_profiles\" : ")));
    CHECK(kiln_otlp_json_detect(KILN_STR("{\"dictionary\":{\"stringTable\":[\"\"]}}")));
    CHECK(!kiln_otlp_json_detect(KILN_STR("{\"dictionary\":{}}")));
    CHECK(!kiln_otlp_json_detect(KILN_STR("{\"resourceSpans\":[]}")));
    CHECK(!kiln_otlp_json_detect(KILN_STR("[\"resourceProfiles\"]")));
    CHECK(!kiln_otlp_json_detect(KILN_STR("")));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/processors/actions.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/otlp_json.h"
#include "collector/processors/actions.h"
#include "drawn.h"
#include "resolve.h"
#include "test.h"

/* The attributes of a set, sorted by key: k="text", k=4, k=true, k=4.5. */
static const char *set_text(const struct kiln_batch *batch, uint32_t set)
{
    static char text[1024];
    const struct kiln_dict *d = &batch->dict;
    struct kiln_range range = d->sets[set];
    struct kiln_str last = KILN_STR("");

    text[0] = '\0';
    for (uint32_t done = 0; done < range.n; done++) {
        const struct kiln_attr *next = NULL;
        size_t at = strlen(text);
        struct kiln_str key;

        for (uint32_t i = 0; i < range.n; i++) {
            const struct kiln_attr *a = &d->attrs[d->members[range.first + i]];

            if (kiln_str_cmp(d->strings[a->key], last) > 0 &&
                (!next || kiln_str_cmp(d->strings[a->key], d->strings[next->key]) < 0))
                next = a;
        }
        last = key = d->strings[next->key];
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s=", at ? " " : "",
                               KILN_STR_ARG(key));
        if (next->value.kind == KILN_VALUE_STRING)
            snprintf(text + at, sizeof(text) - at, "\"%.*s\"",
                     KILN_STR_ARG(d->strings[next->value.str]));
        else if (next->value.kind == KILN_VALUE_DOUBLE)
            snprintf(text + at, sizeof(text) - at, "%g", next->value.d);
        else if (next->value.kind == KILN_VALUE_BOOL)
            snprintf(text + at, sizeof(text) - at, "%s", next->value.flag ? "true" : "false");
        else
            snprintf(text + at, sizeof(text) - at, "%lld", (long long)next->value.i);
    }
    return text;
}

#define TEXT(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
static const struct kiln_header headers[] = {
    {TEXT("x-team"), TEXT("pay")},
    {TEXT("x-zone"), TEXT("eu")},
    {TEXT("x-zone"), TEXT("us")},
    {TEXT("x-empty"), TEXT("")},
};
static struct kiln_remote remote = {
    .headers = headers, .n_headers = KILN_ARRAY_LEN(headers), .address = "10.0.0.5:4711"};

static struct kiln_batch *changed(const char *yaml, struct kiln_batch *batch,
                                  int (*change)(void *, struct kiln_batch **, struct kiln_err *))
{
    struct kiln_actions actions = {0};
    struct kiln_config *config;
    struct kiln_err err = {0};

    CHECK_OK(kiln_config_parse_plain(kiln_str_of(yaml), &config, &err));
    CHECK_OK(kiln_actions_read(kiln_config_root(config), &actions, &err));
    kiln_actions_meet(&actions, &remote);
    CHECK_EQ(change(&actions, &batch, &err), 1);
    check_invariants(batch);
    kiln_actions_done(&actions);
    kiln_config_free(config);
    return batch;
}

/* What actions make of the attributes of a resource. */
static const char *acted(const char *yaml, const char *attrs)
{
    struct kiln_drawn profile = {.resource = attrs, .stacks = "main 1\n"};
    struct kiln_batch *batch =
        changed(yaml, kiln_test_batch(&profile, 1), kiln_actions_on_resources);
    const char *text = set_text(batch, batch->resources[0].attrs);

    kiln_batch_unref(batch);
    CHECK_EQ(kiln_mem_live(), 0);
    return text;
}

TEST(actions, insert_update_and_upsert_differ_in_whether_the_key_is_there)
{
    CHECK_TEXT(acted("[{key: a, value: new, action: insert}]", "a=old"), "a=\"old\"");
    CHECK_TEXT(acted("[{key: b, value: new, action: insert}]", "a=old"), "a=\"old\" b=\"new\"");
    CHECK_TEXT(acted("[{key: a, value: new, action: update}]", "a=old"), "a=\"new\"");
    CHECK_TEXT(acted("[{key: b, value: new, action: update}]", "a=old"), "a=\"old\"");
    CHECK_TEXT(acted("[{key: a, value: new, action: upsert}]", "a=old"), "a=\"new\"");
    CHECK_TEXT(acted("[{key: b, value: new, action: upsert}]", "a=old"), "a=\"old\" b=\"new\"");
}

TEST(actions, values_have_the_type_they_look_like)
{
    CHECK_TEXT(acted("[{key: a, value: 7, action: upsert}, {key: b, value: '7', action: upsert},"
                     " {key: c, value: true, action: upsert}, {key: d, value: 1.5, action: upsert},"
                     " {key: e, value: 1.2.3, action: upsert}]",
                     "z=1"),
               "a=7 b=\"7\" c=true d=1.5 e=\"1.2.3\" z=1");
}

TEST(actions, a_value_may_be_another_attributes)
{
    CHECK_TEXT(acted("[{key: b, from_attribute: a, action: insert}]", "a=7"), "a=7 b=7");
    CHECK_TEXT(acted("[{key: b, from_attribute: x, action: insert}]", "a=7"), "a=7");
    CHECK_TEXT(acted("[{key: b, from_attribute: x, default_value: y, action: insert}]", "a=7"),
               "a=7 b=\"y\"");
}

TEST(actions, a_value_may_be_of_who_sent_it)
{
    CHECK_TEXT(acted("[{key: b, from_context: metadata.X-Team, action: insert}]", "a=7"),
               "a=7 b=\"pay\"");
    CHECK_TEXT(acted("[{key: b, from_context: metadata.x-zone, action: upsert}]", "a=7"),
               "a=7 b=\"eu;us\"");
    CHECK_TEXT(acted("[{key: b, from_context: metadata.x-empty, action: upsert}]", "a=7"),
               "a=7 b=\"\"");
    CHECK_TEXT(acted("[{key: b, from_context: metadata.none, action: upsert}]", "a=7"), "a=7");
    CHECK_TEXT(acted("[{key: a, from_context: metadata.x-team, action: insert}]", "a=7"), "a=7");
    CHECK_TEXT(acted("[{key: b, from_context: client.address, action: insert}]", "a=7"),
               "a=7 b=\"10.0.0.5\"");
    remote.address = "[::1]:80";
    CHECK_TEXT(acted("[{key: b, from_context: client.address, action: insert}]", "a=7"),
               "a=7 b=\"::1\"");
    remote.address = NULL;
    CHECK_TEXT(acted("[{key: b, from_context: client.address, action: insert}]", "a=7"), "a=7");
    remote.address = "10.0.0.5:4711";
}

TEST(actions, a_value_may_be_the_name_that_was_authenticated)
{
    static const char yaml[] = "[{key: b, from_context: auth.username, action: insert}]";

    CHECK_TEXT(acted(yaml, "a=7"), "a=7");
    remote.authorization = KILN_STR("basic YW5uYTpzOnQ="); /* anna:s:t */
    CHECK_TEXT(acted(yaml, "a=7"), "a=7 b=\"anna\"");
    remote.authorization = KILN_STR("Bearer YW5uYTpzOnQ=");
    CHECK_TEXT(acted(yaml, "a=7"), "a=7");
    remote.authorization = KILN_STR("Basic !");
    CHECK_TEXT(acted(yaml, "a=7"), "a=7");
    remote.authorization = KILN_STR_NONE;
}

TEST(actions, delete_takes_a_key_or_a_pattern)
{
    CHECK_TEXT(acted("[{key: a, action: delete}]", "a=1,ab=2,b=3"), "ab=2 b=3");
    CHECK_TEXT(acted("[{pattern: ^a, action: delete}]", "a=1,ab=2,b=3,ac=4"), "b=3");
}

TEST(actions, hash_is_the_sha_256_of_the_value)
{
    CHECK_TEXT(acted("[{key: a, action: hash}]", "a=abc,b=1"),
               "a=\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\" b=1");
}

TEST(actions, a_list_that_cannot_be_hashed_is_not_there_to_be_read)
{
    static const char request[] =
        "{\"resourceProfiles\": [{\"resource\": {\"attributes\": [{\"key\": \"a\", \"value\":"
        " {\"arrayValue\": {\"values\": [{\"stringValue\": \"secret\"}]}}}]}, \"scopeProfiles\":"
        " [{\"profiles\": [{\"samples\": [{\"values\": [\"1\"]}]}]}]}], \"dictionary\": {}}";
    struct kiln_builder *b;
    struct kiln_batch *batch;

    CHECK_OK(kiln_builder_new(NULL, &b));
    CHECK_OK(kiln_otlp_json_decode(kiln_str_of(request), b, NULL));
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    batch = changed("[{key: a, action: hash}]", batch, kiln_actions_on_resources);
    CHECK_TEXT(set_text(batch, batch->resources[0].attrs), "a=\"\"");
    kiln_batch_unref(batch);
}

TEST(actions, extract_makes_attributes_of_named_groups)
{
    CHECK_TEXT(acted("[{key: u, pattern: '^(?P<scheme>[a-z]+)://(?P<host>[^/]+)', "
                     "action: extract}]",
                     "u=http://kiln/x"),
               "host=\"kiln\" scheme=\"http\" u=\"http://kiln/x\"");
    CHECK_TEXT(acted("[{key: u, pattern: '^(?P<scheme>[a-z]+)://', action: extract}]", "u=x"),
               "u=\"x\"");
}

TEST(actions, convert_changes_the_type_where_it_can)
{
    CHECK_TEXT(acted("[{key: a, converted_type: string, action: convert}]", "a=7"), "a=\"7\"");
    CHECK_TEXT(acted("[{key: a, converted_type: int, action: convert}]", "a=x7"), "a=\"x7\"");
    CHECK_TEXT(acted("[{key: a, converted_type: double, action: convert}]", "a=7"), "a=7");
}

/* Statement 74: an edit to one does not change what others refer to. */
TEST(actions, on_samples_leave_resources_and_on_resources_leave_samples)
{
    struct kiln_drawn profile = {
        .resource = "env=dev", .stacks = "main 1 env=dev\n- 2 n=1\n", .attrs = "env=dev"};
    const char *yaml = "[{key: env, value: prod, action: update}]";
    struct kiln_batch *batch = changed(yaml, kiln_test_batch(&profile, 1), kiln_actions_on_samples);

    CHECK_TEXT(set_text(batch, batch->samples[0].attrs), "env=\"prod\"");
    CHECK_TEXT(set_text(batch, batch->samples[1].attrs), "n=1");
    CHECK_TEXT(set_text(batch, batch->resources[0].attrs), "env=\"dev\"");
    CHECK_TEXT(set_text(batch, batch->profiles[0].attrs), "env=\"dev\"");
    kiln_batch_unref(batch);
    batch = changed(yaml, kiln_test_batch(&profile, 1), kiln_actions_on_resources);
    CHECK_TEXT(set_text(batch, batch->samples[0].attrs), "env=\"dev\"");
    CHECK_TEXT(set_text(batch, batch->resources[0].attrs), "env=\"prod\"");
    kiln_batch_unref(batch);
}

static const char *refused(const char *yaml)
{
    static char text[512];
    struct kiln_actions actions = {0};
    struct kiln_config *config;
    struct kiln_err err = {0};

    CHECK_OK(kiln_config_parse_plain(kiln_str_of(yaml), &config, &err));
    CHECK(kiln_actions_read(kiln_config_root(config), &actions, &err) < 0);
    snprintf(text, sizeof(text), "%s: %s", err.where, err.text);
    kiln_actions_done(&actions);
    kiln_config_free(config);
    return text;
}

TEST(actions, mistakes_say_where_they_are)
{
    CHECK_TEXT(refused("- {key: a, action: put}"),
               "line 1, column 3: action is insert, update, upsert, delete, hash, extract or "
               "convert");
    CHECK_TEXT(refused("- {action: delete}"), "line 1, column 3: this action has no key");
    CHECK_TEXT(refused("- {key: a, action: upsert}"),
               "line 1, column 3: upsert needs value, from_attribute or from_context");
    CHECK_TEXT(refused("- {key: a, action: insert, from_context: client.address, value: 1}"),
               "line 1, column 3: a value comes from one place: value, from_attribute or "
               "from_context");
    CHECK_TEXT(refused("- {key: a, action: extract, pattern: (x)}"),
               "line 1, column 3: extract needs a pattern with named groups: (?P<name>...)");
    CHECK_TEXT(refused("- {key: a, action: insert, from_context: x}"),
               "line 1, column 42: from_context: client.address, auth.username (of basicauth) and "
               "metadata.NAME (with the receiver's include_metadata) are known, not \"x\"");
    CHECK(strstr(refused("- {key: a, action: insert, from_context: auth.raw}"), "auth.username"));
}

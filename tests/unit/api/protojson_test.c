/* SPDX-License-Identifier: Apache-2.0 */
#include "api/protojson.h"

#include "api/pyroscope_messages.h"
#include "base/mem.h"
#include "starved.h"
#include "test.h"

/* A request read from JSON; texts are in `bytes`, lists in `arena`. */
struct kit {
    struct kiln_budget budget;
    struct kiln_arena arena;
    struct kiln_buf bytes;
    struct kiln_err err;
    struct kiln_pyro_request request;
};

static void start(struct kit *kit)
{
    *kit = (struct kit){.budget.limit = 4 << 20};
    kiln_arena_init(&kit->arena, &kit->budget);
    kiln_buf_init(&kit->bytes, 4 << 20);
}

static int read_json(struct kit *kit, const struct kiln_message *message, const char *json)
{
    int r;

    start(kit);
    r = kiln_protojson_read(message, kiln_str_of(json), &kit->bytes, &kit->err);
    if (r == 0)
        r = kiln_message_read(message, kiln_buf_str(&kit->bytes), &kit->arena, &kit->request,
                              &kit->err);
    return r;
}

static void stop(struct kit *kit)
{
    kiln_arena_done(&kit->arena);
    kiln_buf_done(&kit->bytes);
}

static int code_of(const struct kiln_message *message, const char *json)
{
    struct kit kit;
    int r = read_json(&kit, message, json);

    CHECK(r == 0 || kit.err.code == r);
    stop(&kit);
    return r;
}

TEST(protojson, numbers_come_as_numbers_or_as_text)
{
    struct kit kit;

    CHECK_OK(read_json(&kit, &kiln_pyro_types_request,
                       "{\"start\":1772366400000,\"end\":\"1772366400001\"}"));
    CHECK_EQ(kit.request.start_ms, 1772366400000);
    CHECK_EQ(kit.request.end_ms, 1772366400001);
    stop(&kit);
}

TEST(protojson, fields_have_two_names)
{
    struct kit kit;

    CHECK_OK(read_json(&kit, &kiln_pyro_stacks_request,
                       "{\"profile_typeID\":\"a\",\"labelSelector\":\"b\",\"max_nodes\":7}"));
    CHECK_STR(kit.request.type, "a");
    CHECK_STR(kit.request.selector, "b");
    CHECK_EQ(kit.request.max_nodes, 7);
    stop(&kit);
    CHECK_OK(read_json(&kit, &kiln_pyro_stacks_request,
                       "{\"profileTypeID\":\"a\",\"label_selector\":\"b\",\"maxNodes\":\"7\"}"));
    CHECK_STR(kit.request.type, "a");
    CHECK_STR(kit.request.selector, "b");
    CHECK_EQ(kit.request.max_nodes, 7);
    stop(&kit);
}

TEST(protojson, what_nobody_knows_is_passed_over)
{
    struct kit kit;

    CHECK_OK(
        read_json(&kit, &kiln_pyro_timeline_request,
                  "{\"new\":{\"a\":[1,{}]},\"step\":1.5,\"exemplarType\":\"EXEMPLAR_TYPE_NEW\","
                  "\"groupBy\":null}"));
    CHECK(kit.request.step_s == 1.5);
    CHECK_EQ(kit.request.exemplars, 0);
    CHECK_EQ(kit.request.group_by.n, 0);
    stop(&kit);
}

TEST(protojson, enums_come_by_name_or_number)
{
    struct kit kit;

    CHECK_OK(read_json(&kit, &kiln_pyro_stacks_request, "{\"format\":\"PROFILE_FORMAT_TREE\"}"));
    CHECK_EQ(kit.request.format, KILN_PYRO_TREE);
    stop(&kit);
    CHECK_OK(read_json(&kit, &kiln_pyro_stacks_request, "{\"format\":4}"));
    CHECK_EQ(kit.request.format, KILN_PYRO_PPROF);
    stop(&kit);
}

TEST(protojson, nested_messages_are_flattened)
{
    struct kit kit;

    CHECK_OK(
        read_json(&kit, &kiln_pyro_stacks_request,
                  "{\"stackTraceSelector\":{\"callSite\":[{\"name\":\"main\"},{\"name\":\"a\"}],"
                  "\"goPgo\":{\"keepLocations\":5},"
                  "\"frameFilter\":{\"excludeFunctionNames\":[\"x\"]}}}"));
    CHECK_EQ(kit.request.call_site.n, 2);
    CHECK_STR(kit.request.call_site.items[0], "main");
    CHECK_STR(kit.request.call_site.items[1], "a");
    CHECK(kit.request.go_pgo);
    CHECK_EQ(kit.request.keep_locations, 5);
    CHECK_EQ(kit.request.without.n, 1);
    CHECK_EQ(kit.request.with.n, 0);
    stop(&kit);
}

TEST(protojson, both_sides_of_a_diff_have_structs_of_their_own)
{
    struct kit kit;

    CHECK_OK(read_json(&kit, &kiln_pyro_diff_request,
                       "{\"left\":{\"start\":1,\"maxNodes\":5},\"right\":{\"start\":2}}"));
    CHECK_EQ(kit.request.left->start_ms, 1);
    CHECK_EQ(kit.request.left->max_nodes, 5);
    CHECK_EQ(kit.request.right->start_ms, 2);
    CHECK_EQ(kit.request.right->max_nodes, 0);
    stop(&kit);
}

TEST(protojson, a_long_nested_message_has_a_long_length)
{
    struct kiln_buf json;
    struct kit kit;

    kiln_buf_init(&json, 1 << 20);
    kiln_buf_puts(&json, "{\"left\":{\"matchers\":[],\"labelSelector\":\"");
    for (int i = 0; i < 40000; i++)
        kiln_buf_putc(&json, 'x');
    kiln_buf_puts(&json, "\",\"start\":3}}");
    kiln_buf_putc(&json, '\0');
    CHECK_OK(read_json(&kit, &kiln_pyro_diff_request, json.ptr));
    CHECK_EQ(kit.request.left->selector.len, 40000);
    CHECK_EQ(kit.request.left->start_ms, 3);
    stop(&kit);
    kiln_buf_done(&json);
}

TEST(protojson, what_is_wrong_is_refused)
{
    CHECK_EQ(code_of(&kiln_pyro_types_request, "{\"start\":\"soon\"}"), KILN_E_MALFORMED);
    CHECK(code_of(&kiln_pyro_types_request, "{\"start\":1.5}") < 0);
    CHECK(code_of(&kiln_pyro_names_request, "{\"matchers\":\"{}\"}") < 0);
    CHECK(code_of(&kiln_pyro_values_request, "{\"name\":[\"a\"]}") < 0);
    CHECK(code_of(&kiln_pyro_values_request, "{\"name\":\"a\"} x") < 0);
    CHECK(code_of(&kiln_pyro_values_request, "[]") < 0);
    CHECK(code_of(&kiln_pyro_values_request, "") < 0);
    CHECK_OK(code_of(&kiln_pyro_values_request, "{}"));
}

TEST(protojson, lists_have_an_end)
{
    struct kiln_buf json;

    kiln_buf_init(&json, 1 << 20);
    kiln_buf_puts(&json, "{\"matchers\":[\"a\"");
    for (int i = 0; i < KILN_TEXTS_MAX; i++)
        kiln_buf_puts(&json, ",\"\"");
    kiln_buf_puts(&json, "]}");
    kiln_buf_putc(&json, '\0');
    CHECK_EQ(code_of(&kiln_pyro_names_request, json.ptr), KILN_E_LIMIT);
    kiln_buf_done(&json);
}

TEST(protojson, protobuf_of_another_wire_type_is_unknown)
{
    static const char bytes[] = {0x0a, 1, 'x', 0x10, 5}; /* start as text, end = 5 */
    struct kit kit;

    start(&kit);
    CHECK_OK(kiln_message_read(&kiln_pyro_types_request, (struct kiln_str){bytes, sizeof(bytes)},
                               &kit.arena, &kit.request, &kit.err));
    CHECK_EQ(kit.request.start_ms, 0);
    CHECK_EQ(kit.request.end_ms, 5);
    stop(&kit);
}

TEST(protojson, texts_must_be_utf8)
{
    static const char bytes[] = {0x0a, 1, (char)0xff};
    struct kit kit;

    start(&kit);
    CHECK_EQ(kiln_message_read(&kiln_pyro_values_request, (struct kiln_str){bytes, sizeof(bytes)},
                               &kit.arena, &kit.request, &kit.err),
             KILN_E_UTF8);
    CHECK_TEXT(kit.err.where, "name");
    stop(&kit);
}

static const char *json_of(const struct kiln_message *message, const char *bytes, size_t len)
{
    static char text[1024];
    struct kiln_buf out;

    kiln_buf_init(&out, sizeof(text) - 1);
    CHECK_OK(kiln_protojson_write(message, (struct kiln_str){bytes, len}, &out));
    memcpy(text, out.ptr, out.len);
    text[out.len] = '\0';
    kiln_buf_done(&out);
    return text;
}

TEST(protojson, answers_become_json)
{
    static const char stats[] = {0x08, 1, 0x10, 2, 0x18, 3};
    static const char flame[] = {0x0a, 22, 0x0a, 5, 't', 'o', 't', 'a', 'l',  0x0a, 1,    'a',
                                 0x12, 6,  0x0a, 4, 0,   5,   0,   0,   0x18, 5,    0x20, 0};
    static const char tree[] = {0x12, 3, 'a', 'b', 'c'};

    CHECK_TEXT(json_of(&kiln_pyro_stats_answer, stats, sizeof(stats)),
               "{\"dataIngested\":true,\"oldestProfileTime\":\"2\",\"newestProfileTime\":\"3\"}");
    CHECK_TEXT(json_of(&kiln_pyro_stacks_answer, flame, sizeof(flame)),
               "{\"flamegraph\":{\"names\":[\"total\",\"a\"],\"levels\":[{\"values\":[\"0\",\"5\","
               "\"0\",\"0\"]}],\"total\":\"5\",\"maxSelf\":\"0\"}}");
    CHECK_TEXT(json_of(&kiln_pyro_stacks_answer, tree, sizeof(tree)), "{\"tree\":\"YWJj\"}");
    CHECK_TEXT(json_of(&kiln_pyro_nothing, NULL, 0), "{}");
}

TEST(protojson, no_memory_is_an_error)
{
    struct kiln_starved s = {0};
    struct kit kit;

    while (kiln_test_starve(&s)) {
        s.r = read_json(&kit, &kiln_pyro_diff_request,
                        "{\"left\":{\"spanSelector\":[\"a\\n\",\"b\"],\"profileTypeID\":\"c\"}}");
        CHECK(s.r == 0 || kit.err.code == s.r);
        stop(&kit);
    }
    CHECK(s.n > 3);
}

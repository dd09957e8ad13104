/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are sent to be looked at: POST /api/v1/files. */
#include "api/native_int.h"
#include "api_kit.h"
#include "test.h"

#define FOLDED "main;parse;read 3\nmain;parse 2\nmain;write 1\n"

static struct api_kit kit;

static void start(size_t memory)
{
    api_kit_init(&kit, memory, kiln_api_add_native);
}

static const char *open_file(const char *params, const char *body)
{
    char target[256];

    snprintf(target, sizeof(target), "/api/v1/files%s%s", params[0] ? "?" : "", params);
    return api_kit_send(&kit, "POST", target, body);
}

static bool says(const char *text, const char *part)
{
    if (!strstr(text, part))
        printf("%s\nis not in\n%s\n", part, text);
    return strstr(text, part) != NULL;
}

TEST(native_open, a_file_is_answered_as_a_query_is)
{
    const char *text;

    start(0);
    text = open_file("name=cpu.folded", FOLDED);
    CHECK_EQ(api_kit_status(), 200);
    API_GOLDEN("native-open.json", text);
    text = open_file("name=cpu.folded&format=top&limit=1", FOLDED);
    CHECK(says(text, "\"rows\":[{\"name\":\"read\""));
    CHECK(says(text, "\"code\":\"rows_cut\""));
    CHECK(!strstr(text, "\"flamegraph\""));
    text = open_file("format=flamegraph&nodes=2", FOLDED);
    CHECK(says(text, "\"name\":[0,1,2,3,3],\"depth\":[0,1,2,3,2],\"self\":[0,0,2,3,1]"));
    CHECK(says(text, "\"code\":\"tree_folded\""));
    CHECK(!strstr(text, "\"top\""));
    api_kit_done(&kit);
}

TEST(native_open, functions_that_were_inlined_wherever_they_ran_are_told)
{
    const char *text;

    start(0);
    text = open_file("format=flamegraph", "main;sum_[i] 3\nmain;add_[i] 2\nadd 1\n");
    CHECK(says(text, "\"names\":[\"total\",\"add\",\"main\",\"sum\"]"));
    CHECK(says(text, "\"inlined\":[3]"));
    api_kit_done(&kit);
}

TEST(native_open, nothing_of_a_file_is_kept)
{
    start(0);
    open_file("name=cpu.folded", FOLDED);
    CHECK_EQ(api_kit_status(), 200);
    CHECK_TEXT(api_kit_get(&kit, "/api/v1/services"), "{\"services\":[],\"all\":0}\n");
    CHECK(says(api_kit_get(&kit, "/api/v1/types"), "\"types\":[]"));
    api_kit_done(&kit);
}

/* Two profiles of a drawing program: one by time, one by number. */
#define TWO_TYPES                                                                                  \
    "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":{\"frames\":[" \
    "{\"name\":\"main\",\"file\":\"m.c\",\"line\":3},{\"name\":\"parse\"}]},\"profiles\":["        \
    "{\"type\":\"sampled\",\"name\":\"a\",\"unit\":\"nanoseconds\",\"startValue\":0,"              \
    "\"endValue\":9,\"samples\":[[0,1],[0]],\"weights\":[7,2]},"                                   \
    "{\"type\":\"sampled\",\"name\":\"b\",\"unit\":\"bytes\",\"startValue\":0,\"endValue\":5,"     \
    "\"samples\":[[0,1]],\"weights\":[5]}]}"

TEST(native_open, every_type_of_a_file_is_listed_and_may_be_asked_for)
{
    const char *text;

    start(0);
    text = open_file("format=top", TWO_TYPES);
    CHECK_EQ(api_kit_status(), 200);
    CHECK(says(text, "\"format\":\"speedscope\""));
    CHECK(says(text, "\"id\":\"time:time:nanoseconds::\""));
    CHECK(says(text, "\"unit\":\"bytes\",\"period_type\":\"\",\"period_unit\":\"\","
                     "\"kind\":\"flow\",\"total\":5}],\"total\":9"));
    CHECK_TEXT(open_file("format=collapsed&type=space:space:bytes::", TWO_TYPES), "main;parse 5\n");
    CHECK(says(open_file("format=top&type=space", TWO_TYPES), "],\"total\":5,"));
    CHECK(says(open_file("type=bytes", TWO_TYPES), "there is time:nanoseconds, space:bytes"));
    CHECK_EQ(api_kit_status(), 404);
    api_kit_done(&kit);
}

TEST(native_open, a_file_comes_back_in_another_format)
{
    static const struct {
        const char *format, *type, *begins;
    } files[] = {
        {"collapsed", "text/plain; charset=utf-8", "main;parse;read 3\n"},
        {"speedscope", "application/json", "{\"$schema\":\"https://www.speedscope.app"},
        {"otlp-json", "application/json", "{\"resourceProfiles\""},
        {"dot", "text/vnd.graphviz; charset=utf-8", "digraph \"Samples of my file"},
        {"svg", "image/svg+xml", "<svg "},
        {"pprof", "application/vnd.google.protobuf+gzip", "\x1f\x8b"},
        {"otlp", "application/x-protobuf", "\n"},
    };

    start(0);
    for (size_t i = 0; i < KILN_ARRAY_LEN(files); i++) {
        char params[64];
        const char *text;

        snprintf(params, sizeof(params), "name=my%%20file&format=%s", files[i].format);
        text = open_file(params, FOLDED);
        CHECK_EQ(api_kit_status(), 200);
        CHECK(strncmp(text, files[i].begins, strlen(files[i].begins)) == 0);
        CHECK_TEXT(api_kit_header("content-type"), files[i].type);
    }
    api_kit_done(&kit);
}

TEST(native_open, what_is_wrong_with_a_file_is_said_with_its_place)
{
    static const struct {
        const char *params, *body;
        int status;
        const char *says;
    } bad[] = {
        {"", "", 400, "the input is empty"},
        {"", "no profile", 400, "this is no profile in any format that Kiln reads"},
        {"", "{\"resourceProfiles\":[{\"scopeProfiles\":7}]}", 400, "scopeProfiles"},
        {"", "{\"resourceProfiles\":[]}", 400, "there are no profiles in it"},
        {"format=tree", FOLDED, 400, "format: there is no \\\"tree\\\"; one of json, flamegraph"},
        {"query=x", FOLDED, 400, "query: no such parameter; known are format, nodes, limit"},
        {"type=cpu", FOLDED, 404, "type: no profile has the sample type \\\"cpu\\\""},
    };

    start(0);
    for (size_t i = 0; i < KILN_ARRAY_LEN(bad); i++) {
        const char *text = open_file(bad[i].params, bad[i].body);

        CHECK(says(text, bad[i].says));
        CHECK_EQ(api_kit_status(), bad[i].status);
    }
    api_kit_done(&kit);
}

TEST(native_open, a_file_that_does_not_fit_is_refused_and_its_memory_is_given_back)
{
    struct kiln_buf text;

    start((size_t)8 << 20);
    kiln_buf_init(&text, (size_t)16 << 20);
    for (int i = 0; i < 40000; i++)
        kiln_buf_printf(&text, "main;f%d;g%d;h%d;i%d;j%d 1\n", i, i, i, i, i);
    kiln_buf_putc(&text, '\0');
    CHECK_OK(text.error);
    CHECK(says(open_file("", text.ptr), "a file like this may take 3 MiB here"));
    CHECK_EQ(api_kit_status(), 413);
    kiln_buf_done(&text);
    open_file("", FOLDED);
    CHECK_EQ(api_kit_status(), 200);
    CHECK_EQ(atomic_load(&kit.pool.leashed), 0);
    api_kit_done(&kit);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own API as a client sees it, over a drawn store.  Whole answers are in
 * tests/golden/api/native-*.json; KILN_UPDATE_GOLDEN=1 writes them anew.
 */
#include <math.h>
#include <stdlib.h>

#include "api/native_int.h"
#include "api_kit.h"
#include "test.h"

#define MINUTE API_KIT_MINUTE
#define TRACE  "00000000000000000000000000000007"
#define CPU    "process_cpu:cpu:nanoseconds"
#define ORDERS CPU "%7Bservice_name=%22order-service%22%7D"

static struct api_kit kit;

static void start_empty(void)
{
    api_kit_init(&kit, 0, kiln_api_add_native);
}

/* Two versions of a service, another service, a heap; some of it in a block. */
static void start(void)
{
    start_empty();
    api_kit_put_cpu(&kit,
                    "main;parse@json.go:12;read 300000000\nmain;parse@json.go:12 500000000\n"
                    "main;write 200000000\n",
                    50 * MINUTE, "service.name=order-service,service.version=1.0", 1);
    CHECK_OK(kiln_store_flush(kit.store.engine, NULL));
    api_kit_put_cpu(
        &kit,
        "main;parse@json.go:12;read 900000000 ^7.2\nmain;parse@json.go:12 500000000 ^7.3\n"
        "main;write 200000000\n",
        10 * MINUTE, "service.name=order-service,service.version=1.1", 2);
    api_kit_put_cpu(&kit, "main;serve 100000000\n", 20 * MINUTE, "service.name=cart", 3);
    api_kit_put_heap(&kit, "main;cache 1000\n", 20 * MINUTE, "service.name=order-service");
    api_kit_put_heap(&kit, "main;cache 3000\n", 10 * MINUTE, "service.name=order-service");
}

static void stop(void)
{
    api_kit_done(&kit);
}

static const char *get(const char *target)
{
    return api_kit_get(&kit, target);
}

static bool says(const char *text, const char *part)
{
    if (!strstr(text, part))
        printf("%s\nis not in\n%s\n", part, text);
    return strstr(text, part) != NULL;
}

#define BY_SERVICE "/api/v1/query?query=" CPU "&format=series&step=10m&by=service_name"

/* ---- whole answers ---- */

#define GOLDEN_GET(name, target)                                                                   \
    do {                                                                                           \
        const char *text_ = get(target);                                                           \
        CHECK_EQ(api_kit_status(), 200);                                                           \
        API_GOLDEN("native-" name ".json", text_);                                                 \
    } while (0)

TEST(native, a_query_is_a_flame_graph_and_the_top_functions)
{
    start();
    GOLDEN_GET("query", "/api/v1/query?query=" ORDERS "&from=now-1h&until=now");
    CHECK_TEXT(api_kit_header("content-type"), "application/json");
    CHECK_TEXT(api_kit_header("cache-control"), "no-store");
    GOLDEN_GET("query-level", "/api/v1/query?query=inuse_space");
    GOLDEN_GET("query-folded", "/api/v1/query?query=" ORDERS "&nodes=2&limit=1");
    GOLDEN_GET("query-top", "/api/v1/query?query=" ORDERS "&format=top&function=read");
    GOLDEN_GET("query-flamegraph",
               "/api/v1/query?query=" ORDERS "&format=flamegraph&without=%5Eread$&exact=1");
    stop();
}

TEST(native, a_query_tells_which_functions_were_inlined_wherever_they_ran)
{
    static const char target[] =
        "/api/v1/query?query=" CPU "%7Bservice_name=%22sums%22%7D&format=flamegraph";

    start_empty();
    api_kit_put_cpu(&kit, "main>sum 3\nmain>add 2\nadd 1\n", 10 * MINUTE, "service.name=sums", 1);
    CHECK(says(get(target), "\"names\":[\"total\",\"add\",\"main\",\"sum\"]"));
    CHECK(says(get(target), "\"inlined\":[3]"));
    CHECK_OK(kiln_store_flush(kit.store.engine, NULL));
    CHECK(says(get(target), "\"inlined\":[3]"));
    stop();
}

TEST(native, a_query_is_a_series_over_time)
{
    start();
    GOLDEN_GET("query-series", "/api/v1/query?query=" CPU
                               "&format=series&step=10m&by=service_name&by=service.version");
    GOLDEN_GET("query-series-cut",
               "/api/v1/query?query=" CPU "&format=series&step=600&by=service_name&limit=1");
    stop();
}

TEST(native, a_series_without_points_is_in_the_rest_and_in_the_total)
{
    static const char *const total = "\"total\":2700000000,";
    const char *text;

    start();
    text = get(BY_SERVICE);
    CHECK(says(text, total));
    CHECK(strstr(text, "\"rest\"") == NULL);
    text = get(BY_SERVICE "&points=1");
    CHECK(says(text, total));
    CHECK(says(text, "{\"service_name\":\"cart\"},\"sum\":100000000,\"observations\":10,"
                     "\"bucket\":[],\"value\":[],\"count\":[]}"));
    CHECK(says(text, "\"rest\":{\"series\":1,\"sum\":100000000,\"bucket\":[4],"
                     "\"value\":[100000000],\"count\":[10]},\"all\":2"));
    text = get(BY_SERVICE "&limit=1&points=0");
    CHECK(says(text, total));
    CHECK(says(text, "\"rest\":{\"series\":2,\"sum\":2700000000,\"bucket\":[1,4,5],"));
    CHECK(strstr(text, "cart") == NULL);
    stop();
}

TEST(native, rates_are_over_the_time_from_the_first_profile_to_the_last)
{
    start();
    CHECK(says(get("/api/v1/query?query=" ORDERS "&format=series"), "\"covered_seconds\":20,"));
    CHECK(says(get("/api/v1/query?query=" ORDERS "&format=series"), "\"rate_seconds\":2400,"));
    CHECK(says(get("/api/v1/query?query=" ORDERS "&format=series&until=now-40m"),
               "\"rate_seconds\":10,"));
    stop();
}

TEST(native, a_question_may_begin_with_1970)
{
    start();
    CHECK(
        says(get("/api/v1/query?query=" ORDERS "&format=series&step=1d&from=1970-01-01T00:00:00Z"),
             "\"from\":\"1970-01-01T00:00:00Z\""));
    CHECK(
        says(get("/api/v1/query?query=" ORDERS "&format=series&step=1d&from=1970-01-01T00:00:00Z"),
             "\"start\":\"1970-01-01T00:00:00Z\""));
    stop();
}

TEST(native, a_diff_names_windows_selectors_versions_or_deployments)
{
    start();
    GOLDEN_GET("diff", "/api/v1/diff?query=" ORDERS "&left_until=now-30m&right_from=now-30m");
    GOLDEN_GET("diff-versions",
               "/api/v1/diff?query=" ORDERS "&left_version=1.0&right_version=1.1&format=top");
    GOLDEN_GET("diff-deployments", "/api/v1/diff?query=" ORDERS
                                   "&left_deployment=1.0&right_deployment=1.1&normalize=total"
                                   "&format=flamegraph");
    get("/api/v1/diff?query=" ORDERS "&left_deployment=9&right_deployment=1.1");
    CHECK_EQ(api_kit_status(), 404);
    stop();
}

TEST(native, what_is_there_is_listed)
{
    start();
    GOLDEN_GET("labels", "/api/v1/labels");
    GOLDEN_GET("values", "/api/v1/labels/service_name/values?query=" CPU);
    GOLDEN_GET("series", "/api/v1/series");
    GOLDEN_GET("series-chosen", "/api/v1/series?query=" CPU "%7Bservice_name=%22cart%22%7D");
    GOLDEN_GET("series-by", "/api/v1/series?by=service_name&by=service.version&query=" CPU);
    GOLDEN_GET("types", "/api/v1/types");
    GOLDEN_GET("deployments", "/api/v1/deployments");
    GOLDEN_GET("findings", "/api/v1/findings");
    stop();
}

TEST(native, services_have_bytes_rates_and_times)
{
    const char *text;

    start();
    text = get("/api/v1/services");
    CHECK(says(text, "{\"services\":[{\"name\":\"cart\",\"bytes\":0,\"profiles\":1,"));
    CHECK(says(text, "\"name\":\"order-service\",\"bytes\":"));
    CHECK(says(text, "\"oldest\":\"2026-03-01T11:10:00Z\",\"newest\":\"2026-03-01T11:50:00Z\""));
    stop();
}

TEST(native, values_and_services_are_searched_and_counted)
{
    const char *text;

    start();
    text = get("/api/v1/labels/service_name/values?match=ORDER");
    CHECK(says(text, "\"value\":\"order-service\""));
    CHECK(says(text, "],\"all\":1,\"truncated\":false}"));
    CHECK(strstr(text, "cart") == NULL);
    text = get("/api/v1/labels/service_name/values?limit=1");
    CHECK(says(text, "],\"all\":2,\"truncated\":true}"));
    CHECK(strstr(text, "order-service") == NULL);
    text = get("/api/v1/services?match=r&limit=1");
    CHECK(says(text, "\"name\":\"cart\""));
    CHECK(says(text, "],\"all\":2}"));
    CHECK(strstr(text, "order-service") == NULL);
    text = get("/api/v1/services?service=order");
    CHECK_TEXT(text, "{\"services\":[],\"all\":0}\n");
    CHECK(says(get("/api/v1/services?service=cart"), "],\"all\":1}"));
    stop();
}

TEST(native, single_profiles_are_listed_and_given_as_files)
{
    start();
    GOLDEN_GET("profiles", "/api/v1/profiles?query=" CPU "&limit=2");
    GOLDEN_GET("profiles-largest", "/api/v1/profiles?query=" CPU "&order=largest&function=serve");
    CHECK_TEXT(get("/api/v1/profiles/00000000000000000000000000000003?format=collapsed"),
               "main;serve 100000000\n");
    get("/api/v1/profiles/00000000-0000-0000-0000-000000000003");
    CHECK_EQ(api_kit_status(), 200);
    CHECK_TEXT(api_kit_header("content-type"), "application/vnd.google.protobuf+gzip");
    CHECK_TEXT(api_kit_header("content-disposition"), "attachment; filename=\"profile.pb.gz\"");
    stop();
}

TEST(native, spans_are_found_by_trace_by_id_and_by_function)
{
    start();
    GOLDEN_GET("spans", "/api/v1/spans?query=" ORDERS "&trace_id=" TRACE);
    GOLDEN_GET("spans-function", "/api/v1/spans?query=" ORDERS "&function=read&order=largest");
    GOLDEN_GET("spans-traces", "/api/v1/spans?query=" ORDERS "&by=trace&with=parse");
    stop();
}

TEST(native, slow_span_windows_get_the_profiles_they_overlap_and_their_functions)
{
    const char *text;

    start();
    text = api_kit_send(
        &kit, "POST", "/api/v1/spans",
        "{\"query\":\"process_cpu:cpu:nanoseconds{service_name=\\\"order-service\\\"}\","
        "\"windows\":[{\"from\":\"2026-03-01T11:50:03.5Z\","
        "\"until\":\"2026-03-01T11:50:04Z\",\"name\":\"POST /orders\"},"
        "{\"from\":1772366000,\"until\":1772366001},"
        "{\"from\":\"now-11m\",\"until\":\"now-9m\",\"trace_id\":\"" TRACE "\"}]}");
    CHECK_EQ(api_kit_status(), 200);
    API_GOLDEN("native-windows.json", text);
    stop();
}

TEST(native, samples_with_timestamps_count_in_the_window_they_lie_in)
{
    char stacks[256];
    const char *text;

    start_empty();
    snprintf(stacks, sizeof(stacks), "main;early 10000000@%llu\nmain;slow 10000000@%llu\n",
             (unsigned long long)(API_KIT_NOW - 10 * MINUTE + KILN_NS_PER_S),
             (unsigned long long)(API_KIT_NOW - 10 * MINUTE + 5 * KILN_NS_PER_S));
    api_kit_put_cpu(&kit, stacks, 10 * MINUTE, "service.name=shop", 1);
    text = api_kit_send(&kit, "POST", "/api/v1/spans",
                        "{\"query\":\"process_cpu:cpu:nanoseconds\",\"windows\":[{\"from\":"
                        "\"2026-03-01T11:50:04Z\",\"until\":\"2026-03-01T11:50:06Z\"}]}");
    CHECK_EQ(api_kit_status(), 200);
    CHECK(says(text, "\"name\":\"slow\""));
    CHECK(!strstr(text, "\"name\":\"early\""));
    CHECK(says(text, "\"total\":10000000,"));
    stop();
}

TEST(native, a_function_has_a_share_of_each_bucket)
{
    start();
    GOLDEN_GET("function", "/api/v1/functions?query=" ORDERS "&function=read&step=5m");
    stop();
}

/* ---- files ---- */

TEST(native, answers_come_as_files_of_other_formats)
{
    static const struct {
        const char *format, *type, *begins;
    } files[] = {
        {"collapsed", "text/plain; charset=utf-8", "main;"},
        {"speedscope", "application/json", "{\"$schema\":\"https://www.speedscope.app"},
        {"otlp-json", "application/json", "{\"resourceProfiles\""},
        {"dot", "text/vnd.graphviz; charset=utf-8", "digraph \"CPU time of order-service"},
        {"svg", "image/svg+xml", "<svg "},
        {"pprof", "application/vnd.google.protobuf+gzip", "\x1f\x8b"},
        {"otlp", "application/x-protobuf", "\n"},
    };

    start();
    for (size_t i = 0; i < KILN_ARRAY_LEN(files); i++) {
        char target[256];
        const char *text;

        snprintf(target, sizeof(target), "%s&format=%s", "/api/v1/query?query=" ORDERS,
                 files[i].format);
        text = get(target);
        CHECK_EQ(api_kit_status(), 200);
        CHECK(strncmp(text, files[i].begins, strlen(files[i].begins)) == 0);
        CHECK_TEXT(api_kit_header("content-type"), files[i].type);
    }
    CHECK(says(get("/api/v1/diff?query=" ORDERS "&left_version=1.0&right_version=1.1&format=svg"),
               "CPU time of order-service"));
    stop();
}

/* ---- what people tell ---- */

static void id_in(const char *text, char *id, size_t size)
{
    const char *at = strstr(text, "\"id\":\"");

    CHECK(at != NULL);
    snprintf(id, size, "%.*s", (int)strcspn(at + 6, "\""), at + 6);
}

TEST(native, annotations_are_kept_found_by_time_and_service_and_forgotten)
{
    char id[64], path[128];
    const char *text;

    start();
    text = api_kit_send(&kit, "POST", "/api/v1/annotations",
                        "{\"text\":\"load \\u00e4 test\",\"service\":\"cart\",\"at\":\"now-2h\","
                        "\"until\":\"now-1h\",\"tags\":[\"load\",\"x\"]}");
    CHECK_EQ(api_kit_status(), 201);
    id_in(text, id, sizeof(id));
    CHECK(says(text,
               "\"at\":\"2026-03-01T10:00:00Z\",\"until\":\"2026-03-01T11:00:00Z\","
               "\"service\":\"cart\",\"text\":\"load \xc3\xa4 test\",\"tags\":[\"load\",\"x\"]}"));
    CHECK(says(get("/api/v1/annotations"), id));
    CHECK(says(get("/api/v1/annotations?service=cart&from=now-90m"), id));
    CHECK_TEXT(get("/api/v1/annotations?service=other"), "{\"annotations\":[]}\n");
    CHECK_TEXT(get("/api/v1/annotations?from=now-30m"), "{\"annotations\":[]}\n");
    snprintf(path, sizeof(path), "/api/v1/annotations/%s", id);
    CHECK_TEXT(api_kit_send(&kit, "DELETE", path, NULL), "");
    CHECK_EQ(api_kit_status(), 204);
    api_kit_send(&kit, "DELETE", path, NULL);
    CHECK_EQ(api_kit_status(), 404);
    CHECK_TEXT(get("/api/v1/annotations"), "{\"annotations\":[]}\n");
    stop();
}

TEST(native, a_deployment_that_was_told_stands_for_the_one_that_was_found)
{
    char id[64], path[128];
    const char *text;

    start();
    text = api_kit_send(&kit, "POST", "/api/v1/deployments",
                        "{\"service\":\"order-service\",\"version\":\"1.1\",\"at\":\"now-11m\","
                        "\"name\":\"cache\",\"text\":\"prices are cached\"}");
    CHECK_EQ(api_kit_status(), 201);
    id_in(text, id, sizeof(id));
    text = get("/api/v1/deployments?service=order-service");
    CHECK(says(text, id));
    CHECK(says(text, "\"source\":\"told\",\"label\":\"service.version\",\"name\":\"cache\""));
    CHECK(says(text, "\"version\":\"1.0\""));
    CHECK(says(get("/api/v1/diff?query=" ORDERS "&left_deployment=-2&right_deployment=cache"),
               "\"change\":600000000"));
    snprintf(path, sizeof(path), "/api/v1/deployments/%s", id);
    api_kit_send(&kit, "DELETE", path, NULL);
    CHECK_EQ(api_kit_status(), 204);
    CHECK(says(get("/api/v1/deployments"), "\"version\":\"1.1\""));
    stop();
}

/* ---- errors ---- */

struct refusal {
    const char *target;
    int status;
    const char *says;
};

static void check_refusals(const char *method, const struct refusal *refusals, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool post = strcmp(method, "POST") == 0;
        const char *at = post ? strchr(refusals[i].target, ' ') : NULL;
        char target[1024];
        const char *text;

        snprintf(target, sizeof(target), "%.*s",
                 (int)(at ? at - refusals[i].target : (long)strlen(refusals[i].target)),
                 refusals[i].target);
        text = api_kit_send(&kit, method, target, at ? at + 1 : NULL);
        CHECK(says(text, refusals[i].says));
        CHECK_EQ(api_kit_status(), refusals[i].status);
        CHECK(strncmp(text, "{\"error\":{\"code\":\"", 18) == 0);
    }
}

TEST(native, a_wrong_parameter_is_named)
{
    static const struct refusal refusals[] = {
        {"/api/v1/query?from=yesterdy", 400,
         "\"message\":\"from: not a time: \\\"yesterdy\\\"\",\"where\":\"from\""},
        {"/api/v1/query?from=now&until=now-1h", 400, "from: must be before until"},
        {"/api/v1/query?quary=x", 400, "quary: no such parameter; known are query, from, until"},
        {"/api/v1/findings?nodes=1", 400,
         "nodes: no such parameter; known are from, until, service"},
        {"/api/v1/openapi.yaml?x=1", 400, "x: no such parameter (this takes none)"},
        {"/api/v1/query?query=a&query=b", 400, "query: said more than once"},
        {"/api/v1/query?query=x%7B", 400, "query: 1:3: parse error"},
        {"/api/v1/query?query=no:such:type", 404, "\"code\":\"no_such_type\""},
        {"/api/v1/query?query=%7Bservice_name=%22order-service%22%7D", 400,
         "\"code\":\"ambiguous_type\""},
        {"/api/v1/query?format=gif", 400,
         "format: there is no \\\"gif\\\"; one of json, flamegraph"},
        {"/api/v1/query?nodes=0", 400, "nodes: not a number from 1 to 1048576"},
        {"/api/v1/query?nodes=-1", 400, "nodes: not a number from 1 to 1048576: \\\"-1\\\""},
        {"/api/v1/query?nodes=99999999999999999999", 400, "nodes: not a number"},
        {"/api/v1/query?limit=-5", 400, "limit: not a number from 0 to 1000000"},
        {"/api/v1/query?step=0", 400, "step: not a time span"},
        {"/api/v1/query?step=-1s", 400, "step: not a time span"},
        {"/api/v1/query?timeout=soon", 400, "timeout: not a time span"},
        {"/api/v1/query?exact=maybe", 400, "exact: there is no \\\"maybe\\\"; one of 0, 1"},
        {"/api/v1/query?trace_id=12", 400, "trace_id: not 32 hexadecimal digits"},
        {"/api/v1/query?span_id=gggggggggggggggg", 400, "span_id: not 16 hexadecimal digits"},
        {"/api/v1/query?with=(", 400, "with: bad pattern"},
        {"/api/v1/query?by=", 400, "by: must not be empty"},
        {"/api/v1/query?query=%ff", 400, "query: not UTF-8"},
        {"/api/v1/query?query=%zz", 400, "not well-formed"},
        {"/api/v1/profiles?order=best", 400,
         "order: there is no \\\"best\\\"; one of newest, largest"},
        {"/api/v1/profiles/xyz", 400, "id: not 32 hexadecimal digits"},
        {"/api/v1/profiles/00000000000000000000000000000001?format=series", 400, "no series"},
        {"/api/v1/labels/x", 404, "/api/v1/labels/NAME/values"},
        {"/api/v1/functions?query=" ORDERS, 400, "function: one function must be named"},
        {"/api/v1/spans?query=" ORDERS "&by=day", 400,
         "by: there is no \\\"day\\\"; one of span, trace"},
        {"/api/v1/diff?query=" ORDERS "&left_from=now", 400, "left_from: must be before"},
        {"/api/v1/diff?query=" ORDERS "&normalize=x", 400, "one of time, total, none"},
        {"/api/v1/diff?left_query=" CPU "&right_query=inuse_space", 400, "different types"},
        {"/api/v1/diff?query=" ORDERS "&left_version=1&left_deployment=2", 400, "not both"},
    };

    start();
    check_refusals("GET", refusals, KILN_ARRAY_LEN(refusals));
    stop();
}

TEST(native, a_wrong_body_is_told_where)
{
    static const struct refusal refusals[] = {
        {"/api/v1/annotations ", 400, "\"code\":\"bad_body\""},
        {"/api/v1/annotations {", 400, "\"code\":\"bad_body\""},
        {"/api/v1/annotations []", 400, "\"code\":\"bad_body\""},
        {"/api/v1/annotations {\"text\":5}", 400, "line 1, column 9"},
        {"/api/v1/annotations {\"txt\":\"\"}", 400, "known are text, at, until, service, tags"},
        {"/api/v1/annotations {}", 400, "text: must be said"},
        {"/api/v1/annotations {\"text\":\"x\"} {}", 400, "something follows"},
        {"/api/v1/annotations {\"text\":\"x\",\"at\":\"soon\"}", 400,
         "at: not a time: \\\"soon\\\""},
        {"/api/v1/annotations {\"text\":\"x\",\"until\":\"now-1h\"}", 400,
         "until: must not be before"},
        {"/api/v1/deployments {\"service\":\"a\"}", 400, "version: must be said"},
        {"/api/v1/deployments {\"version\":\"a\"}", 400, "service: must be said"},
        {"/api/v1/spans {\"query\":\"x\"}", 400, "windows: name at least one"},
        {"/api/v1/spans {\"windows\":[{\"from\":\"now\",\"until\":\"now\"}]}", 400,
         "from must be before until"},
        {"/api/v1/spans {\"windows\":[{\"from\":\"now-1h\",\"until\":\"now\",\"span_id\":\"z\"}]}",
         400, "span_id: not 16 hexadecimal digits"},
        {"/api/v1/spans {\"limit\":0}", 400, "limit: not a number from 1 to 1000"},
        {"/api/v1/spans {\"overlap_seconds\":-1}", 400, "overlap_seconds: not a number"},
    };

    start();
    check_refusals("POST", refusals, KILN_ARRAY_LEN(refusals));
    stop();
}

TEST(native, a_time_without_data_is_an_answer_too)
{
    start();
    CHECK(says(get("/api/v1/query?query=" ORDERS "&from=2020-01-01&until=2020-01-02"),
               "\"code\":\"nothing_found\""));
    CHECK_EQ(api_kit_status(), 200);
    stop();
}

TEST(native, series_are_chosen_by_attributes_of_samples_too)
{
    start();
    api_kit_put_cpu(&kit, "main;a 10000000 thread=gc\nmain;b 10000000\n", 5 * MINUTE,
                    "service.name=web,service.version=2", 4);
    CHECK_TEXT(get("/api/v1/series?query=%7Bthread=%22gc%22%7D"),
               "{\"series\":[{\"labels\":{\"__profile_type__\":\"" CPU ":cpu:nanoseconds\","
               "\"service_name\":\"web\",\"service.version\":\"2\"},\"profiles\":1,"
               "\"first\":\"2026-03-01T11:55:00Z\",\"last\":\"2026-03-01T11:55:00Z\"}],"
               "\"truncated\":false}\n");
    CHECK_TEXT(get("/api/v1/series?query=%7Bthread=%22main%22%7D"),
               "{\"series\":[],\"truncated\":false}\n");
    stop();
}

TEST(native, an_empty_store_answers_that_there_is_nothing)
{
    start_empty();
    CHECK(says(get("/api/v1/query?query=process_cpu:cpu:nanoseconds:cpu:nanoseconds"),
               "\"code\":\"nothing_found\""));
    CHECK_EQ(api_kit_status(), 200);
    CHECK_TEXT(get("/api/v1/services"), "{\"services\":[],\"all\":0}\n");
    CHECK_TEXT(get("/api/v1/types"), "{\"types\":[]}\n");
    CHECK_TEXT(get("/api/v1/series"), "{\"series\":[],\"truncated\":false}\n");
    stop();
}

TEST(native, the_file_that_describes_it_is_served)
{
    start_empty();
    CHECK(says(get("/api/v1/openapi.yaml"), "openapi: 3.1.0"));
    CHECK_TEXT(api_kit_header("content-type"), "application/yaml");
    api_kit_send(&kit, "HEAD", "/api/v1/openapi.yaml", NULL);
    CHECK_EQ(api_kit_status(), 200);
    stop();
}

/* ---- limits ---- */

TEST(native, what_does_not_fit_into_memory_is_refused_saying_so)
{
    api_kit_init(&kit, 1 << 10, kiln_api_add_native);
    api_kit_put_cpu(&kit, "main;serve 100000000\n", 20 * MINUTE, "service.name=cart", 3);
    CHECK(says(get("/api/v1/query?query=" CPU), "\"code\":\"limit\""));
    CHECK_EQ(api_kit_status(), 413);
    stop();
}

TEST(native, ten_years_are_answered_as_an_hour_is)
{
    start();
    CHECK(says(get("/api/v1/query?query=" CPU "&from=2016-01-01&format=series&step=1ms"),
               "\"total\":2700000000"));
    CHECK(says(get("/api/v1/query?query=" CPU "&from=2016-01-01&format=series"),
               "\"total\":2700000000"));
    CHECK(says(get("/api/v1/query?query=" CPU "&from=2016-01-01"), "\"total\":2700000000"));
    stop();
}

TEST(native, a_share_is_as_uncertain_as_agresti_and_coull_say)
{
    CHECK(kiln_native_half(0.5, 0) < 0);
    CHECK(fabs(kiln_native_half(0.5, 96.16) - 0.0980) < 0.0001);
    CHECK(kiln_native_half(0, 100) > 0.01);
    CHECK(fabs(kiln_native_half(0, 100) - kiln_native_half(1, 100)) < 1e-12);
    CHECK(kiln_native_half(0.1, 1e6) < 0.0006);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pyroscope's API as a client sees it, over a drawn store.  Whole answers are in
 * tests/golden/api/pyroscope-*.json; KILN_UPDATE_GOLDEN=1 writes them anew.
 */
#include <stdlib.h>

#include "api/pyroscope_int.h"
#include "api_kit.h"
#include "base/clock.h"
#include "base/json.h"
#include "drawn.h"
#include "net/client.h"
#include "test.h"

#define MINUTE API_KIT_MINUTE
#define TIMES  "\"start\":1772362800000,\"end\":1772366400000"
#define CPU    "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define SHOP                                                                                       \
    TIMES ",\"profileTypeID\":\"" CPU "\",\"labelSelector\":\"{service_name=\\\"shop\\\"}\""
#define ALL   TIMES ",\"profileTypeID\":\"" CPU "\",\"labelSelector\":\"{}\""
#define JSON  "Content-Type: application/json\r\n"
#define QUERY CPU "%7Bservice_name=%22shop%22%7D"

static struct api_kit kit;

static void start_empty(void)
{
    api_kit_init(&kit, 0, kiln_api_add_pyroscope);
    kit.headers = JSON;
}

/* Two versions of a shop, a cart, a heap; some of it in a block. */
static void start(void)
{
    start_empty();
    api_kit_put_cpu(&kit,
                    "main;parse@json.go:12;read 300\nmain;parse@json.go:12 500\nmain;write 200\n",
                    50 * MINUTE, "service.name=shop,service.version=1.0,k8s.pod.name=p1", 1);
    CHECK_OK(kiln_store_flush(kit.store.engine, NULL));
    api_kit_put_cpu(&kit,
                    "main;parse@json.go:12;read 900 ^7.2\nmain;parse@json.go:12 500 ^7.3\n"
                    "main;write 200 user=ann\n",
                    10 * MINUTE, "service.name=shop,service.version=1.1,k8s.pod.name=p2", 2);
    api_kit_put_cpu(&kit, "main;serve 100\nmain;main;serve 50\n", 20 * MINUTE, "service.name=cart",
                    3);
    api_kit_put_heap(&kit, "main;cache 1000\n", 20 * MINUTE, "service.name=shop");
    api_kit_put_heap(&kit, "main;cache 3000\n", 10 * MINUTE, "service.name=shop");
}

static void stop(void)
{
    api_kit_done(&kit);
}

static const char *post(const char *path, const char *body)
{
    return api_kit_send(&kit, "POST", path, body);
}

static const char *ask(const char *method, const char *body)
{
    char path[128];

    snprintf(path, sizeof(path), "/querier.v1.QuerierService/%s", method);
    return post(path, body);
}

/* Asks, and compares the answer with a golden file. */
#define GOLDEN(name, method, body)                                                                 \
    do {                                                                                           \
        const char *answer_ = ask(method, body);                                                   \
                                                                                                   \
        CHECK_EQ(api_kit_status(), 200);                                                           \
        API_GOLDEN("pyroscope-" name ".json", answer_);                                            \
    } while (0)

/* The code of a refusal, which must have a message; "" for an answer. */
static const char *code_of(const char *method, const char *body)
{
    static char code[64];
    const char *answer = ask(method, body), *at = strstr(answer, "{\"code\":\"");

    code[0] = '\0';
    if (api_kit_status() == 200)
        return code;
    CHECK(at == answer);
    CHECK(strstr(answer, "\"message\":\"") != NULL);
    snprintf(code, sizeof(code), "%.*s", (int)strcspn(at + 9, "\""), at + 9);
    return code;
}

/* ---- labels ---- */

TEST(pyroscope, tells_types_labels_and_series)
{
    start();
    GOLDEN("profile-types", "ProfileTypes", "{" TIMES "}");
    GOLDEN("label-names", "LabelNames", "{" TIMES "}");
    GOLDEN("label-values", "LabelValues", "{" TIMES ",\"name\":\"service_name\"}");
    GOLDEN("label-values-matched", "LabelValues",
           "{" TIMES
           ",\"name\":\"service.version\",\"matchers\":[\"{service_name=\\\"shop\\\"}\"]}");
    GOLDEN("series", "Series",
           "{" TIMES ",\"labelNames\":[\"service_name\",\"__profile_type__\"]}");
    GOLDEN("series-all-labels", "Series",
           "{" TIMES ",\"matchers\":[\"{service_name=\\\"shop\\\"}\"]}");
    stop();
}

TEST(pyroscope, names_that_are_no_words_are_for_those_who_take_them)
{
    start();
    CHECK(strstr(ask("LabelNames", "{" TIMES "}"), "k8s.pod.name") == NULL);
    kit.headers = JSON "Accept: */*; allow-utf8-labelnames=true\r\n";
    CHECK(strstr(ask("LabelNames", "{" TIMES "}"), "k8s.pod.name") != NULL);
    CHECK(strstr(ask("Series", "{" TIMES "}"), "k8s.pod.name") != NULL);
    stop();
}

TEST(pyroscope, a_health_check_asks_for_the_types_of_1970)
{
    start();
    CHECK_TEXT(ask("ProfileTypes", "{\"start\":1000,\"end\":4000}"), "{}");
    CHECK_EQ(api_kit_status(), 200);
    CHECK(strstr(ask("ProfileTypes", "{}"), CPU) != NULL);
    stop();
}

/* ---- stacks ---- */

TEST(pyroscope, tells_stacks_in_every_format)
{
    start();
    GOLDEN("stacks", "SelectMergeStacktraces", "{" SHOP "}");
    GOLDEN("stacks-2-nodes", "SelectMergeStacktraces", "{" SHOP ",\"maxNodes\":\"2\"}");
    GOLDEN("stacks-tree", "SelectMergeStacktraces", "{" SHOP ",\"format\":2}");
    GOLDEN("stacks-pprof", "SelectMergeStacktraces",
           "{" SHOP ",\"format\":\"PROFILE_FORMAT_PPROF\"}");
    GOLDEN("stacks-functions", "SelectMergeStacktraces",
           "{" ALL ",\"format\":\"PROFILE_FORMAT_FUNCTIONS\"}");
    GOLDEN("stacks-sandwich", "SelectMergeStacktraces",
           "{" SHOP ",\"format\":\"PROFILE_FORMAT_SANDWICH\",\"sandwichFunction\":\"parse\"}");
    CHECK(strstr(ask("SelectMergeStacktraces", "{" SHOP ",\"format\":\"PROFILE_FORMAT_DOT\"}"),
                 "{\"dot\":\"digraph ") != NULL);
    GOLDEN("merge-profile", "SelectMergeProfile", "{" SHOP "}");
    stop();
}

TEST(pyroscope, nothing_is_an_answer)
{
    start_empty();
    GOLDEN("stacks-nothing", "SelectMergeStacktraces", "{" SHOP "}");
    CHECK_TEXT(ask("SelectMergeStacktraces", "{" SHOP ",\"format\":2}"), "{}");
    CHECK_TEXT(ask("SelectMergeStacktraces", "{" SHOP ",\"format\":3}"), "{}");
    CHECK_TEXT(ask("SelectMergeProfile", "{" SHOP "}"), "{}");
    CHECK_TEXT(ask("SelectSeries", "{" SHOP ",\"step\":15}"), "{}");
    CHECK_TEXT(ask("SelectHeatmap", "{" SHOP ",\"step\":15}"), "{}");
    CHECK_TEXT(ask("LabelNames", "{" TIMES "}"), "{}");
    CHECK_TEXT(ask("Series", "{" TIMES "}"), "{}");
    CHECK_TEXT(ask("GetProfileStats", "{}"), "{}");
    GOLDEN("diff-nothing", "Diff", "{\"left\":{" SHOP "},\"right\":{" SHOP "}}");
    stop();
}

TEST(pyroscope, chooses_stacks_by_call_site_and_frames)
{
    start();
    GOLDEN("stacks-call-site", "SelectMergeStacktraces",
           "{" SHOP ",\"stackTraceSelector\":{\"callSite\":[{\"name\":\"main\"},{\"name\":"
           "\"parse\"}]}}");
    GOLDEN("stacks-frame-filter", "SelectMergeStacktraces",
           "{" SHOP
           ",\"stackTraceSelector\":{\"frameFilter\":{\"includeFunctionNames\":[\"parse\"],"
           "\"excludeFunctionNameRegexes\":[\"^re\",\"^x\"]}}}");
    CHECK_TEXT(code_of("SelectMergeStacktraces",
                       "{" SHOP ",\"stackTraceSelector\":{\"frameFilter\":{"
                       "\"includeFunctionNames\":[\"a\",\"b\"]}}}"),
               "unimplemented");
    CHECK_TEXT(code_of("SelectMergeStacktraces",
                       "{" SHOP ",\"stackTraceSelector\":{\"frameFilter\":{"
                       "\"includeFunctionNameRegexes\":[\"(\"]}}}"),
               "invalid_argument");
    stop();
}

TEST(pyroscope, chooses_stacks_by_span_trace_and_profile)
{
    start();
    GOLDEN("span-profile", "SelectMergeSpanProfile",
           "{" SHOP ",\"spanSelector\":[\"0000000000000002\"]}");
    GOLDEN("stacks-of-a-trace", "SelectMergeStacktraces",
           "{" SHOP ",\"traceIdSelector\":[\"00000000000000000000000000000007\"]}");
    GOLDEN("stacks-of-a-profile", "SelectMergeStacktraces",
           "{" SHOP ",\"profileIdSelector\":[\"00000000-0000-0000-0000-000000000001\"]}");
    CHECK_TEXT(code_of("SelectMergeStacktraces", "{" SHOP ",\"spanSelector\":[\"02\"]}"),
               "invalid_argument");
    CHECK_TEXT(code_of("SelectMergeStacktraces",
                       "{" SHOP ",\"spanSelector\":[\"0000000000000002\"],\"traceIdSelector\":["
                       "\"00000000000000000000000000000007\"]}"),
               "invalid_argument");
    stop();
}

TEST(pyroscope, cuts_stacks_for_the_compiler)
{
    start();
    GOLDEN("go-pgo", "SelectMergeProfile",
           "{" SHOP ",\"stackTraceSelector\":{\"goPgo\":{\"keepLocations\":1,"
           "\"aggregateCallees\":true}}}");
    stop();
}

TEST(pyroscope, tells_what_changed)
{
    start();
    GOLDEN("diff", "Diff",
           "{\"left\":{" ALL ",\"labelSelector\":\"{\\\"service.version\\\"=\\\"1.0\\\"}\"},"
           "\"right\":{" ALL ",\"labelSelector\":\"{\\\"service.version\\\"=\\\"1.1\\\"}\"}}");
    GOLDEN("diff-functions", "Diff",
           "{\"format\":\"PROFILE_FORMAT_FUNCTIONS\",\"left\":{" ALL
           ",\"labelSelector\":\"{\\\"service.version\\\"=\\\"1.0\\\"}\"},"
           "\"right\":{" ALL ",\"labelSelector\":\"{\\\"service.version\\\"=\\\"1.1\\\"}\"}}");
    GOLDEN("diff-2-functions", "Diff",
           "{\"format\":\"PROFILE_FORMAT_FUNCTIONS\",\"maxNodes\":2,\"left\":{" ALL
           "},\"right\":{" SHOP "}}");
    CHECK_TEXT(code_of("Diff", "{}"), "invalid_argument");
    stop();
}

/* ---- time ---- */

TEST(pyroscope, tells_values_over_time)
{
    start();
    GOLDEN("select-series", "SelectSeries", "{" SHOP ",\"step\":60}");
    GOLDEN("select-series-by", "SelectSeries",
           "{" ALL ",\"step\":600,\"groupBy\":[\"service_name\",\"user\"]}");
    GOLDEN("select-series-limit", "SelectSeries",
           "{" ALL ",\"step\":600,\"groupBy\":[\"service_name\"],\"limit\":1}");
    GOLDEN("select-series-function", "SelectSeries",
           "{" ALL ",\"step\":3600,\"stackTraceSelector\":{\"callSite\":[{\"name\":\"main\"},"
           "{\"name\":\"parse\"}]}}");
    GOLDEN("select-series-exemplars", "SelectSeries",
           "{" SHOP ",\"step\":3600,\"exemplarType\":\"EXEMPLAR_TYPE_INDIVIDUAL\"}");
    GOLDEN("select-series-span-exemplars", "SelectSeries",
           "{" SHOP ",\"step\":3600,\"exemplarType\":3}");
    GOLDEN("select-series-average", "SelectSeries",
           "{" TIMES ",\"profileTypeID\":\"memory:inuse_space:bytes:space:bytes\","
           "\"labelSelector\":\"{}\",\"step\":3600,\"aggregation\":1}");
    stop();
}

TEST(pyroscope, a_point_has_what_came_up_to_it)
{
    start_empty();
    api_kit_put_cpu(&kit, "a 1\n", 20 * MINUTE, "service.name=shop", 1);
    api_kit_put_cpu(&kit, "a 2\n", 20 * MINUTE - 1, "service.name=shop", 2);
    api_kit_put_cpu(&kit, "a 4\n", 20 * MINUTE - 2 * KILN_NS_PER_MS, "service.name=shop", 3);
    api_kit_put_cpu(&kit, "a 8\n", 10 * MINUTE, "service.name=shop", 4);
    api_kit_put_cpu(&kit, "a 16\n", 5 * MINUTE, "service.name=shop", 5);
    /* points at -20, -10; the last part of the time has none */
    CHECK_TEXT(ask("SelectSeries", "{\"start\":1772365200000,\"end\":1772366399000,\"step\":600,"
                                   "\"profileTypeID\":\"" CPU "\"}"),
               "{\"series\":[{\"points\":[{\"value\":3,\"timestamp\":\"1772365200000\"},"
               "{\"value\":12,\"timestamp\":\"1772365800000\"}]}]}");
    stop();
}

TEST(pyroscope, tells_how_large_profiles_are)
{
    start();
    GOLDEN("heatmap", "SelectHeatmap",
           "{" ALL ",\"step\":600,\"groupBy\":[\"service_name\"],\"queryType\":1,"
           "\"exemplarType\":2}");
    GOLDEN("heatmap-spans", "SelectHeatmap",
           "{" ALL ",\"step\":600,\"queryType\":\"HEATMAP_QUERY_TYPE_SPAN\",\"limit\":1}");
    CHECK_TEXT(code_of("SelectHeatmap", "{" ALL ",\"step\":0.0001}"), "invalid_argument");
    CHECK_TEXT(code_of("SelectHeatmap", "{" ALL ",\"step\":1,\"limit\":-1}"), "invalid_argument");
    stop();
}

/* ---- the rest ---- */

TEST(pyroscope, tells_about_the_store_and_itself)
{
    start();
    GOLDEN("profile-stats", "GetProfileStats", "{}");
    CHECK(
        strstr(ask("AnalyzeQuery", "{" TIMES ",\"query\":\"" CPU "{service_name=\\\"shop\\\"}\"}"),
               "\"totalQueriedSeries\":\"2\"") != NULL);
    API_GOLDEN("pyroscope-feature-flags.json",
               post("/capabilities.v1.FeatureFlagsService/GetFeatureFlags", "{}"));
    CHECK_TEXT(post("/version.v1.Version/Version", "{}"), "{\"QuerierAPI\":\"1\"}");
    CHECK_TEXT(post("/grpc.health.v1.Health/Check", "{}"), "{\"status\":\"SERVING\"}");
    CHECK(strstr(api_kit_get(&kit, "/api/v1/status/buildinfo"), "\"status\":\"success\"") != NULL);
    stop();
}

TEST(pyroscope, keeps_settings)
{
    const char *set = "/settings.v1.SettingsService/Set";

    start_empty();
    CHECK_TEXT(post("/settings.v1.SettingsService/Get", "{}"), "{}");
    CHECK_TEXT(post(set, "{\"setting\":{\"name\":\"b\",\"value\":\"{\\\"x\\\":1}\","
                         "\"modifiedAt\":5}}"),
               "{\"setting\":{\"name\":\"b\",\"value\":\"{\\\"x\\\":1}\",\"modifiedAt\":\"5\"}}");
    post(set, "{\"setting\":{\"name\":\"a\",\"value\":\"\"}}");
    CHECK_TEXT(post("/settings.v1.SettingsService/Get", "{}"),
               "{\"settings\":[{\"name\":\"a\",\"modifiedAt\":\"1772366400000\"},{\"name\":\"b\","
               "\"value\":\"{\\\"x\\\":1}\",\"modifiedAt\":\"5\"}]}");
    post(set, "{\"setting\":{\"name\":\"b\",\"value\":\"old\",\"modifiedAt\":4}}");
    CHECK_EQ(api_kit_status(), 409);
    post("/settings.v1.SettingsService/Delete", "{\"name\":\"b\"}");
    CHECK_EQ(api_kit_status(), 200);
    CHECK(strstr(post("/settings.v1.SettingsService/Get", "{}"), "\"b\"") == NULL);
    post(set, "{}");
    CHECK_EQ(api_kit_status(), 400);
    stop();
}

#define UPLOAD(text) "{\"name\":\"a.folded\",\"profile\":\"" text "\"}"

TEST(pyroscope, shows_profiles_that_are_uploaded)
{
    const char *adhoc = "/adhocprofiles.v1.AdHocProfileService/";
    char path[128], left[32], right[32], body[256];
    const char *answer;

    start_empty();
    snprintf(path, sizeof(path), "%sUpload", adhoc);
    answer = post(path, UPLOAD("bWFpbjthIDMKbWFpbjtiIDQK")); /* main;a 3, main;b 4 */
    CHECK_EQ(api_kit_status(), 200);
    API_GOLDEN("pyroscope-adhoc-upload.json", answer);
    snprintf(left, sizeof(left), "%.24s", strstr(answer, "\"id\":\"") + 6);
    answer = post(path, UPLOAD("bWFpbjthIDUK")); /* main;a 5 */
    snprintf(right, sizeof(right), "%.24s", strstr(answer, "\"id\":\"") + 6);
    snprintf(path, sizeof(path), "%sGet", adhoc);
    snprintf(body, sizeof(body), "{\"id\":\"%s\",\"maxNodes\":\"1\"}", left);
    API_GOLDEN("pyroscope-adhoc-get.json", post(path, body));
    snprintf(path, sizeof(path), "%sList", adhoc);
    API_GOLDEN("pyroscope-adhoc-list.json", post(path, "{}"));
    snprintf(path, sizeof(path), "%sDiff", adhoc);
    snprintf(body, sizeof(body), "{\"leftId\":\"%s\",\"right_id\":\"%s\"}", left, right);
    API_GOLDEN("pyroscope-adhoc-diff.json", post(path, body));
    stop();
}

TEST(pyroscope, refuses_uploads_that_are_no_profiles)
{
    static const char *const bad[] = {
        UPLOAD(""), UPLOAD("?"), UPLOAD("AAAA"), "{}", UPLOAD("H4sIAAAA"),
    };

    start_empty();
    for (size_t i = 0; i < KILN_ARRAY_LEN(bad); i++) {
        post("/adhocprofiles.v1.AdHocProfileService/Upload", bad[i]);
        CHECK_EQ(api_kit_status(), 400);
    }
    post("/adhocprofiles.v1.AdHocProfileService/Get", "{\"id\":\"../../etc\"}");
    CHECK_EQ(api_kit_status(), 400);
    post("/adhocprofiles.v1.AdHocProfileService/Get", "{\"id\":\"000000000000000000000000\"}");
    CHECK_EQ(api_kit_status(), 400);
    CHECK_TEXT(post("/adhocprofiles.v1.AdHocProfileService/List", "{}"), "{}");
    stop();
}

TEST(pyroscope, refuses_as_pyroscope_does)
{
    start();
    CHECK_TEXT(ask("SelectMergeStacktraces", "{" TIMES ",\"profileTypeID\":\"nonsense\"}"),
               "{\"code\":\"invalid_argument\",\"message\":\"profile-type selection must be of the "
               "form <name>:<sample-type>:<sample-unit>:<period-type>:<period-unit>(:delta), "
               "got(1): \\\"nonsense\\\"\"}");
    CHECK_EQ(api_kit_status(), 400);
    CHECK_TEXT(
        ask("Series", "{\"start\":2,\"end\":1}"),
        "{\"code\":\"invalid_argument\",\"message\":\"query start time is after end time\"}");
    CHECK_TEXT(ask("LabelNames", "{\"start\":2}"),
               "{\"code\":\"invalid_argument\",\"message\":\"missing time range in the query\"}");
    CHECK_TEXT(code_of("SelectMergeStacktraces", "{" SHOP ",\"maxNodes\":-1}"), "invalid_argument");
    CHECK_TEXT(code_of("SelectMergeStacktraces", "{" SHOP ",\"maxNodes\":1048577}"),
               "invalid_argument");
    CHECK_TEXT(code_of("SelectMergeStacktraces", "{" SHOP ",\"async\":{\"type\":1}}"),
               "unimplemented");
    CHECK_TEXT(code_of("SelectSeries", "{" SHOP "}"), "invalid_argument");
    CHECK_TEXT(code_of("LabelValues", "{" TIMES "}"), "invalid_argument");
    CHECK_TEXT(code_of("LabelValues", "{" TIMES ",\"name\":\"a\",\"matchers\":[\"{a\"]}"),
               "invalid_argument");
    CHECK_TEXT(code_of("LabelValues", "{\"start\":"), "invalid_argument");
    CHECK_EQ(api_kit_status(), 400);
    stop();
}

TEST(pyroscope, several_tenants_are_asked_at_once)
{
    struct kiln_drawn drawn = {.stacks = "main;other 7\n",
                               .type = "cpu",
                               .unit = "nanoseconds",
                               .period_type = "cpu",
                               .period_unit = "nanoseconds",
                               .time_ns = API_KIT_NOW - MINUTE,
                               .resource = "service.name=shop"};
    struct kiln_batch *batch = kiln_test_batch(&drawn, 1);

    start();
    CHECK_OK(kit_append_to(&kit.store, "b", batch).code);
    kiln_batch_unref(batch);
    kit.headers = JSON "X-Scope-OrgID: anonymous|b\r\n";
    CHECK(strstr(ask("SelectMergeStacktraces", "{" SHOP "}"), "\"total\":\"2607\"") != NULL);
    CHECK_TEXT(code_of("GetProfileStats", "{}"), "invalid_argument");
    stop();
}

TEST(pyroscope, protobuf_and_grpc_are_answered_in_kind)
{
    static const char request[] = "\x08\xe8\x07\x10\xa0\x1f"; /* start 1000, end 4000 */
    struct kiln_client_opts opts = {0};
    struct kiln_client *client;
    struct kiln_answer answer;
    char server[64];
    struct kiln_call call = {.path = "/querier.v1.QuerierService/ProfileTypes",
                             .content_type = "application/proto",
                             .body = KILN_STR(request)};

    start();
    snprintf(server, sizeof(server), "http://127.0.0.1:%u", kit.net.port);
    opts.server = server;
    CHECK_OK(kiln_client_new(&opts, &client, NULL));
    kiln_answer_init(&answer);
    CHECK_OK(kiln_client_call(client, &call, &answer, NULL));
    CHECK_EQ(answer.status, 200);
    CHECK_EQ(answer.body.len, 0);
    call.body = KILN_STR("");
    CHECK_OK(kiln_client_grpc(client, &call, &answer, NULL));
    CHECK_EQ(answer.rpc_code, 0);
    CHECK(kiln_str_contains(kiln_buf_str(&answer.body), KILN_STR(CPU)));
    call.path = "/querier.v1.QuerierService/LabelNames";
    CHECK_OK(kiln_client_grpc(client, &call, &answer, NULL));
    CHECK_EQ(answer.rpc_code, KILN_RPC_INVALID_ARGUMENT);
    kiln_answer_done(&answer);
    kiln_client_free(client);
    stop();
}

/* ---- the older endpoints ---- */

TEST(pyroscope, renders)
{
    start();
    API_GOLDEN("pyroscope-render.json",
               api_kit_get(&kit, "/pyroscope/render?query=" QUERY "&from=now-1h&until=now"));
    API_GOLDEN("pyroscope-render-by.json",
               api_kit_get(&kit, "/pyroscope/render?query=" CPU
                                 "%7B%7D&from=1772362800&until=1772366400000&groupBy=service_name"
                                 "&aggregation=avg&max-nodes=2"));
    API_GOLDEN("pyroscope-render-diff.json",
               api_kit_get(&kit, "/pyroscope/render-diff?leftQuery=" QUERY
                                 "&leftFrom=now-1h&leftUntil=now-30m&rightQuery=" QUERY
                                 "&rightFrom=now-30m&rightUntil=now"));
    CHECK(strncmp(api_kit_get(&kit, "/pyroscope/render?format=dot&from=now-1h&query=" QUERY),
                  "digraph ", 8) == 0);
    CHECK_TEXT(
        api_kit_get(&kit, "/pyroscope/render?format=dot&from=now-1h&query=" CPU "%7Bx=%22y%22%7D"),
        "");
    CHECK_EQ(api_kit_status(), 200);
    CHECK_TEXT(api_kit_get(&kit, "/pyroscope/label-values?label=__name__"),
               "[\"memory:inuse_space:bytes:space:bytes\",\"" CPU "\"]");
    CHECK_TEXT(api_kit_get(&kit, "/pyroscope/label-values?label=service_name&from=now-1h"),
               "[\"cart\",\"shop\"]");
    stop();
}

TEST(pyroscope, renders_nothing_that_makes_no_sense)
{
    static const char *const bad[] = {
        "/pyroscope/render",
        "/pyroscope/render?query=%7B%7D",
        "/pyroscope/render?query=a:b",
        "/pyroscope/render?query=" CPU "%7B",
        "/pyroscope/render?query=" QUERY "&from=now&until=now-1h",
        "/pyroscope/render?query=" QUERY "&from=now-1h&max-nodes=-5",
        "/pyroscope/render-diff?leftQuery=" QUERY "&rightQuery=a:b:c:d:e",
        "/pyroscope/render-diff?leftQuery=" QUERY,
        "/pyroscope/label-values",
        "/pyroscope/label-values?label=service_name",
        "/pyroscope/render?query=%zz",
    };

    start();
    for (size_t i = 0; i < KILN_ARRAY_LEN(bad); i++) {
        const char *answer = api_kit_get(&kit, bad[i]);

        CHECK_EQ(api_kit_status(), 400);
        CHECK(strncmp(answer, "{\"code\":\"invalid_argument\",\"message\":\"", 38) == 0);
    }
    stop();
}

TEST(pyroscope, timelines_have_steps_that_people_like)
{
    static const struct {
        int64_t range_s, step_s;
    } steps[] = {{1, 15},         {3600, 15},        {86400, 60},       {7 * 86400, 300},
                 {2592000, 1800}, {31104000, 21600}, {155520000, 86400}};

    start_empty();
    for (size_t i = 0; i < KILN_ARRAY_LEN(steps); i++) {
        char path[256], wanted[64];

        snprintf(path, sizeof(path), "/pyroscope/render?query=%s&from=%lld&until=1772366400", QUERY,
                 1772366400LL - (long long)steps[i].range_s);
        snprintf(wanted, sizeof(wanted), "\"durationDelta\":%lld,", (long long)steps[i].step_s);
        CHECK(strstr(api_kit_get(&kit, path), wanted) != NULL);
    }
    stop();
}

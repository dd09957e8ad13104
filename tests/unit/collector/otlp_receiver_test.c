/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "codec/otlp.h"
#include "drawn.h"
#include "folder.h"
#include "h2client.h"
#include "net.h"
#include "test.h"
#include "ways_kit.h"

#define SERVICE  "/opentelemetry.proto.collector."
#define PROFILES SERVICE "profiles.v1development.ProfilesService/Export"
#define PROTO    "application/x-protobuf"
#define BOTH     "{protocols: {grpc: {endpoint: 127.0.0.1:0}, http: {endpoint: 127.0.0.1:0}}}"

static struct kiln_str message(struct kiln_buf *out)
{
    struct kiln_batch *batch = kiln_test_batch(&(struct kiln_drawn){.stacks = "main;read 3\n"
                                                                              "main;idle 1\n",
                                                                    .type = "cpu",
                                                                    .unit = "nanoseconds"},
                                               1);

    kiln_buf_init(out, 1u << 20);
    CHECK_OK(kiln_otlp_encode(batch, NULL, out, NULL));
    kiln_batch_unref(batch);
    return kiln_buf_str(out);
}

static void post(struct ways *kit, const char *path, const char *type, struct kiln_str body)
{
    ways_call(
        kit, "http",
        &(struct kiln_call){.method = "POST", .path = path, .content_type = type, .body = body});
}

TEST(collector_otlp, profiles_come_by_both_protocols)
{
    struct kiln_buf body;
    struct ways kit;

    message(&body);
    ways_start(&kit, KILN_RECEIVER, "otlp", BOTH);
    ways_grpc(&kit, "grpc", PROFILES, kiln_buf_str(&body));
    CHECK_EQ(kit.answer.rpc_code, 0);
    CHECK_EQ(kit.answer.body.len, 0);
    post(&kit, "/v1development/profiles", PROTO, kiln_buf_str(&body));
    CHECK_EQ(kit.answer.status, 200);
    /* One port may take both. */
    ways_grpc(&kit, "http", PROFILES, kiln_buf_str(&body));
    CHECK_EQ(kit.answer.rpc_code, 0);
    CHECK_EQ(kit.n, 3);
    for (uint32_t i = 0; i < kit.n; i++) {
        CHECK_EQ(kit.got[i].signal, KILN_SIGNAL_PROFILES);
        CHECK_EQ(kit.got[i].batch->n_samples, 2);
        CHECK(kiln_str_eq(kiln_buf_str(&kit.got[i].body), kiln_buf_str(&body)));
    }
    ways_grpc(&kit, "grpc", SERVICE "profiles.v9.ProfilesService/Export", kiln_buf_str(&body));
    CHECK_EQ(kit.answer.rpc_code, KILN_RPC_UNIMPLEMENTED);
    kiln_buf_done(&body);
    ways_stop(&kit);
}

/* TracesData of two resources: of two spans, and of one; LogsData looks the same. */
static const char spans[] = "\x0a\x0b\x0a\x00\x12\x07\x12\x01x\x12\x00\x1a\x00" /* 2 spans */
                            "\x0a\x04\x12\x02\x12\x00";
/* A gauge of two points, a sum of one, and a metric of nothing. */
static const char points[] = "\x0a\x13\x12\x11\x12\x06\x2a\x04\x0a\x00\x0a\x00"
                             "\x12\x04\x3a\x02\x0a\x00\x12\x01\x0a";

static const struct {
    enum kiln_signal signal;
    const char *path, *method;
    struct kiln_str body;
    uint64_t items;
} others[] = {
    {KILN_SIGNAL_TRACES,
     "/v1/traces",
     SERVICE "trace.v1.TraceService/Export",
     {spans, sizeof(spans) - 1},
     3},
    {KILN_SIGNAL_LOGS,
     "/v1/logs",
     SERVICE "logs.v1.LogsService/Export",
     {spans, sizeof(spans) - 1},
     3},
};

TEST(collector_otlp, other_signals_are_passed_on_as_they_came)
{
    struct kiln_buf packed;
    struct ways kit;

    ways_start(&kit, KILN_RECEIVER, "otlp", BOTH);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(others); i++) {
        ways_grpc(&kit, "grpc", others[i].method, others[i].body);
        CHECK_EQ(kit.answer.rpc_code, 0);
        kiln_buf_init(&packed, 4u << 20);
        CHECK_OK(kiln_compress(KILN_GZIP, 6, others[i].body, &packed));
        ways_call(&kit, "http",
                  &(struct kiln_call){.path = others[i].path,
                                      .content_type = PROTO,
                                      .encoding = KILN_GZIP,
                                      .body = kiln_buf_str(&packed)});
        CHECK_EQ(kit.answer.status, 200);
        CHECK_EQ(kit.n, 2 * i + 2);
        for (uint32_t n = 2 * i; n < kit.n; n++) {
            CHECK_EQ(kit.got[n].signal, others[i].signal);
            CHECK_EQ(kit.got[n].items, others[i].items);
            CHECK(!kit.got[n].batch);
            CHECK_EQ(kit.got[n].charged, 0); /* nothing but the body is there any more */
        }
        CHECK(kiln_str_eq(kiln_buf_str(&kit.got[2 * i].body), others[i].body));
        CHECK_EQ(kit.got[2 * i + 1].compression, KILN_GZIP);
        CHECK(kiln_str_eq(kiln_buf_str(&kit.got[2 * i + 1].body), kiln_buf_str(&packed)));
        kiln_buf_done(&packed);
    }
    ways_stop(&kit);
}

#define JSON "application/json"

static const struct {
    enum kiln_signal signal;
    const char *path, *body;
    uint64_t items;
} texts[] = {
    {KILN_SIGNAL_TRACES, "/v1/traces",
     "{\"resourceSpans\": [{\"resource\": {}, \"scopeSpans\": [{\"spans\": [{}, {\"name\": "
     "\"x\"}]}, "
     "{\"spans\": null}]}, {\"scopeSpans\": [{\"spans\": [{\"events\": [{}]}]}]}], \"new\": [1]}",
     3},
    {KILN_SIGNAL_LOGS, "/v1/logs",
     "{\"resource_logs\": [{\"scope_logs\": [{\"log_records\": [{}, {}]}]}]}", 2},
    {KILN_SIGNAL_METRICS, "/v1/metrics",
     "{\"resourceMetrics\": [{\"scopeMetrics\": [{\"metrics\": ["
     "{\"name\": \"a\", \"gauge\": {\"dataPoints\": [{}, {}]}}, {\"sum\": {\"dataPoints\": [{}]}},"
     "{\"histogram\": {\"data_points\": [{}]}}, {\"exponential_histogram\": {\"dataPoints\": "
     "[{}]}},"
     "{\"exponentialHistogram\": {\"dataPoints\": [{}]}}, {\"summary\": {\"dataPoints\": [{}]}},"
     "{\"name\": \"of nothing\"}, {\"gauge\": {\"points\": [{}]}}]}]}]}",
     7},
};

TEST(collector_otlp, other_signals_are_passed_on_as_json_too)
{
    struct kiln_buf packed;
    struct ways kit;

    ways_start(&kit, KILN_RECEIVER, "otlp", BOTH);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(texts); i++) {
        struct kiln_str body = kiln_str_of(texts[i].body);

        post(&kit, texts[i].path, JSON, body);
        CHECK_EQ(kit.answer.status, 200);
        CHECK_STR(kiln_buf_str(&kit.answer.body), "{}");
        kiln_buf_init(&packed, 4u << 20);
        CHECK_OK(kiln_compress(KILN_GZIP, 6, body, &packed));
        ways_call(&kit, "http",
                  &(struct kiln_call){.path = texts[i].path,
                                      .content_type = JSON,
                                      .encoding = KILN_GZIP,
                                      .body = kiln_buf_str(&packed)});
        CHECK_EQ(kit.answer.status, 200);
        for (uint32_t n = 2 * i; n < 2 * i + 2; n++) {
            CHECK_EQ(kit.got[n].signal, texts[i].signal);
            CHECK_EQ(kit.got[n].items, texts[i].items);
            CHECK(kit.got[n].json);
            CHECK(
                kiln_str_eq(kiln_buf_str(&kit.got[n].body), n % 2 ? kiln_buf_str(&packed) : body));
        }
        kiln_buf_done(&packed);
    }
    CHECK_EQ(kit.n, 6);
    ways_stop(&kit);
}

TEST(collector_otlp, what_is_left_out_of_them_has_the_signals_name)
{
    struct ways kit;

    ways_start(&kit, KILN_RECEIVER, "otlp", BOTH);
    kit.outcome.rejected = 2;
    kiln_err_set(&kit.outcome.err, -EINVAL, NULL, "two of them");
    post(&kit, "/v1/traces", JSON, kiln_str_of(texts[0].body));
    CHECK_STR(kiln_buf_str(&kit.answer.body),
              "{\"partialSuccess\":{\"rejectedSpans\":\"2\",\"errorMessage\":\"two of them\"}}");
    ways_stop(&kit);
}

TEST(collector_otlp, what_is_no_json_is_refused_with_its_place)
{
    static const char *const bad[] = {"",
                                      "[]",
                                      "{\"resourceSpans\": {}}",
                                      "{\"resourceSpans\": [1]}",
                                      "{} {}",
                                      "{\"resourceSpans\": [}",
                                      "{\"a\": \"\xff\"}"};
    struct ways kit;

    ways_start(&kit, KILN_RECEIVER, "otlp", BOTH);
    for (size_t i = 0; i < KILN_ARRAY_LEN(bad); i++) {
        post(&kit, "/v1/traces", JSON, kiln_str_of(bad[i]));
        CHECK_EQ(kit.answer.status, 400);
    }
    post(&kit, "/v1/traces", JSON, KILN_STR("{\n \"resourceSpans\": [7]}"));
    CHECK(strstr(kit.answer.message, "line 2"));
    CHECK_EQ(kit.n, 0);
    ways_stop(&kit);
}

/* 200, or what an answer of 415 says, of JSON that goes to these exporters. */
static const char *to_exporters(const char *names)
{
    static char said[400];
    char yaml[1000];
    struct ways kit;

    snprintf(yaml, sizeof(yaml),
             "receivers: {otlp: {protocols: {http: {endpoint: '127.0.0.1:0'}}}}\n"
             "processors: {memory_limiter: {check_interval: 1s, limit_mib: 4000}, batch: }\n"
             "connectors: {forward: }\n"
             "exporters: {nop: , debug: , otlp_grpc: {endpoint: 'http://127.0.0.1:1'}}\n"
             "service: {pipelines: {traces/a: {receivers: [otlp], processors: [memory_limiter, "
             "batch], exporters: [forward]}, traces/b: {receivers: [forward], exporters: %s}}}\n",
             names);
    ways_start_graph(&kit, yaml);
    post(&kit, "/v1/traces", JSON, kiln_str_of(texts[0].body));
    snprintf(said, sizeof(said), "%s", kit.answer.status == 200 ? "200" : kit.answer.message);
    CHECK(kit.answer.status == 200 || kit.answer.status == 415);
    ways_stop(&kit);
    return said;
}

TEST(collector_otlp, json_is_refused_where_an_exporter_speaks_grpc)
{
    static const char said[] =
        "signals other than profiles are passed on as they came, and an exporter of this pipeline "
        "speaks gRPC, which has no JSON: have the sender use application/x-protobuf, or the "
        "pipeline otlp_http alone";

    CHECK_TEXT(to_exporters("[nop]"), "200");
    CHECK_TEXT(to_exporters("[nop, debug]"), "200");
    CHECK_TEXT(to_exporters("[otlp_grpc]"), said);
    CHECK_TEXT(to_exporters("[nop, otlp_grpc]"), said);
}

TEST(collector_otlp, points_of_metrics_are_counted)
{
    struct kiln_str good = {points, sizeof(points) - 4}, bad = {points, sizeof(points) - 1};
    char fixed[sizeof(points)];
    struct ways kit;

    memcpy(fixed, points, sizeof(points));
    fixed[1] = (char)(good.len - 2);
    fixed[3] = (char)(good.len - 4);
    good.ptr = fixed;
    ways_start(&kit, KILN_RECEIVER, "otlp", BOTH);
    ways_grpc(&kit, "grpc", SERVICE "metrics.v1.MetricsService/Export", good);
    CHECK_EQ(kit.answer.rpc_code, 0);
    CHECK_EQ(kit.n, 1);
    CHECK_EQ(kit.got[0].items, 3);
    ways_grpc(&kit, "grpc", SERVICE "metrics.v1.MetricsService/Export", bad);
    CHECK_EQ(kit.answer.rpc_code, KILN_RPC_INVALID_ARGUMENT);
    CHECK_EQ(kit.n, 1);
    ways_stop(&kit);
}

TEST(collector_otlp, what_no_pipeline_takes_is_said_so)
{
    struct kiln_buf body;
    struct ways kit;

    message(&body);
    ways_start_without(&kit, KILN_RECEIVER, "otlp", BOTH,
                       KILN_TAKES(KILN_SIGNAL_TRACES) | KILN_TAKES_PROFILES);
    ways_grpc(&kit, "grpc", PROFILES, kiln_buf_str(&body));
    CHECK_EQ(kit.answer.rpc_code, KILN_RPC_UNIMPLEMENTED);
    CHECK_TEXT(kit.answer.message, "no pipeline takes profiles from this receiver");
    post(&kit, "/v1/traces", PROTO, others[0].body);
    CHECK_EQ(kit.answer.status, 404);
    post(&kit, "/v1/traces", "application/json", KILN_STR("{}"));
    CHECK_EQ(kit.answer.status, 404);
    post(&kit, "/v1/logs", "application/json", KILN_STR("{}"));
    CHECK_EQ(kit.answer.status, 200);
    post(&kit, "/v1/logs", PROTO, KILN_STR(""));
    CHECK_EQ(kit.answer.status, 200);
    CHECK_EQ(kit.n, 0);
    kiln_buf_done(&body);
    ways_stop(&kit);
}

TEST(collector_otlp, outcomes_of_exporters_are_the_answer)
{
    static const struct {
        int code, http;
        enum kiln_rpc_code rpc;
        bool retryable;
    } rows[] = {
        {-EAGAIN, 429, KILN_RPC_UNAVAILABLE, true},
        {-ESHUTDOWN, 503, KILN_RPC_UNAVAILABLE, true},
        {KILN_E_LIMIT, 413, KILN_RPC_RESOURCE_EXHAUSTED, false},
        {KILN_E_MALFORMED, 400, KILN_RPC_INVALID_ARGUMENT, false},
    };
    struct kiln_buf body;
    struct ways kit;

    message(&body);
    ways_start(&kit, KILN_RECEIVER, "otlp", BOTH);
    for (size_t i = 0; i < KILN_ARRAY_LEN(rows); i++) {
        kit.outcome.code = rows[i].code;
        ways_grpc(&kit, "grpc", PROFILES, kiln_buf_str(&body));
        CHECK_EQ(kit.answer.rpc_code, rows[i].rpc);
        CHECK_EQ(kit.answer.retryable, rows[i].retryable);
        post(&kit, "/v1/traces", PROTO, others[0].body);
        CHECK_EQ(kit.answer.status, rows[i].http);
        CHECK_EQ(kit.answer.retryable, rows[i].retryable);
    }
    kiln_buf_done(&body);
    ways_stop(&kit);
}

TEST(collector_otlp, limits_hold_before_and_after_decompression)
{
    char *zeros = kiln_calloc(3, 1 << 20);
    struct kiln_str large = {zeros, 3 << 20};
    struct kiln_buf bomb;
    struct ways kit;

    kiln_buf_init(&bomb, 4u << 20);
    CHECK_OK(kiln_compress(KILN_GZIP, 6, large, &bomb));
    ways_start(&kit, KILN_RECEIVER, "otlp",
               "protocols:\n"
               "  grpc: {endpoint: 127.0.0.1:0, max_recv_msg_size_mib: 2}\n"
               "  http: {endpoint: 127.0.0.1:0, max_request_body_size: 2097152}\n");
    ways_grpc(&kit, "grpc", PROFILES, large);
    CHECK_EQ(kit.answer.rpc_code, KILN_RPC_RESOURCE_EXHAUSTED);
    CHECK(!kit.answer.retryable);
    post(&kit, "/v1development/profiles", PROTO, large);
    CHECK_EQ(kit.answer.status, 413);
    ways_call(&kit, "http",
              &(struct kiln_call){.path = "/v1/traces",
                                  .content_type = PROTO,
                                  .encoding = KILN_GZIP,
                                  .body = kiln_buf_str(&bomb)});
    CHECK_EQ(kit.answer.status, 413);
    CHECK(atomic_load(&kit.pool.peak) < 16u << 20);
    kiln_free(zeros);
    kiln_buf_done(&bomb);
    ways_stop(&kit);
}

TEST(collector_otlp, paths_can_be_chosen)
{
    struct kiln_buf body;
    struct ways kit;

    message(&body);
    ways_start(&kit, KILN_RECEIVER, "otlp",
               "protocols: {http: {endpoint: 127.0.0.1:0, profiles_url_path: /p, "
               "traces_url_path: /t}}");
    post(&kit, "/p", PROTO, kiln_buf_str(&body));
    CHECK_EQ(kit.answer.status, 200);
    post(&kit, "/t", PROTO, others[0].body);
    CHECK_EQ(kit.answer.status, 200);
    CHECK_EQ(kit.n, 2);
    kiln_buf_done(&body);
    ways_stop(&kit);
}

TEST(collector_otlp, browsers_may_ask_where_cors_is_on)
{
    struct ways kit;
    const char *answer;

    ways_start(&kit, KILN_RECEIVER, "otlp",
               "protocols: {http: {endpoint: 127.0.0.1:0,\n"
               "  cors: {allowed_origins: ['https://*.example.com'], allowed_headers: [x-a],\n"
               "         max_age: 600},\n"
               "  response_headers: {x-more: here}}}");
    answer =
        net_talk(ways_port(&kit, "http"), "OPTIONS /v1development/profiles HTTP/1.1\r\nhost: a\r\n"
                                          "origin: https://app.example.com\r\nconnection: close\r\n"
                                          "access-control-request-method: POST\r\n\r\n");
    CHECK_EQ(net_status(answer), 204);
    CHECK(strstr(answer, "access-control-allow-origin: https://app.example.com\r\n"));
    CHECK(strstr(answer, "access-control-allow-methods: POST\r\n"));
    CHECK(strstr(answer, "access-control-allow-headers: Content-Type, Content-Encoding, x-a\r\n"));
    CHECK(strstr(answer, "access-control-max-age: 600\r\n"));
    CHECK(strstr(answer, "x-more: here\r\n"));
    answer = net_talk(ways_port(&kit, "http"),
                      "POST /v1development/profiles HTTP/1.1\r\nhost: a\r\n"
                      "origin: https://app.example.com\r\nconnection: close\r\n"
                      "content-type: application/json\r\ncontent-length: 2\r\n\r\n{}");
    CHECK_EQ(net_status(answer), 200);
    CHECK(strstr(answer, "access-control-allow-origin: https://app.example.com\r\n"));
    answer = net_talk(ways_port(&kit, "http"),
                      "OPTIONS /v1/traces HTTP/1.1\r\nhost: a\r\n"
                      "origin: https://elsewhere.com\r\nconnection: close\r\n\r\n");
    CHECK(!strstr(answer, "access-control-allow-origin"));
    ways_stop(&kit);
}

TEST(collector_otlp, unix_sockets)
{
    char path[64], yaml[160], address[80];
    struct kiln_client *client;
    struct kiln_err err = {0};
    struct kiln_buf body;
    struct ways kit;

    snprintf(path, sizeof(path), "/tmp/kiln-otlp-%d.sock", (int)getpid());
    snprintf(yaml, sizeof(yaml), "protocols: {grpc: {endpoint: %s, transport: unix}}", path);
    snprintf(address, sizeof(address), "unix:%s", path);
    message(&body);
    ways_start(&kit, KILN_RECEIVER, "otlp", yaml);
    CHECK_OK(kiln_client_new(&(struct kiln_client_opts){.server = address}, &client, &err));
    CHECK_OK(kiln_client_grpc(client,
                              &(struct kiln_call){.path = PROFILES, .body = kiln_buf_str(&body)},
                              &kit.answer, &err));
    CHECK_EQ(kit.answer.rpc_code, 0);
    kiln_client_free(client);
    kiln_buf_done(&body);
    ways_stop(&kit);
    CHECK(access(path, F_OK) < 0);
}

/* Statement 52: one address for both. */
TEST(collector_otlp, both_protocols_may_share_an_endpoint)
{
    char folder[FOLDER_NAME], path[80], yaml[256], address[96];
    struct kiln_client *client;
    struct kiln_answer answer;
    struct kiln_err err = {0};
    struct kiln_buf body;
    struct ways kit;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/s", folder);
    snprintf(yaml, sizeof(yaml),
             "protocols: {grpc: {endpoint: %s, transport: unix}, "
             "http: {endpoint: %s, transport: unix}}",
             path, path);
    snprintf(address, sizeof(address), "unix:%s", path);
    ways_start(&kit, KILN_RECEIVER, "otlp", yaml);
    message(&body);
    CHECK_OK(kiln_client_new(&(struct kiln_client_opts){.server = address}, &client, &err));
    kiln_answer_init(&answer);
    CHECK_OK(kiln_client_grpc(
        client, &(struct kiln_call){.path = PROFILES, .body = kiln_buf_str(&body)}, &answer, &err));
    CHECK_EQ(answer.rpc_code, 0);
    CHECK_OK(kiln_client_call(client,
                              &(struct kiln_call){.path = "/v1development/profiles",
                                                  .content_type = PROTO,
                                                  .body = kiln_buf_str(&body)},
                              &answer, &err));
    CHECK_EQ(answer.status, 200);
    CHECK_EQ(kit.n, 2);
    kiln_answer_done(&answer);
    kiln_client_free(client);
    kiln_buf_done(&body);
    ways_stop(&kit);
    folder_remove(folder);
    CHECK_TEXT(ways_refusal(KILN_RECEIVER, "otlp",
                            "{protocols: {grpc: {endpoint: 'a:1', auth: {authenticator: x}}, "
                            "http: {endpoint: 'a:1'}}}"),
               "line 1, column 13: grpc and http at one endpoint need the same tls and auth");
}

TEST(collector_otlp, a_socket_outlives_its_receiver)
{
    struct kiln_err err = {0};
    struct kiln_buf body;
    struct ways kit;
    uint16_t port;

    message(&body);
    ways_start(&kit, KILN_RECEIVER, "otlp", BOTH);
    port = ways_port(&kit, "grpc");
    kiln_sockets_turn(kit.sockets);
    kit.component->ops->stop(kit.component, 0);
    kit.component->ops->free(kit.component);
    close(net_connect(port)); /* waits in the queue: nobody accepts, nobody refuses */
    CHECK_OK(kit.type->make(&(struct kiln_component_env){.id = "otlp",
                                                         .next = {&kit.ends[0].consumer},
                                                         .pool = &kit.pool,
                                                         .sockets = kit.sockets,
                                                         .metrics = kit.metrics},
                            kit.settings, &kit.component, &err));
    CHECK_OK(kit.component->ops->start(kit.component, &err));
    kiln_sockets_trim(kit.sockets);
    CHECK_EQ(ways_port(&kit, "grpc"), port);
    ways_grpc(&kit, "grpc", PROFILES, kiln_buf_str(&body));
    CHECK_EQ(kit.answer.rpc_code, 0);
    kiln_buf_done(&body);
    ways_stop(&kit);
}

TEST(collector_otlp, settings_that_are_wrong)
{
    static const char *const rows[][2] = {
        {"{}", "line 1, column 1: must specify at least one protocol when using the OTLP receiver "
               "(protocols: {grpc: , http: })"},
        {"{protocols: {thrift: }}", "line 1, column 14: unknown key thrift"},
        {"{protocols: {grpc: {endpoint: ''}}}", "line 1, column 20: endpoint: it is empty"},
        {"{protocols: {grpc: {endpiont: a}}}",
         "line 1, column 21: unknown key endpiont (did you mean endpoint?)"},
        {"{protocols: {http: {max_request_body_size: many}}}",
         "line 1, column 44: max_request_body_size: \"many\" is not a size (say 64M, 2GiB)"},
        {"{protocols: {http: {traces_url_path: [a]}}}",
         "line 1, column 38: traces_url_path is a list, not a text"},
        {"{protocols: {grpc: {transport: pigeon}}}",
         "line 1, column 20: transport: \"pigeon\" is not known; tcp and unix are"},
        {"{protocols: {grpc: {keepalive: {server_parameters: {max_connection_idle: x}}}}}",
         "line 1, column 74: max_connection_idle: \"x\" is not a time span (say 15s, 12h, 14d)"},
        {"{protocols: {grpc: {max_concurrent_streams: many}}}",
         "line 1, column 45: max_concurrent_streams: \"many\" is not a size (say 64M, 2GiB)"},
        {"{protocols: {http: {keep_alives_enabled: perhaps}}}",
         "line 1, column 42: keep_alives_enabled: \"perhaps\" is not true or false"},
        {"{protocols: {grpc: {keepalive: {enforcement_policy: {min_tiem: 1s}}}}}",
         "line 1, column 54: unknown key min_tiem (did you mean min_time?)"},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(rows); i++)
        CHECK_TEXT(ways_refusal(KILN_RECEIVER, "otlp", rows[i][0]), rows[i][1]);
}

/* ---- who sent it ---- */

TEST(collector_otlp, headers_are_seen_where_they_are_included)
{
    struct kiln_header header = {KILN_STR("x-team"), KILN_STR("pay")};
    struct kiln_buf body;
    struct ways kit;

    message(&body);
    ways_start(&kit, KILN_RECEIVER, "otlp",
               "{protocols: {grpc: {endpoint: 127.0.0.1:0}, "
               "http: {endpoint: 127.0.0.1:0, include_metadata: true}}}");
    ways_call(&kit, "http",
              &(struct kiln_call){.path = "/v1development/profiles",
                                  .content_type = PROTO,
                                  .body = kiln_buf_str(&body),
                                  .headers = &header,
                                  .n_headers = 1});
    ways_grpc(&kit, "grpc", PROFILES, kiln_buf_str(&body));
    CHECK_EQ(kit.n, 2);
    CHECK(kit.got[0].n_headers > 1);
    CHECK_EQ(kit.got[1].n_headers, 0);
    for (uint32_t i = 0; i < 2; i++)
        CHECK(strncmp(kit.got[i].address, "127.0.0.1:", 10) == 0);
    kiln_buf_done(&body);
    ways_stop(&kit);
}

/* ---- how long connections live ---- */

/* A connection of HTTP/2 to a receiver of these settings, which pings so often. */
static struct h2_client *live(struct ways *kit, const char *what, const char *keepalive, int pings)
{
    struct h2_client *c = calloc(1, sizeof(*c));
    char yaml[400];

    snprintf(yaml, sizeof(yaml),
             "{protocols: {grpc: {endpoint: 127.0.0.1:0, keepalive: %s}, "
             "http: {endpoint: 127.0.0.1:0}}}",
             keepalive);
    ways_start(kit, KILN_RECEIVER, "otlp", yaml);
    h2_open(c, net_connect(ways_port(kit, what)), NULL);
    for (int i = 0; i < pings; i++) {
        uint32_t pongs = c->n_pongs;

        CHECK_OK(nghttp2_submit_ping(c->session, 0, NULL));
        while (c->n_pongs == pongs && !c->goaway)
            h2_step(c);
        usleep(3000);
    }
    return c;
}

static void leave(struct ways *kit, struct h2_client *c)
{
    h2_done(c);
    close(c->fd);
    free(c);
    ways_stop(kit);
}

TEST(collector_otlp, pings_are_policed_as_grpc_go_does_it)
{
    struct ways kit;
    struct h2_client *c = live(&kit, "grpc", "", 4);

    CHECK_TEXT(c->goaway_text, "too_many_pings");
    leave(&kit, c);
    c = live(&kit, "grpc", "{enforcement_policy: {min_time: 1ms}}", 4);
    CHECK_TEXT(c->goaway_text, "too_many_pings");
    leave(&kit, c);
    c = live(&kit, "grpc", "{enforcement_policy: {permit_without_stream: true}}", 4);
    CHECK_TEXT(c->goaway_text, "too_many_pings");
    leave(&kit, c);
    c = live(&kit, "grpc", "{enforcement_policy: {min_time: 1ms, permit_without_stream: true}}",
             10);
    CHECK(!c->goaway);
    leave(&kit, c);
    c = live(&kit, "http", "", 10); /* net/http has no such rules */
    CHECK(!c->goaway);
    leave(&kit, c);
}

TEST(collector_otlp, connections_end_by_age_and_rest)
{
    static const char *const rows[] = {
        "{server_parameters: {max_connection_age: 20ms, max_connection_age_grace: 1h}}",
        "{server_parameters: {max_connection_idle: 20ms}}",
    };
    struct ways kit;

    for (size_t i = 0; i < KILN_ARRAY_LEN(rows); i++) {
        struct h2_client *c = live(&kit, "grpc", rows[i], 0);

        h2_wait_end(c);
        CHECK(c->goaway);
        CHECK_EQ(c->goaway_error, NGHTTP2_NO_ERROR);
        leave(&kit, c);
    }
}

TEST(collector_otlp, who_is_silent_is_asked_whether_he_is_there)
{
    struct ways kit;
    struct h2_client *c = live(&kit, "grpc", "{server_parameters: {time: 1ms, timeout: 1ms}}", 0);

    net_wait_closed(c->fd);
    leave(&kit, c);
}

/* ---- who may come in ---- */

#define PIPELINE                                                                                   \
    "exporters: {nop: }\n"                                                                         \
    "service: {extensions: [%s], pipelines: {profiles: {receivers: [otlp], exporters: [nop]}}}\n"
#define GUARDED                                                                                    \
    "receivers: {otlp: {protocols: {http: {endpoint: '127.0.0.1:0', "                              \
    "auth: {authenticator: %s}}}}}\n"

static void ask(struct ways *kit, const char *authorization, int status)
{
    struct kiln_header header = {KILN_STR("authorization"), kiln_str_of(authorization)};

    ways_call(kit, "http",
              &(struct kiln_call){.path = "/v1development/profiles",
                                  .content_type = "application/json",
                                  .body = KILN_STR("{}"),
                                  .headers = &header,
                                  .n_headers = *authorization != '\0'});
    CHECK_EQ(kit->answer.status, status);
}

TEST(collector_otlp, bearer_tokens)
{
    char yaml[1024];
    struct ways kit;

    snprintf(yaml, sizeof(yaml),
             "extensions: {bearertokenauth: {tokens: [one, two, 0x1F]}}\n" GUARDED PIPELINE,
             "bearertokenauth", "bearertokenauth");
    ways_start_graph(&kit, yaml);
    ask(&kit, "", 401);
    ask(&kit, "Bearer three", 401);
    ask(&kit, "Bearer two", 200);
    ask(&kit, "bearer one", 200);
    ask(&kit, "Bearer 31", 401); /* a token is what was written, */
    ask(&kit, "Bearer 0x1F", 200);
    ways_stop(&kit);
}

/* A configuration that takes names or tokens from a file with these lines, in a new folder. */
static void with_lines(const char *type, const char *key, const char *lines,
                       char folder[FOLDER_NAME], char yaml[1024])
{
    char file[FOLDER_NAME + 8];
    int n;

    folder_make(folder);
    snprintf(file, sizeof(file), "%s/lines", folder);
    CHECK_OK(kiln_file_write(file, kiln_str_of(lines), NULL));
    n = snprintf(yaml, 1024, "extensions:\n  %s:\n    %s '%s'\n" GUARDED PIPELINE, type, key, file,
                 type, type);
    CHECK(n < 1024);
}

/* The first word of each line is a token; what stands behind it says whose it is. */
TEST(collector_otlp, files_of_tokens)
{
    char folder[FOLDER_NAME], yaml[1024];
    struct ways kit;

    with_lines("bearertokenauth", "filename:", "# of the fleet\none  alice's\n\ntwo\t# bob's\n",
               folder, yaml);
    ways_start_graph(&kit, yaml);
    ask(&kit, "Bearer one", 200);
    ask(&kit, "Bearer two", 200);
    ask(&kit, "Bearer one  alice's", 401);
    ask(&kit, "Bearer #", 401);
    ways_stop(&kit);
    folder_remove(folder);
}

#define SHA_SECRET "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="

TEST(collector_otlp, files_of_passwords)
{
    char folder[FOLDER_NAME], yaml[1024];
    struct ways kit;

    with_lines("basicauth", "htpasswd:\n      file:", "sha:" SHA_SECRET "\n", folder, yaml);
    ways_start_graph(&kit, yaml);
    ask(&kit, "Basic c2hhOnNlY3JldA==", 200);                                     /* sha:secret */
    ask(&kit, "Basic c2hhOntTSEF9NWVuNkc2TWV6UnJvVDNYS3FrZFBPbVkvQmZRPQ==", 401); /* its hash */
    ways_stop(&kit);
    folder_remove(folder);
    /* Both: the first of a name counts. */
    with_lines("basicauth",
               "htpasswd:\n      inline: 'sha:other'\n      file:", "sha:" SHA_SECRET "\na:b\n",
               folder, yaml);
    ways_start_graph(&kit, yaml);
    ask(&kit, "Basic c2hhOnNlY3JldA==", 401);
    ask(&kit, "Basic c2hhOm90aGVy", 200); /* sha:other */
    ask(&kit, "Basic YTpi", 200);         /* a:b */
    ways_stop(&kit);
    folder_remove(folder);
    with_lines("basicauth", "htpasswd:\n      file:", "a:b\nmd:{MD5}abc\n", folder, yaml);
    CHECK(strstr(ways_graph_refusal(yaml), "line 2: passwords may be plain, or hashed"));
    folder_remove(folder);
}

TEST(collector_otlp, names_and_passwords)
{
    char yaml[1024];
    struct ways kit;

    /* "plain:secret", and "hashed:secret" by bcrypt. */
    snprintf(yaml, sizeof(yaml),
             "extensions:\n  basicauth/a:\n    htpasswd:\n      inline: |\n"
             "        plain:secret\n"
             "        hashed:$$2b$$04$$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n"
             "        sha:" SHA_SECRET "\n" GUARDED PIPELINE,
             "basicauth/a", "basicauth/a");
    ways_start_graph(&kit, yaml);
    ask(&kit, "", 401);
    ask(&kit, "Basic cGxhaW46c2VjcmV0", 200);     /* plain:secret */
    ask(&kit, "Basic cGxhaW46b3RoZXI=", 401);     /* plain:other */
    ask(&kit, "Basic aGFzaGVkOnNlY3JldA==", 200); /* hashed:secret */
    ask(&kit, "Basic aGFzaGVkOnNlY3JldA==", 200); /* as remembered */
    ask(&kit, "Basic aGFzaGVkOm90aGVy", 401);     /* hashed:other */
    ask(&kit, "Basic aGFzaGVkOm90aGVy", 401);     /* as remembered */
    ask(&kit, "Basic c2hhOnNlY3JldA==", 200);     /* sha:secret */
    ask(&kit, "Basic c2hhOntTSEF9NWVuNkc2TWV6UnJvVDNYS3FrZFBPbVkvQmZRPQ==", 401); /* its hash */
    ways_stop(&kit);
}

TEST(collector_otlp, an_authenticator_must_be_there)
{
    char yaml[1024];

    snprintf(
        yaml, sizeof(yaml),
        "extensions: {basicauth: {client_auth: {username: a, password: b}}}\n" GUARDED PIPELINE,
        "basicauth", "basicauth");
    CHECK(strstr(ways_graph_refusal(yaml), "\"basicauth\" is for exporters: it has client_auth"));
    snprintf(
        yaml, sizeof(yaml),
        "extensions: {basicauth: {client_auth: {username: a, password: b}}}\n" GUARDED PIPELINE,
        "nobody", "basicauth");
    CHECK(strstr(ways_graph_refusal(yaml), "failed to resolve authenticator \"nobody\""));
}

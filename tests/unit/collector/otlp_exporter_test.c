/* SPDX-License-Identifier: Apache-2.0 */
/* The exporters of OTLP as a configuration makes them, before a real server of Kiln's. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/otlp.h"
#include "collector/registry.h"
#include "intake.h"
#include "net.h"
#include "net/rpc.h"
#include "test.h"

#define PATIENCE_NS (60 * KILN_NS_PER_S) /* which no working test needs */

struct fixture {
    struct kiln_config *config;
    struct kiln_component *component;
    struct kiln_metrics *metrics;
    void *settings;
    _Atomic int ended;
    struct kiln_outcome outcome;
    bool alone;   /* no server is at work beside it */
    int64_t live; /* blocks before it was made */
};

/* NULL where it can be made; else what is said. */
static const char *make(struct fixture *f, const char *type_name, const char *text,
                        enum kiln_signal signal)
{
    static char said[512];
    const struct kiln_component_type *type =
        kiln_component_find(KILN_EXPORTER, kiln_str_of(type_name));
    struct kiln_err err = {0};
    int r;

    CHECK(type);
    f->live = kiln_mem_live();
    CHECK_OK(kiln_metrics_new(&f->metrics));
    CHECK_OK(kiln_config_parse(kiln_str_of(text), &f->config, &err));
    f->settings = calloc(1, type->settings_size);
    r = type->read(kiln_config_root(f->config), f->settings, &err);
    if (r == 0)
        r = type->make(
            &(struct kiln_component_env){.id = "otlp/x", .signal = signal, .metrics = f->metrics},
            f->settings, &f->component, &err);
    if (r == 0 && f->component->ops->start)
        r = f->component->ops->start(f->component, &err);
    if (r == 0)
        return NULL;
    snprintf(said, sizeof(said), "%s: %s", err.where, err.text);
    return said;
}

static void stop(struct fixture *f, uint64_t wait_ns)
{
    if (f->component->ops->stop)
        f->component->ops->stop(f->component, kiln_clock_mono_ns() + wait_ns);
}

static void finish(struct fixture *f)
{
    if (f->component)
        f->component->ops->free(f->component);
    free(f->settings);
    kiln_config_free(f->config);
    kiln_metrics_free(f->metrics);
    if (f->alone)
        CHECK_EQ(kiln_mem_live(), f->live);
}

/* What is said of settings that cannot be meant. */
static const char *said(const char *type, const char *text)
{
    struct fixture f = {.alone = true};
    const char *what = make(&f, type, text, KILN_SIGNAL_PROFILES);

    if (!what)
        stop(&f, 0);
    finish(&f);
    return what ? what : "";
}

static void ended(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    struct fixture *f = delivery->context;

    f->outcome = *outcome;
    atomic_fetch_add(&f->ended, 1);
    free(delivery);
}

static struct kiln_delivery *new_delivery(struct fixture *f, const char *stacks)
{
    struct kiln_delivery *delivery = calloc(1, sizeof(*delivery));

    delivery->batch = kiln_test_batch(&(struct kiln_drawn){.stacks = stacks,
                                                           .type = "cpu",
                                                           .unit = "nanoseconds",
                                                           .time_ns = UINT64_C(1700000000000000000),
                                                           .resource = "service.name=shop"},
                                      1);
    delivery->done = ended;
    delivery->context = f;
    return delivery;
}

static void send_stacks(struct fixture *f, const char *stacks)
{
    f->component->in->consume(f->component->in, new_delivery(f, stacks));
}

static double count(struct fixture *f, const char *name)
{
    return kiln_metric_value(
        kiln_metric_get(f->metrics, KILN_COUNTER, name, "", KILN_LABELS("exporter", "otlp/x")));
}

static void wait_for(struct fixture *f, const char *name, double value)
{
    uint64_t patience = kiln_clock_mono_ns() + PATIENCE_NS;

    while (count(f, name) < value && kiln_clock_mono_ns() < patience)
        sched_yield();
    CHECK_EQ(count(f, name), value);
}

/* ---- sending ---- */

TEST(otlp_exporter, speaks_every_protocol_with_every_compression)
{
    static const char *const types[] = {"otlp_grpc", "otlp", "otlp_http", "otlphttp"};
    static const char *const rests[] = {"compression: none", "compression: gzip",
                                        "compression: zstd", "timeout: 9s"};

    for (uint32_t i = 0; i < 16; i++) {
        struct fixture f = {0};
        struct intake in;
        char text[256];

        intake_start(&in, NULL);
        snprintf(text, sizeof(text), "{endpoint: 'http://127.0.0.1:%u', %s%s}", in.port,
                 rests[i % 4], i == 15 ? ", encoding: json" : "");
        CHECK(!make(&f, types[i / 4], text, KILN_SIGNAL_PROFILES));
        send_stacks(&f, "main;read 3\n");
        send_stacks(&f, "main;write 4\n");
        stop(&f, PATIENCE_NS);
        CHECK_EQ(f.ended, 2);
        CHECK_EQ(f.outcome.code, 0);
        CHECK_EQ(in.n, 2);
        if (i != 15)
            CHECK_EQ(in.got[0].compression, i % 4 == 3 ? KILN_GZIP : i % 4);
        CHECK_EQ(count(&f, "otelcol_exporter_sent_profile_samples"), 2);
        intake_stop(&in);
        f.live = 0;
        f.alone = true;
        finish(&f);
    }
}

TEST(otlp_exporter, sends_all_over_one_connection)
{
    static const char *const types[] = {"otlp_grpc", "otlp_http"};

    for (uint32_t i = 0; i < 2; i++) {
        struct fixture f = {0};
        struct intake in;
        char text[256];

        intake_start(&in, NULL);
        snprintf(text, sizeof(text),
                 "{endpoint: 'http://127.0.0.1:%u', sending_queue: {num_consumers: 1}}", in.port);
        CHECK(!make(&f, types[i], text, KILN_SIGNAL_PROFILES));
        for (int n = 1; n <= 5; n++) {
            send_stacks(&f, "main;read 3\n");
            wait_for(&f, "otelcol_exporter_sent_profile_samples", n);
        }
        CHECK_EQ(intake_count(&in, "\nkiln_http_connections_total"), 1);
        stop(&f, PATIENCE_NS);
        CHECK_EQ(in.n, 5);
        intake_stop(&in);
        finish(&f);
    }
}

/* A body goes on as it came, byte for byte, unless it is of another revision or compression. */
TEST(otlp_exporter, forwards_what_need_not_change)
{
    struct fixture f = {0};
    struct kiln_delivery *delivery;
    struct kiln_buf seen;
    struct intake in;
    char text[128];

    kiln_buf_init(&seen, 1 << 20);
    intake_start(&in, NULL);
    snprintf(text, sizeof(text), "{endpoint: 'http://127.0.0.1:%u', compression: none}", in.port);
    CHECK(!make(&f, "otlp_grpc", text, KILN_SIGNAL_PROFILES));
    delivery = new_delivery(&f, "main;read 3\n");
    CHECK_OK(kiln_otlp_encode(delivery->batch, &(struct kiln_otlp_encode_opts){.string_refs = true},
                              &seen, NULL)); /* which our encoder would not write by itself */
    delivery->body = kiln_buf_str(&seen);
    delivery->body_is_current = true;
    f.component->in->consume(f.component->in, delivery);
    stop(&f, PATIENCE_NS);
    CHECK_EQ(in.n, 1);
    CHECK(kiln_str_eq(kiln_buf_str(&in.got[0].body), kiln_buf_str(&seen)));
    intake_stop(&in);
    kiln_buf_done(&seen);
    finish(&f);
}

TEST(otlp_exporter, pushes_to_pyroscope)
{
    struct fixture f = {0};
    struct intake in;
    char text[128];

    intake_start(&in, NULL);
    snprintf(text, sizeof(text), "{endpoint: 'http://127.0.0.1:%u'}", in.port);
    CHECK(!make(&f, "pyroscope", text, KILN_SIGNAL_PROFILES));
    send_stacks(&f, "main;read 3\nmain;write 4\n");
    stop(&f, PATIENCE_NS);
    CHECK_EQ(count(&f, "otelcol_exporter_sent_profile_samples"), 2);
    CHECK_EQ(in.n, 1);
    CHECK_TEXT(intake_text(&in, 0),
               "{service.name=shop} process_cpu:cpu:nanoseconds:cpu:nanoseconds *1 "
               "@1700000000000000000+0s\n"
               "  main;read 3\n"
               "  main;write 4\n");
    intake_stop(&in);
    f.alone = true;
    f.live = 0;
    finish(&f);
}

/* Twenty profiles of the same function: as OTLP they have one dictionary, as pprof twenty. */
TEST(otlp_exporter, pushes_are_under_the_limit_too)
{
    struct kiln_drawn drawn[20];
    struct fixture f = {0};
    struct intake in;
    char text[200], name[800];
    struct kiln_delivery *delivery = new_delivery(&f, "main 1\n");
    uint64_t samples = 0;

    memset(name, 'f', sizeof(name));
    memcpy(name + sizeof(name) - 4, " 1\n", 4);
    for (size_t i = 0; i < KILN_ARRAY_LEN(drawn); i++)
        drawn[i] = (struct kiln_drawn){
            .stacks = name, .type = "cpu", .unit = "nanoseconds", .time_ns = 1 + i};
    kiln_batch_unref(delivery->batch);
    delivery->batch = kiln_test_batch(drawn, KILN_ARRAY_LEN(drawn));
    intake_start(&in, NULL);
    snprintf(text, sizeof(text),
             "{endpoint: 'http://127.0.0.1:%u', max_request_size: 4096, compression: none}",
             in.port);
    CHECK(!make(&f, "pyroscope", text, KILN_SIGNAL_PROFILES));
    f.component->in->consume(f.component->in, delivery);
    stop(&f, PATIENCE_NS);
    CHECK_EQ(count(&f, "otelcol_exporter_sent_profile_samples"), 20);
    CHECK(in.n >= 5);
    for (uint32_t i = 0; i < in.n; i++)
        samples += in.got[i].batch->n_samples;
    CHECK_EQ(samples, 20);
    intake_stop(&in);
    f.alone = true;
    f.live = 0;
    finish(&f);
}

/* ---- receivers with moods ---- */

static _Atomic uint32_t asked;
static enum kiln_rpc_code mood_code;
static uint32_t mood_retry_s, mood_bad; /* so many are answered badly */
static char seen_path[256], seen_headers[256], seen_type[64], seen_host[64];

static void moody(struct kiln_rpc *rpc)
{
    struct kiln_request *request = rpc->request;

    snprintf(seen_path, sizeof(seen_path), "%.*s", KILN_STR_ARG(request->path));
    snprintf(seen_headers, sizeof(seen_headers), "%.*s %.*s",
             KILN_STR_ARG(kiln_request_header(request, "x-scope-orgid")),
             KILN_STR_ARG(kiln_request_header(request, "user-agent")));
    snprintf(seen_host, sizeof(seen_host), "%.*s",
             KILN_STR_ARG(kiln_request_header(request, "host")));
    snprintf(seen_type, sizeof(seen_type), "%.*s",
             KILN_STR_ARG(kiln_request_header(request, "content-type")));
    if (atomic_fetch_add(&asked, 1) < mood_bad)
        kiln_rpc_fail(rpc, &(struct kiln_rpc_status){
                               .code = mood_code, .message = "no", .retry_after_s = mood_retry_s});
    else
        kiln_rpc_reply(rpc, KILN_STR(""));
}

static void start_moody(struct net_fixture *net, const char *const *paths)
{
    *net = (struct net_fixture){0};
    asked = 0;
    CHECK_OK(kiln_router_new(&net->router));
    for (; *paths; paths++)
        CHECK_OK(kiln_rpc_add(
            net->router, &(struct kiln_rpc_route){.path = *paths,
                                                  .handler = moody,
                                                  .http_only = strncmp(*paths, "/open", 5) != 0 &&
                                                               !strstr(*paths, "Service")}));
    net_start(net, NULL);
}

static const char *const own_paths[] = {
    "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
    "/v1development/profiles", NULL};

TEST(otlp_exporter, tries_again_exactly_what_may_be_tried_again)
{
    static const bool retryable[17] = {
        [KILN_RPC_CANCELLED] = true,   [KILN_RPC_DEADLINE_EXCEEDED] = true,
        [KILN_RPC_ABORTED] = true,     [KILN_RPC_OUT_OF_RANGE] = true,
        [KILN_RPC_UNAVAILABLE] = true, [KILN_RPC_DATA_LOSS] = true,
    };
    struct net_fixture net;

    start_moody(&net, own_paths);
    for (int code = 1; code <= 16; code++) {
        struct fixture f = {0};
        char text[256];

        asked = 0;
        mood_bad = 1;
        mood_code = (enum kiln_rpc_code)code;
        mood_retry_s = 0;
        snprintf(text, sizeof(text),
                 "{endpoint: '127.0.0.1:%u', tls: {insecure: true}, "
                 "retry_on_failure: {initial_interval: 1ms}}",
                 net.port);
        CHECK(!make(&f, "otlp", text, KILN_SIGNAL_PROFILES));
        send_stacks(&f, "main 1\n");
        wait_for(&f,
                 retryable[code] ? "otelcol_exporter_sent_profile_samples"
                                 : "otelcol_exporter_send_failed_profile_samples",
                 1);
        stop(&f, PATIENCE_NS);
        CHECK_EQ(asked, retryable[code] ? 2 : 1);
        finish(&f);
    }
    net_stop(&net);
}

TEST(otlp_exporter, sends_headers_and_a_prefix_of_the_path)
{
    static const char *const paths[] = {
        "/otlp/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
        "/base/v1development/profiles", "/exact", NULL};
    static const char *const types[] = {"otlp", "otlp_http", "otlp_http"};
    static const char *const ends[] = {"endpoint: 'http://127.0.0.1:%u/otlp'",
                                       "endpoint: 'http://127.0.0.1:%u/base/'",
                                       "profiles_endpoint: 'http://127.0.0.1:%u/exact'"};
    struct net_fixture net;

    mood_bad = 0;
    start_moody(&net, paths);
    for (int i = 0; i < 3; i++) {
        struct fixture f = {0};
        char end[128], text[256];

        snprintf(end, sizeof(end), ends[i], net.port);
        snprintf(text, sizeof(text), "{%s, headers: {X-Scope-OrgID: a b}}", end);
        CHECK(!make(&f, types[i], text, KILN_SIGNAL_PROFILES));
        send_stacks(&f, "main 1\n");
        stop(&f, PATIENCE_NS);
        CHECK_EQ(count(&f, "otelcol_exporter_sent_profile_samples"), 1);
        CHECK_TEXT(seen_path, paths[i]);
        CHECK_TEXT(seen_headers, "a b kiln/" KILN_VERSION);
        finish(&f);
    }
    net_stop(&net);
}

TEST(otlp_exporter, asks_for_the_authority_it_is_told)
{
    struct fixture f = {0};
    struct net_fixture net;
    char text[128];

    mood_bad = 0;
    start_moody(&net, own_paths);
    snprintf(text, sizeof(text),
             "{endpoint: 'http://127.0.0.1:%u', authority: 'profiles.example:443'}", net.port);
    CHECK(!make(&f, "otlp", text, KILN_SIGNAL_PROFILES));
    send_stacks(&f, "main 1\n");
    stop(&f, PATIENCE_NS);
    CHECK_EQ(count(&f, "otelcol_exporter_sent_profile_samples"), 1);
    CHECK_TEXT(seen_host, "profiles.example:443");
    finish(&f);
    net_stop(&net);
}

/* ---- a proxy ---- */

/* Requests for a host that there is not, to who forwards them; and what he says is kept. */
TEST(otlp_exporter, goes_through_a_proxy_and_keeps_cookies)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nSet-Cookie: lb=a7; Path=/\r\n"
                                 "Content-Type: application/x-protobuf\r\n"
                                 "Content-Length: 0\r\n\r\n";
    struct fixture f = {0};
    char text[256], first[1024], second[1024];
    uint16_t port;
    int fd = net_listen(&port), peer;

    snprintf(text, sizeof(text),
             "{endpoint: 'http://nowhere.invalid:4318', proxy_url: 'http://127.0.0.1:%u', "
             "cookies: {}, sending_queue: {num_consumers: 1}}",
             port);
    CHECK(!make(&f, "otlp_http", text, KILN_SIGNAL_PROFILES));
    send_stacks(&f, "main 1\n");
    peer = accept(fd, NULL, NULL);
    CHECK(peer >= 0);
    snprintf(first, sizeof(first), "%s", net_read_answer(peer));
    net_send(peer, answer);
    send_stacks(&f, "main 2\n");
    snprintf(second, sizeof(second), "%s", net_read_answer(peer));
    net_send(peer, answer);
    stop(&f, PATIENCE_NS);
    CHECK_EQ(count(&f, "otelcol_exporter_sent_profile_samples"), 2);
    CHECK(strstr(first, "POST http://nowhere.invalid:4318/v1development/profiles HTTP/1.1\r\n") ==
          first);
    CHECK(!strstr(first, "Cookie:"));
    CHECK(strstr(second, "\r\nCookie: lb=a7\r\n"));
    close(peer);
    close(fd);
    finish(&f);
}

TEST(otlp_exporter, connects_anew_where_connections_are_not_to_be_kept)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    struct fixture f = {0};
    char text[128];
    uint16_t port;
    int fd = net_listen(&port);

    snprintf(text, sizeof(text),
             "{endpoint: 'http://127.0.0.1:%u', disable_keep_alives: true, "
             "sending_queue: {num_consumers: 1}}",
             port);
    CHECK(!make(&f, "otlp_http", text, KILN_SIGNAL_PROFILES));
    for (int i = 0; i < 2; i++) {
        int peer;

        send_stacks(&f, "main 1\n");
        peer = accept(fd, NULL, NULL);
        CHECK(peer >= 0);
        CHECK(strncmp(net_read_answer(peer), "POST /v1development/profiles", 28) == 0);
        net_send(peer, answer);
        net_wait_closed(peer);
        close(peer);
    }
    stop(&f, PATIENCE_NS);
    CHECK_EQ(count(&f, "otelcol_exporter_sent_profile_samples"), 2);
    close(fd);
    finish(&f);
}

TEST(otlp_exporter, forwards_other_signals_to_their_own_paths)
{
    static const char *const paths[] = {
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export", "/v1/logs", NULL};
    static const char *const types[] = {"otlp", "otlp_http"};
    static const enum kiln_signal signals[] = {KILN_SIGNAL_TRACES, KILN_SIGNAL_LOGS};
    struct net_fixture net;

    mood_bad = 0;
    start_moody(&net, paths);
    for (int i = 0; i < 2; i++) {
        struct fixture f = {0};
        struct kiln_delivery *delivery = calloc(1, sizeof(*delivery));
        char text[256];

        snprintf(text, sizeof(text), "{endpoint: 'http://127.0.0.1:%u'}", net.port);
        CHECK(!make(&f, types[i], text, signals[i]));
        *delivery = (struct kiln_delivery){.signal = signals[i],
                                           .body = KILN_STR("\x0a\x00"),
                                           .items = 7,
                                           .done = ended,
                                           .context = &f};
        f.component->in->consume(f.component->in, delivery);
        stop(&f, PATIENCE_NS);
        CHECK_EQ(f.outcome.code, 0);
        CHECK_EQ(asked, i + 1);
        CHECK_TEXT(seen_path, paths[i]);
        CHECK_EQ(count(&f, i ? "otelcol_exporter_sent_log_records" : "otelcol_exporter_sent_spans"),
                 7);
        finish(&f);
    }
    net_stop(&net);
}

TEST(otlp_exporter, forwards_json_of_other_signals_as_json)
{
    static const char *const paths[] = {"/v1/traces", NULL};
    struct net_fixture net;
    struct fixture f = {0};
    char text[256];

    mood_bad = 0;
    start_moody(&net, paths);
    snprintf(text, sizeof(text), "{endpoint: 'http://127.0.0.1:%u'}", net.port);
    CHECK(!make(&f, "otlp_http", text, KILN_SIGNAL_TRACES));
    CHECK(f.component->in->takes_json);
    for (int json = 0; json < 2; json++) {
        struct kiln_delivery *delivery = calloc(1, sizeof(*delivery));

        *delivery = (struct kiln_delivery){.signal = KILN_SIGNAL_TRACES,
                                           .body = json ? KILN_STR("{}") : KILN_STR("\x0a\x00"),
                                           .body_is_json = json,
                                           .items = 7,
                                           .done = ended,
                                           .context = &f};
        f.component->in->consume(f.component->in, delivery);
        while (count(&f, "otelcol_exporter_sent_spans") < 7 * (json + 1))
            sched_yield();
        CHECK_TEXT(seen_type, json ? "application/json" : "application/x-protobuf");
    }
    stop(&f, PATIENCE_NS);
    finish(&f);
    net_stop(&net);
}

/* ---- settings ---- */

TEST(otlp_exporter, settings_that_cannot_be_meant_are_errors_with_their_place)
{
    CHECK_TEXT(said("otlp", "{}"), "endpoint: requires a non-empty \"endpoint\"");
    CHECK_TEXT(said("otlp_http", "{}"), "endpoint: at least one endpoint must be specified");
    CHECK_TEXT(said("otlp_http", "{endpoint: 'localhost:4318'}"),
               "endpoint: \"localhost:4318\" must be a valid URL (say http://localhost:4318)");
    CHECK_TEXT(said("otlp", "{endpoint: 'a:1', compression: snappy}"),
               "line 1, column 32: unsupported compression type \"snappy\" (say gzip, zstd or "
               "none)");
    CHECK(strstr(said("otlp_http", "{endpoint: 'http://a', proxy_url: 'b:80'}"),
                 "no address of a proxy (say http://b:80)"));
    CHECK(
        strstr(said("otlp_http", "{endpoint: 'http://a', cookies: {on: true}}"), "unknown key on"));
    CHECK(strstr(said("otlp_http", "{endpoint: 'http://a', authority: b}"), "authority"));
    CHECK(strstr(said("otlp", "{endpoint: 'a:1', authority: 'b:c:d'}"), "this is no authority"));
    CHECK(strstr(said("otlp", "{endpoint: 'a:1', proxy_url: 'http://b'}"), "proxy_url"));
    CHECK(strstr(said("otlp", "{endpoint: 'a:1', keepalive: {time: soon}}"), "time"));
    CHECK_TEXT(said("otlp", "{endpoint: 'a:1', keepalive: {time: 1s, timeout: 2s, "
                            "permit_without_stream: true}}"),
               "");
    CHECK_TEXT(said("otlp", "{endpoint: 'a:1', sending_queue: {queue_size: 0}}"),
               "line 1, column 34: 'queue_size' must be positive");
    CHECK_TEXT(said("otlp", "{endpoint: 'a:1', sending_queue: {num_consumers: 0}}"),
               "line 1, column 34: 'num_consumers' must be positive");
    CHECK_TEXT(said("otlp", "{endpoint: 'a:1', sending_queue: {sizer: pages}}"),
               "line 1, column 42: invalid sizer \"pages\" (say requests, items or "
               "bytes)");
    CHECK_TEXT(
        said("otlp", "{endpoint: 'a:1', sending_queue: {batch: {min_size: 5, max_size: 4}}}"),
        "line 1, column 42: 'max_size' must be greater than or equal to "
        "'min_size'");
    CHECK_TEXT(said("otlp", "{endpoint: 'a:1', sending_queue: {batch: {partition: "
                            "{metadata_keys: [x-team]}}}}"),
               "");
    CHECK(strstr(said("otlp", "{endpoint: 'a:1', sending_queue: {batch: {partition: "
                              "{metadata_keys: [a, A]}}}}"),
                 "duplicate entry in metadata_keys: \"A\""));
    CHECK_TEXT(said("otlp", "{endpoint: 'a:1', retry_on_failure: {multiplier: 0}}"),
               "line 1, column 50: 'multiplier' must be a number from 1 to 1000");
    CHECK_TEXT(said("otlp_http", "{endpoint: 'http://a', encoding: xml}"),
               "line 1, column 34: invalid encoding type \"xml\" (say proto or json)");
    CHECK_TEXT(said("otlp_http", "{endpoint: 'http://a', compression_params: {level: 12}}"),
               "line 1, column 44: unsupported compression level 12 (say 1 to 9)");
}

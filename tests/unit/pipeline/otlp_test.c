/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/mem.h"
#include "codec/otlp.h"
#include "codec/otlp_json.h"
#include "drawn.h"
#include "intake.h"
#include "test.h"

#define EXPORT "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
#define PROTO  "application/x-protobuf"

static const char expected[] =
    "{service.name=shop} process_cpu:cpu:nanoseconds:cpu:nanoseconds *1 @5+2s\n"
    "  main;parse;read 3\n"
    "  main;idle 1\n";

static struct kiln_batch *shop(void)
{
    return kiln_test_batch(&(struct kiln_drawn){.stacks = "main;parse;read 3\n"
                                                          "main;idle 1\n",
                                                .type = "cpu",
                                                .unit = "nanoseconds",
                                                .time_ns = 5,
                                                .duration_ns = 2000000000,
                                                .resource = "service.name=shop"},
                           1);
}

/* The drawn batch as a message; the buffer is the caller's. */
static struct kiln_str message(struct kiln_buf *out, bool json)
{
    struct kiln_batch *batch = shop();

    kiln_buf_init(out, 1u << 20);
    CHECK_OK(json ? kiln_otlp_json_encode(batch, out, NULL)
                  : kiln_otlp_encode(batch, NULL, out, NULL));
    kiln_batch_unref(batch);
    return kiln_buf_str(out);
}

TEST(otlp_receiver, takes_protobuf_on_every_path)
{
    static const char *const paths[] = {"/v1development/profiles", "/v1/profiles",
                                        "/otlp/v1/profiles"};
    struct intake in;
    struct kiln_buf body;

    message(&body, false);
    intake_start(&in, NULL);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(paths); i++) {
        intake_post(&in, paths[i], PROTO, kiln_buf_str(&body));
        CHECK_EQ(in.answer.status, 200);
        CHECK_EQ(in.answer.body.len, 0);
        CHECK_EQ(in.n, i + 1);
        CHECK_TEXT(intake_text(&in, i), expected);
        CHECK(kiln_str_eq(kiln_buf_str(&in.got[i].body), kiln_buf_str(&body)));
    }
    CHECK_EQ(intake_count(&in, "kiln_receiver_requests_total{receiver=\"otlp\","
                               "outcome=\"accepted\"}"),
             3);
    CHECK_EQ(intake_count(&in, "kiln_receiver_samples_total{receiver=\"otlp\","
                               "outcome=\"accepted\"}"),
             6);
    intake_stop(&in);
    kiln_buf_done(&body);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(otlp_receiver, takes_json_and_answers_in_json)
{
    struct intake in;
    struct kiln_buf body;

    message(&body, true);
    intake_start(&in, NULL);
    intake_post(&in, "/v1development/profiles", "application/json", kiln_buf_str(&body));
    CHECK_EQ(in.answer.status, 200);
    CHECK_STR(kiln_buf_str(&in.answer.body), "{}");
    CHECK_TEXT(intake_text(&in, 0), expected);
    CHECK_EQ(in.got[0].body.len, 0);
    intake_stop(&in);
    kiln_buf_done(&body);
}

TEST(otlp_receiver, takes_grpc_and_connect)
{
    struct intake in;
    struct kiln_buf body;

    message(&body, false);
    intake_start(&in, NULL);
    in.elsewhere = true;
    intake_grpc(&in, EXPORT, kiln_buf_str(&body));
    CHECK_EQ(in.answer.rpc_code, KILN_RPC_OK);
    CHECK(in.got[0].sealed);
    CHECK_TEXT(intake_text(&in, 0), expected);
    intake_post(&in, EXPORT, "application/proto", kiln_buf_str(&body));
    CHECK_EQ(in.answer.status, 200);
    CHECK_TEXT(intake_text(&in, 1), expected);
    intake_grpc(&in,
                "/opentelemetry.proto.collector.profiles.v1experimental.ProfilesService/Export",
                kiln_buf_str(&body));
    CHECK_EQ(in.answer.rpc_code, KILN_RPC_OK);
    CHECK_EQ(in.n, 3);
    intake_stop(&in);
    kiln_buf_done(&body);
}

TEST(otlp_receiver, keeps_a_compressed_body_as_it_came)
{
    static const enum kiln_compression ways[] = {KILN_GZIP, KILN_ZSTD};
    struct intake in;
    struct kiln_buf body, packed;

    message(&body, false);
    intake_start(&in, NULL);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(ways); i++) {
        kiln_buf_init(&packed, 1u << 20);
        CHECK_OK(kiln_compress(ways[i], 0, kiln_buf_str(&body), &packed));
        intake_call(&in, &(struct kiln_call){.path = "/v1/profiles",
                                             .content_type = PROTO,
                                             .body = kiln_buf_str(&packed),
                                             .encoding = ways[i]});
        CHECK_EQ(in.answer.status, 200);
        CHECK_TEXT(intake_text(&in, i), expected);
        CHECK(kiln_str_eq(kiln_buf_str(&in.got[i].body), kiln_buf_str(&packed)));
        CHECK_EQ(in.got[i].compression, ways[i]);
        kiln_buf_done(&packed);
    }
    intake_stop(&in);
    kiln_buf_done(&body);
}

TEST(otlp_receiver, an_empty_request_is_a_success)
{
    struct intake in;

    intake_start(&in, NULL);
    intake_post(&in, "/v1development/profiles", PROTO, KILN_STR_NONE);
    CHECK_EQ(in.answer.status, 200);
    CHECK_EQ(in.answer.body.len, 0);
    intake_post(&in, "/v1development/profiles", "application/json", KILN_STR("{}"));
    CHECK_EQ(in.answer.status, 200);
    CHECK_STR(kiln_buf_str(&in.answer.body), "{}");
    intake_grpc(&in, EXPORT, KILN_STR_NONE);
    CHECK_EQ(in.answer.rpc_code, KILN_RPC_OK);
    CHECK_EQ(in.n, 0);
    intake_stop(&in);
}

TEST(otlp_receiver, every_outcome_has_its_status)
{
    static const struct {
        int code, http, rpc;
        uint32_t after_s, said_s;
        bool again;
        const char *name;
    } cases[] = {
        {-EAGAIN, 429, KILN_RPC_UNAVAILABLE, 7, 7, true, "busy"},
        {-EAGAIN, 429, KILN_RPC_UNAVAILABLE, 0, 1, true, "busy"},
        {-ENOMEM, 503, KILN_RPC_UNAVAILABLE, 0, 1, true, "busy"},
        {-ENOSPC, 503, KILN_RPC_UNAVAILABLE, 30, 30, true, "storage"},
        {-EIO, 503, KILN_RPC_UNAVAILABLE, 5, 5, true, "storage"},
        {-ESHUTDOWN, 503, KILN_RPC_UNAVAILABLE, 2, 2, true, "stopping"},
        {KILN_E_LIMIT, 413, KILN_RPC_RESOURCE_EXHAUSTED, 0, 0, false, "too_large"},
        {KILN_E_MALFORMED, 400, KILN_RPC_INVALID_ARGUMENT, 0, 0, false, "rejected"},
        {KILN_E_RANGE, 400, KILN_RPC_INVALID_ARGUMENT, 9, 0, false, "rejected"},
    };
    struct intake in;
    struct kiln_buf body;

    message(&body, false);
    intake_start(&in, NULL);
    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        char series[128];
        double before;

        snprintf(series, sizeof(series),
                 "kiln_receiver_requests_total{receiver=\"otlp\",outcome=\"%s\"}", cases[i].name);
        before = intake_count(&in, series);
        in.outcome = (struct kiln_outcome){
            .code = cases[i].code,
            .retry_after_s = cases[i].after_s,
            .err = {.code = cases[i].code, .where = "profiles[1]", .text = "told so"}};
        intake_post(&in, "/v1development/profiles", PROTO, kiln_buf_str(&body));
        CHECK_EQ(in.answer.status, cases[i].http);
        CHECK_EQ(in.answer.retryable, cases[i].again);
        CHECK_EQ(in.answer.retry_after_ms, cases[i].said_s * 1000);
        CHECK_TEXT(in.answer.message, "profiles[1]: told so");
        intake_grpc(&in, EXPORT, kiln_buf_str(&body));
        CHECK_EQ(in.answer.rpc_code, cases[i].rpc);
        CHECK_EQ(in.answer.retryable, cases[i].again);
        CHECK_EQ(in.answer.retry_after_ms, cases[i].said_s * 1000);
        CHECK_EQ(intake_count(&in, series), before + 2);
        intake_clear(&in);
    }
    intake_stop(&in);
    kiln_buf_done(&body);
}

TEST(otlp_receiver, bad_protobuf_says_where)
{
    struct intake in;

    intake_start(&in, NULL);
    intake_post(&in, "/v1development/profiles", PROTO,
                KILN_STR("\x0a\x7f"
                         "abc"));
    CHECK_EQ(in.answer.status, 400);
    CHECK(!in.answer.retryable);
    CHECK(in.answer.message[0]);
    CHECK(kiln_str_contains(kiln_buf_str(&in.answer.body), KILN_STR("google.rpc.BadRequest")));
    intake_grpc(&in, EXPORT,
                KILN_STR("\x0a\x7f"
                         "abc"));
    CHECK_EQ(in.answer.rpc_code, KILN_RPC_INVALID_ARGUMENT);
    intake_post(&in, "/v1development/profiles", "application/json", KILN_STR("{\"resource"));
    CHECK_EQ(in.answer.status, 400);
    CHECK(strstr(in.answer.message, "line 1"));
    CHECK(kiln_str_contains(kiln_buf_str(&in.answer.body), KILN_STR("\"fieldViolations\":[{")));
    CHECK_EQ(in.n, 0);
    intake_stop(&in);
}

TEST(otlp_receiver, bad_profiles_are_left_out_and_counted)
{
    struct intake in;
    struct kiln_buf body;

    message(&body, false);
    /* a sample of stack 99, which there is none of: 08 63, and one value */
    kiln_buf_add_str(&body, KILN_STR("\x0a\x0b"
                                     "\x12\x09"
                                     "\x12\x07"
                                     "\x12\x05\x08\x63\x22\x01\x07"));
    intake_start(&in, NULL);
    intake_post(&in, "/v1development/profiles", PROTO, kiln_buf_str(&body));
    CHECK_EQ(in.answer.status, 200);
    CHECK_EQ(in.n, 1);
    CHECK_EQ(in.got[0].rejected, 1);
    CHECK_EQ(in.got[0].body.len, 0); /* the bytes say more than the batch */
    CHECK(kiln_str_contains(kiln_buf_str(&in.answer.body), KILN_STR("\x08\x01\x12")));
    CHECK(kiln_str_contains(kiln_buf_str(&in.answer.body), KILN_STR("stack_index")));
    CHECK_EQ(intake_count(&in, "kiln_receiver_profiles_total{receiver=\"otlp\","
                               "outcome=\"rejected\"}"),
             1);
    intake_stop(&in);
    kiln_buf_done(&body);
}

/* Both got the same, and said the same of it. */
static void check_same(struct intake *a, struct intake *b)
{
    CHECK_EQ(a->answer.status, b->answer.status);
    CHECK(kiln_str_eq(kiln_buf_str(&a->answer.body), kiln_buf_str(&b->answer.body)));
    CHECK_TEXT(a->answer.message, b->answer.message);
    CHECK_EQ(a->n, b->n);
    if (a->n && b->n) {
        CHECK(kiln_batch_equal(a->got[0].batch, b->got[0].batch));
        CHECK_EQ(a->got[0].rejected, b->got[0].rejected);
        CHECK(kiln_str_eq(kiln_buf_str(&a->got[0].body), kiln_buf_str(&b->got[0].body)));
    }
    intake_clear(a);
    intake_clear(b);
}

static const char *const rejected_requests =
    "kiln_receiver_requests_total{receiver=\"otlp\",outcome=\"rejected\"}";

/* Every byte changed in two ways: wherever the fault is, and whether or not it is one. */
TEST(otlp_receiver, who_is_checked_later_is_told_the_same)
{
    struct intake at_once, later;
    struct kiln_buf body;

    message(&body, false);
    intake_start(&at_once, NULL);
    intake_start(&later, NULL);
    later.consumer.takes_unchecked = true;
    for (size_t i = 0; i < body.len; i++) {
        for (uint8_t change = 0x80; change; change = change == 0x80 ? 0x03 : 0) {
            body.ptr[i] = (char)(body.ptr[i] ^ change);
            intake_post(&at_once, "/v1/profiles", PROTO, kiln_buf_str(&body));
            intake_post(&later, "/v1/profiles", PROTO, kiln_buf_str(&body));
            body.ptr[i] = (char)(body.ptr[i] ^ change);
            check_same(&at_once, &later);
        }
    }
    CHECK(intake_count(&later, rejected_requests) > 0);
    CHECK(intake_count(&later, rejected_requests) < 2 * (double)body.len);
    CHECK_EQ(intake_count(&later, rejected_requests), intake_count(&at_once, rejected_requests));
    CHECK_EQ(later.pool.used, 0);
    intake_stop(&at_once);
    intake_stop(&later);
    kiln_buf_done(&body);
}

TEST(otlp_receiver, what_the_exporter_rejects_is_told_too)
{
    struct intake in;
    struct kiln_buf body;

    message(&body, true);
    intake_start(&in, NULL);
    in.outcome = (struct kiln_outcome){.rejected = 1, .err = {.text = "older than 14 days"}};
    intake_post(&in, "/v1development/profiles", "application/json", kiln_buf_str(&body));
    CHECK_EQ(in.answer.status, 200);
    CHECK_STR(kiln_buf_str(&in.answer.body), "{\"partialSuccess\":{\"rejectedProfiles\":\"1\","
                                             "\"errorMessage\":\"older than 14 days\"}}");
    intake_stop(&in);
    kiln_buf_done(&body);
}

TEST(otlp_receiver, samples_that_say_nothing_are_told)
{
    struct intake in;

    intake_start(&in, NULL);
    intake_post(&in, "/v1development/profiles", "application/json",
                KILN_STR("{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{"
                         "\"samples\":[{\"stackIndex\":0},{\"stackIndex\":0}]}]}]}],"
                         "\"dictionary\":{\"stringTable\":[\"\"],\"stackTable\":[{}]}}"));
    CHECK_EQ(in.answer.status, 200);
    CHECK(kiln_str_contains(kiln_buf_str(&in.answer.body), KILN_STR("\"rejectedProfiles\":\"1\"")));
    CHECK(kiln_str_contains(kiln_buf_str(&in.answer.body),
                            KILN_STR("2 samples have neither values nor timestamps")));
    CHECK_EQ(in.n, 0);
    CHECK_EQ(intake_count(&in, "kiln_receiver_silent_samples_total{receiver=\"otlp\"}"), 2);
    /* Beside one that says something it is a warning: no profile is left out. */
    intake_post(&in, "/v1development/profiles", "application/json",
                KILN_STR("{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{"
                         "\"samples\":[{\"stackIndex\":0},{\"values\":[\"7\"]}]}]}]}],"
                         "\"dictionary\":{\"stringTable\":[\"\"],\"stackTable\":[{}]}}"));
    CHECK_EQ(in.answer.status, 200);
    CHECK(!kiln_str_contains(kiln_buf_str(&in.answer.body), KILN_STR("rejectedProfiles")));
    CHECK(kiln_str_contains(kiln_buf_str(&in.answer.body),
                            KILN_STR("{\"partialSuccess\":{\"errorMessage\":\"1 sample")));
    CHECK_EQ(in.n, 1);
    intake_stop(&in);
}

TEST(otlp_receiver, a_bomb_is_too_large_and_not_tried_again)
{
    struct intake in;
    struct kiln_buf zeros, packed;
    char *room;

    kiln_buf_init(&zeros, 32u << 20);
    kiln_buf_init(&packed, 64u << 20);
    room = kiln_buf_reserve(&zeros, 32u << 20);
    memset(room, 0, 32u << 20);
    zeros.len = 32u << 20;
    CHECK_OK(kiln_compress(KILN_GZIP, 1, kiln_buf_str(&zeros), &packed));
    intake_start(&in, &(struct intake_opts){.content_max = 1u << 20});
    intake_call(&in, &(struct kiln_call){.path = "/v1/profiles",
                                         .content_type = PROTO,
                                         .body = kiln_buf_str(&packed),
                                         .encoding = KILN_GZIP});
    CHECK_EQ(in.answer.status, 413);
    CHECK(!in.answer.retryable);
    CHECK_TEXT(in.answer.message, "the content is larger than 1 MiB when uncompressed");
    CHECK(in.pool.peak < 8u << 20);
    intake_stop(&in);
    kiln_buf_done(&zeros);
    kiln_buf_done(&packed);
}

/* A message in a frame of one stored block that asks for a window of 2^`log` bytes. */
static void send_framed(struct intake *in, const struct kiln_call *how, const struct kiln_buf *body,
                        uint32_t log)
{
    uint32_t head = 1u | (uint32_t)body->len << 3;
    struct kiln_call call = *how;
    struct kiln_buf frame;

    kiln_buf_init(&frame, 1u << 20);
    kiln_buf_add(&frame, "\x28\xb5\x2f\xfd", 5);
    kiln_buf_putc(&frame, (char)((log - 10) << 3));
    kiln_buf_add(&frame, &head, 3);
    kiln_buf_add_str(&frame, kiln_buf_str(body));
    call.body = kiln_buf_str(&frame);
    intake_call(in, &call);
    kiln_buf_done(&frame);
}

/* With a window of 16 MiB, of 16 MiB without so much memory, and of 128 MiB. */
static void check_windows(const struct kiln_call *how)
{
    struct intake in;
    struct kiln_buf body;

    message(&body, false);
    intake_start(&in, &(struct intake_opts){.pool_bytes = 64u << 20});
    send_framed(&in, how, &body, 24);
    CHECK_EQ(in.answer.status, 200);
    CHECK(in.pool.peak >= 16u << 20);
    CHECK_OK(kiln_pool_take(&in.pool, 50u << 20));
    send_framed(&in, how, &body, 24);
    CHECK_EQ(in.answer.status, 429);
    kiln_pool_give(&in.pool, 50u << 20);
    send_framed(&in, how, &body, 27);
    CHECK_EQ(in.answer.status, 413);
    CHECK_TEXT(in.answer.message, "the zstd window is 128 MiB, and may be 32 MiB: compress with a "
                                  "smaller window (no --long, no --ultra)");
    intake_stop(&in);
    kiln_buf_done(&body);
}

TEST(otlp_receiver, a_zstd_window_is_memory_of_the_request)
{
    check_windows(
        &(struct kiln_call){.path = "/v1/profiles", .content_type = PROTO, .encoding = KILN_ZSTD});
    check_windows(&(struct kiln_call){.path = "/api/v1/profiles?service=shop"}); /* a .zst file */
}

TEST(otlp_receiver, without_memory_the_sender_waits)
{
    struct intake in;
    struct kiln_buf body;

    message(&body, false);
    intake_start(&in, &(struct intake_opts){.pool_bytes = 1u << 20});
    CHECK_OK(kiln_pool_take(&in.pool, 1000u << 10));
    intake_post(&in, "/v1development/profiles", PROTO, kiln_buf_str(&body));
    CHECK_EQ(in.answer.status, 429);
    CHECK_EQ(in.answer.retry_after_ms, 1000);
    intake_grpc(&in, EXPORT, kiln_buf_str(&body));
    CHECK_EQ(in.answer.rpc_code, KILN_RPC_UNAVAILABLE);
    CHECK_EQ(in.answer.retry_after_ms, 1000);
    CHECK_EQ(in.n, 0);
    kiln_pool_give(&in.pool, 1000u << 10);
    intake_post(&in, "/v1development/profiles", PROTO, kiln_buf_str(&body));
    CHECK_EQ(in.answer.status, 200);
    intake_stop(&in);
    kiln_buf_done(&body);
}

TEST(otlp_receiver, says_that_it_takes_profiles_only)
{
    static const struct {
        const char *http, *grpc, *message;
    } cases[] = {
        {"/v1/traces", "/opentelemetry.proto.collector.trace.v1.TraceService/Export", "traces"},
        {"/v1/metrics", "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
         "metrics"},
        {"/v1/logs", "/opentelemetry.proto.collector.logs.v1.LogsService/Export", "logs"},
    };
    struct intake in;

    intake_start(&in, NULL);
    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        intake_post(&in, cases[i].http, PROTO, KILN_STR("x"));
        CHECK_EQ(in.answer.status, 404);
        CHECK(!in.answer.retryable);
        CHECK(strstr(in.answer.message, "Kiln takes profiles only"));
        CHECK(strstr(in.answer.message, cases[i].message));
        intake_grpc(&in, cases[i].grpc, KILN_STR("x"));
        CHECK_EQ(in.answer.rpc_code, KILN_RPC_UNIMPLEMENTED);
        CHECK(!in.answer.retryable);
    }
    intake_stop(&in);
}

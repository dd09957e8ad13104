/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/bytetext.h"
#include "base/mem.h"
#include "codec/pb.h"
#include "intake.h"
#include "test.h"

#define PUSH "/push.v1.PusherService/Push"

struct series {
    const char *labels; /* "k=v,k=v" */
    struct kiln_str raw;
    const char *id;
};

/* A PushRequest; the buffer is the caller's. */
static struct kiln_str push_request(struct kiln_buf *out, const struct series *series, uint32_t n)
{
    struct kiln_pb_out w;

    kiln_buf_init(out, 1u << 20);
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_str labels = kiln_str_of(series[i].labels);
        size_t end, mark;

        kiln_pb_out_init(&w, 100, 1u << 20);
        end = kiln_pb_mark(&w);
        mark = end;
        while (
            labels.ptr) { /* the order of labels does not matter; they stand behind the samples */
            struct kiln_str value = kiln_str_cut(&labels, ','), name = kiln_str_cut(&value, '=');

            mark = kiln_pb_mark(&w);
            kiln_pb_put_bytes(&w, 2, value);
            kiln_pb_put_bytes(&w, 1, name);
            kiln_pb_put_message(&w, 1, mark);
        }
        mark = kiln_pb_mark(&w);
        if (series[i].id)
            kiln_pb_put_bytes(&w, 2, kiln_str_of(series[i].id));
        kiln_pb_put_bytes(&w, 1, series[i].raw);
        kiln_pb_put_message(&w, 2, mark);
        kiln_pb_put_message(&w, 1, end);
        CHECK_OK(kiln_pb_out_flush(&w, out));
        kiln_pb_out_done(&w);
    }
    return kiln_buf_str(out);
}

static const char pushed[] = "{pod=a,service.name=cart} "
                             "process_cpu:cpu:nanoseconds:cpu:nanoseconds *1 "
                             "@1600000000000000000+10s\n"
                             "  main;read 3\n";

TEST(push, takes_grpc_connect_and_json)
{
    struct intake in;
    struct kiln_buf raw, body, json;

    intake_cpu_pprof(&raw);
    push_request(&body,
                 &(struct series){"__name__=process_cpu,service_name=cart,pod=a",
                                  kiln_buf_str(&raw), "3fc6b5b0-0000-4000-8000-0123456789ab"},
                 1);
    kiln_buf_init(&json, 1u << 20);
    kiln_buf_puts(&json, "{\"series\":[{\"samples\":[{\"rawProfile\":\"");
    kiln_buf_add_base64(&json, raw.ptr, raw.len);
    kiln_buf_puts(&json, "\"}],\"labels\":[{\"name\":\"__name__\",\"value\":\"process_cpu\"},"
                         "{\"value\":\"cart\",\"name\":\"service_name\",\"x\":[1]},"
                         "{\"name\":\"pod\",\"value\":\"\\u0061\"}],\"annotations\":[]}]}");
    intake_start(&in, NULL);
    intake_grpc(&in, PUSH, kiln_buf_str(&body));
    CHECK_EQ(in.answer.rpc_code, KILN_RPC_OK);
    CHECK_TEXT(intake_text(&in, 0), pushed);
    CHECK_EQ(in.got[0].batch->profiles[0].id[0], 0x3f);
    CHECK_EQ(in.got[0].batch->profiles[0].id[15], 0xab);
    CHECK(kiln_str_eq(kiln_buf_str(&in.got[0].body), kiln_buf_str(&raw)));
    CHECK(in.got[0].recipe.len);
    intake_post(&in, PUSH, "application/proto", kiln_buf_str(&body));
    CHECK_EQ(in.answer.status, 200);
    CHECK_EQ(in.answer.body.len, 0);
    CHECK_TEXT(intake_text(&in, 1), pushed);
    intake_post(&in, PUSH, "application/json", kiln_buf_str(&json));
    CHECK_EQ(in.answer.status, 200);
    CHECK_STR(kiln_buf_str(&in.answer.body), "{}");
    CHECK_TEXT(intake_text(&in, 2), pushed);
    CHECK_EQ(in.got[2].body.len, 0); /* what JSON had in it is gone too early */
    CHECK_EQ(in.got[2].recipe.len, 0);
    CHECK_EQ(intake_count(&in, "kiln_receiver_profiles_total{receiver=\"pyroscope\","
                               "outcome=\"accepted\"}"),
             3);
    intake_stop(&in);
    kiln_buf_done(&raw);
    kiln_buf_done(&body);
    kiln_buf_done(&json);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(push, gzip_around_gzip_is_undone)
{
    struct intake in;
    struct kiln_buf raw, inner, body, outer;

    intake_cpu_pprof(&raw);
    kiln_buf_init(&inner, 1u << 20);
    kiln_buf_init(&outer, 1u << 20);
    CHECK_OK(kiln_compress(KILN_GZIP, 0, kiln_buf_str(&raw), &inner));
    push_request(&body,
                 &(struct series){"__name__=process_cpu,service_name=cart,pod=a",
                                  kiln_buf_str(&inner), NULL},
                 1);
    CHECK_OK(kiln_compress(KILN_GZIP, 0, kiln_buf_str(&body), &outer));
    intake_start(&in, NULL);
    intake_call(&in, &(struct kiln_call){.path = PUSH,
                                         .content_type = "application/proto",
                                         .body = kiln_buf_str(&outer),
                                         .encoding = KILN_GZIP});
    CHECK_EQ(in.answer.status, 200);
    CHECK_TEXT(intake_text(&in, 0), pushed);
    intake_stop(&in);
    kiln_buf_done(&raw);
    kiln_buf_done(&inner);
    kiln_buf_done(&body);
    kiln_buf_done(&outer);
}

TEST(push, the_name_of_a_series_is_its_family)
{
    static const struct {
        const char *labels, *id;
    } cases[] = {
        {"__name__=goroutine", "{} goroutine:cpu:nanoseconds:cpu:nanoseconds"},
        {"__name__=godeltaprof_process_cpu", "{} process_cpu:cpu:nanoseconds:cpu:nanoseconds"},
        {"__name__=wall", "{} process_cpu:cpu:nanoseconds:cpu:nanoseconds"},
    };
    struct intake in;
    struct kiln_buf raw, body;

    intake_cpu_pprof(&raw);
    intake_start(&in, NULL);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        push_request(&body, &(struct series){cases[i].labels, kiln_buf_str(&raw), NULL}, 1);
        intake_grpc(&in, PUSH, kiln_buf_str(&body));
        CHECK_EQ(in.answer.rpc_code, KILN_RPC_OK);
        CHECK(kiln_str_starts(kiln_str_of(intake_text(&in, i)), kiln_str_of(cases[i].id)));
        kiln_buf_done(&body);
    }
    intake_stop(&in);
    kiln_buf_done(&raw);
}

TEST(push, all_series_are_tried_and_errors_joined)
{
    struct intake in;
    struct kiln_buf raw, body;
    struct series series[4];

    intake_cpu_pprof(&raw);
    series[0] = (struct series){"__name__=process_cpu,service_name=a", kiln_buf_str(&raw), NULL};
    series[1] = (struct series){"service_name=b", kiln_buf_str(&raw), NULL};
    series[2] = (struct series){"__name__=process_cpu,service_name=c", KILN_STR("bogus"), NULL};
    series[3] = (struct series){"__name__=process_cpu,service_name=d", kiln_buf_str(&raw), NULL};
    push_request(&body, series, 4);
    intake_start(&in, NULL);
    in.elsewhere = true;
    intake_post(&in, PUSH, "application/proto", kiln_buf_str(&body));
    CHECK_EQ(in.answer.status, 400);
    CHECK(strstr(in.answer.message, "series[1].labels: a series needs the label __name__"));
    CHECK(strstr(in.answer.message, "; "));
    CHECK_EQ(in.n, 2);
    intake_stop(&in);
    kiln_buf_done(&raw);
    kiln_buf_done(&body);
}

TEST(push, one_that_may_be_tried_again_decides)
{
    struct intake in;
    struct kiln_buf raw, body;
    struct series series[2];

    intake_cpu_pprof(&raw);
    series[0] = (struct series){"service_name=b", kiln_buf_str(&raw), NULL};
    series[1] = (struct series){"__name__=process_cpu", kiln_buf_str(&raw), NULL};
    push_request(&body, series, 2);
    intake_start(&in, NULL);
    in.outcome = (struct kiln_outcome){.code = -ENOSPC, .retry_after_s = 3};
    intake_grpc(&in, PUSH, kiln_buf_str(&body));
    CHECK_EQ(in.answer.rpc_code, KILN_RPC_UNAVAILABLE);
    CHECK_EQ(in.answer.retry_after_ms, 3000);
    intake_stop(&in);
    kiln_buf_done(&raw);
    kiln_buf_done(&body);
}

TEST(push, what_is_no_request_is_refused)
{
    struct intake in;

    intake_start(&in, NULL);
    intake_grpc(&in, PUSH, KILN_STR("\x0a\x7f"));
    CHECK_EQ(in.answer.rpc_code, KILN_RPC_INVALID_ARGUMENT);
    intake_post(&in, PUSH, "application/json", KILN_STR("{\"series\":[{\"labels\":[3]}]}"));
    CHECK_EQ(in.answer.status, 400);
    intake_post(&in, PUSH, "application/json",
                KILN_STR("{\"series\":[{\"labels\":[{\"name\":\"__name__\",\"value\":\"x\"}],"
                         "\"samples\":[{\"rawProfile\":\"?\"}]}]}"));
    CHECK_EQ(in.answer.status, 400);
    CHECK(strstr(in.answer.message, "rawProfile is not base64"));
    intake_post(&in, PUSH, "application/json", KILN_STR("{}"));
    CHECK_EQ(in.answer.status, 200);
    intake_stop(&in);
}

CAPTURE_TEST(push, spans_of_a_real_capture_become_links)
{
    const char *path = kiln_test_data("pprof/go-cpu-span-labels.pb.gz");
    struct intake in;
    struct kiln_buf body;
    const struct kiln_batch *batch;
    uint32_t linked = 0;
    size_t len;
    char *bytes;

    if (!path)
        SKIP("no real captures");
    bytes = kiln_test_read(path, &len);
    push_request(
        &body,
        &(struct series){"__name__=process_cpu,service_name=shop/checkout", {bytes, len}, NULL}, 1);
    intake_start(&in, NULL);
    intake_grpc(&in, PUSH, kiln_buf_str(&body));
    CHECK_EQ(in.answer.rpc_code, KILN_RPC_OK);
    batch = in.got[0].batch;
    CHECK_EQ(batch->n_profiles, 2);
    for (uint32_t i = 0; i < batch->n_samples; i++) {
        linked += batch->samples[i].link != 0;
        CHECK(!kiln_set_find(batch, batch->samples[i].attrs, KILN_STR("profile_id")));
        CHECK(!kiln_set_find(batch, batch->samples[i].attrs, KILN_STR("span_id")));
    }
    CHECK(linked > 0);
    intake_stop(&in);
    kiln_buf_done(&body);
    free(bytes);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/bytetext.h"
#include "base/mem.h"
#include "codec/pb.h"
#include "codec/pprof.h"
#include "drawn.h"
#include "intake.h"
#include "test.h"

#define BYTES(literal)                                                                             \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

#define PUSH  "/push.v1.PusherService/Push"
#define TIMES "&from=1700000000&until=1700000010"
#define AT    "@1700000000000000000+10s\n"

/* A pprof of these profiles; the buffer is the caller's. */
static struct kiln_str pprof(struct kiln_buf *out, const struct kiln_drawn *drawn, uint32_t n)
{
    struct kiln_batch *batch = kiln_test_batch(drawn, n);

    kiln_buf_init(out, 1u << 20);
    CHECK_OK(kiln_pprof_encode(batch, NULL, out, NULL));
    kiln_batch_unref(batch);
    return kiln_buf_str(out);
}

static struct kiln_str cpu_pprof(struct kiln_buf *out)
{
    return pprof(out,
                 &(struct kiln_drawn){.stacks = "main;read 3\n",
                                      .type = "cpu",
                                      .unit = "nanoseconds",
                                      .period_type = "cpu",
                                      .period_unit = "nanoseconds",
                                      .period = 10000000,
                                      .time_ns = UINT64_C(1600000000000000000),
                                      .duration_ns = UINT64_C(10000000000)},
                 1);
}

/* A form as pyroscope-go sends it; `config` NULL: without. */
static struct kiln_str form(struct kiln_buf *out, const char *field, struct kiln_str content,
                            const char *config)
{
    kiln_buf_init(out, 1u << 20);
    kiln_buf_printf(out,
                    "--xx\r\nContent-Disposition: form-data; name=\"%s\"; "
                    "filename=\"profile.pprof\"\r\nContent-Type: application/octet-stream\r\n\r\n",
                    field);
    kiln_buf_add_str(out, content);
    if (config)
        kiln_buf_printf(out,
                        "\r\n--xx\r\nContent-Disposition: form-data; "
                        "name=\"sample_type_config\"\r\n\r\n%s",
                        config);
    kiln_buf_puts(out, "\r\n--xx--\r\n");
    return kiln_buf_str(out);
}

#define FORM "multipart/form-data; boundary=xx"

/* ---- /ingest ---- */

TEST(ingest, folded_stacks_become_cpu_time)
{
    struct intake in;

    intake_start(&in, NULL);
    intake_post(&in, "/ingest?name=shop%7Bpod%3Da%7D&spyName=rbspy" TIMES, "text/plain",
                KILN_STR("main;read 3\nmain 1\n"));
    CHECK_EQ(in.answer.status, 200);
    CHECK_EQ(in.answer.body.len, 0);
    CHECK_TEXT(intake_text(&in, 0),
               "{pod=a,pyroscope_spy=rbspy,service.name=shop} "
               "process_cpu:cpu:nanoseconds:cpu:nanoseconds *1 " AT "  main;read 30000000\n"
               "  main 10000000\n");
    CHECK_TEXT(in.got[0].receiver, "pyroscope");
    CHECK_TEXT(in.got[0].tenant, "anonymous");
    intake_stop(&in);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(ingest, the_end_of_the_name_says_what_is_counted)
{
    static const struct {
        const char *name, *id;
    } cases[] = {
        {"a.b.cpu", "a.b} process_cpu:cpu:nanoseconds:cpu:nanoseconds"},
        {"a.wall", "a} wall:wall:nanoseconds:cpu:nanoseconds"},
        {"a.inuse_space", "a} memory:inuse_space:bytes:space:bytes"},
        {"a.alloc_objects", "a} memory:alloc_objects:count:space:bytes"},
        {"a.mutex_count", "a} mutex:contentions:count:contentions:count"},
        {"a.block_duration", "a} block:delay:nanoseconds:contentions:count"},
        {"a.lock_count", "a} block:contentions:count:contentions:count"},
        {"a.goroutines", "a} goroutine:goroutines:count:goroutine:count"},
        {"a.exceptions", "a} exceptions:samples:count::"},
        {"a.alloc_in_new_tlab_bytes", "a} memory:alloc_in_new_tlab_bytes:bytes:space:bytes"},
    };
    struct intake in;

    intake_start(&in, NULL);
    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        char path[128];

        snprintf(path, sizeof(path), "/pyroscope/ingest?name=%s", cases[i].name);
        intake_post(&in, path, NULL, KILN_STR("main 1\n"));
        CHECK_EQ(in.answer.status, 200);
        CHECK(strstr(intake_text(&in, (uint32_t)i), cases[i].id));
    }
    intake_stop(&in);
}

TEST(ingest, the_sample_rate_may_be_anything)
{
    static const struct {
        const char *rate, *said;
    } cases[] = {
        {"&sampleRate=50", "cpu:nanoseconds:cpu:nanoseconds *1"},
        {"&sampleRate=0", "process_cpu:samples:count:: *1"},
        {"&sampleRate=-1", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"},
        {"&sampleRate=often", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"},
    };
    static const char *const values[] = {"main 20000000\n", "main 1\n", "main 10000000\n",
                                         "main 10000000\n"};
    struct intake in;

    intake_start(&in, NULL);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        char path[128];

        snprintf(path, sizeof(path), "/ingest?name=a%s", cases[i].rate);
        intake_post(&in, path, NULL, KILN_STR("main 1\n"));
        CHECK_EQ(in.answer.status, 200);
        CHECK(strstr(intake_text(&in, i), cases[i].said));
        CHECK(strstr(intake_text(&in, i), values[i]));
    }
    intake_stop(&in);
}

TEST(ingest, other_formats_of_old_agents_are_read)
{
    static const struct {
        const char *query, *type;
        struct kiln_str body;
    } cases[] = {
        {"&format=lines", NULL, BYTES("main;read\nmain;read\n")},
        {"&format=tree", NULL, BYTES("\0\0\1\4main\0\1\4read\2\0")},
        {"&format=trie", NULL, BYTES("\0\0\1\5main;\0\1\4read\2\0")},
        {"", "binary/octet-stream+tree", BYTES("\0\0\1\4main\0\1\4read\2\0")},
        {"&format=collapsed", NULL, BYTES("main;read 2\n")},
    };
    struct intake in;

    intake_start(&in, NULL);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        char path[128];

        snprintf(path, sizeof(path), "/ingest?name=a%s", cases[i].query);
        intake_post(&in, path, cases[i].type, cases[i].body);
        CHECK_EQ(in.answer.status, 200);
        CHECK_EQ(in.n, i + 1);
        CHECK(strstr(intake_text(&in, i), "main;read "));
    }
    intake_stop(&in);
}

TEST(ingest, speedscope_says_its_unit)
{
    struct intake in;

    intake_start(&in, NULL);
    intake_post(&in, "/ingest?name=a&format=speedscope", NULL,
                KILN_STR("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
                         "\"shared\":{\"frames\":[{\"name\":\"main\"}]},"
                         "\"profiles\":[{\"type\":\"sampled\",\"name\":\"p\","
                         "\"unit\":\"milliseconds\",\"startValue\":0,\"endValue\":5,"
                         "\"samples\":[[0]],\"weights\":[5]}]}"));
    CHECK_EQ(in.answer.status, 200);
    CHECK(strstr(intake_text(&in, 0), "wall:wall:nanoseconds:wall:nanoseconds *1"));
    CHECK(strstr(intake_text(&in, 0), "main 5000000\n"));
    intake_stop(&in);
}

TEST(ingest, a_form_holds_a_pprof)
{
    struct intake in;
    struct kiln_buf raw, packed, body;

    cpu_pprof(&raw);
    kiln_buf_init(&packed, 1u << 20);
    CHECK_OK(kiln_compress(KILN_GZIP, 0, kiln_buf_str(&raw), &packed));
    form(&body, "profile", kiln_buf_str(&packed), NULL);
    intake_start(&in, NULL);
    intake_post(&in, "/ingest?name=shop.cart%7Bservice_name%3Dcart%7D" TIMES, FORM,
                kiln_buf_str(&body));
    CHECK_EQ(in.answer.status, 200);
    CHECK_TEXT(intake_text(&in, 0), "{app_name=shop.cart,pyroscope_spy=unknown,service.name=cart} "
                                    "process_cpu:cpu:nanoseconds:cpu:nanoseconds *1 "
                                    "@1600000000000000000+10s\n"
                                    "  main;read 3\n");
    intake_post(&in, "/ingest?name=a&format=pprof", NULL, kiln_buf_str(&raw));
    CHECK_EQ(in.answer.status, 200);
    CHECK_EQ(in.n, 2);
    intake_stop(&in);
    kiln_buf_done(&raw);
    kiln_buf_done(&packed);
    kiln_buf_done(&body);
}

TEST(ingest, display_names_choose_the_family)
{
    static const struct kiln_drawn contended[] = {
        {.stacks = "main 1\n", .type = "contentions", .unit = "count"},
        {.stacks = "main 7\n", .type = "delay", .unit = "nanoseconds"},
    };
    static const struct {
        const char *config, *id;
    } cases[] = {
        {NULL, " mutex:contentions:count:contentions:count"},
        {"{\"contentions\":{\"display-name\":\"block_count\",\"units\":\"lock_samples\"},"
         "\"delay\":{\"display-name\":\"block_duration\"}}",
         " block:delay:nanoseconds:contentions:count"},
        {"{\"contentions\":{\"display-name\":\"mutex_count\"}}",
         " mutex:delay:nanoseconds:contentions:count"},
        {"{}", " delay:delay:nanoseconds:contentions:count"},
    };
    struct intake in;
    struct kiln_buf raw, body;

    pprof(&raw, contended, 2);
    intake_start(&in, NULL);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        form(&body, "profile", kiln_buf_str(&raw), cases[i].config);
        intake_post(&in, "/ingest?name=a" TIMES, FORM, kiln_buf_str(&body));
        CHECK_EQ(in.answer.status, 200);
        CHECK(strstr(intake_text(&in, i), cases[i].id));
        CHECK(strstr(intake_text(&in, i), AT)); /* the pprof has no time of its own */
        kiln_buf_done(&body);
    }
    intake_stop(&in);
    kiln_buf_done(&raw);
}

TEST(ingest, bad_requests_get_pyroscopes_errors)
{
    static const struct {
        const char *query, *type, *message;
        struct kiln_str body;
    } cases[] = {
        {"", NULL, "name: the name of the application is missing", BYTES("a 1\n")},
        {"name=a%20b", NULL, "an application's name", BYTES("a 1\n")},
        {"name=a.bogus", NULL, "bogus is no profile type", BYTES("a 1\n")},
        {"name=a", NULL, "line 1", BYTES("no number\n")},
        {"name=a&format=pprof", NULL, "", BYTES("\xff\xff\xff")},
        {"name=a&format=jfr", NULL, "", BYTES("FLR")},
        {"name=a", "multipart/form-data", "boundary", BYTES("x")},
        {"name=a", FORM, "there is no field", BYTES("--xx--")},
        {"name=a", FORM, "prev_profile",
         BYTES("--xx\r\nContent-Disposition: form-data; name=prev_profile\r\n\r\nx\r\n--xx--")},
    };
    struct intake in;

    intake_start(&in, NULL);
    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        char path[128];

        snprintf(path, sizeof(path), "/ingest?%s", cases[i].query);
        intake_post(&in, path, cases[i].type, cases[i].body);
        CHECK_EQ(in.answer.status, 400);
        CHECK(kiln_str_starts(kiln_buf_str(&in.answer.body),
                              KILN_STR("{\"code\":\"invalid_argument\",\"message\":\"")));
        CHECK(kiln_str_contains(kiln_buf_str(&in.answer.body), kiln_str_of(cases[i].message)));
    }
    CHECK_EQ(in.n, 0);
    intake_stop(&in);
}

TEST(ingest, outcomes_have_their_statuses)
{
    static const struct {
        int code, status;
        const char *word;
        uint32_t after_ms;
    } cases[] = {
        {-EAGAIN, 429, "resource_exhausted", 1000},
        {-ENOSPC, 503, "unavailable", 1000},
        {-EIO, 503, "unavailable", 1000},
        {-ESHUTDOWN, 503, "unavailable", 1000},
        {KILN_E_LIMIT, 413, "resource_exhausted", 0},
        {KILN_E_RANGE, 400, "invalid_argument", 0},
    };
    struct intake in;

    intake_start(&in, NULL);
    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        in.outcome.code = cases[i].code;
        intake_post(&in, "/ingest?name=a", NULL, KILN_STR("main 1\n"));
        CHECK_EQ(in.answer.status, cases[i].status);
        CHECK_EQ(in.answer.retry_after_ms, cases[i].after_ms);
        CHECK(kiln_str_contains(kiln_buf_str(&in.answer.body), kiln_str_of(cases[i].word)));
    }
    in.outcome = (struct kiln_outcome){.rejected = 1, .err = {.text = "too old"}};
    intake_post(&in, "/ingest?name=a", NULL, KILN_STR("main 1\n"));
    CHECK_EQ(in.answer.status, 400);
    CHECK(kiln_str_contains(kiln_buf_str(&in.answer.body), KILN_STR("too old")));
    intake_stop(&in);
}

TEST(ingest, nothing_is_a_success)
{
    struct intake in;

    intake_start(&in, NULL);
    intake_post(&in, "/ingest?name=a", NULL, KILN_STR("\n"));
    CHECK_EQ(in.answer.status, 200);
    CHECK_EQ(in.n, 0);
    intake_stop(&in);
}

TEST(ingest, recordings_are_read_with_their_labels)
{
    const char *path = kiln_test_data("jfr/kafka-cpu.jfr.gz");
    struct intake in;
    struct kiln_buf body;
    size_t len;
    char *bytes;

    if (!path)
        SKIP("no real captures");
    bytes = kiln_test_read(path, &len);
    form(&body, "jfr", (struct kiln_str){bytes, len}, NULL);
    intake_start(&in, NULL);
    intake_post(&in, "/ingest?name=kafka&format=jfr" TIMES, FORM, kiln_buf_str(&body));
    CHECK_EQ(in.answer.status, 200);
    CHECK_EQ(in.n, 1);
    CHECK(in.got[0].batch->n_samples > 10);
    CHECK_EQ(in.got[0].batch->profiles[0].time_ns, UINT64_C(1700000000000000000));
    CHECK_STR(kiln_set_text(in.got[0].batch, in.got[0].batch->resources[0].attrs,
                            KILN_STR("service.name")),
              "kafka");
    intake_stop(&in);
    kiln_buf_done(&body);
    free(bytes);
}

/* ---- Push ---- */

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

    cpu_pprof(&raw);
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
    intake_post(&in, PUSH, "application/proto", kiln_buf_str(&body));
    CHECK_EQ(in.answer.status, 200);
    CHECK_EQ(in.answer.body.len, 0);
    CHECK_TEXT(intake_text(&in, 1), pushed);
    intake_post(&in, PUSH, "application/json", kiln_buf_str(&json));
    CHECK_EQ(in.answer.status, 200);
    CHECK_STR(kiln_buf_str(&in.answer.body), "{}");
    CHECK_TEXT(intake_text(&in, 2), pushed);
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

    cpu_pprof(&raw);
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

    cpu_pprof(&raw);
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

    cpu_pprof(&raw);
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

    cpu_pprof(&raw);
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

TEST(push, spans_of_a_real_capture_become_links)
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

/* ---- uploads ---- */

TEST(upload, takes_any_format_and_gives_an_account)
{
    struct intake in;
    struct kiln_buf raw;

    cpu_pprof(&raw);
    intake_start(&in, NULL);
    intake_post(&in, "/api/v1/profiles?service=shop&env=test&team=", NULL, kiln_buf_str(&raw));
    CHECK_EQ(in.answer.status, 200);
    CHECK_STR(kiln_buf_str(&in.answer.body),
              "{\"format\":\"pprof\",\"profiles\":1,\"samples\":1,\"rejected\":0}\n");
    CHECK_TEXT(intake_text(&in, 0), "{env=test,service.name=shop} "
                                    "process_cpu:cpu:nanoseconds:cpu:nanoseconds *1 "
                                    "@1600000000000000000+10s\n"
                                    "  main;read 3\n");
    intake_post(&in, "/api/v1/profiles?service=shop&type=block&time=2023-11-14T22:13:20Z", NULL,
                KILN_STR("main;read 3\nmain;write 4\n"));
    CHECK_EQ(in.answer.status, 200);
    CHECK_TEXT(intake_text(&in, 1), "{service.name=shop} block:samples:count:: *1 "
                                    "@1700000000000000000+0s\n"
                                    "  main;read 3\n"
                                    "  main;write 4\n");
    CHECK_TEXT(in.got[1].receiver, "pprof");
    intake_post(&in, "/api/v1/profiles?service=shop&time=1700000000", NULL, kiln_buf_str(&raw));
    CHECK(strstr(intake_text(&in, 2), "@1700000000000000000+10s"));
    intake_stop(&in);
    kiln_buf_done(&raw);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(upload, a_file_of_which_nothing_is_taken_is_refused)
{
    struct intake in;

    intake_start(&in, NULL);
    in.outcome = (struct kiln_outcome){.rejected = 1, .err = {.text = "too old"}};
    intake_post(&in, "/api/v1/profiles?service=shop", NULL, KILN_STR("main;read 3\n"));
    CHECK_EQ(in.answer.status, 400);
    CHECK(kiln_str_contains(kiln_buf_str(&in.answer.body), KILN_STR("too old")));
    CHECK_EQ(intake_count(&in, "kiln_receiver_samples_total{receiver=\"pprof\","
                               "outcome=\"rejected\"}"),
             1);
    intake_stop(&in);
}

TEST(upload, clear_errors)
{
    static const struct {
        const char *query, *message;
        struct kiln_str body;
    } cases[] = {
        {"service=a", "this is no profile in any format that Kiln reads", BYTES("\1\2\3")},
        {"service=a", "the input is empty", BYTES("")},
        {"time=soon", "time: a time is a Unix time", BYTES("a;b 1\n")},
        {"format=bogus", "format: no such format", BYTES("a;b 1\n")},
        {"format=svg", "can only be written", BYTES("a;b 1\n")},
    };
    struct intake in;

    intake_start(&in, NULL);
    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        char path[128];

        snprintf(path, sizeof(path), "/api/v1/profiles?%s", cases[i].query);
        intake_post(&in, path, NULL, cases[i].body);
        CHECK_EQ(in.answer.status, 400);
        CHECK(kiln_str_contains(kiln_buf_str(&in.answer.body), kiln_str_of(cases[i].message)));
    }
    CHECK_EQ(in.n, 0);
    intake_stop(&in);
}

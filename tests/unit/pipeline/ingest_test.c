/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "intake.h"
#include "test.h"

#define BYTES(literal)                                                                             \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

#define TIMES "&from=1700000000&until=1700000010"
#define AT    "@1700000000000000000+10s\n"

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

    intake_cpu_pprof(&raw);
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

    intake_pprof(&raw, contended, 2);
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

CAPTURE_TEST(ingest, recordings_are_read_with_their_labels)
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

/* intake_stop() follows each recipe, and compares. */
TEST(ingest, a_pprof_is_logged_as_it_came)
{
    static const struct {
        const char *query, *config;
    } cases[] = {
        {"name=shop", NULL},
        {"name=shop%7B%7D&from=0&until=0", NULL},
        {"name=shop%7Bpod%3Da,pod%3D,__name__%3Dwall%7D&spyName=gospy" TIMES, NULL},
        {"name=shop&spyName=dotnetspy&from=now-1h", "{\"cpu\":{\"display-name\":\"alloc_x\"}}"},
        {"name=shop%7Bservice_name%3Dcart%7D&format=pprof", "{}"},
        {"name=shop", "{\"cpu\":{\"display-name\":\"a\"},\"samples\":null}"},
    };
    const struct kiln_drawn types[] = {
        {.type = "alloc-size", .unit = "bytes", .stacks = "main;new 5\n"},
        {.type = "cpu", .unit = "nanoseconds", .stacks = "main;new 7\n"},
    };
    struct kiln_buf raw, body;
    struct intake in;

    intake_pprof(&raw, types, 2);
    intake_start(&in, NULL);
    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        char path[256];

        form(&body, "profile", kiln_buf_str(&raw), cases[i].config);
        snprintf(path, sizeof(path), "/ingest?%s", cases[i].query);
        intake_post(&in, path, FORM, kiln_buf_str(&body));
        CHECK_EQ(in.answer.status, 200);
        CHECK(kiln_str_eq(kiln_buf_str(&in.got[i].body), kiln_buf_str(&raw)));
        CHECK(in.got[i].recipe.len);
        kiln_buf_done(&body);
    }
    intake_post(&in, "/ingest?name=shop", NULL, KILN_STR("main 1\n"));
    CHECK_EQ(in.got[in.n - 1].body.len, 0);
    intake_stop(&in);
    kiln_buf_done(&raw);
    CHECK_EQ(kiln_mem_live(), 0);
}

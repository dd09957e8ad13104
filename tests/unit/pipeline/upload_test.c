/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "intake.h"
#include "test.h"

#define BYTES(literal)                                                                             \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

TEST(upload, takes_any_format_and_gives_an_account)
{
    struct intake in;
    struct kiln_buf raw;

    intake_cpu_pprof(&raw);
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

/* intake_stop() follows each recipe, and compares. */
TEST(upload, a_pprof_is_logged_as_it_came)
{
    static const char *const queries[] = {
        "",
        "?service=shop",
        "?service=shop&service=cart&env=&env=%C3%A4&__session_id__=1&__other__=2",
        "?type=block&time=1700000000",
        "?type=godeltaprof_godeltaprof_x&time=now-5m&format=pprof",
    };
    static const enum kiln_compression all[] = {KILN_PLAIN, KILN_GZIP, KILN_ZSTD};
    struct intake in;
    struct kiln_buf raw;

    intake_cpu_pprof(&raw);
    intake_start(&in, NULL);
    for (size_t i = 0; i < KILN_ARRAY_LEN(queries) * KILN_ARRAY_LEN(all); i++) {
        enum kiln_compression compression = all[i % KILN_ARRAY_LEN(all)];
        char path[256];
        struct kiln_buf body;

        kiln_buf_init(&body, 1u << 20);
        if (compression == KILN_PLAIN)
            kiln_buf_add_str(&body, kiln_buf_str(&raw));
        else
            CHECK_OK(kiln_compress(compression, 0, kiln_buf_str(&raw), &body));
        snprintf(path, sizeof(path), "/api/v1/profiles%s", queries[i / KILN_ARRAY_LEN(all)]);
        intake_post(&in, path, NULL, kiln_buf_str(&body));
        CHECK_EQ(in.answer.status, 200);
        CHECK(kiln_str_eq(kiln_buf_str(&in.got[i].body), kiln_buf_str(&body)));
        CHECK_EQ(in.got[i].compression, compression);
        CHECK(in.got[i].recipe.len);
        kiln_buf_done(&body);
    }
    intake_stop(&in);
    kiln_buf_done(&raw);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(upload, what_is_no_pprof_or_compressed_twice_is_encoded_by_the_store)
{
    struct intake in;
    struct kiln_buf raw, once, twice;

    intake_cpu_pprof(&raw);
    kiln_buf_init(&once, 1u << 20);
    kiln_buf_init(&twice, 1u << 20);
    CHECK_OK(kiln_compress(KILN_GZIP, 0, kiln_buf_str(&raw), &once));
    CHECK_OK(kiln_compress(KILN_ZSTD, 0, kiln_buf_str(&once), &twice));
    intake_start(&in, NULL);
    intake_post(&in, "/api/v1/profiles?service=a", NULL, KILN_STR("main;read 3\n"));
    CHECK_EQ(in.got[0].body.len, 0);
    intake_call(&in, &(struct kiln_call){.path = "/api/v1/profiles?service=a",
                                         .body = kiln_buf_str(&twice),
                                         .encoding = KILN_ZSTD});
    CHECK_EQ(in.answer.status, 200);
    CHECK_EQ(in.got[1].body.len, 0);
    CHECK_EQ(in.got[1].recipe.len, 0);
    intake_call(&in, &(struct kiln_call){.path = "/api/v1/profiles?service=a",
                                         .body = kiln_buf_str(&once),
                                         .encoding = KILN_GZIP});
    CHECK(kiln_str_eq(kiln_buf_str(&in.got[2].body), kiln_buf_str(&once)));
    CHECK_EQ(in.got[2].compression, KILN_GZIP);
    intake_stop(&in);
    kiln_buf_done(&raw);
    kiln_buf_done(&once);
    kiln_buf_done(&twice);
}

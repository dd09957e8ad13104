/* SPDX-License-Identifier: Apache-2.0 */
/* What the client makes of answers, without a connection. */
#include "base/clock.h"
#include "net/client_int.h"
#include "net/grpc.h"
#include "test.h"

/* One answer: status, up to three lines, body. */
struct given {
    int status;
    const char *lines[3];
    struct kiln_str body;
};

static int take(const struct given *given, bool grpc, struct kiln_answer *answer,
                struct kiln_err *err)
{
    struct kiln_collected c;
    int r = 0;

    kiln_collected_init(&c, answer, "http://x", 1000);
    for (size_t i = 0; i < 3 && given->lines[i]; i++)
        CHECK(kiln_collected_line(&c, kiln_str_of(given->lines[i])));
    CHECK(kiln_collected_bytes(&c, given->body));
    answer->status = given->status;
    if (grpc)
        r = kiln_collected_grpc(&c, err);
    else
        kiln_collected_http(&c);
    kiln_collected_done(&c);
    return r;
}

TEST(client_answer, http_says_what_may_be_tried_again)
{
    static const struct {
        int status;
        bool retryable;
    } cases[] = {{200, false}, {400, false}, {404, false}, {413, false}, {429, true},
                 {500, false}, {501, false}, {502, true},  {503, true},  {504, true}};

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct given given = {.status = cases[i].status};
        struct kiln_answer answer;

        kiln_answer_init(&answer);
        CHECK_OK(take(&given, false, &answer, NULL));
        CHECK_EQ(answer.retryable, cases[i].retryable);
        CHECK_EQ(answer.message[0] != '\0', cases[i].status != 200);
        kiln_answer_done(&answer);
    }
}

TEST(client_answer, the_sentence_comes_out_of_text_json_or_a_status)
{
    static const struct {
        struct given given;
        const char *message;
    } cases[] = {
        {{400, {"Content-Type: text/plain; charset=utf-8"}, {"so \nnot this", 12}}, "so"},
        {{400, {"content-type: application/json"}, {"{\"code\":3,\"message\":\"it\"}", 25}}, "it"},
        {{400, {"Content-Type: application/json"}, {"{\"error\":\"e\",\"x\":[1]}", 21}}, "e"},
        {{400, {"Content-Type: application/json"}, {"{\"mess", 6}}, "HTTP status 400"},
        {{400, {"Content-Type: application/x-protobuf"}, {"\x08\x03\x12\2pb", 6}}, "pb"},
        {{502, {"Content-Type: text/html"}, {"<h1>", 4}}, "HTTP status 502"},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct kiln_answer answer;

        kiln_answer_init(&answer);
        CHECK_OK(take(&cases[i].given, false, &answer, NULL));
        CHECK_TEXT(answer.message, cases[i].message);
        kiln_answer_done(&answer);
    }
}

TEST(client_answer, retry_after_is_seconds_or_a_date)
{
    static const struct {
        const char *line;
        uint32_t ms;
    } cases[] = {
        {"Retry-After: 7", 7000},
        {"retry-after: 99999999999", UINT32_MAX},
        {"Retry-After: Sun, 06 Nov 1994 08:49:37 GMT", 37000},
        {"Retry-After: Sun, 06 Nov 1994 08:48:59 GMT", 0},
        {"Retry-After: soon", 0},
    };

    kiln_clock_set(UINT64_C(784111740) * KILN_NS_PER_S); /* 08:49:00 of that day */
    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct given given = {503, {cases[i].line}, {"", 0}};
        struct kiln_answer answer;

        kiln_answer_init(&answer);
        CHECK_OK(take(&given, false, &answer, NULL));
        CHECK_EQ(answer.retry_after_ms, cases[i].ms);
        kiln_answer_done(&answer);
    }
    kiln_clock_set(0);
}

TEST(client_answer, grpc_says_what_may_be_tried_again)
{
    static const bool retryable[17] = {
        [1] = true, [4] = true, [10] = true, [11] = true, [14] = true, [15] = true};

    for (int code = 1; code <= 16; code++) {
        char line[32];
        struct given given = {200, {line, "grpc-message: a%20b"}, {"", 0}};
        struct kiln_answer answer;

        snprintf(line, sizeof(line), "grpc-status: %d\r\n", code);
        kiln_answer_init(&answer);
        CHECK_OK(take(&given, true, &answer, NULL));
        CHECK_EQ(answer.rpc_code, code);
        CHECK_EQ(answer.retryable, retryable[code]);
        CHECK_TEXT(answer.message, "a b");
        kiln_answer_done(&answer);
    }
}

TEST(client_answer, an_exhausted_resource_may_be_tried_again_with_retry_info)
{
    struct kiln_rpc_status status = {.code = 8, .message = "m", .retry_after_s = 2};
    struct kiln_buf bytes, line;
    struct kiln_answer answer;

    kiln_buf_init(&bytes, 1000);
    kiln_buf_init(&line, 1000);
    kiln_status_encode(&status, &bytes);
    kiln_buf_puts(&line, "grpc-status-details-bin: ");
    kiln_base64_bare_put(&line, kiln_buf_str(&bytes));
    kiln_buf_putc(&line, '\0');
    {
        struct given given = {200, {"grpc-status: 8", line.ptr}, {"", 0}};

        kiln_answer_init(&answer);
        CHECK_OK(take(&given, true, &answer, NULL));
    }
    CHECK(answer.retryable);
    CHECK_EQ(answer.retry_after_ms, 2000);
    kiln_answer_done(&answer);
    kiln_buf_done(&bytes);
    kiln_buf_done(&line);
}

TEST(client_answer, a_grpc_message_comes_without_its_frame)
{
    struct given given = {200, {"grpc-status: 0"}, {"\0\0\0\0\3abc", 8}};
    struct kiln_answer answer;

    kiln_answer_init(&answer);
    CHECK_OK(take(&given, true, &answer, NULL));
    CHECK_STR(kiln_buf_str(&answer.body), "abc");
    kiln_answer_done(&answer);
}

TEST(client_answer, what_is_no_grpc_answer_is_said_so)
{
    static const struct {
        struct given given;
        int code;
    } bad[] = {{{200, {"grpc-status: 0"}, {"\0\0\0\0\3a", 6}}, KILN_E_MALFORMED},
               {{200, {"grpc-status: 0"}, {"", 0}}, KILN_E_MALFORMED},
               {{200, {"grpc-status: 0"}, {"\1\0\0\0\1a", 6}}, KILN_E_UNSUPPORTED}};
    struct given proxy = {503, {"Content-Type: text/plain", "Retry-After: 1"}, {"busy", 4}};
    struct kiln_answer answer;

    kiln_answer_init(&answer);
    for (size_t i = 0; i < KILN_ARRAY_LEN(bad); i++) {
        struct kiln_err err = {0};

        CHECK_EQ(take(&bad[i].given, true, &answer, &err), bad[i].code);
        CHECK_TEXT(err.where, "http://x");
        CHECK(answer.rpc_ok); /* the server did what it was asked to */
    }
    CHECK_OK(take(&proxy, true, &answer, NULL));
    CHECK_EQ(answer.rpc_code, KILN_RPC_UNAVAILABLE);
    CHECK(!answer.rpc_ok);
    CHECK(answer.retryable);
    CHECK_TEXT(answer.message, "busy");
    kiln_answer_done(&answer);
}

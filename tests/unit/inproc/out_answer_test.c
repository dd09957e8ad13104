/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/out/answer.h"
#include "test.h"

/* "status body" of an answer that comes in pieces of `step` bytes, or what is wrong with it. */
static const char *read_in(const char *text, size_t step, bool closed)
{
    static char said[4096];
    struct kiln_in_answer answer;
    struct kiln_str rest = kiln_str_of(text);
    int r = 1;

    kiln_in_answer_init(&answer);
    while (r > 0 && rest.len) {
        size_t n = rest.len < step ? rest.len : step;

        r = kiln_in_answer_feed(&answer, (struct kiln_str){rest.ptr, n});
        rest.ptr += n;
        rest.len -= n;
    }
    if (r > 0 && closed)
        r = kiln_in_answer_end(&answer);
    if (r < 0)
        snprintf(said, sizeof(said), "%s",
                 r == KILN_E_MALFORMED   ? "malformed"
                 : r == KILN_E_TRUNCATED ? "truncated"
                 : r == KILN_E_LIMIT     ? "limit"
                                         : "?");
    else
        snprintf(said, sizeof(said), "%d %.*s%s%s%s", answer.status, (int)answer.body.len,
                 answer.body.ptr ? answer.body.ptr : "", r ? " ..." : "",
                 answer.keep_alive ? " keep" : "", answer.is_protobuf ? " pb" : "");
    kiln_in_answer_done(&answer);
    return said;
}

static const char *read_all(const char *text)
{
    static char whole[4096];

    snprintf(whole, sizeof(whole), "%s", read_in(text, 100000, true));
    for (size_t step = 1; step < 8; step++)
        CHECK_TEXT(read_in(text, step, true), whole);
    return whole;
}

TEST(out_answer, a_body_has_a_length_or_chunks_or_lasts_until_the_end)
{
    CHECK_TEXT(read_all("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), "200 hello keep");
    CHECK_TEXT(read_all("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nA: b\r\n\r\n"),
               "200 hello keep");
    CHECK_TEXT(read_all("HTTP/1.0 503 Busy\r\n\r\nlater"), "503 later");
    CHECK_TEXT(read_all("HTTP/1.1 204 No Content\r\n\r\n"), "204  keep");
    CHECK_TEXT(read_all("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n"
                        "Content-Type: application/x-protobuf\r\n\r\nx"),
               "200 x pb");
}

TEST(out_answer, interim_answers_are_passed_over)
{
    CHECK_TEXT(read_all("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\n"
                        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
               "200  keep");
    CHECK_TEXT(read_all("HTTP/1.1 101 Switching Protocols\r\n\r\n"), "malformed");
}

TEST(out_answer, garbage_is_refused)
{
    CHECK_TEXT(read_all("SSH-2.0-OpenSSH_9.2\r\n\r\n"), "malformed");
    CHECK_TEXT(read_all("HTTP/2 200\r\n\r\n"), "malformed");
    CHECK_TEXT(read_all("HTTP/1.1 20x OK\r\n\r\n"), "malformed");
    CHECK_TEXT(read_all("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), "malformed");
    CHECK_TEXT(
        read_all("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        "malformed");
    CHECK_TEXT(read_all("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
               "malformed");
    CHECK_TEXT(read_all(""), "truncated");
    CHECK_TEXT(read_all("HTTP/1.1 200 OK\r\nContent-Le"), "truncated");
    CHECK_TEXT(read_all("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"), "truncated");
}

TEST(out_answer, one_without_end_is_given_up)
{
    struct kiln_in_answer answer;
    int r = 1;

    kiln_in_answer_init(&answer);
    for (int i = 0; r > 0 && i < 1000000; i++)
        r = kiln_in_answer_feed(&answer, KILN_STR("HTTP/1.1 200 OK, and more, and more"));
    CHECK_EQ(r, KILN_E_LIMIT);
    kiln_in_answer_done(&answer);
    kiln_in_answer_init(&answer);
    r = kiln_in_answer_feed(&answer, KILN_STR("HTTP/1.1 200 OK\r\nA: b"));
    for (int i = 0; r > 0 && i < 1000000; i++)
        r = kiln_in_answer_feed(&answer, KILN_STR("more, and more, and more"));
    CHECK_EQ(r, KILN_E_LIMIT);
    kiln_in_answer_done(&answer);
}

/* An answer with this head and a body that does not end. */
static const char *read_endless(const char *head, const char *more)
{
    static char said[64];
    struct kiln_in_answer answer;
    int r;

    kiln_in_answer_init(&answer);
    r = kiln_in_answer_feed(&answer, kiln_str_of(head));
    for (int i = 0; r > 0 && i < 1000000; i++)
        r = kiln_in_answer_feed(&answer, kiln_str_of(more));
    snprintf(said, sizeof(said), "%d: %d, %zu bytes%s%s", r, answer.status, answer.body.len,
             answer.keep_alive ? " keep" : "", answer.is_protobuf ? " pb" : "");
    kiln_in_answer_done(&answer);
    return said;
}

TEST(out_answer, a_body_that_is_too_long_takes_nothing_from_the_status)
{
    CHECK_TEXT(read_endless("HTTP/1.1 200 OK\r\n\r\n", "more, and more"), "0: 200, 0 bytes");
    CHECK_TEXT(read_endless("HTTP/1.1 400 Bad\r\nContent-Type: application/x-protobuf\r\n"
                            "Content-Length: 99999999\r\n\r\n",
                            "more, and more"),
               "0: 400, 0 bytes");
    CHECK_TEXT(read_endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                            "a\r\n0123456789\r\n"),
               "0: 200, 0 bytes");
}

TEST(out_answer, bytes_behind_it_end_the_connection_and_not_the_answer)
{
    CHECK_TEXT(read_in("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}\r\n", 1000, false),
               "200 {}");
    CHECK_TEXT(read_in("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n", 1000, false), "204 ");
}

TEST(out_answer, when_to_come_back_is_a_number_or_a_date)
{
    CHECK_EQ(kiln_in_retry_after(KILN_STR("120"), 0), 120000);
    CHECK_EQ(kiln_in_retry_after(KILN_STR("Sun, 06 Nov 1994 08:49:37 GMT"), 784111770), 7000);
    CHECK_EQ(kiln_in_retry_after(KILN_STR("Sun, 06 Nov 1994 08:49:37 GMT"), 784111778), 0);
    CHECK_EQ(kiln_in_retry_after(KILN_STR("Thu, 29 Feb 2024 00:00:01 GMT"), 1709164800), 1000);
    CHECK_EQ(kiln_in_retry_after(KILN_STR("99999999999"), 0), UINT32_MAX);
    CHECK_EQ(kiln_in_retry_after(KILN_STR("soon"), 0), 0);
    CHECK_EQ(kiln_in_retry_after(KILN_STR("Sun, 06 Foo 1994 08:49:37 GMT"), 0), 0);
}

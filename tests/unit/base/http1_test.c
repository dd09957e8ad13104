/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/err.h"
#include "base/http1.h"
#include "test.h"

static struct kiln_http_head head;
static char bytes[64 << 10];

/* The status a head is refused with; 0: it is fine; -1: it has no end; -2: its lines do not. */
static int parse(const char *text)
{
    struct kiln_http1_scan scan = {0};
    int64_t n;

    snprintf(bytes, sizeof(bytes), "%s", text);
    n = kiln_http1_find_end(&scan, kiln_str_of(bytes));
    if (n <= 0)
        return n < 0 ? -2 : -1;
    return kiln_http1_parse_head(bytes, (size_t)n, &head);
}

#define POST "POST /p HTTP/1.1\r\nHost: h\r\n"

TEST(http1, a_head_is_cut_into_its_parts)
{
    CHECK_EQ(parse("GET /a%20b?c=d HTTP/1.1\r\nHost: h:1\r\nX-Thing:\t a b \t\r\nEmpty:\r\n\r\n"),
             0);
    CHECK_STR(head.method, "GET");
    CHECK_STR(head.target, "/a%20b?c=d");
    CHECK_EQ(head.n_headers, 3);
    CHECK_STR(head.headers[1].name, "x-thing");
    CHECK_STR(head.headers[1].value, "a b");
    CHECK_EQ(head.headers[2].value.len, 0);
    CHECK(head.keep_alive && !head.chunked && !head.has_length && !head.expect);
}

TEST(http1, a_head_says_what_follows)
{
    CHECK_EQ(parse(POST "Content-Length: 12\r\n\r\n"), 0);
    CHECK(head.has_length && head.length == 12);
    CHECK_EQ(parse(POST "Transfer-Encoding: Chunked\r\n\r\n"), 0);
    CHECK(head.chunked);
    CHECK_EQ(parse(POST "Connection: foo, Close\r\n\r\n"), 0);
    CHECK(!head.keep_alive);
    CHECK_EQ(parse(POST "Expect: 100-Continue\r\n\r\n"), 0);
    CHECK(head.expect);
    CHECK_EQ(parse("GET / HTTP/1.0\r\n\r\n"), 0);
    CHECK(!head.keep_alive && head.minor == 0);
    CHECK_EQ(parse("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), 0);
    CHECK(head.keep_alive);
}

TEST(http1, what_two_programs_could_read_differently_is_refused)
{
    static const char *const bad[] = {
        POST "Content-Length: 3\r\nContent-Length: 3\r\n\r\n",
        POST "Content-Length: 3\r\nContent-Length: 4\r\n\r\n",
        POST "Content-Length: 3, 3\r\n\r\n",
        POST "Content-Length: +3\r\n\r\n",
        POST "Content-Length: 0x3\r\n\r\n",
        POST "Content-Length: \r\n\r\n",
        POST "Content-Length: 99999999999999999999\r\n\r\n",
        POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
        POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        POST "Content-Length : 3\r\n\r\n",
        POST " folded: 3\r\n\r\n",
        POST "A: b\r\n\tc\r\n\r\n",
        POST "A: b\rc\r\n\r\n",
        POST "A: b\x01\r\n\r\n",
        POST "no colon\r\n\r\n",
        POST ": no name\r\n\r\n",
        POST "n\x80me: x\r\n\r\n",
        "POST  /p HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /p  HTTP/1.1\r\nHost: h\r\n\r\n",
        " POST /p HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /p HTTP/1.1 \r\nHost: h\r\n\r\n",
        "POST /\x01 HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST\t/p HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /p\r\nHost: h\r\n\r\n",
        "POST /p http/1.1\r\nHost: h\r\n\r\n",
        "POST /p HTTP/1.1\r\n\r\n",
        "POST /p HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(bad); i++)
        if (parse(bad[i]) != 400)
            fail_msg("gave %d: %s", parse(bad[i]), bad[i]);
}

TEST(http1, what_is_not_done_here_has_a_status_of_its_own)
{
    CHECK_EQ(parse(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"), 501);
    CHECK_EQ(parse(POST "Transfer-Encoding: identity\r\n\r\n"), 501);
    CHECK_EQ(parse(POST "Expect: a-miracle\r\n\r\n"), 417);
    CHECK_EQ(parse("GET / HTTP/2.0\r\nHost: h\r\n\r\n"), 505);
    CHECK_EQ(parse("GET / HTTP/3.0\r\nHost: h\r\n\r\n"), 505);
}

TEST(http1, lines_end_in_cr_lf)
{
    CHECK_EQ(parse("GET / HTTP/1.1\nHost: h\n\n"), -2);
    CHECK_EQ(parse("GET / HTTP/1.1\r\nHost: h\n\r\n"), -2);
    CHECK_EQ(parse("\nGET / HTTP/1.1\r\n\r\n"), -2);
    CHECK_EQ(parse("GET / HTTP/1.1\r\nHost: h\r\n"), -1);
}

TEST(http1, there_may_be_128_headers)
{
    struct kiln_buf text;

    kiln_buf_init(&text, 1 << 20);
    kiln_buf_puts(&text, "GET / HTTP/1.1\r\nHost: h\r\n");
    for (int i = 1; i < KILN_HTTP_HEADERS_MAX; i++)
        kiln_buf_puts(&text, "a: b\r\n");
    kiln_buf_add(&text, "\r\n", 3);
    CHECK_EQ(parse(text.ptr), 0);
    CHECK_EQ(head.n_headers, KILN_HTTP_HEADERS_MAX);
    text.len -= 3;
    kiln_buf_add(&text, "a: b\r\n\r\n", 9);
    CHECK_EQ(parse(text.ptr), 431);
    kiln_buf_done(&text);
}

/* Reads a body of chunks in pieces of `step` bytes: its content, or the error as a number. */
static const char *read_chunks(const char *text, size_t step)
{
    static char content[4096];
    struct kiln_http1_body body;
    struct kiln_str rest = kiln_str_of(text), piece;
    size_t len = 0;
    int r = 1;

    kiln_http1_body_init(&body, &(struct kiln_http_head){.chunked = true});
    while (rest.len && r > 0) {
        struct kiln_str in = {rest.ptr, rest.len < step ? rest.len : step};
        size_t n = in.len;

        r = kiln_http1_body_next(&body, &in, &piece);
        for (size_t i = 0; r >= 0 && i < piece.len; i++)
            content[len++] = piece.ptr[i];
        rest.ptr += n - in.len;
        rest.len -= n - in.len;
    }
    snprintf(content + len, sizeof(content) - len, "%s%s",
             r < 0   ? "!"
             : r > 0 ? "..."
                     : "|",
             r == 0 ? rest.ptr : "");
    return content;
}

static void check_chunks(const char *text, const char *expected)
{
    CHECK_TEXT(read_chunks(text, SIZE_MAX), expected);
    CHECK_TEXT(read_chunks(text, 1), expected);
    CHECK_TEXT(read_chunks(text, 2), expected);
}

TEST(http1, chunks_are_joined)
{
    check_chunks("3\r\nabc\r\n2;x=\"y\"\r\nde\r\n0\r\n\r\nnext", "abcde|next");
    check_chunks("00A\r\n0123456789\r\n0\r\nTrailer: value\r\nB:\r\n\r\n", "0123456789|");
    check_chunks("3\r\nabc\r\n", "abc...");
    check_chunks("0\r\n", "...");
}

TEST(http1, chunks_that_break_a_rule_are_refused)
{
    check_chunks("\r\n", "!");
    check_chunks("g\r\n", "!");
    check_chunks("-1\r\n", "!");
    check_chunks("+1\r\n", "!");
    check_chunks("0x1\r\n", "!");
    check_chunks(" 1\r\n", "!");
    check_chunks("1 \r\n", "!");
    check_chunks("1\n", "!");
    check_chunks("1\r\r", "!");
    check_chunks("1;a\nb\r\n", "!");
    check_chunks("ffffffffffffffff\r\n", "!");
    check_chunks("0000000000000001\r\n", "!");
    check_chunks("1\r\nab\r\n", "a!");
    check_chunks("1\r\na\n", "a!");
    check_chunks("0\r\n folded: x\r\n", "!");
    check_chunks("0\r\nno colon\r\n", "!");
    check_chunks("0\r\na: b\rc\r\n", "!");
    check_chunks("0\r\na: b\n", "!");
    check_chunks("0\r\n\rx", "!");
}

TEST(http1, trailers_and_extensions_have_an_end)
{
    struct kiln_http1_body body;
    struct kiln_str piece;
    int r = 1;

    kiln_http1_body_init(&body, &(struct kiln_http_head){.chunked = true});
    for (int i = 0; i < 1000000 && r > 0; i++) {
        struct kiln_str in = i == 0 ? KILN_STR("1;") : KILN_STR("xxxxxxxx");

        r = kiln_http1_body_next(&body, &in, &piece);
    }
    CHECK_EQ(r, KILN_E_LIMIT);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc.h"
#include "test.h"

#define BYTES(literal)                                                                             \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

/* ---- frames ---- */

TEST(grpc, a_frame_is_a_flag_a_length_and_a_payload)
{
    struct kiln_buf out;
    struct kiln_grpc_frame frame;
    struct kiln_str rest;

    kiln_buf_init(&out, 1000);
    kiln_grpc_frame_put(&out, 1, KILN_STR("hello"));
    kiln_grpc_frame_put(&out, 0, KILN_STR_NONE);
    CHECK(kiln_str_eq(kiln_buf_str(&out), KILN_STR("\1\0\0\0\5hello\0\0\0\0\0")));
    rest = kiln_buf_str(&out);
    CHECK_EQ(kiln_grpc_frame_next(&rest, 5, &frame), 1);
    CHECK_EQ(frame.flags, 1);
    CHECK_STR(frame.payload, "hello");
    CHECK_EQ(kiln_grpc_frame_next(&rest, 5, &frame), 1);
    CHECK_EQ(frame.payload.len, 0);
    CHECK_EQ(kiln_grpc_frame_next(&rest, 5, &frame), 0);
    kiln_buf_done(&out);
}

TEST(grpc, a_frame_that_is_not_all_there_is_refused)
{
    static const struct {
        struct kiln_str bytes;
        int code;
    } cases[] = {
        {BYTES("\0"), KILN_E_TRUNCATED},
        {BYTES("\0\0\0\0"), KILN_E_TRUNCATED},
        {BYTES("\0\0\0\0\2x"), KILN_E_TRUNCATED},
        {BYTES("\0\xff\xff\xff\xffx"), KILN_E_LIMIT},
        {BYTES("\0\0\0\0\101x"), KILN_E_LIMIT},
        {BYTES("\2\0\0\0\0"), KILN_E_MALFORMED},
        {BYTES("PRI * HTTP/2.0"), KILN_E_MALFORMED},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct kiln_str rest = cases[i].bytes;
        struct kiln_grpc_frame frame;

        CHECK_EQ(kiln_grpc_frame_next(&rest, 64, &frame), cases[i].code);
        CHECK_EQ(rest.len, cases[i].bytes.len);
    }
}

/* ---- texts ---- */

TEST(grpc, a_message_is_percent_encoded_and_comes_back)
{
    static const char *const cases[][2] = {
        {"plain text, with (signs)", "plain text, with (signs)"},
        {"100 %", "100 %25"},
        {"line\nbreak\r", "line%0Abreak%0D"},
        {"\xc3\xbc", "%C3%BC"},
        {"", ""},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct kiln_buf out, back;

        kiln_buf_init(&out, 1000);
        kiln_buf_init(&back, 1000);
        kiln_grpc_text_put(&out, kiln_str_of(cases[i][0]));
        CHECK_STR(kiln_buf_str(&out), cases[i][1]);
        kiln_grpc_text_get(&back, kiln_buf_str(&out));
        CHECK_STR(kiln_buf_str(&back), cases[i][0]);
        kiln_buf_done(&out);
        kiln_buf_done(&back);
    }
}

TEST(grpc, what_is_no_escape_stays_as_it_is)
{
    struct kiln_buf out;

    kiln_buf_init(&out, 1000);
    kiln_grpc_text_get(&out, KILN_STR("100% %zz %4 %e4%"));
    CHECK_STR(kiln_buf_str(&out), "100% %zz %4 \xe4%");
    kiln_buf_done(&out);
}

TEST(grpc, an_encoding_is_known_or_unsupported)
{
    enum kiln_compression c = KILN_ZSTD;

    CHECK_OK(kiln_grpc_encoding(KILN_STR_NONE, &c));
    CHECK_EQ(c, KILN_PLAIN);
    CHECK_OK(kiln_grpc_encoding(KILN_STR("gzip"), &c));
    CHECK_EQ(c, KILN_GZIP);
    CHECK_OK(kiln_grpc_encoding(KILN_STR("zstd"), &c));
    CHECK_EQ(c, KILN_ZSTD);
    CHECK_EQ(kiln_grpc_encoding(KILN_STR("snappy"), &c), KILN_E_UNSUPPORTED);
}

/* ---- google.rpc.Status ---- */

static void check_hex(struct kiln_buf *out, const char *hex)
{
    struct kiln_buf text;

    kiln_buf_init(&text, 4096);
    kiln_buf_add_hex(&text, out->ptr, out->len);
    CHECK_STR(kiln_buf_str(&text), hex);
    kiln_buf_done(&text);
    kiln_buf_clear(out);
}

TEST(status, its_bytes_are_those_of_protobuf)
{
    struct kiln_buf out;

    kiln_buf_init(&out, 4096);
    kiln_status_encode(&(struct kiln_rpc_status){.code = 12, .message = "no"}, &out);
    check_hex(&out, "080c12026e6f");
    kiln_status_encode(
        &(struct kiln_rpc_status){.code = 14, .message = "later", .retry_after_s = 300}, &out);
    check_hex(&out, "080e12056c617465721a310a28747970652e676f6f676c65617069732e636f6d2f676f6f676c65"
                    "2e7270632e5265747279496e666f12050a0308ac02");
    kiln_status_encode(&(struct kiln_rpc_status){.code = 3, .message = "bad", .field = "a.b"},
                       &out);
    check_hex(&out, "080312036261641a390a29747970652e676f6f676c65617069732e636f6d2f676f6f676c652e72"
                    "70632e42616452657175657374120c0a0a0a03612e621203626164");
    kiln_buf_done(&out);
}

TEST(status, retry_info_comes_back)
{
    struct kiln_rpc_status status = {
        .code = 8, .message = "too much", .retry_after_s = 7, .field = "x"};
    struct kiln_status_info info;
    struct kiln_buf out;

    kiln_buf_init(&out, 4096);
    kiln_status_encode(&status, &out);
    CHECK_OK(kiln_status_decode(kiln_buf_str(&out), &info));
    CHECK_EQ(info.code, 8);
    CHECK_STR(info.message, "too much");
    CHECK(info.has_retry);
    CHECK_EQ(info.retry_after_ms, 7000);
    kiln_buf_done(&out);
}

TEST(status, one_that_is_cut_is_truncated)
{
    struct kiln_status_info info;

    CHECK_EQ(kiln_status_decode(KILN_STR("\x08"), &info), KILN_E_TRUNCATED);
    CHECK_EQ(kiln_status_decode(KILN_STR("\x12\x05 ab"), &info), KILN_E_TRUNCATED);
    CHECK_EQ(kiln_status_decode(KILN_STR("\x1a\x02\x0a\x05"), &info), KILN_E_TRUNCATED);
    CHECK_EQ(kiln_status_decode(KILN_STR("\x0b"), &info), KILN_E_MALFORMED);
}

#define RETRY(any, value, duration)                                                                \
    "\x1a" any "\x0a\x28"                                                                          \
    "type.googleapis.com/google.rpc.RetryInfo\x12" value "\x0a" duration

TEST(status, a_delay_is_rounded_up_and_bounded)
{
    static const struct {
        struct kiln_str bytes;
        uint32_t ms;
    } cases[] = {
        {BYTES(RETRY("\x32", "\x06", "\x04\x10\xc0\x84\x3d")), 1}, /* 1,000,000 ns */
        {BYTES(RETRY("\x32", "\x06", "\x04\x10\xc1\x84\x3d")), 2}, /* and one more */
        {BYTES(RETRY("\x2e", "\x02", "\x00")), 0},                 /* nothing said */
        {BYTES(RETRY("\x32", "\x06", "\x04\x08\xff\xff\x7f")), 2097151000},
        {BYTES(RETRY("\x33", "\x07", "\x05\x08\xff\xff\xff\x7f")), UINT32_MAX},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct kiln_status_info info = {0};

        CHECK_OK(kiln_status_decode(cases[i].bytes, &info));
        CHECK(info.has_retry);
        CHECK_EQ(info.retry_after_ms, cases[i].ms);
    }
}

TEST(status, as_json_it_has_protobufs_names)
{
    struct kiln_rpc_status status = {
        .code = 3, .message = "bad \"x\"", .retry_after_s = 2, .field = "a.b"};
    struct kiln_buf out;

    kiln_buf_init(&out, 4096);
    kiln_status_format(&status, &out);
    CHECK_STR(kiln_buf_str(&out),
              "{\"code\":3,\"message\":\"bad \\\"x\\\"\",\"details\":["
              "{\"@type\":\"type.googleapis.com/google.rpc.RetryInfo\",\"retryDelay\":\"2s\"},"
              "{\"@type\":\"type.googleapis.com/google.rpc.BadRequest\",\"fieldViolations\":"
              "[{\"field\":\"a.b\",\"description\":\"bad \\\"x\\\"\"}]}]}");
    kiln_buf_done(&out);
}

TEST(status, connect_says_it_with_a_word_and_unpadded_details)
{
    struct kiln_buf out;

    kiln_buf_init(&out, 4096);
    kiln_status_format_connect(
        &(struct kiln_rpc_status){.code = 14, .message = "later", .retry_after_s = 1}, &out);
    CHECK_STR(kiln_buf_str(&out), "{\"code\":\"unavailable\",\"message\":\"later\",\"details\":"
                                  "[{\"type\":\"google.rpc.RetryInfo\",\"value\":\"CgIIAQ\"}]}");
    kiln_buf_done(&out);
}

TEST(status, every_code_has_its_http_status)
{
    CHECK_TEXT(kiln_rpc_code_word(KILN_RPC_UNAUTHENTICATED), "unauthenticated");
    CHECK_EQ(kiln_rpc_code_connect(KILN_RPC_UNIMPLEMENTED), 501);
    CHECK_EQ(kiln_rpc_code_http(KILN_RPC_UNIMPLEMENTED), 404);
    CHECK_EQ(kiln_rpc_code_http(KILN_RPC_ABORTED), 503);
    CHECK_EQ(kiln_rpc_code_connect((enum kiln_rpc_code)99), 500);
    CHECK_EQ(kiln_rpc_code_of_http(413), KILN_RPC_RESOURCE_EXHAUSTED);
    CHECK_EQ(kiln_rpc_code_of_http(503), KILN_RPC_UNAVAILABLE);
    CHECK_EQ(kiln_rpc_code_of_http(401), KILN_RPC_UNAUTHENTICATED);
    CHECK_EQ(kiln_rpc_code_of_http(421), KILN_RPC_PERMISSION_DENIED);
    CHECK_EQ(kiln_rpc_code_of_http(418), KILN_RPC_UNKNOWN);
}

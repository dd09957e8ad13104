/* SPDX-License-Identifier: Apache-2.0 */
/* What each protocol answers, byte by byte, without a connection. */
#include "base/bytetext.h"
#include "net/rpc_int.h"
#include "test.h"

static const struct kiln_rpc_kind grpc = {.protocol = KILN_RPC_GRPC},
                                  web = {.protocol = KILN_RPC_GRPC_WEB},
                                  connect = {.protocol = KILN_RPC_CONNECT},
                                  connect_json = {.protocol = KILN_RPC_CONNECT, .json = true},
                                  http = {.protocol = KILN_RPC_HTTP},
                                  http_json = {.protocol = KILN_RPC_HTTP, .json = true};

static const char *value_of(const struct kiln_header *list, uint32_t n, const char *name)
{
    static char text[4096];

    for (uint32_t i = 0; i < n; i++)
        if (kiln_str_eq(list[i].name, kiln_str_of(name))) {
            snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(list[i].value));
            return text;
        }
    return "(none)";
}

static const char *header(const struct kiln_rpc_answer *a, const char *name)
{
    return value_of(a->reply.headers, a->reply.n_headers, name);
}

static const char *trailer(const struct kiln_rpc_answer *a, const char *name)
{
    return value_of(a->reply.trailers, a->reply.n_trailers, name);
}

static void message(struct kiln_rpc_answer *a, struct kiln_rpc_kind kind, struct kiln_str text)
{
    kiln_rpc_answer_init(a);
    kiln_rpc_answer_message(a, kind, text);
}

static void status(struct kiln_rpc_answer *a, struct kiln_rpc_kind kind, struct kiln_rpc_status s)
{
    kiln_rpc_answer_init(a);
    kiln_rpc_answer_status(a, kind, &s);
}

TEST(rpc_answer, grpc_frames_the_message_and_ends_with_trailers)
{
    struct kiln_rpc_answer a;

    message(&a, grpc, KILN_STR("abc"));
    CHECK_EQ(a.reply.status, 200);
    CHECK_TEXT(a.reply.content_type, "application/grpc");
    CHECK(kiln_str_eq(a.reply.body, KILN_STR("\0\0\0\0\3abc")));
    CHECK_TEXT(trailer(&a, "grpc-status"), "0");
    CHECK(a.reply.as_is);
    kiln_rpc_answer_done(&a);
}

TEST(rpc_answer, an_empty_message_is_a_frame_too)
{
    struct kiln_rpc_answer a;

    message(&a, grpc, KILN_STR_NONE);
    CHECK(kiln_str_eq(a.reply.body, KILN_STR("\0\0\0\0\0")));
    kiln_rpc_answer_done(&a);
}

TEST(rpc_answer, a_long_message_is_compressed_for_who_takes_it)
{
    struct kiln_rpc_kind takes_gzip = {.protocol = KILN_RPC_GRPC, .gzip = true};
    struct kiln_grpc_frame frame;
    struct kiln_rpc_answer a;
    struct kiln_buf back;
    struct kiln_str rest;
    char text[5000];

    memset(text, 'x', sizeof(text));
    message(&a, takes_gzip, (struct kiln_str){text, sizeof(text)});
    CHECK_TEXT(header(&a, "grpc-encoding"), "gzip");
    rest = a.reply.body;
    CHECK_EQ(kiln_grpc_frame_next(&rest, 5000, &frame), 1);
    CHECK_EQ(frame.flags, KILN_GRPC_COMPRESSED);
    kiln_buf_init(&back, sizeof(text));
    CHECK_OK(kiln_decompress(KILN_GZIP, frame.payload, &back, NULL));
    CHECK_EQ(back.len, sizeof(text));
    kiln_buf_done(&back);
    kiln_rpc_answer_done(&a);
}

TEST(rpc_answer, grpc_web_has_the_trailers_in_a_last_frame)
{
    struct kiln_rpc_answer a;

    message(&a, web, KILN_STR("abc"));
    CHECK_TEXT(a.reply.content_type, "application/grpc-web+proto");
    CHECK(kiln_str_eq(a.reply.body, KILN_STR("\0\0\0\0\3abc\x80\0\0\0\x10grpc-status: 0\r\n")));
    CHECK_EQ(a.reply.n_trailers, 0);
    kiln_rpc_answer_done(&a);
    status(&a, web, (struct kiln_rpc_status){.code = 5, .message = "no"});
    CHECK(kiln_str_eq(a.reply.body,
                      KILN_STR("\x80\0\0\0\x22grpc-status: 5\r\ngrpc-message: no\r\n")));
    kiln_rpc_answer_done(&a);
}

TEST(rpc_answer, connect_and_http_answer_with_the_bare_message)
{
    static const struct {
        const struct kiln_rpc_kind *kind;
        const char *type;
    } cases[] = {{&connect, "application/proto"},
                 {&connect_json, "application/json"},
                 {&http, "application/x-protobuf"},
                 {&http_json, "application/json"}};

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct kiln_rpc_answer a;

        message(&a, *cases[i].kind, KILN_STR("{}"));
        CHECK_EQ(a.reply.status, 200);
        CHECK_TEXT(a.reply.content_type, cases[i].type);
        CHECK_STR(a.reply.body, "{}");
        CHECK_EQ(a.reply.n_trailers, 0);
        kiln_rpc_answer_done(&a);
    }
}

TEST(rpc_answer, a_grpc_status_is_in_the_trailers)
{
    struct kiln_rpc_answer a;

    status(&a, grpc, (struct kiln_rpc_status){.code = 3, .message = "50 % \xc3\xbc"});
    CHECK_EQ(a.reply.status, 200);
    CHECK_EQ(a.reply.body.len, 0);
    CHECK_TEXT(trailer(&a, "grpc-status"), "3");
    CHECK_TEXT(trailer(&a, "grpc-message"), "50 %25 %C3%BC");
    CHECK_TEXT(trailer(&a, "grpc-status-details-bin"), "(none)");
    kiln_rpc_answer_done(&a);
}

TEST(rpc_answer, retry_info_is_in_the_details_of_grpc)
{
    struct kiln_status_info info;
    struct kiln_rpc_answer a;
    const char *details;
    char bytes[1024];
    size_t len;

    status(&a, grpc, (struct kiln_rpc_status){.code = 14, .message = "m", .retry_after_s = 3});
    details = trailer(&a, "grpc-status-details-bin");
    CHECK(!strchr(details, '='));
    CHECK_OK(kiln_base64_decode(kiln_str_of(details), bytes, &len));
    CHECK_OK(kiln_status_decode((struct kiln_str){bytes, len}, &info));
    CHECK_EQ(info.code, 14);
    CHECK_EQ(info.retry_after_ms, 3000);
    kiln_rpc_answer_done(&a);
}

TEST(rpc_answer, connect_errors_are_json_with_the_status_of_their_code)
{
    struct kiln_rpc_answer a;

    status(&a, connect, (struct kiln_rpc_status){.code = 12, .message = "no"});
    CHECK_EQ(a.reply.status, 501);
    CHECK_TEXT(a.reply.content_type, "application/json");
    CHECK_STR(a.reply.body, "{\"code\":\"unimplemented\",\"message\":\"no\"}");
    kiln_rpc_answer_done(&a);
}

TEST(rpc_answer, http_errors_are_a_status_in_the_callers_encoding)
{
    struct kiln_rpc_answer a;

    status(&a, http, (struct kiln_rpc_status){.code = 8, .message = "m", .retry_after_s = 9});
    CHECK_EQ(a.reply.status, 429);
    CHECK_TEXT(a.reply.content_type, "application/x-protobuf");
    CHECK_TEXT(header(&a, "retry-after"), "9");
    CHECK(kiln_str_starts(a.reply.body, KILN_STR("\x08\x08\x12\1m")));
    kiln_rpc_answer_done(&a);
    status(&a, http_json, (struct kiln_rpc_status){.code = 8, .http_status = 413, .message = "m"});
    CHECK_EQ(a.reply.status, 413);
    CHECK_TEXT(header(&a, "retry-after"), "(none)");
    CHECK_STR(a.reply.body, "{\"code\":8,\"message\":\"m\"}");
    kiln_rpc_answer_done(&a);
}

TEST(rpc_answer, a_long_sentence_is_cut_between_characters)
{
    char text[3000] = "a";
    struct kiln_rpc_answer a;

    for (size_t i = 1; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xbc", 3);
    status(&a, grpc, (struct kiln_rpc_status){.code = 3, .message = text});
    CHECK_EQ(strlen(trailer(&a, "grpc-message")), 1 + 511 * 6);
    kiln_rpc_answer_done(&a);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* How a caller speaks, and what a server's own refusals become. */
#include "net/rpc_int.h"
#include "test.h"

static struct kiln_request request_of(struct kiln_header *header)
{
    return (struct kiln_request){
        .method = KILN_STR("POST"), .headers = header, .n_headers = 1, .http_version = 2};
}

TEST(rpc, the_content_type_says_which_protocol_it_is)
{
    static const struct {
        const char *type;
        bool http_only;
        int code;
        enum kiln_rpc_protocol protocol;
        bool json;
    } cases[] = {
        {"application/grpc", false, 0, KILN_RPC_GRPC, false},
        {"application/grpc+proto", false, 0, KILN_RPC_GRPC, false},
        {"application/grpc+json", false, KILN_E_UNSUPPORTED, KILN_RPC_HTTP, true},
        {"application/grpc-web+proto", false, 0, KILN_RPC_GRPC_WEB, false},
        {"application/proto", false, 0, KILN_RPC_CONNECT, false},
        {"Application/JSON; charset=utf-8", false, 0, KILN_RPC_CONNECT, true},
        {"application/json", true, 0, KILN_RPC_HTTP, true},
        {"application/x-protobuf", false, 0, KILN_RPC_HTTP, false},
        {"application/protobuf ; a=b", true, 0, KILN_RPC_HTTP, false},
        {"application/grpc", true, KILN_E_UNSUPPORTED, KILN_RPC_GRPC, false},
        {"application/proto", true, KILN_E_UNSUPPORTED, KILN_RPC_CONNECT, false},
        {"text/plain", false, KILN_E_UNSUPPORTED, KILN_RPC_HTTP, false},
        {"", false, KILN_E_UNSUPPORTED, KILN_RPC_HTTP, false},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct kiln_header type = {KILN_STR("content-type"), kiln_str_of(cases[i].type)};
        struct kiln_request request = request_of(&type);
        struct kiln_rpc_kind kind;

        CHECK_EQ(kiln_rpc_kind_of(&request, cases[i].http_only, &kind), cases[i].code);
        CHECK_EQ(kind.protocol, cases[i].protocol);
        CHECK_EQ(kind.json, cases[i].json);
    }
}

TEST(rpc, the_caller_says_how_long_it_waits)
{
    static const struct {
        enum kiln_rpc_protocol protocol;
        const char *name, *value;
        uint64_t ms;
    } cases[] = {
        {KILN_RPC_GRPC, "grpc-timeout", "2H", 7200000},
        {KILN_RPC_GRPC, "grpc-timeout", "3M", 180000},
        {KILN_RPC_GRPC, "grpc-timeout", "15S", 15000},
        {KILN_RPC_GRPC_WEB, "grpc-timeout", "1500m", 1500},
        {KILN_RPC_GRPC, "grpc-timeout", "1500u", 2},
        {KILN_RPC_GRPC, "grpc-timeout", "1n", 1},
        {KILN_RPC_GRPC, "grpc-timeout", "0S", 1},
        {KILN_RPC_GRPC, "grpc-timeout", "99999999H", 359999996400000},
        {KILN_RPC_GRPC, "grpc-timeout", "100000000H", 0},
        {KILN_RPC_GRPC, "grpc-timeout", "15", 0},
        {KILN_RPC_GRPC, "grpc-timeout", "S", 0},
        {KILN_RPC_GRPC, "grpc-timeout", "-1S", 0},
        {KILN_RPC_GRPC, "connect-timeout-ms", "5", 0},
        {KILN_RPC_CONNECT, "connect-timeout-ms", "2500", 2500},
        {KILN_RPC_CONNECT, "connect-timeout-ms", "0", 1},
        {KILN_RPC_CONNECT, "connect-timeout-ms", "12345678901", 0},
        {KILN_RPC_CONNECT, "connect-timeout-ms", "1s", 0},
        {KILN_RPC_HTTP, "connect-timeout-ms", "2500", 0},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct kiln_header header = {kiln_str_of(cases[i].name), kiln_str_of(cases[i].value)};
        struct kiln_request request = request_of(&header);

        CHECK_EQ(kiln_rpc_timeout_ms(&request, cases[i].protocol), cases[i].ms);
    }
}

TEST(rpc, a_unary_call_has_exactly_one_message)
{
    static const struct {
        struct kiln_str body;
        const char *encoding;
        int code; /* of gRPC; 0: taken */
        enum kiln_compression compression;
    } cases[] = {
        {{"\0\0\0\0\1x", 6}, "", 0, KILN_PLAIN},
        {{"\0\0\0\0\1x", 6}, "gzip", 0, KILN_PLAIN},
        {{"\1\0\0\0\1x", 6}, "gzip", 0, KILN_GZIP},
        {{"\1\0\0\0\1x", 6}, "zstd", 0, KILN_ZSTD},
        {{"\1\0\0\0\1x", 6}, "snappy", KILN_RPC_UNIMPLEMENTED, 0},
        {{"\0\0\0\0\1x", 6}, "snappy", KILN_RPC_UNIMPLEMENTED, 0},
        {{"\1\0\0\0\1x", 6}, "identity", KILN_RPC_INTERNAL, 0},
        {{"", 0}, "", KILN_RPC_UNIMPLEMENTED, 0},
        {{"\0\0\0\0\1x\0\0\0\0\0", 11}, "", KILN_RPC_UNIMPLEMENTED, 0},
        {{"\0\0\0\0\2x", 6}, "", KILN_RPC_INTERNAL, 0},
        {{"\0\0\0\0\x21x", 6}, "", KILN_RPC_RESOURCE_EXHAUSTED, 0},
        {{"\x80\0\0\0\1x", 6}, "", KILN_RPC_INTERNAL, 0},
        {{"\4\0\0\0\1x", 6}, "", KILN_RPC_INTERNAL, 0},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct kiln_header encoding = {KILN_STR("grpc-encoding"), kiln_str_of(cases[i].encoding)};
        struct kiln_request request = request_of(&encoding);
        struct kiln_rpc_status why = {0};
        struct kiln_rpc rpc = {0};

        request.body = cases[i].body;
        CHECK_EQ(kiln_rpc_unwrap(&request, 32, &rpc, &why) < 0, cases[i].code != 0);
        CHECK_EQ(why.code, cases[i].code);
        CHECK_EQ(why.retry_after_s, 0);
        if (cases[i].code == 0) {
            CHECK_STR(rpc.message, "x");
            CHECK_EQ(rpc.compression, cases[i].compression);
        }
    }
}

/* ---- refusals of the server ---- */

struct refusal {
    struct kiln_reply reply;
    struct kiln_buf scratch;
};

/* A 503 with two headers, as a caller of this content type at this path sees it. */
static void refuse(struct refusal *refusal, const char *type, const char *path)
{
    struct kiln_header header = {KILN_STR("content-type"), kiln_str_of(type)};
    struct kiln_request request = request_of(&header);

    request.path = kiln_str_of(path);
    refusal->reply = (struct kiln_reply){
        .status = 503, .content_type = "text/plain", .body = KILN_STR("full\n"), .n_headers = 2};
    refusal->reply.headers[0] = (struct kiln_header){KILN_STR("retry-after"), KILN_STR("4")};
    refusal->reply.headers[1] = (struct kiln_header){KILN_STR("x-more"), KILN_STR("y")};
    kiln_buf_init(&refusal->scratch, 65536);
    kiln_rpc_translate(&request, &refusal->reply, &refusal->scratch);
}

static void check_pair(const struct kiln_header *list, uint32_t n, const char *name,
                       const char *value)
{
    for (uint32_t i = 0; i < n; i++)
        if (kiln_str_eq(list[i].name, kiln_str_of(name))) {
            CHECK_STR(list[i].value, value);
            return;
        }
    fail_msg("no %s", name);
}

TEST(rpc, a_refusal_reaches_grpc_as_trailers)
{
    struct refusal r;

    refuse(&r, "application/grpc", "/a.B/C");
    CHECK_EQ(r.reply.status, 200);
    check_pair(r.reply.trailers, r.reply.n_trailers, "grpc-status", "14");
    check_pair(r.reply.trailers, r.reply.n_trailers, "grpc-message", "full");
    CHECK_EQ(r.reply.n_trailers, 3);
    CHECK_EQ(r.reply.n_headers, 0);
    kiln_buf_done(&r.scratch);
}

TEST(rpc, a_refusal_reaches_connect_as_json)
{
    struct refusal r;

    refuse(&r, "application/json", "/a.B/C");
    CHECK_EQ(r.reply.status, 503);
    CHECK(
        kiln_str_starts(r.reply.body, KILN_STR("{\"code\":\"unavailable\",\"message\":\"full\"")));
    check_pair(r.reply.headers, r.reply.n_headers, "retry-after", "4");
    check_pair(r.reply.headers, r.reply.n_headers, "x-more", "y");
    CHECK_EQ(r.reply.n_headers, 2);
    kiln_buf_done(&r.scratch);
}

TEST(rpc, a_refusal_reaches_otlp_as_a_status)
{
    struct refusal r;

    refuse(&r, "application/json", "/v1development/profiles");
    CHECK(kiln_str_starts(r.reply.body, KILN_STR("{\"code\":14,\"message\":\"full\"")));
    kiln_buf_done(&r.scratch);
    refuse(&r, "application/x-protobuf", "/v1development/profiles");
    CHECK_TEXT(r.reply.content_type, "application/x-protobuf");
    CHECK(kiln_str_starts(r.reply.body, KILN_STR("\x08\x0e\x12\4full")));
    kiln_buf_done(&r.scratch);
}

TEST(rpc, a_refusal_reaches_everybody_else_as_it_is)
{
    struct refusal r;

    refuse(&r, "text/html", "/ingest");
    CHECK_STR(r.reply.body, "full\n");
    CHECK_EQ(r.reply.n_headers, 2);
    kiln_buf_done(&r.scratch);
}

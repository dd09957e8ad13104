/* SPDX-License-Identifier: Apache-2.0 */
/* The client, the protocols and the server together, over real sockets. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/client.h"
#include "squatter.h"
#include "test.h"

struct house {
    struct kiln_server *server;
    struct kiln_router *router;
    struct kiln_client *client;
    struct kiln_answer answer;
    char folder[64], address[128];
};

/* Answers with the message itself, behind one letter for the protocol. */
static void echo(struct kiln_rpc *rpc)
{
    static const char letters[] = "gwch";
    struct kiln_buf out;
    struct kiln_err err = {0};

    kiln_buf_init(&out, 1 << 20);
    kiln_buf_putc(&out, letters[rpc->protocol]);
    if (kiln_decompress(rpc->compression, rpc->message, &out, &err) < 0)
        kiln_rpc_fail(
            rpc, &(struct kiln_rpc_status){.code = KILN_RPC_INVALID_ARGUMENT, .message = err.text});
    else
        kiln_rpc_reply(rpc, kiln_buf_str(&out));
    kiln_buf_done(&out);
}

static void busy(struct kiln_rpc *rpc)
{
    kiln_rpc_fail(rpc, &(struct kiln_rpc_status){.code = KILN_RPC_RESOURCE_EXHAUSTED,
                                                 .retry_after_s = 3,
                                                 .message = "too much at once"});
}

static void bad(struct kiln_rpc *rpc)
{
    kiln_rpc_fail(rpc, &(struct kiln_rpc_status){.code = KILN_RPC_INVALID_ARGUMENT,
                                                 .field = "x.y",
                                                 .message = "50 % is \xc3\xbc"
                                                            "ber"});
}

static int guard(void *context, struct kiln_request *request, enum kiln_access access,
                 struct kiln_reply *reply)
{
    struct kiln_str token = kiln_request_header(request, "authorization");

    (void)context;
    if (access == KILN_ACCESS_NONE || kiln_str_eq(token, KILN_STR("Bearer key")))
        return 0;
    reply->status = 401;
    reply->content_type = "text/plain";
    reply->body = KILN_STR("show a token\n");
    return -EACCES;
}

static void add(struct house *h, const char *path, void (*handler)(struct kiln_rpc *),
                enum kiln_access access, bool http_only)
{
    CHECK_OK(kiln_rpc_add(h->router, &(struct kiln_rpc_route){.path = path,
                                                              .handler = handler,
                                                              .access = access,
                                                              .body_max = 4096,
                                                              .http_only = http_only}));
}

/* A server at this address; its port. */
static uint16_t open_server(struct house *h, const char *address)
{
    struct kiln_listen_opts listen = {.address = address, .router = h->router};
    struct kiln_err err = {0};
    uint16_t port = 0;

    CHECK_OK(kiln_server_new(&(struct kiln_server_opts){.workers = 1}, &h->server));
    CHECK_OK(kiln_server_listen(h->server, &listen, &port, &err));
    CHECK_OK(kiln_server_start(h->server, &err));
    return port;
}

static void close_server(struct house *h)
{
    kiln_server_stop(h->server, 1000);
    kiln_server_free(h->server);
}

static void start(struct house *h, bool local, const char *token)
{
    struct kiln_err err = {0};
    uint16_t port;

    snprintf(h->folder, sizeof(h->folder), "/tmp/kiln-client-XXXXXX");
    CHECK(mkdtemp(h->folder));
    CHECK_OK(kiln_router_new(&h->router));
    add(h, "/t.Test/Echo", echo, KILN_ACCESS_NONE, false);
    add(h, "/t.Test/Busy", busy, KILN_ACCESS_NONE, false);
    add(h, "/t.Test/Bad", bad, KILN_ACCESS_NONE, false);
    add(h, "/t.Test/Write", echo, KILN_ACCESS_WRITE, false);
    add(h, "/v1/echo", echo, KILN_ACCESS_NONE, true);
    add(h, "/v1/busy", busy, KILN_ACCESS_NONE, true);
    kiln_router_fallback(h->router, kiln_rpc_unknown, NULL);
    kiln_router_guard(h->router, (struct kiln_guard){.check = guard});
    snprintf(h->address, sizeof(h->address), "unix:%s/s", h->folder);
    port = open_server(h, local ? h->address : "127.0.0.1:0");
    if (!local)
        snprintf(h->address, sizeof(h->address), "http://127.0.0.1:%u", port);
    CHECK_OK(kiln_client_new(&(struct kiln_client_opts){.server = h->address, .token = token},
                             &h->client, &err));
    kiln_answer_init(&h->answer);
}

static void stop(struct house *h)
{
    char path[128];

    kiln_answer_done(&h->answer);
    kiln_client_free(h->client);
    close_server(h);
    kiln_router_free(h->router);
    snprintf(path, sizeof(path), "%s/s", h->folder);
    unlink(path);
    rmdir(h->folder);
    CHECK_EQ(kiln_mem_live(), 0);
}

static struct kiln_answer *grpc(struct house *h, const char *path, struct kiln_str body)
{
    struct kiln_err err = {0};

    if (kiln_client_grpc(h->client, &(struct kiln_call){.path = path, .body = body}, &h->answer,
                         &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
    return &h->answer;
}

static struct kiln_answer *post(struct house *h, const char *path, const char *type,
                                struct kiln_str body)
{
    struct kiln_call call = {.path = path, .content_type = type, .body = body, .method = "POST"};
    struct kiln_err err = {0};

    if (kiln_client_call(h->client, &call, &h->answer, &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
    return &h->answer;
}

/* ---- gRPC ---- */

TEST(client, a_grpc_call_comes_back)
{
    struct kiln_answer *a;
    struct house h;

    start(&h, false, NULL);
    for (int i = 0; i < 3; i++) {
        a = grpc(&h, "/t.Test/Echo", KILN_STR("hello"));
        CHECK_EQ(a->status, 200);
        CHECK_EQ(a->rpc_code, KILN_RPC_OK);
        CHECK_STR(kiln_buf_str(&a->body), "ghello");
    }
    a = grpc(&h, "/t.Test/Echo", KILN_STR_NONE);
    CHECK_STR(kiln_buf_str(&a->body), "g");
    stop(&h);
}

TEST(client, a_compressed_grpc_call_comes_back_compressed)
{
    struct kiln_err err = {0};
    struct kiln_buf packed;
    struct house h;
    char text[3000];

    memset(text, 'x', sizeof(text));
    start(&h, false, NULL);
    for (enum kiln_compression c = KILN_GZIP; c <= KILN_ZSTD; c++) {
        kiln_buf_init(&packed, 4096);
        CHECK_OK(kiln_compress(c, 0, (struct kiln_str){text, sizeof(text)}, &packed));
        CHECK_OK(kiln_client_grpc(h.client,
                                  &(struct kiln_call){.path = "/t.Test/Echo",
                                                      .body = kiln_buf_str(&packed),
                                                      .encoding = c},
                                  &h.answer, &err));
        CHECK_EQ(h.answer.rpc_code, KILN_RPC_OK);
        CHECK_EQ(h.answer.body.len, sizeof(text) + 1);
        kiln_buf_done(&packed);
    }
    stop(&h);
}

TEST(client, a_grpc_refusal_says_when_to_come_back)
{
    struct kiln_answer *a;
    struct house h;

    start(&h, false, NULL);
    a = grpc(&h, "/t.Test/Busy", KILN_STR("x"));
    CHECK_EQ(a->rpc_code, KILN_RPC_RESOURCE_EXHAUSTED);
    CHECK(a->retryable);
    CHECK_EQ(a->retry_after_ms, 3000);
    CHECK_TEXT(a->message, "too much at once");
    a = grpc(&h, "/t.Test/Bad", KILN_STR("x"));
    CHECK_EQ(a->rpc_code, KILN_RPC_INVALID_ARGUMENT);
    CHECK(!a->retryable);
    CHECK_TEXT(a->message, "50 % is \xc3\xbc"
                           "ber");
    a = grpc(&h, "/t.Test/Echo", KILN_STR("and on"));
    CHECK_STR(kiln_buf_str(&a->body), "gand on");
    stop(&h);
}

TEST(client, an_unknown_method_is_unimplemented)
{
    struct kiln_answer *a;
    struct house h;

    start(&h, false, NULL);
    a = grpc(&h, "/t.Test/Nothing", KILN_STR("x"));
    CHECK_EQ(a->rpc_code, KILN_RPC_UNIMPLEMENTED);
    CHECK_TEXT(a->message, "no such path: /t.Test/Nothing");
    a = post(&h, "/t.Test/Nothing", "application/json", KILN_STR("{}"));
    CHECK_EQ(a->status, 501);
    a = post(&h, "/nothing", "application/json", KILN_STR("{}"));
    CHECK_EQ(a->status, 404);
    CHECK_TEXT(a->message, "no such path: /nothing");
    a = post(&h, "/nothing", "text/plain", KILN_STR("x"));
    CHECK_EQ(a->status, 404);
    stop(&h);
}

TEST(client, grpc_over_http_1_has_its_status_behind_chunks)
{
    struct kiln_answer *a;
    struct house h;

    start(&h, false, NULL);
    a = post(&h, "/t.Test/Echo", "application/grpc", KILN_STR("\0\0\0\0\3abc"));
    CHECK_EQ(a->status, 200);
    CHECK(kiln_str_eq(kiln_buf_str(&a->body), KILN_STR("\0\0\0\0\4gabc")));
    stop(&h);
}

TEST(client, who_compresses_otherwise_hears_what_is_taken)
{
    const struct kiln_header snappy = {KILN_STR("grpc-encoding"), KILN_STR("snappy")};
    struct kiln_call call = {.path = "/t.Test/Echo",
                             .content_type = "application/grpc",
                             .body = {"\1\0\0\0\1x", 6},
                             .headers = &snappy,
                             .n_headers = 1};
    struct kiln_err err = {0};
    struct house h;

    start(&h, false, NULL);
    CHECK_OK(kiln_client_call(h.client, &call, &h.answer, &err));
    CHECK(h.answer.takes_zstd); /* grpc-accept-encoding */
    CHECK_EQ(h.answer.body.len, 0);
    stop(&h);
}

TEST(client, a_guards_refusal_reaches_every_protocol)
{
    struct kiln_answer *a;
    struct house h;

    start(&h, false, NULL);
    a = grpc(&h, "/t.Test/Write", KILN_STR("x"));
    CHECK_EQ(a->rpc_code, KILN_RPC_UNAUTHENTICATED);
    CHECK_TEXT(a->message, "show a token");
    a = post(&h, "/t.Test/Write", "application/proto", KILN_STR("x"));
    CHECK_EQ(a->status, 401);
    CHECK_TEXT(a->message, "show a token");
    stop(&h);
    start(&h, false, "key");
    a = grpc(&h, "/t.Test/Write", KILN_STR("x"));
    CHECK_EQ(a->rpc_code, KILN_RPC_OK);
    stop(&h);
}

TEST(client, what_is_too_large_is_not_to_be_tried_again)
{
    char text[8192] = {0};
    struct kiln_answer *a;
    struct house h;

    start(&h, false, NULL);
    a = grpc(&h, "/t.Test/Echo", (struct kiln_str){text, sizeof(text)});
    CHECK_EQ(a->rpc_code, KILN_RPC_RESOURCE_EXHAUSTED);
    CHECK(!a->retryable);
    a = post(&h, "/v1/echo", "application/x-protobuf", (struct kiln_str){text, sizeof(text)});
    CHECK_EQ(a->status, 413);
    CHECK(!a->retryable);
    stop(&h);
}

/* ---- HTTP ---- */

TEST(client, one_handler_answers_every_protocol)
{
    static const struct {
        const char *path, *type, *answer;
    } cases[] = {{"/t.Test/Echo", "application/proto", "cx"},
                 {"/t.Test/Echo", "application/json", "cx"},
                 {"/t.Test/Echo", "application/x-protobuf", "hx"},
                 {"/v1/echo", "application/x-protobuf", "hx"},
                 {"/v1/echo", "application/json", "hx"}};
    struct house h;

    start(&h, false, NULL);
    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct kiln_answer *a = post(&h, cases[i].path, cases[i].type, KILN_STR("x"));

        CHECK_EQ(a->status, 200);
        CHECK_STR(kiln_buf_str(&a->body), cases[i].answer);
    }
    stop(&h);
}

TEST(client, grpc_web_works_over_http_1)
{
    struct kiln_answer *a;
    struct house h;

    start(&h, false, NULL);
    a = post(&h, "/t.Test/Echo", "application/grpc-web+proto", KILN_STR("\0\0\0\0\1x"));
    CHECK_EQ(a->status, 200);
    CHECK(kiln_str_eq(kiln_buf_str(&a->body),
                      KILN_STR("\0\0\0\0\2wx\x80\0\0\0\x10grpc-status: 0\r\n")));
    stop(&h);
}

TEST(client, other_content_types_and_methods_are_refused)
{
    struct kiln_err err = {0};
    struct kiln_answer *a;
    struct house h;

    start(&h, false, NULL);
    CHECK_EQ(post(&h, "/v1/echo", "text/csv", KILN_STR("x"))->status, 415);
    CHECK_EQ(post(&h, "/v1/echo", "application/proto", KILN_STR("x"))->status, 415);
    a = grpc(&h, "/v1/echo", KILN_STR("x"));
    CHECK_EQ(a->rpc_code, KILN_RPC_UNIMPLEMENTED);
    CHECK_OK(kiln_client_call(h.client, &(struct kiln_call){.path = "/v1/echo"}, &h.answer, &err));
    CHECK_EQ(h.answer.status, 405);
    stop(&h);
}

TEST(client, an_http_refusal_says_when_to_come_back)
{
    struct kiln_answer *a;
    struct house h;

    start(&h, false, NULL);
    for (int i = 0; i < 2; i++) {
        a = post(&h, "/v1/busy", i ? "application/json" : "application/x-protobuf", KILN_STR("x"));
        CHECK_EQ(a->status, 429);
        CHECK(a->retryable);
        CHECK_EQ(a->retry_after_ms, 3000);
        CHECK_TEXT(a->message, "too much at once");
    }
    stop(&h);
}

/* ---- connections ---- */

TEST(client, it_speaks_over_a_unix_socket)
{
    struct kiln_answer *a;
    struct house h;

    start(&h, true, NULL);
    a = grpc(&h, "/t.Test/Echo", KILN_STR("x"));
    CHECK_STR(kiln_buf_str(&a->body), "gx");
    a = post(&h, "/v1/echo", "application/json", KILN_STR("y"));
    CHECK_STR(kiln_buf_str(&a->body), "hy");
    stop(&h);
}

TEST(client, a_server_that_was_restarted_is_called_again)
{
    struct kiln_answer *a;
    struct house h;

    start(&h, false, NULL);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 2; j++) {
            a = grpc(&h, "/t.Test/Echo", KILN_STR("x"));
            CHECK_EQ(a->rpc_code, KILN_RPC_OK);
            CHECK_STR(kiln_buf_str(&a->body), "gx");
        }
        a = post(&h, "/v1/echo", "application/json", KILN_STR("y"));
        CHECK_STR(kiln_buf_str(&a->body), "hy");
        close_server(&h);
        open_server(&h, h.address + strlen("http://"));
    }
    stop(&h);
}

TEST(client, a_server_that_is_not_there_is_named)
{
    struct kiln_client *client;
    struct kiln_answer answer;
    struct kiln_err err = {0};

    CHECK_OK(kiln_client_new(&(struct kiln_client_opts){.server = "unix:/nowhere/kiln.sock"},
                             &client, &err));
    kiln_answer_init(&answer);
    CHECK_EQ(kiln_client_call(client, &(struct kiln_call){.path = "/"}, &answer, &err),
             -ECONNREFUSED);
    CHECK(kiln_client_retryable(-ECONNREFUSED));
    CHECK_TEXT(err.where, "unix:/nowhere/kiln.sock");
    CHECK_TEXT(err.text, "connection refused (is the server running?)");
    kiln_answer_done(&answer);
    kiln_client_free(client);
}

TEST(client, a_peer_that_is_checked_and_trusted_is_called_as_any_other)
{
    struct kiln_client_opts opts = {.checks_peer = true};
    struct kiln_answer *a;
    struct kiln_err err = {0};
    struct house h;

    start(&h, true, NULL);
    kiln_client_free(h.client);
    opts.server = h.address;
    CHECK_OK(kiln_client_new(&opts, &h.client, &err));
    for (int i = 0; i < 2; i++) {
        a = grpc(&h, "/t.Test/Echo", KILN_STR("x"));
        CHECK_STR(kiln_buf_str(&a->body), "gx");
        a = post(&h, "/v1/echo", "application/json", KILN_STR("y"));
        CHECK_STR(kiln_buf_str(&a->body), "hy");
    }
    close_server(&h);
    CHECK_EQ(kiln_client_call(h.client, &(struct kiln_call){.path = "/"}, &h.answer, &err),
             -ECONNREFUSED);
    open_server(&h, h.address);
    a = post(&h, "/v1/echo", "application/json", KILN_STR("y"));
    CHECK_STR(kiln_buf_str(&a->body), "hy");
    stop(&h);
}

/* Calls a listener of another user, in a folder where every user may create files. */
static size_t call_squatter(bool checks_peer, bool grpc_call, int *ret_code, struct kiln_err *err)
{
    const struct kiln_call call = {.path = "/t.Test/Echo", .body = KILN_STR("secret")};
    char folder[] = "/tmp/kiln-client-XXXXXX", path[64], address[80];
    struct kiln_client *client;
    struct kiln_answer answer;
    struct squatter squatter;
    size_t bytes;

    CHECK(mkdtemp(folder));
    CHECK_OK(chmod(folder, 01777));
    snprintf(path, sizeof(path), "%s/s", folder);
    snprintf(address, sizeof(address), "unix:%s", path);
    squatter_start(&squatter, path);
    CHECK_OK(kiln_client_new(&(struct kiln_client_opts){.server = address,
                                                        .checks_peer = checks_peer,
                                                        .timeout_ms = checks_peer ? 0 : 200},
                             &client, err));
    kiln_answer_init(&answer);
    *ret_code = grpc_call ? kiln_client_grpc(client, &call, &answer, err)
                          : kiln_client_call(client, &call, &answer, err);
    kiln_answer_done(&answer);
    kiln_client_free(client);
    bytes = squatter_stop(&squatter);
    unlink(path);
    rmdir(folder);
    return bytes;
}

TEST(client, a_peer_that_is_not_trusted_gets_no_byte)
{
    int code = 0;

    if (geteuid() != 0) {
        SKIP("only root can be somebody else");
        return;
    }
    for (int grpc_call = 0; grpc_call < 2; grpc_call++) {
        struct kiln_err unchecked = {0}, err = {0};

        CHECK(call_squatter(false, grpc_call, &code, &unchecked) > 0);
        CHECK_EQ(code, -ETIMEDOUT);
        CHECK_EQ(call_squatter(true, grpc_call, &code, &err), 0);
        CHECK_EQ(code, -EACCES);
        CHECK(strstr(err.text, "user 65534 listens here"));
    }
}

TEST(client, an_address_or_a_token_that_cannot_be_is_refused)
{
    static const struct kiln_client_opts cases[] = {{.server = "ftp://x"},
                                                    {.server = "http://"},
                                                    {.server = "unix:kiln.sock"},
                                                    {.server = "http://x", .token = "a\r\nb: c"},
                                                    {.server = "http://x", .tenant = "a\nb"}};

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct kiln_client *client = NULL;
        struct kiln_err err = {0};

        CHECK_EQ(kiln_client_new(&cases[i], &client, &err), -EINVAL);
        CHECK(!client && err.text[0]);
    }
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(client, an_answer_past_the_limit_is_an_error_that_is_not_tried_again)
{
    struct kiln_client *small;
    struct kiln_err err = {0};
    char text[2000] = {0};
    struct house h;

    start(&h, false, NULL);
    CHECK_OK(kiln_client_new(&(struct kiln_client_opts){.server = h.address, .answer_max = 1000},
                             &small, &err));
    CHECK_EQ(kiln_client_call(small,
                              &(struct kiln_call){.path = "/v1/echo",
                                                  .content_type = "application/x-protobuf",
                                                  .body = {text, sizeof(text)}},
                              &h.answer, &err),
             KILN_E_LIMIT);
    CHECK(!kiln_client_retryable(KILN_E_LIMIT));
    kiln_client_free(small);
    stop(&h);
}

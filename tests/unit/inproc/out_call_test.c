/* SPDX-License-Identifier: Apache-2.0 */
/* Calls over real sockets: to a server that says whatever a test wants, and to our own over gRPC.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/gzip.h"
#include "base/mem.h"
#include "base/socket.h"
#include "inproc/out/call.h"
#include "net/rpc.h"
#include "test.h"

#define HTTP_OK "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

/* ---- a server that says what it is told ---- */

struct script {
    int fd;
    char address[64];
    const char *const *answers; /* one a request; NULL ends; "" closes without a word */
    bool one_by_one;            /* a connection for each */
    char heard[8192];           /* all requests */
    size_t n_heard;
    pthread_t thread;
};

/* Reads until the body that the head announces is there. */
static bool hear(struct script *s, int fd)
{
    size_t from = s->n_heard;

    for (;;) {
        const char *end = memmem(s->heard + from, s->n_heard - from, "\r\n\r\n", 4);
        const char *length = memmem(s->heard + from, s->n_heard - from, "Content-Length: ", 16);
        ssize_t n;

        if (end && length &&
            s->n_heard - (size_t)(end + 4 - s->heard) >= strtoul(length + 16, NULL, 10))
            return true;
        n = recv(fd, s->heard + s->n_heard, sizeof(s->heard) - s->n_heard - 1, 0);
        if (n <= 0)
            return false;
        s->n_heard += (size_t)n;
    }
}

static void *serve(void *arg)
{
    struct script *s = arg;
    int fd = -1;

    for (uint32_t i = 0; s->answers[i]; i++) {
        if (fd < 0)
            fd = accept(s->fd, NULL, NULL);
        if (!hear(s, fd)) { /* hung up: the same answer for the next connection */
            close(fd);
            fd = accept(s->fd, NULL, NULL);
            CHECK(hear(s, fd));
        }
        if (s->answers[i][0])
            CHECK(send(fd, s->answers[i], strlen(s->answers[i]), MSG_NOSIGNAL) > 0);
        if (s->one_by_one || !s->answers[i][0]) {
            close(fd);
            fd = -1;
        }
    }
    if (fd >= 0)
        close(fd);
    return NULL;
}

static void open_script(struct script *s, const char *const *answers, bool one_by_one)
{
    struct kiln_err err = {0};

    *s = (struct script){.answers = answers, .one_by_one = one_by_one};
    CHECK_OK(
        kiln_socket_listen(&(struct kiln_socket_opts){.address = "127.0.0.1:0"}, &s->fd, &err));
    CHECK_EQ(fcntl(s->fd, F_SETFL, 0), 0);
    snprintf(s->address, sizeof(s->address), "http://127.0.0.1:%u", kiln_socket_port(s->fd));
    CHECK_EQ(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void close_script(struct script *s)
{
    pthread_join(s->thread, NULL);
    close(s->fd);
}

static struct kiln_otlp_target target_of(const char *address)
{
    return (struct kiln_otlp_target){.protocol = KILN_OTLP_HTTP,
                                     .server = address,
                                     .path = "/v1development/profiles",
                                     .timeout_ms = 10000};
}

static struct kiln_in_deadline soon(uint64_t ms)
{
    return (struct kiln_in_deadline){.at_ns = kiln_clock_mono_ns() + ms * KILN_NS_PER_MS};
}

static int call(struct kiln_in_caller *caller, struct kiln_in_verdict *verdict)
{
    const struct kiln_in_deadline until = soon(10000);
    struct kiln_err err = {0};
    int r = kiln_in_call(caller, KILN_STR("body"), false, &until, verdict, &err);

    CHECK(r == 0 || err.text[0]);
    return r;
}

TEST(out_call, a_connection_is_used_again_and_headers_go_along)
{
    struct kiln_otlp_target target;
    struct kiln_in_caller caller;
    struct kiln_in_verdict verdict;
    struct script s;

    open_script(&s, (const char *const[]){HTTP_OK, HTTP_OK, NULL}, false);
    target = target_of(s.address);
    target.headers[0] = (struct kiln_header){KILN_STR("x-scope-orgid"), KILN_STR("shop")};
    target.n_headers = 1;
    kiln_in_caller_init(&caller, &target);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(call(&caller, &verdict));
        CHECK(verdict.taken);
    }
    CHECK_EQ(caller.calls, 2);
    kiln_in_caller_done(&caller);
    close_script(&s);
    CHECK(strstr(s.heard, "POST /v1development/profiles HTTP/1.1\r\n"));
    CHECK(strstr(s.heard, "x-scope-orgid: shop\r\n"));
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(out_call, answers_are_judged_by_the_rules_of_otlp)
{
    static const char *const answers[] = {
        "HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbusy\r\n0\r\n\r\n",
        "HTTP/1.1 400 No\r\nContent-Type: application/x-protobuf\r\nContent-Length: 5\r\n\r\n"
        "\x12\x03"
        "bad",
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 10\r\n\r\n"
        "\x0a\x08\x08\x02\x12\x04"
        "some",
        NULL};
    struct kiln_otlp_target target;
    struct kiln_in_caller caller;
    struct kiln_in_verdict verdict;
    struct script s;

    open_script(&s, answers, false);
    target = target_of(s.address);
    kiln_in_caller_init(&caller, &target);
    CHECK_OK(call(&caller, &verdict));
    CHECK(!verdict.taken && verdict.retryable && verdict.retry_after_ms == 7000);
    CHECK_OK(call(&caller, &verdict));
    CHECK(!verdict.taken && verdict.retryable && verdict.retry_after_ms == 0);
    CHECK_OK(call(&caller, &verdict));
    CHECK(!verdict.taken && !verdict.retryable);
    CHECK_TEXT(verdict.result.message, "bad");
    CHECK_OK(call(&caller, &verdict));
    CHECK(verdict.taken && verdict.result.rejected == 2);
    CHECK_TEXT(verdict.result.message, "some");
    kiln_in_caller_done(&caller);
    close_script(&s);
}

TEST(out_call, garbage_and_silence_are_errors_and_the_next_call_is_as_good_as_new)
{
    struct kiln_otlp_target target;
    struct kiln_in_caller caller;
    struct kiln_in_verdict verdict;
    struct script s;

    open_script(&s,
                (const char *const[]){"220 smtp ready\r\n\r\n", "", "HTTP/1.1 200 OK\r\nContent-Le",
                                      HTTP_OK, NULL},
                true);
    target = target_of(s.address);
    kiln_in_caller_init(&caller, &target);
    CHECK_EQ(call(&caller, &verdict), KILN_E_MALFORMED);
    CHECK(call(&caller, &verdict) < 0);
    CHECK(call(&caller, &verdict) < 0);
    CHECK_OK(call(&caller, &verdict));
    CHECK(verdict.taken);
    kiln_in_caller_done(&caller);
    close_script(&s);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(out_call, a_connection_that_was_closed_meanwhile_is_opened_anew)
{
    struct kiln_otlp_target target;
    struct kiln_in_caller caller;
    struct kiln_in_verdict verdict;
    struct script s;

    open_script(&s, (const char *const[]){HTTP_OK, HTTP_OK, HTTP_OK, NULL}, true);
    target = target_of(s.address);
    kiln_in_caller_init(&caller, &target);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(call(&caller, &verdict));
        CHECK(verdict.taken);
    }
    kiln_in_caller_done(&caller);
    close_script(&s);
}

TEST(out_call, who_never_answers_is_given_up_and_an_earlier_end_counts)
{
    struct kiln_otlp_target target;
    struct kiln_in_caller caller;
    struct kiln_in_verdict verdict;
    _Atomic uint64_t end = 0;
    struct kiln_in_deadline until = soon(20);
    struct kiln_err err = {0};
    char address[64];
    int fd;

    CHECK_OK(kiln_socket_listen(&(struct kiln_socket_opts){.address = "127.0.0.1:0"}, &fd, &err));
    snprintf(address, sizeof(address), "http://127.0.0.1:%u", kiln_socket_port(fd));
    target = target_of(address);
    kiln_in_caller_init(&caller, &target);
    CHECK_EQ(kiln_in_call(&caller, KILN_STR("x"), false, &until, &verdict, &err), -ETIMEDOUT);
    until = soon(3600 * 1000);
    until.end_ns = &end;
    atomic_store(&end, kiln_clock_mono_ns() + 1000000);
    err = (struct kiln_err){0};
    CHECK_EQ(kiln_in_call(&caller, KILN_STR("x"), false, &until, &verdict, &err), -ETIMEDOUT);
    close(fd);
    err = (struct kiln_err){0};
    until = soon(10000);
    CHECK_EQ(kiln_in_call(&caller, KILN_STR("x"), false, &until, &verdict, &err), -ECONNREFUSED);
    kiln_in_caller_done(&caller);
}

/* ---- gRPC, to our own server ---- */

static struct kiln_str wanted = {"a message", 9};

static void take(struct kiln_rpc *rpc)
{
    struct kiln_buf out;

    kiln_buf_init(&out, 1 << 22);
    CHECK_OK(kiln_decompress(rpc->compression, rpc->message, &out, NULL));
    CHECK_EQ(out.len, wanted.len);
    CHECK(memcmp(out.ptr, wanted.ptr, out.len) == 0);
    kiln_buf_done(&out);
    kiln_rpc_reply(rpc, KILN_STR("\x0a\x08\x08\x02\x12\x04some"));
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
                                                 .message = "50 % is wrong"});
}

struct house {
    struct kiln_server *server;
    struct kiln_router *router;
    struct kiln_otlp_target target;
    struct kiln_in_caller caller;
    char address[64];
};

static void open_house(struct house *h)
{
    static const struct {
        const char *path;
        void (*handler)(struct kiln_rpc *);
    } routes[] = {{"/t.Test/Take", take}, {"/t.Test/Busy", busy}, {"/t.Test/Bad", bad}};
    struct kiln_listen_opts listen = {.address = "127.0.0.1:0"};
    struct kiln_err err = {0};
    uint16_t port = 0;

    CHECK_OK(kiln_router_new(&h->router));
    for (size_t i = 0; i < 3; i++)
        CHECK_OK(kiln_rpc_add(h->router, &(struct kiln_rpc_route){.path = routes[i].path,
                                                                  .handler = routes[i].handler,
                                                                  .access = KILN_ACCESS_NONE,
                                                                  .body_max = 8 << 20}));
    kiln_router_fallback(h->router, kiln_rpc_unknown, NULL);
    listen.router = h->router;
    CHECK_OK(kiln_server_new(&(struct kiln_server_opts){.workers = 1}, &h->server));
    CHECK_OK(kiln_server_listen(h->server, &listen, &port, &err));
    CHECK_OK(kiln_server_start(h->server, &err));
    snprintf(h->address, sizeof(h->address), "http://127.0.0.1:%u", port);
    h->target = target_of(h->address);
    h->target.protocol = KILN_OTLP_GRPC;
    h->target.path = "/t.Test/Take";
    kiln_in_caller_init(&h->caller, &h->target);
}

static void close_house(struct house *h)
{
    kiln_in_caller_done(&h->caller);
    kiln_server_stop(h->server, 1000);
    kiln_server_free(h->server);
    kiln_router_free(h->router);
    CHECK_EQ(kiln_mem_live(), 0);
}

static struct kiln_in_verdict grpc(struct house *h, const char *path, struct kiln_str body,
                                   bool gzip)
{
    const struct kiln_in_deadline until = soon(30000);
    struct kiln_in_verdict verdict;
    struct kiln_err err = {0};

    h->target.path = path;
    if (kiln_in_call(&h->caller, body, gzip, &until, &verdict, &err) < 0)
        fail_msg("%s", err.text);
    return verdict;
}

TEST(out_call, grpc_takes_messages_plain_and_packed_small_and_large)
{
    size_t n = 3 << 20;
    char *large = malloc(n);
    struct kiln_in_verdict verdict;
    struct kiln_buf packed;
    struct house h;

    open_house(&h);
    verdict = grpc(&h, "/t.Test/Take", wanted, false);
    CHECK(verdict.taken && verdict.result.rejected == 2);
    CHECK_TEXT(verdict.result.message, "some");
    kiln_buf_init(&packed, 1 << 20);
    CHECK_OK(kiln_gzip(0, wanted, &packed));
    verdict = grpc(&h, "/t.Test/Take", kiln_buf_str(&packed), true);
    CHECK(verdict.taken);
    kiln_buf_done(&packed);
    for (size_t i = 0; i < n; i++)
        large[i] = (char)(i * 7919 >> 3);
    wanted = (struct kiln_str){large, n};
    verdict = grpc(&h, "/t.Test/Take", wanted, false);
    CHECK(verdict.taken);
    CHECK_EQ(h.caller.calls, 3);
    wanted = KILN_STR("a message");
    free(large);
    close_house(&h);
}

TEST(out_call, grpc_says_why_not_and_when_to_come_back)
{
    struct kiln_in_verdict verdict;
    struct house h;

    open_house(&h);
    verdict = grpc(&h, "/t.Test/Busy", wanted, false);
    CHECK(!verdict.taken && verdict.retryable && verdict.retry_after_ms == 3000);
    CHECK_TEXT(verdict.result.message, "too much at once");
    verdict = grpc(&h, "/t.Test/Bad", wanted, false);
    CHECK(!verdict.taken && !verdict.retryable && verdict.rpc_code == KILN_RPC_INVALID_ARGUMENT);
    CHECK_TEXT(verdict.result.message, "50 % is wrong");
    verdict = grpc(&h, "/t.Test/Nobody", wanted, false);
    CHECK(!verdict.taken && verdict.rpc_code == KILN_RPC_UNIMPLEMENTED);
    close_house(&h);
}

TEST(out_call, who_speaks_http1_where_grpc_is_meant_is_an_error)
{
    struct kiln_otlp_target target;
    struct kiln_in_caller caller;
    struct kiln_in_verdict verdict;
    const struct kiln_in_deadline until = soon(10000);
    struct kiln_err err = {0};
    struct script s;

    open_script(&s, (const char *const[]){"HTTP/1.1 400 Bad Request\r\n\r\n", NULL}, true);
    target = target_of(s.address);
    target.protocol = KILN_OTLP_GRPC;
    kiln_in_caller_init(&caller, &target);
    /* What the script waits for comes by other means: HTTP/2 has no such head. */
    CHECK(kiln_in_call(&caller, KILN_STR("\r\n\r\nContent-Length: 0\r\n\r\n"), false, &until,
                       &verdict, &err) < 0);
    kiln_in_caller_done(&caller);
    close_script(&s);
}

TEST(out_call, addresses_are_read_as_people_write_them)
{
    struct kiln_in_address address;

    CHECK_OK(kiln_in_address_parse("http://localhost:4318", &address, NULL));
    CHECK_TEXT(address.host, "localhost");
    CHECK_TEXT(address.port, "4318");
    CHECK_OK(kiln_in_address_parse("https://[::1]", &address, NULL));
    CHECK_TEXT(address.host, "::1");
    CHECK_TEXT(address.port, "443");
    CHECK(address.tls && !address.local);
    CHECK_OK(kiln_in_address_parse("unix:/run/kiln/kiln.sock", &address, NULL));
    CHECK_TEXT(address.host, "/run/kiln/kiln.sock");
    CHECK(address.local);
    CHECK_EQ(kiln_in_address_parse("http://[::1", &address, NULL), -EINVAL);
    CHECK_EQ(kiln_in_address_parse("http://", &address, NULL), -EINVAL);
    CHECK_EQ(kiln_in_address_parse("localhost", &address, NULL), -EINVAL);
    CHECK_EQ(kiln_in_address_parse("http://h:123456789", &address, NULL), -EINVAL);
}

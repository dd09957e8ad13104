/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "folder.h"
#include "identity.h"
#include "net.h"
#include "net/h2client_int.h"
#include "net/rpc.h"
#include "test.h"

#define PATIENCE_NS (60 * KILN_NS_PER_S) /* which no working test needs */

struct fixture {
    struct net_fixture net;
    struct kiln_h2client *client;
    struct kiln_h2client_opts opts;
    char server[64];
    _Atomic int ended, good; /* good: the answer was what was sent */
    int code, rpc_code;
    char text[256];
    struct kiln_str want;
};

static char peers[4][64];
static _Atomic uint32_t n_calls;
static struct kiln_rpc *held;
static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;

/* Gives the message back, and notes whom it came from. */
static void echo(struct kiln_rpc *rpc)
{
    uint32_t n = atomic_fetch_add(&n_calls, 1);

    if (n < 4)
        snprintf(peers[n], sizeof(peers[n]), "%s", rpc->request->peer.address);
    kiln_rpc_reply(rpc, rpc->message);
}

static void refuse(struct kiln_rpc *rpc)
{
    kiln_rpc_fail(rpc, &(struct kiln_rpc_status){
                           .code = KILN_RPC_UNAVAILABLE, .message = "später", .retry_after_s = 7});
}

static void hold(struct kiln_rpc *rpc)
{
    pthread_mutex_lock(&held_lock);
    held = rpc;
    pthread_mutex_unlock(&held_lock);
}

static void release(void)
{
    pthread_mutex_lock(&held_lock);
    if (held)
        kiln_rpc_reply(held, KILN_STR(""));
    held = NULL;
    pthread_mutex_unlock(&held_lock);
}

static void add_routes(struct fixture *f)
{
    static const struct {
        const char *path;
        void (*handler)(struct kiln_rpc *rpc);
    } routes[] = {{"/t.T/Echo", echo}, {"/t.T/Refuse", refuse}, {"/t.T/Hold", hold}};

    CHECK_OK(kiln_router_new(&f->net.router));
    for (size_t i = 0; i < KILN_ARRAY_LEN(routes); i++)
        CHECK_OK(
            kiln_rpc_add(f->net.router, &(struct kiln_rpc_route){.path = routes[i].path,
                                                                 .handler = routes[i].handler}));
    n_calls = 0;
}

static void open_client(struct fixture *f, const char *scheme)
{
    struct kiln_err err = {0};

    snprintf(f->server, sizeof(f->server), "%s127.0.0.1:%u", scheme, f->net.port);
    f->opts.server = f->server;
    if (kiln_h2client_new(&f->opts, &f->client, &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
}

static void start(struct fixture *f)
{
    add_routes(f);
    net_start(&f->net, NULL);
    open_client(f, "http://");
}

static void stop(struct fixture *f)
{
    kiln_h2client_free(f->client);
    net_stop(&f->net);
    CHECK_EQ(kiln_mem_live(), 0);
}

static void ended(void *context, int code, const struct kiln_answer *answer,
                  const struct kiln_err *err)
{
    struct fixture *f = context;

    f->code = code;
    f->rpc_code = code ? -1 : answer->rpc_code;
    snprintf(f->text, sizeof(f->text), "%s", code ? err->text : answer->message);
    if (code == 0 && !answer->rpc_code && kiln_str_eq(kiln_buf_str(&answer->body), f->want))
        atomic_fetch_add(&f->good, 1);
    atomic_fetch_add(&f->ended, 1);
}

static void wait_ended(struct fixture *f, int n)
{
    uint64_t patience = kiln_clock_mono_ns() + PATIENCE_NS;

    while (f->ended < n && kiln_clock_mono_ns() < patience)
        sched_yield();
    CHECK_EQ(f->ended, n);
}

TEST(h2client, makes_many_calls_at_once_over_one_connection)
{
    struct fixture f = {.opts.timeout_ms = PATIENCE_NS / KILN_NS_PER_MS};
    size_t n = 100000; /* many frames, and more than a window */
    char *text = malloc(n);
    struct kiln_call call = {.path = "/t.T/Echo"};

    for (size_t i = 0; i < n; i++)
        text[i] = (char)(i * 7 % 251);
    start(&f);
    call.body = f.want = (struct kiln_str){text, n}; /* of all: it is read until they have ended */
    for (int i = 1; i <= 120; i++)
        kiln_h2client_start(f.client, &call, ended, &f);
    wait_ended(&f, 120);
    CHECK_EQ(f.good, 120);
    for (int i = 1; i < 4; i++)
        CHECK_TEXT(peers[i], peers[0]);
    call.body = f.want = KILN_STR("");
    kiln_h2client_start(f.client, &call, ended, &f);
    wait_ended(&f, 121);
    CHECK_EQ(f.good, 121);
    stop(&f);
    free(text);
}

TEST(h2client, says_what_the_server_says)
{
    struct fixture f = {0};
    struct kiln_call call = {.path = "/t.T/Refuse", .body = KILN_STR("x")};

    start(&f);
    kiln_h2client_start(f.client, &call, ended, &f);
    wait_ended(&f, 1);
    CHECK_EQ(f.code, 0);
    CHECK_EQ(f.rpc_code, KILN_RPC_UNAVAILABLE);
    CHECK_TEXT(f.text, "später");
    stop(&f);
}

TEST(h2client, does_not_wait_longer_than_it_may)
{
    struct fixture f = {.opts.timeout_ms = 50};
    struct kiln_call call = {.path = "/t.T/Hold", .body = KILN_STR("x")};

    start(&f);
    kiln_h2client_start(f.client, &call, ended, &f);
    wait_ended(&f, 1);
    CHECK_EQ(f.code, -ETIMEDOUT);
    CHECK_TEXT(f.text, "no answer within 0.05 s");
    release();
    stop(&f);
}

TEST(h2client, refuses_answers_that_are_too_large)
{
    struct fixture f = {.opts.answer_max = 1000};
    char text[4000] = "";
    struct kiln_call call = {.path = "/t.T/Echo", .body = {text, sizeof(text)}};

    start(&f);
    kiln_h2client_start(f.client, &call, ended, &f);
    wait_ended(&f, 1);
    CHECK_EQ(f.code, KILN_E_LIMIT);
    stop(&f);
}

TEST(h2client, gives_up_what_is_cancelled)
{
    struct fixture f = {0};
    struct kiln_call call = {.path = "/t.T/Hold", .body = KILN_STR("x")};

    start(&f);
    kiln_h2client_start(f.client, &call, ended, &f);
    kiln_h2client_cancel(f.client);
    wait_ended(&f, 1);
    CHECK_EQ(f.code, -ECANCELED);
    kiln_h2client_start(f.client, &call, ended, &f);
    wait_ended(&f, 2);
    CHECK_EQ(f.code, -ECANCELED);
    release();
    stop(&f);
}

/* A socket that takes connections and says nothing, before a client. */
static int start_mute(struct fixture *f)
{
    int fd = net_listen(&f->net.port);

    open_client(f, "http://");
    return fd;
}

/* Long before the call's own time is up. */
TEST(h2client, leaves_a_server_that_answers_no_ping)
{
    struct fixture f = {.opts = {.timeout_ms = 600000, .ping_after_ms = 20, .ping_timeout_ms = 20}};
    struct kiln_call call = {.path = "/t.T/Echo", .body = KILN_STR("x")};
    int fd = start_mute(&f);

    kiln_h2client_start(f.client, &call, ended, &f);
    wait_ended(&f, 1);
    CHECK_EQ(f.code, -ETIMEDOUT);
    kiln_h2client_free(f.client);
    close(fd);
    CHECK_EQ(kiln_mem_live(), 0);
}

static uint64_t received(struct fixture *f)
{
    uint64_t ns;

    pthread_mutex_lock(&f->client->lock);
    ns = f->client->received_ns;
    pthread_mutex_unlock(&f->client->lock);
    return ns;
}

/* Nobody else makes the server say something. */
TEST(h2client, asks_a_server_that_is_silent_and_stays_with_it)
{
    struct fixture f = {.opts = {.ping_after_ms = 5, .ping_timeout_ms = 60000, .pings_idle = true},
                        .want = KILN_STR("x")};
    struct kiln_call call = {.path = "/t.T/Echo", .body = KILN_STR("x")};
    uint64_t begin = kiln_clock_mono_ns();

    start(&f);
    kiln_h2client_start(f.client, &call, ended, &f);
    wait_ended(&f, 1);
    for (int answers = 0; answers < 3; answers++) {
        uint64_t last = received(&f);

        while (received(&f) == last && kiln_clock_mono_ns() - begin < PATIENCE_NS)
            sched_yield();
        CHECK(received(&f) != last);
    }
    kiln_h2client_start(f.client, &call, ended, &f);
    wait_ended(&f, 2);
    CHECK_EQ(f.good, 2);
    CHECK_TEXT(peers[0], peers[1]);
    stop(&f);
}

/* One who has vanished never says so: the next call does not go the same way. */
TEST(h2client, leaves_a_connection_on_which_nothing_comes)
{
    struct fixture f = {.opts.timeout_ms = NET_BEGIN_MS};
    struct kiln_call call = {.path = "/t.T/Echo", .body = KILN_STR("x")};
    int fd = start_mute(&f), other;

    for (int i = 1; i <= 2; i++) {
        kiln_h2client_start(f.client, &call, ended, &f);
        wait_ended(&f, i);
        CHECK_EQ(f.code, -ETIMEDOUT);
        CHECK_TEXT(f.text, "no answer within 0.5 s");
        other = accept(fd, NULL, NULL);
        CHECK(other >= 0);
        close(other);
    }
    kiln_h2client_free(f.client);
    close(fd);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(h2client, connects_again_when_there_are_no_more_streams)
{
    struct fixture f = {.want = KILN_STR("x")};
    struct kiln_call call = {.path = "/t.T/Echo", .body = KILN_STR("x")};

    start(&f);
    for (int i = 1; i <= 3; i++) {
        kiln_h2client_start(f.client, &call, ended, &f);
        wait_ended(&f, i);
        CHECK_EQ(f.good, i);
        pthread_mutex_lock(&f.client->lock);
        if (i == 1)
            CHECK_OK(nghttp2_session_set_next_stream_id(f.client->session, INT32_MAX));
        pthread_mutex_unlock(&f.client->lock);
    }
    CHECK_TEXT(peers[1], peers[0]);
    CHECK(strcmp(peers[2], peers[0]) != 0);
    stop(&f);
}

/* A server that ends tells so, and the one that takes its place is found. */
TEST(h2client, connects_again_after_the_server_has_gone)
{
    struct fixture f = {.want = KILN_STR("x")};
    struct kiln_call call = {.path = "/t.T/Echo", .body = KILN_STR("x")};
    struct kiln_err err = {0};
    char address[64];

    start(&f);
    kiln_h2client_start(f.client, &call, ended, &f);
    wait_ended(&f, 1);
    kiln_server_stop(f.net.server, 0);
    kiln_server_free(f.net.server);
    CHECK_OK(kiln_server_new(NULL, &f.net.server));
    snprintf(address, sizeof(address), "127.0.0.1:%u", f.net.port);
    CHECK_OK(kiln_server_listen(
        f.net.server, &(struct kiln_listen_opts){.address = address, .router = f.net.router},
        &f.net.port, &err));
    CHECK_OK(kiln_server_start(f.net.server, &err));
    for (int i = 2; f.good < 2 && i < 10; i++) { /* the first may find out that it is gone */
        kiln_h2client_start(f.client, &call, ended, &f);
        wait_ended(&f, i);
        CHECK(f.code == 0 || f.code == -ECONNRESET || f.code == -EPIPE);
    }
    CHECK_EQ(f.good, 2);
    stop(&f);
}

TEST(h2client, says_where_nobody_listens)
{
    struct fixture f = {0};
    struct kiln_call call = {.path = "/t.T/Echo", .body = KILN_STR("x")};

    start(&f);
    kiln_server_stop(f.net.server, 0);
    kiln_h2client_start(f.client, &call, ended, &f);
    wait_ended(&f, 1);
    CHECK_EQ(f.code, -ECONNREFUSED);
    stop(&f);
}

/* ---- TLS ---- */

TEST(h2client, speaks_tls_with_certificates_on_both_sides)
{
    struct fixture f = {.want = KILN_STR("x")};
    struct identity ca = make_identity("authority", NULL), me = make_identity("kiln.test", &ca);
    struct identity other = make_identity("stranger", NULL);
    struct kiln_call call = {.path = "/t.T/Echo", .body = KILN_STR("x")};
    char folder[FOLDER_NAME], ca_file[128], cert[128], key[128];
    struct kiln_err err = {0};

    folder_make(folder);
    snprintf(ca_file, sizeof(ca_file), "%s/ca.pem", folder);
    snprintf(cert, sizeof(cert), "%s/cert.pem", folder);
    snprintf(key, sizeof(key), "%s/key.pem", folder);
    save_identity(&ca, ca_file, NULL);
    save_identity(&me, cert, key);
    add_routes(&f);
    CHECK_OK(kiln_server_new(NULL, &f.net.server));
    CHECK_OK(kiln_server_listen(
        f.net.server,
        &(struct kiln_listen_opts){
            .address = "127.0.0.1:0",
            .router = f.net.router,
            .tls = {.cert_file = cert, .key_file = key, .client_ca_file = ca_file}},
        &f.net.port, &err));
    CHECK_OK(kiln_server_start(f.net.server, &err));

    f.opts = (struct kiln_h2client_opts){.ca_file = ca_file,
                                         .cert_file = cert,
                                         .key_file = key,
                                         .server_name = "kiln.test",
                                         .min_version = KILN_TLS_1_3};
    open_client(&f, "https://");
    kiln_h2client_start(f.client, &call, ended, &f);
    wait_ended(&f, 1);
    CHECK_TEXT(f.text, "");
    CHECK_EQ(f.good, 1);
    kiln_h2client_free(f.client);

    open_client(&f, "https://"); /* which reads the files, but not for good */
    save_identity(&other, ca_file, NULL);
    kiln_h2client_start(f.client, &call, ended, &f);
    wait_ended(&f, 2);
    CHECK_EQ(f.code, -EPROTO);
    save_identity(&ca, ca_file, NULL);
    kiln_h2client_start(f.client, &call, ended, &f);
    wait_ended(&f, 3);
    CHECK_EQ(f.good, 2);
    kiln_h2client_free(f.client);

    f.opts.server_name = "other.test"; /* the certificate is not for it */
    open_client(&f, "https://");
    kiln_h2client_start(f.client, &call, ended, &f);
    wait_ended(&f, 4);
    CHECK_EQ(f.code, -EPROTO);
    CHECK_TEXT(f.text, "TLS: hostname mismatch");
    kiln_h2client_free(f.client);

    f.opts.server_name = "kiln.test";
    f.opts.cert_file = f.opts.key_file = NULL; /* which the server asks for */
    open_client(&f, "https://");
    kiln_h2client_start(f.client, &call, ended, &f);
    wait_ended(&f, 5);
    CHECK(f.code < 0);
    CHECK_TEXT(f.text, "TLS: tlsv13 alert certificate required");
    stop(&f);
    free_identity(&other);
    free_identity(&me);
    free_identity(&ca);
    folder_remove(folder);
}

TEST(h2client, addresses_and_files_that_cannot_be_meant_are_errors)
{
    static const char *const bad[] = {"http://", "https://host:0", "http://host:99999",
                                      "unix:", "http://[::1"};
    struct kiln_h2client *client;

    for (size_t i = 0; i < KILN_ARRAY_LEN(bad); i++)
        CHECK_EQ(kiln_h2client_new(&(struct kiln_h2client_opts){.server = bad[i]}, &client, NULL),
                 -EINVAL);
    CHECK_EQ(kiln_h2client_new(
                 &(struct kiln_h2client_opts){.server = "https://host", .ca_file = "/nowhere"},
                 &client, NULL),
             -EPROTO);
    CHECK_EQ(kiln_mem_live(), 0);
}

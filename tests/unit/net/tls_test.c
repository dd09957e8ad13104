/* SPDX-License-Identifier: Apache-2.0 */
/* TLS, with certificates that are made on the spot. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "h2client.h"
#include "identity.h"
#include "net.h"
#include "test.h"

#define HEAD(line) line " HTTP/1.1\r\nhost: x\r\n"
#define LAST       "connection: close\r\n\r\n"

/* A folder with cert.pem and key.pem (and ca.pem), and a server that uses them. */
struct fixture {
    struct net_fixture f;
    char folder[40], cert[64], key[64], ca[64];
    uint16_t port;
};

static void write_identity(const struct fixture *x, const struct identity *identity)
{
    char next[80];
    FILE *file = fopen(x->key, "w");

    CHECK(PEM_write_PrivateKey(file, identity->key, NULL, NULL, 0, NULL, NULL));
    fclose(file);
    snprintf(next, sizeof(next), "%s.next", x->cert);
    file = fopen(next, "w");
    CHECK(PEM_write_X509(file, identity->cert));
    fclose(file);
    CHECK_OK(rename(next, x->cert));
}

static _Atomic uint32_t n_stay, n_left;

static void who(struct kiln_request *request)
{
    kiln_request_reply_text(request, 200, "%s", request->peer.subject);
}

/* Held until its client is gone. */
static void stay(struct kiln_request *request)
{
    const _Atomic bool *gone = kiln_request_gone(request);

    atomic_fetch_add(&n_stay, 1);
    while (!atomic_load(gone))
        sched_yield();
    atomic_fetch_add(&n_left, 1);
    kiln_request_reply_text(request, 200, "gone");
}

static void setup_logged(struct fixture *x, const struct identity *identity,
                         const struct identity *ca, struct kiln_log *log)
{
    struct kiln_listen_opts opts = {.address = "127.0.0.1:0"};
    FILE *file;

    *x = (struct fixture){.folder = "/tmp/kiln-tls-XXXXXX"};
    CHECK(mkdtemp(x->folder));
    snprintf(x->cert, sizeof(x->cert), "%s/cert.pem", x->folder);
    snprintf(x->key, sizeof(x->key), "%s/key.pem", x->folder);
    snprintf(x->ca, sizeof(x->ca), "%s/ca.pem", x->folder);
    write_identity(x, identity);
    if (ca) {
        file = fopen(x->ca, "w");
        PEM_write_X509(file, ca->cert);
        fclose(file);
    }
    net_routes(&x->f);
    CHECK_OK(kiln_router_add(x->f.router, &(struct kiln_route){.path = "/who", .handler = who}));
    CHECK_OK(kiln_router_add(
        x->f.router,
        &(struct kiln_route){.path = "/stay", .handler = stay, .lane = KILN_LANE_LONG}));
    CHECK_OK(kiln_server_new(&(struct kiln_server_opts){.log = log}, &x->f.server));
    opts.router = x->f.router;
    opts.tls = (struct kiln_tls_opts){.cert_file = x->cert,
                                      .key_file = x->key,
                                      .client_ca_file = ca ? x->ca : NULL,
                                      .reload_interval_ms = 5};
    CHECK_OK(kiln_server_listen(x->f.server, &opts, &x->port, NULL));
    CHECK_OK(kiln_server_start(x->f.server, NULL));
}

static void setup(struct fixture *x, const struct identity *identity, const struct identity *ca)
{
    setup_logged(x, identity, ca, NULL);
}

static void remove_files(const struct fixture *x)
{
    unlink(x->cert);
    unlink(x->key);
    unlink(x->ca);
    rmdir(x->folder);
}

static void teardown(struct fixture *x)
{
    net_stop(&x->f);
    remove_files(x);
    CHECK_EQ(kiln_mem_live(), 0);
}

/* ---- a client ---- */

struct tls_client {
    int fd;
    SSL_CTX *ctx;
    SSL *ssl;
    bool shaken;
};

static struct tls_client call(uint16_t port, const struct identity *me, bool h2, int max_version)
{
    struct tls_client c = {.fd = net_connect(port), .ctx = SSL_CTX_new(TLS_client_method())};

    if (me) {
        SSL_CTX_use_certificate(c.ctx, me->cert);
        SSL_CTX_use_PrivateKey(c.ctx, me->key);
    }
    SSL_CTX_set_max_proto_version(c.ctx, max_version);
    SSL_CTX_set_security_level(c.ctx, 0);
    c.ssl = SSL_new(c.ctx);
    if (h2)
        SSL_set_alpn_protos(c.ssl, (const unsigned char *)"\x02h2\x08http/1.1", 12);
    SSL_set_fd(c.ssl, c.fd);
    c.shaken = SSL_connect(c.ssl) == 1;
    return c;
}

static void hang_up(struct tls_client *c)
{
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    close(c->fd);
    ERR_clear_error();
}

/* Sends and reads until the end. */
static const char *talk(struct tls_client *c, const char *request)
{
    static char answer[128 << 10];
    size_t len = 0;
    int n;

    SSL_write(c->ssl, request, (int)strlen(request));
    while ((n = SSL_read(c->ssl, answer + len, (int)(sizeof(answer) - 1 - len))) > 0)
        len += (size_t)n;
    answer[len] = 0;
    return answer;
}

static void server_name(struct tls_client *c, char *out, size_t size)
{
    X509 *cert = SSL_get1_peer_certificate(c->ssl);

    X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, out, (int)size);
    X509_free(cert);
}

TEST(tls, serves_http1_and_http2_by_what_is_agreed_on)
{
    struct identity id = make_identity("localhost", NULL);
    struct h2_client *h2 = calloc(1, sizeof(*h2));
    struct h2_stream *s;
    struct fixture x;
    struct tls_client c;

    setup(&x, &id, NULL);
    c = call(x.port, NULL, false, 0);
    CHECK(c.shaken);
    CHECK_TEXT(net_body(talk(&c, HEAD("GET /hello") LAST)), "hello\n");
    hang_up(&c);
    c = call(x.port, NULL, true, 0);
    h2_open(h2, c.fd, c.ssl);
    s = h2_ask(h2, "GET", "/big", NULL, NULL);
    h2_wait(h2, s);
    CHECK_EQ(s->status, 200);
    CHECK_EQ(s->body.len, 64000);
    h2_done(h2);
    hang_up(&c);
    free(h2);
    teardown(&x);
    free_identity(&id);
}

TEST(tls, large_bodies_and_pipelines_pass)
{
    struct identity id = make_identity("localhost", NULL);
    struct kiln_buf all;
    struct fixture x;
    struct tls_client c;
    const char *answer;
    int n = 0;

    setup(&x, &id, NULL);
    c = call(x.port, NULL, false, TLS1_2_VERSION);
    CHECK(c.shaken);
    kiln_buf_init(&all, 4 << 20);
    for (int i = 0; i < 200; i++)
        kiln_buf_puts(&all, HEAD("GET /hello") "\r\n");
    kiln_buf_puts(&all, HEAD("POST /echo") "content-length: 100000\r\n" LAST);
    CHECK(kiln_buf_reserve(&all, 100001));
    memset(all.ptr + all.len, 'e', 100000);
    all.len += 100000;
    kiln_buf_putc(&all, 0);
    answer = talk(&c, all.ptr);
    for (const char *at = answer; (at = strstr(at, "hello\n")); at++)
        n++;
    CHECK_EQ(n, 200);
    CHECK_EQ(answer[strlen(answer) - 1], 'e');
    kiln_buf_done(&all);
    hang_up(&c);
    teardown(&x);
    free_identity(&id);
}

TEST(tls, old_versions_are_refused)
{
    struct identity id = make_identity("localhost", NULL);
    struct fixture x;
    struct tls_client c;

    setup(&x, &id, NULL);
    c = call(x.port, NULL, false, TLS1_1_VERSION);
    CHECK(!c.shaken);
    hang_up(&c);
    c = call(x.port, NULL, false, TLS1_2_VERSION);
    CHECK(c.shaken);
    hang_up(&c);
    teardown(&x);
    free_identity(&id);
}

TEST(tls, clients_show_a_certificate_where_they_must)
{
    struct identity ca = make_identity("authority", NULL);
    struct identity server = make_identity("localhost", &ca);
    struct identity friend = make_identity("agent-7", &ca);
    struct identity stranger = make_identity("stranger", NULL);
    struct fixture x;
    struct tls_client c;

    setup(&x, &server, &ca);
    c = call(x.port, &friend, false, 0);
    CHECK_TEXT(net_body(talk(&c, HEAD("GET /who") LAST)), "agent-7\n");
    hang_up(&c);
    c = call(x.port, &stranger, false, 0);
    CHECK_TEXT(talk(&c, HEAD("GET /who") LAST), "");
    hang_up(&c);
    c = call(x.port, NULL, false, 0);
    CHECK_TEXT(talk(&c, HEAD("GET /who") LAST), "");
    hang_up(&c);
    teardown(&x);
    free_identity(&ca);
    free_identity(&server);
    free_identity(&friend);
    free_identity(&stranger);
}

TEST(tls, a_new_certificate_is_taken_up_and_old_connections_live_on)
{
    struct identity old = make_identity("old", NULL);
    struct identity new = make_identity("new", NULL);
    char name[64] = "";
    struct fixture x;
    struct tls_client first, c;

    setup(&x, &old, NULL);
    first = call(x.port, NULL, false, 0);
    server_name(&first, name, sizeof(name));
    CHECK_TEXT(name, "old");
    write_identity(&x, &new);
    while (strcmp(name, "new") != 0) {
        c = call(x.port, NULL, false, 0);
        CHECK(c.shaken);
        server_name(&c, name, sizeof(name));
        hang_up(&c);
    }
    CHECK_TEXT(net_body(talk(&first, HEAD("GET /hello") LAST)), "hello\n");
    hang_up(&first);
    teardown(&x);
    free_identity(&old);
    free_identity(&new);
}

TEST(tls, a_bad_new_certificate_changes_nothing)
{
    struct identity old = make_identity("old", NULL);
    char name[64] = "";
    struct kiln_log *log;
    struct fixture x;
    struct tls_client c;
    FILE *file;
    int fds[2];
    char line[512] = "";

    CHECK_OK(pipe(fds));
    CHECK_OK(kiln_log_new(fds[1], KILN_LOG_INFO, KILN_LOG_LOGFMT, &log));
    setup_logged(&x, &old, NULL, log);
    file = fopen(x.cert, "w");
    fprintf(file, "no certificate\n");
    fclose(file);
    CHECK(read(fds[0], line, sizeof(line) - 1) > 0);
    CHECK(strstr(line, "certificate not reloaded"));
    CHECK(strstr(line, x.cert));
    c = call(x.port, NULL, false, 0);
    server_name(&c, name, sizeof(name));
    CHECK_TEXT(name, "old");
    hang_up(&c);
    net_stop(&x.f);
    kiln_log_free(log);
    remove_files(&x);
    close(fds[0]);
    close(fds[1]);
    free_identity(&old);
}

TEST(tls, files_that_do_not_fit_are_named)
{
    struct identity a = make_identity("a", NULL), b = make_identity("b", NULL);
    struct kiln_listen_opts opts = {.address = "127.0.0.1:0"};
    struct kiln_err err = {0};
    struct fixture x;
    FILE *file;

    setup(&x, &a, NULL);
    file = fopen(x.key, "w");
    PEM_write_PrivateKey(file, b.key, NULL, NULL, 0, NULL, NULL);
    fclose(file);
    opts.router = x.f.router;
    opts.tls = (struct kiln_tls_opts){.cert_file = x.cert, .key_file = x.key};
    CHECK(kiln_server_listen(x.f.server, &opts, NULL, &err) < 0);
    CHECK_TEXT(err.where, x.key);
    err = (struct kiln_err){0};
    opts.tls.cert_file = "/nowhere/cert.pem";
    CHECK(kiln_server_listen(x.f.server, &opts, NULL, &err) < 0);
    CHECK_TEXT(err.where, "/nowhere/cert.pem");
    teardown(&x);
    free_identity(&a);
    free_identity(&b);
}

TEST(tls, who_speaks_plainly_is_not_understood)
{
    struct identity id = make_identity("localhost", NULL);
    struct fixture x;
    int fd;

    setup(&x, &id, NULL);
    fd = net_connect(x.port);
    net_send(fd, HEAD("GET /hello") LAST);
    CHECK(!strstr(net_read_all(fd), "hello"));
    close(fd);
    teardown(&x);
    free_identity(&id);
}

TEST(tls, a_long_request_sees_that_its_client_is_gone_with_or_without_a_word)
{
    struct identity id = make_identity("localhost", NULL);
    struct fixture x;

    setup(&x, &id, NULL);
    atomic_store(&n_stay, 0);
    atomic_store(&n_left, 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct tls_client c = call(x.port, NULL, false, 0);

        CHECK(c.shaken);
        SSL_write(c.ssl, HEAD("GET /stay") "\r\n", sizeof(HEAD("GET /stay") "\r\n") - 1);
        while (atomic_load(&n_stay) == i)
            sched_yield();
        if (i == 1)
            SSL_shutdown(c.ssl);
        hang_up(&c);
        while (atomic_load(&n_left) == i)
            sched_yield();
    }
    teardown(&x);
    free_identity(&id);
}

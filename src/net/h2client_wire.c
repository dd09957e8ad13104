/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "net/h2client_int.h"

enum { TLS_PIECE = 16 << 10 };

/* ---- addresses ---- */

static int bad_address(const char *server, struct kiln_err *err)
{
    return kiln_err_set(err, -EINVAL, server, "no address of a server (say http://127.0.0.1:4317)");
}

/* "host", "host:port", "[::1]:port" */
static bool split_host(struct kiln_str text, struct kiln_str *host, struct kiln_str *port)
{
    size_t n = 0;

    if (text.len && text.ptr[0] == '[') {
        text.ptr++;
        text.len--;
        *host = kiln_str_cut(&text, ']');
        if (!text.ptr || (text.len && text.ptr[0] != ':'))
            return false;
        *port = text.len ? (struct kiln_str){text.ptr + 1, text.len - 1} : KILN_STR_NONE;
        return host->len;
    }
    while (n < text.len && text.ptr[n] != ':')
        n++;
    *host = (struct kiln_str){text.ptr, n};
    *port = n < text.len ? (struct kiln_str){text.ptr + n + 1, text.len - n - 1} : KILN_STR_NONE;
    return host->len;
}

int kiln_h2address_parse(const char *server, struct kiln_h2address *ret, struct kiln_err *err)
{
    struct kiln_str text = kiln_str_of(server), host, port;
    uint64_t number;

    *ret = (struct kiln_h2address){.local = strncmp(server, "unix:", 5) == 0,
                                   .tls = strncmp(server, "https://", 8) == 0};
    if (ret->local) {
        if (text.len <= 5 || text.len - 5 >= sizeof(((struct sockaddr_un *)0)->sun_path))
            return bad_address(server, err);
        snprintf(ret->host, sizeof(ret->host), "%s", server + 5);
        snprintf(ret->authority, sizeof(ret->authority), "localhost");
        return 0;
    }
    if (ret->tls || strncmp(server, "http://", 7) == 0) {
        text.ptr += ret->tls ? 8 : 7;
        text.len -= ret->tls ? 8 : 7;
    }
    text = kiln_str_cut(&text, '/');
    if (!split_host(text, &host, &port) || host.len >= sizeof(ret->host) || port.len > 5 ||
        (port.len && (kiln_str_parse_u64(port, &number) < 0 || !number || number > UINT16_MAX)))
        return bad_address(server, err);
    snprintf(ret->host, sizeof(ret->host), "%.*s", KILN_STR_ARG(host));
    snprintf(ret->port, sizeof(ret->port), "%.*s",
             KILN_STR_ARG(port.len ? port : kiln_str_of(ret->tls ? "443" : "80")));
    snprintf(ret->authority, sizeof(ret->authority), "%.*s", KILN_STR_ARG(text));
    return 0;
}

/* ---- waiting ---- */

/* 0: it is ready; -ETIMEDOUT, -ECANCELED. */
static int wait_for(int fd, short events, uint64_t deadline_ns, int cancel_fd)
{
    struct pollfd fds[2] = {{.fd = fd, .events = events}, {.fd = cancel_fd, .events = POLLIN}};

    for (;;) {
        uint64_t now = kiln_clock_mono_ns();
        int r;

        if (now >= deadline_ns)
            return -ETIMEDOUT;
        r = poll(fds, 2, (int)((deadline_ns - now) / KILN_NS_PER_MS) + 1);
        if (r > 0 && fds[1].revents)
            return -ECANCELED;
        if (r > 0)
            return 0;
        if (r < 0 && errno != EINTR)
            return -errno;
    }
}

/* ---- TCP and Unix sockets ---- */

static int connect_to(const struct sockaddr *to, socklen_t len, uint64_t deadline_ns, int cancel_fd)
{
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error = 0, one = 1, r = fd < 0 ? -errno : 0;
    socklen_t size = sizeof(error);

    if (r < 0)
        return r;
    if (connect(fd, to, len) < 0)
        r = errno == EINPROGRESS ? wait_for(fd, POLLOUT, deadline_ns, cancel_fd) : -errno;
    if (r == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error)
        r = -error;
    if (r < 0) {
        close(fd);
        return r;
    }
    if (to->sa_family != AF_UNIX)
        (void)!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

static int open_local(const char *path, uint64_t deadline_ns, int cancel_fd)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    memcpy(to.sun_path, path, strnlen(path, sizeof(to.sun_path) - 1));
    return connect_to((const struct sockaddr *)&to, sizeof(to), deadline_ns, cancel_fd);
}

static int open_tcp(const struct kiln_h2address *address, uint64_t deadline_ns, int cancel_fd,
                    struct kiln_err *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *list = NULL;
    int fd = -EHOSTUNREACH;

    if (getaddrinfo(address->host, address->port, &hints, &list) != 0)
        return kiln_err_set(err, -EHOSTUNREACH, address->authority, "no such host");
    for (const struct addrinfo *at = list; at && fd < 0; at = at->ai_next)
        fd = connect_to(at->ai_addr, at->ai_addrlen, deadline_ns, cancel_fd);
    freeaddrinfo(list);
    return fd;
}

/* ---- TLS ---- */

static int tls_fail(struct kiln_err *err, const char *where, const char *what)
{
    unsigned long error = ERR_peek_last_error();
    const char *reason = error ? ERR_reason_error_string(error) : NULL;

    kiln_err_set(err, -EPROTO, where, "%s%s%s", what, reason ? ": " : "", reason ? reason : "");
    ERR_clear_error();
    return -EPROTO;
}

static int version_of(enum kiln_tls_version version, int otherwise)
{
    return version == KILN_TLS_1_2   ? TLS1_2_VERSION
           : version == KILN_TLS_1_3 ? TLS1_3_VERSION
                                     : otherwise;
}

static int load_files(const struct kiln_h2client_opts *opts, SSL_CTX *ctx, struct kiln_err *err)
{
    if (opts->ca_file && SSL_CTX_load_verify_locations(ctx, opts->ca_file, NULL) != 1)
        return tls_fail(err, opts->ca_file, "no certificates of authorities");
    if ((!opts->ca_file || opts->system_ca) && SSL_CTX_set_default_verify_paths(ctx) != 1)
        return tls_fail(err, NULL, "no certificates of authorities");
    if (opts->cert_file && SSL_CTX_use_certificate_chain_file(ctx, opts->cert_file) != 1)
        return tls_fail(err, opts->cert_file, "no certificate");
    if (opts->key_file && SSL_CTX_use_PrivateKey_file(ctx, opts->key_file, SSL_FILETYPE_PEM) != 1)
        return tls_fail(err, opts->key_file, "no key of the certificate");
    return 0;
}

int kiln_h2wire_context(const struct kiln_h2client_opts *opts, SSL_CTX **ret_ctx,
                        struct kiln_err *err)
{
    static const unsigned char protocols[] = "\x02h2";
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    int r;

    if (!ctx)
        return kiln_err_set(err, -ENOMEM, NULL, "out of memory");
    SSL_CTX_set_min_proto_version(ctx, version_of(opts->min_version, TLS1_2_VERSION));
    SSL_CTX_set_max_proto_version(ctx, version_of(opts->max_version, 0));
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_verify(ctx, opts->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_alpn_protos(ctx, protocols, sizeof(protocols) - 1);
    r = load_files(opts, ctx, err);
    if (r < 0) {
        SSL_CTX_free(ctx);
        return r;
    }
    *ret_ctx = ctx;
    return 0;
}

static bool is_number(const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

static bool name_server(SSL *ssl, const char *name)
{
    if (is_number(name))
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    return SSL_set_tlsext_host_name(ssl, name) == 1 && SSL_set1_host(ssl, name) == 1;
}

static int shake_hands(struct kiln_h2wire *wire, const char *where, uint64_t deadline_ns,
                       int cancel_fd, struct kiln_err *err)
{
    const unsigned char *protocol;
    unsigned int len;
    int n, r = 0;

    while (r == 0 && (n = SSL_connect(wire->ssl)) != 1) {
        int what = SSL_get_error(wire->ssl, n);
        long verdict = SSL_get_verify_result(wire->ssl);

        if (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE)
            r = wait_for(wire->fd, what == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline_ns,
                         cancel_fd);
        else if (verdict != X509_V_OK)
            return kiln_err_set(err, -EPROTO, where, "TLS: %s",
                                X509_verify_cert_error_string(verdict));
        else
            return tls_fail(err, where, "TLS");
    }
    if (r < 0)
        return r;
    SSL_get0_alpn_selected(wire->ssl, &protocol, &len);
    if (len != 2 || memcmp(protocol, "h2", 2) != 0)
        return kiln_err_set(err, -EPROTO, where, "the server does not speak HTTP/2");
    return 0;
}

/* ---- all of it ---- */

int kiln_h2wire_open(const struct kiln_h2address *address, const char *server_name, SSL_CTX *ctx,
                     uint64_t deadline_ns, int cancel_fd, struct kiln_h2wire *ret_wire,
                     struct kiln_err *err)
{
    struct kiln_h2wire wire = {.fd = -1};
    int r;

    r = wire.fd = address->local ? open_local(address->host, deadline_ns, cancel_fd)
                                 : open_tcp(address, deadline_ns, cancel_fd, err);
    if (r < 0)
        return kiln_err_set(err, r, address->authority, "cannot connect: %s", kiln_err_text(r));
    r = 0;
    if (ctx) {
        wire.ssl = SSL_new(ctx);
        if (!wire.ssl || SSL_set_fd(wire.ssl, wire.fd) != 1 ||
            !name_server(wire.ssl, server_name ? server_name : address->host))
            r = -ENOMEM;
        if (r == 0)
            r = shake_hands(&wire, address->authority, deadline_ns, cancel_fd, err);
    }
    if (r < 0) {
        kiln_h2wire_close(&wire);
        return kiln_err_set(err, r, address->authority, "cannot connect: %s", kiln_err_text(r));
    }
    *ret_wire = wire;
    return 0;
}

void kiln_h2wire_close(struct kiln_h2wire *wire)
{
    if (wire->ssl) {
        SSL_shutdown(wire->ssl);
        ERR_clear_error();
        SSL_free(wire->ssl);
    }
    if (wire->fd >= 0)
        close(wire->fd);
    *wire = (struct kiln_h2wire){.fd = -1};
}

/* A server that wants a certificate says so only after we have begun to talk. */
static ssize_t tls_result(struct kiln_h2wire *wire, int n)
{
    int what = n > 0 ? SSL_ERROR_NONE : SSL_get_error(wire->ssl, n);

    if (what == SSL_ERROR_SSL && !wire->alert)
        wire->alert = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    if (n > 0)
        return n;
    if (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE)
        return -EAGAIN;
    return what == SSL_ERROR_ZERO_RETURN ? 0 : -ECONNRESET;
}

ssize_t kiln_h2wire_read(struct kiln_h2wire *wire, void *to, size_t size)
{
    ssize_t n;

    if (wire->ssl)
        return tls_result(wire, SSL_read(wire->ssl, to, (int)size));
    do
        n = recv(wire->fd, to, size, 0);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

ssize_t kiln_h2wire_write(struct kiln_h2wire *wire, const struct iovec *pieces, int n)
{
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces,
                                   .msg_iovlen = (size_t)n};
    ssize_t sent;

    if (wire->ssl) {
        size_t len = pieces->iov_len < TLS_PIECE ? pieces->iov_len : TLS_PIECE;

        return tls_result(wire, SSL_write(wire->ssl, pieces->iov_base, (int)len));
    }
    do
        sent = sendmsg(wire->fd, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

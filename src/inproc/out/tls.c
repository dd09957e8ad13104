/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSSL's functions are found by name, so that no program has to have it that does not use it.
 * They are declared here as they are in OpenSSL 1.1 and 3, which agree on these.
 *
 * OpenSSL takes itself apart at the exit, by a handler that it registers when it is first used: so
 * one of ours is registered behind it, comes before it, sends what is left and waits until no call
 * of ours is under way.  Then there is no TLS any more.
 */
#include "inproc/out/tls.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "inproc/start.h"

struct ssl;
struct ssl_ctx;

/* OpenSSL's numbers. */
enum {
    FILETYPE_PEM = 1,
    VERIFY_NONE = 0,
    VERIFY_PEER = 1,
    CTRL_SET_HOSTNAME = 55,
    CTRL_SET_MIN_VERSION = 123,
    CTRL_MODE = 33,
    MODE_PARTIAL_WRITE = 1,
    MODE_MOVING_BUFFER = 2,
    TLS_1_2 = 0x0303,
    ERROR_WANT_READ = 2,
    ERROR_WANT_WRITE = 3,
    ERROR_ZERO_RETURN = 6,
    VERIFY_OK = 0,
};

/* result, name, parameters */
#define FUNCTIONS(X)                                                                               \
    X(const void *, TLS_client_method, (void))                                                     \
    X(struct ssl_ctx *, SSL_CTX_new, (const void *))                                               \
    X(void, SSL_CTX_free, (struct ssl_ctx *))                                                      \
    X(long, SSL_CTX_ctrl, (struct ssl_ctx *, int, long, void *))                                   \
    X(void, SSL_CTX_set_verify, (struct ssl_ctx *, int, void *))                                   \
    X(int, SSL_CTX_set_default_verify_paths, (struct ssl_ctx *))                                   \
    X(int, SSL_CTX_load_verify_locations, (struct ssl_ctx *, const char *, const char *))          \
    X(int, SSL_CTX_use_certificate_chain_file, (struct ssl_ctx *, const char *))                   \
    X(int, SSL_CTX_use_PrivateKey_file, (struct ssl_ctx *, const char *, int))                     \
    X(int, SSL_CTX_set_alpn_protos, (struct ssl_ctx *, const unsigned char *, unsigned))           \
    X(struct ssl *, SSL_new, (struct ssl_ctx *))                                                   \
    X(void, SSL_free, (struct ssl *))                                                              \
    X(int, SSL_set_fd, (struct ssl *, int))                                                        \
    X(long, SSL_ctrl, (struct ssl *, int, long, void *))                                           \
    X(int, SSL_set1_host, (struct ssl *, const char *))                                            \
    X(void *, SSL_get0_param, (struct ssl *))                                                      \
    X(int, X509_VERIFY_PARAM_set1_ip_asc, (void *, const char *))                                  \
    X(int, SSL_connect, (struct ssl *))                                                            \
    X(int, SSL_read, (struct ssl *, void *, int))                                                  \
    X(int, SSL_write, (struct ssl *, const void *, int))                                           \
    X(int, SSL_get_error, (const struct ssl *, int))                                               \
    X(void, SSL_get0_alpn_selected, (const struct ssl *, const unsigned char **, unsigned *))      \
    X(long, SSL_get_verify_result, (const struct ssl *))                                           \
    X(const char *, X509_verify_cert_error_string, (long))                                         \
    X(unsigned long, ERR_get_error, (void))                                                        \
    X(void, ERR_error_string_n, (unsigned long, char *, size_t))                                   \
    X(void, ERR_clear_error, (void))

static struct {
#define X(result, name, parameters) result(*name) parameters;
    FUNCTIONS(X)
#undef X
} openssl;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loaded;

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER; /* with a call of OpenSSL's */
static bool is_over;

struct kiln_in_tls {
    struct ssl_ctx *context;
    struct ssl *ssl;
};

/* ---- loading ---- */

static const struct {
    const char *name;
    void **place;
} functions[] = {
#define X(result, name, parameters) {#name, (void **)&openssl.name},
    FUNCTIONS(X)
#undef X
};

/* Its own symbols first: a program may export those of another OpenSSL that is linked into it. */
static void load(void)
{
    static const char *const names[] = {"libssl.so.3", "libssl.so.1.1", "libssl.so"};
    void *library = NULL;

    for (size_t i = 0; !library && i < sizeof(names) / sizeof(names[0]); i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!library)
        return;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        *functions[i].place = dlsym(library, functions[i].name);
        if (!*functions[i].place)
            return;
    }
    loaded = true;
}

/* ---- its end ---- */

static void at_exit(void)
{
    kiln_in_start_end();
    pthread_mutex_lock(&busy);
    is_over = true;
    pthread_mutex_unlock(&busy);
}

static void watch_exit(void)
{
    static bool watched;

    if (!watched)
        watched = atexit(at_exit) == 0;
}

void kiln_in_tls_forked(void)
{
    busy = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* False: OpenSSL must not be called any more.  True: it may, until end_call(). */
static bool begin_call(void)
{
    pthread_mutex_lock(&busy);
    if (!is_over)
        return true;
    pthread_mutex_unlock(&busy);
    return false;
}

static void end_call(void)
{
    pthread_mutex_unlock(&busy);
}

/* What OpenSSL says of its last failure, with what was being done. */
static int fail(struct kiln_err *err, const char *what, const char *file)
{
    unsigned long code = openssl.ERR_get_error();
    char text[160] = "";

    if (code)
        openssl.ERR_error_string_n(code, text, sizeof(text));
    openssl.ERR_clear_error();
    return kiln_err_set(err, -EPROTO, NULL, "%s%s%s%s%s", what, file ? " " : "", file ? file : "",
                        text[0] ? ": " : "", text);
}

/* ---- opening ---- */

static int read_files(struct ssl_ctx *context, const struct kiln_in_wire_opts *opts,
                      struct kiln_err *err)
{
    const char *key = opts->key_file ? opts->key_file : opts->cert_file;

    if (!opts->ca_file && openssl.SSL_CTX_set_default_verify_paths(context) != 1)
        return fail(err, "the certificates of this host cannot be read", NULL);
    if (opts->ca_file && openssl.SSL_CTX_load_verify_locations(context, opts->ca_file, NULL) != 1)
        return fail(err, "no certificates can be read from", opts->ca_file);
    if (opts->cert_file &&
        openssl.SSL_CTX_use_certificate_chain_file(context, opts->cert_file) != 1)
        return fail(err, "no certificate can be read from", opts->cert_file);
    if (opts->cert_file && openssl.SSL_CTX_use_PrivateKey_file(context, key, FILETYPE_PEM) != 1)
        return fail(err, "no key can be read from", key);
    return 0;
}

static int make_context(struct kiln_in_tls *tls, const struct kiln_in_wire_opts *opts,
                        struct kiln_err *err)
{
    static const unsigned char http2[] = "\2h2", http1[] = "\10http/1.1";

    tls->context = openssl.SSL_CTX_new(openssl.TLS_client_method());
    watch_exit();
    if (!tls->context)
        return fail(err, "no TLS", NULL);
    openssl.SSL_CTX_ctrl(tls->context, CTRL_SET_MIN_VERSION, TLS_1_2, NULL);
    openssl.SSL_CTX_ctrl(tls->context, CTRL_MODE, MODE_PARTIAL_WRITE | MODE_MOVING_BUFFER, NULL);
    openssl.SSL_CTX_set_verify(tls->context, opts->insecure ? VERIFY_NONE : VERIFY_PEER, NULL);
    openssl.SSL_CTX_set_alpn_protos(tls->context, opts->http2 ? http2 : http1,
                                    opts->http2 ? sizeof(http2) - 1 : sizeof(http1) - 1);
    return read_files(tls->context, opts, err);
}

/* Whom we mean to talk to: a name, or a bare address, which has no name to be asked for. */
static int set_host(struct kiln_in_tls *tls, const char *host)
{
    unsigned char address[16];

    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return openssl.X509_VERIFY_PARAM_set1_ip_asc(openssl.SSL_get0_param(tls->ssl), host);
    openssl.SSL_ctrl(tls->ssl, CTRL_SET_HOSTNAME, 0, (void *)(uintptr_t)host);
    return openssl.SSL_set1_host(tls->ssl, host);
}

/* What a step that did not succeed waits for: -EAGAIN, or what went wrong. */
static int step_failed(struct kiln_in_tls *tls, int result, short *ret_events)
{
    int saved = errno;
    int error = openssl.SSL_get_error(tls->ssl, result);

    if (error == ERROR_ZERO_RETURN)
        return 0;
    if (error == ERROR_WANT_READ || error == ERROR_WANT_WRITE) {
        *ret_events = error == ERROR_WANT_READ ? POLLIN : POLLOUT;
        return -EAGAIN;
    }
    return saved && saved != EAGAIN ? -saved : -EPROTO;
}

static int handshake_failed(struct kiln_in_tls *tls, int code, struct kiln_err *err)
{
    long verdict = openssl.SSL_get_verify_result(tls->ssl);

    if (verdict != VERIFY_OK)
        return kiln_err_set(err, -EPROTO, NULL, "the certificate is not accepted: %s",
                            openssl.X509_verify_cert_error_string(verdict));
    if (code == -ETIMEDOUT)
        return kiln_err_set(err, code, NULL, "%s", kiln_err_text(code));
    return fail(err, "no TLS with the server", NULL);
}

static int wait_step(int fd, short events, const struct kiln_in_deadline *until)
{
    for (;;) {
        struct pollfd one = {.fd = fd, .events = events};
        int ms = kiln_in_deadline_slice_ms(until);
        int n = poll(&one, 1, ms);

        if (n > 0)
            return 0;
        if (ms == 0)
            return -ETIMEDOUT;
    }
}

/* Others may call meanwhile. */
static int wait_aside(int fd, short events, const struct kiln_in_deadline *until)
{
    int r;

    pthread_mutex_unlock(&busy);
    r = wait_step(fd, events, until);
    pthread_mutex_lock(&busy);
    return is_over ? -ESHUTDOWN : r;
}

static int shake_hands(struct kiln_in_tls *tls, int fd, bool http2,
                       const struct kiln_in_deadline *until, struct kiln_err *err)
{
    const unsigned char *agreed = NULL;
    unsigned n = 0;
    int done;

    while ((errno = 0, done = openssl.SSL_connect(tls->ssl)) != 1) {
        short events = POLLIN;
        int r = step_failed(tls, done, &events);

        if (r == -EAGAIN)
            r = wait_aside(fd, events, until);
        else if (r == 0)
            r = -ECONNRESET;
        if (r == -ESHUTDOWN)
            return kiln_err_set(err, r, NULL, "OpenSSL has ended");
        if (r < 0)
            return handshake_failed(tls, r, err);
    }
    openssl.SSL_get0_alpn_selected(tls->ssl, &agreed, &n);
    if (http2 && (n != 2 || memcmp(agreed, "h2", 2) != 0))
        return kiln_err_set(err, -EPROTO, NULL, "the server does not speak HTTP/2 over TLS");
    return 0;
}

static int open_tls(struct kiln_in_tls *tls, int fd, const char *host,
                    const struct kiln_in_wire_opts *opts, const struct kiln_in_deadline *until,
                    struct kiln_err *err)
{
    int r;

    openssl.ERR_clear_error();
    r = make_context(tls, opts, err);
    if (r < 0)
        return r;
    tls->ssl = openssl.SSL_new(tls->context);
    if (!tls->ssl || openssl.SSL_set_fd(tls->ssl, fd) != 1 || set_host(tls, host) != 1)
        return fail(err, "no TLS", NULL);
    return shake_hands(tls, fd, opts->http2, until, err);
}

int kiln_in_tls_open(int fd, const char *host, const struct kiln_in_wire_opts *opts,
                     const struct kiln_in_deadline *until, struct kiln_in_tls **ret_tls,
                     struct kiln_err *err)
{
    struct kiln_in_tls *tls;
    int r = -ESHUTDOWN;

    pthread_once(&once, load);
    if (!loaded)
        return kiln_err_set(err, -ENOSYS, NULL, "https needs OpenSSL (libssl.so.3) on this host");
    tls = kiln_calloc(1, sizeof(*tls));
    if (!tls)
        return -ENOMEM;
    if (begin_call()) {
        r = open_tls(tls, fd, host, opts, until, err);
        end_call();
    }
    if (r < 0) {
        kiln_in_tls_close(tls);
        return r;
    }
    *ret_tls = tls;
    return 0;
}

void kiln_in_tls_close(struct kiln_in_tls *tls)
{
    if (!tls)
        return;
    if (begin_call()) {
        if (tls->ssl)
            openssl.SSL_free(tls->ssl);
        if (tls->context)
            openssl.SSL_CTX_free(tls->context);
        end_call();
    }
    kiln_free(tls);
}

/* ---- using ---- */

int kiln_in_tls_read(struct kiln_in_tls *tls, void *to, size_t size, short *ret_events)
{
    int n;

    if (!begin_call())
        return -ESHUTDOWN;
    openssl.ERR_clear_error();
    errno = 0;
    n = openssl.SSL_read(tls->ssl, to, size > INT32_MAX ? INT32_MAX : (int)size);
    n = n > 0 ? n : step_failed(tls, n, ret_events);
    end_call();
    return n;
}

int kiln_in_tls_write(struct kiln_in_tls *tls, struct kiln_str bytes, short *ret_events)
{
    int n;

    if (!begin_call())
        return -ESHUTDOWN;
    openssl.ERR_clear_error();
    errno = 0;
    n = openssl.SSL_write(tls->ssl, bytes.ptr, bytes.len > INT32_MAX ? INT32_MAX : (int)bytes.len);
    n = n > 0 ? n : step_failed(tls, n, ret_events);
    end_call();
    return n;
}

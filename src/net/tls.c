/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context is made from the files and never changed: when they change a new one takes its place
 * for connections to come, and old connections keep theirs (OpenSSL counts them).  A file that
 * does not make a context is logged once and leaves the old one in place.
 */
#include <errno.h>
#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/x509.h>

#include "base/mem.h"
#include "net/server_int.h"

#define RELOAD_MS 10000u

/* What tells a file from the one that was there before. */
struct stamp {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtime;
};

enum { CERT, KEY, CA, N_FILES };

struct kiln_tls {
    pthread_mutex_t lock; /* for the context: loops read it, one changes it */
    SSL_CTX *ctx;
    char *files[N_FILES];
    enum kiln_tls_version min_version, max_version;
    struct stamp stamps[N_FILES];
    uint32_t interval_ms;
    struct kiln_log *log;
    struct event on_check;
    bool watched;
};

static int fail(struct kiln_err *err, const char *file, const char *what)
{
    unsigned long error = ERR_peek_last_error();
    const char *reason = error ? ERR_reason_error_string(error) : NULL;

    kiln_err_set(err, KILN_E_MALFORMED, file, "%s%s%s", what, reason ? ": " : "",
                 reason ? reason : "");
    ERR_clear_error();
    return KILN_E_MALFORMED;
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned int in_len, void *arg)
{
    static const unsigned char ours[] = "\x02h2\x08http/1.1";
    unsigned char *chosen;

    (void)ssl, (void)arg;
    if (SSL_select_next_proto(&chosen, out_len, ours, sizeof(ours) - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static int load_files(SSL_CTX *ctx, char *const *files, struct kiln_err *err)
{
    STACK_OF(X509_NAME) * names;

    if (SSL_CTX_use_certificate_chain_file(ctx, files[CERT]) != 1)
        return fail(err, files[CERT], "cannot use this certificate");
    if (SSL_CTX_use_PrivateKey_file(ctx, files[KEY], SSL_FILETYPE_PEM) != 1)
        return fail(err, files[KEY], "cannot use this key");
    if (SSL_CTX_check_private_key(ctx) != 1)
        return fail(err, files[KEY], "the key does not belong to the certificate");
    if (!files[CA])
        return 0;
    names = SSL_load_client_CA_file(files[CA]);
    if (!names || SSL_CTX_load_verify_locations(ctx, files[CA], NULL) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return fail(err, files[CA], "cannot use these authorities for client certificates");
    }
    SSL_CTX_set_client_CA_list(ctx, names);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return 0;
}

static int version_number(enum kiln_tls_version version, int any)
{
    if (version == KILN_TLS_ANY)
        return any;
    return version == KILN_TLS_1_2 ? TLS1_2_VERSION : TLS1_3_VERSION;
}

static int make_context(const struct kiln_tls *tls, SSL_CTX **ret_ctx, struct kiln_err *err)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    int r;

    if (!ctx)
        return fail(err, NULL, "cannot set up TLS");
    SSL_CTX_set_min_proto_version(ctx, version_number(tls->min_version, TLS1_2_VERSION));
    SSL_CTX_set_max_proto_version(ctx, version_number(tls->max_version, 0));
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"kiln", 4);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    r = load_files(ctx, tls->files, err);
    if (r < 0) {
        SSL_CTX_free(ctx);
        return r;
    }
    *ret_ctx = ctx;
    return 0;
}

static void read_stamps(const struct kiln_tls *tls, struct stamp *stamps)
{
    memset(stamps, 0, N_FILES * sizeof(*stamps));
    for (int i = 0; i < N_FILES; i++) {
        struct stat st;

        if (!tls->files[i] || stat(tls->files[i], &st) < 0)
            continue;
        stamps[i].dev = st.st_dev;
        stamps[i].ino = st.st_ino;
        stamps[i].size = st.st_size;
        stamps[i].mtime = st.st_mtim;
    }
}

static bool same_stamps(const struct stamp *a, const struct stamp *b)
{
    for (int i = 0; i < N_FILES; i++)
        if (a[i].dev != b[i].dev || a[i].ino != b[i].ino || a[i].size != b[i].size ||
            a[i].mtime.tv_sec != b[i].mtime.tv_sec || a[i].mtime.tv_nsec != b[i].mtime.tv_nsec)
            return false;
    return true;
}

static void on_check(evutil_socket_t fd, short what, void *arg)
{
    struct kiln_tls *tls = arg;
    struct stamp stamps[N_FILES];
    struct kiln_err err = {0};
    SSL_CTX *ctx, *old;

    (void)fd, (void)what;
    read_stamps(tls, stamps);
    if (same_stamps(stamps, tls->stamps))
        return;
    memcpy(tls->stamps, stamps, sizeof(stamps));
    if (make_context(tls, &ctx, &err) < 0) {
        kiln_log(tls->log, KILN_LOG_ERROR, "certificate not reloaded, the old one stays", "file",
                 "%s", err.where, "error", "%s", err.text, NULL);
        return;
    }
    pthread_mutex_lock(&tls->lock);
    old = tls->ctx;
    tls->ctx = ctx;
    pthread_mutex_unlock(&tls->lock);
    SSL_CTX_free(old);
    kiln_log(tls->log, KILN_LOG_INFO, "certificate reloaded", "file", "%s", tls->files[CERT], NULL);
}

void kiln_tls_watch(struct kiln_tls *tls, struct event_base *base)
{
    struct timeval tv = {.tv_sec = tls->interval_ms / 1000,
                         .tv_usec = (long)(tls->interval_ms % 1000) * 1000};

    event_assign(&tls->on_check, base, -1, EV_PERSIST, on_check, tls);
    event_add(&tls->on_check, &tv);
    tls->watched = true;
}

void kiln_tls_unwatch(struct kiln_tls *tls)
{
    if (tls->watched)
        event_del(&tls->on_check);
    tls->watched = false;
}

static int copy_names(struct kiln_tls *tls, const struct kiln_tls_opts *opts)
{
    const char *names[N_FILES] = {
        opts->cert_file, opts->key_file ? opts->key_file : opts->cert_file, opts->client_ca_file};

    for (int i = 0; i < N_FILES; i++) {
        size_t size = names[i] ? strlen(names[i]) + 1 : 0;

        if (!size)
            continue;
        tls->files[i] = kiln_malloc(size);
        if (!tls->files[i])
            return -ENOMEM;
        memcpy(tls->files[i], names[i], size);
    }
    return 0;
}

int kiln_tls_new(const struct kiln_tls_opts *opts, struct kiln_log *log, struct kiln_tls **ret_tls,
                 struct kiln_err *err)
{
    struct kiln_tls *tls = kiln_calloc(1, sizeof(*tls));
    int r;

    if (!tls)
        return kiln_err_set(err, -ENOMEM, opts->cert_file, "%s", kiln_err_text(-ENOMEM));
    pthread_mutex_init(&tls->lock, NULL);
    r = copy_names(tls, opts);
    if (r < 0) {
        kiln_tls_free(tls);
        return kiln_err_set(err, r, opts->cert_file, "%s", kiln_err_text(r));
    }
    tls->log = log;
    tls->min_version = opts->min_version;
    tls->max_version = opts->max_version;
    tls->interval_ms = opts->reload_interval_ms ? opts->reload_interval_ms : RELOAD_MS;
    read_stamps(tls, tls->stamps);
    r = make_context(tls, &tls->ctx, err);
    if (r < 0) {
        kiln_tls_free(tls);
        return r;
    }
    *ret_tls = tls;
    return 0;
}

void kiln_tls_free(struct kiln_tls *tls)
{
    if (!tls)
        return;
    SSL_CTX_free(tls->ctx);
    pthread_mutex_destroy(&tls->lock);
    for (int i = 0; i < N_FILES; i++)
        kiln_free(tls->files[i]);
    kiln_free(tls);
}

SSL *kiln_tls_accept(struct kiln_tls *tls, int fd)
{
    SSL *ssl;

    pthread_mutex_lock(&tls->lock);
    ssl = SSL_new(tls->ctx);
    pthread_mutex_unlock(&tls->lock);
    if (ssl && SSL_set_fd(ssl, fd) == 1) {
        SSL_set_accept_state(ssl);
        return ssl;
    }
    SSL_free(ssl);
    ERR_clear_error();
    return NULL;
}

bool kiln_tls_is_http2(SSL *ssl)
{
    const unsigned char *name;
    unsigned int len;

    SSL_get0_alpn_selected(ssl, &name, &len);
    return len == 2 && memcmp(name, "h2", 2) == 0;
}

void kiln_tls_subject(SSL *ssl, char *out, size_t size)
{
    X509 *cert = SSL_get1_peer_certificate(ssl);

    if (!cert)
        return;
    if (X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, out, (int)size) < 0)
        out[0] = 0;
    X509_free(cert);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context is made from the files and never changed: when they change a new one takes its place
 * for connections to come, and old connections keep theirs (OpenSSL counts them).  A file that
 * does not make a context is logged once and leaves the old one in place.
 */
#include <errno.h>
#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/file.h"
#include "base/mem.h"
#include "net/server_int.h"

#define RELOAD_MS 10000u
#define FILE_MAX  ((size_t)4 << 20)

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

/* True also at the end of what is in it: no more of that kind. */
static bool is_at_end(void)
{
    unsigned long error = ERR_peek_last_error();
    bool end = !error ||
               (ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE);

    if (end)
        ERR_clear_error();
    return end;
}

/* The server's own certificate, then those between it and the authority. */
static bool use_chain(SSL_CTX *ctx, BIO *bio)
{
    X509 *cert = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL);
    bool good = cert && SSL_CTX_use_certificate(ctx, cert) == 1;

    X509_free(cert);
    while (good && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
        good = SSL_CTX_add0_chain_cert(ctx, cert) == 1;
        if (!good)
            X509_free(cert);
    }
    return good && is_at_end();
}

static bool use_key(SSL_CTX *ctx, BIO *bio)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    bool good = key && SSL_CTX_use_PrivateKey(ctx, key) == 1;

    EVP_PKEY_free(key);
    return good;
}

static bool use_authorities(SSL_CTX *ctx, BIO *bio)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    bool good = true;
    int n = 0;
    X509 *cert;

    for (; good && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)); n++) {
        good = X509_STORE_add_cert(store, cert) == 1 && SSL_CTX_add_client_CA(ctx, cert) == 1;
        X509_free(cert);
    }
    return good && n && is_at_end();
}

static const struct {
    bool (*use)(SSL_CTX *ctx, BIO *bio);
    const char *failure;
} uses[N_FILES] = {
    [CERT] = {use_chain, "cannot use this certificate"},
    [KEY] = {use_key, "cannot use this key"},
    [CA] = {use_authorities, "cannot use these authorities for client certificates"},
};

static int load_file(SSL_CTX *ctx, int i, const char *path, struct kiln_err *err)
{
    struct kiln_buf text;
    int r;

    kiln_buf_init(&text, FILE_MAX);
    r = kiln_file_read(path, &text, NULL);
    if (r < 0) {
        r = kiln_err_set(err, KILN_E_MALFORMED, path, "%s: %s", uses[i].failure, kiln_err_text(r));
    } else {
        BIO *bio = BIO_new_mem_buf(text.len ? text.ptr : "", (int)text.len);

        r = bio && uses[i].use(ctx, bio) ? 0 : fail(err, path, uses[i].failure);
        BIO_free(bio);
    }
    if (text.len)
        OPENSSL_cleanse(text.ptr, text.len); /* it may be a key */
    kiln_buf_done(&text);
    return r;
}

static int load_files(SSL_CTX *ctx, char *const *files, struct kiln_err *err)
{
    int r = 0;

    ERR_clear_error();
    for (int i = 0; r == 0 && i < N_FILES; i++)
        if (files[i])
            r = load_file(ctx, i, files[i], err);
    if (r == 0 && SSL_CTX_check_private_key(ctx) != 1)
        r = fail(err, files[KEY], "the key does not belong to the certificate");
    if (r == 0 && files[CA])
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return r;
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

        if (!tls->files[i] || kiln_file_stat(tls->files[i], &st) < 0)
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

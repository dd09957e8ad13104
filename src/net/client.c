/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two libcurl handles, one that speaks HTTP and one that speaks HTTP/2 for gRPC, each with its own
 * connections.  Answers are collected by the two callbacks; trailers come to the header callback
 * like headers.
 *
 * Over https:// ALPN agrees on HTTP/2.  Over http:// and Unix sockets a connection starts with
 * HTTP/2's preface (prior knowledge); but libcurl 7.88 cannot use such a connection twice: told of
 * prior knowledge again, it starts HTTP/2 inside HTTP/2.  A second call therefore asks for plain
 * HTTP/2, which libcurl gives it on a connection that speaks it already.  Where that one is gone,
 * libcurl makes one of HTTP/1.1: an answer with a status of gRPC's is as good there; without one
 * the server did not know the call for one of gRPC, and it is made again.
 */
#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/peer.h"
#include "net/client_int.h"
#include "net/grpc.h"

#define TIMEOUT_MS     10000u
#define CONNECT_MS_MAX 5000u
#define ANSWER_MAX     (4u << 20)
#define URL_MAX        (16u << 10)

struct kiln_client {
    char *server, *bearer, *tenant, *ca_file, *cert_file, *key_file; /* owned; NULL: not given */
    char *proxy;                                                     /* likewise */
    char *base;                                                      /* what paths are put behind */
    const char *socket;                                              /* in `server` */
    bool system_ca, insecure, checks_peer, tls, loopback, cookies, connects_anew;
    uint32_t timeout_ms;
    size_t answer_max;
    const _Atomic bool *cancel, *stop; /* NULL: never */
    long tls_versions;                 /* CURLOPT_SSLVERSION */
    char *host;                    /* with the port, where the certificate is for another name */
    struct curl_slist *connect_to; /* then: what that name is in truth */
    CURL *http, *grpc;             /* NULL until needed */
    bool warm;                     /* gRPC has a connection that speaks HTTP/2 */
    struct kiln_buf url, line, frame;
    char why[CURL_ERROR_SIZE];
    int unchecked;            /* the newest connection, until its peer is known; -1: none */
    struct kiln_err distrust; /* of the call under way: why its peer gets nothing */
};

/* ---- a client ---- */

static void start_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* A copy with `front` before it, or NULL for NULL; *r says whether memory was lacking. */
static char *copy_behind(const char *front, const char *text, int *r)
{
    size_t size = text ? strlen(front) + strlen(text) + 1 : 0;
    char *made = text ? kiln_malloc(size) : NULL;

    if (made)
        snprintf(made, size, "%s%s", front, text);
    else if (text)
        *r = -ENOMEM;
    return made;
}

static char *copy(const char *text, int *r)
{
    return copy_behind("", text, r);
}

/* A token or tenant becomes a header: a line break in it would begin another. */
static int check_header(const char *what, const char *text, struct kiln_err *err)
{
    for (; text && *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return kiln_err_set(err, -EINVAL, NULL, "the %s has a control character in it", what);
    return 0;
}

static bool is_loopback(struct kiln_str host)
{
    return kiln_str_starts(host, KILN_STR("127.")) || kiln_str_starts(host, KILN_STR("[::1]")) ||
           kiln_str_starts(host, KILN_STR("localhost"));
}

/* The certificate is for `name`: that is asked for, and `host` is where it is. */
static int stand_in(struct kiln_client *client, struct kiln_str host, const char *name)
{
    const char *port = memrchr(host.ptr, ':', host.len);
    size_t n_port = port ? (size_t)(host.ptr + host.len - port) : 0;
    char text[1024];
    int r = 0;

    if (host.len + strlen(name) + sizeof("https://::") > sizeof(text))
        return -EINVAL;
    snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(host));
    client->host = copy(text, &r);
    snprintf(text, sizeof(text), "https://%s%.*s", name, (int)n_port, port ? port : "");
    client->base = copy(text, &r);
    snprintf(text, sizeof(text), "::%.*s%s", KILN_STR_ARG(host), port ? "" : ":443");
    client->connect_to = curl_slist_append(NULL, text);
    return client->connect_to ? r : -ENOMEM;
}

/* Finds out what kind of address it is, and what paths are put behind. */
static int read_address(struct kiln_client *client, const char *server_name, struct kiln_err *err)
{
    struct kiln_str server = kiln_str_of(client->server);
    struct kiln_str host = server;
    int r = 0;

    if (kiln_str_starts(server, KILN_STR("unix:"))) {
        client->socket = client->server + strlen("unix:");
        client->base = copy("http://localhost", &r);
        return client->socket[0] == '/' ? r
                                        : kiln_err_set(err, -EINVAL, client->server,
                                                       "a Unix socket is named by its whole path "
                                                       "(say unix:/run/kiln/kiln.sock)");
    }
    client->tls = kiln_str_starts(server, KILN_STR("https://"));
    if (client->tls || kiln_str_starts(server, KILN_STR("http://"))) {
        host.ptr += client->tls ? 8 : 7;
        host.len -= client->tls ? 8 : 7;
    } else if (kiln_str_contains(server, KILN_STR("://"))) {
        return kiln_err_set(err, -EINVAL, client->server,
                            "no address of a server (say http://127.0.0.1:4040)");
    }
    while (host.len && host.ptr[host.len - 1] == '/')
        host.len--;
    if (host.len == 0)
        return kiln_err_set(err, -EINVAL, client->server,
                            "no address of a server (say http://127.0.0.1:4040)");
    client->loopback = is_loopback(host);
    if (client->tls && server_name)
        return stand_in(client, host, server_name);
    kiln_buf_clear(&client->url);
    kiln_buf_puts(&client->url, client->tls ? "https://" : "http://");
    kiln_buf_add_str(&client->url, host);
    kiln_buf_putc(&client->url, '\0');
    if (client->url.error)
        return client->url.error;
    client->base = copy(client->url.ptr, &r);
    return r;
}

static long versions_of(const struct kiln_client_opts *opts)
{
    static const long least[] = {CURL_SSLVERSION_TLSv1_2, CURL_SSLVERSION_TLSv1_2,
                                 CURL_SSLVERSION_TLSv1_3};
    static const long most[] = {CURL_SSLVERSION_MAX_DEFAULT, CURL_SSLVERSION_MAX_TLSv1_2,
                                CURL_SSLVERSION_MAX_TLSv1_3};

    return least[opts->min_version] | most[opts->max_version];
}

int kiln_client_new(const struct kiln_client_opts *opts, struct kiln_client **ret_client,
                    struct kiln_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct kiln_client *client = kiln_calloc(1, sizeof(*client));
    int r = 0;

    if (!client)
        return kiln_err_set(err, -ENOMEM, NULL, "out of memory");
    pthread_once(&once, start_curl);
    kiln_buf_init(&client->url, URL_MAX);
    kiln_buf_init(&client->line, URL_MAX);
    kiln_buf_init(&client->frame, UINT32_MAX);
    client->server = copy(opts->server, &r);
    client->bearer = copy_behind("Bearer ", opts->token, &r);
    client->tenant = copy(opts->tenant, &r);
    client->ca_file = copy(opts->ca_file, &r);
    client->cert_file = copy(opts->cert_file, &r);
    client->key_file = copy(opts->key_file, &r);
    client->proxy = copy(opts->proxy, &r);
    client->cookies = opts->cookies;
    client->connects_anew = opts->connects_anew;
    client->system_ca = opts->system_ca;
    client->insecure = opts->insecure;
    client->checks_peer = opts->checks_peer;
    client->tls_versions = versions_of(opts);
    client->cancel = opts->cancel;
    client->stop = opts->stop;
    client->timeout_ms = opts->timeout_ms ? opts->timeout_ms : TIMEOUT_MS;
    client->answer_max = opts->answer_max ? opts->answer_max : ANSWER_MAX;
    if (r == 0)
        r = check_header("token", opts->token, err);
    if (r == 0)
        r = check_header("tenant", opts->tenant, err);
    if (r == 0)
        r = read_address(client, opts->server_name, err);
    if (r < 0) {
        kiln_client_free(client);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_client = client;
    return 0;
}

void kiln_client_free(struct kiln_client *client)
{
    if (!client)
        return;
    curl_easy_cleanup(client->http);
    curl_easy_cleanup(client->grpc);
    kiln_buf_done(&client->url);
    kiln_buf_done(&client->line);
    kiln_buf_done(&client->frame);
    kiln_free(client->server);
    kiln_free(client->bearer);
    kiln_free(client->tenant);
    kiln_free(client->ca_file);
    kiln_free(client->proxy);
    kiln_free(client->cert_file);
    kiln_free(client->key_file);
    kiln_free(client->base);
    kiln_free(client->host);
    curl_slist_free_all(client->connect_to);
    kiln_free(client);
}

/* ---- calls ---- */

static size_t on_header(char *data, size_t size, size_t n, void *context)
{
    return kiln_collected_line(context, (struct kiln_str){data, size * n}) ? size * n : 0;
}

static size_t on_body(char *data, size_t size, size_t n, void *context)
{
    return kiln_collected_bytes(context, (struct kiln_str){data, size * n}) ? size * n : 0;
}

static bool is_set(const _Atomic bool *flag)
{
    return flag && atomic_load_explicit(flag, memory_order_relaxed);
}

/* Asked often while bytes move, and once a second while none do. */
static int on_progress(void *context, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                       curl_off_t up)
{
    const struct kiln_client *client = context;

    (void)down_total, (void)down, (void)up_total, (void)up;
    return is_set(client->cancel) || is_set(client->stop);
}

/* The next request goes over a connection that was not there before. */
static curl_socket_t on_open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct kiln_client *client = context;

    (void)purpose;
    client->unchecked = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    return client->unchecked < 0 ? CURL_SOCKET_BAD : client->unchecked;
}

/* Connected, and nothing of the request is sent yet. */
static int on_connected(void *context, char *to, char *from, int to_port, int from_port)
{
    struct kiln_client *client = context;

    (void)to, (void)from, (void)to_port, (void)from_port;
    if (client->unchecked >= 0 &&
        kiln_peer_check(client->unchecked, client->socket, &client->distrust) < 0)
        return CURL_PREREQFUNC_ABORT;
    client->unchecked = -1;
    return CURL_PREREQFUNC_OK;
}

static void check_peer(struct kiln_client *client, CURL *h)
{
    curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(h, CURLOPT_OPENSOCKETDATA, client);
    curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, on_connected);
    curl_easy_setopt(h, CURLOPT_PREREQDATA, client);
}

static int fail(const struct kiln_client *client, CURL *handle, CURLcode code, struct kiln_err *err)
{
    long os_error = 0;

    if (client->distrust.code)
        return kiln_err_set(err, client->distrust.code, client->server, "%s",
                            client->distrust.text);
    curl_easy_getinfo(handle, CURLINFO_OS_ERRNO, &os_error);
    switch (code) {
    case CURLE_COULDNT_CONNECT:
        if (os_error == ECONNREFUSED || (client->socket && os_error == ENOENT))
            return kiln_err_set(err, -ECONNREFUSED, client->server,
                                "connection refused (is the server running?)");
        return kiln_err_set(err, os_error ? -(int)os_error : -ECONNREFUSED, client->server,
                            "cannot connect: %s",
                            os_error ? kiln_err_text(-(int)os_error) : client->why);
    case CURLE_COULDNT_RESOLVE_HOST:
        return kiln_err_set(err, -EHOSTUNREACH, client->server, "no such host");
    case CURLE_OPERATION_TIMEDOUT:
        return kiln_err_set(err, -ETIMEDOUT, client->server, "no answer within %g s",
                            client->timeout_ms / 1000.0);
    case CURLE_ABORTED_BY_CALLBACK:
        return kiln_err_set(err, -ECANCELED, client->server, "the call was given up");
    case CURLE_OUT_OF_MEMORY:
        return kiln_err_set(err, -ENOMEM, NULL, "out of memory");
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        return kiln_err_set(err, -EPROTO, client->server, "TLS: %s", client->why);
    case CURLE_URL_MALFORMAT:
        return kiln_err_set(err, -EINVAL, client->server,
                            "no address of a server (say http://127.0.0.1:4040)");
    default:
        return kiln_err_set(err, -ECONNRESET, client->server, "the connection broke: %s",
                            client->why[0] ? client->why : curl_easy_strerror(code));
    }
}

static bool add_line(struct kiln_client *client, struct curl_slist **list, const char *name,
                     struct kiln_str value)
{
    struct curl_slist *longer;

    kiln_buf_clear(&client->line);
    kiln_buf_puts(&client->line, name);
    kiln_buf_puts(&client->line, value.len ? ": " : ":");
    kiln_buf_add_str(&client->line, value);
    kiln_buf_putc(&client->line, '\0');
    longer = client->line.error ? NULL : curl_slist_append(*list, client->line.ptr);
    *list = longer ? longer : *list;
    return longer != NULL;
}

/* The headers of a call; NULL without memory. */
static struct curl_slist *lines_of(struct kiln_client *client, const struct kiln_call *call,
                                   bool grpc)
{
    const char *encoding = kiln_compression_name(call->encoding);
    struct curl_slist *list = NULL;
    bool ok = add_line(client, &list, "Expect", KILN_STR_NONE);

    if (call->content_type || grpc)
        ok &= add_line(client, &list, "Content-Type",
                       kiln_str_of(grpc ? "application/grpc" : call->content_type));
    if (call->encoding != KILN_PLAIN)
        ok &= add_line(client, &list, grpc ? "grpc-encoding" : "Content-Encoding",
                       kiln_str_of(encoding));
    if (grpc)
        ok &= add_line(client, &list, "TE", KILN_STR("trailers")) &&
              add_line(client, &list, "grpc-accept-encoding", KILN_STR("identity,gzip,zstd"));
    if (client->bearer)
        ok &= add_line(client, &list, "Authorization", kiln_str_of(client->bearer));
    if (client->host)
        ok &= add_line(client, &list, "Host", kiln_str_of(client->host));
    if (client->tenant)
        ok &= add_line(client, &list, "X-Scope-OrgID", kiln_str_of(client->tenant));
    for (uint32_t i = 0; i < call->n_headers; i++) {
        char name[128];

        kiln_keep_text(call->headers[i].name, name, sizeof(name));
        ok &= add_line(client, &list, name, call->headers[i].value);
    }
    if (ok)
        return list;
    curl_slist_free_all(list);
    return NULL;
}

/* Options that stay the same for every call of a handle. */
static CURL *new_handle(struct kiln_client *client, bool grpc)
{
    CURL *h = curl_easy_init();
    uint32_t connect_ms = client->timeout_ms < CONNECT_MS_MAX ? client->timeout_ms : CONNECT_MS_MAX;

    if (!h)
        return NULL;
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_USERAGENT, "kiln/" KILN_VERSION);
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, client->why);
    curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)client->timeout_ms);
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
    if (client->socket)
        curl_easy_setopt(h, CURLOPT_UNIX_SOCKET_PATH, client->socket);
    if (client->socket && client->checks_peer)
        check_peer(client, h);
    if (client->proxy && !client->socket)
        curl_easy_setopt(h, CURLOPT_PROXY, client->proxy);
    else if (client->socket || client->loopback)
        curl_easy_setopt(h, CURLOPT_PROXY, "");
    if (client->proxy)
        curl_easy_setopt(h, CURLOPT_NOPROXY, "");
    if (client->connects_anew)
        curl_easy_setopt(h, CURLOPT_FORBID_REUSE, 1L);
    if (client->cookies)
        curl_easy_setopt(h, CURLOPT_COOKIEFILE, ""); /* none of a file, but those that come */
    if (client->ca_file) {
        curl_easy_setopt(h, CURLOPT_CAINFO, client->ca_file);
        curl_easy_setopt(h, CURLOPT_CA_CACHE_TIMEOUT, 0L); /* each connection reads it again */
    }
    if (client->ca_file && !client->system_ca)
        curl_easy_setopt(h, CURLOPT_CAPATH, NULL);
    if (client->connect_to)
        curl_easy_setopt(h, CURLOPT_CONNECT_TO, client->connect_to);
    curl_easy_setopt(h, CURLOPT_SSLVERSION, client->tls_versions);
    if (client->cert_file)
        curl_easy_setopt(h, CURLOPT_SSLCERT, client->cert_file);
    if (client->key_file)
        curl_easy_setopt(h, CURLOPT_SSLKEY, client->key_file);
    if (client->insecure) {
        curl_easy_setopt(h, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(h, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (client->cancel || client->stop) {
        curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(h, CURLOPT_XFERINFODATA, client);
    }
    curl_easy_setopt(h, CURLOPT_HTTP_VERSION,
                     grpc ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_1_1);
    if (!grpc)
        curl_easy_setopt(h, CURLOPT_ACCEPT_ENCODING, "gzip, zstd");
    return h;
}

static void set_call(CURL *h, const struct kiln_call *call, struct kiln_str body, const char *url,
                     struct kiln_collected *c)
{
    bool has_body = body.len || (call->method && strcmp(call->method, "POST") == 0);

    curl_easy_setopt(h, CURLOPT_URL, url);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, c);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, NULL);
    if (has_body) {
        curl_easy_setopt(h, CURLOPT_POST, 1L);
        curl_easy_setopt(h, CURLOPT_POSTFIELDS, body.len ? body.ptr : "");
        curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
    } else {
        curl_easy_setopt(h, CURLOPT_HTTPGET, 1L);
    }
    if (call->method && strcmp(call->method, has_body ? "POST" : "GET") != 0)
        curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, call->method);
}

/* Sends and collects.  0 with answer->status, or an error. */
static int perform(struct kiln_client *client, CURL *h, const struct kiln_call *call,
                   struct kiln_str body, struct kiln_collected *c, struct kiln_err *err)
{
    struct curl_slist *lines = lines_of(client, call, h == client->grpc);
    CURLcode code;
    long status = 0;

    kiln_buf_clear(&client->url);
    kiln_buf_puts(&client->url, client->base);
    kiln_buf_puts(&client->url, call->path);
    kiln_buf_putc(&client->url, '\0');
    if (!lines || client->url.error) {
        curl_slist_free_all(lines);
        return kiln_err_set(err, client->url.error ? client->url.error : -ENOMEM, client->server,
                            "cannot make the request");
    }
    client->why[0] = '\0';
    set_call(h, call, body, client->url.ptr, c);
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, lines);
    code = curl_easy_perform(h);
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(lines);
    if (c->answer->body.error == KILN_E_LIMIT)
        return kiln_err_set(err, KILN_E_LIMIT, client->server,
                            "the answer is larger than %zu bytes", client->answer_max);
    /* An answer that came before the body was sent ends the stream, which libcurl takes ill. */
    if (code != CURLE_OK && !(code == CURLE_HTTP2_STREAM && c->grpc_status[0]))
        return fail(client, h, code, err);
    curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
    c->answer->status = (int)status;
    return 0;
}

static int run(struct kiln_client *client, CURL **handle, const struct kiln_call *call,
               struct kiln_str body, struct kiln_collected *c, struct kiln_err *err)
{
    int r;

    if (!*handle)
        *handle = new_handle(client, handle == &client->grpc);
    if (!*handle)
        return kiln_err_set(err, -ENOMEM, NULL, "out of memory");
    client->unchecked = -1;
    client->distrust = (struct kiln_err){0};
    r = perform(client, *handle, call, body, c, err);
    if (client->distrust.code) { /* no later call may use that connection */
        curl_easy_cleanup(*handle);
        *handle = NULL;
    }
    return r;
}

int kiln_client_call(struct kiln_client *client, const struct kiln_call *call,
                     struct kiln_answer *answer, struct kiln_err *err)
{
    struct kiln_collected c;
    int r;

    kiln_collected_init(&c, answer, client->server, client->answer_max);
    r = run(client, &client->http, call, call->body, &c, err);
    if (r == 0)
        kiln_collected_http(&c);
    kiln_collected_done(&c);
    return r;
}

/* One try of a gRPC call; *ret_again: it went over HTTP/1.1, which the server does not take. */
static int try_grpc(struct kiln_client *client, const struct kiln_call *call,
                    struct kiln_answer *answer, bool *ret_again, struct kiln_err *err)
{
    long version = CURL_HTTP_VERSION_NONE;
    struct kiln_collected c;
    int r = 0;

    if (!client->grpc)
        client->grpc = new_handle(client, true);
    if (client->grpc && !client->tls) {
        curl_easy_setopt(client->grpc, CURLOPT_HTTP_VERSION,
                         client->warm ? (long)CURL_HTTP_VERSION_2_0
                                      : (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
        curl_easy_setopt(client->grpc, CURLOPT_FRESH_CONNECT, client->warm ? 0L : 1L);
    }
    kiln_collected_init(&c, answer, client->server, client->answer_max);
    r = run(client, &client->grpc, call, kiln_buf_str(&client->frame), &c, err);
    if (r == 0)
        curl_easy_getinfo(client->grpc, CURLINFO_HTTP_VERSION, &version);
    *ret_again = r == 0 && client->warm && version != CURL_HTTP_VERSION_2_0 && !c.grpc_status[0];
    client->warm = version == CURL_HTTP_VERSION_2_0;
    if (r == 0 && !*ret_again)
        r = kiln_collected_grpc(&c, err);
    kiln_collected_done(&c);
    return r;
}

int kiln_client_grpc(struct kiln_client *client, const struct kiln_call *call,
                     struct kiln_answer *answer, struct kiln_err *err)
{
    uint8_t flags = call->encoding == KILN_PLAIN ? 0 : KILN_GRPC_COMPRESSED;
    bool again;
    int r;

    kiln_buf_clear(&client->frame);
    kiln_grpc_frame_put(&client->frame, flags, call->body);
    if (client->frame.error)
        return kiln_err_set(err, client->frame.error, client->server, "cannot make the request");
    r = try_grpc(client, call, answer, &again, err);
    return again ? try_grpc(client, call, answer, &again, err) : r;
}

bool kiln_client_retryable(int code)
{
    return code == -ECONNREFUSED || code == -ECONNRESET || code == -ETIMEDOUT ||
           code == -EHOSTUNREACH || code == -ENETUNREACH || code == -EPIPE || code == -EAGAIN;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_grpc (or otlp) and otlp_http (or otlphttp): any signal as OTLP; pyroscope: profiles by
 * Pyroscope's push API.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/otlp_target.h"
#include "collector/auth.h"
#include "collector/exporters/address.h"
#include "collector/exporters/sending.h"
#include "collector/registry.h"
#include "collector/settings.h"
#include "net/grpc.h"

/* What the Collector's receivers take, unless they are told otherwise. */
#define GRPC_REQUEST_MAX ((uint64_t)4 << 20)
#define HTTP_REQUEST_MAX ((uint64_t)20 << 20)
#define REQUEST_MIN      ((uint64_t)4 << 10)

struct otlp_settings {
    struct kiln_sending_settings sending;
    const char *endpoint;
    const char *endpoints[KILN_SIGNALS]; /* of HTTP: the very address; NULL: not said */
    const struct kiln_node *params, *unused;
    struct kiln_client_settings client;
    const char *compression, *encoding;
    const char *authority, *proxy_url;
    const struct kiln_node *keepalive_node, *cookies_node;
    struct {
        uint64_t time_ns, timeout_ns;
        bool permit_without_stream;
    } keepalive;
    bool cookies, disable_keep_alives;
    uint32_t level;
    uint64_t timeout_ns, request_max;
};

static const char *const grpc_methods[KILN_SIGNALS] = {
    [KILN_SIGNAL_PROFILES] =
        "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
    [KILN_SIGNAL_TRACES] = "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    [KILN_SIGNAL_METRICS] = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    [KILN_SIGNAL_LOGS] = "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
};
static const char *const http_paths[KILN_SIGNALS] = {
    [KILN_SIGNAL_PROFILES] = "/v1development/profiles",
    [KILN_SIGNAL_TRACES] = "/v1/traces",
    [KILN_SIGNAL_METRICS] = "/v1/metrics",
    [KILN_SIGNAL_LOGS] = "/v1/logs",
};

#define PUSH_PATH "/push.v1.PusherService/Push"

enum way { GRPC, HTTP, PUSH };

/* ---- reading ---- */

#define AT(field) offsetof(struct otlp_settings, field)
/* Keys of both; those that say how Go's clients manage their memory and connections change nothing
 * here. */
#define COMMON_FIELDS                                                                              \
    {"endpoint", KILN_FIELD_TEXT, AT(endpoint)}, KILN_CLIENT_FIELDS(struct otlp_settings, client), \
        {"compression", KILN_FIELD_TEXT, AT(compression)},                                         \
        {"timeout", KILN_FIELD_DURATION, AT(timeout_ns)},                                          \
        {"sending_queue", KILN_FIELD_MAP, AT(sending.queue_node)},                                 \
        {"retry_on_failure", KILN_FIELD_MAP, AT(sending.retry_node)},                              \
        {"max_request_size", KILN_FIELD_SIZE, AT(request_max)},                                    \
        {"read_buffer_size", KILN_FIELD_NODE, AT(unused)},                                         \
    {                                                                                              \
        "write_buffer_size", KILN_FIELD_NODE, AT(unused)                                           \
    }

static int check_compression(const struct kiln_node *node, const char *name, struct kiln_err *err)
{
    static const char *const known[] = {"gzip", "zstd", "none", ""};

    for (size_t i = 0; i < KILN_ARRAY_LEN(known); i++)
        if (!name || strcmp(name, known[i]) == 0)
            return 0;
    return kiln_node_fail(kiln_node_get(node, "compression"), KILN_E_UNSUPPORTED, err,
                          "unsupported compression type \"%s\" (say gzip, zstd or none)", name);
}

/* What all have, behind their tables. */
static int read_rest(const struct kiln_node *node, struct otlp_settings *s, struct kiln_err *err)
{
    int r = check_compression(node, s->compression, err);

    if (r == 0)
        r = kiln_settings_client(&s->client, err);
    if (r == 0 && s->request_max < REQUEST_MIN)
        r = kiln_node_fail(kiln_node_get(node, "max_request_size"), KILN_E_MALFORMED, err,
                           "'max_request_size' must be at least %u", (unsigned)REQUEST_MIN);
    return r < 0 ? r : kiln_sending_read(&s->sending, err);
}

/* What the Collector's clients have, and ours do not. */
static int refuse(const struct kiln_node *node, struct kiln_err *err)
{
    static const struct kiln_refused_key refused[] = {
        {"middlewares", "there are no extensions of that kind"},
    };

    return kiln_settings_refuse(node, refused, KILN_ARRAY_LEN(refused), err);
}

/* Of those that have one endpoint. */
static int read_one(const struct kiln_node *node, const struct kiln_field *fields, uint32_t n,
                    struct otlp_settings *s, struct kiln_err *err)
{
    int r = refuse(node, err);

    if (r == 0)
        r = kiln_node_read(node, fields, n, s, err);
    if (r == 0)
        r = read_rest(node, s, err);
    if (r == 0 && (!s->endpoint || !*s->endpoint))
        r = kiln_err_set(err, KILN_E_MALFORMED, "endpoint", "requires a non-empty \"endpoint\"");
    return r;
}

/* As grpc-go's clients have it, which ask no sooner than after ten seconds. */
static int read_keepalive(struct otlp_settings *s, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"time", KILN_FIELD_DURATION, AT(keepalive.time_ns)},
        {"timeout", KILN_FIELD_DURATION, AT(keepalive.timeout_ns)},
        {"permit_without_stream", KILN_FIELD_BOOL, AT(keepalive.permit_without_stream)},
    };
    int r;

    if (!s->keepalive_node)
        return 0;
    s->keepalive.time_ns = s->keepalive.timeout_ns = 10 * KILN_NS_PER_S;
    r = kiln_node_read(s->keepalive_node, fields, KILN_ARRAY_LEN(fields), s, err);
    if (s->keepalive.time_ns < 10 * KILN_NS_PER_S)
        s->keepalive.time_ns = 10 * KILN_NS_PER_S;
    return r;
}

static int read_grpc(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        COMMON_FIELDS,
        {"authority", KILN_FIELD_TEXT, AT(authority)},
        {"keepalive", KILN_FIELD_MAP, AT(keepalive_node)},
        {"balancer_name", KILN_FIELD_NODE, AT(unused)},
        {"wait_for_ready", KILN_FIELD_NODE, AT(unused)},
    };
    struct otlp_settings *s = settings;

    int r;

    *s = (struct otlp_settings){.timeout_ns = 5 * KILN_NS_PER_S, .request_max = GRPC_REQUEST_MAX};
    r = read_one(node, fields, KILN_ARRAY_LEN(fields), s, err);
    return r < 0 ? r : read_keepalive(s, err);
}

static int read_push(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {COMMON_FIELDS};
    struct otlp_settings *s = settings;

    *s = (struct otlp_settings){.timeout_ns = 30 * KILN_NS_PER_S, .request_max = GRPC_REQUEST_MAX};
    return read_one(node, fields, KILN_ARRAY_LEN(fields), s, err);
}

struct level_block {
    uint32_t level;
};

static int read_level(const struct kiln_node *node, struct otlp_settings *s, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"level", KILN_FIELD_COUNT, offsetof(struct level_block, level)},
    };
    struct level_block block = {0};
    int r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), &block, err);
    uint32_t most = s->compression && strcmp(s->compression, "zstd") == 0 ? 22 : 9;

    if (r == 0 && block.level > most)
        r = kiln_node_fail(node, KILN_E_MALFORMED, err,
                           "unsupported compression level %u (say 1 to %u)", block.level, most);
    s->level = block.level;
    return r;
}

static int check_encoding(const struct kiln_node *node, const char *name, struct kiln_err *err)
{
    if (!name || strcmp(name, "proto") == 0 || strcmp(name, "json") == 0)
        return 0;
    return kiln_node_fail(kiln_node_get(node, "encoding"), KILN_E_MALFORMED, err,
                          "invalid encoding type \"%s\" (say proto or json)", name);
}

static int check_proxy(const struct kiln_node *node, const char *url, struct kiln_err *err)
{
    static const char *const schemes[] = {"http://", "https://", "socks5://", "socks5h://"};

    if (!url || !*url)
        return 0;
    for (size_t i = 0; i < KILN_ARRAY_LEN(schemes); i++)
        if (strncmp(url, schemes[i], strlen(schemes[i])) == 0 && url[strlen(schemes[i])])
            return 0;
    return kiln_node_fail(kiln_node_get(node, "proxy_url"), KILN_E_MALFORMED, err,
                          "\"%.200s\" is no address of a proxy (say http://%.200s)", url, url);
}

static int read_cookies(struct otlp_settings *s, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {{"enabled", KILN_FIELD_BOOL, AT(cookies)}};

    s->cookies = s->cookies_node != NULL;
    return s->cookies_node ? kiln_node_read(s->cookies_node, fields, KILN_ARRAY_LEN(fields), s, err)
                           : 0;
}

static int read_http(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        COMMON_FIELDS,
        {"profiles_endpoint", KILN_FIELD_TEXT, AT(endpoints[KILN_SIGNAL_PROFILES])},
        {"traces_endpoint", KILN_FIELD_TEXT, AT(endpoints[KILN_SIGNAL_TRACES])},
        {"metrics_endpoint", KILN_FIELD_TEXT, AT(endpoints[KILN_SIGNAL_METRICS])},
        {"logs_endpoint", KILN_FIELD_TEXT, AT(endpoints[KILN_SIGNAL_LOGS])},
        {"encoding", KILN_FIELD_TEXT, AT(encoding)},
        {"proxy_url", KILN_FIELD_TEXT, AT(proxy_url)},
        {"cookies", KILN_FIELD_MAP, AT(cookies_node)},
        {"compression_params", KILN_FIELD_MAP, AT(params)},
        {"max_idle_conns", KILN_FIELD_NODE, AT(unused)},
        {"max_idle_conns_per_host", KILN_FIELD_NODE, AT(unused)},
        {"max_conns_per_host", KILN_FIELD_NODE, AT(unused)},
        {"idle_conn_timeout", KILN_FIELD_NODE, AT(unused)},
        {"disable_keep_alives", KILN_FIELD_BOOL, AT(disable_keep_alives)},
        {"force_attempt_http2", KILN_FIELD_NODE, AT(unused)},
        {"http2_read_idle_timeout", KILN_FIELD_NODE, AT(unused)},
        {"http2_ping_timeout", KILN_FIELD_NODE, AT(unused)},
    };
    struct otlp_settings *s = settings;
    bool has = false;
    int r;

    *s = (struct otlp_settings){.timeout_ns = 30 * KILN_NS_PER_S, .request_max = HTTP_REQUEST_MAX};
    r = refuse(node, err);
    if (r == 0)
        r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), s, err);
    for (int i = 0; i < KILN_SIGNALS; i++)
        has |= s->endpoints[i] && *s->endpoints[i];
    if (r == 0)
        r = check_encoding(node, s->encoding, err);
    if (r == 0)
        r = check_proxy(node, s->proxy_url, err);
    if (r == 0)
        r = read_cookies(s, err);
    if (r == 0)
        r = read_level(s->params, s, err);
    if (r == 0)
        r = read_rest(node, s, err);
    if (r == 0 && !has && (!s->endpoint || !*s->endpoint))
        r = kiln_err_set(err, KILN_E_MALFORMED, "endpoint",
                         "at least one endpoint must be specified");
    return r;
}

/* ---- making ---- */

static int find_address(const struct kiln_component_env *env, const struct otlp_settings *s,
                        enum way way, struct kiln_address *ret, struct kiln_err *err)
{
    const char *exact = s->endpoints[env->signal], *endpoint = exact ? exact : s->endpoint;

    if (way == GRPC)
        return kiln_address_split(endpoint, !s->client.tls.insecure, grpc_methods[env->signal],
                                  ret);
    if (!endpoint || !*endpoint)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL, "there is no endpoint for this signal");
    if (!strstr(endpoint, "://") && strncmp(endpoint, "unix:", 5) != 0)
        return kiln_err_set(err, KILN_E_MALFORMED, "endpoint",
                            "\"%s\" must be a valid URL (say http://%s)", endpoint, endpoint);
    return kiln_address_split(endpoint, false,
                              way == PUSH ? PUSH_PATH
                              : exact     ? NULL
                                          : http_paths[env->signal],
                              ret);
}

/* As whom; what goes over the wire as it is can be read by whoever sits there. */
static int find_credential(const struct kiln_component_env *env, const struct otlp_settings *s,
                           const char *server, struct kiln_credential *ret, struct kiln_err *err)
{
    struct kiln_auth *auth;
    int r = kiln_auth_find(env->graph, s->client.authenticator, KILN_AUTH_CLIENT, &auth, err);

    if (r < 0 || !auth)
        return r;
    *ret = kiln_auth_credential(auth);
    if (kiln_str_starts(kiln_str_of(server), KILN_STR("http://")))
        kiln_log(env->log, KILN_LOG_WARN, "credentials are sent without TLS", "exporter", "%s",
                 env->id, "server", "%s", server, NULL);
    return 0;
}

static uint32_t milliseconds(uint64_t ns)
{
    uint64_t ms = ns / KILN_NS_PER_MS;

    return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

static int new_sender(const struct kiln_component_env *env, const struct otlp_settings *s,
                      enum way way, const struct kiln_address *address,
                      struct kiln_sender **ret_sender, struct kiln_err *err)
{
    struct kiln_header headers[KILN_OTLP_HEADERS_MAX + 1];
    bool json = s->encoding && strcmp(s->encoding, "json") == 0;
    struct kiln_otlp_sender_opts opts = {
        .target = {.endpoint = address->server.ptr,
                   .path = address->path.ptr,
                   .protocol = way == GRPC ? "grpc"
                               : json      ? "http/json"
                                           : "http/protobuf",
                   .compression = s->compression && !*s->compression ? "none" : s->compression,
                   .header_list = headers,
                   .ca_file = s->client.tls.ca_file,
                   .cert_file = s->client.tls.cert_file,
                   .key_file = s->client.tls.key_file,
                   .insecure = s->client.tls.insecure_skip_verify,
                   .timeout_ns = s->timeout_ns},
        .level = (int)s->level,
        .request_max = s->request_max,
        .consumers = s->sending.queue.consumers,
        .server_name = s->client.tls.server_name_override,
        .system_ca = s->client.tls.include_system_ca_certs_pool,
        .min_version = s->client.tls.min_version,
        .max_version = s->client.tls.max_version,
        .authority = s->authority && *s->authority ? s->authority : NULL,
        .proxy = s->proxy_url && *s->proxy_url ? s->proxy_url : NULL,
        .cookies = s->cookies,
        .connects_anew = s->disable_keep_alives,
        .ping_after_ms = milliseconds(s->keepalive.time_ns),
        .ping_timeout_ms = milliseconds(s->keepalive.timeout_ns),
        .pings_idle = s->keepalive.permit_without_stream,
    };
    const struct kiln_node *at = s->client.headers;
    struct kiln_header_setting header;
    int r = find_credential(env, s, address->server.ptr, &opts.credential, err);

    if (r < 0)
        return r;
    if (json && env->signal != KILN_SIGNAL_PROFILES)
        return kiln_err_set(err, KILN_E_UNSUPPORTED, "encoding",
                            "Kiln passes this signal on as it came: leave 'encoding: json' out");
    while (opts.target.n_header_list <= KILN_OTLP_HEADERS_MAX &&
           kiln_settings_header(s->client.headers, &at, &header))
        headers[opts.target.n_header_list++] =
            (struct kiln_header){kiln_str_of(header.name), kiln_str_of(header.value)};
    return way == PUSH ? kiln_push_sender_new(&opts, ret_sender, err)
                       : kiln_otlp_sender_new(&opts, ret_sender, err);
}

static int make(const struct kiln_component_env *env, const void *settings, enum way way,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    const struct otlp_settings *s = settings;
    struct kiln_sender *sender = NULL;
    struct kiln_address address;
    int r;

    kiln_address_init(&address);
    r = find_address(env, s, way, &address, err);
    if (r == 0)
        r = new_sender(env, s, way, &address, &sender, err);
    kiln_address_done(&address);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    return kiln_sending_make(env, &s->sending, sender, ret_component, err);
}

static int make_grpc(const struct kiln_component_env *env, const void *settings,
                     struct kiln_component **ret_component, struct kiln_err *err)
{
    return make(env, settings, GRPC, ret_component, err);
}

static int make_http(const struct kiln_component_env *env, const void *settings,
                     struct kiln_component **ret_component, struct kiln_err *err)
{
    return make(env, settings, HTTP, ret_component, err);
}

static int make_push(const struct kiln_component_env *env, const void *settings,
                     struct kiln_component **ret_component, struct kiln_err *err)
{
    return make(env, settings, PUSH, ret_component, err);
}

const struct kiln_component_type kiln_pyroscope_exporter_type = {
    .name = "pyroscope",
    .kind = KILN_EXPORTER,
    .signals = KILN_TAKES_PROFILES,
    .stability = "alpha",
    .settings_size = sizeof(struct otlp_settings),
    .read = read_push,
    .make = make_push,
};

const struct kiln_component_type kiln_otlp_grpc_exporter_type = {
    .name = "otlp_grpc",
    .aliases = "otlp",
    .kind = KILN_EXPORTER,
    .signals = KILN_TAKES_ALL,
    .stability = "stable",
    .settings_size = sizeof(struct otlp_settings),
    .read = read_grpc,
    .make = make_grpc,
};

const struct kiln_component_type kiln_otlp_http_exporter_type = {
    .name = "otlp_http",
    .aliases = "otlphttp",
    .kind = KILN_EXPORTER,
    .signals = KILN_TAKES_ALL,
    .stability = "stable",
    .settings_size = sizeof(struct otlp_settings),
    .read = read_http,
    .make = make_http,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/listen.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "pipeline/gate.h"

enum { OWN_KEYS_MAX = 8, ENDPOINT_MAX = 300 };
/* Defaults of grpc-go's keepalive; and how often it pings at most, whatever it is told. */
enum { PING_AFTER_MS = 7200000, PING_TIMEOUT_MS = 20000, PING_MIN_MS = 300000 };
enum { PING_OFTEN_MS = 1000 };

/* ---- settings ---- */

struct block {
    struct kiln_listen_settings listen;
    const struct kiln_node *tls, *auth, *keepalive, *cors, *server_parameters, *enforcement_policy;
    struct {
        uint64_t number, time_ns;
        const struct kiln_node *texts;
        bool flag;
    } idle; /* what is taken and means nothing */
    uint32_t max_recv_msg_size_mib;
    struct {
        uint64_t idle_ns, age_ns, grace_ns, time_ns, timeout_ns, min_time_ns;
        bool permit_without_stream;
    } life;
};

#define FIELD(key, kind, member)                                                                   \
    {                                                                                              \
        key, KILN_FIELD_##kind, offsetof(struct block, member)                                     \
    }
#define BOTH                                                                                       \
    FIELD("endpoint", TEXT, listen.endpoint), FIELD("transport", TEXT, listen.transport),          \
        FIELD("tls", MAP, tls), FIELD("auth", MAP, auth),                                          \
        FIELD("include_metadata", BOOL, listen.include_metadata)

static const struct kiln_refused_key refused[] = {
    {"middlewares", "there are no extensions of that kind"},
    {"dialer", "a server does not dial"},
};

static const struct kiln_field grpc_fields[] = {
    BOTH,
    FIELD("max_recv_msg_size_mib", COUNT, max_recv_msg_size_mib),
    FIELD("keepalive", MAP, keepalive),
    FIELD("max_concurrent_streams", SIZE, idle.number),
    FIELD("read_buffer_size", SIZE, idle.number),
    FIELD("write_buffer_size", SIZE, idle.number),
};

static const struct kiln_field keepalive_fields[] = {
    FIELD("server_parameters", MAP, server_parameters),
    FIELD("enforcement_policy", MAP, enforcement_policy),
};

static const struct kiln_field server_parameters_fields[] = {
    FIELD("max_connection_idle", DURATION, life.idle_ns),
    FIELD("max_connection_age", DURATION, life.age_ns),
    FIELD("max_connection_age_grace", DURATION, life.grace_ns),
    FIELD("time", DURATION, life.time_ns),
    FIELD("timeout", DURATION, life.timeout_ns),
};

static const struct kiln_field enforcement_policy_fields[] = {
    FIELD("min_time", DURATION, life.min_time_ns),
    FIELD("permit_without_stream", BOOL, life.permit_without_stream),
};

static const struct kiln_field http_fields[] = {
    BOTH,
    FIELD("cors", MAP, cors),
    FIELD("max_request_body_size", SIZE, listen.body_max),
    FIELD("response_headers", NODE, listen.response_headers),
    FIELD("read_timeout", DURATION, listen.read_timeout_ns),
    FIELD("read_header_timeout", DURATION, listen.read_header_timeout_ns),
    FIELD("idle_timeout", DURATION, listen.idle_timeout_ns),
    FIELD("write_timeout", DURATION, idle.time_ns),
    FIELD("compression_algorithms", LIST,
          idle.texts), /* those of OTLP, and zstd, are always taken */
    FIELD("keep_alives_enabled", BOOL, idle.flag),
};

static const struct kiln_field cors_fields[] = {
    FIELD("allowed_origins", NODE, listen.allowed_origins),
    FIELD("allowed_headers", NODE, listen.allowed_headers),
    FIELD("exposed_headers", NODE, listen.exposed_headers),
    FIELD("max_age", SIZE, listen.max_age_s),
};

static int check_transport(const struct kiln_node *node, const struct kiln_listen_settings *listen,
                           struct kiln_err *err)
{
    static const char *const known[] = {"tcp", "tcp4", "tcp6", "unix"};

    for (size_t i = 0; i < KILN_ARRAY_LEN(known); i++)
        if (!listen->transport || strcmp(listen->transport, known[i]) == 0)
            return 0;
    return kiln_node_fail(node, KILN_E_UNSUPPORTED, err,
                          "transport: \"%.20s\" is not known; tcp and unix are", listen->transport);
}

/* What both dialects have. */
static int read_common(const struct kiln_node *node, struct block *block, struct kiln_err *err)
{
    struct kiln_listen_settings *listen = &block->listen;
    int r = kiln_settings_tls_server(block->tls, &listen->tls, err);

    if (r == 0)
        r = kiln_settings_auth(block->auth, &listen->authenticator, err);
    if (r == 0)
        r = check_transport(node, listen, err);
    if (r == 0 && (!listen->endpoint || !*listen->endpoint))
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "endpoint: it is empty");
    return r;
}

/* 0 is grpc-go's default. */
static uint64_t keepalive_ms(uint64_t ns, uint64_t default_ms)
{
    return ns ? (ns - 1) / KILN_NS_PER_MS + 1 : default_ms;
}

static struct kiln_keepalive keepalive_of(const struct block *block)
{
    uint64_t ping_after_ms = keepalive_ms(block->life.time_ns, PING_AFTER_MS);

    return (struct kiln_keepalive){
        .idle_ms = keepalive_ms(block->life.idle_ns, UINT64_MAX),
        .age_ms = keepalive_ms(block->life.age_ns, UINT64_MAX),
        .grace_ms = keepalive_ms(block->life.grace_ns, UINT64_MAX),
        .ping_after_ms = ping_after_ms > PING_OFTEN_MS ? ping_after_ms : PING_OFTEN_MS,
        .ping_timeout_ms = keepalive_ms(block->life.timeout_ns, PING_TIMEOUT_MS),
        .ping_min_ms = keepalive_ms(block->life.min_time_ns, PING_MIN_MS),
        .ping_resting = block->life.permit_without_stream,
    };
}

static int read_keepalive(struct block *block, struct kiln_err *err)
{
    int r = kiln_node_read(block->keepalive, keepalive_fields, KILN_ARRAY_LEN(keepalive_fields),
                           block, err);

    if (r == 0)
        r = kiln_node_read(block->server_parameters, server_parameters_fields,
                           KILN_ARRAY_LEN(server_parameters_fields), block, err);
    if (r == 0)
        r = kiln_node_read(block->enforcement_policy, enforcement_policy_fields,
                           KILN_ARRAY_LEN(enforcement_policy_fields), block, err);
    return r;
}

int kiln_listen_read_grpc(const struct kiln_node *node, struct kiln_listen_settings *ret,
                          struct kiln_err *err)
{
    struct block block = {.listen = *ret};
    int r;

    ret->keepalive = keepalive_of(&block);
    if (!node)
        return 0;
    r = kiln_settings_refuse(node, refused, KILN_ARRAY_LEN(refused), err);
    if (r == 0)
        r = kiln_node_read(node, grpc_fields, KILN_ARRAY_LEN(grpc_fields), &block, err);
    if (r == 0)
        r = read_keepalive(&block, err);
    if (r == 0)
        r = read_common(node, &block, err);
    if (r < 0)
        return r;
    if (block.max_recv_msg_size_mib)
        block.listen.body_max = (uint64_t)block.max_recv_msg_size_mib << 20;
    block.listen.keepalive = keepalive_of(&block);
    *ret = block.listen;
    return 0;
}

static int read_cors(struct block *block, struct kiln_err *err)
{
    int r = kiln_node_read(block->cors, cors_fields, KILN_ARRAY_LEN(cors_fields), block, err);

    if (r == 0)
        r = kiln_settings_texts(block->listen.allowed_origins, err);
    if (r == 0)
        r = kiln_settings_texts(block->listen.allowed_headers, err);
    return r < 0 ? r : kiln_settings_texts(block->listen.exposed_headers, err);
}

/* One member of a map, as if it were the only one. */
static int read_own(const struct kiln_node *node, const struct kiln_node *member,
                    const struct kiln_field *field, void *into, struct kiln_err *err)
{
    struct kiln_node one = *member, map = *node;
    int r;

    one.next = NULL;
    map.first = &one;
    map.n = 1;
    r = kiln_node_read(&map, field, 1, into, err);
    if (r == 0 && (field->kind == KILN_FIELD_MAP || field->kind == KILN_FIELD_LIST ||
                   field->kind == KILN_FIELD_NODE))
        memcpy((char *)into + field->offset, &member, sizeof(member)); /* not our copy of it */
    return r;
}

/* A map of two tables' keys: each is read as if the other's were not there. */
static int read_both(const struct kiln_node *node, struct block *block,
                     const struct kiln_field *fields, uint32_t n, void *into, struct kiln_err *err)
{
    struct kiln_field all[KILN_ARRAY_LEN(http_fields) + OWN_KEYS_MAX];
    uint32_t n_http = KILN_ARRAY_LEN(http_fields);
    struct {
        struct block block;
        const struct kiln_node *own[OWN_KEYS_MAX];
    } both = {.block = *block};
    int r;

    memcpy(all, http_fields, sizeof(http_fields));
    for (uint32_t i = 0; i < n && i < OWN_KEYS_MAX; i++)
        all[n_http + i] = (struct kiln_field){fields[i].key, KILN_FIELD_NODE,
                                              (size_t)((char *)&both.own[i] - (char *)&both)};
    r = kiln_node_read(node, all, n_http + n, &both, err);
    *block = both.block;
    for (uint32_t i = 0; r == 0 && i < n; i++)
        if (both.own[i])
            r = read_own(node, both.own[i], &fields[i], into, err);
    return r;
}

int kiln_listen_read_http(const struct kiln_node *node, const struct kiln_field *fields, uint32_t n,
                          void *into, struct kiln_listen_settings *ret, struct kiln_err *err)
{
    struct block block = {.listen = *ret};
    int r;

    if (!node)
        return 0;
    r = kiln_settings_refuse(node, refused, KILN_ARRAY_LEN(refused), err);
    if (r == 0)
        r = read_both(node, &block, fields, n, into, err);
    if (r == 0)
        r = kiln_settings_headers(block.listen.response_headers, err);
    if (r == 0)
        r = read_cors(&block, err);
    if (r == 0)
        r = read_common(node, &block, err);
    if (r == 0)
        *ret = block.listen;
    return r;
}

static void set_ms(uint64_t ns, uint32_t *ms)
{
    if (ns)
        *ms = ns / KILN_NS_PER_MS < UINT32_MAX ? (uint32_t)(ns / KILN_NS_PER_MS) : UINT32_MAX;
}

void kiln_listen_server_opts(const struct kiln_listen_settings *settings,
                             struct kiln_server_opts *opts)
{
    set_ms(settings->idle_timeout_ns, &opts->idle_timeout_ms);
    set_ms(settings->read_timeout_ns, &opts->request_timeout_ms);
    set_ms(settings->read_header_timeout_ns, &opts->header_timeout_ms);
}

uint32_t kiln_listen_ms_left(uint64_t deadline_ns)
{
    uint64_t now = kiln_clock_mono_ns();
    uint32_t ms = 0;

    set_ms(deadline_ns > now ? deadline_ns - now : 0, &ms);
    return ms;
}

/* ---- answers to browsers ---- */

struct kiln_listen {
    struct kiln_listen_settings settings;
    struct kiln_router *router;
    struct kiln_sockets *sockets;
    struct kiln_log *log;
    char owner[100]; /* "receivers::otlp" */
    char endpoint[ENDPOINT_MAX];
    struct kiln_origin_policy origin; /* without an authenticator */
    struct kiln_buf headers, exposed; /* joined by commas */
    char max_age[24];
};

/* One star stands for anything. */
static bool matches(struct kiln_str pattern, struct kiln_str origin)
{
    struct kiln_str before = kiln_str_cut(&pattern, '*');

    if (!pattern.ptr)
        return kiln_str_eq(before, origin);
    return origin.len >= before.len + pattern.len && kiln_str_starts(origin, before) &&
           kiln_str_ends(origin, pattern);
}

static bool is_allowed(const struct kiln_listen *listen, struct kiln_str origin)
{
    struct kiln_str pattern;

    for (struct kiln_texts at = {.node = listen->settings.allowed_origins};
         kiln_texts_next(&at, &pattern);)
        if (matches(pattern, origin))
            return true;
    return false;
}

static void add_header(struct kiln_reply *reply, struct kiln_str name, struct kiln_str value)
{
    if (reply->n_headers < KILN_REPLY_HEADERS)
        reply->headers[reply->n_headers++] = (struct kiln_header){name, value};
}

static void dress(void *context, const struct kiln_request *request, struct kiln_reply *reply)
{
    const struct kiln_listen *listen = context;
    const struct kiln_node *node = listen->settings.response_headers, *at = node;
    struct kiln_str origin = kiln_request_header(request, "origin");
    struct kiln_header_setting header;

    while (kiln_settings_header(node, &at, &header))
        add_header(reply, kiln_str_of(header.name), kiln_str_of(header.value));
    if (!origin.len || !is_allowed(listen, origin))
        return;
    add_header(reply, KILN_STR("access-control-allow-origin"), origin);
    add_header(reply, KILN_STR("access-control-allow-credentials"), KILN_STR("true"));
    add_header(reply, KILN_STR("vary"), KILN_STR("Origin"));
    if (listen->exposed.len && !kiln_str_eq(request->method, KILN_STR("OPTIONS")))
        add_header(reply, KILN_STR("access-control-expose-headers"),
                   kiln_buf_str(&listen->exposed));
}

struct kiln_origin_policy kiln_listen_origin(const char *address)
{
    return (struct kiln_origin_policy){
        .any_host = kiln_gate_check_listen(address, false, false, NULL) < 0,
        .programs_write = true,
        .host_text = "this port is for programs of this host: use localhost or an IP address\n"};
}

/* Pages of other origins may do what CORS allows, and nothing else. */
static int check_origin(void *context, struct kiln_request *request, enum kiln_access access,
                        struct kiln_reply *reply)
{
    const struct kiln_listen *listen = context;
    struct kiln_str origin = kiln_request_header(request, "origin");

    if (access == KILN_ACCESS_NONE || (origin.len && is_allowed(listen, origin)))
        return 0;
    return kiln_origin_admit(&listen->origin, request, access, reply);
}

static void preflight(struct kiln_request *request)
{
    const struct kiln_listen *listen = request->context;
    struct kiln_str origin = kiln_request_header(request, "origin");
    struct kiln_reply reply = {.status = 204};

    if (is_allowed(listen, origin)) {
        add_header(&reply, KILN_STR("access-control-allow-methods"), KILN_STR("POST"));
        add_header(&reply, KILN_STR("access-control-allow-headers"),
                   kiln_buf_str(&listen->headers));
        if (listen->settings.max_age_s)
            add_header(&reply, KILN_STR("access-control-max-age"), kiln_str_of(listen->max_age));
    }
    kiln_request_reply(request, &reply);
}

int kiln_listen_preflight(struct kiln_listen *listen, const char *path)
{
    if (!listen->settings.allowed_origins)
        return 0;
    return kiln_router_add(listen->router, &(struct kiln_route){.method = "OPTIONS",
                                                                .path = path,
                                                                .handler = preflight,
                                                                .context = listen});
}

/* ---- listening ---- */

static void join(const struct kiln_node *node, struct kiln_buf *out)
{
    struct kiln_str text;

    for (struct kiln_texts at = {.node = node}; kiln_texts_next(&at, &text);) {
        if (out->len)
            kiln_buf_puts(out, ", ");
        kiln_buf_add_str(out, text);
    }
}

static int set_up(struct kiln_listen *listen, const struct kiln_component_env *env,
                  enum kiln_component_kind kind, struct kiln_err *err)
{
    const struct kiln_listen_settings *s = &listen->settings;
    bool is_unix = s->transport && strcmp(s->transport, "unix") == 0;
    struct kiln_auth *auth;
    int r = kiln_auth_find(env->graph, s->authenticator, KILN_AUTH_SERVER, &auth, err);

    if (r < 0)
        return r;
    snprintf(listen->owner, sizeof(listen->owner), "%s::%s", kiln_component_section_names[kind],
             env->id);
    snprintf(listen->endpoint, sizeof(listen->endpoint), "%s%s",
             is_unix && strncmp(s->endpoint, "unix:", 5) != 0 ? "unix:" : "", s->endpoint);
    snprintf(listen->max_age, sizeof(listen->max_age), "%llu", (unsigned long long)s->max_age_s);
    /* A browser must say what OTLP is sent with. */
    kiln_buf_puts(&listen->headers, "Content-Type, Content-Encoding");
    join(s->allowed_headers, &listen->headers);
    join(s->exposed_headers, &listen->exposed);
    r = listen->headers.error ? listen->headers.error : listen->exposed.error;
    if (r == 0)
        r = kiln_router_new(&listen->router);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    listen->origin = kiln_listen_origin(listen->endpoint);
    kiln_router_guard(listen->router,
                      auth ? kiln_auth_guard(auth)
                           : (struct kiln_guard){.check = check_origin, .context = listen});
    if (s->allowed_origins || s->response_headers)
        kiln_router_dress(listen->router, dress, listen);
    return 0;
}

int kiln_listen_new(const struct kiln_component_env *env, enum kiln_component_kind kind,
                    const struct kiln_listen_settings *settings, struct kiln_listen **ret_listen,
                    struct kiln_err *err)
{
    struct kiln_listen *listen = kiln_calloc(1, sizeof(*listen));
    int r;

    if (!listen)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    listen->settings = *settings;
    listen->sockets = env->sockets;
    listen->log = env->log;
    kiln_buf_init(&listen->headers, 64 << 10);
    kiln_buf_init(&listen->exposed, 64 << 10);
    r = set_up(listen, env, kind, err);
    if (r < 0) {
        kiln_listen_free(listen);
        return r;
    }
    *ret_listen = listen;
    return 0;
}

void kiln_listen_free(struct kiln_listen *listen)
{
    if (!listen)
        return;
    kiln_router_free(listen->router);
    kiln_buf_done(&listen->headers);
    kiln_buf_done(&listen->exposed);
    kiln_free(listen);
}

struct kiln_router *kiln_listen_router(struct kiln_listen *listen)
{
    return listen->router;
}

void kiln_listen_warn_open(struct kiln_log *log, const char *name, const char *address)
{
    if (kiln_gate_check_listen(address, false, false, NULL) < 0)
        kiln_log(log, KILN_LOG_WARN,
                 "everybody who can reach this address is let in: nobody is asked who he is", "for",
                 "%s", name, "address", "%s", address, NULL);
}

int kiln_listen_on(struct kiln_listen *listen, struct kiln_server *server, const char *what,
                   struct kiln_err *err)
{
    struct kiln_listen_opts opts = {.address = listen->endpoint,
                                    .router = listen->router,
                                    .tls = kiln_settings_tls_opts(&listen->settings.tls),
                                    .keepalive = listen->settings.keepalive,
                                    .sockets = listen->sockets};
    char name[120];
    int r;

    snprintf(name, sizeof(name), "%s%s%s", listen->owner, *what ? "::" : "", what);
    opts.name = name;
    r = kiln_server_listen(server, &opts, NULL, err);
    if (r == 0 && !listen->settings.authenticator && !listen->settings.tls.client_ca_file)
        kiln_listen_warn_open(listen->log, name, listen->endpoint);
    return r;
}

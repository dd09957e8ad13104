/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP over gRPC and HTTP.  One server has both listeners, and each takes what the other does: they
 * differ in limits, certificates and who may come in.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collector/listen.h"
#include "collector/registry.h"
#include "net/rpc.h"
#include "pipeline/receivers.h"

#define BODY_MAX  ((uint64_t)64 << 20)
#define QUEUE_MAX 65536u /* requests: the pool bounds them before */

enum { GRPC, HTTP, PROTOCOLS };

static const char *const protocol_names[PROTOCOLS] = {"grpc", "http"};
static const char *const default_paths[KILN_SIGNALS] = {"/v1development/profiles", "/v1/traces",
                                                        "/v1/metrics", "/v1/logs"};

struct otlp_settings {
    const struct kiln_node *protocols;
    bool on[PROTOCOLS];
    struct kiln_listen_settings listen[PROTOCOLS];
    bool shared;                     /* both are at the address of HTTP */
    const char *paths[KILN_SIGNALS]; /* NULL: only the usual ones */
};

/* ---- settings ---- */

static const struct kiln_field own_http_fields[KILN_SIGNALS] = {
    {"profiles_url_path", KILN_FIELD_TEXT, KILN_SIGNAL_PROFILES * sizeof(char *)},
    {"traces_url_path", KILN_FIELD_TEXT, KILN_SIGNAL_TRACES * sizeof(char *)},
    {"metrics_url_path", KILN_FIELD_TEXT, KILN_SIGNAL_METRICS * sizeof(char *)},
    {"logs_url_path", KILN_FIELD_TEXT, KILN_SIGNAL_LOGS * sizeof(char *)},
};

static int read_protocols(const struct kiln_node *node, struct otlp_settings *s,
                          struct kiln_err *err)
{
    struct {
        const struct kiln_node *node[PROTOCOLS];
    } maps = {0};
    static const struct kiln_field fields[PROTOCOLS] = {
        {"grpc", KILN_FIELD_MAP, 0},
        {"http", KILN_FIELD_MAP, sizeof(struct kiln_node *)},
    };
    int r = kiln_node_read(s->protocols, fields, KILN_ARRAY_LEN(fields), &maps, err);

    for (int i = 0; r == 0 && i < PROTOCOLS; i++)
        s->on[i] = kiln_settings_has(s->protocols, protocol_names[i]);
    if (r == 0 && !s->on[GRPC] && !s->on[HTTP]) {
        const char *text = "must specify at least one protocol when using the OTLP receiver "
                           "(protocols: {grpc: , http: })";

        return node ? kiln_node_fail(node, KILN_E_MALFORMED, err, "%s", text)
                    : kiln_err_set(err, KILN_E_MALFORMED, NULL, "%s", text);
    }
    if (r == 0)
        r = kiln_listen_read_grpc(maps.node[GRPC], &s->listen[GRPC], err);
    if (r == 0)
        r = kiln_listen_read_http(maps.node[HTTP], own_http_fields, KILN_SIGNALS, s->paths,
                                  &s->listen[HTTP], err);
    return r;
}

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Port 0 is another one each time. */
static bool is_same_place(const struct kiln_listen_settings *a,
                          const struct kiln_listen_settings *b)
{
    return same(a->endpoint, b->endpoint) && same(a->transport, b->transport) &&
           !kiln_str_ends(kiln_str_of(a->endpoint), KILN_STR(":0"));
}

/* Two protocols at one address are one listener, which knows both. */
static int share(struct otlp_settings *s, const struct kiln_node *node, struct kiln_err *err)
{
    const struct kiln_listen_settings *grpc = &s->listen[GRPC];
    struct kiln_listen_settings *http = &s->listen[HTTP];

    if (!s->on[GRPC] || !s->on[HTTP] || !is_same_place(grpc, http))
        return 0;
    if (!same(grpc->authenticator, http->authenticator) ||
        !same(grpc->tls.cert_file, http->tls.cert_file) ||
        !same(grpc->tls.key_file, http->tls.key_file) ||
        !same(grpc->tls.client_ca_file, http->tls.client_ca_file))
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "grpc and http at one endpoint need the same tls and auth");
    s->shared = true;
    http->keepalive = grpc->keepalive;
    http->include_metadata |= grpc->include_metadata;
    if (http->body_max < grpc->body_max)
        http->body_max = grpc->body_max;
    return 0;
}

static int read(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"protocols", KILN_FIELD_MAP, offsetof(struct otlp_settings, protocols)},
    };
    struct otlp_settings *s = settings;
    int r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), s, err);

    s->listen[GRPC] =
        (struct kiln_listen_settings){.endpoint = "localhost:4317", .body_max = BODY_MAX};
    s->listen[HTTP] =
        (struct kiln_listen_settings){.endpoint = "localhost:4318", .body_max = BODY_MAX};
    if (r == 0)
        r = read_protocols(node, s, err);
    return r < 0 ? r : share(s, s->protocols, err);
}

static bool listens(const struct otlp_settings *s, int protocol)
{
    return s->on[protocol] && !(s->shared && protocol == GRPC);
}

/* ---- the receiver ---- */

struct otlp {
    struct kiln_component component; /* first */
    const struct otlp_settings *settings;
    struct kiln_server *server;
    struct kiln_listen *listen[PROTOCOLS];
    struct kiln_receivers *receivers[PROTOCOLS];
};

static int no_memory(struct kiln_err *err)
{
    return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
}

static int start(struct kiln_component *component, struct kiln_err *err)
{
    struct otlp *otlp = (struct otlp *)component;
    int r = 0;

    for (int i = 0; r == 0 && i < PROTOCOLS; i++)
        if (otlp->listen[i])
            r = kiln_listen_on(otlp->listen[i], otlp->server, protocol_names[i], err);
    return r < 0 ? r : kiln_server_start(otlp->server, err);
}

static void stop(struct kiln_component *component, uint64_t deadline_ns)
{
    struct otlp *otlp = (struct otlp *)component;

    kiln_server_stop(otlp->server, kiln_listen_ms_left(deadline_ns));
}

static void destroy(struct kiln_component *component)
{
    struct otlp *otlp = (struct otlp *)component;

    kiln_server_free(otlp->server);
    for (int i = 0; i < PROTOCOLS; i++) {
        kiln_listen_free(otlp->listen[i]);
        kiln_receivers_free(otlp->receivers[i]);
    }
    kiln_free(otlp);
}

static int add_routes(struct otlp *otlp, int protocol)
{
    struct kiln_listen *listen = otlp->listen[protocol];
    struct kiln_router *router = kiln_listen_router(listen);
    int r = kiln_otlp_receiver_add(otlp->receivers[protocol], router);

    for (int signal = 0; r == 0 && signal < KILN_SIGNALS; signal++) {
        const char *path = protocol == HTTP ? otlp->settings->paths[signal] : NULL;

        r = kiln_listen_preflight(listen, path ? path : default_paths[signal]);
        if (r == 0 && path && strcmp(path, default_paths[signal]) != 0)
            r = kiln_otlp_receiver_add_path(otlp->receivers[protocol], router,
                                            (enum kiln_signal)signal, path);
    }
    kiln_router_fallback(router, kiln_rpc_unknown, NULL);
    return r;
}

static int make_protocol(struct otlp *otlp, const struct kiln_component_env *env, int protocol,
                         struct kiln_err *err)
{
    const struct kiln_listen_settings *s = &otlp->settings->listen[protocol];
    struct kiln_receivers_opts opts = {.next = env->next[KILN_SIGNAL_PROFILES],
                                       .pipelines = true,
                                       .pool = env->pool,
                                       .waits = true,
                                       .include_metadata = s->include_metadata,
                                       .authenticated = s->authenticator != NULL,
                                       .content_max = s->body_max,
                                       .body_max = s->body_max,
                                       .metrics = env->metrics,
                                       .log = env->log};
    int r = kiln_listen_new(env, KILN_RECEIVER, s, &otlp->listen[protocol], err);

    for (int signal = KILN_SIGNAL_TRACES; signal < KILN_SIGNALS; signal++)
        opts.others[signal] = env->next[signal];
    if (r < 0)
        return r;
    r = kiln_receivers_new(&opts, &otlp->receivers[protocol]);
    if (r == 0)
        r = add_routes(otlp, protocol);
    return r < 0 ? no_memory(err) : 0;
}

static int make_server(struct otlp *otlp, const struct kiln_component_env *env,
                       struct kiln_err *err)
{
    struct kiln_server_opts opts = {.long_workers = 1,
                                    .queue_max = QUEUE_MAX,
                                    .pool = env->pool,
                                    .waits = true,
                                    .metrics = env->metrics,
                                    .log = env->log};

    for (int i = 0; i < PROTOCOLS; i++)
        if (otlp->settings->on[i])
            kiln_listen_server_opts(&otlp->settings->listen[i], &opts);
    return kiln_server_new(&opts, &otlp->server) < 0 ? no_memory(err) : 0;
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.start = start, .stop = stop, .free = destroy};
    struct otlp *otlp = kiln_calloc(1, sizeof(*otlp));
    int r;

    if (!otlp)
        return no_memory(err);
    otlp->component.ops = &ops;
    otlp->settings = settings;
    r = make_server(otlp, env, err);
    for (int i = 0; r == 0 && i < PROTOCOLS; i++)
        if (listens(otlp->settings, i))
            r = make_protocol(otlp, env, i, err);
    if (r < 0) {
        destroy(&otlp->component);
        return r;
    }
    *ret_component = &otlp->component;
    return 0;
}

const struct kiln_component_type kiln_otlp_receiver_type = {
    .name = "otlp",
    .kind = KILN_RECEIVER,
    .signals = KILN_TAKES_ALL,
    .stability = "stable",
    .settings_size = sizeof(struct otlp_settings),
    .read = read,
    .make = make,
};

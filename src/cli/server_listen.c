/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of the server: everything on its own port and on the Unix socket, OTLP alone on
 * the two ports where OTLP clients look for it and on a Unix socket for every user of the host,
 * whose peers have no more rights than those of the ports: the agent sends there, because it can
 * check which user listens.
 */
#include <errno.h>
#include <stdio.h>

#include "api/api.h"
#include "cli/daemon.h"
#include "cli/serve.h"
#include "net/problem.h"
#include "net/rpc.h"
#include "store/admin.h"

/* Paths that are not there are told of in the words of whoever may ask for them. */
static int make_router(struct kiln_serve *serve, struct kiln_router **ret_router,
                       void (*unknown)(struct kiln_request *request))
{
    int r = kiln_router_new(ret_router);

    if (r < 0)
        return r;
    kiln_router_guard(*ret_router, kiln_gate_guard(serve->gate));
    kiln_router_fallback(*ret_router, unknown, NULL);
    return 0;
}

int kiln_serve_routes(struct kiln_serve *serve, struct kiln_err *err)
{
    struct kiln_store_admin_opts admin = {.engine = serve->engine,
                                          .io = serve->io,
                                          .gate = serve->gate,
                                          .backup_dir = serve->config->set.backup_dir,
                                          .export_bytes = serve->memory.query.limit / 10 * 3,
                                          .pool = &serve->memory.query,
                                          .log = serve->log};
    int r = kiln_otlp_receiver_add(serve->receivers, serve->otlp);

    if (r == 0)
        r = kiln_api_add_link(&serve->api, serve->otlp);
    if (r == 0)
        r = kiln_otlp_receiver_add(serve->receivers, serve->full);
    if (r == 0)
        r = kiln_pyroscope_receiver_add(serve->receivers, serve->full);
    if (r == 0)
        r = kiln_pprof_receiver_add(serve->receivers, serve->full);
    if (r == 0)
        r = kiln_serve_pages(serve, serve->full);
    if (r == 0)
        r = kiln_api_add_page(NULL, serve->full);
    if (r == 0)
        r = kiln_serve_query_routes(serve);
    if (r == 0)
        r = kiln_store_admin_add(serve->full, &admin);
    kiln_router_translate(serve->full, kiln_problem_translate);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

struct listener {
    const char *option, *what, *address;
    struct kiln_router *router;
    uint16_t *port;
};

static int bind_port(struct kiln_serve *serve, const struct listener *l, struct kiln_err *err)
{
    const struct kiln_settings *set = &serve->config->set;
    struct kiln_listen_opts opts = {
        .address = l->address,
        .router = l->router,
        .tls.cert_file = set->tls_cert,
        .tls.key_file = set->tls_key,
        .tls.client_ca_file = set->tls_client_ca,
    };
    char port[8];
    int r;

    if (!kiln_settings_on(l->address))
        return 0;
    r = kiln_server_listen(serve->server, &opts, l->port, err);
    if (r == -EADDRINUSE && err) {
        *err = (struct kiln_err){0};
        return kiln_err_set(err, r, l->address,
                            "another program listens there already (say --%s ADDRESS, or off)",
                            l->option);
    }
    if (r < 0)
        return r;
    snprintf(port, sizeof(port), "%u", *l->port);
    kiln_log(serve->log, KILN_LOG_INFO, "listening", "for", "%s", l->what, "address", "%s",
             l->address, "port", "%s", port, "tls", "%s", set->tls_cert ? "yes" : "no", NULL);
    return 0;
}

struct socket {
    const char *what, *path, *default_path;
    struct kiln_router *router;
    bool for_every_user;
};

/* The socket that nobody asked for may be missing; one that was asked for may not. */
static int bind_socket(struct kiln_serve *serve, const struct socket *s, bool *ret_on,
                       struct kiln_err *err)
{
    const char *path = s->path;
    struct kiln_err why = {0};
    char address[PATH_MAX + 8];
    int r;

    *ret_on = false;
    if (!kiln_settings_on(path))
        return 0;
    snprintf(address, sizeof(address), "unix:%s", path);
    r = kiln_daemon_listen_socket(serve->server, s->router, path, s->for_every_user, &why);
    *ret_on = r == 0;
    if (r == 0) {
        kiln_log(serve->log, KILN_LOG_INFO, "listening", "for", "%s", s->what, "address", "%s",
                 address, NULL);
    } else if (strcmp(path, s->default_path) == 0) {
        kiln_log(serve->log, KILN_LOG_WARN, "no local socket", "path", "%s", path, "reason", "%s",
                 why.text, NULL);
    } else {
        if (err)
            *err = why;
        return r;
    }
    return 0;
}

static int bind_all(struct kiln_serve *serve, struct kiln_err *err)
{
    const struct kiln_settings *set = &serve->config->set;
    const struct listener listeners[] = {
        {"listen", "everything", set->listen, serve->full, &serve->ports.http},
        {"otlp-grpc", "OTLP", set->otlp_grpc, serve->otlp, &serve->ports.otlp_grpc},
        {"otlp-http", "OTLP", set->otlp_http, serve->otlp, &serve->ports.otlp_http},
    };
    const struct socket own = {"everything", set->socket, serve->config->default_socket,
                               serve->full, false};
    const struct socket otlp = {"OTLP", set->otlp_socket, serve->config->default_otlp_socket,
                                serve->otlp, true};
    bool otlp_on;
    int r;

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(listeners); i++) {
        r = bind_port(serve, &listeners[i], err);
        if (r < 0)
            return r;
    }
    r = bind_socket(serve, &own, &serve->socket_on, err);
    return r < 0 ? r : bind_socket(serve, &otlp, &otlp_on, err);
}

int kiln_serve_listen(struct kiln_serve *serve, struct kiln_err *err)
{
    int r = kiln_serve_pages_starting(serve, &serve->starting);

    if (r == 0)
        r = make_router(serve, &serve->otlp, kiln_rpc_unknown);
    if (r == 0)
        r = make_router(serve, &serve->full, kiln_problem_unknown);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    return bind_all(serve, err);
}

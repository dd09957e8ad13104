/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen - the settings of a server as the Collector writes them, and a listener made of them.
 *
 * There are two dialects, of gRPC servers and of HTTP servers.  Keys that tune what works by itself
 * here (buffers, streams) are taken and mean nothing.
 *
 * Threads: those of net/server.h.
 */
#ifndef KILN_COLLECTOR_LISTEN_H
#define KILN_COLLECTOR_LISTEN_H

#include "collector/auth.h"
#include "collector/component.h"
#include "collector/settings.h"
#include "net/origin.h"

struct kiln_listen_settings {
    const char *endpoint;  /* set to the default before reading */
    const char *transport; /* "tcp", "unix" */
    struct kiln_tls_settings tls;
    const char *authenticator;       /* NULL: none */
    bool include_metadata;           /* processors may see headers of requests */
    uint64_t body_max;               /* set to the default before reading */
    struct kiln_keepalive keepalive; /* of gRPC; zero: the server's */
    uint64_t idle_timeout_ns, read_timeout_ns, read_header_timeout_ns; /* 0: the server's */
    const struct kiln_node *response_headers;
    /* CORS; NULL: none */
    const struct kiln_node *allowed_origins, *allowed_headers, *exposed_headers;
    uint64_t max_age_s;
};

KILN_CHECK int kiln_listen_read_grpc(const struct kiln_node *node, struct kiln_listen_settings *ret,
                                     struct kiln_err *err);
/* `fields` are keys of the component's own in the same map, read into `into`. */
KILN_CHECK int kiln_listen_read_http(const struct kiln_node *node, const struct kiln_field *fields,
                                     uint32_t n, void *into, struct kiln_listen_settings *ret,
                                     struct kiln_err *err);

/* What a server has left until `deadline_ns` (CLOCK_MONOTONIC). */
uint32_t kiln_listen_ms_left(uint64_t deadline_ns);

/* What a server gets of them. */
void kiln_listen_server_opts(const struct kiln_listen_settings *settings,
                             struct kiln_server_opts *opts);

/* A router whose answers are dressed and whose requests are let in as the settings want it. */
struct kiln_listen;
KILN_CHECK int kiln_listen_new(const struct kiln_component_env *env, enum kiln_component_kind kind,
                               const struct kiln_listen_settings *settings,
                               struct kiln_listen **ret_listen, struct kiln_err *err);
void kiln_listen_free(struct kiln_listen *listen); /* after the server */
struct kiln_router *kiln_listen_router(struct kiln_listen *listen);
/* Answers a browser that asks whether a page may post to this path, where CORS is on. */
KILN_CHECK int kiln_listen_preflight(struct kiln_listen *listen, const char *path);
/*
 * What is accepted at an address without authentication: at loopback only requests for localhost
 * and IP addresses (net/origin.h), elsewhere any host name; of pages of other sites, nothing.
 */
struct kiln_origin_policy kiln_listen_origin(const char *address);
/* Warns where strangers can reach an address: neither loopback nor a Unix socket. */
void kiln_listen_warn_open(struct kiln_log *log, const char *name, const char *address);
/*
 * Has the server listen; `what` tells listeners of one component apart ("grpc").  Where everybody
 * is let in, without authenticator and without a certificate of his own, the log says so.
 */
KILN_CHECK int kiln_listen_on(struct kiln_listen *listen, struct kiln_server *server,
                              const char *what, struct kiln_err *err);

#endif /* KILN_COLLECTOR_LISTEN_H */

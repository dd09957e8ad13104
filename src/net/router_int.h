/* SPDX-License-Identifier: Apache-2.0 */
/* router_int - what the server asks of a router. */
#ifndef KILN_NET_ROUTER_INT_H
#define KILN_NET_ROUTER_INT_H

#include "base/mem.h"
#include "net/server.h"

struct kiln_router_entry {
    struct kiln_route route; /* method and path belong to the entry */
    struct kiln_str match;   /* the path without its "*" */
    bool prefix;
};

struct kiln_router {
    struct kiln_router_entry *entries;
    uint32_t n_entries, cap_entries;
    struct kiln_budget budget; /* routes are ours: it only bounds their number */
    struct kiln_route fallback;
    struct kiln_guard guard;
    void (*translate)(const struct kiln_request *request, struct kiln_reply *reply,
                      struct kiln_buf *scratch);
    void (*dress)(void *context, const struct kiln_request *request, struct kiln_reply *reply);
    void *dress_context;
};

/*
 * The route of a request, with *ret_rest what its "*" matched.  NULL and 404, or 405: then `allow`
 * gets the methods that the path has.
 */
const struct kiln_route *kiln_router_find(const struct kiln_router *router, struct kiln_str method,
                                          struct kiln_str path, struct kiln_str *ret_rest,
                                          int *ret_status);

/* "GET, HEAD, POST": what a path with no such method has. */
void kiln_router_allow(const struct kiln_router *router, struct kiln_str path,
                       struct kiln_buf *out);

#endif /* KILN_NET_ROUTER_INT_H */

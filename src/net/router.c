/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes are few (dozens), so that a scan over all of them is quicker than anything clever.  The
 * path decides first, then the method: a longer path that lacks the method is 405, although a
 * shorter "*" would have it.
 */
#include <errno.h>

#include "base/mem.h"
#include "net/router_int.h"

#define ROUTES_MAX 4096u

int kiln_router_new(struct kiln_router **ret_router)
{
    struct kiln_router *router = kiln_calloc(1, sizeof(*router));

    if (!router)
        return -ENOMEM;
    router->budget.limit = SIZE_MAX;
    *ret_router = router;
    return 0;
}

static void entry_done(struct kiln_router_entry *entry)
{
    kiln_free((char *)entry->route.method);
    kiln_free((char *)entry->route.path);
}

void kiln_router_free(struct kiln_router *router)
{
    if (!router)
        return;
    for (uint32_t i = 0; i < router->n_entries; i++) {
        struct kiln_route *route = &router->entries[i].route;

        if (route->done)
            route->done(route->context);
        entry_done(&router->entries[i]);
    }
    kiln_array_free(&router->budget, (void **)&router->entries, &router->cap_entries,
                    sizeof(*router->entries));
    kiln_free(router);
}

static char *copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *mine = kiln_malloc(size);

    if (mine)
        memcpy(mine, text, size);
    return mine;
}

int kiln_router_add(struct kiln_router *router, const struct kiln_route *route)
{
    struct kiln_router_entry entry = {.route = *route};
    int r = kiln_grow(&router->budget, (void **)&router->entries, &router->cap_entries,
                      router->n_entries + 1, sizeof(entry), ROUTES_MAX);

    if (r < 0)
        return r;
    entry.route.path = copy(route->path);
    entry.route.method = route->method ? copy(route->method) : NULL;
    if (!entry.route.path || (route->method && !entry.route.method)) {
        entry_done(&entry);
        return -ENOMEM;
    }
    entry.match = kiln_str_of(entry.route.path);
    entry.prefix = kiln_str_ends(entry.match, KILN_STR("*"));
    entry.match.len -= entry.prefix;
    router->entries[router->n_entries++] = entry;
    return 0;
}

void kiln_router_fallback(struct kiln_router *router, void (*handler)(struct kiln_request *request),
                          void *context)
{
    router->fallback = (struct kiln_route){.handler = handler, .context = context};
}

void kiln_router_guard(struct kiln_router *router, struct kiln_guard guard)
{
    router->guard = guard;
}

void kiln_router_translate(struct kiln_router *router,
                           void (*translate)(const struct kiln_request *request,
                                             struct kiln_reply *reply, struct kiln_buf *scratch))
{
    router->translate = translate;
}

void kiln_router_dress(struct kiln_router *router,
                       void (*dress)(void *context, const struct kiln_request *request,
                                     struct kiln_reply *reply),
                       void *context)
{
    router->dress = dress;
    router->dress_context = context;
}

/* How well a path fits: 0 not at all, else more for a longer prefix, most for all of it. */
static size_t fit(const struct kiln_router_entry *entry, struct kiln_str path)
{
    if (!entry->prefix)
        return kiln_str_eq(entry->match, path) ? SIZE_MAX : 0;
    return kiln_str_starts(path, entry->match) ? entry->match.len + 1 : 0;
}

static size_t best_fit(const struct kiln_router *router, struct kiln_str path)
{
    size_t best = 0;

    for (uint32_t i = 0; i < router->n_entries; i++) {
        size_t n = fit(&router->entries[i], path);

        best = n > best ? n : best;
    }
    return best;
}

static bool takes(const struct kiln_route *route, struct kiln_str method)
{
    if (!route->method || kiln_str_eq(kiln_str_of(route->method), method))
        return true;
    return kiln_str_eq(method, KILN_STR("HEAD")) && strcmp(route->method, "GET") == 0;
}

const struct kiln_route *kiln_router_find(const struct kiln_router *router, struct kiln_str method,
                                          struct kiln_str path, struct kiln_str *ret_rest,
                                          int *ret_status)
{
    size_t best = best_fit(router, path);

    for (uint32_t i = 0; best && i < router->n_entries; i++) {
        const struct kiln_router_entry *entry = &router->entries[i];

        if (fit(entry, path) != best || !takes(&entry->route, method))
            continue;
        *ret_rest = entry->prefix ? (struct kiln_str){path.ptr + entry->match.len,
                                                      path.len - entry->match.len}
                                  : KILN_STR_NONE;
        return &entry->route;
    }
    if (!best && router->fallback.handler) {
        *ret_rest = KILN_STR_NONE;
        return &router->fallback;
    }
    *ret_status = best ? 405 : 404;
    return NULL;
}

void kiln_router_allow(const struct kiln_router *router, struct kiln_str path, struct kiln_buf *out)
{
    size_t best = best_fit(router, path);

    for (uint32_t i = 0; best && i < router->n_entries; i++) {
        const struct kiln_router_entry *entry = &router->entries[i];

        if (fit(entry, path) != best)
            continue;
        kiln_buf_puts(out, out->len ? ", " : "");
        kiln_buf_puts(out, entry->route.method);
        if (strcmp(entry->route.method, "GET") == 0)
            kiln_buf_puts(out, ", HEAD");
    }
}

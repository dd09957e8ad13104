/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "net/router_int.h"
#include "test.h"

static void nothing(struct kiln_request *request)
{
    (void)request;
}

static void add(struct kiln_router *router, const char *method, const char *path, char *name)
{
    CHECK_OK(kiln_router_add(
        router,
        &(struct kiln_route){.method = method, .path = path, .handler = nothing, .context = name}));
}

/* "name" or "name:rest" of the route found, or the status. */
static const char *find(const struct kiln_router *router, const char *method, const char *path)
{
    static char text[128];
    struct kiln_str rest = KILN_STR_NONE;
    int status = 0;
    const struct kiln_route *route =
        kiln_router_find(router, kiln_str_of(method), kiln_str_of(path), &rest, &status);

    if (!route)
        snprintf(text, sizeof(text), "%d", status);
    else
        snprintf(text, sizeof(text), "%s%s%.*s", (char *)route->context, rest.ptr ? ":" : "",
                 KILN_STR_ARG(rest));
    return text;
}

TEST(router, the_whole_path_wins_then_the_longest_star)
{
    struct kiln_router *router;

    CHECK_OK(kiln_router_new(&router));
    add(router, "GET", "/*", "page");
    add(router, "GET", "/api/*", "api");
    add(router, "GET", "/api/x", "x");
    add(router, "POST", "/api/x", "post x");
    add(router, NULL, "/any", "any");
    CHECK_TEXT(find(router, "GET", "/api/x"), "x");
    CHECK_TEXT(find(router, "POST", "/api/x"), "post x");
    CHECK_TEXT(find(router, "GET", "/api/xy"), "api:xy");
    CHECK_TEXT(find(router, "GET", "/api/"), "api:");
    CHECK_TEXT(find(router, "GET", "/api"), "page:api");
    CHECK_TEXT(find(router, "DELETE", "/any"), "any");
    kiln_router_free(router);
}

TEST(router, head_is_get)
{
    struct kiln_router *router;

    CHECK_OK(kiln_router_new(&router));
    add(router, "GET", "/a", "a");
    add(router, "POST", "/b", "b");
    CHECK_TEXT(find(router, "HEAD", "/a"), "a");
    CHECK_TEXT(find(router, "HEAD", "/b"), "405");
    kiln_router_free(router);
}

TEST(router, a_path_without_the_method_says_which_it_has)
{
    struct kiln_router *router;
    struct kiln_buf allow;

    kiln_buf_init(&allow, 100);
    CHECK_OK(kiln_router_new(&router));
    add(router, "GET", "/*", "page");
    add(router, "PUT", "/a", "a");
    add(router, "GET", "/b", "b");
    add(router, "POST", "/b", "b");
    CHECK_TEXT(find(router, "GET", "/a"), "405");
    kiln_router_allow(router, KILN_STR("/a"), &allow);
    CHECK_STR(kiln_buf_str(&allow), "PUT");
    kiln_buf_clear(&allow);
    kiln_router_allow(router, KILN_STR("/b"), &allow);
    CHECK_STR(kiln_buf_str(&allow), "GET, HEAD, POST");
    kiln_buf_done(&allow);
    kiln_router_free(router);
}

static int n_done;

static void count(void *context)
{
    (void)context;
    n_done++;
}

TEST(router, frees_the_contexts_of_its_routes)
{
    struct kiln_router *router;
    const struct kiln_route route = {.path = "/", .handler = nothing, .done = count};

    n_done = 0;
    CHECK_OK(kiln_router_new(&router));
    CHECK_OK(kiln_router_add(router, &route));
    CHECK_OK(kiln_router_add(router, &route));
    kiln_router_free(router);
    CHECK_EQ(n_done, 2);
    CHECK_EQ(kiln_mem_live(), 0);
}

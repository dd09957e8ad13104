/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "net.h"
#include "net/problem.h"
#include "net/rpc.h"
#include "test.h"

static struct net_fixture f;

static void answer(struct kiln_request *request)
{
    kiln_request_reply_text(request, 200, "well");
}

static void answer_rpc(struct kiln_rpc *rpc)
{
    kiln_rpc_reply(rpc, KILN_STR("{}"));
}

/* Nobody may write. */
static int guard(void *context, struct kiln_request *request, enum kiln_access access,
                 struct kiln_reply *reply)
{
    (void)context, (void)request;
    *reply = (struct kiln_reply){.status = 429,
                                 .content_type = "text/plain",
                                 .body = KILN_STR("too \"fast\"\n"),
                                 .headers = {{KILN_STR("retry-after"), KILN_STR("2")}},
                                 .n_headers = 1};
    return access == KILN_ACCESS_WRITE ? -1 : 0;
}

static void start(void)
{
    f = (struct net_fixture){0};
    CHECK_OK(kiln_router_new(&f.router));
    kiln_router_guard(f.router, (struct kiln_guard){.check = guard});
    CHECK_OK(kiln_router_add(
        f.router, &(struct kiln_route){.method = "GET", .path = "/api/v1/x", .handler = answer}));
    CHECK_OK(kiln_router_add(f.router, &(struct kiln_route){.method = "POST",
                                                            .path = "/api/v1/write",
                                                            .access = KILN_ACCESS_WRITE,
                                                            .handler = answer}));
    CHECK_OK(kiln_rpc_add(f.router, &(struct kiln_rpc_route){.path = "/a.v1.B/Write",
                                                             .access = KILN_ACCESS_WRITE,
                                                             .handler = answer_rpc}));
    kiln_router_fallback(f.router, kiln_problem_unknown, NULL);
    kiln_router_translate(f.router, kiln_problem_translate);
    net_start(&f, NULL);
}

static const char *ask(const char *line, const char *type)
{
    char text[4096];

    snprintf(text, sizeof(text),
             "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: %s\r\n"
             "Content-Length: 2\r\n\r\n{}",
             line, type);
    return net_talk(f.port, text);
}

TEST(problem, below_our_api_what_is_refused_has_one_shape_whoever_asks)
{
    static const char *const types[] = {"text/plain", "application/json", "application/x-protobuf"};
    const char *said;

    start();
    for (size_t i = 0; i < KILN_ARRAY_LEN(types); i++) {
        CHECK_TEXT(net_body(ask("GET /api/v1/nothing", types[i])),
                   "{\"error\":{\"code\":\"not_found\",\"message\":\"no such path: "
                   "/api/v1/nothing\",\"where\":\"\"}}\n");
        said = ask("PUT /api/v1/x", types[i]);
        CHECK_EQ(net_status(said), 405);
        CHECK(strstr(said, "allow: GET, HEAD\r\n"));
        CHECK_TEXT(net_body(said), "{\"error\":{\"code\":\"method\",\"message\":\"this path does "
                                   "not take this method\",\"where\":\"\"}}\n");
        said = ask("POST /api/v1/write", types[i]);
        CHECK_EQ(net_status(said), 429);
        CHECK(strstr(said, "content-type: application/json\r\n"));
        CHECK(strstr(said, "retry-after: 2\r\n"));
        CHECK(strstr(said, "cache-control: no-store\r\n"));
        CHECK_TEXT(net_body(said), "{\"error\":{\"code\":\"rate\",\"message\":\"too "
                                   "\\\"fast\\\"\",\"where\":\"\"}}\n");
    }
    CHECK_TEXT(net_body(ask("GET /api/v1/x", "text/plain")), "well\n");
    net_stop(&f);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(problem, others_keep_the_shape_they_know)
{
    const char *said;

    start();
    CHECK_TEXT(net_body(ask("GET /nothing", "text/plain")), "no such path: /nothing\n");
    said = ask("POST /a.v1.B/Write", "application/json");
    CHECK_EQ(net_status(said), 429);
    CHECK(strstr(net_body(said), "{\"code\":\"unavailable\",\"message\":"));
    said = ask("POST /api/v1/write", "application/grpc");
    CHECK(!strstr(said, "{\"error\""));
    net_stop(&f);
}

TEST(problem, a_name_that_is_no_text_and_without_end_does_no_harm)
{
    char line[2048];

    start();
    snprintf(line, sizeof(line), "GET /api/v1/%%ff%%22%%0a%01000d", 7);
    CHECK_EQ(net_status(ask(line, "text/plain")), 404);
    CHECK(
        strstr(net_body(ask(line, "text/plain")), "no such path: /api/v1/\xef\xbf\xbd\\\"\\n000"));
    net_stop(&f);
}

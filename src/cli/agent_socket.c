/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_socket.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/host_sampled.h"
#include "fleet/request.h"
#include "net/problem.h"
#include "pipeline/gate.h"

#define ANSWER_MAX ((size_t)4 << 20)
#define WINDOW_MAX ((size_t)8 << 20) /* what any sender of zstd over HTTP may use (RFC 9659) */

/* ---- answers ---- */

struct answer {
    struct kiln_buf text;
    struct kiln_json_out w;
};

static void begin(struct answer *answer)
{
    kiln_buf_init(&answer->text, ANSWER_MAX);
    kiln_json_out_init(&answer->w, &answer->text, 0);
    kiln_json_put_object(&answer->w);
}

static void reply(struct kiln_request *request, struct answer *answer, int status)
{
    kiln_json_end_object(&answer->w);
    kiln_buf_putc(&answer->text, '\n');
    if (answer->text.error)
        kiln_problem_reply(request, 503, "", "%s", kiln_err_text(answer->text.error));
    else
        kiln_request_reply(request, &(struct kiln_reply){.status = status,
                                                         .content_type = "application/json",
                                                         .body = kiln_buf_str(&answer->text)});
    kiln_buf_done(&answer->text);
}

static void refuse(struct kiln_request *request, int code, const struct kiln_err *err)
{
    int status = code == KILN_E_LIMIT                          ? 422
                 : code == -EPERM                              ? 403
                 : code == -ENOENT                             ? 404
                 : code == -EEXIST                             ? 409
                 : code == -EINVAL || code <= KILN_E_TRUNCATED ? 400
                                                               : 503;

    kiln_problem_reply(request, status, err->where, "%s%s%s", err->where, err->where[0] ? ": " : "",
                       err->text[0] ? err->text : kiln_err_text(code));
}

static void put_agent(struct answer *answer, struct kiln_agent_socket *socket)
{
    struct kiln_agent_status status;

    socket->tell(socket->context, &status);
    kiln_agent_status_put(&answer->w, &status);
}

static void put_followed(struct answer *answer, struct kiln_duty *duty)
{
    struct kiln_orders orders;

    kiln_orders_init(&orders, KILN_DUTY_ORDERS_MAX);
    if (kiln_duty_list(duty, &orders) < 0)
        answer->text.error = -ENOMEM;
    kiln_json_put_name(&answer->w, "orders");
    kiln_orders_put(&answer->w, &orders);
    kiln_orders_done(&orders);
}

/* ---- how it is ---- */

static void reply_self(struct kiln_request *request)
{
    struct kiln_agent_socket *socket = request->context;
    struct answer answer;

    begin(&answer);
    kiln_host_sampled_put(&answer.w, socket->opts, request->peer.pid);
    kiln_json_put_name(&answer.w, "agent");
    put_agent(&answer, socket);
    put_followed(&answer, atomic_load(&socket->duty));
    reply(request, &answer, 200);
}

static void reply_agents(struct kiln_request *request)
{
    struct kiln_agent_socket *socket = request->context;
    struct answer answer;

    begin(&answer);
    kiln_json_put_name(&answer.w, "agents");
    kiln_json_put_array(&answer.w);
    put_agent(&answer, socket);
    kiln_json_end_array(&answer.w);
    reply(request, &answer, 200);
}

/* ---- orders ---- */

static void reply_orders(struct kiln_request *request)
{
    struct kiln_agent_socket *socket = request->context;
    struct answer answer;

    begin(&answer);
    put_followed(&answer, atomic_load(&socket->duty));
    reply(request, &answer, 200);
}

static int read_body(const struct kiln_request *request, struct kiln_orders *orders,
                     struct kiln_err *err)
{
    const struct kiln_request_wish wish = {.now_ns = kiln_clock_unix_ns()};
    struct kiln_buf plain;
    int r = 0;

    kiln_buf_init(&plain, KILN_REQUEST_BYTES_MAX);
    if (kiln_decompress_window(request->encoding, request->body) > WINDOW_MAX)
        r = kiln_err_set(err, KILN_E_LIMIT, NULL, "the zstd window is larger than 8 MiB");
    else if (request->encoding != KILN_PLAIN)
        r = kiln_decompress(request->encoding, request->body, &plain, err);
    if (r == 0)
        r = kiln_order_request_read(request->encoding == KILN_PLAIN ? request->body
                                                                    : kiln_buf_str(&plain),
                                    &wish, orders, err);
    kiln_buf_done(&plain);
    return r;
}

/* Every user that can connect may read the status of the agent; orders need its own user. */
static int check_peer(const struct kiln_request *request, struct kiln_err *err)
{
    if (kiln_peer_is_trusted(&request->peer))
        return 0;
    return kiln_err_set(err, -EPERM, NULL,
                        "only root and the user of the agent may give and withdraw orders here");
}

static void audit(const struct kiln_request *request, const char *action, struct kiln_str target,
                  int r)
{
    const struct kiln_agent_socket *socket = request->context;
    char who[32];

    snprintf(who, sizeof(who), "uid %u", (unsigned)request->peer.uid);
    kiln_audit_write(socket->audit, &(struct kiln_audit_record){.action = action,
                                                                .tenant = "",
                                                                .target = target,
                                                                .who = who,
                                                                .peer = request->peer.address,
                                                                .result = r == -EPERM ? "refused"
                                                                          : r < 0     ? "failed"
                                                                                      : "ok"});
}

/* Records what was asked for: of several orders, the first. */
static void audit_orders(const struct kiln_request *request, const struct kiln_orders *orders,
                         int r)
{
    struct kiln_buf text;

    kiln_buf_init(&text, 1024);
    if (orders->n)
        kiln_order_describe(&orders->items[0], orders->n - 1, &text);
    audit(request, "give order", kiln_buf_str(&text), r);
    kiln_buf_done(&text);
}

static void take_order(struct kiln_request *request)
{
    struct kiln_agent_socket *socket = request->context;
    struct kiln_orders orders;
    struct kiln_err err = {0};
    struct answer answer;
    int r;

    kiln_orders_init(&orders, KILN_REQUEST_ORDERS_MAX);
    r = read_body(request, &orders, &err);
    if (r == 0)
        r = check_peer(request, &err);
    for (uint32_t i = 0; r == 0 && i < orders.n; i++) {
        if (!orders.items[i].by[0])
            snprintf(orders.items[i].by, sizeof(orders.items[i].by), "uid %u",
                     (unsigned)request->peer.uid);
        r = kiln_duty_give(atomic_load(&socket->duty), &orders.items[i], &err);
    }
    audit_orders(request, &orders, r);
    if (r < 0) {
        refuse(request, r, &err);
    } else {
        begin(&answer);
        kiln_json_put_name(&answer.w, "orders");
        kiln_orders_put(&answer.w, &orders);
        reply(request, &answer, orders.n ? 201 : 200);
    }
    kiln_orders_done(&orders);
}

static void withdraw_order(struct kiln_request *request)
{
    struct kiln_agent_socket *socket = request->context;
    char id[KILN_ORDER_ID_BYTES];
    struct kiln_err err = {0};
    int r = check_peer(request, &err);

    snprintf(id, sizeof(id), "%.*s", KILN_STR_ARG(request->rest));
    if (r == 0)
        r = kiln_duty_withdraw(atomic_load(&socket->duty), id, &err);
    if (r == 0)
        r = kiln_err_set(&err, -ENOENT, "id", "there is no such order in force");
    audit(request, "withdraw order", request->rest, r);
    if (r < 0)
        refuse(request, r, &err);
    else
        kiln_request_reply(request, &(struct kiln_reply){.status = 204});
}

/* ---- routes ---- */

/* The socket is there before the profiler runs. */
static int check(void *context, struct kiln_request *request, enum kiln_access access,
                 struct kiln_reply *reply)
{
    struct kiln_agent_socket *socket = context;

    (void)request;
    if (access == KILN_ACCESS_NONE || atomic_load(&socket->duty))
        return 0;
    *reply = (struct kiln_reply){.status = 503,
                                 .content_type = "text/plain; charset=utf-8",
                                 .body = KILN_STR("the agent starts: try again\n"),
                                 .headers = {{KILN_STR("retry-after"), KILN_STR("1")}},
                                 .n_headers = 1};
    return -EAGAIN;
}

int kiln_agent_socket_add(struct kiln_agent_socket *socket, struct kiln_router *router)
{
    const struct kiln_route routes[] = {
        {.method = "GET", .path = "/v1/self", .handler = reply_self},
        {.method = "GET", .path = "/api/v1/agents", .handler = reply_agents},
        {.method = "GET", .path = "/api/v1/orders", .handler = reply_orders},
        {.method = "POST",
         .path = "/api/v1/orders",
         .handler = take_order,
         .body_max = KILN_REQUEST_BYTES_MAX},
        {.method = "DELETE", .path = "/api/v1/orders/*", .handler = withdraw_order},
    };
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < KILN_ARRAY_LEN(routes); i++) {
        struct kiln_route route = routes[i];

        route.context = socket;
        route.access = KILN_ACCESS_READ;
        r = kiln_router_add(router, &route);
    }
    kiln_router_guard(router, (struct kiln_guard){.check = check, .context = socket});
    kiln_router_translate(router, kiln_problem_translate);
    kiln_router_fallback(router, kiln_problem_unknown, NULL);
    return r;
}

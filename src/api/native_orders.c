/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET, POST and DELETE /api/v1/orders: what agents are told, of one service, container, process or
 * host, or of all.  The body of a POST is fleet/request.h's: one order, or what an Alertmanager
 * sends to a webhook.
 */
#include <errno.h>
#include <stdio.h>

#include "api/native_body.h"
#include "fleet/fleet.h"
#include "fleet/request.h"
#include "pipeline/gate.h"

int kiln_native_need_fleet(struct kiln_native_call *call)
{
    return call->api->fleet
               ? 0
               : kiln_err_set(&call->err, KILN_E_UNSUPPORTED, NULL, "this server has no agents");
}

static void put_orders(struct kiln_native_call *call, const struct kiln_orders *orders)
{
    kiln_json_put_object(&call->w);
    kiln_json_put_name(&call->w, "orders");
    kiln_orders_put(&call->w, orders);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
}

int kiln_native_run_orders(struct kiln_native_call *call)
{
    struct kiln_str tenants = kiln_str_of(call->request->tenant);
    struct kiln_orders orders;
    int r = kiln_native_need_fleet(call);

    kiln_orders_init(&orders, KILN_ORDER_BOOK_MAX);
    while (r == 0 && tenants.ptr) {
        struct kiln_str tenant = kiln_str_cut(&tenants, '|');
        char name[KILN_TENANT_MAX + 1];

        snprintf(name, sizeof(name), "%.*s", KILN_STR_ARG(tenant));
        r = kiln_order_book_list(call->api->fleet->book, name, kiln_clock_mono_ns(), &orders);
    }
    put_orders(call, &orders);
    kiln_orders_done(&orders);
    return r;
}

/* For the audit record. */
static void tell_order(struct kiln_native_call *call, const struct kiln_order *order, uint32_t more)
{
    struct kiln_buf text;

    kiln_buf_init(&text, 2048);
    kiln_order_describe(order, more, &text);
    snprintf(call->audited, sizeof(call->audited), "%.*s", KILN_STR_ARG(kiln_buf_str(&text)));
    kiln_buf_done(&text);
}

/* ---- who may ---- */

static bool is_anonymous(const struct kiln_caller *caller)
{
    return !caller->tokens && !caller->trusted;
}

enum kiln_order_limit kiln_native_order_limit(const struct kiln_native_call *call,
                                              const struct kiln_caller *caller)
{
    if (is_anonymous(caller))
        return call->api->anonymous_orders;
    return caller->access >> KILN_ACCESS_CONTROL & 1 ? KILN_ORDERS_ALL : KILN_ORDERS_OFF;
}

static int check_order(struct kiln_native_call *call, const struct kiln_caller *caller,
                       const struct kiln_order *order)
{
    return is_anonymous(caller)
               ? kiln_order_check_anonymous(order, call->api->anonymous_orders, &call->err)
               : 0;
}

/* Who may not give a pause may not end one. */
static int check_withdrawal(struct kiln_native_call *call, const char *id)
{
    const struct kiln_order *order;
    struct kiln_caller caller;
    struct kiln_orders orders;
    int r;

    kiln_native_caller(call, &caller);
    kiln_orders_init(&orders, KILN_ORDER_BOOK_MAX);
    r = kiln_order_book_list(call->api->fleet->book, call->request->tenant, kiln_clock_mono_ns(),
                             &orders);
    order = kiln_orders_find(&orders, id);
    if (r == 0 && order)
        tell_order(call, order, 0);
    if (r == 0 && order && is_anonymous(&caller) &&
        !kiln_order_within(call->api->anonymous_orders, order->kind))
        r = kiln_order_check_anonymous(order, call->api->anonymous_orders, &call->err);
    kiln_orders_done(&orders);
    return r;
}

/* ---- giving ---- */

static int read_wanted(struct kiln_native_call *call, struct kiln_orders *orders)
{
    const struct kiln_request_wish wish = {.hz = call->args.hz,
                                           .duration_ns = call->args.duration_ns,
                                           .label = call->args.label,
                                           .now_ns = call->now_ns};
    struct kiln_buf plain;
    struct kiln_str text;
    int r;

    kiln_buf_init(&plain, KILN_REQUEST_BYTES_MAX);
    r = kiln_native_body_plain(call, &plain, &text);
    if (r == 0)
        r = kiln_order_request_read(text, &wish, orders, &call->err);
    kiln_buf_done(&plain);
    return r == 0 || r == KILN_E_LIMIT || r == -ENOMEM ? r : -EBADMSG;
}

int kiln_native_run_order(struct kiln_native_call *call)
{
    struct kiln_orders orders;
    struct kiln_caller caller;
    int r = kiln_native_need_fleet(call);

    kiln_orders_init(&orders, KILN_REQUEST_ORDERS_MAX);
    if (r == 0)
        r = read_wanted(call, &orders);
    if (r == 0 && orders.n)
        tell_order(call, &orders.items[0], orders.n - 1);
    kiln_native_caller(call, &caller);
    for (uint32_t i = 0; r == 0 && i < orders.n; i++) {
        struct kiln_order *order = &orders.items[i];

        if (!order->by[0])
            snprintf(order->by, sizeof(order->by), "%s", caller.name);
        r = check_order(call, &caller, order);
    }
    for (uint32_t i = 0; r == 0 && i < orders.n; i++) {
        struct kiln_order *order = &orders.items[i];

        r = kiln_order_book_add(call->api->fleet->book, call->request->tenant, order, &call->err);
        r = r == KILN_E_LIMIT ? -EDQUOT : r;
    }
    put_orders(call, &orders);
    call->status = orders.n ? 201 : 200;
    kiln_orders_done(&orders);
    return r;
}

int kiln_native_run_unorder(struct kiln_native_call *call)
{
    char id[KILN_ORDER_ID_BYTES];
    int r = kiln_native_need_fleet(call);

    if (r < 0)
        return r;
    snprintf(id, sizeof(id), "%.*s", KILN_STR_ARG(call->request->rest));
    r = check_withdrawal(call, id);
    if (r < 0)
        return r;
    r = kiln_order_book_remove(call->api->fleet->book, call->request->tenant, id, &call->err);
    if (r == 0)
        return kiln_err_set(&call->err, -ENOENT, "id", "there is no such order in force");
    if (r < 0)
        return r;
    call->status = 204;
    call->content_type = NULL;
    return 0;
}

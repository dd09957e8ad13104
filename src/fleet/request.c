/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/request.h"

#include <errno.h>
#include <stdio.h>

#include "base/quantity.h"

#define KNOWN "kind, target, name, pid, host, hz, duration, by, why"

/* ---- one order ---- */

static int read_duration(struct kiln_json *r, uint64_t *ret_ns)
{
    struct kiln_str text;
    double seconds;
    uint64_t ns = 0;
    int code;

    if (kiln_json_peek(r) == KILN_JSON_NUMBER) {
        code = kiln_json_double(r, &seconds);
        if (code == 0 && seconds > 0 && seconds < 1e9)
            ns = (uint64_t)(seconds * 1e9);
    } else {
        code = kiln_json_string(r, &text);
        if (code == 0 && kiln_duration_parse(text, &ns) < 0)
            ns = 0;
    }
    if (code == 0 && ns == 0)
        code = kiln_json_fail(r, KILN_E_MALFORMED, "not a time span: say 10m, 1h, or seconds");
    if (code == 0)
        *ret_ns = ns;
    return code;
}

struct asked {
    struct kiln_order order;
    uint64_t duration_ns;
    bool kind, target;
};

static int read_member(struct kiln_json *r, struct kiln_str name, struct asked *asked)
{
    bool ours = kiln_str_eq(name, KILN_STR("id")) || kiln_str_eq(name, KILN_STR("created")) ||
                kiln_str_eq(name, KILN_STR("expires"));
    int code;

    if (kiln_str_eq(name, KILN_STR("duration")))
        return read_duration(r, &asked->duration_ns);
    asked->kind |= kiln_str_eq(name, KILN_STR("kind"));
    asked->target |= kiln_str_eq(name, KILN_STR("target"));
    code = ours ? 0 : kiln_order_read_member(r, name, &asked->order);
    if (code == 0)
        return kiln_json_fail(r, KILN_E_MALFORMED, "no such member: \"%.*s\"; known are " KNOWN,
                              (int)(name.len < 40 ? name.len : 40), name.ptr);
    return code < 0 ? code : 0;
}

static void fill(struct kiln_order *order, uint64_t duration_ns,
                 const struct kiln_request_wish *wish)
{
    bool boost = order->kind == KILN_ORDER_BOOST;

    if (!duration_ns)
        duration_ns = wish->duration_ns;
    if (!duration_ns)
        duration_ns = boost ? KILN_BOOST_NS : KILN_PAUSE_NS;
    if (boost && !order->hz)
        order->hz = wish->hz ? wish->hz : KILN_BOOST_HZ;
    order->created_ns = wish->now_ns - wish->now_ns % KILN_NS_PER_MS;
    order->expires_ns =
        duration_ns < UINT64_MAX - order->created_ns ? order->created_ns + duration_ns : UINT64_MAX;
}

static int add(struct kiln_orders *orders, const struct kiln_order *order, struct kiln_err *err)
{
    int r = kiln_order_check(order, err);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < orders->n; i++)
        if (kiln_order_same_aim(&orders->items[i], order))
            return 0;
    r = kiln_orders_add(orders, order);
    return r < 0 ? kiln_err_set(err, r, NULL, "too many orders at once: %s", kiln_err_text(r)) : 0;
}

static int read_one(struct kiln_json *r, const struct kiln_request_wish *wish,
                    struct kiln_orders *orders, struct kiln_err *err)
{
    struct asked asked = {.order = {.target = KILN_TARGET_SERVICE}};
    struct kiln_str name;
    int code = kiln_json_object(r);

    while (code == 0 && (code = kiln_json_member(r, &name)) > 0)
        code = read_member(r, name, &asked);
    if (code < 0)
        return code;
    if (!asked.kind)
        return kiln_err_set(err, -EINVAL, "kind", "is it a boost or a pause?");
    if (!asked.target)
        return kiln_err_set(err, -EINVAL, "target",
                            "who is meant? One of all, host, service, container, process");
    fill(&asked.order, asked.duration_ns, wish);
    return add(orders, &asked.order, err);
}

/* ---- alerts ---- */

struct alert {
    bool firing;
    uint32_t rank; /* of the label that named the service; 0: none did */
    char service[256], name[128];
};

/* How much a label counts; 0: it names no service. */
static uint32_t rank_of(struct kiln_str label, const struct kiln_request_wish *wish)
{
    if (wish->label.len)
        return kiln_str_eq(label, wish->label);
    return kiln_str_eq(label, KILN_STR("service_name")) ? 2
           : kiln_str_eq(label, KILN_STR("service"))    ? 1
                                                        : 0;
}

static int read_labels(struct kiln_json *r, const struct kiln_request_wish *wish,
                       struct alert *alert)
{
    struct kiln_str label;
    int code = kiln_json_object(r);

    while (code == 0 && (code = kiln_json_member(r, &label)) > 0) {
        uint32_t rank = rank_of(label, wish);

        if (rank > alert->rank) {
            alert->rank = rank;
            code = kiln_fleet_read_text(r, alert->service, sizeof(alert->service));
        } else if (kiln_str_eq(label, KILN_STR("alertname"))) {
            code = kiln_fleet_read_text(r, alert->name, sizeof(alert->name));
        } else {
            code = kiln_json_skip(r);
        }
    }
    return code;
}

static int read_alert(struct kiln_json *r, const struct kiln_request_wish *wish,
                      struct alert *alert)
{
    struct kiln_str name, word;
    int code = kiln_json_object(r);

    while (code == 0 && (code = kiln_json_member(r, &name)) > 0) {
        if (kiln_str_eq(name, KILN_STR("labels"))) {
            code = read_labels(r, wish, alert);
        } else if (kiln_str_eq(name, KILN_STR("status"))) {
            code = kiln_json_string(r, &word);
            alert->firing = code == 0 && kiln_str_eq(word, KILN_STR("firing"));
        } else {
            code = kiln_json_skip(r);
        }
    }
    return code;
}

static int boost_for(const struct alert *alert, const struct kiln_request_wish *wish,
                     struct kiln_orders *orders, struct kiln_err *err)
{
    struct kiln_order order = {
        .kind = KILN_ORDER_BOOST, .target = KILN_TARGET_SERVICE, .by = "alertmanager"};

    snprintf(order.name, sizeof(order.name), "%s", alert->service);
    snprintf(order.why, sizeof(order.why), "%s fires", alert->name[0] ? alert->name : "an alert");
    fill(&order, 0, wish);
    return add(orders, &order, err);
}

static int read_alerts(struct kiln_json *r, const struct kiln_request_wish *wish,
                       struct kiln_orders *orders, struct kiln_err *err)
{
    uint32_t firing = 0, named = 0;
    int code = kiln_json_array(r);

    while (code == 0 && (code = kiln_json_element(r)) > 0) {
        struct alert alert = {0};

        code = read_alert(r, wish, &alert);
        if (code < 0)
            return code;
        firing += alert.firing;
        if (alert.firing && alert.service[0]) {
            named++;
            code = boost_for(&alert, wish, orders, err);
        }
    }
    if (code == 0 && firing && !named)
        code = kiln_err_set(err, -EINVAL, "labels",
                            "no alert has a label that names a service (service_name or service; "
                            "label=NAME says another)");
    return code;
}

static int read_webhook(struct kiln_json *r, const struct kiln_request_wish *wish,
                        struct kiln_orders *orders, struct kiln_err *err)
{
    struct kiln_str name;
    int code = kiln_json_object(r);

    while (code == 0 && (code = kiln_json_member(r, &name)) > 0)
        code = kiln_str_eq(name, KILN_STR("alerts")) ? read_alerts(r, wish, orders, err)
                                                     : kiln_json_skip(r);
    return code;
}

/* ---- either ---- */

static int has_alerts(struct kiln_str text, struct kiln_err *err)
{
    struct kiln_json r;
    struct kiln_str name;
    bool found = false;
    int code;

    kiln_json_init(&r, text, err);
    code = kiln_json_object(&r);
    while (code == 0 && (code = kiln_json_member(&r, &name)) > 0) {
        found |= kiln_str_eq(name, KILN_STR("alerts"));
        code = kiln_json_skip(&r);
    }
    if (code == 0 && kiln_json_more(&r) != 0)
        code = kiln_json_fail(&r, KILN_E_MALFORMED, "something follows the object");
    kiln_json_done(&r);
    return code < 0 ? code : found;
}

int kiln_order_request_read(struct kiln_str text, const struct kiln_request_wish *wish,
                            struct kiln_orders *orders, struct kiln_err *err)
{
    struct kiln_json r;
    int alerts = has_alerts(text, err);
    int code;

    if (alerts < 0)
        return alerts;
    kiln_json_init(&r, text, err);
    code = alerts ? read_webhook(&r, wish, orders, err) : read_one(&r, wish, orders, err);
    kiln_json_done(&r);
    return code;
}

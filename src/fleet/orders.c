/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/orders.h"

#include "base/when.h"

/* ---- lists ---- */

void kiln_orders_init(struct kiln_orders *orders, uint32_t max)
{
    *orders = (struct kiln_orders){.max = max, .budget = {.limit = SIZE_MAX}};
}

void kiln_orders_done(struct kiln_orders *orders)
{
    kiln_array_free(&orders->budget, (void **)&orders->items, &orders->cap, sizeof(*orders->items));
    orders->n = 0;
}

int kiln_orders_add(struct kiln_orders *orders, const struct kiln_order *order)
{
    int r = kiln_grow(&orders->budget, (void **)&orders->items, &orders->cap,
                      orders->n + UINT64_C(1), sizeof(*order), orders->max);

    if (r == 0)
        orders->items[orders->n++] = *order;
    return r;
}

const struct kiln_order *kiln_orders_find(const struct kiln_orders *orders, const char *id)
{
    for (uint32_t i = 0; i < orders->n; i++)
        if (strcmp(orders->items[i].id, id) == 0)
            return &orders->items[i];
    return NULL;
}

/* ---- writing ---- */

void kiln_fleet_put_said(struct kiln_json_out *w, const char *name, const char *text)
{
    kiln_json_put_name(w, name);
    if (text[0])
        kiln_json_put_str(w, kiln_str_of(text));
    else
        kiln_json_put_null(w);
}

void kiln_fleet_put_time(struct kiln_json_out *w, const char *name, uint64_t ns)
{
    kiln_json_put_name(w, name);
    if (!ns) {
        kiln_json_put_null(w);
        return;
    }
    kiln_json_put_raw_begin(w);
    kiln_when_format(ns, w->buf);
    kiln_json_put_raw_end(w);
}

static void put_number(struct kiln_json_out *w, const char *name, uint32_t number)
{
    kiln_json_put_name(w, name);
    if (number)
        kiln_json_put_u64(w, number);
    else
        kiln_json_put_null(w);
}

void kiln_order_put_members(struct kiln_json_out *w, const struct kiln_order *order)
{
    kiln_fleet_put_said(w, "id", order->id);
    kiln_fleet_put_said(w, "kind", kiln_order_kind_word(order->kind));
    kiln_fleet_put_said(w, "target", kiln_order_target_word(order->target));
    kiln_fleet_put_said(w, "name", order->name);
    put_number(w, "pid", order->pid);
    kiln_fleet_put_said(w, "host", order->host);
    put_number(w, "hz", order->hz);
    kiln_fleet_put_time(w, "created", order->created_ns);
    kiln_fleet_put_time(w, "expires", order->expires_ns);
    kiln_fleet_put_said(w, "by", order->by);
    kiln_fleet_put_said(w, "why", order->why);
}

void kiln_orders_put(struct kiln_json_out *w, const struct kiln_orders *orders)
{
    kiln_json_put_array(w);
    for (uint32_t i = 0; i < orders->n; i++) {
        kiln_json_put_object(w);
        kiln_order_put_members(w, &orders->items[i]);
        kiln_json_end_object(w);
    }
    kiln_json_end_array(w);
}

/* ---- reading ---- */

int kiln_fleet_read_text(struct kiln_json *r, char *text, size_t size)
{
    struct kiln_str said = KILN_STR("");
    int code = kiln_json_null(r);

    if (code == 0)
        code = kiln_json_string(r, &said);
    if (code < 0)
        return code;
    if (said.len >= size || (said.len && memchr(said.ptr, '\0', said.len)))
        return kiln_json_fail(r, KILN_E_MALFORMED,
                              "a text of at most %zu bytes, none of them zero, belongs here",
                              size - 1);
    if (said.len)
        memcpy(text, said.ptr, said.len);
    text[said.len] = '\0';
    return 0;
}

int kiln_fleet_read_time(struct kiln_json *r, uint64_t *ret_ns)
{
    struct kiln_str said;
    int code = kiln_json_null(r);

    if (code > 0)
        *ret_ns = 0;
    if (code != 0)
        return code < 0 ? code : 0;
    code = kiln_json_string(r, &said);
    if (code == 0 && kiln_when_parse(said, kiln_clock_unix_ns(), ret_ns) < 0)
        code = kiln_json_fail(r, KILN_E_MALFORMED, "not a time");
    return code;
}

static int read_number(struct kiln_json *r, uint32_t *ret)
{
    uint64_t number = 0;
    int code = kiln_json_null(r);

    if (code == 0)
        code = kiln_json_u64(r, &number);
    if (code < 0)
        return code;
    if (number > INT32_MAX)
        return kiln_json_fail(r, KILN_E_MALFORMED, "too large a number");
    *ret = (uint32_t)number;
    return 0;
}

static int read_kind(struct kiln_json *r, enum kiln_order_kind *ret_kind)
{
    struct kiln_str word;
    int code = kiln_json_string(r, &word);

    if (code == 0 && kiln_order_kind_parse(word, ret_kind) < 0)
        code = kiln_json_fail(r, KILN_E_MALFORMED, "a kind is boost or pause");
    return code;
}

static int read_target(struct kiln_json *r, enum kiln_order_target *ret_target)
{
    struct kiln_str word;
    int code = kiln_json_string(r, &word);

    if (code == 0 && kiln_order_target_parse(word, ret_target) < 0)
        code = kiln_json_fail(r, KILN_E_MALFORMED,
                              "a target is all, host, service, container or process");
    return code;
}

static int read_known(struct kiln_json *r, struct kiln_str name, struct kiln_order *order)
{
    const struct {
        const char *name;
        char *text;
        size_t size;
    } texts[] = {{"id", order->id, sizeof(order->id)},
                 {"name", order->name, sizeof(order->name)},
                 {"host", order->host, sizeof(order->host)},
                 {"by", order->by, sizeof(order->by)},
                 {"why", order->why, sizeof(order->why)}};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(texts); i++)
        if (kiln_str_eq(name, kiln_str_of(texts[i].name)))
            return kiln_fleet_read_text(r, texts[i].text, texts[i].size);
    if (kiln_str_eq(name, KILN_STR("kind")))
        return read_kind(r, &order->kind);
    if (kiln_str_eq(name, KILN_STR("target")))
        return read_target(r, &order->target);
    if (kiln_str_eq(name, KILN_STR("pid")))
        return read_number(r, &order->pid);
    if (kiln_str_eq(name, KILN_STR("hz")))
        return read_number(r, &order->hz);
    if (kiln_str_eq(name, KILN_STR("created")))
        return kiln_fleet_read_time(r, &order->created_ns);
    if (kiln_str_eq(name, KILN_STR("expires")))
        return kiln_fleet_read_time(r, &order->expires_ns);
    return 1;
}

int kiln_order_read_member(struct kiln_json *r, struct kiln_str name, struct kiln_order *order)
{
    int code = read_known(r, name, order);

    return code < 0 ? code : !code;
}

int kiln_order_read(struct kiln_json *r, struct kiln_orders *orders)
{
    struct kiln_order order = {.target = KILN_TARGET_SERVICE};
    struct kiln_err why = {0};
    struct kiln_str name;
    int code = kiln_json_object(r);

    while (code == 0 && (code = kiln_json_member(r, &name)) > 0) {
        code = kiln_order_read_member(r, name, &order);
        if (code >= 0)
            code = code ? 0 : kiln_json_skip(r);
    }
    if (code == 0 && !order.id[0])
        code = kiln_json_fail(r, KILN_E_MALFORMED, "an order has an id");
    if (code == 0 && kiln_order_check(&order, &why) < 0)
        code = kiln_json_fail(r, KILN_E_MALFORMED, "%s: %s", why.where, why.text);
    if (code == 0) {
        code = kiln_orders_add(orders, &order);
        if (code < 0)
            kiln_json_fail(r, code, "more than %u orders", orders->max);
    }
    return code;
}

int kiln_orders_read(struct kiln_json *r, struct kiln_orders *orders)
{
    int code = kiln_json_array(r);

    while (code == 0 && (code = kiln_json_element(r)) > 0)
        code = kiln_order_read(r, orders);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/link.h"

void kiln_link_answer_put(struct kiln_json_out *w, const struct kiln_link_answer *answer)
{
    kiln_json_put_object(w);
    kiln_fleet_put_time(w, "now", answer->now_ns);
    kiln_json_put_name(w, "every_seconds");
    kiln_json_put_u64(w, KILN_LINK_EVERY_S);
    kiln_json_put_name(w, "known");
    kiln_json_put_bool(w, answer->known);
    kiln_json_put_name(w, "watched");
    kiln_json_put_bool(w, answer->watched);
    kiln_json_put_name(w, "orders");
    kiln_orders_put(w, &answer->orders);
    kiln_json_end_object(w);
}

static int read_every(struct kiln_json *r, uint32_t *ret_s)
{
    uint64_t every;
    int code = kiln_json_u64(r, &every);

    if (code < 0)
        return code;
    *ret_s = every < 1                       ? 1
             : every > KILN_LINK_EVERY_MAX_S ? KILN_LINK_EVERY_MAX_S
                                             : (uint32_t)every;
    return 0;
}

static int read_member(struct kiln_json *r, struct kiln_str name, struct kiln_link_answer *answer)
{
    if (kiln_str_eq(name, KILN_STR("now")))
        return kiln_fleet_read_time(r, &answer->now_ns);
    if (kiln_str_eq(name, KILN_STR("every_seconds")))
        return read_every(r, &answer->every_s);
    if (kiln_str_eq(name, KILN_STR("known")))
        return kiln_json_bool(r, &answer->known);
    if (kiln_str_eq(name, KILN_STR("watched")))
        return kiln_json_bool(r, &answer->watched);
    if (kiln_str_eq(name, KILN_STR("orders")))
        return kiln_orders_read(r, &answer->orders);
    return kiln_json_skip(r);
}

/* What is over by the server's clock is over. */
static void turn_times(struct kiln_link_answer *answer, uint64_t now_ns)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < answer->orders.n; i++) {
        struct kiln_order order = answer->orders.items[i];
        uint64_t all_ns = order.expires_ns - order.created_ns, left_ns;

        if (order.expires_ns <= answer->now_ns)
            continue;
        left_ns = order.expires_ns - answer->now_ns;
        left_ns = left_ns < all_ns ? left_ns : all_ns;
        order.expires_ns = now_ns + left_ns;
        order.created_ns = order.expires_ns > all_ns ? order.expires_ns - all_ns : 0;
        answer->orders.items[kept++] = order;
    }
    answer->orders.n = kept;
}

int kiln_link_answer_read(struct kiln_str text, uint64_t now_ns, struct kiln_link_answer *answer,
                          struct kiln_err *err)
{
    struct kiln_json r;
    struct kiln_str name;
    bool has_orders = false;
    int code;

    *answer = (struct kiln_link_answer){.every_s = KILN_LINK_EVERY_S};
    kiln_orders_init(&answer->orders, KILN_LINK_ORDERS_MAX);
    kiln_json_init(&r, text, err);
    code = kiln_json_object(&r);
    while (code == 0 && (code = kiln_json_member(&r, &name)) > 0) {
        has_orders |= kiln_str_eq(name, KILN_STR("orders"));
        code = read_member(&r, name, answer);
    }
    if (code == 0 && (!answer->now_ns || !has_orders))
        code = kiln_json_fail(&r, KILN_E_MALFORMED, "there is no time, or there are no orders");
    kiln_json_done(&r);
    if (code == 0)
        turn_times(answer, now_ns);
    return code;
}

void kiln_link_answer_done(struct kiln_link_answer *answer)
{
    kiln_orders_done(&answer->orders);
}

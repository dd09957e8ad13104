/* SPDX-License-Identifier: Apache-2.0 */
/* Giving orders and withdrawing them. */
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "base/when.h"
#include "cli/orders.h"
#include "cli/remote.h"

#define BODY_MAX ((size_t)64 << 10)

/* "ann@laptop" */
static void put_caller(char *out, size_t size)
{
    const struct passwd *user = getpwuid(geteuid());
    char host[64] = "";

    if (gethostname(host, sizeof(host) - 1) < 0)
        host[0] = '\0';
    if (user)
        snprintf(out, size, "%.30s@%.32s", user->pw_name, host);
    else
        snprintf(out, size, "uid %u@%.32s", (unsigned)geteuid(), host);
}

static void put_body(const struct kiln_args *args, const struct kiln_order *order,
                     struct kiln_buf *body)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, body, 0);
    kiln_json_put_object(&w);
    kiln_fleet_put_said(&w, "kind", kiln_order_kind_word(order->kind));
    kiln_fleet_put_said(&w, "target", kiln_order_target_word(order->target));
    kiln_fleet_put_said(&w, "name", order->name);
    kiln_fleet_put_said(&w, "host", order->host);
    kiln_fleet_put_said(&w, "by", order->by);
    kiln_fleet_put_said(&w, "why", args->order.why ? args->order.why : "");
    if (order->pid) {
        kiln_json_put_name(&w, "pid");
        kiln_json_put_u64(&w, order->pid);
    }
    if (order->kind == KILN_ORDER_BOOST) {
        kiln_json_put_name(&w, "hz");
        kiln_json_put_u64(&w, args->order.hz);
    }
    kiln_json_put_name(&w, "duration");
    kiln_json_put_double(&w, (double)args->order.duration_ns / 1e9);
    kiln_json_end_object(&w);
}

/* ---- saying ---- */

static void say_order(struct kiln_cli *cli, const char *done, const struct kiln_order *order,
                      bool until)
{
    struct kiln_buf target;

    kiln_buf_init(&target, 1024);
    kiln_order_describe_target(order, &target);
    kiln_buf_printf(&cli->out, "%s ", done);
    kiln_cli_put_safe(&cli->out, kiln_buf_str(&target));
    kiln_buf_done(&target);
    if (until && order->kind == KILN_ORDER_BOOST)
        kiln_buf_printf(&cli->out, " to %u Hz", order->hz);
    if (until) {
        kiln_buf_puts(&cli->out, " until ");
        kiln_when_format(order->expires_ns / KILN_NS_PER_S * KILN_NS_PER_S, &cli->out);
    }
    kiln_buf_putc(&cli->out, '\n');
}

/* Whether there is anybody to follow; an order without hands is worth a word. */
static int say_agents(struct kiln_orders_place *place, const struct kiln_order *order)
{
    struct kiln_agents agents;
    uint32_t n = 0;
    int code = kiln_agents_get(place, &agents);

    for (uint32_t i = 0; i < agents.n; i++)
        n += kiln_agent_is_there(&agents.items[i]) &&
             kiln_order_for_host(order, agents.items[i].id, agents.items[i].host);
    kiln_agents_done(&agents);
    if (code == 0 && n == 0)
        kiln_cli_note(NULL, "no agent that could follow reports now: it holds from when one does");
    return code;
}

static int say_given(struct kiln_cli *cli, struct kiln_orders_place *place, struct kiln_str text)
{
    struct kiln_orders orders;
    int code;

    kiln_orders_init(&orders, KILN_ORDERS_SHOWN_MAX);
    code = kiln_orders_parse(text, &orders);
    for (uint32_t i = 0; code == 0 && i < orders.n; i++) {
        bool boost = orders.items[i].kind == KILN_ORDER_BOOST;

        if (!cli->args.json)
            say_order(cli, boost ? "boosted" : "paused", &orders.items[i], true);
        code = say_agents(place, &orders.items[i]);
    }
    if (code == 0 && cli->args.json)
        kiln_buf_add_str(&cli->out, text);
    kiln_orders_done(&orders);
    return code;
}

/* ---- giving ---- */

int kiln_orders_give(struct kiln_cli *cli, enum kiln_order_kind kind)
{
    struct kiln_order order = {.kind = kind};
    struct kiln_orders_place place;
    struct kiln_buf body, answer;
    int code = kiln_orders_open(cli, &place);

    kiln_buf_init(&body, BODY_MAX);
    kiln_buf_init(&answer, BODY_MAX);
    if (code == 0)
        code = kiln_orders_whom(&place, true, &order);
    if (code == 0) {
        put_caller(order.by, sizeof(order.by));
        put_body(&cli->args, &order, &body);
        code = kiln_orders_ask(&place, "POST", "/api/v1/orders", kiln_buf_str(&body), &answer);
    }
    if (code == 0)
        code = say_given(cli, &place, kiln_buf_str(&answer));
    kiln_buf_done(&answer);
    kiln_buf_done(&body);
    kiln_orders_close(&place);
    return code;
}

/* ---- withdrawing ---- */

/* `--all` ends all of them, not only the one for all; a word ends what has it as its name. */
static bool is_meant(const struct kiln_cli *cli, const struct kiln_order *order,
                     const struct kiln_order *whom)
{
    const char *host = order->target == KILN_TARGET_HOST ? order->name : order->host;
    bool here = !whom->host[0] || strcmp(whom->host, host) == 0;
    bool named = cli->args.operands.n > 0 && order->name[0];

    if (order->kind != whom->kind || !here)
        return false;
    return whom->target == KILN_TARGET_ALL ||
           ((named || order->target == whom->target) && order->pid == whom->pid &&
            strcmp(order->name, whom->name) == 0);
}

/* A word that is the name of two things: which? */
static int check_one(const struct kiln_cli *cli, const struct kiln_orders *orders,
                     const struct kiln_order *whom)
{
    const struct kiln_order *first = NULL;

    for (uint32_t i = 0; cli->args.operands.n && i < orders->n; i++) {
        const struct kiln_order *order = &orders->items[i];

        if (!is_meant(cli, order, whom))
            continue;
        if (first && first->target != order->target)
            return kiln_cli_usage(
                cli->command,
                "%.80s is both a %s and a %s that have orders: say --%s %.80s, or "
                "--%s %.80s",
                whom->name, kiln_order_target_word(first->target),
                kiln_order_target_word(order->target), kiln_order_target_word(first->target),
                whom->name, kiln_order_target_word(order->target), whom->name);
        first = order;
    }
    return KILN_EXIT_WELL;
}

static int withdraw_one(struct kiln_orders_place *place, const struct kiln_order *order)
{
    struct kiln_buf path, answer;
    int code;

    kiln_buf_init(&path, 256);
    kiln_buf_init(&answer, BODY_MAX);
    kiln_buf_puts(&path, "/api/v1/orders/");
    kiln_remote_put_text(&path, kiln_str_of(order->id), false);
    kiln_buf_putc(&path, '\0');
    code = kiln_orders_ask(place, "DELETE", path.ptr, KILN_STR_NONE, &answer);
    kiln_buf_done(&path);
    kiln_buf_done(&answer);
    return code;
}

/* A service may still be paused with all else. */
static void note_rest(const struct kiln_cli *cli, const struct kiln_orders *orders,
                      const struct kiln_order *whom)
{
    for (uint32_t i = 0; i < orders->n; i++) {
        const struct kiln_order *order = &orders->items[i];

        if (whom->target != KILN_TARGET_ALL && order->kind == whom->kind &&
            order->target == KILN_TARGET_ALL && !is_meant(cli, order, whom))
            kiln_cli_note(NULL, "an order for all still holds (`kiln agents` shows it, `--all` "
                                "withdraws it)");
    }
}

static int withdraw_all(struct kiln_cli *cli, struct kiln_orders_place *place,
                        const struct kiln_order *whom, const char *done)
{
    struct kiln_orders orders;
    struct kiln_json_out w;
    uint32_t n = 0;
    int code;

    kiln_orders_init(&orders, KILN_ORDERS_SHOWN_MAX);
    code = kiln_orders_get(place, &orders);
    if (code == 0)
        code = check_one(cli, &orders, whom);
    kiln_json_out_init(&w, &cli->out, 0);
    if (cli->args.json)
        kiln_json_put_array(&w);
    for (uint32_t i = 0; code == 0 && i < orders.n; i++) {
        if (!is_meant(cli, &orders.items[i], whom))
            continue;
        code = withdraw_one(place, &orders.items[i]);
        n++;
        if (code == 0 && cli->args.json)
            kiln_json_put_str(&w, kiln_str_of(orders.items[i].id));
        else if (code == 0)
            say_order(cli, done, &orders.items[i], false);
    }
    if (cli->args.json) {
        kiln_json_end_array(&w);
        kiln_buf_putc(&cli->out, '\n');
    }
    if (code == 0 && n == 0) {
        kiln_cli_note(NULL, "there is no such order in force (`kiln agents` shows all)");
        code = KILN_EXIT_FAILED;
    } else if (code == 0) {
        note_rest(cli, &orders, whom);
    }
    kiln_orders_done(&orders);
    return code;
}

/* A word is the name of whatever has an order: it need not be known any more. */
int kiln_orders_withdraw(struct kiln_cli *cli, enum kiln_order_kind kind, const char *done)
{
    struct kiln_order whom = {.kind = kind};
    struct kiln_orders_place place;
    int code = kiln_orders_open(cli, &place);

    if (code == 0)
        code = kiln_orders_whom(&place, false, &whom);
    if (code == 0)
        code = withdraw_all(cli, &place, &whom, done);
    kiln_orders_close(&place);
    return code;
}

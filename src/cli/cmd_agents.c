/* SPDX-License-Identifier: Apache-2.0 */
/* kiln agents: who profiles which host, how well and at what cost; which orders are in force. */
#include "base/when.h"
#include "cli/commands.h"
#include "cli/orders.h"
#include "cli/query.h"
#include "cli/remote.h"
#include "cli/report.h"

static const struct kiln_column agent_columns[] = {
    {"host", KILN_LEFT, KILN_CUT_MIDDLE}, {"state", KILN_LEFT, KILN_KEEP},
    {"version", KILN_LEFT, KILN_KEEP},    {"last seen", KILN_LEFT, KILN_KEEP},
    {"rate", KILN_RIGHT, KILN_KEEP},      {"samples", KILN_RIGHT, KILN_KEEP},
    {"dropped", KILN_RIGHT, KILN_KEEP},   {"complete", KILN_RIGHT, KILN_KEEP},
    {"cpu", KILN_RIGHT, KILN_KEEP},       {"memory", KILN_RIGHT, KILN_KEEP},
    {"orders", KILN_RIGHT, KILN_KEEP},
};

static const struct kiln_column order_columns[] = {
    {"order", KILN_LEFT, KILN_KEEP}, {"target", KILN_LEFT, KILN_CUT_MIDDLE},
    {"rate", KILN_RIGHT, KILN_KEEP}, {"until", KILN_LEFT, KILN_KEEP},
    {"by", KILN_LEFT, KILN_KEEP},    {"why", KILN_LEFT, KILN_KEEP},
    {"id", KILN_LEFT, KILN_KEEP},
};

/* ---- agents ---- */

static void put_state(struct kiln_table *table, const struct kiln_agent_status *agent)
{
    bool there = kiln_agent_is_there(agent);
    bool well = there && (agent->state == KILN_AGENT_RUNNING || agent->state == KILN_AGENT_WAITING);

    kiln_table_add(table, well ? KILN_STYLE_PLAIN : KILN_STYLE_WORSE,
                   kiln_str_of(there ? kiln_agent_state_word(agent->state) : "silent"));
}

static void put_rate(struct kiln_table *table, uint32_t hz)
{
    struct kiln_buf *cell = kiln_table_cell(table, KILN_STYLE_PLAIN);

    if (hz)
        kiln_buf_printf(cell, "%u Hz", hz);
    else
        kiln_buf_putc(cell, '.');
}

static void put_share(struct kiln_table *table, double part, double whole)
{
    kiln_report_share(kiln_table_cell(table, KILN_STYLE_PLAIN), kiln_share(part, whole));
}

static void put_number(struct kiln_table *table, double value, struct kiln_str unit)
{
    kiln_report_number(kiln_table_cell(table, KILN_STYLE_PLAIN), value, unit);
}

static void put_agent(struct kiln_table *table, const struct kiln_agent_status *agent)
{
    uint64_t lost, all;

    kiln_agent_loss(agent, &lost, &all);
    kiln_cli_put_safe(kiln_table_cell(table, KILN_STYLE_STRONG),
                      kiln_str_of(agent->host[0] ? agent->host : agent->id));
    put_state(table, agent);
    kiln_cli_put_safe(kiln_table_cell(table, KILN_STYLE_PLAIN), kiln_str_of(agent->version));
    kiln_query_put_time(kiln_table_cell(table, KILN_STYLE_FAINT), agent->last_seen_ns);
    put_rate(table, agent->hz);
    put_number(table, (double)agent->samples, KILN_STR("count"));
    put_share(table, (double)lost, (double)all);
    put_share(table, (double)agent->complete, (double)agent->all);
    put_share(table, agent->cpu_cores, 1);
    put_number(table, (double)agent->memory_bytes, KILN_STR("bytes"));
    put_number(table, agent->n_orders, KILN_STR("count"));
}

static void print_agents(struct kiln_cli *cli, const struct kiln_agents *agents)
{
    struct kiln_table table;

    if (!agents->n) {
        kiln_cli_note(NULL, "no agent reports to this server (kiln agent --endpoint URL)");
        return;
    }
    kiln_table_init(&table, agent_columns, KILN_ARRAY_LEN(agent_columns));
    for (uint32_t i = 0; i < agents->n; i++)
        put_agent(&table, &agents->items[i]);
    kiln_table_print(&table, &cli->term, 0, &cli->out);
    kiln_table_done(&table);
    for (uint32_t i = 0; i < agents->n; i++) {
        if (!agents->items[i].problem[0])
            continue;
        kiln_cli_put_safe(&cli->out, kiln_str_of(agents->items[i].host));
        kiln_buf_puts(&cli->out, ": ");
        kiln_cli_put_safe(&cli->out, kiln_str_of(agents->items[i].problem));
        kiln_buf_putc(&cli->out, '\n');
    }
}

/* ---- orders ---- */

static void put_order(struct kiln_table *table, const struct kiln_order *order)
{
    struct kiln_buf target;

    kiln_buf_init(&target, 1024);
    kiln_order_describe_target(order, &target);
    kiln_table_add(table, KILN_STYLE_STRONG, kiln_str_of(kiln_order_kind_word(order->kind)));
    kiln_cli_put_safe(kiln_table_cell(table, KILN_STYLE_PLAIN), kiln_buf_str(&target));
    put_rate(table, order->hz);
    kiln_query_put_time(kiln_table_cell(table, KILN_STYLE_PLAIN), order->expires_ns);
    kiln_cli_put_safe(kiln_table_cell(table, KILN_STYLE_PLAIN), kiln_str_of(order->by));
    kiln_cli_put_safe(kiln_table_cell(table, KILN_STYLE_PLAIN), kiln_str_of(order->why));
    kiln_cli_put_safe(kiln_table_cell(table, KILN_STYLE_FAINT), kiln_str_of(order->id));
    kiln_buf_done(&target);
}

static void print_orders(struct kiln_cli *cli, const struct kiln_orders *orders)
{
    struct kiln_table table;

    if (!orders->n)
        return;
    kiln_table_init(&table, order_columns, KILN_ARRAY_LEN(order_columns));
    for (uint32_t i = 0; i < orders->n; i++)
        put_order(&table, &orders->items[i]);
    kiln_buf_putc(&cli->out, '\n');
    kiln_table_print(&table, &cli->term, 0, &cli->out);
    kiln_table_done(&table);
}

/* ---- both ---- */

static void print_json(struct kiln_cli *cli, const struct kiln_agents *agents,
                       const struct kiln_orders *orders)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, &cli->out, 0);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "agents");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < agents->n; i++)
        kiln_agent_status_put(&w, &agents->items[i]);
    kiln_json_end_array(&w);
    kiln_json_put_name(&w, "orders");
    kiln_orders_put(&w, orders);
    kiln_json_end_object(&w);
    kiln_buf_putc(&cli->out, '\n');
}

static int run(struct kiln_cli *cli)
{
    struct kiln_orders_place place;
    struct kiln_agents agents = {0};
    struct kiln_orders orders;
    int code = kiln_orders_open(cli, &place);

    kiln_orders_init(&orders, KILN_ORDERS_SHOWN_MAX);
    if (code == 0)
        code = kiln_agents_get(&place, &agents);
    if (code == 0)
        code = kiln_orders_get(&place, &orders);
    if (code == 0 && cli->args.json) {
        print_json(cli, &agents, &orders);
    } else if (code == 0) {
        print_agents(cli, &agents);
        print_orders(cli, &orders);
    }
    kiln_orders_done(&orders);
    kiln_agents_done(&agents);
    kiln_orders_close(&place);
    return code;
}

static const struct kiln_option options[] = {KILN_OPT_JSON, KILN_OPT_WIDE, KILN_OPT_END};
static const struct kiln_option_group group = {"Output", options};

const struct kiln_command kiln_cmd_agents = {
    .name = "agents",
    .summary = "list the agents of a server, and the orders they follow",
    .operands = "",
    .about =
        "Shows every host profiler that reports to a server: whether it runs, when it was last "
        "seen, how often it samples, what share of samples it dropped, how many stacks are "
        "complete, and what it costs itself (of one processor). Below, the orders in force: "
        "`kiln boost` and `kiln pause` give them. Where no server was named and none listens, "
        "the agent of this host is asked.",
    .groups = {&group, &kiln_group_remote},
    .examples = {{"kiln agents", "all of them"},
                 {"kiln agents --json", "for programs, with all that they count"}},
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agents that report to this server, and orders: the book is DATA-DIR/orders.json.  The host
 * profiler of the all-in-one follows the book too, as every agent does.
 */
#include <stdio.h>

#include "base/clock.h"
#include "cli/serve.h"
#include "fleet/link.h"

#define TENANT  "anonymous" /* whose profiles those of this host are */
#define TICK_NS KILN_NS_PER_S

int kiln_serve_fleet(struct kiln_serve *serve, struct kiln_err *err)
{
    struct kiln_fleet_opts opts = {.metrics = serve->metrics, .log = serve->log};
    char path[PATH_MAX + 16];
    int r;

    snprintf(path, sizeof(path), "%s/orders.json", serve->data_dir);
    opts.path = path;
    r = kiln_fleet_open(&serve->fleet, &opts, err);
    atomic_store(&serve->fleet_open, r == 0);
    return r;
}

void kiln_serve_fleet_done(struct kiln_serve *serve)
{
    kiln_duty_close(serve->duty);
    kiln_fleet_close(&serve->fleet);
}

/* ---- this host ---- */

static void follow(void *context, const struct kiln_order *orders, uint32_t n)
{
    struct kiln_serve *serve = context;
    int r = 0;

    pthread_mutex_lock(&serve->host_lock);
    if (serve->host_runs)
        r = kiln_profiler_set_orders(serve->profiler, orders, n);
    pthread_mutex_unlock(&serve->host_lock);
    if (r < 0)
        kiln_log(serve->log, KILN_LOG_ERROR, "orders cannot be followed", "reason", "%s",
                 kiln_err_text(r), NULL);
}

/* Where memory lacks, orders are only for others. */
void kiln_serve_fleet_follow(struct kiln_serve *serve)
{
    struct kiln_err err = {0};
    struct kiln_duty_opts opts = {.host_id = serve->host_facts.id,
                                  .host_name = serve->host_facts.name,
                                  .follow = follow,
                                  .context = serve,
                                  .log = serve->log};
    struct kiln_duty *duty = NULL;

    if (kiln_order_limit_parse(serve->config->set.agent.orders, &opts.limit) < 0 ||
        kiln_duty_open(&opts, &duty, &err) < 0)
        kiln_log(serve->log, KILN_LOG_WARN, "this host follows no orders", "reason", "%s", err.text,
                 NULL);
    atomic_store(&serve->duty, duty);
}

static void tell_duty(struct kiln_serve *serve, struct kiln_duty *duty)
{
    struct kiln_orders orders;

    kiln_orders_init(&orders, KILN_LINK_ORDERS_MAX);
    if (kiln_fleet_orders_for(&serve->fleet, TENANT, serve->host_facts.id, serve->host_facts.name,
                              &orders) == 0)
        kiln_duty_tell(duty, &orders);
    kiln_orders_done(&orders);
}

void kiln_serve_fleet_beat(struct kiln_serve *serve)
{
    struct kiln_duty *duty = atomic_load(&serve->duty);
    uint64_t now_ns = kiln_clock_mono_ns(), due_ns = atomic_load(&serve->fleet_due_ns);

    if (!atomic_load(&serve->fleet_open) || now_ns < due_ns ||
        !atomic_compare_exchange_strong(&serve->fleet_due_ns, &due_ns, now_ns + TICK_NS))
        return;
    kiln_fleet_tick(&serve->fleet);
    if (duty)
        tell_duty(serve, duty);
}

void kiln_serve_fleet_tell(struct kiln_serve *serve, struct kiln_agent_status *status)
{
    struct kiln_duty *duty = atomic_load(&serve->duty);
    struct kiln_orders orders;

    if (!duty)
        return;
    kiln_orders_init(&orders, KILN_DUTY_ORDERS_MAX);
    if (kiln_duty_list(duty, &orders) == 0)
        kiln_host_status_orders(&orders, status);
    kiln_orders_done(&orders);
}

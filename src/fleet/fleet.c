/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/fleet.h"

int kiln_fleet_open(struct kiln_fleet *fleet, const struct kiln_fleet_opts *opts,
                    struct kiln_err *err)
{
    const char *help = "Orders that agents follow, by what they say.";
    int r;

    *fleet = (struct kiln_fleet){
        .agents = kiln_metric_gauge(opts->metrics, "kiln_fleet_agents",
                                    "Agents that reported to this server within a day."),
        .boosts = kiln_metric_get(opts->metrics, KILN_GAUGE, "kiln_fleet_orders", help,
                                  KILN_LABELS("kind", "boost")),
        .pauses = kiln_metric_get(opts->metrics, KILN_GAUGE, "kiln_fleet_orders", help,
                                  KILN_LABELS("kind", "pause"))};
    r = kiln_roster_new(&fleet->roster);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    return kiln_order_book_open(
        &(struct kiln_order_book_opts){.path = opts->path, .log = opts->log}, &fleet->book, err);
}

void kiln_fleet_close(struct kiln_fleet *fleet)
{
    kiln_order_book_close(fleet->book);
    kiln_roster_free(fleet->roster);
    fleet->book = NULL;
    fleet->roster = NULL;
}

void kiln_fleet_tick(struct kiln_fleet *fleet)
{
    kiln_order_book_expire(fleet->book, kiln_clock_mono_ns());
    kiln_metric_set(fleet->agents, kiln_roster_sweep(fleet->roster, kiln_clock_unix_ns()));
    kiln_metric_set(fleet->boosts, kiln_order_book_count(fleet->book, KILN_ORDER_BOOST));
    kiln_metric_set(fleet->pauses, kiln_order_book_count(fleet->book, KILN_ORDER_PAUSE));
}

int kiln_fleet_orders_for(struct kiln_fleet *fleet, const char *tenant, const char *host_id,
                          const char *host_name, struct kiln_orders *orders)
{
    uint32_t kept = 0;
    int r = kiln_order_book_list(fleet->book, tenant, kiln_clock_mono_ns(), orders);

    for (uint32_t i = 0; i < orders->n; i++)
        if (kiln_order_for_host(&orders->items[i], host_id, host_name))
            orders->items[kept++] = orders->items[i];
    orders->n = kept;
    return r;
}

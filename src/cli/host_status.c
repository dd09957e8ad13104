/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/host_status.h"

#include <stdio.h>

static void add_drop(struct kiln_agent_status *status, const char *reason, uint64_t count)
{
    kiln_agent_add_count(status->drops, &status->n_drops, KILN_AGENT_DROPS, reason, count);
}

static void add_missed(struct kiln_agent_status *status, const char *reason, uint64_t count)
{
    kiln_agent_add_count(status->missed, &status->n_missed, KILN_AGENT_MISSED, reason, count);
}

static void tell_drops(const struct kiln_host_status *host, struct kiln_agent_status *status)
{
    add_drop(status, "lost", host->ends.lost - host->dropped);
    add_drop(status, "not_published", host->dropped);
    add_missed(status, "paused", host->paused_samples);
    add_missed(status, "foreign", host->kernel.counts[KILN_COUNT_FOREIGN]);
    add_missed(status, "waits", host->kernel.counts[KILN_COUNT_WAITS_MISSED]);
    add_missed(status, "batches_failed", host->batches_failed);
}

static enum kiln_agent_state state_of(const struct kiln_host_status *host)
{
    if (host->all_paused)
        return KILN_AGENT_PAUSED;
    if (host->watch.stopped)
        return KILN_AGENT_STOPPED;
    return host->between_windows ? KILN_AGENT_WAITING : KILN_AGENT_RUNNING;
}

/* Why it samples less than it was told to. */
static void tell_budget(const struct kiln_host_watch *watch, struct kiln_agent_status *status)
{
    const char *what = watch->why == KILN_WATCH_MEMORY ? "memory" : "processor time";

    if (watch->stopped)
        snprintf(status->problem, sizeof(status->problem),
                 "nothing is sampled for a while: it would use more %s than it may", what);
    else if (watch->lowered)
        snprintf(status->problem, sizeof(status->problem),
                 "sampling less often than wanted: it used more %s than it may", what);
}

/* Of stacks that there are: threads of the kernel have none, those of 32 bits are not walked. */
static void tell_ends(const struct kiln_end_tally *ends, struct kiln_agent_status *status)
{
    _Static_assert((int)KILN_ENDS <= (int)KILN_AGENT_ENDS, "each has its row");

    status->complete = ends->by_end[KILN_END_COMPLETE];
    status->all = ends->lost;
    for (int end = 0; end < KILN_ENDS; end++) {
        if (end != KILN_END_NO_USER && end != KILN_END_COMPAT)
            status->all += ends->by_end[end];
        kiln_agent_add_count(status->ends, &status->n_ends, KILN_AGENT_ENDS,
                             kiln_end_word((enum kiln_end)end), ends->by_end[end]);
    }
}

void kiln_host_status_tell(struct kiln_host *host, struct kiln_agent_status *status,
                           uint64_t *ret_cpu_ns)
{
    struct kiln_host_status now;

    kiln_host_status(host, &now);
    status->state = state_of(&now);
    status->hz = now.hz;
    status->samples = now.samples;
    status->processes = now.processes;
    status->memory_bytes = now.memory_bytes;
    *ret_cpu_ns = now.cpu_ns;
    tell_drops(&now, status);
    tell_budget(&now.watch, status);
    tell_ends(&now.ends, status);
}

void kiln_host_status_losses(const struct kiln_consumer *exporter, struct kiln_agent_status *status)
{
    struct kiln_export_loss losses[KILN_EXPORT_LOSSES];

    kiln_otlp_exporter_losses(exporter, losses);
    for (uint32_t i = 0; i < KILN_EXPORT_LOSSES; i++) {
        add_drop(status, losses[i].reason, losses[i].samples);
        if (!losses[i].samples) /* what is torn does not say how many it had */
            add_missed(status, losses[i].reason, losses[i].requests);
    }
}

void kiln_host_status_orders(const struct kiln_orders *orders, struct kiln_agent_status *status)
{
    for (uint32_t i = 0; i < orders->n; i++) {
        const struct kiln_order *order = &orders->items[i];

        if (order->kind == KILN_ORDER_PAUSE &&
            (order->target == KILN_TARGET_ALL || order->target == KILN_TARGET_HOST))
            status->state = KILN_AGENT_PAUSED;
        if (status->n_orders < KILN_AGENT_ORDERS)
            snprintf(status->orders[status->n_orders++], KILN_ORDER_ID_BYTES, "%s", order->id);
    }
}

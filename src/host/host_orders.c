/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders on their way to the reader's thread, and what it does by them: whose samples are wanted,
 * and how fast the clocks run.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "host/host_int.h"

static int put_rate(void *context, uint32_t pid, uint32_t hz)
{
    return kiln_kernel_put_rate(context, pid, hz);
}

static void drop_rate(void *context, uint32_t pid)
{
    kiln_kernel_drop_rate(context, pid);
}

int host_orders_new(struct kiln_host *host)
{
    struct kiln_steer_opts opts = {.host_id = host->facts.id,
                                   .host_name = host->facts.name,
                                   .put = put_rate,
                                   .drop = drop_rate,
                                   .context = host->reader.kernel};

    return kiln_steer_new(&opts, &host->reader.steer);
}

void host_orders_free(struct kiln_host *host)
{
    kiln_steer_free(host->reader.steer);
    kiln_free(host->orders.list);
}

/* ---- from whoever gives them ---- */

int kiln_host_set_orders(struct kiln_host *host, const struct kiln_order *orders, uint32_t n)
{
    struct kiln_order *copy = n ? kiln_calloc(n, sizeof(*copy)) : NULL, *old;

    if (n && !copy)
        return -ENOMEM;
    if (n)
        memcpy(copy, orders, n * sizeof(*copy));
    pthread_mutex_lock(&host->lock);
    old = host->orders.list;
    host->orders = (struct host_orders){.list = copy, .n = n, .is_new = true};
    pthread_mutex_unlock(&host->lock);
    kiln_free(old);
    host_wake_reader(host);
    return 0;
}

/* ---- the reader's ---- */

/* Back to where it was found, unless something newer is there. */
static void put_back(struct kiln_host *host, struct host_orders orders)
{
    pthread_mutex_lock(&host->lock);
    if (!host->orders.is_new) {
        host->orders = orders;
        orders.list = NULL;
    }
    pthread_mutex_unlock(&host->lock);
    kiln_free(orders.list);
}

/* Takes what came since; where there is no memory to, it is tried again. */
static void take_new(struct kiln_host *host)
{
    struct host_orders orders;
    int r;

    pthread_mutex_lock(&host->lock);
    orders = host->orders;
    host->orders = (struct host_orders){0};
    pthread_mutex_unlock(&host->lock);
    if (!orders.is_new)
        return;
    r = kiln_steer_follow(host->reader.steer, orders.list, orders.n);
    if (r == 0) {
        kiln_free(orders.list);
        return;
    }
    kiln_log(host->opts.log, KILN_LOG_ERROR, "orders cannot be followed yet", "reason", "%s",
             kiln_err_text(r), NULL);
    put_back(host, orders);
}

void host_orders_step(struct kiln_host *host, uint64_t now_ns)
{
    take_new(host);
    kiln_steer_tick(host->reader.steer, now_ns);
}

bool host_orders_want(struct host_reader *reader, const struct kiln_record *record,
                      const struct kiln_identity *identity)
{
    const struct kiln_steered process = {.pid = record->pid,
                                         .start_ns = record->start_ns,
                                         .start_unix_ns = identity->start_unix_ns,
                                         .service = kiln_identity_service(identity),
                                         .container_id = kiln_identity_container_id(identity),
                                         .container_name = kiln_identity_container_name(identity)};
    bool wanted = kiln_steer_process(reader->steer, &process);

    if (!wanted)
        reader->paused += record->weight;
    return wanted;
}

/* A process that ended, or runs another program, is met anew. */
void host_orders_event(struct host_reader *reader, const struct kiln_event *event)
{
    if (event->kind == KILN_EVENT_LOST)
        kiln_steer_forget_all(reader->steer);
    else if ((event->kind == KILN_EVENT_EXIT && event->pid == event->tid) ||
             (event->kind == KILN_EVENT_COMM && event->exec))
        kiln_steer_forget(reader->steer, event->pid);
}

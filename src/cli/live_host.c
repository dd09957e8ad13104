/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler of this host as a source, as `kiln record` runs it; and the inbox.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/host_settings.h"
#include "cli/live_source.h"

enum { HZ = 97 };

#define CPU_BUDGET 0.05 /* of one processor: somebody looks on, but not at the profiler */

/* ---- inbox ---- */

void kiln_live_inbox_put(struct kiln_live_inbox *inbox, struct kiln_batch *batch)
{
    bool fits;

    pthread_mutex_lock(&inbox->lock);
    fits = inbox->n < KILN_LIVE_INBOX_MAX;
    if (fits)
        inbox->batches[inbox->n++] = kiln_batch_ref(batch);
    else
        inbox->lost++;
    pthread_mutex_unlock(&inbox->lock);
    if (fits)
        eventfd_write(inbox->fd, 1);
}

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct kiln_outcome outcome = {0};

    kiln_live_inbox_put((struct kiln_live_inbox *)consumer, delivery->batch);
    kiln_delivery_end(delivery, &outcome);
}

int kiln_live_inbox_init(struct kiln_live_inbox *inbox)
{
    *inbox = (struct kiln_live_inbox){.consumer.consume = consume};
    pthread_mutex_init(&inbox->lock, NULL);
    inbox->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return inbox->fd < 0 ? -errno : 0;
}

struct kiln_batch *kiln_live_inbox_take(struct kiln_live_inbox *inbox)
{
    struct kiln_batch *batch = NULL;
    eventfd_t count;

    pthread_mutex_lock(&inbox->lock);
    if (inbox->n) {
        batch = inbox->batches[0];
        inbox->n--;
        memmove(inbox->batches, inbox->batches + 1, inbox->n * sizeof(*inbox->batches));
    }
    if (inbox->n == 0)
        eventfd_read(inbox->fd, &count);
    pthread_mutex_unlock(&inbox->lock);
    return batch;
}

void kiln_live_inbox_done(struct kiln_live_inbox *inbox)
{
    struct kiln_batch *batch;

    while ((batch = kiln_live_inbox_take(inbox)) != NULL)
        kiln_batch_unref(batch);
    if (inbox->fd >= 0)
        close(inbox->fd);
    pthread_mutex_destroy(&inbox->lock);
}

/* ---- the host ---- */

struct host_source {
    struct kiln_live_source source;
    struct kiln_host_plan plan;
    struct kiln_host *host;
    char name[64];
};

static void pause_host(struct kiln_live_source *source, bool paused)
{
    struct host_source *h = (struct host_source *)source;

    if (kiln_host_set_rate(h->host, paused ? 0 : h->plan.opts.hz) < 0)
        errno = 0; /* the clocks go on: nothing worse */
}

static void look_host(struct kiln_live_source *source, const struct kiln_live_page *page)
{
    (void)source;
    (void)page;
}

static void tell_facts(struct kiln_live_source *source, struct kiln_live_facts *facts)
{
    struct host_source *h = (struct host_source *)source;
    struct kiln_host_status status = {0};

    kiln_host_status(h->host, &status);
    snprintf(facts->host, sizeof(facts->host), "%s", h->name);
    facts->processors = status.kernel.processors;
    facts->hz = status.hz ? status.hz : h->plan.opts.hz;
    facts->samples = status.samples;
    facts->lost = status.ends.lost;
    facts->complete = status.samples ? kiln_end_success(&status.ends) : -1;
}

static void finish_host(struct kiln_live_source *source)
{
    kiln_host_finish(((struct host_source *)source)->host);
}

static void free_host(struct kiln_live_source *source)
{
    struct host_source *h = (struct host_source *)source;

    if (h->host)
        kiln_host_stop(h->host);
    kiln_host_plan_done(&h->plan);
    kiln_free(h);
}

static const struct kiln_live_source_ops host_ops = {
    .pause = pause_host,
    .look = look_host,
    .facts = tell_facts,
    .finish = finish_host,
    .free = free_host,
};

int kiln_live_host_open(struct kiln_cli *cli, struct kiln_live_inbox *inbox, struct kiln_log *log,
                        struct kiln_live_source **ret_source, struct kiln_err *err)
{
    struct host_source *h = kiln_calloc(1, sizeof(*h));
    struct kiln_host_facts facts;
    int r;

    if (!h)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    h->source.ops = &host_ops;
    r = kiln_host_plan_make(&cli->args.server.host, &h->plan, err);
    if (r == 0) {
        h->plan.opts.hz = h->plan.opts.hz ? h->plan.opts.hz : HZ;
        h->plan.opts.every_ns = cli->args.live.interval_ns;
        h->plan.opts.off_cpu = true;
        h->plan.opts.cpu_budget = CPU_BUDGET;
        h->plan.opts.consumer = &inbox->consumer;
        h->plan.opts.log = log;
        r = kiln_host_start(&h->plan.opts, &h->host, err);
    }
    if (r < 0) {
        free_host(&h->source);
        return r;
    }
    kiln_host_find_facts(&facts);
    snprintf(h->name, sizeof(h->name), "%.63s", facts.name);
    *ret_source = &h->source;
    return 0;
}

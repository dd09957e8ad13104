/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deliveries stay open while they are gathered, so that nothing is acknowledged that only waits;
 * their batches are merged when there is enough of them, or time is up.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/merge.h"
#include "core/otlp_size.h"
#include "pipeline/exporters/queue_int.h"

static uint64_t size_of(const struct kiln_sendq *q, const struct kiln_batch *batch)
{
    return q->opts.batching.sizer == KILN_SIZE_BYTES ? kiln_otlp_size_max(batch) : batch->n_samples;
}

/* Under the lock. */
static int add(struct kiln_sendq *q, struct kiln_delivery *delivery)
{
    struct kiln_gathered *g = &q->gathered;
    struct kiln_budget budget = {.limit = SIZE_MAX / 2};
    int r = kiln_grow(&budget, (void **)&g->list, &g->cap, (uint64_t)g->n + 1, sizeof(g->list[0]),
                      UINT32_MAX / 2);

    if (r < 0)
        return r;
    if (!g->n) {
        g->due_ns = kiln_clock_mono_ns() + q->opts.batching.flush_ns;
        kiln_sendq_wake(q);
    }
    g->list[g->n++] = delivery;
    g->size += size_of(q, delivery->batch);
    return 0;
}

/* Under the lock: takes all that was gathered. */
static struct kiln_gathered take(struct kiln_sendq *q)
{
    struct kiln_gathered taken = q->gathered;

    q->gathered = (struct kiln_gathered){0};
    q->n_unsettled += taken.n != 0;
    return taken;
}

static int merge(struct kiln_delivery *const *list, uint32_t n, struct kiln_batch **ret_batch,
                 struct kiln_err *err)
{
    const struct kiln_merge_opts opts = {.keep_profiles_apart = true}; /* no sample is lost */
    struct kiln_batch **batches = kiln_malloc(n * sizeof(batches[0]));
    int r;

    if (!batches)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        batches[i] = list[i]->batch;
    r = kiln_merge(batches, n, &opts, ret_batch, err);
    kiln_free(batches);
    return r;
}

/* What several deliveries become.  Where they cannot be merged each goes by itself. */
static void send_on(struct kiln_sendq *q, struct kiln_gathered *g)
{
    struct kiln_err err = {0};
    struct kiln_batch *merged = NULL;

    if (g->n > 1 && merge(g->list, g->n, &merged, &err) == 0) {
        struct kiln_delivery content = *g->list[0];

        content.batch = merged;
        content.body = content.recipe = KILN_STR_NONE;
        kiln_sendq_take(q, g->list, g->n, &content);
        kiln_batch_unref(merged);
    } else {
        for (uint32_t i = 0; i < g->n; i++)
            kiln_sendq_take(q, &g->list[i], 1, g->list[i]);
    }
    kiln_free(g->list);
}

/* Called without the lock. */
static void finish(struct kiln_sendq *q, struct kiln_gathered *g)
{
    if (!g->n)
        return;
    send_on(q, g);
    kiln_sendq_settled(q);
}

void kiln_sendq_gather(struct kiln_sendq *q, struct kiln_delivery *delivery)
{
    struct kiln_gathered taken = {0};
    int r;

    pthread_mutex_lock(&q->lock);
    r = add(q, delivery);
    if (r == 0 && q->gathered.size >= q->opts.batching.min)
        taken = take(q);
    pthread_mutex_unlock(&q->lock);
    if (r < 0)
        kiln_sendq_take(q, &delivery, 1, delivery);
    finish(q, &taken);
}

uint64_t kiln_sendq_flush(struct kiln_sendq *q, uint64_t now_ns)
{
    struct kiln_gathered taken;

    if (!q->gathered.n)
        return UINT64_MAX;
    if (!q->stopping && !q->letting_go && q->gathered.due_ns > now_ns)
        return q->gathered.due_ns;
    taken = take(q);
    pthread_mutex_unlock(&q->lock);
    finish(q, &taken);
    pthread_mutex_lock(&q->lock);
    return now_ns; /* look again at once */
}

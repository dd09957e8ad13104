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

#define KIND_MAX ((size_t)64 << 10)

static uint64_t size_of(const struct kiln_sendq *q, const struct kiln_batch *batch)
{
    return q->opts.batching.sizer == KILN_SIZE_BYTES ? kiln_otlp_size_max(batch) : batch->n_samples;
}

static bool is_kind(const struct kiln_gathered *g, struct kiln_str kind)
{
    return kiln_str_eq(kiln_buf_str(&g->kind), kind);
}

static void gathered_free(struct kiln_gathered *g)
{
    kiln_buf_done(&g->kind);
    kiln_free(g->list);
    kiln_free(g);
}

/* Under the lock: those of this kind, new or old; NULL without memory. */
static struct kiln_gathered *find(struct kiln_sendq *q, struct kiln_str kind)
{
    struct kiln_gathered *g = q->gathered;

    while (g && !is_kind(g, kind))
        g = g->next;
    if (g)
        return g;
    g = kiln_calloc(1, sizeof(*g));
    if (!g)
        return NULL;
    kiln_buf_init(&g->kind, KIND_MAX);
    kiln_buf_add_str(&g->kind, kind);
    if (g->kind.error) {
        gathered_free(g);
        return NULL;
    }
    g->due_ns = kiln_clock_mono_ns() + q->opts.batching.flush_ns;
    g->next = q->gathered;
    q->gathered = g;
    kiln_sendq_wake(q);
    return g;
}

/* Under the lock: takes it off the list. */
static struct kiln_gathered *take(struct kiln_sendq *q, struct kiln_gathered *g)
{
    struct kiln_gathered **at = &q->gathered;

    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    q->n_unsettled++;
    return g;
}

/* Under the lock.  *ret_full is what is large enough to go, taken off; or NULL. */
static int add(struct kiln_sendq *q, struct kiln_delivery *delivery, struct kiln_str kind,
               struct kiln_gathered **ret_full)
{
    struct kiln_gathered *g = find(q, kind);
    struct kiln_budget budget = {.limit = SIZE_MAX / 2};
    int r = g ? kiln_grow(&budget, (void **)&g->list, &g->cap, (uint64_t)g->n + 1,
                          sizeof(g->list[0]), UINT32_MAX / 2)
              : -ENOMEM;

    *ret_full = NULL;
    if (r == 0) {
        g->list[g->n++] = delivery;
        g->size += size_of(q, delivery->batch);
    }
    if (g && (r < 0 || g->size >= q->opts.batching.min)) /* none stays empty */
        *ret_full = take(q, g);
    return r;
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
}

/* Called without the lock. */
static void finish(struct kiln_sendq *q, struct kiln_gathered *g)
{
    if (!g)
        return;
    send_on(q, g);
    gathered_free(g);
    kiln_sendq_settled(q);
}

void kiln_sendq_gather(struct kiln_sendq *q, struct kiln_delivery *delivery)
{
    struct kiln_gathered *full = NULL;
    struct kiln_buf kind;
    int r;

    kiln_buf_init(&kind, KIND_MAX);
    kiln_metadata_tell(&q->opts.batching.apart, &delivery->remote, &kind);
    pthread_mutex_lock(&q->lock);
    r = kind.error ? kind.error : add(q, delivery, kiln_buf_str(&kind), &full);
    pthread_mutex_unlock(&q->lock);
    kiln_buf_done(&kind);
    if (r < 0)
        kiln_sendq_take(q, &delivery, 1, delivery);
    finish(q, full);
}

/* Under the lock: what is due; or NULL, and *ret_due_ns says when the first will be. */
static struct kiln_gathered *due(const struct kiln_sendq *q, uint64_t now_ns, uint64_t *ret_due_ns)
{
    bool all = q->stopping || q->letting_go;

    *ret_due_ns = UINT64_MAX;
    for (struct kiln_gathered *g = q->gathered; g; g = g->next) {
        if (all || g->due_ns <= now_ns)
            return g;
        *ret_due_ns = g->due_ns < *ret_due_ns ? g->due_ns : *ret_due_ns;
    }
    return NULL;
}

uint64_t kiln_sendq_flush(struct kiln_sendq *q, uint64_t now_ns)
{
    uint64_t due_ns;
    struct kiln_gathered *g = due(q, now_ns, &due_ns);

    if (!g)
        return due_ns;
    take(q, g);
    pthread_mutex_unlock(&q->lock);
    finish(q, g);
    pthread_mutex_lock(&q->lock);
    return now_ns; /* look again at once */
}

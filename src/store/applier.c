/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread puts what is durable into the heads, in the order of the log.
 *
 * A head that has no room left for a batch is frozen, and the next one takes it.  What was
 * acknowledged is in the log, so that nothing is lost where even that does not work: the record is
 * tried again, and what cannot be applied at all is reported.
 */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "store/pending.h"
#include "store/store_int.h"

#define OVERFLOW_PART 4u /* of the limit of series: for those of services past it */
#define TRIES_MAX     200u
#define TRY_NS        (20 * (long)KILN_NS_PER_MS)
#define SETTLE_NS     (60 * KILN_NS_PER_S)
#define LOOK_NS       (20 * KILN_NS_PER_MS)

/* ---- what the head asks ---- */

struct asking {
    struct kiln_store *store;
    struct kiln_tenant *tenant;
    uint64_t number;
    uint32_t n_unchecked;
};

/* The tenant's lock is held in all of these. */

static bool may_open(void *context, struct kiln_str key)
{
    struct asking *ask = context;
    struct kiln_series_set *known = &ask->tenant->known;
    uint32_t most = ask->store->opts.series_max;

    if (kiln_series_set_has(known, key))
        return true;
    if (kiln_series_is_overflow(key))
        most += most / OVERFLOW_PART + 1;
    if (known->n >= most && ask->tenant->known_stale && !ask->store->has_keeper &&
        kiln_tenant_count_series(ask->tenant) < 0)
        return false;
    return known->n < most && kiln_series_set_add(known, key) >= 0;
}

static bool is_known(void *context, struct kiln_str key, uint64_t time_ns,
                     struct kiln_content_hash hash)
{
    struct asking *ask = context;
    struct kiln_tenant *tenant = ask->tenant;
    int found;

    if (tenant->cutting && kiln_head_has(tenant->cutting, key, time_ns, hash))
        return true;
    found = kiln_seen_find(&tenant->seen, tenant->blocks, tenant->n_blocks, key, time_ns, hash);
    ask->n_unchecked += found < 0;
    return found > 0;
}

static void taken(void *context, struct kiln_str key, uint64_t time_ns,
                  struct kiln_content_hash hash)
{
    struct asking *ask = context;

    kiln_seen_add(&ask->tenant->seen, ask->number, key, time_ns, hash);
}

/* ---- applying ---- */

static void count(struct kiln_store *store, const struct kiln_head_batch *in,
                  const struct asking *ask)
{
    const struct kiln_store_metrics *m = &store->metrics;

    kiln_metric_add(m->profiles, in->n_profiles);
    kiln_metric_add(m->samples, (int64_t)in->n_samples);
    kiln_metric_add(m->duplicates, in->n_duplicates);
    kiln_metric_add(m->time_set, in->n_time_set);
    kiln_metric_add(m->clamped, (int64_t)in->n_clamped);
    kiln_metric_add(m->overflow, in->n_overflow);
    kiln_metric_add(m->unchecked, ask->n_unchecked);
}

/* Wakes the keeper where a cut is due, and notes whether the pool had enough. */
static void look_at_size(struct kiln_store *store, const struct kiln_head *head)
{
    if (!kiln_head_is_charged(head))
        atomic_store(&store->starved, true);
    if (kiln_head_is_full(head) || kiln_store_is_large(store))
        kiln_store_want_cut(store);
}

static int apply_once(struct kiln_store *store, const struct kiln_apply *apply)
{
    struct kiln_tenant *tenant = apply->tenant;
    struct asking ask = {.store = store, .tenant = tenant, .number = apply->number};
    struct kiln_head_batch in = {
        .batch = apply->batch,
        .number = apply->number,
        .received_ns = apply->received_ns,
        .oldest_ns = apply->oldest_ns,
        .may_open = may_open,
        .is_known = is_known,
        .taken = taken,
        .context = &ask,
    };
    uint64_t raw;
    int r;

    pthread_mutex_lock(&tenant->lock);
    raw = kiln_head_info(tenant->head)->raw_bytes;
    r = kiln_head_apply(tenant->head, &in);
    atomic_fetch_add(&store->raw_bytes, kiln_head_info(tenant->head)->raw_bytes - raw);
    look_at_size(store, tenant->head);
    pthread_mutex_unlock(&tenant->lock);
    if (r == 0)
        count(store, &in, &ask);
    return r;
}

/* Puts an empty head in the place of a full one, which waits to be written; false if one does
 * already. */
static bool freeze(struct kiln_store *store, struct kiln_tenant *tenant)
{
    struct kiln_head *fresh;
    bool done = false;

    if (kiln_tenant_new_head(store, &fresh) < 0)
        return false;
    pthread_mutex_lock(&tenant->lock);
    if (!tenant->cutting) {
        tenant->cutting = tenant->head;
        tenant->head = fresh;
        done = true;
    }
    pthread_mutex_unlock(&tenant->lock);
    if (!done)
        kiln_head_unref(fresh);
    return done;
}

/* Makes room for a batch that did not fit. */
static void make_room(struct kiln_store *store, struct kiln_tenant *tenant)
{
    struct timespec pause = {.tv_nsec = TRY_NS};

    if (freeze(store, tenant))
        return;
    if (store->has_keeper) {
        kiln_store_want_cut(store);
        nanosleep(&pause, NULL);
    } else if (kiln_store_cut(store, tenant, NULL) < 0) {
        nanosleep(&pause, NULL);
    }
}

/* Whether the head of a tenant has nothing in it. */
static bool is_alone(struct kiln_tenant *tenant)
{
    bool alone;

    pthread_mutex_lock(&tenant->lock);
    alone = kiln_head_info(tenant->head)->n_profiles == 0;
    pthread_mutex_unlock(&tenant->lock);
    return alone;
}

void kiln_store_apply(struct kiln_store *store, const struct kiln_apply *apply)
{
    int r = apply_once(store, apply);

    for (uint32_t tries = 0; r < 0 && tries < TRIES_MAX; tries++) {
        int before = r;

        make_room(store, apply->tenant);
        r = apply_once(store, apply);
        if (r == KILN_E_LIMIT && before == r && is_alone(apply->tenant))
            break; /* it does not even fit into an empty head */
    }
    if (r < 0) {
        kiln_metric_add(store->metrics.undecodable, 1);
        kiln_log(store->opts.log, KILN_LOG_ERROR, "record could not be applied", "tenant", "%s",
                 apply->tenant->name, "number", "%llu", (unsigned long long)apply->number, "why",
                 "%s", kiln_err_text(r), NULL);
    }
    atomic_store(&store->last_number, apply->number);
}

/* ---- the thread ---- */

static void apply_pending(struct kiln_store *store, struct kiln_pending *pending)
{
    const struct kiln_wal_record *record = &pending->wal.record;
    const struct kiln_pending *next = pending->next;
    struct kiln_append *append = pending->append;
    struct kiln_apply apply = {
        .tenant = pending->tenant,
        .batch = pending->batch,
        .number = record->number,
        .received_ns = record->received_ns,
        .oldest_ns = record->oldest_ns,
    };

    kiln_store_apply(store, &apply);
    kiln_pending_free(store, pending);
    pthread_mutex_lock(&store->lock);
    store->applied++;
    next = next ? next : store->queue;
    store->oldest_mono_ns = next ? next->durable_mono_ns : 0;
    pthread_cond_broadcast(&store->settled);
    pthread_mutex_unlock(&store->lock);
    if (append)
        append->done(append, 0); /* it waited: append.c */
}

struct kiln_store_lag kiln_store_lag(struct kiln_store *store)
{
    struct kiln_store_lag lag;
    uint64_t now = kiln_clock_mono_ns();

    pthread_mutex_lock(&store->lock);
    lag.n = store->queued - store->applied;
    lag.age_ns =
        store->oldest_mono_ns && now > store->oldest_mono_ns ? now - store->oldest_mono_ns : 0;
    pthread_mutex_unlock(&store->lock);
    return lag;
}

/* When it is stopped, it ends with an empty queue. */
void *kiln_applier_main(void *context)
{
    struct kiln_store *store = context;

    for (;;) {
        struct kiln_pending *all;

        pthread_mutex_lock(&store->lock);
        while (!store->queue && !store->stop_applier)
            pthread_cond_wait(&store->work, &store->lock);
        all = store->queue;
        store->queue = NULL;
        store->queue_end = &store->queue;
        pthread_mutex_unlock(&store->lock);
        if (!all)
            return NULL;
        while (all) {
            struct kiln_pending *next = all->next;

            apply_pending(store, all);
            all = next;
        }
    }
}

/* Waits for the applier, but not for long: the caller looks at the leash again.  Under the lock. */
static void wait_a_little(struct kiln_store *store, const struct kiln_leash *leash)
{
    uint64_t until = kiln_clock_mono_ns() + LOOK_NS;
    struct timespec at;

    if (leash->deadline_mono_ns && leash->deadline_mono_ns < until)
        until = leash->deadline_mono_ns;
    at = kiln_timespec_of(until);
    pthread_cond_timedwait(&store->settled, &store->lock, &at);
}

int kiln_store_settle_within(struct kiln_store *store, const struct kiln_leash *leash,
                             struct kiln_err *err)
{
    const struct kiln_leash usual = {.deadline_mono_ns = kiln_clock_mono_ns() + SETTLE_NS};
    uint64_t until, left;
    int r = 0;

    leash = leash ? leash : &usual;
    pthread_mutex_lock(&store->lock);
    until = store->queued;
    while (store->applied < until && (r = kiln_leash_check(leash)) == 0)
        wait_a_little(store, leash);
    left = until - store->applied;
    pthread_mutex_unlock(&store->lock);
    return r < 0 ? kiln_err_set(err, r, NULL,
                                "the store is behind: %llu batches that it took cannot be searched "
                                "yet; ask again later",
                                (unsigned long long)left)
                 : 0;
}

void kiln_store_settle(struct kiln_engine *engine)
{
    struct kiln_store *store = kiln_store_of(engine);
    uint64_t until;

    pthread_mutex_lock(&store->lock);
    until = store->queued;
    while (store->applied < until)
        pthread_cond_wait(&store->settled, &store->lock);
    pthread_mutex_unlock(&store->lock);
}

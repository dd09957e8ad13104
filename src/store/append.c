/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's thread checks what leads to a refusal, encodes the batch where it came in another
 * format, and submits it to the log.  The log's thread tells the outcome: what is durable goes into
 * the queue of the applier first, and is acknowledged then, so that a query after an
 * acknowledgement finds it (kiln_store_settle).
 *
 * Backpressure: where the applier is more than lag_wait_ns behind, appends are acknowledged when
 * they are applied.  Where it is more than lag_max_ns behind all the same, they are refused.
 */
#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "base/clock.h"
#include "codec/otlp.h"
#include "core/profile_time.h"
#include "store/pending.h"
#include "store/retain.h"
#include "store/store_int.h"

#define PROBE_BYTES ((size_t)64 << 10) /* a pool that has these is not at its end */
#define LOG_LAG     4u  /* times what makes a cut: a log larger than that refuses appends */
#define QUEUE_MIN   64u /* batches that always may wait for the applier */
#define ENCODE_MIN  ((size_t)64 << 10)

static void end(struct kiln_append *append, int code, const char *text)
{
    if (code < 0)
        kiln_err_set(&append->err, code, NULL, "%s", text ? text : kiln_err_text(code));
    append->done(append, code);
}

/* ---- what is refused ---- */

/* Whether the pool, which had no more for a head, has some again. */
static bool is_starved(struct kiln_store *store)
{
    if (!atomic_load(&store->starved))
        return false;
    if (kiln_pool_take(store->pool, PROBE_BYTES) < 0)
        return true;
    kiln_pool_give(store->pool, PROBE_BYTES);
    atomic_store(&store->starved, false);
    return false;
}

/* Memory: heads beyond two cuts' worth mean that cuts do not keep up. */
static bool has_memory(struct kiln_store *store)
{
    return atomic_load(&store->head_bytes) <= 2 * store->head_max && !is_starved(store);
}

static int check_memory(struct kiln_store *store)
{
    if (has_memory(store))
        return 0;
    kiln_metric_add(store->metrics.refused_memory, 1);
    return atomic_load(&store->cut_error) == -ENOSPC ? -ENOSPC : -EAGAIN;
}

/* Lag: what a start would have to replay, and what waits to be merged. */
static bool keeps_up(struct kiln_store *store)
{
    return kiln_wal_bytes(store->wal) <= LOG_LAG * store->opts.cut_raw_bytes &&
           atomic_load(&store->raw_bytes) <= 2 * store->opts.cut_raw_bytes &&
           !kiln_keep_is_behind(store);
}

static int check_lag(struct kiln_store *store)
{
    if (keeps_up(store))
        return 0;
    kiln_metric_add(store->metrics.refused_lag, 1);
    return atomic_load(&store->cut_error) == -ENOSPC ? -ENOSPC : -EAGAIN;
}

/* False: the applier is behind although appends wait for it; more senders came than can wait. */
static bool applies_in_time(struct kiln_store *store)
{
    struct kiln_store_lag lag = kiln_store_lag(store);

    return lag.n < QUEUE_MIN || lag.age_ns <= store->opts.lag_max_ns;
}

static int check_applier(struct kiln_store *store)
{
    if (applies_in_time(store))
        return 0;
    kiln_metric_add(store->metrics.refused_lag, 1);
    return -EAGAIN;
}

static int check_space(struct kiln_store *store)
{
    uint64_t left, total;

    if (store->io->space(store->io, &left, &total) < 0 || left >= store->opts.min_free_bytes)
        return 0;
    kiln_metric_add(store->metrics.refused_space, 1);
    return -ENOSPC;
}

/* A full disk is no reason to wait: the append says what is wrong. */
bool kiln_store_has_room(struct kiln_engine *engine, size_t bytes)
{
    struct kiln_store *store = kiln_store_of(engine);

    return atomic_load(&store->cut_error) == -ENOSPC ||
           (has_memory(store) && keeps_up(store) && applies_in_time(store) &&
            kiln_pool_could(store->pool, bytes));
}

static int check_room(struct kiln_store *store, const char **ret_text)
{
    int r;

    *ret_text = "the store has no memory left for more profiles until it has written some";
    r = check_memory(store);
    if (r < 0)
        return r;
    *ret_text = "the store has more waiting to be written than it can replay quickly";
    r = check_lag(store);
    if (r < 0)
        return r;
    *ret_text = "the store has more batches waiting to be added than it adds in two seconds";
    r = check_applier(store);
    if (r < 0)
        return r;
    *ret_text = "the disk is full";
    return check_space(store);
}

/* ---- what is too old ---- */

/* The longest that anything of a tenant is kept. */
static uint64_t age_of(const struct kiln_store *store, const char *tenant)
{
    const struct kiln_store_opts *o = &store->opts;
    uint64_t age =
        kiln_retain_age_ns(&o->retention, o->rules, o->n_rules, kiln_str_of(tenant), KILN_STR_NONE);

    for (uint32_t i = 0; i < o->n_rules; i++) {
        const struct kiln_retention_rule *rule = &o->rules[i];

        if (rule->service && rule->age_ns > age &&
            (!rule->tenant || strcmp(rule->tenant, tenant) == 0))
            age = rule->age_ns;
    }
    return age;
}

static void say_too_old(struct kiln_append *append, uint64_t time_ns, uint64_t oldest_ns)
{
    time_t seconds = (time_t)(time_ns / KILN_NS_PER_S),
           oldest = (time_t)(oldest_ns / KILN_NS_PER_S);
    char text[32], limit[32];
    struct tm tm;

    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &tm));
    strftime(limit, sizeof(limit), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&oldest, &tm));
    kiln_err_set(&append->err, KILN_E_RANGE, NULL,
                 "a profile of %s is older than the retention, which reaches back to %s", text,
                 limit);
}

/* Counts the profiles that are too old, and says why for the first of them. */
static void reject_old(struct kiln_store *store, struct kiln_append *append, uint64_t oldest_ns)
{
    const struct kiln_batch *batch = append->batch;

    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        uint64_t time_ns = kiln_profile_time(batch->profiles[i].time_ns, append->received_ns);

        if (time_ns >= oldest_ns)
            continue;
        if (append->rejected++ == 0)
            say_too_old(append, time_ns, oldest_ns);
    }
    if (append->rejected)
        kiln_metric_add(store->metrics.too_old, append->rejected);
}

/* ---- submitting ---- */

void kiln_pending_free(struct kiln_store *store, struct kiln_pending *pending)
{
    kiln_pool_give(store->pool, pending->charged);
    atomic_fetch_sub(&store->pending_bytes, pending->charged);
    kiln_buf_done(&pending->body);
    kiln_batch_unref(pending->batch);
    kiln_free(pending);
}

static void leave(struct kiln_store *store)
{
    pthread_mutex_lock(&store->lock);
    if (--store->under_way == 0)
        pthread_cond_broadcast(&store->settled);
    pthread_mutex_unlock(&store->lock);
}

static bool enter(struct kiln_store *store)
{
    bool open;

    pthread_mutex_lock(&store->lock);
    open = !store->closing && store->wal;
    store->under_way += open;
    pthread_mutex_unlock(&store->lock);
    return open;
}

/* What senders are told: a disk that is full, or one that fails, for whatever reason. */
static int told(int code)
{
    if (code == -ENOSPC || code == -EDQUOT)
        return -ENOSPC;
    return code == KILN_E_LIMIT || code == -ESHUTDOWN ? code : -EIO;
}

static const char *why_not(int code)
{
    switch (code) {
    case -ENOSPC:
        return "the disk is full";
    case KILN_E_LIMIT:
        return "this is too large for the log";
    case -ESHUTDOWN:
        return "the store is closing";
    default:
        return "the log could not be written";
    }
}

/* Puts a durable append into the queue of the applier, which acknowledges it if it is behind: so
 * senders that wait for an answer slow down.  False: the caller acknowledges it now. */
static bool queue(struct kiln_store *store, struct kiln_pending *pending)
{
    uint64_t now = kiln_clock_mono_ns();
    bool waits;

    pending->durable_mono_ns = now;
    pthread_mutex_lock(&store->lock);
    if (store->oldest_mono_ns == 0)
        store->oldest_mono_ns = now;
    waits = now - store->oldest_mono_ns > store->opts.lag_wait_ns;
    if (!waits)
        pending->append = NULL;
    *store->queue_end = pending;
    store->queue_end = &pending->next;
    store->queued++;
    pthread_cond_signal(&store->work);
    pthread_mutex_unlock(&store->lock);
    return waits;
}

static void logged(struct kiln_wal_append *logged, int code)
{
    struct kiln_pending *pending = (struct kiln_pending *)logged;
    struct kiln_append *append = pending->append;
    struct kiln_store *store = pending->store;

    if (code == 0) {
        kiln_metric_add(store->metrics.appends, 1);
        kiln_buf_done(&pending->body); /* the log has it */
        if (!queue(store, pending))
            end(append, 0, NULL);
    } else {
        kiln_metric_add(store->metrics.refused_io, 1);
        if (code == -ENOENT)
            kiln_store_log_lost(store);
        kiln_pending_free(store, pending);
        end(append, told(code), why_not(told(code)));
    }
    leave(store);
}

/* KILN_E_LIMIT: there will never be enough. */
static int charge(struct kiln_store *store, struct kiln_pending *pending, size_t bytes)
{
    if (kiln_pool_take(store->pool, bytes) < 0)
        return pending->charged + bytes > store->pool->limit - store->reserve ? KILN_E_LIMIT
                                                                              : -EAGAIN;
    pending->charged += bytes;
    atomic_fetch_add(&store->pending_bytes, bytes);
    return 0;
}

static void uncharge(struct kiln_store *store, struct kiln_pending *pending, size_t bytes)
{
    kiln_pool_give(store->pool, bytes);
    pending->charged -= bytes;
    atomic_fetch_sub(&store->pending_bytes, bytes);
}

/* Writes the batch as the log wants it.  Room is charged first: half of what the batch takes is
 * enough for almost all. */
static int encode(struct kiln_store *store, struct kiln_pending *pending, struct kiln_err *err)
{
    size_t room = kiln_batch_bytes(pending->batch) / 2 + ENCODE_MIN;
    int r;

    for (;; room *= 2) {
        r = charge(store, pending, room - pending->body.max);
        if (r < 0)
            return r;
        kiln_buf_done(&pending->body);
        kiln_buf_init(&pending->body, room);
        r = kiln_otlp_encode(pending->batch, NULL, &pending->body, err);
        if (r != KILN_E_LIMIT || room > KILN_WAL_BODY_MAX)
            break;
    }
    if (r < 0)
        return r;
    uncharge(store, pending, room - pending->body.cap);
    pending->wal.record.compression = KILN_PLAIN;
    pending->wal.record.recipe = KILN_STR_NONE;
    pending->wal.record.body = kiln_buf_str(&pending->body);
    return 0;
}

/* Makes what waits for the log; charges what stays in memory until it is applied. */
static int make_pending(struct kiln_store *store, struct kiln_append *append,
                        struct kiln_tenant *tenant, uint64_t oldest_ns,
                        struct kiln_pending **ret_pending)
{
    struct kiln_pending *pending = kiln_calloc(1, sizeof(*pending));
    int r;

    if (!pending)
        return -ENOMEM;
    pending->append = append;
    pending->store = store;
    pending->tenant = tenant;
    pending->batch = kiln_batch_ref(append->batch);
    kiln_buf_init(&pending->body, 0);
    pending->wal = (struct kiln_wal_append){
        .record = {.tenant = kiln_str_of(tenant->name),
                   .received_ns = append->received_ns,
                   .oldest_ns = oldest_ns,
                   .compression = append->body_compression,
                   .recipe = append->recipe,
                   .body = append->body},
        .done = logged,
    };
    r = charge(store, pending, sizeof(*pending) + kiln_batch_bytes(append->batch));
    if (r == 0 && (append->body.len == 0 || (append->recipe.len && !store->opts.follow)))
        r = encode(store, pending, &append->err);
    if (r == 0)
        *ret_pending = pending;
    else
        kiln_pending_free(store, pending);
    return r;
}

uint64_t kiln_store_oldest_ns(const struct kiln_store *store, const char *tenant)
{
    uint64_t now = kiln_clock_unix_ns(), age = age_of(store, tenant);

    return now > age && !kiln_keep_clock_ahead(store) ? now - age : 0;
}

static int submit(struct kiln_store *store, struct kiln_append *append, const char **ret_text)
{
    uint64_t oldest_ns = kiln_store_oldest_ns(store, append->tenant);
    struct kiln_pending *pending = NULL;
    struct kiln_tenant *tenant;
    int r;

    reject_old(store, append, oldest_ns);
    if (append->rejected == append->batch->n_profiles)
        return 1; /* nothing of it is left */
    r = check_room(store, ret_text);
    if (r < 0)
        return r;
    *ret_text = NULL;
    r = kiln_tenant_may_come(store, kiln_str_of(append->tenant))
            ? kiln_tenant_get(store, kiln_str_of(append->tenant), &tenant)
            : KILN_E_LIMIT;
    if (r == KILN_E_LIMIT)
        *ret_text = "the store has as many tenants as it can";
    if (r == 0)
        r = make_pending(store, append, tenant, oldest_ns, &pending);
    if (r == KILN_E_LIMIT && !*ret_text)
        *ret_text = "this takes more memory than the store has";
    atomic_store(&store->short_of_memory, r == -EAGAIN || r == -ENOMEM);
    if (r == -EAGAIN || r == -ENOMEM) {
        kiln_metric_add(store->metrics.refused_memory, 1);
        *ret_text = "the store has no memory left for what is under way";
        return -EAGAIN;
    }
    if (r < 0)
        return r;
    kiln_wal_submit(store->wal, &pending->wal);
    return 0;
}

void kiln_store_append(struct kiln_engine *engine, struct kiln_append *append)
{
    struct kiln_store *store = kiln_store_of(engine);
    const char *text = NULL;
    int r;

    append->rejected = 0;
    append->err = (struct kiln_err){0};
    if (store->opts.read_only) {
        end(append, -EROFS, "the store is open for reading only");
        return;
    }
    if (!kiln_tenant_valid(kiln_str_of(append->tenant))) {
        end(append, KILN_E_MALFORMED, "this is no name for a tenant");
        return;
    }
    if (!enter(store)) {
        end(append, -ESHUTDOWN, "the store is closing");
        return;
    }
    r = submit(store, append, &text);
    if (r == 0)
        return;
    if (r < 0)
        append->err = (struct kiln_err){0};
    end(append, r < 0 ? r : 0, text);
    leave(store);
}

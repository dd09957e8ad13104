/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits, and for how long. */
#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "pipeline/processors/batcher_int.h"

#define QUIET_PART   10u
#define QUIET_MAX_NS (20 * KILN_NS_PER_MS)
#define CROWD_MAX    (1u << 20)
#define METADATA_MAX ((size_t)64 << 10)

/* ---- joining ---- */

static bool same_tenant(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static char *copy_of(const char *tenant)
{
    size_t size = strlen(tenant) + 1;
    char *copy = kiln_malloc(size);

    return copy ? memcpy(copy, tenant, size) : NULL;
}

void kiln_crowd_free(struct kiln_crowd *crowd)
{
    pthread_mutex_destroy(&crowd->lock);
    kiln_free(crowd->parts);
    kiln_free(crowd->n_profiles);
    kiln_free(crowd->all);
    kiln_free(crowd->tenant);
    kiln_buf_done(&crowd->metadata);
    kiln_free(crowd);
}

static struct kiln_crowd *crowd_new(const struct kiln_crowd_kind *kind)
{
    struct kiln_crowd *crowd = kiln_calloc(1, sizeof(*crowd));

    if (!crowd)
        return NULL;
    pthread_mutex_init(&crowd->lock, NULL);
    kiln_buf_init(&crowd->metadata, METADATA_MAX);
    kiln_buf_add_str(&crowd->metadata, kind->metadata);
    crowd->tenant = kind->tenant ? copy_of(kind->tenant) : NULL;
    if ((kind->tenant && !crowd->tenant) || crowd->metadata.error) {
        kiln_crowd_free(crowd);
        return NULL;
    }
    crowd->began_ns = kiln_clock_mono_ns();
    return crowd;
}

/* The one of this kind, if some of it wait. */
static struct kiln_crowd *crowd_of(const struct kiln_batcher *batcher,
                                   const struct kiln_crowd_kind *kind)
{
    struct kiln_crowd *crowd = batcher->crowds;

    while (crowd && !(same_tenant(crowd->tenant, kind->tenant) &&
                      kiln_str_eq(kiln_buf_str(&crowd->metadata), kind->metadata)))
        crowd = crowd->next;
    return crowd;
}

static bool are_too_many(const struct kiln_batcher *batcher)
{
    return batcher->opts.keys.n && batcher->opts.keys_max &&
           batcher->n_crowds >= batcher->opts.keys_max;
}

/* The same, new or old; NULL without memory, or where there are too many kinds. */
static struct kiln_crowd *find_crowd(struct kiln_batcher *batcher,
                                     const struct kiln_crowd_kind *kind)
{
    struct kiln_crowd *crowd = crowd_of(batcher, kind);

    if (crowd || are_too_many(batcher))
        return crowd;
    crowd = crowd_new(kind);
    if (crowd) {
        crowd->batcher = batcher;
        crowd->next = batcher->crowds;
        batcher->crowds = crowd;
        batcher->n_crowds++;
        kiln_metric_add(batcher->cardinality, 1);
    }
    return crowd;
}

/* Needs `metadata` until it is no more needed; false where there is too much of it. */
static bool kind_of(const struct kiln_batcher *batcher, const struct kiln_delivery *delivery,
                    struct kiln_buf *metadata, struct kiln_crowd_kind *ret)
{
    kiln_buf_init(metadata, METADATA_MAX);
    kiln_metadata_tell(&batcher->opts.keys, &delivery->remote, metadata);
    *ret = (struct kiln_crowd_kind){delivery->tenant, kiln_buf_str(metadata)};
    return !metadata->error;
}

static void leave(struct kiln_batcher *batcher, struct kiln_crowd *crowd)
{
    struct kiln_crowd **at = &batcher->crowds;

    while (*at != crowd)
        at = &(*at)->next;
    *at = crowd->next;
    crowd->next = NULL;
    batcher->n_crowds--;
    batcher->waiting -= crowd->n;
    kiln_metric_add(batcher->cardinality, -1);
}

static bool join(struct kiln_crowd *crowd, struct kiln_delivery *delivery)
{
    struct kiln_budget budget = {.limit = SIZE_MAX};

    if (kiln_grow(&budget, (void **)&crowd->all, &crowd->cap, (uint64_t)crowd->n + 1,
                  sizeof(struct kiln_delivery *), CROWD_MAX) < 0)
        return false;
    crowd->all[crowd->n++] = delivery;
    crowd->samples += kiln_delivery_items(delivery);
    crowd->last_ns = kiln_clock_mono_ns();
    crowd->batcher->waiting++;
    kiln_turnout_come(&crowd->batcher->turnout, crowd->last_ns);
    return true;
}

/* ---- time ---- */

static uint64_t due_ns(const struct kiln_batcher *batcher, const struct kiln_crowd *crowd)
{
    uint64_t latest = crowd->began_ns + batcher->opts.timeout_ns;
    uint64_t quiet = crowd->last_ns + batcher->opts.quiet_ns;

    if (crowd->is_all)
        return crowd->last_ns;
    return quiet < latest ? quiet : latest;
}

/* Once all are here that can be expected, none of those that wait does so any longer. */
static void note_turnout(struct kiln_batcher *batcher)
{
    if (!kiln_turnout_is_all(&batcher->turnout, batcher->waiting))
        return;
    for (struct kiln_crowd *crowd = batcher->crowds; crowd; crowd = crowd->next)
        crowd->is_all = true;
    pthread_cond_signal(&batcher->wake);
}

/* Takes out one whose time has come; sets `wakes_ns` for the others. */
static struct kiln_crowd *take_due(struct kiln_batcher *batcher)
{
    uint64_t now = kiln_clock_mono_ns();

    batcher->wakes_ns = UINT64_MAX;
    for (struct kiln_crowd *crowd = batcher->crowds; crowd; crowd = crowd->next) {
        uint64_t due = due_ns(batcher, crowd);

        if (due <= now || batcher->stopping) {
            leave(batcher, crowd);
            return crowd;
        }
        if (due < batcher->wakes_ns)
            batcher->wakes_ns = due;
    }
    return NULL;
}

static void sleep_until_due(struct kiln_batcher *batcher)
{
    struct timespec until = kiln_timespec_of(batcher->wakes_ns);

    if (batcher->wakes_ns == UINT64_MAX)
        pthread_cond_wait(&batcher->wake, &batcher->lock);
    else
        (void)pthread_cond_timedwait(&batcher->wake, &batcher->lock, &until);
}

static void *run(void *arg)
{
    struct kiln_batcher *batcher = arg;

    pthread_mutex_lock(&batcher->lock);
    for (;;) {
        struct kiln_crowd *crowd = take_due(batcher);

        if (crowd) {
            pthread_mutex_unlock(&batcher->lock);
            kiln_metric_add(batcher->by_time, 1);
            kiln_crowd_send(batcher, crowd);
            pthread_mutex_lock(&batcher->lock);
        } else if (batcher->stopping) {
            break;
        } else {
            sleep_until_due(batcher);
        }
    }
    pthread_mutex_unlock(&batcher->lock);
    return NULL;
}

/* ---- the consumer ---- */

/*
 * Bad messages, and those of older revisions, make all that wait with them start again.  Whoever
 * sent one will send more: for a while they are told from others as they come.
 */
static bool is_wary(const struct kiln_batcher *batcher)
{
    uint64_t until_ns = atomic_load_explicit(&batcher->wary_until_ns, memory_order_relaxed);

    return until_ns && kiln_clock_mono_ns() < until_ns;
}

/*
 * Lets a delivery wait.  Returns false where it cannot; else *ret_full is the crowd that it made
 * full, if it did.
 */
static bool wait_for_others(struct kiln_batcher *batcher, struct kiln_delivery *delivery,
                            const struct kiln_crowd_kind *kind, struct kiln_crowd **ret_full)
{
    struct kiln_crowd *crowd;

    *ret_full = NULL;
    if (batcher->stopping)
        return false;
    crowd = find_crowd(batcher, kind);
    if (!crowd || !join(crowd, delivery)) {
        if (crowd && crowd->n == 0) {
            leave(batcher, crowd);
            kiln_crowd_free(crowd);
        }
        return false;
    }
    note_turnout(batcher);
    if (crowd->samples >= batcher->opts.samples || batcher->opts.timeout_ns == 0) {
        leave(batcher, crowd);
        *ret_full = crowd;
    } else if (due_ns(batcher, crowd) < batcher->wakes_ns) {
        pthread_cond_signal(&batcher->wake);
    }
    return true;
}

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct kiln_batcher *batcher = (struct kiln_batcher *)consumer;
    struct kiln_consumer *next = batcher->opts.processor.next;
    struct kiln_crowd_kind kind;
    struct kiln_crowd *full = NULL;
    struct kiln_buf metadata;
    bool waits = false;

    if (delivery->signal != KILN_SIGNAL_PROFILES) {
        next->consume(next, delivery);
        return;
    }
    if (is_wary(batcher) && !kiln_delivery_check(delivery))
        return;
    kiln_processor_count(batcher->counts.incoming, delivery);
    if (kind_of(batcher, delivery, &metadata, &kind)) {
        pthread_mutex_lock(&batcher->lock);
        waits = wait_for_others(batcher, delivery, &kind, &full);
        pthread_mutex_unlock(&batcher->lock);
    }
    kiln_buf_done(&metadata);
    if (full) {
        kiln_metric_add(batcher->by_size, 1);
        kiln_crowd_send(batcher, full);
    } else if (!waits) {
        kiln_batcher_hand_on(batcher, delivery);
    }
}

/* Unless it is the one that is enough: then there is work to do, whose thread that may be. */
static bool is_light(struct kiln_consumer *consumer, const struct kiln_delivery *delivery)
{
    struct kiln_batcher *batcher = (struct kiln_batcher *)consumer;
    uint64_t samples = kiln_delivery_items(delivery);
    const struct kiln_crowd *crowd;
    struct kiln_crowd_kind kind;
    struct kiln_buf metadata;
    bool known = kind_of(batcher, delivery, &metadata, &kind), waits;

    known = known && !(kiln_delivery_is_unchecked(delivery) && is_wary(batcher));
    pthread_mutex_lock(&batcher->lock);
    crowd = crowd_of(batcher, &kind);
    samples += crowd ? crowd->samples : 0;
    waits = known && (crowd || !are_too_many(batcher)) && !batcher->stopping &&
            batcher->opts.timeout_ns && samples < batcher->opts.samples;
    pthread_mutex_unlock(&batcher->lock);
    kiln_buf_done(&metadata);
    return waits;
}

/* ---- making ---- */

static struct kiln_metric *trigger(const struct kiln_processor_opts *opts, const char *name,
                                   const char *help)
{
    return kiln_metric_get(opts->metrics, KILN_COUNTER, name, help,
                           KILN_LABELS("processor", opts->id));
}

static struct kiln_metric *size(const struct kiln_processor_opts *opts, enum kiln_metric_kind kind,
                                const char *name, const char *help)
{
    return kiln_metric_detail(opts->metrics, kind, name, help, KILN_LABELS("processor", opts->id));
}

int kiln_batcher_new(const struct kiln_batcher_opts *opts, struct kiln_batcher **ret_batcher)
{
    struct kiln_batcher *batcher = kiln_calloc(1, sizeof(*batcher));
    uint64_t quiet = opts->timeout_ns / QUIET_PART;

    if (!batcher)
        return -ENOMEM;
    batcher->consumer =
        (struct kiln_consumer){consume, .takes_sealed = true, is_light,
                               opts->processor.next->takes_json, .takes_unchecked = true};
    batcher->opts = *opts;
    if (opts->quiet_ns == 0)
        batcher->opts.quiet_ns = quiet < QUIET_MAX_NS ? quiet : QUIET_MAX_NS;
    batcher->counts = kiln_processor_counts(&opts->processor);
    batcher->by_size = trigger(&opts->processor, "otelcol_processor_batch_batch_size_trigger_send",
                               "Batches that went on because they had enough samples.");
    batcher->by_time = trigger(&opts->processor, "otelcol_processor_batch_timeout_trigger_send",
                               "Batches that went on because they had waited enough.");
    if (opts->keys.n)
        batcher->cardinality = kiln_metric_get(
            opts->processor.metrics, KILN_GAUGE, "otelcol_processor_batch_metadata_cardinality",
            "Different combinations of metadata that are gathered just now.",
            KILN_LABELS("processor", opts->processor.id));
    batcher->send_size =
        size(&opts->processor, KILN_HISTOGRAM_ITEMS, "otelcol_processor_batch_batch_send_size",
             "Samples of a batch that went on.");
    batcher->send_size_bytes =
        size(&opts->processor, KILN_HISTOGRAM_BYTES,
             "otelcol_processor_batch_batch_send_size_bytes", "Bytes of a batch that went on.");
    pthread_mutex_init(&batcher->lock, NULL);
    kiln_cond_init(&batcher->wake);
    *ret_batcher = batcher;
    return 0;
}

int kiln_batcher_start(struct kiln_batcher *batcher)
{
    int r = 0;

    if (batcher->opts.timeout_ns) /* else nobody waits */
        r = kiln_thread_start("batch", run, batcher, &batcher->thread);
    batcher->running = r == 0 && batcher->opts.timeout_ns;
    return r;
}

void kiln_batcher_stop(struct kiln_batcher *batcher)
{
    pthread_mutex_lock(&batcher->lock);
    batcher->stopping = true;
    pthread_cond_signal(&batcher->wake);
    pthread_mutex_unlock(&batcher->lock);
    if (batcher->running)
        pthread_join(batcher->thread, NULL);
    batcher->running = false;
}

void kiln_batcher_free(struct kiln_batcher *batcher)
{
    if (!batcher)
        return;
    pthread_cond_destroy(&batcher->wake);
    pthread_mutex_destroy(&batcher->lock);
    kiln_free(batcher);
}

struct kiln_consumer *kiln_batcher_consumer(struct kiln_batcher *batcher)
{
    return &batcher->consumer;
}

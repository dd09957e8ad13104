/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that merges and retires: one merge after the other while some are due, then blocks
 * that wait for their names, retention once a minute, else it sleeps.  It has low priority: whoever
 * asks or brings something comes first.
 */
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/keep.h"
#include "store/store_int.h"

#define ROUND_NS  KILN_NS_PER_S
#define RETIRE_NS (60 * KILN_NS_PER_S)
#define PAUSE_NS  (10 * KILN_NS_PER_S) /* after a failure: a full disk stays full for a while */
#define NICE      10

/* One round; 1 if there may be more to do at once. */
static int do_round(struct kiln_store *store)
{
    struct kiln_keep *keep = &store->keep;
    uint64_t now = kiln_clock_mono_ns();
    struct kiln_err err = {0};
    int r = 0;

    pthread_mutex_lock(&keep->merging);
    kiln_keep_clock_look(store);
    kiln_keep_rescue_found(store);
    if (now >= keep->retire_next_ns) {
        keep->retire_next_ns = now + RETIRE_NS;
        (void)!kiln_aside_load(store); /* an operator may have removed files */
        if (kiln_keep_retire(store, kiln_clock_unix_ns(), &err) < 0)
            kiln_log(store->opts.log, KILN_LOG_WARN, "retention did not work out", "where", "%s",
                     err.where, "why", "%s", err.text, NULL);
        err = (struct kiln_err){0};
    }
    if (now >= keep->merge_next_ns)
        r = kiln_keep_merge(store, kiln_clock_unix_ns(), false, &err);
    if (r == 0 && now >= keep->merge_next_ns)
        r = kiln_keep_rename(store, false, &err);
    if (r < 0)
        keep->merge_next_ns = now + PAUSE_NS;
    pthread_mutex_unlock(&keep->merging);
    return r;
}

static void pause_round(struct kiln_keep *keep)
{
    uint64_t until = kiln_clock_mono_ns() + ROUND_NS;
    struct timespec at = {(time_t)(until / KILN_NS_PER_S), (long)(until % KILN_NS_PER_S)};

    pthread_mutex_lock(&keep->sleep);
    while (!atomic_load(&keep->stop) && !keep->n_found &&
           pthread_cond_clockwait(&keep->wake, &keep->sleep, CLOCK_MONOTONIC, &at) != ETIMEDOUT)
        continue;
    pthread_mutex_unlock(&keep->sleep);
}

static void *keep_main(void *context)
{
    struct kiln_store *store = context;

    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    while (!atomic_load(&store->keep.stop)) {
        if (do_round(store) <= 0)
            pause_round(&store->keep);
    }
    return NULL;
}

void kiln_keep_start(struct kiln_store *store)
{
    struct kiln_keep *keep = &store->keep;

    pthread_mutex_lock(&keep->sleep);
    if (!keep->has_thread && !store->opts.no_background && !atomic_load(&keep->stop))
        keep->has_thread = kiln_thread_start("kiln-merger", keep_main, store, &keep->thread) == 0;
    pthread_mutex_unlock(&keep->sleep);
}

void kiln_keep_stop(struct kiln_store *store)
{
    struct kiln_keep *keep = &store->keep;
    bool has_thread;

    pthread_mutex_lock(&keep->sleep);
    atomic_store(&keep->stop, true);
    has_thread = keep->has_thread;
    keep->has_thread = false;
    pthread_cond_broadcast(&keep->wake);
    pthread_mutex_unlock(&keep->sleep);
    if (has_thread)
        pthread_join(keep->thread, NULL);
    kiln_keep_rescue_found(store); /* lets go of them */
}

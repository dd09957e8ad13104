/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/receivers/poller.h"

#include <errno.h>

#include "base/clock.h"
#include "base/thread.h"

/* ---- deliveries ---- */

struct found {
    struct kiln_arrival arrival; /* first */
    struct kiln_request request; /* when; nobody answers it */
    struct kiln_poller *poller;
};

static void finish(struct kiln_arrival *arrival, const struct kiln_outcome *outcome)
{
    struct found *found = (struct found *)arrival;
    struct kiln_poller *poller = found->poller;

    kiln_receivers_answered(arrival->owner, poller->kind, outcome->code, &found->request);
    pthread_mutex_lock(&poller->lock);
    poller->ended = true;
    poller->outcome = *outcome;
    pthread_cond_broadcast(&poller->changed);
    pthread_mutex_unlock(&poller->lock);
}

static bool is_worth_another_try(int code)
{
    enum kiln_outcome_kind kind = kiln_outcome_kind(code);

    return kind == KILN_OUTCOME_BUSY || kind == KILN_OUTCOME_STORAGE ||
           kind == KILN_OUTCOME_STOPPING;
}

static int wait_for_end(struct kiln_poller *poller, struct kiln_err *err)
{
    pthread_mutex_lock(&poller->lock);
    while (!poller->ended)
        pthread_cond_wait(&poller->changed, &poller->lock);
    pthread_mutex_unlock(&poller->lock);
    if (!err->code)
        *err = poller->outcome.err;
    return poller->outcome.code;
}

bool kiln_poller_deliver(struct kiln_poller *poller, const struct kiln_source *source,
                         const char *name)
{
    struct found found = {.poller = poller, .request = {.body = source->data}};
    struct kiln_err err = {0};
    int r;

    found.request.received_ns = kiln_clock_unix_ns();
    poller->ended = false;
    kiln_arrival_init(&found.arrival, poller->receivers, poller->kind, &found.request);
    found.arrival.finish = finish;
    r = kiln_arrival_take(&found.arrival, source, &err);
    if (r == 0 && found.arrival.n_samples)
        kiln_arrival_send(&found.arrival);
    else
        kiln_arrival_refuse(&found.arrival, r, &err);
    r = wait_for_end(poller, &err);
    if (r < 0 && is_worth_another_try(r))
        return false;
    if (r < 0)
        kiln_log(poller->log, KILN_LOG_WARN, "profiles were not taken", "from", "%s", name, "error",
                 "%s", err.text[0] ? err.text : kiln_err_text(r), NULL);
    return true;
}

/* ---- the thread ---- */

/* Sleeps, unless it is to stop. */
static void pause_for(struct kiln_poller *poller, uint64_t ns)
{
    struct timespec until = kiln_timespec_of(kiln_clock_mono_ns() + ns);

    pthread_mutex_lock(&poller->lock);
    while (!atomic_load(&poller->stopping) &&
           pthread_cond_timedwait(&poller->changed, &poller->lock, &until) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&poller->lock);
}

static void *run(void *arg)
{
    struct kiln_poller *poller = arg;

    pause_for(poller, poller->delay_ns);
    while (!atomic_load(&poller->stopping)) {
        poller->look(poller->context);
        pause_for(poller, poller->interval_ns);
    }
    return NULL;
}

int kiln_poller_init(struct kiln_poller *poller, const struct kiln_component_env *env,
                     enum kiln_receiver_kind kind, struct kiln_err *err)
{
    const struct kiln_receivers_opts opts = {.next = env->next[KILN_SIGNAL_PROFILES],
                                             .pool = env->pool,
                                             .waits = true,
                                             .metrics = env->metrics,
                                             .log = env->log};
    int r = kiln_receivers_new(&opts, &poller->receivers);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    poller->kind = kind;
    poller->log = env->log;
    pthread_mutex_init(&poller->lock, NULL);
    kiln_cond_init(&poller->changed);
    return 0;
}

int kiln_poller_start(struct kiln_poller *poller, struct kiln_err *err)
{
    int r = kiln_thread_start("kiln-poll", run, poller, &poller->thread);

    poller->started = r == 0;
    return r < 0 ? kiln_err_set(err, r, NULL, "no thread: %s", kiln_err_text(r)) : 0;
}

void kiln_poller_stop(struct kiln_poller *poller)
{
    if (!poller->started)
        return;
    pthread_mutex_lock(&poller->lock);
    atomic_store(&poller->stopping, true);
    pthread_cond_broadcast(&poller->changed);
    pthread_mutex_unlock(&poller->lock);
    pthread_join(poller->thread, NULL);
    poller->started = false;
}

void kiln_poller_done(struct kiln_poller *poller)
{
    if (!poller->receivers)
        return;
    kiln_receivers_free(poller->receivers);
    pthread_cond_destroy(&poller->changed);
    pthread_mutex_destroy(&poller->lock);
}

/* ---- settings ---- */

const struct kiln_poll_settings kiln_poll_default = {.interval_ns = 10 * KILN_NS_PER_S,
                                                     .delay_ns = KILN_NS_PER_S};

int kiln_poll_check(const struct kiln_node *node, const struct kiln_poll_settings *settings,
                    struct kiln_err *err)
{
    if (settings->interval_ns)
        return 0;
    return kiln_node_fail(kiln_node_get(node, "collection_interval"), KILN_E_MALFORMED, err,
                          "\"collection_interval\": requires positive value");
}

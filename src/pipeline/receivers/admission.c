/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/receivers/admission.h"

#include "base/clock.h"
#include "base/thread.h"

#define LOOK_NS    (5 * KILN_NS_PER_MS)
#define BEGIN_NS   (100 * KILN_NS_PER_MS) /* a client that left meanwhile never begins */
#define TOO_SMALL  ((size_t)64 << 10)     /* to wait for: it is taken from what is left */
#define SECONDS(n) ((double)(n) / (double)KILN_NS_PER_S)

static struct kiln_metric *refusals(struct kiln_metrics *metrics, const char *reason)
{
    return kiln_metric_get(metrics, KILN_COUNTER, "kiln_admission_refused_total",
                           "Requests refused because others waited for memory, or they had to for "
                           "too long.",
                           KILN_LABELS("reason", reason));
}

void kiln_admission_init(struct kiln_admission *a, const struct kiln_admission_opts *opts)
{
    *a = (struct kiln_admission){.opts = *opts};
    pthread_mutex_init(&a->lock, NULL);
    kiln_cond_init(&a->wake);
    a->waiting = kiln_metric_gauge(opts->metrics, "kiln_admission_waiting",
                                   "Requests that wait for memory.");
    a->seconds =
        kiln_metric_get(opts->metrics, KILN_HISTOGRAM, "kiln_admission_wait_seconds",
                        "Seconds that a request waited for memory, each time.", KILN_LABELS(NULL));
    a->full = refusals(opts->metrics, "full");
    a->late = refusals(opts->metrics, "timeout");
}

/* ---- the queue; all of it under the lock ---- */

/* In order of arrival: a request that failed again goes back to where it was. */
static void insert(struct kiln_admission *a, struct kiln_request *request)
{
    struct kiln_request **at = &a->first;

    while (*at && (*at)->turn.since_ns <= request->turn.since_ns)
        at = &(*at)->turn.next;
    request->turn.next = *at;
    *at = request;
    a->n++;
    kiln_metric_add(a->waiting, 1);
}

static struct kiln_request *take_out(struct kiln_admission *a, struct kiln_request **at)
{
    struct kiln_request *request = *at;

    *at = request->turn.next;
    a->n--;
    kiln_metric_add(a->waiting, -1);
    return request;
}

static bool is_over(const struct kiln_admission *a, const struct kiln_request *request,
                    uint64_t now_ns)
{
    return a->stopped || now_ns >= request->turn.since_ns + a->opts.patience_ns;
}

static bool fits(const struct kiln_admission *a, const struct kiln_request *request)
{
    size_t memory = request->turn.memory;

    return (memory < TOO_SMALL || kiln_pool_could(a->opts.pool, memory)) &&
           (!a->opts.has_room || a->opts.has_room(a->opts.context, request->turn.store));
}

static struct kiln_request **find_gone(struct kiln_admission *a)
{
    struct kiln_request **at = &a->first;

    while (*at && !atomic_load_explicit(kiln_request_gone(*at), memory_order_relaxed))
        at = &(*at)->turn.next;
    return at;
}

struct kiln_request *kiln_admission_next(struct kiln_admission *a, uint64_t now_ns)
{
    struct kiln_request *next = NULL, **gone;

    pthread_mutex_lock(&a->lock);
    gone = find_gone(a);
    if (*gone) {
        next = take_out(a, gone);
    } else if (a->first && is_over(a, a->first, now_ns)) {
        next = take_out(a, &a->first);
    } else if (a->first && (!a->called || now_ns - a->called_ns >= BEGIN_NS) && fits(a, a->first)) {
        next = a->called = take_out(a, &a->first);
        a->called_ns = now_ns;
    }
    pthread_mutex_unlock(&a->lock);
    return next;
}

/* ---- requests ---- */

bool kiln_admission_may_try(struct kiln_admission *a, struct kiln_request *request)
{
    bool may;

    pthread_mutex_lock(&a->lock);
    may = request->turn.since_ns || a->n == 0;
    if (a->called == request) {
        a->called = NULL;
        pthread_cond_signal(&a->wake);
    }
    pthread_mutex_unlock(&a->lock);
    return may;
}

/* Under the lock; false: counted. */
static bool may_wait(struct kiln_admission *a, const struct kiln_request *request, uint64_t now_ns)
{
    if (!a->running || is_over(a, request, now_ns)) {
        kiln_metric_add(a->late, 1);
        return false;
    }
    if (a->n < a->opts.max)
        return true;
    kiln_metric_add(a->full, 1);
    return false;
}

bool kiln_admission_wait(struct kiln_admission *a, struct kiln_request *request,
                         struct kiln_lack lack)
{
    uint64_t now_ns = kiln_clock_mono_ns();
    bool waits;

    kiln_request_watch(request);
    pthread_mutex_lock(&a->lock);
    if (!request->turn.since_ns)
        request->turn.since_ns = now_ns;
    waits = may_wait(a, request, now_ns);
    if (waits) {
        request->turn.queued_ns = now_ns;
        request->turn.memory = lack.memory;
        request->turn.store = lack.store;
        insert(a, request);
        pthread_cond_signal(&a->wake);
    }
    pthread_mutex_unlock(&a->lock);
    return waits;
}

/* ---- the thread ---- */

static void call(struct kiln_admission *a, struct kiln_request *request)
{
    kiln_metric_observe(a->seconds, SECONDS(kiln_clock_mono_ns() - request->turn.queued_ns));
    a->opts.again(request);
}

/* Waits for a signal or, while requests wait, until the pool is to be looked at again. */
static void rest(struct kiln_admission *a)
{
    struct timespec until = kiln_timespec_of(kiln_clock_mono_ns() + LOOK_NS);

    if (a->n)
        pthread_cond_timedwait(&a->wake, &a->lock, &until);
    else
        pthread_cond_wait(&a->wake, &a->lock);
}

static void *watch(void *arg)
{
    struct kiln_admission *a = arg;
    struct kiln_request *next;

    pthread_mutex_lock(&a->lock);
    while (!a->stopped || a->n) {
        pthread_mutex_unlock(&a->lock);
        while ((next = kiln_admission_next(a, kiln_clock_mono_ns())))
            call(a, next);
        pthread_mutex_lock(&a->lock);
        if (!a->stopped)
            rest(a);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

int kiln_admission_start(struct kiln_admission *a)
{
    int r = kiln_thread_start("kiln-admission", watch, a, &a->thread);

    a->running = r == 0;
    return r;
}

void kiln_admission_stop(struct kiln_admission *a)
{
    bool running;

    pthread_mutex_lock(&a->lock);
    running = a->running;
    a->stopped = true;
    a->running = false;
    pthread_cond_signal(&a->wake);
    pthread_mutex_unlock(&a->lock);
    if (running)
        pthread_join(a->thread, NULL);
}

void kiln_admission_done(struct kiln_admission *a)
{
    kiln_admission_stop(a);
    pthread_cond_destroy(&a->wake);
    pthread_mutex_destroy(&a->lock);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/mem.h"
#include "base/thread.h"
#include "net/server_int.h"

void kiln_queue_init(struct kiln_queue *queue, uint32_t max)
{
    *queue = (struct kiln_queue){.max = max};
    queue->end = &queue->first;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->more, NULL);
}

void kiln_queue_done(struct kiln_queue *queue)
{
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->more);
}

bool kiln_queue_push(struct kiln_queue *queue, struct kiln_exchange *x)
{
    bool taken, wake;

    pthread_mutex_lock(&queue->lock);
    taken = !queue->stopped && queue->n < queue->max;
    wake = taken && queue->n_waiting > 0;
    if (taken) {
        x->queued = NULL;
        *queue->end = x;
        queue->end = &x->queued;
        queue->n++;
    }
    pthread_mutex_unlock(&queue->lock);
    if (wake)
        pthread_cond_signal(&queue->more);
    return taken;
}

struct kiln_exchange *kiln_queue_pop(struct kiln_queue *queue)
{
    struct kiln_exchange *x;

    pthread_mutex_lock(&queue->lock);
    while (!queue->first && !queue->stopped) {
        queue->n_waiting++;
        pthread_cond_wait(&queue->more, &queue->lock);
        queue->n_waiting--;
    }
    x = queue->stopped ? NULL : queue->first;
    if (x) {
        queue->first = x->queued;
        queue->n--;
        if (!queue->first)
            queue->end = &queue->first;
    }
    pthread_mutex_unlock(&queue->lock);
    return x;
}

/* What still waits is given back to its loop unanswered. */
void kiln_queue_stop(struct kiln_queue *queue)
{
    struct kiln_exchange *x, *next;

    pthread_mutex_lock(&queue->lock);
    queue->stopped = true;
    x = queue->first;
    queue->first = NULL;
    queue->end = &queue->first;
    queue->n = 0;
    pthread_cond_broadcast(&queue->more);
    pthread_mutex_unlock(&queue->lock);
    for (; x; x = next) {
        next = x->queued;
        kiln_loop_post_answer(x->loop, x);
    }
}

static void refuse(struct kiln_exchange *x, const struct kiln_reply *reply)
{
    x->answer = kiln_exchange_refusal(x, reply);
    kiln_loop_post_answer(x->loop, x);
}

/* To the threads of its lane. */
static void pass_on(struct kiln_exchange *x)
{
    struct kiln_reply reply = {.status = 503,
                               .content_type = "text/plain; charset=utf-8",
                               .body = KILN_STR("too many requests wait, try again\n"),
                               .headers = {{KILN_STR("retry-after"), KILN_STR("1")}},
                               .n_headers = 1};

    if (kiln_crew_give(&x->server->crews[x->route->lane], x))
        return;
    kiln_server_refused(x->server, "queue");
    refuse(x, &reply);
}

/* Asks the guard again; who is let in goes to where the handler runs. */
static void ask_again(struct kiln_exchange *x)
{
    struct kiln_reply reply;

    if (kiln_exchange_ask(x, true, &reply))
        pass_on(x);
    else
        refuse(x, &reply);
}

void kiln_request_again(struct kiln_request *request)
{
    struct kiln_exchange *x = (struct kiln_exchange *)request;

    x->unsure = false; /* the guard has let it in */
    pass_on(x);
}

void kiln_exchange_handle(struct kiln_exchange *x)
{
    if (atomic_load_explicit(&x->gone, memory_order_relaxed))
        kiln_loop_post_answer(x->loop, x);
    else if (x->unsure)
        ask_again(x);
    else
        x->route->handler(&x->request);
}

/* ---- crews ---- */

void kiln_crew_init(struct kiln_crew *crew, enum kiln_lane lane,
                    const struct kiln_server_opts *opts)
{
    const char *const *label = KILN_LABELS("lane", lane == KILN_LANE_LONG ? "long" : "quick");

    kiln_queue_init(&crew->queue, opts->queue_max);
    crew->busy = kiln_metric_get(opts->metrics, KILN_GAUGE, "kiln_http_handled",
                                 "Requests that a thread of the lane handles now.", label);
    crew->queued =
        kiln_metric_get(opts->metrics, KILN_GAUGE, "kiln_http_queued",
                        "Requests that are all there and wait for a thread of the lane.", label);
}

static void *serve(void *arg)
{
    struct kiln_crew *crew = arg;
    struct kiln_exchange *x;

    while ((x = kiln_queue_pop(&crew->queue))) {
        kiln_metric_add(crew->queued, -1);
        kiln_metric_add(crew->busy, 1);
        kiln_exchange_handle(x);
        kiln_metric_add(crew->busy, -1);
    }
    return NULL;
}

int kiln_crew_start(struct kiln_crew *crew, const char *name, uint32_t n)
{
    int r = 0;

    crew->threads = kiln_calloc(n, sizeof(*crew->threads));
    if (!crew->threads)
        return -ENOMEM;
    for (; r == 0 && crew->n_threads < n; crew->n_threads += r == 0)
        r = kiln_thread_start(name, serve, crew, &crew->threads[crew->n_threads]);
    return r;
}

void kiln_crew_join(struct kiln_crew *crew)
{
    for (uint32_t i = 0; i < crew->n_threads; i++)
        pthread_join(crew->threads[i], NULL);
    crew->n_threads = 0;
}

void kiln_crew_done(struct kiln_crew *crew)
{
    kiln_queue_done(&crew->queue);
    kiln_free(crew->threads);
}

bool kiln_crew_give(struct kiln_crew *crew, struct kiln_exchange *x)
{
    kiln_metric_add(crew->queued, 1); /* before a thread can take it off again */
    if (kiln_queue_push(&crew->queue, x))
        return true;
    kiln_metric_add(crew->queued, -1);
    return false;
}

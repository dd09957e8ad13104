/* SPDX-License-Identifier: Apache-2.0 */
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

struct kiln_exchange *kiln_queue_pop(struct kiln_queue *queue, bool wait)
{
    struct kiln_exchange *x;

    pthread_mutex_lock(&queue->lock);
    while (wait && !queue->first && !queue->stopped) {
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

void kiln_exchange_handle(struct kiln_exchange *x)
{
    if (atomic_load_explicit(&x->gone, memory_order_relaxed))
        kiln_loop_post_answer(x->loop, x);
    else
        x->route->handler(&x->request);
}

void *kiln_worker_run(void *server)
{
    struct kiln_queue *queue = &((struct kiln_server *)server)->queue;
    struct kiln_exchange *x;

    while ((x = kiln_queue_pop(queue, true)))
        kiln_exchange_handle(x);
    return NULL;
}

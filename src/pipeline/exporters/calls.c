/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/exporters/calls.h"

#include <errno.h>

#include "base/thread.h"

void kiln_calls_init(struct kiln_calls *calls, const struct kiln_otlp_sender_opts *opts)
{
    pthread_mutex_init(&calls->lock, NULL);
    pthread_cond_init(&calls->wake, NULL);
    calls->last = &calls->first;
    calls->client = kiln_otlp_client_opts(&calls->out.target, KILN_OUTGOING_ANSWER_MAX);
    calls->client.server_name = opts->server_name;
    calls->client.system_ca = opts->system_ca;
    calls->client.proxy = opts->proxy;
    calls->client.cookies = opts->cookies;
    calls->client.connects_anew = opts->connects_anew;
    calls->client.min_version = opts->min_version;
    calls->client.max_version = opts->max_version;
    calls->client.cancel = &calls->cancel;
    calls->threads_max =
        opts->consumers < KILN_CALLS_THREADS_MAX ? opts->consumers : KILN_CALLS_THREADS_MAX;
}

void kiln_calls_done(struct kiln_calls *calls)
{
    pthread_mutex_lock(&calls->lock);
    calls->end = true;
    pthread_cond_broadcast(&calls->wake);
    pthread_mutex_unlock(&calls->lock);
    for (uint32_t i = 0; i < calls->n_threads; i++)
        pthread_join(calls->threads[i], NULL);
    pthread_cond_destroy(&calls->wake);
    pthread_mutex_destroy(&calls->lock);
    kiln_outgoing_done(&calls->out);
}

void kiln_calls_cancel(struct kiln_sender *sender)
{
    atomic_store(&((struct kiln_calls *)sender)->cancel, true);
}

static int call_once(const struct kiln_calls *calls, struct kiln_client *client,
                     const struct kiln_export_item *item, struct kiln_answer *answer,
                     struct kiln_err *err)
{
    struct kiln_outgoing_call call;
    int r = kiln_outgoing_call(&calls->out, item, &call, err);

    if (r < 0)
        return r;
    r = kiln_client_call(client, &call.call, answer, err);
    kiln_outgoing_call_done(&call);
    return r;
}

static void make_call(struct kiln_calls *calls, struct kiln_client **client,
                      struct kiln_answer *answer, struct kiln_send *send)
{
    struct kiln_export_verdict verdict;
    struct kiln_err err = {0};
    int r = 0;

    if (atomic_load(&calls->cancel))
        r = kiln_err_set(&err, -ECANCELED, NULL, "the exporter is stopping");
    if (r == 0 && !*client)
        r = kiln_client_new(&calls->client, client, &err);
    if (r == 0)
        r = call_once(calls, *client, send->item, answer, &err);
    /* An answer has the form of its request. */
    kiln_export_judge(send->item->head.json ? KILN_OTLP_HTTP_JSON : KILN_OTLP_HTTP, r, answer, &err,
                      &verdict);
    send->ended(send, &verdict);
}

/* NULL: the end has come. */
static struct kiln_send *next_send(struct kiln_calls *calls)
{
    struct kiln_send *send;

    pthread_mutex_lock(&calls->lock);
    calls->n_idle++;
    while (!calls->first && !calls->end)
        pthread_cond_wait(&calls->wake, &calls->lock);
    calls->n_idle--;
    send = calls->first;
    if (send) {
        calls->first = send->next;
        calls->n_waiting--;
        if (!calls->first)
            calls->last = &calls->first;
    }
    pthread_mutex_unlock(&calls->lock);
    return send;
}

static void *run(void *context)
{
    struct kiln_calls *calls = context;
    struct kiln_client *client = NULL;
    struct kiln_answer answer;
    struct kiln_send *send;

    kiln_answer_init(&answer);
    while ((send = next_send(calls)))
        make_call(calls, &client, &answer, send);
    kiln_answer_done(&answer);
    kiln_client_free(client);
    return NULL;
}

/* Under the lock; false: there is no thread at all. */
static bool has_thread(struct kiln_calls *calls)
{
    if (calls->n_waiting > calls->n_idle && calls->n_threads < calls->threads_max &&
        kiln_thread_start("kiln-send", run, calls, &calls->threads[calls->n_threads]) == 0)
        calls->n_threads++;
    return calls->n_threads;
}

void kiln_calls_send(struct kiln_sender *sender, struct kiln_send *send)
{
    static const struct kiln_export_verdict no_thread = {.fate = KILN_EXPORT_AGAIN,
                                                         .reason = "no thread could be started"};
    struct kiln_calls *calls = (struct kiln_calls *)sender;
    bool taken;

    pthread_mutex_lock(&calls->lock);
    calls->n_waiting++;
    taken = has_thread(calls);
    if (taken) {
        send->next = NULL;
        *calls->last = send;
        calls->last = &send->next;
        pthread_cond_signal(&calls->wake);
    } else {
        calls->n_waiting--;
    }
    pthread_mutex_unlock(&calls->lock);
    if (!taken)
        send->ended(send, &no_thread);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sending side of the collector costs: requests of 33 kB through a queue and the gRPC
 * exporter to a server of this process that answers at once; and the same bytes sent by libcurl
 * (net/client.h), one call after another.
 *
 *   bench_send [MEGABYTES [h2|curl]]
 *
 * Prints CPU seconds a GB, of the whole process, its receiving side included.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "net/rpc.h"
#include "pipeline/exporters/queue.h"

enum { BODY = 33 << 10, SENDERS = 16 };
#define METHOD "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

static _Atomic uint64_t came;
static char body[BODY];
static char server_name[64];
static uint64_t n_requests;

static void answer(struct kiln_rpc *rpc)
{
    atomic_fetch_add(&came, rpc->message.len);
    kiln_rpc_reply(rpc, KILN_STR(""));
}

static int serve(struct kiln_server **ret_server)
{
    struct kiln_router *router;
    struct kiln_err err = {0};
    uint16_t port;
    int r = kiln_router_new(&router);

    if (r == 0)
        r = kiln_rpc_add(router, &(struct kiln_rpc_route){.path = METHOD, .handler = answer});
    if (r == 0)
        r = kiln_server_new(NULL, ret_server);
    if (r == 0)
        r = kiln_server_listen(
            *ret_server, &(struct kiln_listen_opts){.address = "127.0.0.1:0", .router = router},
            &port, &err);
    if (r == 0)
        r = kiln_server_start(*ret_server, &err);
    if (r == 0)
        snprintf(server_name, sizeof(server_name), "http://127.0.0.1:%u", port);
    return r;
}

static double cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* ---- the queue ---- */

struct sender {
    struct kiln_delivery delivery;
    struct kiln_consumer *queue;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool busy;
};

static void done(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    struct sender *s = delivery->context;

    if (outcome->code)
        fprintf(stderr, "refused: %d\n", outcome->code);
    pthread_mutex_lock(&s->lock);
    s->busy = false;
    pthread_cond_signal(&s->ended);
    pthread_mutex_unlock(&s->lock);
}

/* One after the other, each when the one before was taken, as a client of OTLP does it. */
static void *send_all(void *context)
{
    struct sender *s = context;

    for (uint64_t i = 0; i < n_requests / SENDERS; i++) {
        s->delivery = (struct kiln_delivery){
            .body = {body, sizeof(body)}, .body_is_current = true, .done = done, .context = s};
        s->busy = true;
        s->queue->consume(s->queue, &s->delivery);
        pthread_mutex_lock(&s->lock);
        while (s->busy)
            pthread_cond_wait(&s->ended, &s->lock);
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

static int by_queue(void)
{
    struct kiln_otlp_sender_opts opts = {
        .target = {.endpoint = server_name, .protocol = "grpc", .compression = "none"},
        .request_max = 1 << 22,
        .consumers = 10};
    struct kiln_sendq_opts queue_opts = {
        .name = "otlp", .consumers = 10, .size = 1000, .signal = KILN_SIGNAL_PROFILES};
    struct kiln_sender *sender;
    struct kiln_sendq *queue;
    struct sender senders[SENDERS];
    pthread_t threads[SENDERS];
    int r = kiln_otlp_sender_new(&opts, &sender, NULL);

    if (r == 0)
        r = kiln_sendq_new(&queue_opts, sender, &queue, NULL);
    if (r == 0)
        r = kiln_sendq_start(queue, NULL);
    if (r < 0)
        return r;
    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){.queue = kiln_sendq_consumer(queue)};
        pthread_mutex_init(&senders[i].lock, NULL);
        pthread_cond_init(&senders[i].ended, NULL);
        pthread_create(&threads[i], NULL, send_all, &senders[i]);
    }
    for (int i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    kiln_sendq_stop(queue, kiln_clock_mono_ns() + 60 * KILN_NS_PER_S);
    kiln_sendq_free(queue);
    return 0;
}

/* ---- libcurl ---- */

static int by_curl(void)
{
    const struct kiln_call call = {.path = METHOD, .body = {body, sizeof(body)}};
    struct kiln_client *client;
    struct kiln_answer reply;
    struct kiln_err err = {0};
    int r = kiln_client_new(&(struct kiln_client_opts){.server = server_name}, &client, &err);

    kiln_answer_init(&reply);
    for (uint64_t i = 0; r == 0 && i < n_requests; i++) {
        r = kiln_client_grpc(client, &call, &reply, NULL);
        if (r < 0) /* the server has ended the connection, which libcurl finds out by trying */
            r = kiln_client_grpc(client, &call, &reply, &err);
    }
    if (r < 0)
        fprintf(stderr, "%s: %s\n", err.where, err.text);
    kiln_answer_done(&reply);
    kiln_client_free(client);
    return r;
}

int main(int argc, char **argv)
{
    uint64_t megabytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    bool curl = argc > 2 && strcmp(argv[2], "curl") == 0;
    struct kiln_server *server;
    double before, took;

    n_requests = megabytes * 1000000 / BODY;
    if (serve(&server) < 0)
        return 1;
    before = cpu_seconds();
    if ((curl ? by_curl() : by_queue()) < 0)
        return 1;
    took = cpu_seconds() - before;
    printf("%s: %.0f MB in requests of %d kB: %.2f CPU seconds a GB, sending and receiving\n",
           curl ? "libcurl" : "queue and HTTP/2 client", (double)came / 1e6, BODY >> 10,
           took / ((double)came / 1e9));
    kiln_server_stop(server, 0);
    return came == 0;
}

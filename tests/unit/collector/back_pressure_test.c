/* SPDX-License-Identifier: Apache-2.0 */
/* More than there is memory for: senders wait, and nobody is refused. */
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/pb.h"
#include "test.h"
#include "ways_kit.h"

#define TRACES "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

enum { SENDERS = 16, REQUESTS = 12, SPAN_BYTES = 200 << 10, POOL_BYTES = 4 << 20 };

/* An exporter that ends what it holds one after the other, from a thread of its own. */
struct slow {
    struct kiln_consumer consumer; /* first */
    pthread_mutex_t lock;          /* of all below */
    pthread_cond_t more;
    struct kiln_delivery *held[SENDERS * REQUESTS];
    uint32_t n_in, n_out;
};

static void hold(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct slow *slow = (struct slow *)consumer;

    pthread_mutex_lock(&slow->lock);
    slow->held[slow->n_in++] = delivery;
    pthread_cond_signal(&slow->more);
    pthread_mutex_unlock(&slow->lock);
}

static void *release(void *arg)
{
    struct slow *slow = arg;

    while (slow->n_out < SENDERS * REQUESTS) {
        struct kiln_delivery *delivery;

        pthread_mutex_lock(&slow->lock);
        while (slow->n_out == slow->n_in)
            pthread_cond_wait(&slow->more, &slow->lock);
        delivery = slow->held[slow->n_out++];
        pthread_mutex_unlock(&slow->lock);
        usleep(1000);
        kiln_delivery_end(delivery, &(struct kiln_outcome){0});
    }
    return NULL;
}

struct sender {
    pthread_t thread;
    uint16_t port;
    struct kiln_str message;
    uint32_t accepted;
    char said[300]; /* why one was not */
};

static void *send_all(void *arg)
{
    struct sender *sender = arg;
    struct kiln_client *client;
    struct kiln_answer answer;
    struct kiln_err err = {0};
    char address[64];

    snprintf(address, sizeof(address), "http://127.0.0.1:%u", sender->port);
    if (kiln_client_new(&(struct kiln_client_opts){.server = address, .timeout_ms = 120000},
                        &client, &err) < 0)
        return NULL;
    kiln_answer_init(&answer);
    for (int i = 0; i < REQUESTS; i++) {
        struct kiln_call call = {.path = TRACES, .body = sender->message};

        if (kiln_client_grpc(client, &call, &answer, &err) < 0)
            snprintf(sender->said, sizeof(sender->said), "%s", err.text);
        else if (answer.rpc_code)
            snprintf(sender->said, sizeof(sender->said), "%s", answer.message);
        else
            sender->accepted++;
    }
    kiln_answer_done(&answer);
    kiln_client_free(client);
    return NULL;
}

/* One span of zeros: field 15, bytes, which nobody knows. */
static struct kiln_str make_message(struct kiln_buf *out)
{
    static char zeros[SPAN_BYTES];
    struct kiln_pb_out w;
    size_t span, scope, resource;

    kiln_buf_init(out, 1u << 20);
    kiln_pb_out_init(&w, 1024, 1u << 20);
    resource = scope = span = kiln_pb_mark(&w);
    kiln_pb_put_bytes(&w, 15, (struct kiln_str){zeros, sizeof(zeros)});
    kiln_pb_put_message(&w, 2, span);
    kiln_pb_put_message(&w, 2, scope);
    kiln_pb_put_message(&w, 1, resource);
    CHECK_OK(kiln_pb_out_flush(&w, out));
    kiln_pb_out_done(&w);
    return kiln_buf_str(out);
}

TEST(back_pressure, nobody_is_refused)
{
    static struct slow slow = {.consumer.consume = hold,
                               .lock = PTHREAD_MUTEX_INITIALIZER,
                               .more = PTHREAD_COND_INITIALIZER};
    struct sender senders[SENDERS];
    pthread_t releaser;
    struct kiln_buf message;
    struct ways kit;

    make_message(&message);
    ways_start(&kit, KILN_RECEIVER, "otlp", "{protocols: {grpc: {endpoint: '127.0.0.1:0'}}}");
    kit.ends[KILN_SIGNAL_TRACES].instead = &slow.consumer;
    kit.pool.limit = POOL_BYTES;
    CHECK_EQ(pthread_create(&releaser, NULL, release, &slow), 0);
    for (int i = 0; i < SENDERS; i++) {
        senders[i] =
            (struct sender){.port = ways_port(&kit, "grpc"), .message = kiln_buf_str(&message)};
        CHECK_EQ(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]), 0);
    }
    for (int i = 0; i < SENDERS; i++) {
        pthread_join(senders[i].thread, NULL);
        CHECK_TEXT(senders[i].said, "");
        CHECK_EQ(senders[i].accepted, REQUESTS);
    }
    pthread_join(releaser, NULL);
    CHECK(atomic_load(&kit.pool.peak) <= POOL_BYTES);
    CHECK(atomic_load(&kit.pool.peak) > POOL_BYTES / 2);
    kiln_buf_done(&message);
    ways_stop(&kit);
}

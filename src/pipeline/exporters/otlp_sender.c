/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP over HTTP by threads whose calls wait (calls.h), and over gRPC by one connection for all
 * calls (net/h2client.h).
 */
#include <errno.h>

#include "base/mem.h"
#include "net/h2client.h"
#include "pipeline/exporters/calls.h"

#define ANSWER_MAX ((size_t)4 << 20)

struct otlp_sender {
    struct kiln_calls calls; /* first; of gRPC only its sender */
    struct kiln_otlp_target target;
    struct kiln_export_shape shape;
    struct kiln_h2client *client; /* of gRPC */
};

static char *no_variable(const char *name)
{
    (void)name;
    return NULL;
}

static int pack(struct kiln_sender *sender, const struct kiln_delivery *delivery,
                struct kiln_export_item **ret_items, struct kiln_err *err)
{
    return kiln_export_pack(delivery, &((struct otlp_sender *)sender)->shape, ret_items, err);
}

/* ---- HTTP ---- */

static int call_http(struct kiln_calls *calls, struct kiln_client *client,
                     const struct kiln_export_item *item, struct kiln_answer *answer,
                     struct kiln_err *err)
{
    return kiln_otlp_call(&((struct otlp_sender *)calls)->target, client, &item->head,
                          kiln_export_item_body(item), answer, err);
}

static void free_http(struct kiln_sender *sender)
{
    struct otlp_sender *s = (struct otlp_sender *)sender;

    kiln_calls_done(&s->calls);
    kiln_otlp_target_done(&s->target);
    kiln_free(s);
}

static const struct kiln_sender_ops http_ops = {
    .pack = pack,
    .send = kiln_calls_send,
    .cancel = kiln_calls_cancel,
    .free = free_http,
};

static void open_http(struct otlp_sender *s, const struct kiln_otlp_sender_opts *opts)
{
    s->calls.sender.ops = &http_ops;
    s->calls.client = kiln_otlp_client_opts(&s->target, ANSWER_MAX);
    s->calls.client.server_name = opts->server_name;
    s->calls.client.min_version = opts->min_version;
    s->calls.client.max_version = opts->max_version;
    s->calls.threads_max = opts->consumers;
    s->calls.call = call_http;
    s->calls.protocol = s->target.protocol;
    kiln_calls_init(&s->calls);
}

/* ---- gRPC ---- */

struct grpc_send {
    struct kiln_send *send;
    struct kiln_call request;
};

static void grpc_ended(void *context, int code, const struct kiln_answer *answer,
                       const struct kiln_err *err)
{
    struct grpc_send *g = context;
    struct kiln_send *send = g->send;
    struct kiln_export_verdict verdict;

    kiln_export_judge(KILN_OTLP_GRPC, code, answer, err, &verdict);
    kiln_free(g);
    send->ended(send, &verdict);
}

static void send_grpc(struct kiln_sender *sender, struct kiln_send *send)
{
    static const struct kiln_export_verdict no_memory = {
        .fate = KILN_EXPORT_AGAIN, .reason = "there is no memory for the request"};
    struct otlp_sender *s = (struct otlp_sender *)sender;
    struct grpc_send *g = kiln_malloc(sizeof(*g));

    if (!g) {
        send->ended(send, &no_memory);
        return;
    }
    *g = (struct grpc_send){.send = send,
                            .request = kiln_otlp_request(&s->target, &send->item->head,
                                                         kiln_export_item_body(send->item))};
    kiln_h2client_start(s->client, &g->request, grpc_ended, g);
}

static void cancel_grpc(struct kiln_sender *sender)
{
    kiln_h2client_cancel(((struct otlp_sender *)sender)->client);
}

static void free_grpc(struct kiln_sender *sender)
{
    struct otlp_sender *s = (struct otlp_sender *)sender;

    kiln_h2client_free(s->client);
    kiln_otlp_target_done(&s->target);
    kiln_free(s);
}

static const struct kiln_sender_ops grpc_ops = {
    .pack = pack,
    .send = send_grpc,
    .cancel = cancel_grpc,
    .free = free_grpc,
};

static int open_grpc(struct otlp_sender *s, const struct kiln_otlp_sender_opts *opts,
                     struct kiln_err *err)
{
    const struct kiln_h2client_opts client = {
        .server = s->target.server,
        .ca_file = s->target.ca_file,
        .cert_file = s->target.cert_file,
        .key_file = s->target.key_file,
        .server_name = opts->server_name,
        .insecure = s->target.insecure,
        .min_version = opts->min_version,
        .max_version = opts->max_version,
        .timeout_ms = s->target.timeout_ms,
        .answer_max = ANSWER_MAX,
    };

    s->calls.sender.ops = &grpc_ops;
    return kiln_h2client_new(&client, &s->client, err);
}

/* ---- both ---- */

int kiln_otlp_sender_target(const struct kiln_otlp_sender_opts *opts,
                            struct kiln_otlp_target *target, struct kiln_err *err)
{
    return kiln_otlp_target_find(&opts->target, no_variable, target, err);
}

int kiln_otlp_sender_new(const struct kiln_otlp_sender_opts *opts, struct kiln_sender **ret_sender,
                         struct kiln_err *err)
{
    struct otlp_sender *s = kiln_calloc(1, sizeof(*s));
    int r;

    if (!s)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    r = kiln_otlp_sender_target(opts, &s->target, err);
    s->shape = (struct kiln_export_shape){.compression = s->target.compression,
                                          .level = opts->level,
                                          .json = s->target.protocol == KILN_OTLP_HTTP_JSON,
                                          .request_max = opts->request_max};
    if (r == 0 && s->target.protocol == KILN_OTLP_GRPC)
        r = open_grpc(s, opts, err);
    else if (r == 0)
        open_http(s, opts);
    if (r < 0) {
        kiln_otlp_target_done(&s->target);
        kiln_free(s);
        return r;
    }
    *ret_sender = &s->calls.sender;
    return 0;
}

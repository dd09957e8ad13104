/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP over HTTP by threads whose calls wait (calls.h), and over gRPC by one connection for all
 * calls (net/h2client.h).
 */
#include <errno.h>

#include "base/mem.h"
#include "net/h2client.h"
#include "pipeline/exporters/calls.h"

struct otlp_sender {
    struct kiln_calls calls;      /* first; of gRPC only what goes out */
    struct kiln_h2client *client; /* of gRPC */
};

static bool passes(const struct kiln_sender *sender, const struct kiln_delivery *delivery)
{
    return kiln_export_passes(delivery, &((const struct kiln_outgoing *)sender)->shape);
}

static int pack(struct kiln_sender *sender, const struct kiln_delivery *delivery,
                struct kiln_export_item **ret_items, struct kiln_err *err)
{
    return kiln_export_pack(delivery, &((struct kiln_outgoing *)sender)->shape, ret_items, err);
}

/* ---- HTTP ---- */

static void free_http(struct kiln_sender *sender)
{
    kiln_calls_done((struct kiln_calls *)sender);
    kiln_free(sender);
}

static const struct kiln_sender_ops http_ops = {
    .passes = passes,
    .pack = pack,
    .send = kiln_calls_send,
    .cancel = kiln_calls_cancel,
    .free = free_http,
};

/* ---- gRPC ---- */

struct grpc_send {
    struct kiln_send *send;
    struct kiln_export_item item; /* what is sent, where it is not the very request */
    struct kiln_buf body;         /* of it */
    struct kiln_outgoing_call call;
};

static void grpc_send_free(struct grpc_send *g)
{
    if (g)
        kiln_buf_done(&g->body);
    kiln_free(g);
}

static void grpc_ended(void *context, int code, const struct kiln_answer *answer,
                       const struct kiln_err *err)
{
    struct grpc_send *g = context;
    struct kiln_send *send = g->send;
    struct kiln_export_verdict verdict;

    kiln_export_judge(KILN_OTLP_GRPC, code, answer, err, &verdict);
    kiln_outgoing_call_done(&g->call);
    grpc_send_free(g);
    send->ended(send, &verdict);
}

/* A queue on disk may have requests that were made for another protocol. */
static int find_item(struct grpc_send *g, const struct kiln_export_item **ret_item,
                     struct kiln_err *err)
{
    int r = 0;

    *ret_item = g->send->item;
    if (!g->send->item->head.json)
        return 0;
    r = kiln_export_from_json(&g->send->item->head, kiln_export_item_body(g->send->item), &g->body,
                              err);
    g->item = (struct kiln_export_item){
        .head = g->send->item->head, .body = g->body.ptr, .len = g->body.len, .borrowed = true};
    g->item.head.json = false;
    *ret_item = &g->item;
    return r;
}

static void send_grpc(struct kiln_sender *sender, struct kiln_send *send)
{
    struct otlp_sender *s = (struct otlp_sender *)sender;
    struct kiln_export_verdict verdict;
    const struct kiln_export_item *item = NULL;
    struct kiln_err err = {.text = "there is no memory for the request"};
    struct grpc_send *g = kiln_calloc(1, sizeof(*g));
    int r = -ENOMEM;

    if (g) {
        g->send = send;
        kiln_buf_init(&g->body, SIZE_MAX / 2);
        r = find_item(g, &item, &err);
    }
    if (r == 0)
        r = kiln_outgoing_call(&s->calls.out, item, &g->call, &err);
    if (r < 0) {
        grpc_send_free(g);
        kiln_export_judge(KILN_OTLP_GRPC, r, NULL, &err, &verdict);
        send->ended(send, &verdict);
        return;
    }
    kiln_h2client_start(s->client, &g->call.call, grpc_ended, g);
}

static void cancel_grpc(struct kiln_sender *sender)
{
    kiln_h2client_cancel(((struct otlp_sender *)sender)->client);
}

static void free_grpc(struct kiln_sender *sender)
{
    struct otlp_sender *s = (struct otlp_sender *)sender;

    kiln_h2client_free(s->client);
    kiln_outgoing_done(&s->calls.out);
    kiln_free(s);
}

static const struct kiln_sender_ops grpc_ops = {
    .passes = passes,
    .pack = pack,
    .send = send_grpc,
    .cancel = cancel_grpc,
    .free = free_grpc,
};

static int connect_grpc(struct otlp_sender *s, const struct kiln_otlp_sender_opts *opts,
                        struct kiln_err *err)
{
    const struct kiln_otlp_target *target = &s->calls.out.target;
    const struct kiln_h2client_opts client = {
        .server = target->server,
        .ca_file = target->ca_file,
        .cert_file = target->cert_file,
        .key_file = target->key_file,
        .server_name = opts->server_name,
        .insecure = target->insecure,
        .system_ca = opts->system_ca,
        .min_version = opts->min_version,
        .max_version = opts->max_version,
        .timeout_ms = target->timeout_ms,
        .answer_max = KILN_OUTGOING_ANSWER_MAX,
        .authority = opts->authority,
        .ping_after_ms = opts->ping_after_ms,
        .ping_timeout_ms = opts->ping_timeout_ms,
        .pings_idle = opts->pings_idle,
    };

    return kiln_h2client_new(&client, &s->client, err);
}

/* ---- both ---- */

int kiln_otlp_sender_new(const struct kiln_otlp_sender_opts *opts, struct kiln_sender **ret_sender,
                         struct kiln_err *err)
{
    struct otlp_sender *s = kiln_calloc(1, sizeof(*s));
    bool grpc;
    int r;

    if (!s)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    r = kiln_outgoing_open(&s->calls.out, opts, err);
    grpc = s->calls.out.target.protocol == KILN_OTLP_GRPC;
    s->calls.out.sender.ops = grpc ? &grpc_ops : &http_ops;
    s->calls.out.sender.takes_json = !grpc;
    if (r == 0 && grpc)
        r = connect_grpc(s, opts, err);
    else if (r == 0)
        kiln_calls_init(&s->calls, opts);
    if (r < 0) {
        kiln_outgoing_done(&s->calls.out);
        kiln_free(s);
        return r;
    }
    *ret_sender = &s->calls.out.sender;
    return 0;
}

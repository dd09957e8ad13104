/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces, metrics and logs, which Kiln passes on as they came.
 *
 *   Export...ServiceRequest  1 resource_...   ResourceX  2 scope_...   ScopeX  2 the items
 *   Metric  5 gauge  7 sum  9 histogram  10 exponential_histogram  11 summary
 *           each: 1 data_points
 *
 * A message is uncompressed to see that it is one and to count what is in it, and goes on as
 * received; JSON (otlp_others_json.c) only where all who get it can send it on as such.
 */
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "codec/pb.h"
#include "pipeline/receivers/otlp_int.h"

/* ---- counting ---- */

enum { LEVELS = 3 }; /* of messages around the items */

static int count_fields(struct kiln_str message, uint32_t tag, uint64_t *items)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_pb_field f;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0)
        *items += f.tag == tag;
    return n;
}

/* The data points of one metric. */
static int count_points(struct kiln_str metric, uint64_t *items)
{
    struct kiln_pb r = kiln_pb_of(metric);
    struct kiln_pb_field f;
    int n, failed;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag != KILN_PB_BYTES(5) && f.tag != KILN_PB_BYTES(7) && f.tag != KILN_PB_BYTES(9) &&
            f.tag != KILN_PB_BYTES(10) && f.tag != KILN_PB_BYTES(11))
            continue;
        failed = count_fields(f.bytes, KILN_PB_BYTES(1), items);
        if (failed < 0)
            return failed;
    }
    return n;
}

static int count(struct kiln_str message, int level, bool points, uint64_t *items)
{
    static const uint32_t tags[LEVELS] = {KILN_PB_BYTES(1), KILN_PB_BYTES(2), KILN_PB_BYTES(2)};
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_pb_field f;
    int n, failed = 0;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag != tags[level])
            continue;
        if (level < LEVELS - 1)
            failed = count(f.bytes, level + 1, points, items);
        else if (points)
            failed = count_points(f.bytes, items);
        else
            ++*items;
        if (failed < 0)
            return failed;
    }
    return n;
}

int kiln_otlp_count_items(enum kiln_signal signal, struct kiln_str message, uint64_t *ret_items)
{
    *ret_items = 0;
    return count(message, 0, signal == KILN_SIGNAL_METRICS, ret_items);
}

/* ---- the call ---- */

struct other_call {
    struct kiln_arrival arrival; /* first */
    struct kiln_rpc *rpc;
};

static void finish(struct kiln_arrival *arrival, const struct kiln_outcome *outcome)
{
    struct other_call *c = (struct other_call *)arrival;
    char text[KILN_OUTCOME_TEXT];

    kiln_receivers_answered(arrival->owner, KILN_RECEIVER_OTLP, outcome->code, c->rpc->request);
    if (outcome->code < 0) {
        struct kiln_rpc_status status = kiln_outcome_status(outcome, text, sizeof(text));

        kiln_rpc_fail(c->rpc, &status);
    } else {
        kiln_otlp_reply(c->rpc, arrival->delivery.signal, outcome->rejected, outcome->err.text);
    }
    kiln_free(c);
}

static int count_all(const struct kiln_rpc *rpc, struct kiln_str message,
                     struct kiln_delivery *delivery, struct kiln_err *err)
{
    if (rpc->json)
        return kiln_otlp_count_json_items(delivery->signal, message, &delivery->items, err);
    if (kiln_otlp_count_items(delivery->signal, message, &delivery->items) < 0)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL, "the message is not OTLP in protobuf");
    return 0;
}

static int look_into(struct other_call *c, struct kiln_err *err)
{
    struct kiln_delivery *delivery = &c->arrival.delivery;
    struct kiln_str message = c->rpc->message;
    struct kiln_buf content = {0};
    int r = kiln_receivers_enter(c->arrival.owner, c->rpc->request, err);

    if (r == 0 && c->rpc->compression != KILN_PLAIN && message.len) {
        r = kiln_arrival_content(&c->arrival, c->rpc->compression, message, &content, err);
        message = kiln_buf_str(&content);
    }
    if (r == 0)
        r = count_all(c->rpc, message, delivery, err);
    kiln_buf_done(&content);
    kiln_arrival_release(&c->arrival); /* it goes on as it came */
    delivery->body = c->rpc->message;
    delivery->body_is_json = c->rpc->json;
    delivery->body_compression = c->rpc->compression;
    return r;
}

static void refuse_json(struct kiln_rpc *rpc)
{
    struct kiln_receivers *receivers = rpc->context;

    kiln_receivers_answered(receivers, KILN_RECEIVER_OTLP, KILN_E_UNSUPPORTED, rpc->request);
    kiln_rpc_fail(rpc, &(struct kiln_rpc_status){
                           .code = KILN_RPC_UNIMPLEMENTED,
                           .http_status = 415,
                           .message = "signals other than profiles are passed on as they came, "
                                      "and an exporter of this pipeline speaks gRPC, which has no "
                                      "JSON: have the sender use application/x-protobuf, or the "
                                      "pipeline otlp_http alone"});
}

void kiln_otlp_pass_on(struct kiln_rpc *rpc, enum kiln_signal signal)
{
    struct kiln_receivers *receivers = rpc->context;
    struct kiln_consumer *next = receivers->opts.others[signal];
    struct kiln_err err = {0};
    struct other_call *c;
    int r;

    if (rpc->json && !next->takes_json) {
        refuse_json(rpc);
        return;
    }
    c = kiln_malloc(sizeof(*c));
    if (!c) {
        kiln_rpc_fail(rpc, &(struct kiln_rpc_status){.code = KILN_RPC_UNAVAILABLE,
                                                     .retry_after_s = 1,
                                                     .message = kiln_err_text(-ENOMEM)});
        return;
    }
    *c = (struct other_call){.rpc = rpc};
    kiln_arrival_init(&c->arrival, receivers, KILN_RECEIVER_OTLP, rpc->request);
    c->arrival.finish = finish;
    c->arrival.next = next;
    c->arrival.delivery.signal = signal;
    r = look_into(c, &err);
    if (r == 0 && c->arrival.delivery.items)
        kiln_arrival_send(&c->arrival);
    else
        kiln_arrival_refuse(&c->arrival, r, &err);
}

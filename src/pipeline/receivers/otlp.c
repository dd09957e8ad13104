/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP profiles over gRPC, Connect and plain HTTP, protobuf and JSON.
 *
 * The message is an ExportProfilesServiceRequest, which has the bytes of ProfilesData in every
 * revision.  The answer:
 *
 *   ExportProfilesServiceResponse  1 partial_success
 *   ExportProfilesPartialSuccess   1 rejected_profiles (int64)  2 error_message
 *
 * A protobuf message whose profiles were all good goes along with its batch as it was received, so
 * that a store may keep it without encoding it again.  Where whoever is next takes it sealed, a
 * message that can be vouched for goes on alone, and is decoded only if somebody opens it; to one
 * who takes it unchecked it goes when its samples are counted.
 *
 * Samples that have neither values nor timestamps are what a message looks like whose sender
 * numbers the fields as an older revision did: no error anywhere, and nothing in it.  The sender is
 * told.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

#include "base/json.h"
#include "base/mem.h"
#include "codec/otlp.h"
#include "codec/otlp_json.h"
#include "codec/pb.h"
#include "pipeline/receivers/otlp_int.h"

#define ANSWER_MAX 4096u

struct otlp_call {
    struct kiln_arrival arrival; /* first */
    struct kiln_rpc *rpc;
    struct kiln_seal seal;
    struct kiln_otlp_info info;
    uint64_t silent; /* samples */
};

/* ---- the answer ---- */

/* In protobuf every signal's response is alike; in JSON it has names. */
static void put_json(struct kiln_buf *out, enum kiln_signal signal, uint64_t rejected,
                     const char *why)
{
    static const char *const names[KILN_SIGNALS] = {"rejectedProfiles", "rejectedSpans",
                                                    "rejectedDataPoints", "rejectedLogRecords"};
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 0);
    kiln_json_put_object(&w);
    if (rejected || why[0]) {
        kiln_json_put_name(&w, "partialSuccess");
        kiln_json_put_object(&w);
        if (rejected) {
            kiln_json_put_name(&w, names[signal]);
            kiln_json_put_u64_text(&w, rejected);
        }
        kiln_json_put_name(&w, "errorMessage");
        kiln_json_put_str(&w, kiln_str_of(why));
        kiln_json_end_object(&w);
    }
    kiln_json_end_object(&w);
}

static void put_protobuf(struct kiln_buf *out, uint64_t rejected, const char *why)
{
    struct kiln_pb_out w;
    size_t mark;

    kiln_pb_out_init(&w, 64, ANSWER_MAX);
    mark = kiln_pb_mark(&w);
    kiln_pb_put_bytes(&w, 2, kiln_str_of(why));
    kiln_pb_put_number(&w, 1, rejected);
    if (kiln_pb_mark(&w) != mark)
        kiln_pb_put_message(&w, 1, mark);
    (void)!kiln_pb_out_flush(&w, out);
    kiln_pb_out_done(&w);
}

void kiln_otlp_reply(struct kiln_rpc *rpc, enum kiln_signal signal, uint64_t rejected,
                     const char *why)
{
    struct kiln_buf out;

    kiln_buf_init(&out, ANSWER_MAX);
    if (rpc->json)
        put_json(&out, signal, rejected, why);
    else
        put_protobuf(&out, rejected, why);
    kiln_rpc_reply(rpc, kiln_buf_str(&out));
    kiln_buf_done(&out);
}

/* The first reason why something was not taken: the receiver's, else the exporter's. */
static void explain(const struct otlp_call *c, const struct kiln_outcome *outcome, char *text,
                    size_t size)
{
    const struct kiln_err *err =
        c->arrival.delivery.rejected && !c->silent ? &c->arrival.delivery.why : &outcome->err;

    text[0] = '\0';
    if (c->silent)
        snprintf(text, size,
                 "%llu samples have neither values nor timestamps and were left out; does the "
                 "sender number the fields as an older revision of OTLP profiles did? (read as "
                 "%s)",
                 (unsigned long long)c->silent, kiln_otlp_revision_name(c->info.revision));
    else if (c->arrival.delivery.rejected || outcome->rejected)
        snprintf(text, size, "%s%s%s", err->where, err->where[0] ? ": " : "",
                 err->text[0] ? err->text : "the profile was not taken");
}

static void finish(struct kiln_arrival *arrival, const struct kiln_outcome *outcome)
{
    struct otlp_call *c = (struct otlp_call *)arrival;
    char text[KILN_OUTCOME_TEXT];

    if (!outcome) {
        kiln_rpc_leave(c->rpc);
        kiln_free(c);
        return;
    }
    kiln_receivers_answered(arrival->owner, KILN_RECEIVER_OTLP, outcome->code, c->rpc->request);
    if (outcome->code < 0) {
        struct kiln_rpc_status status = kiln_outcome_status(outcome, text, sizeof(text));

        kiln_rpc_fail(c->rpc, &status);
    } else {
        explain(c, outcome, text, sizeof(text));
        kiln_otlp_reply(c->rpc, KILN_SIGNAL_PROFILES,
                        (uint64_t)arrival->delivery.rejected + outcome->rejected, text);
    }
    kiln_free(c);
}

/* ---- the request ---- */

static int decode_protobuf(void *context, struct kiln_str content, struct kiln_builder *b,
                           struct kiln_err *err)
{
    const struct kiln_otlp_opts opts = {.drop_bad_profiles = true};
    struct otlp_call *c = context;
    int r;

    c->info = (struct kiln_otlp_info){0};
    r = kiln_otlp_decode(content, &opts, b, &c->info, err);
    c->silent = kiln_builder_silent(b);
    return r;
}

static int decode_json(void *context, struct kiln_str content, struct kiln_builder *b,
                       struct kiln_err *err)
{
    struct otlp_call *c = context;
    int r = kiln_otlp_json_decode(content, b, err);

    c->info = (struct kiln_otlp_info){.revision = KILN_OTLP_1_10};
    c->silent = kiln_builder_silent(b);
    return r;
}

/* Profiles that lost all their samples: they hold nothing, which is no reason to keep them. */
static uint32_t count_empty(const struct kiln_batch *batch)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < batch->n_profiles; i++)
        n += batch->profiles[i].n_samples == 0;
    return n;
}

/* Decodes the message into the call's delivery. */
static int decode(struct otlp_call *c, struct kiln_err *err)
{
    struct kiln_source source = {
        .data = c->rpc->message,
        .compression = c->rpc->compression,
        .keeps = !c->rpc->json,
        .decode = c->rpc->json ? decode_json : decode_protobuf,
        .context = c,
    };

    return kiln_arrival_take(&c->arrival, &source, err);
}

/* ---- seals ---- */

/* Whoever asks, and how often: as if the message had come once more. */
static int break_seal(const struct kiln_seal *seal, struct kiln_batch **ret_batch,
                      size_t *ret_bytes, struct kiln_err *err)
{
    const struct otlp_call *c =
        (const struct otlp_call *)((const char *)seal - offsetof(struct otlp_call, seal));
    struct otlp_call again = {.rpc = c->rpc};
    int r;

    kiln_arrival_init(&again.arrival, c->arrival.owner, KILN_RECEIVER_OTLP, c->rpc->request);
    r = decode(&again, err);
    if (r < 0) {
        kiln_arrival_release(&again.arrival);
        return r;
    }
    *ret_batch = again.arrival.delivery.batch;
    *ret_bytes = again.arrival.granted;
    return 0;
}

/* Returns 1 where `how` vouches for it, 0 where not, and what is wrong with its content. */
static int vouch(struct otlp_call *c,
                 bool (*how)(struct kiln_str message, struct kiln_otlp_counts *ret_counts),
                 struct kiln_err *err)
{
    struct kiln_str message = c->rpc->message;
    struct kiln_buf content = {0};
    bool good;

    if (c->rpc->compression != KILN_PLAIN) {
        int r = kiln_arrival_content(&c->arrival, c->rpc->compression, message, &content, err);

        if (r < 0)
            return r;
        message = kiln_buf_str(&content);
    }
    good = how(message, &c->seal.counts);
    c->seal.content_bytes = message.len;
    kiln_buf_done(&content);
    kiln_arrival_release(&c->arrival);
    return good;
}

static int take_open(struct otlp_call *c, struct kiln_err *err);

/* As if it came just now, to somebody who takes nothing unchecked. */
static int check_seal(const struct kiln_seal *seal, struct kiln_delivery *delivery,
                      struct kiln_err *err)
{
    struct otlp_call *c =
        (struct otlp_call *)((char *)(uintptr_t)seal - offsetof(struct otlp_call, seal));
    struct kiln_delivery *own = &c->arrival.delivery;
    int r = vouch(c, kiln_otlp_vouch, err);

    c->seal.check = NULL;
    if (r > 0)
        return 0;
    own->seal = delivery->seal = NULL;
    own->body = KILN_STR_NONE;
    c->arrival.n_profiles = c->arrival.n_samples = 0;
    if (r == 0)
        r = take_open(c, err);
    if (r < 0) {
        kiln_arrival_release(&c->arrival);
        return r;
    }
    if (delivery != own) {
        delivery->batch = own->batch;
        own->batch = NULL;
    }
    delivery->body = own->body;
    delivery->body_is_current = own->body_is_current;
    delivery->pool = c->arrival.owner->opts.pool;
    delivery->charged += c->arrival.granted;
    c->arrival.granted = 0;
    return 0;
}

/* Returns 1 where it is sealed, 0 where it is to be decoded, and what is wrong with its content. */
static int seal(struct otlp_call *c, struct kiln_err *err)
{
    const struct kiln_receivers_opts *opts = &c->arrival.owner->opts;
    struct kiln_delivery *delivery = &c->arrival.delivery;
    bool unchecked = opts->next->takes_unchecked;
    int r = vouch(c, unchecked ? kiln_otlp_count : kiln_otlp_vouch, err);

    if (r <= 0)
        return r;
    c->seal.open = break_seal;
    c->seal.check = unchecked ? check_seal : NULL;
    c->seal.pool = opts->pool;
    delivery->seal = &c->seal;
    delivery->items = c->arrival.n_samples = c->seal.counts.samples;
    delivery->profiles = c->seal.counts.profiles;
    c->arrival.n_profiles = c->seal.counts.profiles;
    return 1;
}

/* Whether nobody wants to see what is in it at once. */
static bool may_be_sealed(const struct otlp_call *c)
{
    const struct kiln_receivers_opts *opts = &c->arrival.owner->opts;

    return opts->next->takes_sealed && !c->rpc->json &&
           !(opts->local && c->rpc->request->peer.local);
}

/* ---- taking ---- */

static void keep_body(struct otlp_call *c)
{
    struct kiln_delivery *delivery = &c->arrival.delivery;

    delivery->body = c->rpc->message;
    delivery->body_compression = c->rpc->compression;
    delivery->body_is_current =
        delivery->seal || (c->info.revision == KILN_OTLP_1_10 && !c->silent);
}

/* Takes the message decoded. */
static int take_open(struct otlp_call *c, struct kiln_err *err)
{
    struct kiln_delivery *delivery = &c->arrival.delivery;
    struct kiln_rpc *rpc = c->rpc;
    int r = decode(c, err);

    if (r < 0)
        return r;
    if (rpc->request->peer.local && c->arrival.owner->opts.local)
        c->arrival.owner->opts.local(c->arrival.owner->opts.local_context, &rpc->request->peer,
                                     delivery->batch);
    delivery->rejected = c->info.dropped_profiles;
    delivery->why = c->info.first_dropped;
    if (!rpc->json && !delivery->rejected)
        keep_body(c);
    if (c->silent) {
        uint32_t empty = count_empty(delivery->batch);

        delivery->rejected += empty;
        c->arrival.n_profiles -= empty;
        kiln_metric_add(c->arrival.owner->silent, (int64_t)c->silent);
    }
    return 0;
}

static int take(struct otlp_call *c, struct kiln_err *err)
{
    int r = kiln_receivers_enter(c->arrival.owner, c->rpc->request, err);

    if (r < 0 || !c->rpc->message.len)
        return r;
    r = may_be_sealed(c) ? seal(c, err) : 0;
    if (r == 0)
        return take_open(c, err);
    if (r > 0)
        keep_body(c);
    return r < 0 ? r : 0;
}

static struct otlp_call *new_call(struct kiln_rpc *rpc)
{
    struct otlp_call *c = kiln_malloc(sizeof(*c));

    if (!c)
        return NULL;
    *c = (struct otlp_call){.rpc = rpc};
    kiln_arrival_init(&c->arrival, rpc->context, KILN_RECEIVER_OTLP, rpc->request);
    c->arrival.finish = finish;
    c->arrival.waits = rpc->request;
    return c;
}

static void export_profiles(struct kiln_rpc *rpc)
{
    struct otlp_call *c = new_call(rpc);
    struct kiln_err err = {0};
    int r;

    if (!c) {
        kiln_rpc_fail(rpc, &(struct kiln_rpc_status){.code = KILN_RPC_UNAVAILABLE,
                                                     .retry_after_s = 1,
                                                     .message = kiln_err_text(-ENOMEM)});
        return;
    }
    r = take(c, &err);
    if (r == 0 && c->arrival.n_samples)
        kiln_arrival_send(&c->arrival);
    else
        kiln_arrival_refuse(&c->arrival, r, &err);
}

/* The same on the loop, of what needs no memory of the pool and goes on at once. */
static bool export_at_once(struct kiln_rpc *rpc)
{
    const struct kiln_receivers_opts *opts = &((struct kiln_receivers *)rpc->context)->opts;
    struct otlp_call *c;

    if (!opts->next || !opts->next->is_light || opts->gate || rpc->compression != KILN_PLAIN ||
        !rpc->message.len)
        return false;
    c = new_call(rpc);
    if (!c)
        return false;
    if (!may_be_sealed(c) || seal(c, NULL) <= 0 || !c->arrival.n_samples ||
        !kiln_is_light(opts->next, &c->arrival.delivery)) {
        kiln_free(c);
        return false;
    }
    keep_body(c);
    kiln_arrival_send(&c->arrival);
    return true;
}

/* ---- what nobody takes ---- */

static const char *const signal_names[KILN_SIGNALS] = {"profiles", "traces", "metrics", "logs"};

static void not_taken(struct kiln_rpc *rpc, enum kiln_signal signal)
{
    struct kiln_receivers *receivers = rpc->context;
    const char *name = signal_names[signal];
    char message[128];

    if (receivers->opts.pipelines)
        snprintf(message, sizeof(message), "no pipeline takes %s from this receiver", name);
    else
        snprintf(message, sizeof(message), "Kiln takes profiles only: send %s to a backend for %s",
                 name, name);
    kiln_receivers_answered(receivers, KILN_RECEIVER_OTLP, KILN_E_UNSUPPORTED, rpc->request);
    if (!atomic_exchange(&receivers->said[signal], true))
        kiln_log(receivers->opts.log, KILN_LOG_WARN, message, "peer", "%s",
                 rpc->request->peer.address, NULL);
    kiln_rpc_fail(rpc,
                  &(struct kiln_rpc_status){.code = KILN_RPC_UNIMPLEMENTED, .message = message});
}

static void take_profiles(struct kiln_rpc *rpc)
{
    const struct kiln_receivers *receivers = rpc->context;

    if (receivers->opts.next)
        export_profiles(rpc);
    else
        not_taken(rpc, KILN_SIGNAL_PROFILES);
}

static void take_other(struct kiln_rpc *rpc, enum kiln_signal signal)
{
    const struct kiln_receivers *receivers = rpc->context;

    if (receivers->opts.others[signal])
        kiln_otlp_pass_on(rpc, signal);
    else
        not_taken(rpc, signal);
}

static void take_traces(struct kiln_rpc *rpc)
{
    take_other(rpc, KILN_SIGNAL_TRACES);
}

static void take_metrics(struct kiln_rpc *rpc)
{
    take_other(rpc, KILN_SIGNAL_METRICS);
}

static void take_logs(struct kiln_rpc *rpc)
{
    take_other(rpc, KILN_SIGNAL_LOGS);
}

static void (*const handlers[KILN_SIGNALS])(struct kiln_rpc *rpc) = {
    [KILN_SIGNAL_PROFILES] = take_profiles,
    [KILN_SIGNAL_TRACES] = take_traces,
    [KILN_SIGNAL_METRICS] = take_metrics,
    [KILN_SIGNAL_LOGS] = take_logs,
};

/* ---- routes ---- */

#define COLLECTOR "/opentelemetry.proto.collector."

static const struct {
    const char *path;
    bool http_only;
    enum kiln_signal signal;
} routes[] = {
    {"/v1development/profiles", true, KILN_SIGNAL_PROFILES},
    {"/v1/profiles", true, KILN_SIGNAL_PROFILES},
    {"/otlp/v1/profiles", true, KILN_SIGNAL_PROFILES},
    {COLLECTOR "profiles.v1development.ProfilesService/Export", false, KILN_SIGNAL_PROFILES},
    {COLLECTOR "profiles.v1experimental.ProfilesService/Export", false, KILN_SIGNAL_PROFILES},
    {"/v1/traces", true, KILN_SIGNAL_TRACES},
    {"/v1/metrics", true, KILN_SIGNAL_METRICS},
    {"/v1/logs", true, KILN_SIGNAL_LOGS},
    {"/otlp/v1/traces", true, KILN_SIGNAL_TRACES},
    {"/otlp/v1/metrics", true, KILN_SIGNAL_METRICS},
    {"/otlp/v1/logs", true, KILN_SIGNAL_LOGS},
    {COLLECTOR "trace.v1.TraceService/Export", false, KILN_SIGNAL_TRACES},
    {COLLECTOR "metrics.v1.MetricsService/Export", false, KILN_SIGNAL_METRICS},
    {COLLECTOR "logs.v1.LogsService/Export", false, KILN_SIGNAL_LOGS},
};

static int add(struct kiln_receivers *receivers, struct kiln_router *router, const char *path,
               enum kiln_signal signal, bool http_only)
{
    return kiln_rpc_add(
        router,
        &(struct kiln_rpc_route){.path = path,
                                 .access = KILN_ACCESS_WRITE,
                                 .handler = handlers[signal],
                                 .at_once = signal == KILN_SIGNAL_PROFILES ? export_at_once : NULL,
                                 .context = receivers,
                                 .body_max = receivers->opts.body_max,
                                 .http_only = http_only});
}

int kiln_otlp_receiver_add(struct kiln_receivers *receivers, struct kiln_router *router)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < KILN_ARRAY_LEN(routes); i++)
        r = add(receivers, router, routes[i].path, routes[i].signal, routes[i].http_only);
    return r;
}

int kiln_otlp_receiver_add_path(struct kiln_receivers *receivers, struct kiln_router *router,
                                enum kiln_signal signal, const char *path)
{
    return add(receivers, router, path, signal, true);
}

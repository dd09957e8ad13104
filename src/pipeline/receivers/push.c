/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push.v1.PusherService/Push: pprofs with labels.
 *
 *   PushRequest       1 series
 *   RawProfileSeries  1 labels  2 samples  3 annotations (not read)
 *   LabelPair         1 name  2 value
 *   RawSample         1 raw_profile (pprof, gzip or not)  2 ID (a UUID as text)
 *   PushResponse      (empty)
 *
 * Every pprof is a delivery of its own.  All are tried; the call is answered when the last of them
 * has ended, and fails if one did: with the first status that asks to try again (what was taken is
 * then recognised as a duplicate), else with the first one.  The messages are joined.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "base/bytetext.h"
#include "base/mem.h"
#include "codec/pb.h"
#include "pipeline/receivers/arrival.h"
#include "pipeline/receivers/push.h"

#define PARTS_MAX 10000u /* pprofs of one request */

struct push {
    struct kiln_arrival content; /* only for the memory of the request itself */
    struct kiln_receivers *owner;
    struct kiln_rpc *rpc;
    pthread_mutex_t lock;
    uint32_t pending; /* deliveries, and one while the request is read */
    uint32_t n_parts;
    uint64_t spent;              /* on uncompressing its parts */
    struct kiln_lack needs;      /* of the largest part that failed for want of memory */
    struct kiln_outcome failure; /* code 0: none */
    char why[512];               /* the messages */
};

struct part {
    struct kiln_arrival arrival; /* first */
    struct push *push;
};

/* ---- the answer ---- */

static bool asks_again(int code)
{
    enum kiln_outcome_kind kind = kiln_outcome_kind(code);

    return kind == KILN_OUTCOME_BUSY || kind == KILN_OUTCOME_STORAGE ||
           kind == KILN_OUTCOME_STOPPING;
}

static void answer(struct push *push)
{
    char text[KILN_OUTCOME_TEXT];
    struct kiln_rpc_status status;

    kiln_receivers_answered(push->owner, KILN_RECEIVER_PYROSCOPE, push->failure.code,
                            push->rpc->request);
    if (push->failure.code == 0) {
        kiln_rpc_reply(push->rpc, push->rpc->json ? KILN_STR("{}") : KILN_STR_NONE);
    } else {
        status = kiln_outcome_status(&push->failure, text, sizeof(text));
        status.message = push->why;
        kiln_rpc_fail(push->rpc, &status);
    }
}

/* Answers, or leaves the request to be handled again. */
static void end(struct push *push)
{
    if (push->failure.code == -EAGAIN &&
        kiln_receivers_wait(push->owner, push->rpc->request, push->needs))
        kiln_rpc_leave(push->rpc);
    else
        answer(push);
    pthread_mutex_destroy(&push->lock);
    kiln_free(push);
}

static void note_needs(struct push *push, const struct kiln_lack *needs)
{
    pthread_mutex_lock(&push->lock);
    if (needs->memory > push->needs.memory)
        push->needs.memory = needs->memory;
    if (needs->store > push->needs.store)
        push->needs.store = needs->store;
    pthread_mutex_unlock(&push->lock);
}

/* Notes how something ended; answers when it was the last. */
static void settle(struct push *push, const struct kiln_outcome *outcome)
{
    char text[KILN_OUTCOME_TEXT];
    bool last;

    pthread_mutex_lock(&push->lock);
    if (outcome->code < 0) {
        size_t used = strlen(push->why);

        kiln_outcome_status(outcome, text, sizeof(text));
        if (!strstr(push->why, text))
            snprintf(push->why + used, sizeof(push->why) - used, "%s%s", used ? "; " : "", text);
        if (push->failure.code == 0 ||
            (asks_again(outcome->code) && !asks_again(push->failure.code)))
            push->failure = *outcome;
    }
    last = --push->pending == 0;
    pthread_mutex_unlock(&push->lock);
    if (last)
        end(push);
}

void kiln_push_bad_series(struct push *push, int code, const struct kiln_err *err)
{
    struct kiln_outcome outcome = {.code = code, .err = *err};

    pthread_mutex_lock(&push->lock);
    push->pending++;
    pthread_mutex_unlock(&push->lock);
    settle(push, &outcome);
}

/* ---- one pprof ---- */

static void finish_part(struct kiln_arrival *arrival, const struct kiln_outcome *outcome)
{
    struct part *part = (struct part *)arrival;
    struct kiln_outcome whole = *outcome;
    struct push *push = part->push;

    if (outcome->code == 0 && outcome->rejected)
        whole.code = outcome->err.code ? outcome->err.code : KILN_E_MALFORMED;
    if (outcome->code == -EAGAIN)
        note_needs(push, &arrival->needs);
    kiln_free(part);
    settle(push, &whole);
}

static int decode(void *context, struct kiln_str content, struct kiln_builder *b,
                  struct kiln_err *err)
{
    return kiln_recipe_decode(context, content, b, err);
}

/* "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"; any other text is no id. */
static void read_uuid(struct kiln_str text, uint8_t id[16])
{
    char digits[32];
    size_t n = 0;

    for (size_t i = 0; i < text.len && n <= sizeof(digits); i++) {
        if (text.ptr[i] == '-')
            continue;
        if (n < sizeof(digits))
            digits[n] = text.ptr[i];
        n++;
    }
    memset(id, 0, 16);
    if (n == sizeof(digits))
        (void)!kiln_hex_decode((struct kiln_str){digits, n}, id, 16);
}

static int take_part(struct part *part, struct kiln_tags *tags, struct kiln_str raw,
                     struct kiln_err *err)
{
    const struct kiln_rpc *rpc = part->push->rpc;
    struct kiln_recipe recipe = {.tags = tags};
    struct kiln_source source = {.data = raw,
                                 .compression = kiln_compression_of(raw),
                                 .keeps = true,
                                 .decode = decode,
                                 .context = &recipe};
    int r;

    if (raw.len == 0)
        return kiln_err_set(err, KILN_E_MALFORMED, "raw_profile", "the profile is empty");
    r = kiln_arrival_take(&part->arrival, &source, err);
    if (r == 0 && !rpc->json && rpc->compression == KILN_PLAIN) /* else it is gone too early */
        kiln_arrival_keep(&part->arrival, &recipe, raw, source.compression);
    return r;
}

void kiln_push_sample(struct push *push, struct kiln_tags *tags, struct kiln_str raw,
                      struct kiln_str id)
{
    struct kiln_err err = {0};
    struct part *part;
    int r;

    if (++push->n_parts > PARTS_MAX) {
        r = kiln_err_set(&err, KILN_E_LIMIT, NULL, "a request may hold %u profiles", PARTS_MAX);
        kiln_push_bad_series(push, r, &err);
        return;
    }
    part = kiln_malloc(sizeof(*part));
    if (!part) {
        kiln_push_bad_series(push, -ENOMEM, &err);
        return;
    }
    pthread_mutex_lock(&push->lock);
    push->pending++;
    pthread_mutex_unlock(&push->lock);
    kiln_arrival_init(&part->arrival, push->owner, KILN_RECEIVER_PYROSCOPE, push->rpc->request);
    part->arrival.finish = finish_part;
    part->arrival.spent = &push->spent;
    part->push = push;
    read_uuid(id, tags->id);
    r = take_part(part, tags, raw, &err);
    if (r == 0 && part->arrival.n_samples)
        kiln_arrival_send(&part->arrival);
    else
        kiln_arrival_refuse(&part->arrival, r, &err);
}

/* ---- the request ---- */

static int take(struct push *push, struct kiln_err *err)
{
    struct kiln_rpc *rpc = push->rpc;
    struct kiln_str message = rpc->message;
    struct kiln_buf content;
    int r = kiln_receivers_enter(push->owner, rpc->request, err);

    kiln_buf_init(&content, 0);
    if (r == 0 && rpc->compression != KILN_PLAIN) {
        r = kiln_arrival_content(&push->content, rpc->compression, rpc->message, &content, err);
        message = kiln_buf_str(&content);
    }
    if (r == 0 && rpc->json) /* base64 and texts are unpacked on the way */
        r = kiln_arrival_grant(&push->content, push->content.held + message.len, err);
    if (r == 0)
        r = rpc->json ? kiln_push_json(push, message, err) : kiln_push_protobuf(push, message, err);
    kiln_buf_done(&content);
    return r;
}

static void no_finish(struct kiln_arrival *arrival, const struct kiln_outcome *outcome)
{
    (void)arrival;
    (void)outcome;
}

void kiln_push_handle(struct kiln_rpc *rpc)
{
    struct push *push = kiln_calloc(1, sizeof(*push));
    struct kiln_outcome outcome = {0};

    if (!push) {
        kiln_rpc_fail(rpc, &(struct kiln_rpc_status){.code = KILN_RPC_UNAVAILABLE,
                                                     .retry_after_s = 1,
                                                     .message = kiln_err_text(-ENOMEM)});
        return;
    }
    push->owner = rpc->context;
    push->rpc = rpc;
    push->pending = 1;
    pthread_mutex_init(&push->lock, NULL);
    kiln_arrival_init(&push->content, push->owner, KILN_RECEIVER_PYROSCOPE, rpc->request);
    push->content.finish = no_finish;
    outcome.code = take(push, &outcome.err);
    if (outcome.code == -EAGAIN)
        note_needs(push, &push->content.needs);
    kiln_arrival_refuse(&push->content, outcome.code, NULL);
    settle(push, &outcome);
}

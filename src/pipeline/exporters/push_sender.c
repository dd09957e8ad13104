/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pyroscope's push API: a series for each profile, with the labels of its series (core/series.h)
 * and a pprof.
 *
 *   PushRequest       1 series
 *   RawProfileSeries  1 labels (1 name, 2 value)   2 samples (1 raw_profile)
 */
#include <ctype.h>
#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/pb.h"
#include "codec/pprof.h"
#include "core/otlp_size.h"
#include "core/part.h"
#include "core/series.h"
#include "pipeline/exporters/calls.h"

#define MESSAGE_MAX ((size_t)256 << 20)
enum { LABEL_MAX = 256, SERIES_KEY_MAX = 64 << 10 };

struct push_sender {
    struct kiln_calls calls; /* first */
    struct kiln_series_rule *rule;
};

/* ---- one profile ---- */

/* Names of labels are letters, digits and underscores. */
static struct kiln_str label_name(struct kiln_str name, char room[LABEL_MAX])
{
    size_t n = name.len < LABEL_MAX ? name.len : LABEL_MAX;

    for (size_t i = 0; i < n; i++)
        room[i] = (char)(isalnum((unsigned char)name.ptr[i]) ? name.ptr[i] : '_');
    if (n && isdigit((unsigned char)room[0]))
        room[0] = '_';
    return (struct kiln_str){room, n};
}

static void put_label(struct kiln_pb_out *w, struct kiln_str name, struct kiln_str value)
{
    size_t mark = kiln_pb_mark(w);

    kiln_pb_put_bytes(w, 2, value);
    kiln_pb_put_bytes(w, 1, name);
    kiln_pb_put_message(w, 1, mark);
}

static int put_labels(const struct push_sender *s, const struct kiln_batch *batch,
                      uint32_t resource, const struct kiln_type *type, struct kiln_pb_out *w)
{
    struct kiln_str name, value;
    struct kiln_series series;
    struct kiln_buf key;
    char room[LABEL_MAX];
    int r;

    kiln_buf_init(&key, SERIES_KEY_MAX);
    kiln_series_key(s->rule, batch, resource, type, &key);
    r = key.error ? key.error : kiln_series_parse(kiln_buf_str(&key), &series);
    if (r == 0) {
        while (kiln_series_label(&series.labels, &name, &value))
            if (!kiln_str_eq(name, KILN_STR("service.name")))
                put_label(w, label_name(name, room), value);
        put_label(w, KILN_STR("service_name"), series.service);
        put_label(w, KILN_STR("__name__"), type->name);
    }
    kiln_buf_done(&key);
    return r;
}

/* ---- a request ---- */

static int put_series(const struct push_sender *s, const struct kiln_batch *batch,
                      const uint32_t at[3], const struct kiln_type *type, struct kiln_pb_out *w,
                      struct kiln_err *err)
{
    struct kiln_batch *one = NULL;
    struct kiln_buf pprof;
    size_t series = kiln_pb_mark(w), sample;
    /* The labels of its series tell of its resource: pprof would repeat it for each sample. */
    int r = kiln_part_profile(batch, at[1], at[2], &one, err);

    kiln_buf_init(&pprof, MESSAGE_MAX);
    if (r == 0)
        r = kiln_pprof_encode(one, NULL, &pprof, err);
    if (r == 0) {
        sample = kiln_pb_mark(w);
        kiln_pb_put_bytes(w, 1, kiln_buf_str(&pprof));
        kiln_pb_put_message(w, 2, sample);
        r = put_labels(s, batch, at[0], type, w);
        kiln_pb_put_message(w, 1, series);
    }
    kiln_buf_done(&pprof);
    kiln_batch_unref(one);
    return r;
}

static int put_all(const struct push_sender *s, const struct kiln_batch *batch,
                   struct kiln_buf *out, struct kiln_err *err)
{
    struct kiln_type *types;
    struct kiln_pb_out w;
    int r = kiln_types_of_batch(batch, true, &types);

    if (r < 0)
        return r;
    kiln_pb_out_init(&w, 1 << 16, MESSAGE_MAX);
    for (uint32_t i = 0; i < batch->n_resources && r == 0; i++) {
        const struct kiln_resource *resource = &batch->resources[i];

        for (uint32_t j = 0; j < resource->n_scopes && r == 0; j++) {
            const struct kiln_scope *scope = &batch->scopes[resource->first_scope + j];

            for (uint32_t k = 0; k < scope->n_profiles && r == 0; k++) {
                uint32_t profile = scope->first_profile + k;
                const uint32_t at[3] = {i, resource->first_scope + j, profile};

                r = put_series(s, batch, at, &types[profile], &w, err);
            }
        }
    }
    if (r == 0)
        r = kiln_pb_out_flush(&w, out);
    kiln_pb_out_done(&w);
    kiln_free(types);
    return r;
}

/* KILN_E_LIMIT where it is larger than a request may be. */
static int pack_one(const struct push_sender *s, const struct kiln_batch *batch,
                    struct kiln_export_item **ret_item, struct kiln_err *err)
{
    const struct kiln_export_shape *shape = &s->calls.out.shape;
    struct kiln_export_item *item = kiln_calloc(1, sizeof(*item));
    struct kiln_buf plain, packed;
    int r = item ? 0 : -ENOMEM;

    kiln_buf_init(&plain, MESSAGE_MAX);
    kiln_buf_init(&packed, MESSAGE_MAX);
    if (r == 0)
        r = put_all(s, batch, &plain, err);
    if (r == 0 && plain.len > shape->request_max)
        r = kiln_err_set(err, KILN_E_LIMIT, NULL, "a request of %zu bytes is too large", plain.len);
    if (r == 0 && shape->compression != KILN_PLAIN)
        r = kiln_compress(shape->compression, shape->level, kiln_buf_str(&plain), &packed);
    if (r == 0) {
        item->head = (struct kiln_spooled){.compression = shape->compression,
                                           .profiles = batch->n_profiles,
                                           .samples = batch->n_samples,
                                           .made_ns = kiln_clock_unix_ns()};
        kiln_buf_take(shape->compression == KILN_PLAIN ? &plain : &packed, &item->body, &item->len);
        *ret_item = item;
    }
    kiln_buf_done(&plain);
    kiln_buf_done(&packed);
    if (r < 0)
        kiln_free(item);
    return r;
}

static uint32_t half_of(const struct kiln_batch *batch)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < batch->n_samples; i++)
        n += batch->samples[i].n;
    return (uint32_t)(n / 2);
}

/* Each series repeats what it needs of the dictionary: what fits as OTLP may have to be halved. */
static int pack_part(void *sender, struct kiln_batch *part, struct kiln_export_item **ret_items,
                     struct kiln_err *err)
{
    const struct kiln_split_opts half = {.samples_max = half_of(part)};
    struct kiln_err why = {0};
    int r = pack_one(sender, part, ret_items, &why);

    if (r == KILN_E_LIMIT && half.samples_max)
        return kiln_export_parts(part, &half, pack_part, sender, ret_items, err);
    if (r < 0)
        *err = why;
    return r;
}

static int pack(struct kiln_sender *sender, const struct kiln_delivery *delivery,
                struct kiln_export_item **ret_items, struct kiln_err *err)
{
    const struct push_sender *s = (const struct push_sender *)sender;
    const struct kiln_split_opts limits = {.bytes_max = s->calls.out.shape.request_max};

    *ret_items = NULL;
    if (kiln_otlp_fits(delivery->batch, limits.bytes_max))
        return pack_part(sender, delivery->batch, ret_items, err);
    return kiln_export_parts(delivery->batch, &limits, pack_part, sender, ret_items, err);
}

/* ---- the sender ---- */

static void destroy(struct kiln_sender *sender)
{
    struct push_sender *s = (struct push_sender *)sender;

    kiln_calls_done(&s->calls);
    kiln_series_rule_free(s->rule);
    kiln_free(s);
}

static const struct kiln_sender_ops ops = {
    .pack = pack, .send = kiln_calls_send, .cancel = kiln_calls_cancel, .free = destroy};

int kiln_push_sender_new(const struct kiln_otlp_sender_opts *opts, struct kiln_sender **ret_sender,
                         struct kiln_err *err)
{
    struct push_sender *s = kiln_calloc(1, sizeof(*s));
    int r;

    if (!s)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    r = kiln_outgoing_open(&s->calls.out, opts, err);
    if (r == 0)
        r = kiln_series_rule_new(NULL, 0, &s->rule);
    if (r < 0) {
        kiln_outgoing_done(&s->calls.out);
        kiln_free(s);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    s->calls.out.sender.ops = &ops;
    s->calls.out.content_type = "application/proto";
    kiln_calls_init(&s->calls, opts);
    *ret_sender = &s->calls.out.sender;
    return 0;
}

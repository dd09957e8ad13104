/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of a pprof that stand alone (7 to 15), made of all the profiles of a batch: the
 * earliest start, the time from there to the latest end, the first period, all comments, and the
 * first of each of the other texts.
 */
#include "codec/pprof_out.h"

struct head {
    uint32_t drop_frames, keep_frames, doc_url, default_type; /* strings of the batch */
    struct kiln_value_type period_type;
    int64_t period;
    uint64_t from_ns, to_ns, longest_ns;
    bool has_period;
};

/* Adds a text unless there is one; a different one is a loss. */
static void take_text(struct kiln_pprof_out *o, uint32_t *field, const struct kiln_attr *attr)
{
    if (attr->value.kind != KILN_VALUE_STRING)
        o->losses->attributes++;
    else if (!*field)
        *field = (uint32_t)attr->value.str;
    else
        o->losses->attributes += *field != attr->value.str;
}

static void take_attrs(struct kiln_pprof_out *o, struct head *h, uint32_t set)
{
    const struct kiln_dict *d = &o->batch->dict;
    struct kiln_range range = d->sets[set];

    for (uint32_t i = 0; i < range.n; i++) {
        const struct kiln_attr *attr = &d->attrs[d->members[range.first + i]];
        struct kiln_str key = d->strings[attr->key];

        if (kiln_str_eq(key, ATTR_DROP_FRAMES))
            take_text(o, &h->drop_frames, attr);
        else if (kiln_str_eq(key, ATTR_KEEP_FRAMES))
            take_text(o, &h->keep_frames, attr);
        else if (kiln_str_eq(key, ATTR_DOC_URL))
            take_text(o, &h->doc_url, attr);
        else if (!kiln_str_eq(key, ATTR_COMMENT))
            o->losses->attributes++;
    }
}

static void take_period(struct kiln_pprof_out *o, struct head *h, const struct kiln_profile *p)
{
    if (!h->has_period && (p->period || p->period_type.type || p->period_type.unit)) {
        h->period = p->period;
        h->period_type = p->period_type;
        h->has_period = true;
    } else if (h->has_period) {
        o->losses->periods += p->period != h->period ||
                              p->period_type.type != h->period_type.type ||
                              p->period_type.unit != h->period_type.unit;
    }
}

static void take_time(struct head *h, const struct kiln_profile *p)
{
    uint64_t to = p->time_ns + p->duration_ns;

    if (p->duration_ns > h->longest_ns)
        h->longest_ns = p->duration_ns;
    if (!p->time_ns || to < p->time_ns)
        return;
    if (!h->from_ns || p->time_ns < h->from_ns)
        h->from_ns = p->time_ns;
    if (to > h->to_ns)
        h->to_ns = to;
}

static void take_profile(struct kiln_pprof_out *o, struct head *h, const struct kiln_profile *p)
{
    static const uint8_t none[16];

    take_time(h, p);
    take_period(o, h, p);
    take_attrs(o, h, p->attrs);
    o->losses->profile_ids += memcmp(p->id, none, sizeof(none)) != 0 || p->payload.len > 0;
}

/* True if the scope says more than a pprof can. */
static bool scope_is_lost(const struct kiln_batch *batch, const struct kiln_scope *scope)
{
    uint32_t known = (kiln_set_find(batch, scope->attrs, ATTR_DEFAULT_TYPE) != NULL) +
                     (kiln_set_find(batch, scope->attrs, ATTR_TYPE_ORDER) != NULL);

    return scope->name || scope->version || scope->schema_url ||
           batch->dict.sets[scope->attrs].n > known;
}

/*
 * The type that a reader should show first.  A pprof says so, or leaves it to the reader, who then
 * takes the last; in OTLP the first profile is the one.
 */
static void take_default_type(struct kiln_pprof_out *o, struct head *h)
{
    const struct kiln_batch *batch = o->batch;
    bool from_pprof = false;

    for (uint32_t i = 0; i < batch->n_scopes; i++) {
        const struct kiln_scope *scope = &batch->scopes[i];
        const struct kiln_attr *attr = kiln_set_find(batch, scope->attrs, ATTR_DEFAULT_TYPE);

        o->losses->scopes += scope_is_lost(batch, scope);
        if (attr && attr->value.kind == KILN_VALUE_STRING && !h->default_type)
            h->default_type = (uint32_t)attr->value.str;
        from_pprof |= attr || kiln_set_find(batch, scope->attrs, ATTR_TYPE_ORDER);
    }
    if (!from_pprof && o->rows.n_types > 1)
        h->default_type = o->rows.has_cpu_time ? o->rows.types[o->rows.n_types - 1].type
                                               : batch->profiles[0].sample_type.type;
}

/* Writes the comments of every profile, but those of neighbours with the same attributes once. */
static void put_comments(struct kiln_pprof_out *o)
{
    const struct kiln_batch *batch = o->batch;
    size_t mark = kiln_pb_mark(&o->w);

    for (uint32_t p = batch->n_profiles; p-- > 0;) {
        uint32_t set = batch->profiles[p].attrs;
        const struct kiln_attr *attr;

        if (p > 0 && batch->profiles[p - 1].attrs == set)
            continue;
        attr = kiln_set_find(batch, set, ATTR_COMMENT);
        if (!attr || attr->value.kind != KILN_VALUE_ARRAY)
            continue;
        for (uint32_t i = attr->value.n; i-- > 0;) {
            const struct kiln_value *text = &batch->dict.nested[attr->value.first + i].value;

            if (text->kind == KILN_VALUE_STRING)
                kiln_pb_raw_varint(&o->w, kiln_pprof_put_string(o, (uint32_t)text->str));
        }
    }
    if (kiln_pb_mark(&o->w) > mark)
        kiln_pb_put_message(&o->w, PROFILE_COMMENT, mark);
}

void kiln_pprof_put_head(struct kiln_pprof_out *o)
{
    struct head h = {0};

    for (uint32_t i = 0; i < o->batch->n_profiles; i++)
        take_profile(o, &h, &o->batch->profiles[i]);
    take_default_type(o, &h);
    kiln_pb_put_number(&o->w, PROFILE_DOC_URL, kiln_pprof_put_string(o, h.doc_url));
    kiln_pb_put_number(&o->w, PROFILE_DEFAULT_SAMPLE_TYPE,
                       kiln_pprof_put_string(o, h.default_type));
    put_comments(o);
    kiln_pb_put_number(&o->w, PROFILE_PERIOD, (uint64_t)h.period);
    if (h.period_type.type || h.period_type.unit)
        kiln_pprof_put_type(o, PROFILE_PERIOD_TYPE, h.period_type);
    kiln_pb_put_number(&o->w, PROFILE_DURATION_NANOS,
                       h.from_ns && h.to_ns - h.from_ns > h.longest_ns ? h.to_ns - h.from_ns
                                                                       : h.longest_ns);
    kiln_pb_put_number(&o->w, PROFILE_TIME_NANOS, h.from_ns);
    kiln_pb_put_number(&o->w, PROFILE_KEEP_FRAMES, kiln_pprof_put_string(o, h.keep_frames));
    kiln_pb_put_number(&o->w, PROFILE_DROP_FRAMES, kiln_pprof_put_string(o, h.drop_frames));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profile and Sample of revisions 1.8 to 1.11.  The same fields, under numbers that moved twice:
 *
 *   Profile   1 sample_type, 2 samples, 3 time (fixed64), 4 duration, 5 period_type, 6 period, then
 *             1.8:  7 comments, 8 id, 9 dropped, 10 payload format, 11 payload, 12 attributes
 *             1.9+: 7 id, 8 dropped, 9 payload format, 10 payload, 11 attributes
 *   Sample    1 stack, 5 timestamps (fixed64), and
 *             1.8, 1.9: 2 values, 3 attributes, 4 link
 *             1.10+:    2 attributes, 3 link, 4 values
 *
 * A table per revision turns a field number into a role.  The head of a profile is read before its
 * samples, wherever it stands in the bytes.
 */
#include "codec/otlp_int.h"

enum profile_role {
    P_NONE,
    P_SAMPLE_TYPE,
    P_SAMPLES,
    P_TIME,
    P_DURATION,
    P_PERIOD_TYPE,
    P_PERIOD,
    P_COMMENTS,
    P_ID,
    P_DROPPED,
    P_FORMAT,
    P_PAYLOAD,
    P_ATTRS
};

enum sample_role { S_NONE, S_STACK, S_ATTRS, S_LINK, S_VALUES, S_TIMES };

#define PROFILE_FIELDS 13u
#define SAMPLE_FIELDS  6u

static const uint8_t profile_roles_1_8[PROFILE_FIELDS] = {
    P_NONE,     P_SAMPLE_TYPE, P_SAMPLES, P_TIME,   P_DURATION, P_PERIOD_TYPE, P_PERIOD,
    P_COMMENTS, P_ID,          P_DROPPED, P_FORMAT, P_PAYLOAD,  P_ATTRS,
};
static const uint8_t profile_roles_1_9[PROFILE_FIELDS] = {
    P_NONE,   P_SAMPLE_TYPE, P_SAMPLES, P_TIME,   P_DURATION, P_PERIOD_TYPE,
    P_PERIOD, P_ID,          P_DROPPED, P_FORMAT, P_PAYLOAD,  P_ATTRS,
};
static const uint8_t sample_roles_1_8[SAMPLE_FIELDS] = {S_NONE,  S_STACK, S_VALUES,
                                                        S_ATTRS, S_LINK,  S_TIMES};
static const uint8_t sample_roles_1_10[SAMPLE_FIELDS] = {S_NONE, S_STACK,  S_ATTRS,
                                                         S_LINK, S_VALUES, S_TIMES};

/* ---- samples ---- */

int otlp_varints(struct otlp_decoder *d, struct kiln_pb_field f, int64_t **values, uint32_t *n,
                 uint32_t *cap)
{
    struct kiln_pb r;
    uint64_t more = (f.tag & 7) == 0 ? 1 : kiln_pb_count_varints(f.bytes);
    uint64_t value;
    int e = kiln_grow(&d->budget, (void **)values, cap, *n + more, sizeof(**values), UINT32_MAX);

    if (e < 0)
        return e;
    if ((f.tag & 7) == 0) {
        (*values)[(*n)++] = (int64_t)f.number;
        return 0;
    }
    r = kiln_pb_of(f.bytes);
    while ((e = kiln_pb_varint(&r, &value)) > 0)
        (*values)[(*n)++] = (int64_t)value;
    return e < 0 ? otlp_bad_wire(d->err, e) : 0;
}

static int read_times(struct otlp_decoder *d, struct kiln_pb_field f, uint32_t *n)
{
    const void *from = (f.tag & 7) == 1 ? (const void *)&f.number : f.bytes.ptr;
    size_t bytes = (f.tag & 7) == 1 ? sizeof(f.number) : f.bytes.len;
    int r;

    if (bytes % sizeof(uint64_t))
        return otlp_bad_wire(d->err, KILN_E_TRUNCATED);
    r = kiln_grow(&d->budget, (void **)&d->times, &d->cap_times, *n + bytes / sizeof(uint64_t),
                  sizeof(*d->times), UINT32_MAX);
    if (r < 0)
        return r;
    if (bytes)
        memcpy(d->times + *n, from, bytes);
    *n += (uint32_t)(bytes / sizeof(uint64_t));
    return 0;
}

struct sample_parts {
    uint32_t stack, link, n_values, n_times;
};

KILN_INLINE int read_sample_field(struct otlp_decoder *d, enum sample_role role,
                                  struct kiln_pb_field f, struct sample_parts *s)
{
    uint32_t wire = f.tag & 7;

    switch (role) {
    case S_STACK:
        return wire == 0 ? otlp_ref(d, OTLP_STACKS, f.number, "stack_index", &s->stack) : 0;
    case S_LINK:
        return wire == 0 ? otlp_ref(d, OTLP_LINKS, f.number, "link_index", &s->link) : 0;
    case S_ATTRS:
        return wire == 0 || wire == 2
                   ? otlp_refs(d, OTLP_ATTRS, f, "attribute_indices", &d->attr_ids)
                   : 0;
    case S_VALUES:
        return wire == 0 || wire == 2 ? otlp_varints(d, f, &d->values, &s->n_values, &d->cap_values)
                                      : 0;
    case S_TIMES:
        return wire == 1 || wire == 2 ? read_times(d, f, &s->n_times) : 0;
    default:
        return 0;
    }
}

static int read_sample(struct otlp_decoder *d, struct kiln_str bytes, const uint8_t *roles,
                       uint32_t profile)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct sample_parts s = {0};
    struct kiln_pb_field f;
    int n, e = 0;

    d->attr_ids.n = 0;
    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag >> 3 < SAMPLE_FIELDS)
            e = read_sample_field(d, roles[f.tag >> 3], f, &s);
    }
    e = otlp_end(d, e, n);
    if (e < 0)
        return e;
    if (s.n_values && s.n_times && s.n_values != s.n_times)
        return kiln_err_set(d->err, KILN_E_MALFORMED, NULL,
                            "has %u values for %u timestamps: they must be pairs", s.n_values,
                            s.n_times);
    kiln_builder_add_sample(d->b, profile, s.stack, otlp_set_of(d, &d->attr_ids), s.link,
                            s.n_values ? d->values : NULL, s.n_times ? d->times : NULL,
                            s.n_values ? s.n_values : s.n_times);
    return kiln_builder_error(d->b);
}

static int read_samples(struct otlp_decoder *d, struct kiln_str bytes, uint32_t profile)
{
    const uint8_t *roles = d->revision >= KILN_OTLP_1_10 ? sample_roles_1_10 : sample_roles_1_8;
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    uint32_t i = 0;

    for (;;) {
        int e;

        r.at = otlp_usual_samples(d, r.at, r.end, profile, &i);
        if (kiln_pb_next(&r, &f) <= 0)
            return kiln_builder_error(d->b);
        if (f.tag != KILN_PB_BYTES(2u))
            continue;
        e = read_sample(d, f.bytes, roles, profile);
        if (KILN_UNLIKELY(e < 0)) {
            kiln_err_within(d->err, "samples[%u]", i);
            return e;
        }
        i++;
    }
}

/* ---- the head of a profile ---- */

int otlp_value_type(struct otlp_decoder *d, struct kiln_str bytes, const char *field,
                    struct kiln_value_type *ret)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n, e = 0;

    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_VARINT(1u))
            e = otlp_ref(d, OTLP_STRINGS, f.number, "type_strindex", &ret->type);
        else if (f.tag == KILN_PB_VARINT(2u))
            e = otlp_ref(d, OTLP_STRINGS, f.number, "unit_strindex", &ret->unit);
    }
    e = otlp_end(d, e, n);
    if (e < 0)
        kiln_err_within(d->err, "%s", field);
    return e;
}

static int read_head_field(struct otlp_decoder *d, enum profile_role role,
                           const struct kiln_pb_field *f, struct kiln_profile *p)
{
    bool number = (f->tag & 7) < 2;
    bool bytes = (f->tag & 7) == 2;

    switch (role) {
    case P_SAMPLE_TYPE:
        return bytes ? otlp_value_type(d, f->bytes, "sample_type", &p->sample_type) : 0;
    case P_PERIOD_TYPE:
        return bytes ? otlp_value_type(d, f->bytes, "period_type", &p->period_type) : 0;
    case P_TIME:
        p->time_ns = number ? f->number : p->time_ns;
        return 0;
    case P_DURATION:
        p->duration_ns = number ? f->number : p->duration_ns;
        return 0;
    case P_PERIOD:
        p->period = number ? (int64_t)f->number : p->period;
        return 0;
    case P_ID:
        return bytes ? otlp_id(d, f->bytes, "profile_id", p->id, sizeof(p->id)) : 0;
    case P_DROPPED:
        p->dropped_attrs = number ? (uint32_t)f->number : p->dropped_attrs;
        return 0;
    case P_FORMAT:
        return bytes ? otlp_string(d, f->bytes, "original_payload_format", &p->payload_format) : 0;
    case P_PAYLOAD:
        p->payload = bytes ? otlp_kept(d, f->bytes) : p->payload;
        return 0;
    case P_ATTRS:
        return otlp_refs(d, OTLP_ATTRS, *f, "attribute_indices", &d->attr_ids);
    case P_COMMENTS:
        return otlp_refs(d, OTLP_STRINGS, *f, "comment_strindices", &d->ids);
    default:
        return 0;
    }
}

/* Comments left the protocol with 1.9; since then they are an attribute: a list of strings. */
int otlp_comments(struct otlp_decoder *d)
{
    struct kiln_value *texts;
    uint32_t key;

    if (d->ids.n == 0)
        return 0;
    texts = kiln_builder_scratch(d->b, d->ids.n * sizeof(*texts));
    if (!texts)
        return kiln_builder_error(d->b);
    for (uint32_t i = 0; i < d->ids.n; i++)
        texts[i] = kiln_value_string(d->ids.ids[i]);
    key = kiln_builder_string(d->b, KILN_STR("pprof.profile.comment"));
    return otlp_ids_add(d, &d->attr_ids,
                        kiln_builder_attr(d->b, key, kiln_builder_array(d->b, texts, d->ids.n), 0));
}

static int read_head(struct otlp_decoder *d, struct kiln_str bytes, struct kiln_profile *p)
{
    const uint8_t *roles = d->revision >= KILN_OTLP_1_9 ? profile_roles_1_9 : profile_roles_1_8;
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    struct kiln_str sample;
    int n, e = 0;

    d->attr_ids.n = 0;
    d->ids.n = 0;
    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        while (kiln_pb_element(&r, KILN_PB_BYTES(2u), &sample))
            ;
        if (f.tag != KILN_PB_BYTES(2u) && f.tag >> 3 < PROFILE_FIELDS)
            e = read_head_field(d, roles[f.tag >> 3], &f, p);
    }
    e = otlp_end(d, e, n);
    if (e == 0)
        e = otlp_comments(d);
    p->attrs = otlp_set_of(d, &d->attr_ids);
    return e;
}

int otlp_profile(struct otlp_decoder *d, struct kiln_str bytes)
{
    struct kiln_profile profile = {0};
    int r = read_head(d, bytes, &profile);
    uint32_t index;

    if (r < 0)
        return r;
    index = kiln_builder_add_profile(d->b, &profile);
    r = kiln_builder_error(d->b);
    if (r < 0)
        return r;
    r = read_samples(d, bytes, index);
    if (r < 0 && kiln_builder_error(d->b) == 0)
        kiln_builder_drop_profile(d->b);
    return r;
}

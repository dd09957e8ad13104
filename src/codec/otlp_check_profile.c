/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources, scopes, profiles and samples (field numbers: codec/otlp_profile.c, revision 1.10).
 */
#include <stdio.h>

#include "base/hash.h"
#include "codec/otlp_check_int.h"
#include "core/intern.h"

/* ---- samples ---- */

enum shape { SHAPE_NONE, SHAPE_VALUE, SHAPE_TIMES, SHAPE_BOTH };

struct sample {
    uint64_t n_values, n_times;
};

struct profile {
    uint64_t time_ns, duration_ns;
    enum shape shape;           /* of the first sample */
    struct kiln_intern samples; /* by identity */
    struct kiln_str *identities;
    uint32_t n_identities, cap_identities;
};

static void check_times(struct checker *c, const struct profile *p, struct kiln_str packed,
                        const char *where)
{
    struct kiln_pb r = kiln_pb_of(packed);
    uint64_t end = p->time_ns + p->duration_ns;
    uint64_t time;

    while (kiln_pb_fixed64(&r, &time) > 0) {
        if (p->time_ns == 0 && p->duration_ns == 0)
            return;
        if (time < p->time_ns || time > end) {
            check_error(c, "time-range", where, "timestamp %llu is outside the profile's time",
                        (unsigned long long)time);
            return;
        }
        if (time == end)
            check_warn(c, "time-range", where, "timestamp %llu is at the very end of the profile",
                       (unsigned long long)time);
    }
}

static enum shape shape_of(const struct sample *s)
{
    if (s->n_values && s->n_times)
        return SHAPE_BOTH;
    return s->n_times ? SHAPE_TIMES : s->n_values ? SHAPE_VALUE : SHAPE_NONE;
}

static void check_shape(struct checker *c, struct profile *p, const struct sample *s,
                        const char *where)
{
    enum shape shape = shape_of(s);

    if (shape == SHAPE_NONE)
        check_error(c, "observations", where, "has neither values nor timestamps");
    else if (shape == SHAPE_BOTH && s->n_values != s->n_times)
        check_error(c, "observations", where, "has %llu values for %llu timestamps",
                    (unsigned long long)s->n_values, (unsigned long long)s->n_times);
    else if (shape == SHAPE_VALUE && s->n_values > 1)
        check_error(c, "observations", where, "has %llu values without timestamps",
                    (unsigned long long)s->n_values);
    if (p->shape == SHAPE_NONE)
        p->shape = shape;
    else if (c->opts->sample_shapes && shape != SHAPE_NONE && shape != p->shape)
        check_error(c, "sample-shape", where, "has another shape than the samples before it");
}

/* Samples of one identity should be one sample. */
static void check_identity(struct checker *c, struct profile *p, struct kiln_str identity,
                           const char *where)
{
    uint64_t hash = kiln_hash(identity.ptr, identity.len);
    int r;

    for (struct kiln_probe probe = kiln_intern_probe(&p->samples, hash);
         kiln_intern_next(&p->samples, &probe);) {
        if (kiln_str_eq(p->identities[probe.entry], identity)) {
            check_warn(c, "identity", where, "has the identity of an earlier sample");
            return;
        }
    }
    r = kiln_grow(&c->budget, (void **)&p->identities, &p->cap_identities,
                  (uint64_t)p->n_identities + 1, sizeof(*p->identities), UINT32_MAX);
    if (r == 0)
        r = kiln_intern_add(&p->samples, &c->budget, hash, p->n_identities);
    if (r < 0)
        c->error = r;
    else
        p->identities[p->n_identities++] = identity;
}

/* Stack, link and sorted attributes as bytes, in memory of the checker. */
static struct kiln_str identity_of(struct checker *c, const uint64_t *attrs, uint32_t n_attrs,
                                   uint64_t stack, uint64_t link)
{
    uint64_t *words = kiln_arena_alloc(&c->arena, (n_attrs + 2) * sizeof(*words));

    if (!words) {
        c->error = KILN_E_LIMIT;
        return KILN_STR("");
    }
    words[0] = stack;
    words[1] = link;
    for (uint32_t i = 0; i < n_attrs; i++) {
        uint32_t k = i + 2;

        for (; k > 2 && words[k - 1] > attrs[i]; k--)
            words[k] = words[k - 1];
        words[k] = attrs[i];
    }
    return (struct kiln_str){(const char *)words, (n_attrs + 2) * sizeof(*words)};
}

#define IDENTITY_ATTRS 64u /* a sample of more attributes is not compared */

static uint32_t collect_attrs(const struct kiln_pb_field *f, uint64_t *attrs, uint32_t n)
{
    struct kiln_pb r;
    uint64_t index;

    if ((f->tag & 7) == 0 && n < IDENTITY_ATTRS)
        attrs[n++] = f->number;
    if ((f->tag & 7) != 2)
        return n;
    r = kiln_pb_of(f->bytes);
    while (n < IDENTITY_ATTRS && kiln_pb_varint(&r, &index) > 0)
        attrs[n++] = index;
    return n;
}

static void check_sample(struct checker *c, struct kiln_str bytes, struct profile *p,
                         const char *where)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    uint64_t attrs[IDENTITY_ATTRS], stack = 0, link = 0;
    uint32_t n_attrs = 0;
    struct sample s = {0};
    struct kiln_pb_field f;
    int n;

    check_attrs_begin(c);
    while ((n = kiln_pb_next(&r, &f)) > 0) {
        bool packed = (f.tag & 7) == 2;

        if (f.tag == KILN_PB_VARINT(1u)) {
            stack = f.number;
            check_index(c, OTLP_STACKS, f.number, where, "stack_index");
        } else if (f.tag >> 3 == 2) {
            check_attrs(c, &f, where);
            n_attrs = collect_attrs(&f, attrs, n_attrs);
        } else if (f.tag == KILN_PB_VARINT(3u)) {
            link = f.number;
            check_index(c, OTLP_LINKS, f.number, where, "link_index");
        } else if (f.tag >> 3 == 4) {
            s.n_values += packed ? kiln_pb_count_varints(f.bytes) : 1;
        } else if (f.tag >> 3 == 5) {
            s.n_times += packed ? f.bytes.len / 8 : 1;
            if (packed)
                check_times(c, p, f.bytes, where);
        }
    }
    check_wire(c, n, where);
    check_shape(c, p, &s, where);
    if (n_attrs < IDENTITY_ATTRS)
        check_identity(c, p, identity_of(c, attrs, n_attrs, stack, link), where);
}

/* ---- profiles ---- */

static void check_type(struct checker *c, struct kiln_str bytes, const char *where,
                       const char *field)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    char path[PATH_MAX_LEN * 2];
    struct kiln_pb_field f;
    int n;

    snprintf(path, sizeof(path), "%s.%s", where, field);
    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_VARINT(1u))
            check_index(c, OTLP_STRINGS, f.number, path, "type_strindex");
        else if (f.tag == KILN_PB_VARINT(2u))
            check_index(c, OTLP_STRINGS, f.number, path, "unit_strindex");
    }
    check_wire(c, n, path);
}

static void check_head(struct checker *c, struct kiln_str bytes, struct profile *p,
                       const char *where)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    size_t format = 0, payload = 0;
    struct kiln_pb_field f;
    int n;

    check_attrs_begin(c);
    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u))
            check_type(c, f.bytes, where, "sample_type");
        else if (f.tag == KILN_PB_FIXED64(3u))
            p->time_ns = f.number;
        else if (f.tag == KILN_PB_VARINT(4u))
            p->duration_ns = f.number;
        else if (f.tag == KILN_PB_BYTES(5u))
            check_type(c, f.bytes, where, "period_type");
        else if (f.tag == KILN_PB_BYTES(7u) && f.bytes.len && f.bytes.len != 16)
            check_error(c, "id-length", where, "profile_id has %zu bytes instead of 16",
                        f.bytes.len);
        else if (f.tag == KILN_PB_BYTES(9u))
            format = f.bytes.len;
        else if (f.tag == KILN_PB_BYTES(10u))
            payload = f.bytes.len;
        else if (f.tag >> 3 == 11)
            check_attrs(c, &f, where);
    }
    check_wire(c, n, where);
    if ((format == 0) != (payload == 0))
        check_error(c, "payload", where,
                    "original_payload and its format are set together or not at all");
}

static void check_profile(struct checker *c, struct kiln_str bytes, const char *where)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct profile p = {0};
    struct kiln_pb_field f;
    uint32_t i = 0;

    c->check->n_profiles++;
    check_head(c, bytes, &p, where);
    while (c->error == 0 && kiln_pb_next(&r, &f) > 0) {
        char path[PATH_MAX_LEN * 2];

        if (f.tag != KILN_PB_BYTES(2u))
            continue;
        snprintf(path, sizeof(path), "%s.samples[%u]", where, i++);
        check_sample(c, f.bytes, &p, path);
    }
    c->check->n_samples += i;
    kiln_intern_done(&p.samples, &c->budget);
    kiln_array_free(&c->budget, (void **)&p.identities, &p.cap_identities, sizeof(*p.identities));
}

/* ---- resources and scopes ---- */

/* Name, version and attributes of a scope (attributes in field 3), or those of a resource (1). */
static void check_owner(struct checker *c, struct kiln_str bytes, uint32_t attrs_field,
                        const char *where)
{
    struct check_keys keys = {0};
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(attrs_field))
            check_key_value(c, f.bytes, &keys, where, kiln_limits_default.value_depth);
        else if ((f.tag & 7) == 2 && f.tag >> 3 < attrs_field)
            check_utf8(c, f.bytes, where);
    }
    check_wire(c, n, where);
    kiln_array_free(&c->budget, (void **)&keys.keys, &keys.cap, sizeof(*keys.keys));
}

/* A level of the envelope: field 1 is its owner, field 2 its children. */
struct level {
    const char *owner;
    const char *children;
    uint32_t attrs_field;
    void (*check_child)(struct checker *c, struct kiln_str bytes, const char *where);
};

static void check_level(struct checker *c, struct kiln_str bytes, const struct level *level,
                        const char *where)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    char path[PATH_MAX_LEN * 2];
    struct kiln_pb_field f;
    uint32_t i = 0;
    int n;

    while (c->error == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u)) {
            snprintf(path, sizeof(path), "%s.%s", where, level->owner);
            check_owner(c, f.bytes, level->attrs_field, path);
        } else if (f.tag == KILN_PB_BYTES(2u)) {
            snprintf(path, sizeof(path), "%s.%s[%u]", where, level->children, i++);
            level->check_child(c, f.bytes, path);
        } else if (f.tag == KILN_PB_BYTES(3u)) {
            check_utf8(c, f.bytes, where);
        }
    }
    check_wire(c, c->error ? 0 : n, where);
    if (i == 0)
        check_error(c, "empty", where, "has no %s", level->children);
}

static void check_scope(struct checker *c, struct kiln_str bytes, const char *where)
{
    static const struct level level = {"scope", "profiles", 3, check_profile};

    check_level(c, bytes, &level, where);
}

static void check_resource(struct checker *c, struct kiln_str bytes, const char *where)
{
    static const struct level level = {"resource", "scope_profiles", 1, check_scope};

    check_level(c, bytes, &level, where);
}

void check_resources(struct checker *c, struct kiln_str message)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_pb_field f;
    uint32_t i = 0;

    while (c->error == 0 && kiln_pb_next(&r, &f) > 0) {
        char where[PATH_MAX_LEN];

        if (f.tag != KILN_PB_BYTES(1u))
            continue;
        snprintf(where, sizeof(where), "resource_profiles[%u]", i++);
        check_resource(c, f.bytes, where);
    }
    if (i == 0)
        check_error(c, "empty", "message", "has no resource_profiles");
}

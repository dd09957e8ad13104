/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both readings are brought into one dictionary, so that equal stacks have equal indexes; each
 * identity (type, stack, attributes, link) gets a counter of what was and of what is.  Then the new
 * reading is brought into a second builder, sample by sample, with the differences for values.
 */
#include "core/delta.h"

#include <errno.h>

#include "base/mem.h"
#include "base/sat.h"
#include "core/keys.h"
#include "core/remap.h"
#include "core/type.h"

#define NO_PAIR UINT32_MAX

struct counter {
    int64_t before, now;
};

struct delta {
    const struct kiln_batch *before, *now;
    const struct kiln_limits *limits; /* NULL: the default */
    bool no_levels;
    struct kiln_type *types; /* of `now` */
    uint32_t *pairs;         /* for each profile of `now`: the one before of the same type */
    struct kiln_builder *b;  /* the dictionary of both */
    struct kiln_keys keys;
    struct counter *counters; /* beside the keys */
    uint32_t cap_counters;
    bool reset;
};

/* ---- which belongs to which ---- */

static bool same_type(const struct delta *d, const struct kiln_profile *a,
                      const struct kiln_profile *b)
{
    return kiln_str_eq(kiln_batch_str(d->before, a->sample_type.type),
                       kiln_batch_str(d->now, b->sample_type.type)) &&
           kiln_str_eq(kiln_batch_str(d->before, a->sample_type.unit),
                       kiln_batch_str(d->now, b->sample_type.unit));
}

static uint32_t find_pair(const struct delta *d, const struct kiln_profile *profile)
{
    for (uint32_t i = 0; d->before && i < d->before->n_profiles; i++) {
        if (same_type(d, &d->before->profiles[i], profile))
            return i;
    }
    return NO_PAIR;
}

/* The program itself is the first mapping; its build id stands in the attributes. */
static bool same_program(const struct kiln_batch *a, const struct kiln_batch *b)
{
    static const char *const ids[] = {"process.executable.build_id.gnu",
                                      "process.executable.build_id.go"};
    const struct kiln_mapping *x, *y;

    if (a->dict.n_mappings < 2 || b->dict.n_mappings < 2)
        return true; /* nobody says otherwise */
    x = &a->dict.mappings[1];
    y = &b->dict.mappings[1];
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(ids); i++) {
        if (!kiln_str_eq(kiln_set_text(a, x->attrs, kiln_str_of(ids[i])),
                         kiln_set_text(b, y->attrs, kiln_str_of(ids[i]))))
            return false;
    }
    return x->start == y->start &&
           kiln_str_eq(kiln_batch_str(a, x->filename), kiln_batch_str(b, y->filename));
}

/* ---- counting ---- */

/* The counter of a sample; NULL on failure, which sticks in the builder. */
static struct counter *counter_of(struct delta *d, struct kiln_remap *remap, uint32_t pair,
                                  const struct kiln_sample *s)
{
    uint32_t n = d->keys.n, found;

    kiln_keys_add(&d->keys, d->b, pair);
    kiln_keys_add(&d->keys, d->b, kiln_remap_stack(remap, s->stack));
    kiln_keys_add(&d->keys, d->b, kiln_remap_set(remap, s->attrs));
    kiln_keys_add(&d->keys, d->b, kiln_remap_link(remap, s->link));
    found = kiln_keys_take(&d->keys, d->b);
    if (kiln_builder_error(d->b) ||
        !kiln_builder_room(d->b, (void **)&d->counters, &d->cap_counters, (uint64_t)found + 1,
                           sizeof(*d->counters)))
        return NULL;
    if (found == n)
        d->counters[found] = (struct counter){0};
    return &d->counters[found];
}

static void count_before(struct delta *d, struct kiln_remap *remap, uint32_t profile)
{
    const struct kiln_profile *p = &d->before->profiles[profile];

    for (uint32_t i = 0; i < p->n_samples; i++) {
        const struct kiln_sample *s = &d->before->samples[p->first_sample + i];
        struct counter *c = counter_of(d, remap, profile, s);

        if (!c)
            return;
        c->before = kiln_sat_add(c->before, kiln_sample_total(d->before, s));
    }
}

static void count_now(struct delta *d, struct kiln_remap *remap, uint32_t profile)
{
    const struct kiln_profile *p = &d->now->profiles[profile];

    for (uint32_t i = 0; i < p->n_samples; i++) {
        const struct kiln_sample *s = &d->now->samples[p->first_sample + i];
        struct counter *c = counter_of(d, remap, d->pairs[profile], s);

        if (!c)
            return;
        c->now = kiln_sat_add(c->now, kiln_sample_total(d->now, s));
    }
}

static int64_t total(const struct kiln_batch *batch, const struct kiln_profile *p)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < p->n_samples; i++)
        sum = kiln_sat_add(sum, kiln_sample_total(batch, &batch->samples[p->first_sample + i]));
    return sum;
}

static bool is_flow(const struct delta *d, uint32_t profile)
{
    return !d->types[profile].level;
}

static void match(struct delta *d)
{
    d->reset = d->before && !same_program(d->before, d->now);
    for (uint32_t i = 0; i < d->now->n_profiles; i++) {
        d->pairs[i] = is_flow(d, i) ? find_pair(d, &d->now->profiles[i]) : NO_PAIR;
        if (d->pairs[i] != NO_PAIR && total(d->now, &d->now->profiles[i]) <
                                          total(d->before, &d->before->profiles[d->pairs[i]]))
            d->reset = true;
    }
}

static int count(struct delta *d)
{
    struct kiln_remap *before = NULL, *now = NULL;
    int r = kiln_remap_new(d->b, d->before, NULL, &before);

    if (r == 0)
        r = kiln_remap_new(d->b, d->now, NULL, &now);
    for (uint32_t i = 0; r == 0 && i < d->now->n_profiles; i++) {
        if (d->pairs[i] == NO_PAIR)
            continue;
        if (!d->reset)
            count_before(d, before, d->pairs[i]);
        count_now(d, now, i);
    }
    kiln_remap_free(before);
    kiln_remap_free(now);
    return r < 0 ? r : kiln_builder_error(d->b);
}

/* ---- the result ---- */

/* What a set says, and profile.delta. */
static uint32_t marked(struct kiln_builder *b, uint32_t set)
{
    const struct kiln_dict *dict = &kiln_builder_peek(b)->dict;
    struct kiln_range range = dict->sets[set];
    uint32_t *attrs = kiln_builder_scratch(b, ((size_t)range.n + 1) * sizeof(*attrs));

    if (!attrs)
        return 0;
    if (range.n)
        memcpy(attrs, dict->members + range.first, range.n * sizeof(*attrs));
    attrs[range.n] = kiln_builder_attr(b, kiln_builder_string(b, KILN_STR("profile.delta")),
                                       kiln_value_bool(true), 0);
    return kiln_builder_set(b, attrs, range.n + 1, NULL);
}

static uint32_t open_difference(struct delta *d, struct kiln_remap *out, struct kiln_builder *b,
                                uint32_t profile)
{
    const struct kiln_profile *before = &d->before->profiles[d->pairs[profile]];
    struct kiln_profile head = kiln_remap_profile(out, profile);

    if (before->time_ns && before->time_ns < head.time_ns) {
        head.duration_ns = head.time_ns - before->time_ns;
        head.time_ns = before->time_ns;
    }
    head.attrs = marked(b, head.attrs);
    return kiln_builder_add_profile(b, &head);
}

/* The differences; the profile is opened with the first of them. */
static void put_differences(struct delta *d, struct kiln_remap *joint, struct kiln_remap *out,
                            struct kiln_builder *b, uint32_t profile)
{
    const struct kiln_profile *p = &d->now->profiles[profile];
    uint32_t opened = NO_PAIR;

    for (uint32_t i = 0; i < p->n_samples && !kiln_builder_error(b); i++) {
        const struct kiln_sample *s = &d->now->samples[p->first_sample + i];
        struct counter *c = counter_of(d, joint, d->pairs[profile], s);
        int64_t grown;

        if (!c || c->now <= c->before)
            continue;
        grown = kiln_sat_sub(c->now, c->before);
        c->before = c->now; /* said: a second sample of the same identity adds nothing */
        if (opened == NO_PAIR)
            opened = open_difference(d, out, b, profile);
        kiln_builder_add_sample(b, opened, kiln_remap_stack(out, s->stack),
                                kiln_remap_set(out, s->attrs), kiln_remap_link(out, s->link),
                                &grown, NULL, 1);
    }
}

/* Programs show what is not in use any more as zero: that says nothing. */
static void put_level(struct delta *d, struct kiln_remap *out, struct kiln_builder *b,
                      uint32_t profile)
{
    const struct kiln_profile *p = &d->now->profiles[profile];
    struct kiln_profile head = kiln_remap_profile(out, profile);
    uint32_t opened = NO_PAIR;

    for (uint32_t i = 0; i < p->n_samples && !kiln_builder_error(b); i++) {
        const struct kiln_sample *s = &d->now->samples[p->first_sample + i];

        if (!s->has_times && kiln_sample_total(d->now, s) == 0)
            continue;
        if (opened == NO_PAIR)
            opened = kiln_builder_add_profile(b, &head);
        kiln_builder_add_sample(b, opened, kiln_remap_stack(out, s->stack),
                                kiln_remap_set(out, s->attrs), kiln_remap_link(out, s->link),
                                kiln_sample_values(d->now, s), kiln_sample_times(d->now, s), s->n);
    }
}

static void put_all(struct delta *d, struct kiln_remap *joint, struct kiln_remap *out,
                    struct kiln_builder *b)
{
    for (uint32_t r = 0; r < d->now->n_resources; r++) {
        const struct kiln_resource *resource = &d->now->resources[r];

        kiln_remap_add_resource(out, r);
        for (uint32_t s = 0; s < resource->n_scopes; s++) {
            const struct kiln_scope *scope = &d->now->scopes[resource->first_scope + s];
            struct kiln_scope head = kiln_remap_scope(out, resource->first_scope + s);

            kiln_builder_add_scope(b, &head);
            for (uint32_t i = 0; i < scope->n_profiles && !kiln_builder_error(b); i++) {
                uint32_t profile = scope->first_profile + i;

                if (!is_flow(d, profile) && !d->no_levels)
                    put_level(d, out, b, profile);
                else if (d->pairs[profile] != NO_PAIR)
                    put_differences(d, joint, out, b, profile);
            }
        }
    }
}

static int put(struct delta *d, struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct kiln_remap *joint = NULL, *out = NULL;
    struct kiln_builder *b;
    int r = kiln_builder_new(d->limits, &b);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    r = kiln_remap_new(d->b, d->now, NULL, &joint);
    if (r == 0)
        r = kiln_remap_new(b, d->now, NULL, &out);
    if (r == 0)
        put_all(d, joint, out, b);
    if (r == 0)
        r = kiln_builder_error(d->b);
    kiln_remap_free(joint);
    kiln_remap_free(out);
    if (r < 0)
        kiln_builder_fail(b, r);
    return kiln_builder_finish(b, ret_batch, err);
}

static int prepare(struct delta *d)
{
    int r = kiln_types_of_batch(d->now, true, &d->types);

    if (r < 0)
        return r;
    d->pairs = kiln_calloc(d->now->n_profiles, sizeof(*d->pairs));
    if (!d->pairs)
        return -ENOMEM;
    r = kiln_builder_new(d->limits, &d->b);
    if (r < 0)
        return r;
    match(d);
    return d->before ? count(d) : 0;
}

int kiln_delta(const struct kiln_batch *before, const struct kiln_batch *now,
               const struct kiln_delta_opts *opts, struct kiln_batch **ret_batch, bool *ret_reset,
               struct kiln_err *err)
{
    struct delta d = {.before = before, .now = now, .no_levels = opts && opts->no_levels};
    int r;

    if (opts && opts->limits.memory_bytes)
        d.limits = &opts->limits;
    r = prepare(&d);
    if (r < 0)
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    else
        r = put(&d, ret_batch, err);
    if (r == 0 && ret_reset)
        *ret_reset = d.reset;
    if (d.b) {
        kiln_keys_done(&d.keys, d.b);
        kiln_array_free(&d.b->box->budget, (void **)&d.counters, &d.cap_counters,
                        sizeof(*d.counters));
        kiln_builder_free(d.b);
    }
    kiln_free(d.pairs);
    kiln_free(d.types);
    return r;
}

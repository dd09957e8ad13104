/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes over the samples.  The first brings each batch's dictionary over (core/remap.h) and
 * decides for every sample of the input which sample of the result it belongs to; resources, scopes
 * and profiles are found by a key, a list of numbers that are equal when they are.  The second
 * (merge_fill.c) knows how many observations each sample gets and copies them to their place.
 */
#include <errno.h>

#include "base/hash.h"
#include "core/merge_int.h"

/* ---- keys ---- */

#define KEY_ROOM(m, ptr, cap, need)                                                                \
    kiln_builder_room((m)->b, (void **)&(ptr), &(cap), (need), sizeof(*(ptr)))

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* ---- resources, scopes ---- */

static uint32_t find_resource(struct kiln_merge *m, struct kiln_remap *remap,
                              const struct kiln_batch *from, uint32_t resource)
{
    struct kiln_resource head = kiln_remap_resource(remap, resource);
    uint32_t found = kiln_heads_resource(&m->resource_keys, m->b, remap, from, resource, &head);

    if (found < m->n_resources) {
        uint32_t *dropped = &m->resources[found].head.dropped_attrs;

        *dropped = larger(*dropped, head.dropped_attrs);
        return found;
    }
    if (!KEY_ROOM(m, m->resources, m->cap_resources, (uint64_t)m->n_resources + 1))
        return KILN_NONE;
    m->resources[m->n_resources] =
        (struct kiln_merge_resource){{KILN_NONE, KILN_NONE, KILN_NONE}, head};
    return m->n_resources++;
}

static uint32_t find_scope(struct kiln_merge *m, uint32_t resource, const struct kiln_scope *head)
{
    struct kiln_merge_node *parent = &m->resources[resource].node;
    uint32_t found = kiln_heads_scope(&m->scope_keys, m->b, resource, head);

    if (found < m->n_scopes) {
        uint32_t *dropped = &m->scopes[found].head.dropped_attrs;

        *dropped = larger(*dropped, head->dropped_attrs);
        return found;
    }
    if (!KEY_ROOM(m, m->scopes, m->cap_scopes, (uint64_t)m->n_scopes + 1))
        return KILN_NONE;
    m->scopes[found] = (struct kiln_merge_scope){{KILN_NONE, KILN_NONE, KILN_NONE}, *head};
    if (parent->last_child == KILN_NONE)
        parent->first_child = found;
    else
        m->scopes[parent->last_child].node.next = found;
    parent->last_child = found;
    return m->n_scopes++;
}

/* ---- profiles ---- */

/* Values, times, both or neither, as a number below 4. */
static uint32_t shape_of(const struct kiln_sample *s)
{
    return s->n ? s->has_values | (uint32_t)s->has_times << 1 : 0;
}

/* Writes the key of a profile: all that must be equal. */
static void write_profile_key(struct kiln_merge *m, uint32_t scope, const struct kiln_profile *p,
                              uint32_t shape)
{
    uint64_t id[2];

    memcpy(id, p->id, sizeof(id));
    kiln_keys_add(&m->profile_keys, m->b, scope);
    kiln_keys_add(&m->profile_keys, m->b, p->sample_type.type);
    kiln_keys_add(&m->profile_keys, m->b, p->sample_type.unit);
    kiln_keys_add(&m->profile_keys, m->b, p->period_type.type);
    kiln_keys_add(&m->profile_keys, m->b, p->period_type.unit);
    kiln_keys_add64(&m->profile_keys, m->b, (uint64_t)p->period);
    kiln_keys_add(&m->profile_keys, m->b, p->attrs);
    kiln_keys_add(&m->profile_keys, m->b, shape);
    kiln_keys_add64(&m->profile_keys, m->b, id[0]);
    kiln_keys_add64(&m->profile_keys, m->b, id[1]);
    if (!m->opts->combine_times) {
        kiln_keys_add64(&m->profile_keys, m->b, p->time_ns);
        kiln_keys_add64(&m->profile_keys, m->b, p->duration_ns);
    }
    if (m->opts->keep_profiles_apart || p->payload.len || p->payload_format)
        kiln_keys_add(&m->profile_keys, m->b, m->n_profiles); /* a number no other key ends in */
}

static void add_window(struct kiln_merge *m, uint32_t profile, const struct kiln_profile *p)
{
    uint64_t end;

    if (__builtin_add_overflow(p->time_ns, p->duration_ns, &end))
        end = UINT64_MAX;
    if (KEY_ROOM(m, m->windows, m->cap_windows, (uint64_t)m->n_windows + 1))
        m->windows[m->n_windows++] = (struct kiln_merge_window){profile, p->time_ns, end};
}

static uint32_t find_profile(struct kiln_merge *m, uint32_t scope, const struct kiln_profile *head,
                             uint32_t shape)
{
    struct kiln_merge_node *parent = &m->scopes[scope].node;
    uint32_t found;

    write_profile_key(m, scope, head, shape);
    found = kiln_keys_take(&m->profile_keys, m->b);
    if (found < m->n_profiles) {
        struct kiln_merge_profile *known = &m->profiles[found];

        known->n_parts++;
        known->head.dropped_attrs = larger(known->head.dropped_attrs, head->dropped_attrs);
        return found;
    }
    if (!KEY_ROOM(m, m->profiles, m->cap_profiles, (uint64_t)m->n_profiles + 1))
        return KILN_NONE;
    m->profiles[found] =
        (struct kiln_merge_profile){.node = {.next = KILN_NONE}, .head = *head, .n_parts = 1};
    if (parent->last_child == KILN_NONE)
        parent->first_child = found;
    else
        m->profiles[parent->last_child].node.next = found;
    parent->last_child = found;
    return m->n_profiles++;
}

/* ---- samples ---- */

/* What makes two samples one.  Whole numbers, not the bits of a sample: they stay in registers. */
struct identity {
    uint32_t profile, stack, attrs, link, shape;
};

static inline bool same_sample(const struct kiln_merge *m, uint32_t known, struct identity id)
{
    const struct kiln_sample *s = &m->b->box->batch.samples[known];

    return s->stack == id.stack && m->b->owners[known] == id.profile && s->attrs == id.attrs &&
           s->link == id.link && (s->has_values | (uint32_t)s->has_times << 1) == id.shape;
}

static uint32_t add_sample(struct kiln_merge *m, uint64_t hash, struct identity id)
{
    struct kiln_batch *batch = &m->b->box->batch;
    int r;

    if (!ROOM(m->b, batch->samples, batch->n_samples, samples, 1) ||
        !SIDE_ROOM(m->b, m->b->owners, batch->n_samples, owners, 1))
        return 0;
    r = kiln_intern_add(&m->sample_index, &m->b->box->budget, hash, batch->n_samples);
    if (r < 0)
        kiln_builder_fail(m->b, r);
    batch->samples[batch->n_samples] = (struct kiln_sample){
        .stack = id.stack,
        .attrs = id.attrs,
        .link = id.link,
        .n = id.shape == 1, /* a sum; observations with times are counted as they come */
        .has_values = id.shape & 1,
        .has_times = id.shape >> 1 & 1,
    };
    m->b->owners[batch->n_samples] = id.profile;
    m->profiles[id.profile].n_samples++;
    return batch->n_samples++;
}

/*
 * The sample of the result with this identity, new or old.  As with dictionary entries, those right
 * behind the last that was found are good guesses.
 */
static inline uint32_t find_sample(struct kiln_merge *m, struct identity id)
{
    uint32_t n = m->b->box->batch.n_samples;
    uint64_t hash;

    for (uint32_t i = m->next_sample; i < n && i <= m->next_sample + 1; i++) {
        if (same_sample(m, i, id)) {
            m->next_sample = i + 1;
            return i;
        }
    }
    hash = kiln_hash_mix(id.stack | (uint64_t)(id.profile ^ id.shape << 30) << 32,
                         id.attrs | (uint64_t)id.link << 32);
    for (struct kiln_probe p = kiln_intern_probe(&m->sample_index, hash);
         kiln_intern_next(&m->sample_index, &p);) {
        if (same_sample(m, p.entry, id)) {
            m->next_sample = p.entry + 1;
            return p.entry;
        }
    }
    return add_sample(m, hash, id);
}

/* `n` more observations with times for a sample of the result. */
static void count_times(struct kiln_merge *m, uint32_t target, uint32_t n)
{
    struct kiln_sample *s = &m->b->box->batch.samples[target];
    uint32_t sum = s->n + n;

    if (sum >= 1u << 30)
        kiln_builder_fail(m->b, KILN_E_LIMIT);
    s->n = sum & 0x3fffffffu;
    m->profiles[m->b->owners[target]].has_times = true;
}

static void assign_samples(struct kiln_merge *m, struct kiln_remap *remap,
                           const struct kiln_batch *from, const struct kiln_profile *source,
                           uint32_t profile)
{
    for (uint32_t i = 0; i < source->n_samples; i++) {
        const struct kiln_sample *s = &from->samples[source->first_sample + i];
        struct identity id = {
            .profile = profile,
            .stack = kiln_remap_stack(remap, s->stack),
            .attrs = kiln_remap_set(remap, s->attrs),
            .link = kiln_remap_link(remap, s->link),
            .shape = shape_of(s),
        };
        uint32_t target = find_sample(m, id);

        if (KILN_UNLIKELY(m->b->error))
            return;
        m->targets[m->n_targets++] = target;
        if (id.shape & 2)
            count_times(m, target, s->n);
    }
}

/* ---- batches ---- */

static void take_profile(struct kiln_merge *m, struct kiln_remap *remap,
                         const struct kiln_batch *from, uint32_t index, uint32_t scope)
{
    const struct kiln_profile *source = &from->profiles[index];
    struct kiln_profile head = kiln_remap_profile(remap, index);
    uint32_t shape = source->n_samples ? shape_of(&from->samples[source->first_sample]) : 0;
    uint32_t profile;

    kiln_remap_payload(remap, index, &head);
    profile = find_profile(m, scope, &head, shape);
    if (m->b->error)
        return;
    if (m->opts->combine_times)
        add_window(m, profile, &head);
    assign_samples(m, remap, from, source, profile);
}

static void take_batch(struct kiln_merge *m, struct kiln_remap *remap,
                       const struct kiln_batch *from)
{
    for (uint32_t r = 0; r < from->n_resources; r++) {
        const struct kiln_resource *source = &from->resources[r];
        uint32_t resource = find_resource(m, remap, from, r);

        for (uint32_t s = 0; s < source->n_scopes && !m->b->error; s++) {
            const struct kiln_scope *source_scope = &from->scopes[source->first_scope + s];
            struct kiln_scope head = kiln_remap_scope(remap, source->first_scope + s);
            uint32_t scope = m->b->error ? KILN_NONE : find_scope(m, resource, &head);

            for (uint32_t p = 0; p < source_scope->n_profiles && !m->b->error; p++)
                take_profile(m, remap, from, source_scope->first_profile + p, scope);
        }
    }
}

/* Sizes tables for the largest batch: the others are likely to say much the same. */
static void expect(struct kiln_merge *m, struct kiln_batch *const *batches, uint32_t n)
{
    struct kiln_counts most = {0};
    uint64_t total = 0;
    int r = 0;

    for (uint32_t i = 0; i < n; i++) {
        struct kiln_counts c = kiln_batch_counts(batches[i]);

        total += c.samples;
        if (c.samples + c.frames + c.strings > most.samples + most.frames + most.strings)
            most = c;
    }
    most.profiles = most.observations = 0; /* laid out at the end, at full size */
    kiln_builder_expect(m->b, &most);
    KEY_ROOM(m, m->targets, m->cap_targets, total);
    KEY_ROOM(m, m->b->owners, m->b->cap.owners, most.samples);
    if (!m->b->error)
        r = kiln_intern_expect(&m->sample_index, &m->b->box->budget, most.samples);
    if (r < 0)
        kiln_builder_fail(m->b, r);
}

static void merge_done(struct kiln_merge *m)
{
    struct kiln_budget *budget = &m->b->box->budget;

    kiln_keys_done(&m->resource_keys, m->b);
    kiln_keys_done(&m->scope_keys, m->b);
    kiln_keys_done(&m->profile_keys, m->b);
    kiln_intern_done(&m->sample_index, budget);
    kiln_code_done(&m->code, m->b);
#define FREE(name) kiln_array_free(budget, (void **)&m->name, &m->cap_##name, sizeof(*m->name))
    FREE(resources);
    FREE(scopes);
    FREE(profiles);
    FREE(windows);
    FREE(targets);
#undef FREE
}

int kiln_merge(struct kiln_batch *const *batches, uint32_t n, const struct kiln_merge_opts *opts,
               struct kiln_batch **ret_batch, struct kiln_err *err)
{
    static const struct kiln_merge_opts defaults;
    struct kiln_merge m = {.opts = opts ? opts : &defaults};
    int r;

    r = kiln_builder_new(m.opts->limits.memory_bytes ? &m.opts->limits : NULL, &m.b);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    expect(&m, batches, n);
    for (uint32_t i = 0; i < n && !m.b->error; i++) {
        struct kiln_remap *remap;

        r = kiln_remap_new(m.b, batches[i], NULL, &remap);
        if (r < 0) {
            kiln_builder_fail(m.b, r);
            break;
        }
        if (m.opts->relocate)
            kiln_remap_relocate(remap, &m.code);
        else if (i == 0)
            kiln_remap_sole(remap);
        m.next_sample = 0;
        take_batch(&m, remap, batches[i]);
        kiln_remap_free(remap);
    }
    if (!m.b->error)
        kiln_merge_lay_out(&m, batches, n);
    merge_done(&m);
    return kiln_builder_finish(m.b, ret_batch, err);
}

int kiln_compact(const struct kiln_batch *batch, struct kiln_batch **ret_batch,
                 struct kiln_err *err)
{
    return kiln_remap_batch(batch, NULL, NULL, ret_batch, err);
}

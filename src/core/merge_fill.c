/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree goes first: resources in the order they were met, each with its scopes, each with its
 * profiles.  Each sample then gets as much room as its sources have observations together, and a
 * second walk over the sources fills it.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/sat.h"
#include "core/merge_int.h"

/* ---- time ---- */

static int by_profile_then_start(const void *a, const void *b)
{
    const struct kiln_merge_window *x = a, *y = b;

    if (x->profile != y->profile)
        return x->profile < y->profile ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Start and duration of a profile from its `n` windows, which are sorted by start. */
static void set_time(struct kiln_merge_profile *p, const struct kiln_merge_window *w, uint32_t n)
{
    uint64_t unplaced = 0, covered = 0, start = 0, end = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t from = w[i].start_ns > end ? w[i].start_ns : end;

        if (w[i].start_ns == 0) {
            unplaced = add_saturating(unplaced, w[i].end_ns);
            continue;
        }
        if (start == 0)
            start = w[i].start_ns;
        if (w[i].end_ns > from)
            covered += w[i].end_ns - from;
        if (w[i].end_ns > end)
            end = w[i].end_ns;
    }
    p->head.time_ns = start;
    p->head.duration_ns = add_saturating(p->has_times ? end - start : covered, unplaced);
}

static void set_times(struct kiln_merge *m)
{
    uint32_t n;

    if (m->n_windows)
        qsort(m->windows, m->n_windows, sizeof(*m->windows), by_profile_then_start);
    for (uint32_t i = 0; i < m->n_windows; i += n) {
        struct kiln_merge_profile *p = &m->profiles[m->windows[i].profile];

        n = p->n_parts;
        if (n > 1)
            set_time(p, m->windows + i, n);
    }
}

/* ---- tree ---- */

static void add_entities(struct kiln_merge *m, uint32_t resource)
{
    struct kiln_range key = m->resource_keys.ranges[resource];
    const uint32_t *at = m->resource_keys.numbers + key.first + KILN_RESOURCE_KEY_HEAD;
    const uint32_t *end = m->resource_keys.numbers + key.first + key.n;

    while (at < end) {
        const uint32_t *keys = at + KILN_ENTITY_KEYS;
        uint32_t n_id = at[KILN_ENTITY_N_ID], n_description = at[KILN_ENTITY_N_DESCRIPTION];

        kiln_builder_add_entity(m->b, at[KILN_ENTITY_URL], at[KILN_ENTITY_TYPE], keys, n_id,
                                keys + n_id, n_description);
        at = keys + n_id + n_description;
    }
}

static void add_tree(struct kiln_merge *m)
{
    for (uint32_t r = 0; r < m->n_resources; r++) {
        kiln_builder_add_resource(m->b, &m->resources[r].head);
        add_entities(m, r);
        for (uint32_t s = m->resources[r].node.first_child; s != KILN_NONE;
             s = m->scopes[s].node.next) {
            kiln_builder_add_scope(m->b, &m->scopes[s].head);
            for (uint32_t p = m->scopes[s].node.first_child; p != KILN_NONE;
                 p = m->profiles[p].node.next)
                m->profiles[p].place = kiln_builder_add_profile(m->b, &m->profiles[p].head);
        }
    }
}

/* ---- samples ---- */

/*
 * Tells the builder whose each sample is.  Samples that already lie in the order of their profiles,
 * as those of one source do, need no sorting in finish().
 */
static void give_to_profiles(struct kiln_merge *m)
{
    struct kiln_builder *b = m->b;
    struct kiln_batch *batch = &b->box->batch;
    bool sorted = true;

    for (uint32_t p = 0; p < m->n_profiles; p++)
        batch->profiles[m->profiles[p].place].n_samples = m->profiles[p].n_samples;
    for (uint32_t i = 0; i < batch->n_samples; i++) {
        b->owners[i] = m->profiles[b->owners[i]].place;
        sorted = sorted && (i == 0 || b->owners[i - 1] <= b->owners[i]);
    }
    if (sorted)
        kiln_array_free(&b->box->budget, (void **)&b->owners, &b->cap.owners, sizeof(*b->owners));
}

/* Gives each sample its range of observations; `first` moves while they are filled in. */
static void place_observations(struct kiln_batch *batch)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < batch->n_samples; i++) {
        struct kiln_sample *s = &batch->samples[i];

        s->first = at;
        at += s->n * (s->has_values + s->has_times);
        if (s->has_values && !s->has_times)
            batch->observations[s->first] = 0; /* a sum in the making */
    }
    batch->n_observations = at;
}

static void rewind_observations(struct kiln_batch *batch)
{
    for (uint32_t i = 0; i < batch->n_samples; i++) {
        if (batch->samples[i].has_times)
            batch->samples[i].first -= batch->samples[i].n;
    }
}

/* Adds what one source sample observed to its sample of the result. */
static void fill(struct kiln_batch *batch, struct kiln_sample *to, const struct kiln_batch *from,
                 const struct kiln_sample *source)
{
    int64_t *at = batch->observations + to->first;
    uint32_t n = source->n;

    if (!to->has_times) {
        if (to->has_values)
            *at = kiln_sat_add(*at, kiln_sample_total(from, source));
        return;
    }
    if (to->has_values)
        memcpy(at, kiln_sample_values(from, source), n * sizeof(*at));
    memcpy(at + (to->has_values ? to->n : 0), kiln_sample_times(from, source), n * sizeof(*at));
    to->first += n;
}

static void fill_all(struct kiln_merge *m, struct kiln_batch *const *batches, uint32_t n)
{
    struct kiln_batch *batch = &m->b->box->batch;
    uint32_t at = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct kiln_batch *from = batches[i];

        /* Samples were assigned resource by resource: the order in which they lie in the batch. */
        for (uint32_t k = 0; k < from->n_samples; k++)
            fill(batch, &batch->samples[m->targets[at++]], from, &from->samples[k]);
    }
    assert(at == m->n_targets);
}

static uint64_t count_observations(const struct kiln_batch *batch)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < batch->n_samples; i++) {
        const struct kiln_sample *s = &batch->samples[i];

        n += (uint64_t)s->n * (s->has_values + s->has_times);
    }
    return n;
}

void kiln_merge_lay_out(struct kiln_merge *m, struct kiln_batch *const *batches, uint32_t n)
{
    struct kiln_batch *batch = &m->b->box->batch;
    struct kiln_counts counts = {.profiles = m->n_profiles,
                                 .observations = count_observations(batch)};

    set_times(m);
    kiln_builder_expect(m->b, &counts);
    add_tree(m);
    if (m->b->error)
        return;
    give_to_profiles(m);
    place_observations(batch);
    fill_all(m, batches, n);
    rewind_observations(batch);
}

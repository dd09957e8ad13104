/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flat arrays (identities, frames, stacks, samples) with a hash index over each; a stack is kept
 * once however many threads and processes have it.  Taking hands the arrays over as they are, and
 * the next interval begins with empty ones: what one busy interval needed is not kept for good.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "core/intern.h"
#include "host/gather.h"

#define BYTES_DEFAULT ((size_t)64 << 20)

struct kiln_gather {
    struct kiln_budget budget;
    struct kiln_gathering g;
    uint32_t cap_identities, cap_frames, cap_stacks, cap_samples;
    struct kiln_intern identities, stacks, samples;
};

int kiln_gather_new(size_t bytes_max, struct kiln_gather **ret_gather)
{
    struct kiln_gather *gather = kiln_calloc(1, sizeof(*gather));

    if (!gather)
        return -ENOMEM;
    gather->budget.limit = bytes_max ? bytes_max : BYTES_DEFAULT;
    *ret_gather = gather;
    return 0;
}

/* ---- gatherings ---- */

static void release(struct kiln_gathering *g)
{
    for (uint32_t i = 0; i < g->n_frames; i++)
        if (g->frames[i].object)
            kiln_object_unref(g->frames[i].object);
    for (uint32_t i = 0; i < g->n_identities; i++)
        kiln_identity_unref(g->identities[i]);
    kiln_free(g->identities);
    kiln_free(g->frames);
    kiln_free(g->stacks);
    kiln_free(g->samples);
}

void kiln_gathering_free(struct kiln_gathering *gathering)
{
    if (!gathering)
        return;
    release(gathering);
    kiln_free(gathering);
}

/* ---- finding, else adding ---- */

static int find_identity(struct kiln_gather *gather, struct kiln_identity *identity, uint32_t *ret)
{
    struct kiln_gathering *g = &gather->g;
    uint64_t hash = kiln_hash_mix(0, (uintptr_t)identity);
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&gather->identities, hash);
         kiln_intern_next(&gather->identities, &p);) {
        if (g->identities[p.entry] == identity) {
            *ret = p.entry;
            return 0;
        }
    }
    r = kiln_grow(&gather->budget, (void **)&g->identities, &gather->cap_identities,
                  (uint64_t)g->n_identities + 1, sizeof(*g->identities), UINT32_MAX);
    if (r == 0)
        r = kiln_budget_take(&gather->budget, identity->size);
    if (r == 0)
        r = kiln_intern_add(&gather->identities, &gather->budget, hash, g->n_identities);
    if (r < 0)
        return r;
    g->identities[g->n_identities] = kiln_identity_ref(identity);
    *ret = g->n_identities++;
    return 0;
}

static bool same_frame(const struct kiln_gframe *a, const struct kiln_gframe *b)
{
    return a->address == b->address && a->object == b->object && a->map == b->map &&
           a->kind == b->kind;
}

static bool same_stack(const struct kiln_gathering *g, const struct kiln_gstack *stack,
                       uint64_t hash, const struct kiln_gather_sample *sample)
{
    if (stack->hash != hash || stack->n != sample->n_frames)
        return false;
    for (uint32_t i = 0; i < stack->n; i++)
        if (!same_frame(&g->frames[stack->first + i], &sample->frames[i]))
            return false;
    return true;
}

static uint64_t hash_stack(const struct kiln_gather_sample *sample)
{
    uint64_t hash = sample->n_frames;

    for (uint32_t i = 0; i < sample->n_frames; i++) {
        const struct kiln_gframe *f = &sample->frames[i];

        hash = kiln_hash_mix(hash, f->address);
        hash = kiln_hash_mix(hash, (uintptr_t)f->object ^ (uint64_t)f->map << 32 ^ f->kind);
    }
    return hash;
}

static int add_stack(struct kiln_gather *gather, const struct kiln_gather_sample *sample,
                     uint64_t hash)
{
    struct kiln_gathering *g = &gather->g;
    uint32_t n = sample->n_frames;
    int r = kiln_grow(&gather->budget, (void **)&g->frames, &gather->cap_frames,
                      (uint64_t)g->n_frames + n, sizeof(*g->frames), UINT32_MAX);

    if (r == 0)
        r = kiln_grow(&gather->budget, (void **)&g->stacks, &gather->cap_stacks,
                      (uint64_t)g->n_stacks + 1, sizeof(*g->stacks), UINT32_MAX);
    if (r == 0)
        r = kiln_intern_add(&gather->stacks, &gather->budget, hash, g->n_stacks);
    if (r < 0)
        return r;
    g->stacks[g->n_stacks++] = (struct kiln_gstack){.hash = hash, .first = g->n_frames, .n = n};
    for (uint32_t i = 0; i < n; i++) {
        g->frames[g->n_frames] = sample->frames[i];
        if (sample->frames[i].object)
            kiln_object_ref(sample->frames[i].object);
        g->n_frames++;
    }
    return 0;
}

static int find_stack(struct kiln_gather *gather, const struct kiln_gather_sample *sample,
                      uint32_t *ret)
{
    uint64_t hash = hash_stack(sample);
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&gather->stacks, hash);
         kiln_intern_next(&gather->stacks, &p);) {
        if (same_stack(&gather->g, &gather->g.stacks[p.entry], hash, sample)) {
            *ret = p.entry;
            return 0;
        }
    }
    r = add_stack(gather, sample, hash);
    if (r == 0)
        *ret = gather->g.n_stacks - 1;
    return r;
}

/* ---- samples ---- */

/* All that tells samples apart stands behind the value, without a gap. */
enum {
    APART = offsetof(struct kiln_gsample, process),
    APART_BYTES = offsetof(struct kiln_gsample, link) + sizeof(struct kiln_link) - APART
};

static const void *apart(const struct kiln_gsample *sample)
{
    return (const char *)sample + APART;
}

static int count(struct kiln_gather *gather, const struct kiln_gsample *sample)
{
    struct kiln_gathering *g = &gather->g;
    uint64_t hash = kiln_hash(apart(sample), APART_BYTES);
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&gather->samples, hash);
         kiln_intern_next(&gather->samples, &p);) {
        struct kiln_gsample *found = &g->samples[p.entry];

        if (memcmp(apart(found), apart(sample), APART_BYTES) == 0) {
            found->value += sample->value;
            return 0;
        }
    }
    r = kiln_grow(&gather->budget, (void **)&g->samples, &gather->cap_samples,
                  (uint64_t)g->n_samples + 1, sizeof(*g->samples), UINT32_MAX);
    if (r == 0)
        r = kiln_intern_add(&gather->samples, &gather->budget, hash, g->n_samples);
    if (r == 0)
        g->samples[g->n_samples++] = *sample;
    return r;
}

int kiln_gather_add(struct kiln_gather *gather, const struct kiln_gather_sample *sample)
{
    struct kiln_gsample counted = {.value = sample->value,
                                   .hz = sample->hz,
                                   .tid = sample->tid,
                                   .since_s = sample->since_s,
                                   .kind = sample->kind,
                                   .end = sample->end,
                                   .state = sample->state,
                                   .reason = sample->reason,
                                   .link = sample->link};
    int r = find_identity(gather, sample->identity, &counted.process);

    if (r == 0)
        r = find_stack(gather, sample, &counted.stack);
    if (r < 0)
        return r;
    memcpy(counted.comm, sample->comm, strnlen(sample->comm, sizeof(counted.comm) - 1));
    r = count(gather, &counted);
    if (r == 0)
        gather->g.n_counted += sample->kind == KILN_KIND_CPU ? (uint64_t)sample->value : 1;
    return r;
}

/* ---- taking ---- */

static int compare(uint32_t x, uint32_t y)
{
    return x < y ? -1 : x > y;
}

static int by_process(const void *a, const void *b)
{
    const struct kiln_gsample *x = a, *y = b;
    int order = compare(x->process, y->process);

    if (order == 0)
        order = compare(x->kind, y->kind);
    if (order == 0)
        order = compare(x->hz, y->hz);
    if (order == 0)
        order = compare(x->since_s, y->since_s);
    return order ? order : compare(x->stack, y->stack);
}

static void begin_anew(struct kiln_gather *gather)
{
    kiln_intern_done(&gather->identities, &gather->budget);
    kiln_intern_done(&gather->stacks, &gather->budget);
    kiln_intern_done(&gather->samples, &gather->budget);
    *gather = (struct kiln_gather){.budget.limit = gather->budget.limit};
}

int kiln_gather_take(struct kiln_gather *gather, struct kiln_gathering **ret_gathering)
{
    struct kiln_gathering *taken;

    if (!gather->g.n_samples) {
        *ret_gathering = NULL;
        return 0;
    }
    taken = kiln_malloc(sizeof(*taken));
    if (!taken)
        return -ENOMEM;
    *taken = gather->g;
    qsort(taken->samples, taken->n_samples, sizeof(*taken->samples), by_process);
    begin_anew(gather);
    *ret_gathering = taken;
    return 0;
}

void kiln_gather_free(struct kiln_gather *gather)
{
    if (!gather)
        return;
    release(&gather->g);
    begin_anew(gather);
    kiln_free(gather);
}

size_t kiln_gather_bytes(const struct kiln_gather *gather)
{
    return gather->budget.used;
}

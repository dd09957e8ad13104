/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store - what the measuring programs share that fill a store and ask it.
 *
 * The same numbers come out of every run: they are thrown with a seed.  What a question takes is
 * CPU time of the process.
 *
 * Threads: one.
 */
#ifndef KILN_BENCH_STORE_H
#define KILN_BENCH_STORE_H

#include <stdatomic.h>
#include <unistd.h>

#include "batch.h"
#include "core/remap.h"
#include "store/store.h"

#define BENCH_TENANT KILN_STR("anonymous")
#define BENCH_POOL   ((size_t)114 << 20) /* the share of questions, where the process has 256 MiB */

/* Below `sides`. */
static inline uint64_t bench_roll(uint64_t sides)
{
    static uint64_t state = 1;
    uint64_t z = state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % sides;
}

/* ---- filling ---- */

/* Profiles like the first one of a file. */
struct bench_profiles {
    const struct kiln_batch *from;
    uint32_t samples; /* of each, about; at most those there are */
    uint32_t churn;   /* so many of a hundred have a stack that no other has */
    bool vary;        /* values, by up to three times */
    uint64_t duration_ns;
};

/* The beginning of one stack and the end of another, from the root. */
static inline uint32_t bench_graft(struct kiln_builder *b, uint32_t a, uint32_t c)
{
    static uint32_t frames[1 << 17];
    const struct kiln_dict *d = &kiln_builder_peek(b)->dict;
    struct kiln_range x = d->stacks[a], y = d->stacks[c];
    uint32_t keep = x.n ? 1 + (uint32_t)bench_roll(x.n) : 0;
    uint32_t take = y.n ? 1 + (uint32_t)bench_roll(y.n < 24 ? y.n : 24) : 0;

    for (uint32_t i = 0; i < take; i++)
        frames[i] = d->frames[y.first + i];
    for (uint32_t i = 0; i < keep; i++)
        frames[take + i] = d->frames[x.first + x.n - keep + i];
    return kiln_builder_stack(b, frames, take + keep);
}

static inline void bench_add_samples(const struct bench_profiles *like, struct kiln_builder *b,
                                     struct kiln_remap *remap, uint32_t profile)
{
    const struct kiln_batch *from = like->from;
    const struct kiln_sample *samples = &from->samples[from->profiles[0].first_sample];
    uint32_t all = from->profiles[0].n_samples;
    uint32_t step = like->samples < all ? all / like->samples : 1;

    for (uint32_t i = 0; i < all; i += step) {
        int64_t value = kiln_sample_total(from, &samples[i]);
        uint32_t stack = kiln_remap_stack(remap, samples[i].stack);

        if (bench_roll(100) < like->churn)
            stack = bench_graft(
                b, stack, kiln_remap_stack(remap, samples[bench_roll(all) / step * step].stack));
        if (like->vary)
            value *= (int64_t)(1 + bench_roll(3));
        kiln_builder_add_value(b, profile, stack, 0, value);
    }
}

/* One of them, of the service "large". */
static inline struct kiln_batch *bench_make(const struct bench_profiles *like, uint64_t time_ns)
{
    struct kiln_err err = {0};
    struct kiln_builder *b;
    struct kiln_remap *remap;
    struct kiln_batch *batch;
    struct kiln_profile head;
    uint32_t name, service;

    bench_must(kiln_builder_new(NULL, &b), "builder", &err);
    bench_must(kiln_remap_new(b, like->from, NULL, &remap), "remap", &err);
    name = kiln_builder_text_attr(b, KILN_STR("service.name"), KILN_STR("large"));
    service = kiln_builder_set(b, &name, 1, NULL);
    kiln_builder_add_resource(b, &(struct kiln_resource){.attrs = service});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    head = kiln_remap_profile(remap, 0);
    head.time_ns = time_ns;
    head.duration_ns = like->duration_ns;
    bench_add_samples(like, b, remap, kiln_builder_add_profile(b, &head));
    kiln_remap_free(remap);
    bench_must(kiln_builder_finish(b, &batch, &err), "batch", &err);
    return batch;
}

static inline void bench_appended(struct kiln_append *append, int code)
{
    atomic_store((_Atomic int *)append->context, code);
}

/* Appends, and waits until it is durable. */
static inline void bench_append(struct kiln_engine *engine, struct kiln_batch *batch,
                                uint64_t now_ns)
{
    _Atomic int code = 1;
    struct kiln_append append = {.batch = batch,
                                 .tenant = BENCH_TENANT.ptr,
                                 .received_ns = now_ns,
                                 .done = bench_appended,
                                 .context = (void *)&code};

    engine->ops->append(engine, &append);
    while (atomic_load(&code) == 1)
        usleep(20);
    bench_must(atomic_load(&code), "append", &append.err);
}

/* One that cuts and merges when it is told. */
static inline struct kiln_engine *bench_open_store(const char *folder, struct kiln_io **io,
                                                   struct kiln_pool *pool,
                                                   struct kiln_pool *query_pool)
{
    struct kiln_store_opts opts = {.no_background = true, .pool = pool, .query_pool = query_pool};
    struct kiln_engine *engine;
    struct kiln_err err = {0};

    bench_must(kiln_io_open(folder, false, io), folder, &err);
    opts.io = *io;
    opts.retention.age_ns = UINT64_MAX / 2;
    opts.cut_raw_bytes = UINT64_C(1) << 40;
    bench_must(kiln_store_open(&opts, &engine, &err), folder, &err);
    return engine;
}

/* ---- asking ---- */

/* In milliseconds, of several rounds. */
struct bench_times {
    double first, best;
    uint32_t n;
    size_t reserved, took; /* bytes, of the last round; only of those that a pool pays */
};

static inline void bench_time(struct bench_times *times, double began_s)
{
    double took = (bench_cpu_s() - began_s) * 1e3;

    times->first = times->n ? times->first : took;
    times->best = times->n && times->best < took ? times->best : took;
    times->n++;
}

struct bench_question {
    struct kiln_merge_wants wants;
    const struct kiln_window *window; /* NULL: all times */
    struct kiln_pool *pool;           /* what the answer is paid from; NULL: nobody counts */
    uint32_t rounds;
};

/* Asks for a merge.  *merged is the answer before this one, and then the last one. */
static inline struct bench_times bench_merge(struct kiln_engine *engine,
                                             const struct bench_question *ask,
                                             struct kiln_merged **merged)
{
    struct kiln_str tenant = BENCH_TENANT;
    struct bench_times times = {0};

    for (uint32_t i = 0; i < ask->rounds; i++) {
        struct kiln_leash leash = {.pool = ask->pool, .exact = ask->pool != NULL};
        struct kiln_question q = {.tenants = &tenant,
                                  .n_tenants = 1,
                                  .windows = ask->window,
                                  .n_windows = ask->window != NULL,
                                  .leash = &leash};
        struct kiln_err err = {0};
        double began = bench_cpu_s();

        kiln_merged_free(*merged); /* whoever answers frees the answer, too */
        *merged = NULL;
        bench_must(engine->ops->merge(engine, &q, &ask->wants, merged, &err), "merge", &err);
        bench_time(&times, began);
        times.reserved = leash.first;
        times.took = leash.first_peak;
        kiln_leash_spend(&leash);
    }
    return times;
}

static inline uint32_t bench_number(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 10);
}

#endif /* KILN_BENCH_STORE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What names cost that come later than the samples.
 *
 *   bench_late FOLDER HOURS SAMPLES ROUNDS FILE
 *        a store of so many hours with two profiles an hour, each of so many samples of FILE's
 *        first type, in which every fifth function (a tenth of the frames) has no name, and its
 *        file a build id; merged.  Then the same question over all of it: before anything has
 *        come, when names came for all of it, and when blocks were rewritten with them; and what
 *        it takes to tell what has none.
 */
#include <string.h>

#include "../store.h"
#include "base/clock.h"
#include "base/hash.h"

#define HOUR_NS   (3600 * KILN_NS_PER_S)
#define END_NS    (UINT64_C(20700) * 24 * HOUR_NS)
#define BUILD_ID  KILN_STR("d1ce")
#define CODE      0x400000u
#define MEMORY    ((size_t)160 << 20)
#define ONE_IN    5u
#define ADDRESSES 4u /* of a function */

/* ---- profiles without names ---- */

/* The function that a location ends in, or 0 where it keeps its name. */
static uint64_t nameless(const struct kiln_batch *from, const struct kiln_location *l)
{
    const struct kiln_dict *d = &from->dict;
    struct kiln_str name;
    uint64_t hash;

    if (l->n == 0)
        return 0;
    name = d->strings[d->functions[d->lines[l->first].function].name];
    hash = kiln_hash(name.ptr, name.len);
    return hash % ONE_IN ? 0 : (hash >> 8) % CODE * ADDRESSES + l->address % ADDRESSES;
}

struct stripping {
    struct kiln_builder *b;
    struct kiln_remap *remap;
    const struct kiln_batch *from;
    uint32_t mapping;
    uint64_t n_frames, n_nameless;
};

static uint32_t strip(struct stripping *s, uint32_t location)
{
    uint64_t address = nameless(s->from, &s->from->dict.locations[location]);

    s->n_frames++;
    if (address == 0)
        return kiln_remap_location(s->remap, location);
    s->n_nameless++;
    return kiln_builder_location(
        s->b, &(struct kiln_location){.address = CODE + address, .mapping = s->mapping}, NULL, 0);
}

static void strip_sample(struct stripping *s, const struct kiln_sample *sample, uint32_t profile)
{
    static uint32_t frames[1 << 17];
    struct kiln_range range = s->from->dict.stacks[sample->stack];

    for (uint32_t i = 0; i < range.n; i++)
        frames[i] = strip(s, s->from->dict.frames[range.first + i]);
    kiln_builder_add_value(s->b, profile, kiln_builder_stack(s->b, frames, range.n), 0,
                           kiln_sample_total(s->from, sample));
}

/* The same profile, every fifth of its functions without a name. */
static struct kiln_batch *strip_batch(const struct kiln_batch *from)
{
    struct kiln_mapping mapping = {.start = CODE, .limit = CODE + CODE * (ADDRESSES + 1)};
    struct stripping s = {.from = from};
    struct kiln_batch *batch;
    struct kiln_profile head;
    struct kiln_err err = {0};
    uint32_t attr, profile;

    bench_must(kiln_builder_new(NULL, &s.b), "builder", &err);
    bench_must(kiln_remap_new(s.b, from, NULL, &s.remap), "remap", &err);
    attr = kiln_builder_text_attr(s.b, KILN_STR("process.executable.build_id.gnu"), BUILD_ID);
    mapping.attrs = kiln_builder_set(s.b, &attr, 1, NULL);
    mapping.filename = kiln_builder_string(s.b, KILN_STR("/usr/bin/large"));
    s.mapping = kiln_builder_mapping(s.b, &mapping);
    kiln_builder_add_resource(s.b, &(struct kiln_resource){0});
    kiln_builder_add_scope(s.b, &(struct kiln_scope){0});
    head = kiln_remap_profile(s.remap, 0);
    profile = kiln_builder_add_profile(s.b, &head);
    for (uint32_t i = 0; i < from->profiles[0].n_samples; i++)
        strip_sample(&s, &from->samples[from->profiles[0].first_sample + i], profile);
    kiln_remap_free(s.remap);
    bench_must(kiln_builder_finish(s.b, &batch, &err), "batch", &err);
    printf("%.1f %% of frames have no name\n", 100.0 * (double)s.n_nameless / (double)s.n_frames);
    return batch;
}

/* ---- names ---- */

/* Three frames for each address, as where two functions were inlined. */
static int name(void *context, const struct kiln_unnamed *u)
{
    struct kiln_symbol *symbols = kiln_calloc(u->n, sizeof(*symbols));
    struct kiln_symbol_frame *frames = kiln_calloc(3 * (size_t)u->n, sizeof(*frames));
    char(*texts)[32] = kiln_calloc(u->n, sizeof(*texts));
    struct kiln_engine *engine = context;
    struct kiln_err err = {0};

    for (uint32_t i = 0; i < u->n; i++) {
        struct kiln_symbol_frame *f = &frames[3 * (size_t)i];

        snprintf(texts[i], sizeof(texts[i]), "function_%llx",
                 (unsigned long long)u->addresses[i] / ADDRESSES);
        f[0] = (struct kiln_symbol_frame){KILN_STR("get"), {0}, KILN_STR("src/buf.h"), 12, 10};
        f[1] = (struct kiln_symbol_frame){KILN_STR("next"), {0}, KILN_STR("src/list.h"), 40, 31};
        f[2] = (struct kiln_symbol_frame){
            kiln_str_of(texts[i]), {0}, KILN_STR("src/large.c"), 100 + i % 1000, 100};
        symbols[i] =
            (struct kiln_symbol){.address = u->addresses[i], .size = 1, .frames = f, .n = 3};
    }
    bench_must(engine->ops->put_symbols(engine, BENCH_TENANT, u->build_id, symbols, u->n, &err),
               "put", &err);
    printf("%u addresses%s\n", u->n, u->more ? ", and more" : "");
    kiln_free(symbols);
    kiln_free(frames);
    kiln_free(texts);
    return 0;
}

static int count(void *context, const struct kiln_unnamed *u)
{
    *(uint64_t *)context += u->n;
    return 0;
}

static void time_unnamed(struct kiln_engine *engine, const char *what)
{
    struct bench_times t = {0};
    uint64_t n = 0;
    struct kiln_err err = {0};

    for (int i = 0; i < 5; i++) {
        double began = bench_cpu_s();

        n = 0;
        bench_must(engine->ops->unnamed(engine, BENCH_TENANT, count, &n, &err), "unnamed", &err);
        bench_time(&t, began);
    }
    printf("%-36s first %8.2f  best %8.2f ms  %llu addresses\n", what, t.first, t.best,
           (unsigned long long)n);
}

/* ---- asking ---- */

static void ask(struct kiln_engine *engine, const char *what, uint32_t rounds)
{
    struct bench_question q = {.wants = {.nodes_max = 16384, .functions = true}, .rounds = rounds};
    struct kiln_merged *merged = NULL;
    struct bench_times t = bench_merge(engine, &q, &merged);

    printf("%-36s first %8.2f  best %8.2f ms  %u of %u blocks rolled, %u nodes, %u functions\n",
           what, t.first, t.best, merged->basis.n_rolled, merged->basis.n_blocks,
           merged->flame->n_nodes, merged->flame->n_functions);
    kiln_merged_free(merged);
}

static void fill(struct kiln_engine *engine, const struct bench_profiles *like, uint32_t hours)
{
    struct kiln_err err = {0};

    for (uint32_t i = 0; i < 2 * hours; i++) {
        struct kiln_batch *batch =
            bench_make(like, END_NS - hours * HOUR_NS + i * (HOUR_NS / 2) + 1000);

        bench_append(engine, batch, END_NS);
        kiln_batch_unref(batch);
        if ((i + 1) % 12 == 0)
            bench_must(kiln_store_flush(engine, &err), "cut", &err);
    }
    bench_must(kiln_store_flush(engine, &err), "cut", &err);
    bench_must(kiln_store_compact(engine, true, &err), "merge", &err);
}

int main(int argc, char **argv)
{
    struct bench_profiles like = {.churn = 5, .vary = true, .duration_ns = HOUR_NS / 2};
    struct kiln_err err = {0};
    struct kiln_pool pool, query_pool;
    struct kiln_engine *engine;
    struct kiln_io *io;
    uint32_t rounds;
    double began;

    if (argc != 6)
        bench_die(argv[0], "FOLDER HOURS SAMPLES ROUNDS FILE");
    rounds = bench_number(argv[4]);
    like.from = strip_batch(bench_load(argv[5]));
    like.samples = bench_number(argv[3]);
    kiln_pool_init(&pool, "bench", MEMORY, NULL);
    kiln_pool_init(&query_pool, "bench", BENCH_POOL, NULL);
    engine = bench_open_store(argv[1], &io, &pool, &query_pool);
    fill(engine, &like, bench_number(argv[2]));
    ask(engine, "before any names", rounds);
    time_unnamed(engine, "what lacks a name");
    began = bench_cpu_s();
    bench_must(engine->ops->unnamed(engine, BENCH_TENANT, name, engine, &err), "unnamed", &err);
    printf("%-36s %8.2f ms\n", "putting names", (bench_cpu_s() - began) * 1e3);
    ask(engine, "when names came", rounds);
    time_unnamed(engine, "what lacks a name, then");
    began = bench_cpu_s();
    bench_must(kiln_store_compact(engine, true, &err), "rewriting", &err);
    printf("%-36s %8.2f ms\n", "rewriting", (bench_cpu_s() - began) * 1e3);
    ask(engine, "when blocks were rewritten", rounds);
    engine->ops->close(engine);
    kiln_io_close(io);
    return 0;
}

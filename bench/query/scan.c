/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a flame graph takes inside the store, part by part; and series, labels and profiles.
 *
 *   bench_scan make FOLDER N BLOCKS CHURN FILE   a store of N profiles like FILE, 20 seconds apart,
 *                                                in so many blocks; CHURN percent of the stacks of
 *                                                each are new.  0 blocks: the head has it all, and
 *                                                is asked at once
 *   bench_scan ask FOLDER ROUNDS                 times: milliseconds of CPU, the first and the best
 *
 * Only the first sample type of FILE is taken.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../batch.h"
#include "base/clock.h"
#include "core/remap.h"
#include "store/store.h"

#define START_NS UINT64_C(1794729336999895112)
#define STEP_NS  UINT64_C(20000000000)
#define POOL     ((size_t)114 << 20) /* the share of questions, where the process has 256 MiB */

static uint64_t dice = 1;

static uint64_t roll(uint64_t sides)
{
    uint64_t z = dice += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % sides;
}

/* ---- making ---- */

/* The beginning of one stack and the end of another, from the root. */
static uint32_t graft(struct kiln_builder *b, uint32_t a, uint32_t c)
{
    static uint32_t frames[1 << 17];
    const struct kiln_dict *d = &kiln_builder_peek(b)->dict;
    struct kiln_range x = d->stacks[a], y = d->stacks[c];
    uint32_t keep = x.n ? 1 + (uint32_t)roll(x.n) : 0;
    uint32_t take = y.n ? 1 + (uint32_t)roll(y.n < 24 ? y.n : 24) : 0;

    for (uint32_t i = 0; i < take; i++)
        frames[i] = d->frames[y.first + i];
    for (uint32_t i = 0; i < keep; i++)
        frames[take + i] = d->frames[x.first + x.n - keep + i];
    return kiln_builder_stack(b, frames, take + keep);
}

static struct kiln_batch *make_batch(const struct kiln_batch *from, uint32_t churn,
                                     uint64_t time_ns)
{
    struct kiln_err err = {0};
    struct kiln_builder *b;
    struct kiln_remap *remap;
    struct kiln_batch *batch;
    struct kiln_profile head;
    uint32_t name, service, profile;

    bench_must(kiln_builder_new(NULL, &b), "builder", &err);
    bench_must(kiln_remap_new(b, from, NULL, &remap), "remap", &err);
    name = kiln_builder_text_attr(b, KILN_STR("service.name"), KILN_STR("large"));
    service = kiln_builder_set(b, &name, 1, NULL);
    kiln_builder_add_resource(b, &(struct kiln_resource){.attrs = service});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    head = kiln_remap_profile(remap, 0);
    head.time_ns = time_ns;
    head.duration_ns = STEP_NS;
    profile = kiln_builder_add_profile(b, &head);
    for (uint32_t i = 0; i < from->profiles[0].n_samples; i++) {
        const struct kiln_sample *x = &from->samples[from->profiles[0].first_sample + i];
        uint32_t stack = kiln_remap_stack(remap, x->stack);

        if (roll(100) < churn)
            stack = graft(b, stack,
                          kiln_remap_stack(remap, from->samples[roll(from->n_samples)].stack));
        kiln_builder_add_value(b, profile, stack, 0, kiln_sample_total(from, x));
    }
    kiln_remap_free(remap);
    bench_must(kiln_builder_finish(b, &batch, &err), "batch", &err);
    return batch;
}

static void appended(struct kiln_append *append, int code)
{
    atomic_store((_Atomic int *)append->context, code);
}

static void send(struct kiln_engine *engine, struct kiln_batch *batch)
{
    _Atomic int code = 1;
    struct kiln_append append = {.batch = batch,
                                 .tenant = "anonymous",
                                 .received_ns = START_NS + 7200 * KILN_NS_PER_S,
                                 .done = appended,
                                 .context = (void *)&code};

    engine->ops->append(engine, &append);
    while (atomic_load(&code) == 1)
        usleep(100);
    bench_must(atomic_load(&code), "append", &append.err);
}

static struct kiln_engine *open_store(const char *folder, struct kiln_io **io,
                                      struct kiln_pool *pool, struct kiln_pool *query_pool)
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

struct times {
    double first, best;
    size_t reserved, took; /* bytes, of the last one */
};

static struct times ask(struct kiln_engine *engine, const struct kiln_merge_wants *wants,
                        uint32_t rounds, struct kiln_pool *pool, struct kiln_merged **ret_merged)
{
    struct times times = {0, 1e9, 0, 0};

    for (uint32_t i = 0; i < rounds; i++) {
        static const struct kiln_str tenant = {"anonymous", 9};
        struct kiln_leash leash = {.pool = pool, .exact = true};
        struct kiln_question q = {.tenants = &tenant, .n_tenants = 1, .leash = &leash};
        struct kiln_err err = {0};
        double start = bench_cpu_s(), took;

        kiln_merged_free(*ret_merged);
        *ret_merged = NULL;
        bench_must(engine->ops->merge(engine, &q, wants, ret_merged, &err), "merge", &err);
        took = (bench_cpu_s() - start) * 1e3;
        times.first = i ? times.first : took;
        times.best = took < times.best ? took : times.best;
        times.reserved = leash.first;
        times.took = leash.first_peak;
        kiln_leash_spend(&leash);
    }
    return times;
}

/* The other kinds of questions. */
enum kind { SERIES, SERIES_BY_SERVICE, SERIES_OF_FUNCTION, LABEL_NAMES, LABEL_VALUES, PROFILES };

static int ask_kind(struct kiln_engine *engine, const struct kiln_question *q, enum kind kind,
                    struct kiln_err *err)
{
    static const struct kiln_str names[] = {{"service_name", 12}, {"__profile_type__", 16}};
    struct kiln_timeline_opts series = {.step_ns = 15 * KILN_NS_PER_S};
    struct kiln_found_opts profiles = {.limit = 100};
    struct kiln_timeline *timeline = NULL;
    struct kiln_labels *labels = NULL;
    struct kiln_found *found = NULL;
    int r;

    series.by = names;
    series.n_by = kind == SERIES_BY_SERVICE;
    if (kind <= SERIES_OF_FUNCTION)
        r = engine->ops->timeline(engine, q, &series, &timeline, err);
    else if (kind == PROFILES)
        r = engine->ops->found(engine, q, &profiles, &found, err);
    else
        r = engine->ops->labels(engine, q, names, kind == LABEL_NAMES ? 0 : 2, &labels, err);
    kiln_timeline_free(timeline);
    kiln_labels_free(labels);
    kiln_found_free(found);
    return r;
}

static void ask_others(struct kiln_engine *engine, uint32_t rounds)
{
    static const char *const what[] = {"series, 15 s steps",   "series by service",
                                       "series of a function", "names of labels",
                                       "services and types",   "newest 100 profiles"};
    static const struct kiln_str tenant = {"anonymous", 9}, function = {"runtime.mallocgc", 16};

    for (uint32_t kind = 0; kind < KILN_ARRAY_LEN(what); kind++) {
        struct times t = {0, 1e9, 0, 0};

        for (uint32_t i = 0; i < rounds; i++) {
            struct kiln_leash leash = {0};
            struct kiln_question q = {.tenants = &tenant, .n_tenants = 1, .leash = &leash};
            struct kiln_err err = {0};
            double start = bench_cpu_s(), took;

            if (kind == SERIES_OF_FUNCTION) {
                q.stacks.with = &function;
                q.stacks.n_with = 1;
            }
            bench_must(ask_kind(engine, &q, (enum kind)kind, &err), what[kind], &err);
            took = (bench_cpu_s() - start) * 1e3;
            t.first = i ? t.first : took;
            t.best = took < t.best ? took : t.best;
        }
        printf("%-30s first %7.2f  best %7.2f ms\n", what[kind], t.first, t.best);
    }
}

static void ask_parts(struct kiln_engine *engine, uint32_t rounds, struct kiln_pool *pool)
{
    static const struct {
        const char *what;
        struct kiln_merge_wants wants;
    } parts[] = {
        {"tree of 16,384 and functions", {.nodes_max = 16384, .functions = true}},
        {"total alone", {0}},
        {"functions", {.functions = true}},
        {"tree of 1,024", {.nodes_max = 1024}},
        {"tree of 16,384", {.nodes_max = 16384}},
        {"tree of 1,024 and functions", {.nodes_max = 1024, .functions = true}},
    };
    struct kiln_merged *merged = NULL;
    struct rusage usage;

    for (size_t i = 0; i < KILN_ARRAY_LEN(parts); i++) {
        struct times t = ask(engine, &parts[i].wants, rounds, pool, &merged);

        printf("%-30s first %7.1f  best %7.1f ms  %zu of %zu kB", parts[i].what, t.first, t.best,
               t.took >> 10, t.reserved >> 10);
        if (merged->flame)
            printf("  nodes %u functions %u names %u", merged->flame->n_nodes,
                   merged->flame->n_functions, merged->flame->n_names);
        printf("  total %lld profiles %llu blocks %u\n", (long long)merged->total,
               (unsigned long long)merged->basis.n_profiles, merged->basis.n_blocks);
    }
    kiln_merged_free(merged);
    ask_others(engine, rounds);
    getrusage(RUSAGE_SELF, &usage);
    printf("%-30s %ld MB\n", "largest size of the process", usage.ru_maxrss >> 10);
}

static void ask_store(const char *folder, uint32_t rounds)
{
    struct kiln_pool pool;
    struct kiln_io *io;
    struct kiln_engine *engine;

    kiln_pool_init(&pool, "bench", POOL, NULL);
    engine = open_store(folder, &io, NULL, &pool);
    ask_parts(engine, rounds, &pool);
    printf("%-30s %zu MB\n", "of it what was read of blocks", atomic_load(&pool.peak) >> 20);
    engine->ops->close(engine);
    kiln_io_close(io);
}

/* ---- a store ---- */

static void make(const char *folder, uint32_t n, uint32_t blocks, uint32_t churn, const char *file)
{
    struct kiln_batch *from = bench_load(file);
    struct kiln_err err = {0};
    struct kiln_pool pool;
    struct kiln_io *io;
    struct kiln_engine *engine;

    kiln_pool_init(&pool, "bench", (size_t)3 << 30, NULL);
    engine = open_store(folder, &io, &pool, NULL);
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_batch *batch = make_batch(from, churn, START_NS + i * STEP_NS);

        send(engine, batch);
        kiln_batch_unref(batch);
        if (blocks && (i + 1) * blocks / n != i * blocks / n)
            bench_must(kiln_store_flush(engine, &err), "cut", &err);
    }
    if (blocks == 0)
        ask_parts(engine, 5, &pool);
    engine->ops->close(engine);
    kiln_io_close(io);
    kiln_batch_unref(from);
}

static uint32_t number(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 10);
}

int main(int argc, char **argv)
{
    if (argc == 7 && strcmp(argv[1], "make") == 0)
        make(argv[2], number(argv[3]), number(argv[4]), number(argv[5]), argv[6]);
    else if (argc == 4 && strcmp(argv[1], "ask") == 0)
        ask_store(argv[2], number(argv[3]));
    else
        bench_die(argv[0], "make FOLDER N BLOCKS CHURN FILE, or ask FOLDER ROUNDS");
    return 0;
}

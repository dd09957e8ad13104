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
#include <string.h>
#include <sys/resource.h>

#include "../store.h"
#include "base/clock.h"

#define START_NS UINT64_C(1794729336999895112)
#define STEP_NS  UINT64_C(20000000000)

/* ---- asking ---- */

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
    static const struct kiln_str function = {"runtime.mallocgc", 16};
    struct kiln_str tenant = BENCH_TENANT;

    for (uint32_t kind = 0; kind < KILN_ARRAY_LEN(what); kind++) {
        struct bench_times t = {0};

        for (uint32_t i = 0; i < rounds; i++) {
            struct kiln_leash leash = {0};
            struct kiln_question q = {.tenants = &tenant, .n_tenants = 1, .leash = &leash};
            struct kiln_err err = {0};
            double began = bench_cpu_s();

            if (kind == SERIES_OF_FUNCTION) {
                q.stacks.with = &function;
                q.stacks.n_with = 1;
            }
            bench_must(ask_kind(engine, &q, (enum kind)kind, &err), what[kind], &err);
            bench_time(&t, began);
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
        struct bench_question ask = {.wants = parts[i].wants, .pool = pool, .rounds = rounds};
        struct bench_times t = bench_merge(engine, &ask, &merged);

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

    kiln_pool_init(&pool, "bench", BENCH_POOL, NULL);
    engine = bench_open_store(folder, &io, NULL, &pool);
    ask_parts(engine, rounds, &pool);
    printf("%-30s %zu MB\n", "of it what was read of blocks", atomic_load(&pool.peak) >> 20);
    engine->ops->close(engine);
    kiln_io_close(io);
}

/* ---- a store ---- */

static void make(const char *folder, uint32_t n, uint32_t blocks, uint32_t churn, const char *file)
{
    struct kiln_batch *from = bench_load(file);
    struct bench_profiles like = {
        .from = from, .samples = UINT32_MAX, .churn = churn, .duration_ns = STEP_NS};
    struct kiln_err err = {0};
    struct kiln_pool pool;
    struct kiln_io *io;
    struct kiln_engine *engine;

    kiln_pool_init(&pool, "bench", (size_t)3 << 30, NULL);
    engine = bench_open_store(folder, &io, &pool, NULL);
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_batch *batch = bench_make(&like, START_NS + i * STEP_NS);

        bench_append(engine, batch, START_NS + 7200 * KILN_NS_PER_S);
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

int main(int argc, char **argv)
{
    if (argc == 7 && strcmp(argv[1], "make") == 0)
        make(argv[2], bench_number(argv[3]), bench_number(argv[4]), bench_number(argv[5]), argv[6]);
    else if (argc == 4 && strcmp(argv[1], "ask") == 0)
        ask_store(argv[2], bench_number(argv[3]));
    else
        bench_die(argv[0], "make FOLDER N BLOCKS CHURN FILE, or ask FOLDER ROUNDS");
    return 0;
}

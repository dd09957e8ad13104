/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a question over a month costs beside one over an hour.
 *
 *   bench_rollup make FOLDER MEMORY DAYS PROFILES SAMPLES CHURN FILE
 *        a store of so many days with so many profiles an hour, each of so many samples of FILE's
 *        first type; CHURN percent of their stacks are new.  Merged, with so many MiB.
 *   bench_rollup ask FOLDER ROUNDS
 *        milliseconds of CPU, the first and the best, and what the answer says of itself
 */
#include <string.h>
#include <sys/resource.h>

#include "../store.h"
#include "base/clock.h"
#include "store/rollup.h"

#define HOUR_NS   (3600 * KILN_NS_PER_S)
#define DAY_NS    (24 * HOUR_NS)
#define END_NS    (UINT64_C(20700) * DAY_NS)
#define CUT_HOURS 6u
#define TIMES_MAX 6.0 /* a month beside an hour */

/* ---- making ---- */

struct plan {
    uint32_t memory, days, profiles; /* MiB; profiles an hour */
    struct bench_profiles like;
};

static void make(const char *folder, const struct plan *plan)
{
    uint64_t start_ns = END_NS - plan->days * DAY_NS, n_samples = 0;
    struct kiln_err err = {0};
    struct kiln_pool pool;
    struct kiln_io *io;
    struct kiln_engine *engine;
    struct kiln_engine_stats stats;
    double cpu;

    kiln_pool_init(&pool, "bench", (size_t)plan->memory << 20, NULL);
    engine = bench_open_store(folder, &io, &pool, NULL);
    for (uint32_t hour = 0; hour < 24 * plan->days; hour++) {
        for (uint32_t i = 0; i < plan->profiles; i++) {
            struct kiln_batch *batch = bench_make(
                &plan->like, start_ns + hour * HOUR_NS + i * (HOUR_NS / plan->profiles) + 1000);

            n_samples += batch->n_samples;
            bench_append(engine, batch, END_NS);
            kiln_batch_unref(batch);
        }
        if ((hour + 1) % CUT_HOURS == 0)
            bench_must(kiln_store_flush(engine, &err), "cut", &err);
    }
    cpu = bench_cpu_s();
    bench_must(kiln_store_compact(engine, true, &err), "merge", &err);
    cpu = bench_cpu_s() - cpu;
    engine->ops->stats(engine, BENCH_TENANT, &stats);
    printf("%llu samples in %llu blocks, %.3f bytes each; merging took %.2f us a thousand\n",
           (unsigned long long)n_samples, (unsigned long long)stats.blocks,
           (double)stats.block_bytes / (double)n_samples, cpu * 1e9 / (double)n_samples);
    engine->ops->close(engine);
    kiln_io_close(io);
}

/* ---- asking ---- */

static void say(const char *what, struct bench_times t, const struct kiln_merged *m)
{
    const struct kiln_flame *f = m->flame;

    printf("%-36s first %7.1f  best %7.1f ms  %u of %u blocks rolled", what, t.first, t.best,
           m->basis.n_rolled, m->basis.n_blocks);
    if (f && f->n_nodes)
        printf(", %u nodes, off by %.4f %%", f->n_nodes,
               100.0 * (double)f->error_bound / (double)f->total);
    printf("\n");
}

static void say_ratio(double ratio, bool is_month)
{
    printf("%-36s %.1f times an hour's", "", ratio);
    if (is_month)
        printf("  target %.0f: %s", TIMES_MAX, ratio <= TIMES_MAX ? "met" : "NOT met");
    printf("\n");
}

static void ask_all(const char *folder, uint32_t rounds)
{
    static const struct {
        const char *what;
        struct kiln_merge_wants wants;
    } parts[] = {
        {"tree of 16,384 and functions", {.nodes_max = 16384, .functions = true}},
        {"tree of 16,384", {.nodes_max = 16384}},
        {"functions", {.functions = true}},
    };
    enum { MONTH = 2 }; /* the first such range */
    static const struct {
        const char *what;
        uint64_t from_ns, to_ns; /* before the end */
    } ranges[] = {{"an hour", 6 * HOUR_NS, 5 * HOUR_NS},
                  {"a day", DAY_NS + HOUR_NS / 2, HOUR_NS / 2},
                  {"30 days, whole", 30 * DAY_NS, 0},
                  {"30 days, as they come", 30 * DAY_NS - HOUR_NS / 3, HOUR_NS / 2}};
    struct kiln_merged *merged = NULL;
    struct kiln_engine *engine;
    struct kiln_pool pool;
    struct kiln_io *io;
    struct rusage usage;
    double hour[KILN_ARRAY_LEN(parts)] = {0};

    kiln_pool_init(&pool, "bench", BENCH_POOL, NULL);
    engine = bench_open_store(folder, &io, NULL, &pool);
    for (size_t i = 0; i < KILN_ARRAY_LEN(ranges); i++) {
        for (size_t k = 0; k < KILN_ARRAY_LEN(parts); k++) {
            struct kiln_window w = {END_NS - ranges[i].from_ns, END_NS - ranges[i].to_ns};
            struct bench_question ask = {.wants = parts[k].wants, .window = &w, .rounds = rounds};
            struct bench_times t = bench_merge(engine, &ask, &merged);
            char what[80];

            hour[k] = i ? hour[k] : t.best;
            snprintf(what, sizeof(what), "%s: %s", ranges[i].what, parts[k].what);
            say(what, t, merged);
            if (i)
                say_ratio(t.best / hour[k], i >= MONTH);
        }
    }
    kiln_merged_free(merged);
    getrusage(RUSAGE_SELF, &usage);
    printf("%-36s %ld MB, pool %zu MB\n", "largest size of the process", usage.ru_maxrss >> 10,
           atomic_load(&pool.peak) >> 20);
    engine->ops->close(engine);
    kiln_io_close(io);
}

int main(int argc, char **argv)
{
    if (argc == 9 && strcmp(argv[1], "make") == 0) {
        struct plan plan = {.memory = bench_number(argv[3]),
                            .days = bench_number(argv[4]),
                            .profiles = bench_number(argv[5]),
                            .like = {.from = bench_load(argv[8]),
                                     .samples = bench_number(argv[6]),
                                     .churn = bench_number(argv[7]),
                                     .vary = true}};

        if (getenv("BENCH_NO_ROLLUPS"))
            kiln_rollup_limits.rows_min = UINT64_MAX;
        plan.like.duration_ns = HOUR_NS / plan.profiles;
        make(argv[2], &plan);
    } else if (argc == 4 && strcmp(argv[1], "ask") == 0) {
        ask_all(argv[2], bench_number(argv[3]));
    } else {
        bench_die(argv[0],
                  "make FOLDER MEMORY DAYS PROFILES SAMPLES CHURN FILE, or ask FOLDER ROUNDS");
    }
    return 0;
}

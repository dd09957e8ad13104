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
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../batch.h"
#include "base/clock.h"
#include "core/remap.h"
#include "store/rollup.h"
#include "store/store.h"

#define HOUR_NS   (3600 * KILN_NS_PER_S)
#define DAY_NS    (24 * HOUR_NS)
#define END_NS    (UINT64_C(20700) * DAY_NS)
#define POOL      ((size_t)114 << 20) /* the share of questions, where the process has 256 MiB */
#define CUT_HOURS 6u

static uint64_t dice = 1;

static uint64_t roll(uint64_t sides)
{
    uint64_t z = dice += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % sides;
}

/* ---- making ---- */

struct plan {
    uint32_t memory, days, profiles, samples, churn;
    const struct kiln_batch *from;
};

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

static void add_samples(const struct plan *plan, struct kiln_builder *b, struct kiln_remap *remap,
                        uint32_t profile)
{
    const struct kiln_batch *from = plan->from;
    uint32_t all = from->profiles[0].n_samples;
    uint32_t step = plan->samples < all ? all / plan->samples : 1;

    for (uint32_t i = 0; i < all; i += step) {
        const struct kiln_sample *x = &from->samples[from->profiles[0].first_sample + i];
        uint32_t stack = kiln_remap_stack(remap, x->stack);

        if (roll(100) < plan->churn)
            stack = graft(b, stack,
                          kiln_remap_stack(remap, from->samples[roll(all) / step * step].stack));
        kiln_builder_add_value(b, profile, stack, 0,
                               kiln_sample_total(from, x) * (int64_t)(1 + roll(3)));
    }
}

static struct kiln_batch *make_batch(const struct plan *plan, uint64_t time_ns)
{
    struct kiln_err err = {0};
    struct kiln_builder *b;
    struct kiln_remap *remap;
    struct kiln_batch *batch;
    struct kiln_profile head;
    uint32_t name, service;

    bench_must(kiln_builder_new(NULL, &b), "builder", &err);
    bench_must(kiln_remap_new(b, plan->from, NULL, &remap), "remap", &err);
    name = kiln_builder_text_attr(b, KILN_STR("service.name"), KILN_STR("large"));
    service = kiln_builder_set(b, &name, 1, NULL);
    kiln_builder_add_resource(b, &(struct kiln_resource){.attrs = service});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    head = kiln_remap_profile(remap, 0);
    head.time_ns = time_ns;
    head.duration_ns = HOUR_NS / plan->profiles;
    add_samples(plan, b, remap, kiln_builder_add_profile(b, &head));
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
                                 .received_ns = END_NS,
                                 .done = appended,
                                 .context = (void *)&code};

    engine->ops->append(engine, &append);
    while (atomic_load(&code) == 1)
        usleep(20);
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
    engine = open_store(folder, &io, &pool, NULL);
    for (uint32_t hour = 0; hour < 24 * plan->days; hour++) {
        for (uint32_t i = 0; i < plan->profiles; i++) {
            struct kiln_batch *batch =
                make_batch(plan, start_ns + hour * HOUR_NS + i * (HOUR_NS / plan->profiles) + 1000);

            n_samples += batch->n_samples;
            send(engine, batch);
            kiln_batch_unref(batch);
        }
        if ((hour + 1) % CUT_HOURS == 0)
            bench_must(kiln_store_flush(engine, &err), "cut", &err);
    }
    cpu = bench_cpu_s();
    bench_must(kiln_store_compact(engine, true, &err), "merge", &err);
    cpu = bench_cpu_s() - cpu;
    engine->ops->stats(engine, KILN_STR("anonymous"), &stats);
    printf("%llu samples in %llu blocks, %.3f bytes each; merging took %.2f us a thousand\n",
           (unsigned long long)n_samples, (unsigned long long)stats.blocks,
           (double)stats.block_bytes / (double)n_samples, cpu * 1e9 / (double)n_samples);
    engine->ops->close(engine);
    kiln_io_close(io);
}

/* ---- asking ---- */

struct times {
    double first, best;
};

static struct times ask(struct kiln_engine *engine, const struct kiln_merge_wants *wants,
                        struct kiln_window window, uint32_t rounds, struct kiln_merged **ret_merged)
{
    struct times times = {0, 1e9};

    for (uint32_t i = 0; i < rounds; i++) {
        static const struct kiln_str tenant = {"anonymous", 9};
        struct kiln_leash leash = {0};
        struct kiln_question q = {.tenants = &tenant,
                                  .n_tenants = 1,
                                  .windows = &window,
                                  .n_windows = 1,
                                  .leash = &leash};
        struct kiln_err err = {0};
        double start = bench_cpu_s(), took;

        kiln_merged_free(*ret_merged);
        *ret_merged = NULL;
        bench_must(engine->ops->merge(engine, &q, wants, ret_merged, &err), "merge", &err);
        took = (bench_cpu_s() - start) * 1e3;
        times.first = i ? times.first : took;
        times.best = took < times.best ? took : times.best;
    }
    return times;
}

static void say(const char *what, struct times t, const struct kiln_merged *m)
{
    const struct kiln_flame *f = m->flame;

    printf("%-36s first %7.1f  best %7.1f ms  %u of %u blocks rolled", what, t.first, t.best,
           m->basis.n_rolled, m->basis.n_blocks);
    if (f && f->n_nodes)
        printf(", %u nodes, off by %.4f %%", f->n_nodes,
               100.0 * (double)f->error_bound / (double)f->total);
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
    static const struct {
        const char *what;
        uint64_t from_ns, to_ns; /* before the end */
    } ranges[] = {{"an hour", 30 * HOUR_NS, 29 * HOUR_NS},
                  {"a day", DAY_NS + HOUR_NS / 2, HOUR_NS / 2},
                  {"30 days, whole", 30 * DAY_NS, 0},
                  {"30 days, as they come", 30 * DAY_NS - HOUR_NS / 3, HOUR_NS / 2}};
    struct kiln_merged *merged = NULL;
    struct kiln_engine *engine;
    struct kiln_pool pool;
    struct kiln_io *io;
    struct rusage usage;
    double hour[KILN_ARRAY_LEN(parts)] = {0};

    kiln_pool_init(&pool, "bench", POOL, NULL);
    engine = open_store(folder, &io, NULL, &pool);
    for (size_t i = 0; i < KILN_ARRAY_LEN(ranges); i++) {
        for (size_t k = 0; k < KILN_ARRAY_LEN(parts); k++) {
            struct kiln_window w = {END_NS - ranges[i].from_ns, END_NS - ranges[i].to_ns};
            struct times t = ask(engine, &parts[k].wants, w, rounds, &merged);
            char what[80];

            hour[k] = i ? hour[k] : t.best;
            snprintf(what, sizeof(what), "%s: %s", ranges[i].what, parts[k].what);
            say(what, t, merged);
            if (i)
                printf("%-36s %.1f times an hour's\n", "", t.best / hour[k]);
        }
    }
    kiln_merged_free(merged);
    getrusage(RUSAGE_SELF, &usage);
    printf("%-36s %ld MB, pool %zu MB\n", "largest size of the process", usage.ru_maxrss >> 10,
           atomic_load(&pool.peak) >> 20);
    engine->ops->close(engine);
    kiln_io_close(io);
}

static uint32_t number(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 10);
}

int main(int argc, char **argv)
{
    if (argc == 9 && strcmp(argv[1], "make") == 0) {
        struct plan plan = {number(argv[3]), number(argv[4]), number(argv[5]),
                            number(argv[6]), number(argv[7]), bench_load(argv[8])};

        if (getenv("BENCH_NO_ROLLUPS"))
            kiln_rollup_limits.rows_min = UINT64_MAX;
        make(argv[2], &plan);
    } else if (argc == 4 && strcmp(argv[1], "ask") == 0) {
        ask_all(argv[2], number(argv[3]));
    } else {
        bench_die(argv[0],
                  "make FOLDER MEMORY DAYS PROFILES SAMPLES CHURN FILE, or ask FOLDER ROUNDS");
    }
    return 0;
}

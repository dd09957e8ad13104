/* SPDX-License-Identifier: Apache-2.0 */
/* Answers where something is in short supply: memory, time, bytes, patience, whole blocks. */
#include <errno.h>

#include "answers.h"
#include "base/clock.h"
#include "base/mem.h"
#include "drawn.h"
#include "store/digest.h"
#include "store/store_int.h"
#include "store/wide.h"
#include "store_kit.h"
#include "test.h"

#define NOW 1000000
#define CPU .type = "cpu", .unit = "nanoseconds", .period_type = "cpu", .period_unit = "nanoseconds"

enum kind { MERGE, TIMELINE, FOUND, SPANS, LABELS, NAMES, N_KINDS };

/* What an answer says of what it rests on. */
struct outcome {
    int r;
    int64_t total;
    uint32_t n_damaged;
    struct kiln_err err;
};

static void ask_merge(struct kiln_engine *engine, const struct kiln_question *q,
                      struct outcome *ret)
{
    struct kiln_merge_wants wants = {.nodes_max = 10, .functions = true, .profile = true};
    struct kiln_merged *merged = NULL;

    ret->r = engine->ops->merge(engine, q, &wants, &merged, &ret->err);
    if (ret->r == 0) {
        ret->total = merged->total;
        ret->n_damaged = merged->basis.n_damaged;
    }
    kiln_merged_free(merged);
}

static void ask_timeline(struct kiln_engine *engine, const struct kiln_question *q,
                         struct outcome *ret)
{
    const struct kiln_str by = KILN_STR("color");
    struct kiln_timeline_opts opts = {.step_ns = 10, .by = &by, .n_by = 1, .exemplars = true};
    struct kiln_timeline *timeline = NULL;

    ret->r = engine->ops->timeline(engine, q, &opts, &timeline, &ret->err);
    for (uint32_t i = 0; ret->r == 0 && i < timeline->n_series; i++)
        ret->total += (int64_t)timeline->series[i].sum;
    if (ret->r == 0)
        ret->n_damaged = timeline->basis.n_damaged;
    kiln_timeline_free(timeline);
}

static void ask_found(struct kiln_engine *engine, const struct kiln_question *q, bool spans,
                      struct outcome *ret)
{
    struct kiln_found_opts opts = {.spans = spans};
    struct kiln_found *found = NULL;

    ret->r = engine->ops->found(engine, q, &opts, &found, &ret->err);
    for (uint32_t i = 0; ret->r == 0 && i < found->n_rows; i++)
        ret->total += found->rows[i].value;
    if (ret->r == 0)
        ret->n_damaged = found->basis.n_damaged;
    kiln_found_free(found);
}

static void ask_labels(struct kiln_engine *engine, const struct kiln_question *q, uint32_t n,
                       struct outcome *ret)
{
    const struct kiln_str name = KILN_STR("color");
    struct kiln_labels *labels = NULL;

    ret->r = engine->ops->labels(engine, q, &name, n, &labels, &ret->err);
    if (ret->r == 0)
        ret->total = labels->n_rows;
    kiln_labels_free(labels);
}

static struct outcome ask(struct kiln_engine *engine, const struct kiln_question *q, enum kind kind)
{
    struct outcome o = {0};

    switch (kind) {
    case MERGE:
        ask_merge(engine, q, &o);
        break;
    case TIMELINE:
        ask_timeline(engine, q, &o);
        break;
    case FOUND:
    case SPANS:
        ask_found(engine, q, kind == SPANS, &o);
        break;
    default:
        ask_labels(engine, q, kind == LABELS, &o);
        break;
    }
    return o;
}

static void put(struct store_kit *kit, const char *stacks, uint64_t time_ns)
{
    const struct kiln_drawn drawn = {CPU, .stacks = stacks, .time_ns = time_ns,
                                     .resource = "service.name=shop", .id = 7};

    kit_put(kit, kiln_test_batch(&drawn, 1));
}

/* Two blocks, and something in the head. */
static void begin(struct store_kit *kit)
{
    kit_init(kit, NOW);
    put(kit, "main;a 1 color=red ^1.1\nmain;b 2 ^1.2\n", 10);
    CHECK_OK(kiln_store_flush(kit->engine, NULL));
    put(kit, "main;c 4 color=blue ^1.3\nmain;a 8 ^1.1\n", 20);
    CHECK_OK(kiln_store_flush(kit->engine, NULL));
    put(kit, "main;d 16 color=green ^2.1\n", 30);
}

TEST(answers, a_question_that_nobody_waits_for_ends)
{
    const _Atomic bool gone = true;
    struct store_kit kit;

    begin(&kit);
    for (uint32_t kind = 0; kind < N_KINDS; kind++) {
        struct kiln_question q = kiln_test_question();

        q.leash->gone = &gone;
        CHECK_EQ(ask(kit.engine, &q, (enum kind)kind).r, -ECANCELED);
    }
    kit_done(&kit);
}

TEST(answers, a_question_past_its_time_ends)
{
    struct store_kit kit;

    begin(&kit);
    for (uint32_t kind = 0; kind < N_KINDS; kind++) {
        struct kiln_question q = kiln_test_question();

        q.leash->deadline_mono_ns = 1;
        CHECK_EQ(ask(kit.engine, &q, (enum kind)kind).r, -ETIMEDOUT);
    }
    kit_done(&kit);
}

TEST(answers, a_question_that_would_read_too_much_is_refused)
{
    struct store_kit kit;

    begin(&kit);
    for (uint32_t kind = 0; kind < N_KINDS; kind++) {
        struct kiln_question q = kiln_test_question();

        kit_reopen(&kit); /* nothing is cached */
        q.leash->bytes_max = 8;
        CHECK_EQ(ask(kit.engine, &q, (enum kind)kind).r, KILN_E_LIMIT);
    }
    kit_done(&kit);
}

TEST(answers, a_question_that_needs_too_much_memory_is_told_so)
{
    struct store_kit kit;

    begin(&kit);
    for (uint32_t kind = 0; kind < N_KINDS; kind++) {
        struct kiln_question q = kiln_test_question();
        struct outcome o;

        q.leash->memory_max = 1000;
        o = ask(kit.engine, &q, (enum kind)kind);
        CHECK_EQ(o.r, KILN_E_LIMIT);
        CHECK(strstr(o.err.text, "memory"));
        CHECK_EQ(q.leash->memory, 0);
    }
    kit_done(&kit);
}

TEST(answers, all_memory_of_a_question_is_given_back)
{
    struct store_kit kit;

    begin(&kit);
    for (uint32_t kind = 0; kind < N_KINDS; kind++) {
        struct kiln_question q = kiln_test_question();

        CHECK_OK(ask(kit.engine, &q, (enum kind)kind).r);
        CHECK_EQ(q.leash->memory, 0);
        CHECK(q.leash->memory_peak > 0);
    }
    kit_done(&kit);
}

/* Others have all memory of queries until the query waits for some. */
struct short_pool {
    struct kiln_pool pool;
    struct kiln_engine *engine;
    size_t held, head_bytes;
};

static void write_heads_and_give(void *context, size_t bytes)
{
    struct short_pool *others = context;

    (void)bytes;
    CHECK_OK(kiln_store_flush(others->engine, NULL));
    others->head_bytes = atomic_load(&kiln_store_of(others->engine)->head_bytes);
    kiln_pool_give(&others->pool, others->held);
    others->held = 0;
}

TEST(answers, a_query_that_waits_for_memory_holds_none_of_the_store)
{
    for (uint32_t kind = 0; kind < N_KINDS; kind++) {
        struct kiln_question q = kiln_test_question();
        struct short_pool others = {.held = 64 << 20};
        struct store_kit kit;
        struct outcome o;

        begin(&kit);
        others.engine = kit.engine;
        kiln_pool_init(&others.pool, "queries", others.held, NULL);
        CHECK_OK(kiln_pool_take(&others.pool, others.held));
        kiln_pool_on_short(&others.pool, write_heads_and_give, &others);
        q.leash->pool = &others.pool;
        o = ask(kit.engine, &q, (enum kind)kind);
        CHECK_OK(o.r);
        CHECK_EQ(others.held, 0);
        CHECK_EQ(others.head_bytes, atomic_load(&kiln_store_of(kit.engine)->head_bytes));
        q.leash->pool = NULL;
        CHECK_EQ(o.total, ask(kit.engine, &q, (enum kind)kind).total);
        kit_done(&kit);
    }
}

TEST(answers, labels_of_samples_do_not_read_months_and_say_so)
{
    const struct kiln_str names[] = {KILN_STR("service_name"), KILN_STR("color")};
    const uint64_t usual = kiln_digest_pairs_bytes;
    struct kiln_question q = kiln_test_question();
    struct kiln_labels *labels = NULL;
    struct store_kit kit;

    begin(&kit);
    kiln_digest_pairs_bytes = 0;
    CHECK_TEXT(kiln_test_labels(kit.engine, &q, names, 1), "shop\n");
    CHECK_TEXT(kiln_test_labels(kit.engine, &q, names + 1, 1), "green\n"); /* of the head */
    CHECK_OK(kit.engine->ops->labels(kit.engine, &q, names, 2, &labels, NULL));
    CHECK(labels->truncated);
    kiln_labels_free(labels);
    kiln_digest_pairs_bytes = usual;
    CHECK_OK(kit.engine->ops->labels(kit.engine, &q, names, 2, &labels, NULL));
    CHECK(!labels->truncated);
    CHECK_EQ(labels->n_rows, 4);
    kiln_labels_free(labels);
    kiln_digest_pairs_bytes = 0; /* what is remembered needs no reading */
    CHECK_TEXT(kiln_test_labels(kit.engine, &q, names + 1, 1), "\nblue\ngreen\nred\n");
    kiln_digest_pairs_bytes = usual;
    kit_done(&kit);
}

/* ---- many services ---- */

#define SERVICES  10000u
#define AT_ONCE   100u
#define MEMORY    ((size_t)12 << 20) /* not enough for all services at once */
#define ONE_VALUE 7

/* A block of services, each with functions of its own below one that all have. */
static void put_services(struct store_kit *kit)
{
    static char resources[AT_ONCE][48], stacks[AT_ONCE][128];
    struct kiln_drawn drawn[AT_ONCE];

    for (uint32_t i = 0; i < SERVICES; i++) {
        uint32_t k = i % AT_ONCE;

        snprintf(resources[k], sizeof(resources[k]), "service.name=s%u", i);
        snprintf(stacks[k], sizeof(stacks[k]), "main;a%u;b%u %u\nmain;c%u %u\nmain;all 1\n", i, i,
                 ONE_VALUE, i, 1 + i % 5);
        drawn[k] = (struct kiln_drawn){CPU, .stacks = stacks[k], .time_ns = 10,
                                       .resource = resources[k], .id = 7};
        if (k + 1 == AT_ONCE)
            kit_put(kit, kiln_test_batch(drawn, AT_ONCE));
    }
    CHECK_OK(kiln_store_flush(kit->engine, NULL));
}

static struct kiln_merged *ask_wide(struct store_kit *kit, uint64_t *ret_read)
{
    const struct kiln_merge_wants wants = {.nodes_max = 50, .functions = true};
    struct kiln_question q = kiln_test_question();
    struct kiln_merged *merged = NULL;
    struct kiln_err err = {0};

    q.leash->memory_max = MEMORY;
    if (kit->engine->ops->merge(kit->engine, &q, &wants, &merged, &err) < 0)
        fail_msg("no answer: %s", err.text);
    CHECK(q.leash->memory_peak <= MEMORY);
    CHECK_EQ(q.leash->memory, 0);
    *ret_read = q.leash->bytes_read;
    return merged;
}

static int64_t total_of(const struct kiln_flame *flame, const char *name)
{
    for (uint32_t i = 0; i < flame->n_functions; i++) {
        if (kiln_str_eq(flame->names[flame->functions[i].name].name, kiln_str_of(name)))
            return flame->functions[i].total;
    }
    return 0;
}

TEST(answers, services_that_do_not_fit_at_once_are_summarized_and_the_summary_is_kept)
{
    const struct kiln_wide_limits usual = kiln_wide_limits;
    struct kiln_merged *merged;
    struct store_kit kit;
    uint64_t read;

    kit_init(&kit, NOW);
    put_services(&kit);
    kiln_wide_limits.nodes_max = 500;
    for (uint32_t round = 0; round < 2; round++) {
        merged = ask_wide(&kit, &read);
        CHECK_EQ(read > 0, round == 0); /* the second one reads no row */
        CHECK_EQ(merged->total, SERVICES * (ONE_VALUE + 3 + 1));
        CHECK_EQ(merged->flame->total, merged->total);
        CHECK_EQ(merged->basis.n_profiles, SERVICES);
        CHECK(merged->flame->error_bound >= ONE_VALUE);
        CHECK(merged->flame->error_bound < 100 * ONE_VALUE);
        CHECK_EQ(merged->flame->functions_bound, 0);
        CHECK_EQ(total_of(merged->flame, "main"), merged->total);
        CHECK_EQ(total_of(merged->flame, "all"), SERVICES);
        CHECK_EQ(total_of(merged->flame, "b9999"), ONE_VALUE);
        kiln_merged_free(merged);
    }
    kiln_wide_limits = usual;
    kit_done(&kit);
}

TEST(answers, functions_beyond_the_most_of_a_summary_are_within_their_bound)
{
    const struct kiln_wide_limits usual = kiln_wide_limits;
    struct kiln_merged *merged;
    struct store_kit kit;
    uint64_t read;

    kit_init(&kit, NOW);
    put_services(&kit);
    kiln_wide_limits.functions_max = 100;
    merged = ask_wide(&kit, &read);
    CHECK(merged->flame->n_functions >= 100);
    CHECK(merged->flame->functions_bound >= ONE_VALUE);
    CHECK_EQ(total_of(merged->flame, "main"), merged->total);
    CHECK(total_of(merged->flame, "all") <= SERVICES);
    CHECK(total_of(merged->flame, "all") + merged->flame->functions_bound >= SERVICES);
    kiln_merged_free(merged);
    kiln_wide_limits = usual;
    kit_done(&kit);
}

/* ---- damage ---- */

static int note_first(void *context, const char *name)
{
    char *path = context;

    if (!path[0] && strstr(name, ".kb"))
        snprintf(path, 128, "blocks/anonymous/%s", name);
    return 0;
}

static void damage_first(struct store_kit *kit)
{
    char path[128] = "";
    uint64_t size;
    int fd;

    CHECK_OK(kit->io->list(kit->io, "blocks/anonymous", note_first, path));
    fd = kit->io->open(kit->io, path, 0);
    CHECK_OK(kit->io->size(kit->io, fd, &size));
    CHECK_OK(kit->io->close(kit->io, fd));
    for (uint64_t i = 16; i < size / 2; i++)
        kiln_sim_flip(kit->io, path, i, 2);
}

TEST(answers, a_damaged_block_is_left_out_of_the_answer_and_counted)
{
    /* What the second block and the head have; names of labels are those there are. */
    static const int64_t left[N_KINDS] = {
        [MERGE] = 28, [TIMELINE] = 28, [FOUND] = 28, [SPANS] = 28, [LABELS] = 3};

    for (uint32_t kind = 0; kind < NAMES; kind++) {
        struct kiln_question q = kiln_test_question();
        struct store_kit kit;
        struct outcome o;

        begin(&kit);
        damage_first(&kit);
        o = ask(kit.engine, &q, (enum kind)kind);
        CHECK_OK(o.r);
        CHECK_EQ(o.total, left[kind]);
        CHECK_EQ(o.n_damaged, kind < LABELS);
        kit_done(&kit);
    }
}

/* ---- no memory ---- */

/* Fails the n-th allocation of a question to a store that has nothing cached; false if there are
 * not so many. */
static bool starve(struct store_kit *kit, enum kind kind, uint64_t n, int64_t expected)
{
    struct kiln_question q = kiln_test_question();
    struct outcome o;
    bool failed;

    kit_reopen(kit);
    kiln_mem_fail_at(n);
    o = ask(kit->engine, &q, kind);
    failed = kiln_mem_failed();
    kiln_mem_fail_at(0);
    CHECK_EQ(q.leash->memory, 0);
    if (o.r == 0) /* a cache may do without */
        CHECK_EQ(o.total, expected);
    else
        CHECK(o.r == -ENOMEM || o.r == KILN_E_LIMIT);
    return failed;
}

TEST(answers, lack_of_memory_is_an_error_and_leaves_nothing_behind)
{
    for (uint32_t kind = 0; kind < N_KINDS; kind++) {
        struct kiln_question q = kiln_test_question();
        int64_t live = kiln_mem_live(), expected;
        struct store_kit kit;

        begin(&kit);
        expected = ask(kit.engine, &q, (enum kind)kind).total;
        for (uint64_t n = 1; starve(&kit, (enum kind)kind, n, expected); n += 1 + n / 64) {
        }
        kit_done(&kit);
        CHECK_EQ(kiln_mem_live(), live);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Samples one by one, as a store gives them: half of them from a block. */
#include <stdio.h>

#include "answers.h"
#include "core/timed.h"
#include "drawn.h"
#include "store_kit.h"
#include "test.h"

#define NOW    1000000
#define CPU_ID "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define CPU    .type = "cpu", .unit = "nanoseconds", .period_type = "cpu", .period_unit = "nanoseconds"
#define SHOP   .resource = "service.name=shop,process.pid=1"
#define CART   .resource = "service.name=cart,process.pid=2"

static void begin(struct store_kit *kit, const struct kiln_drawn *profiles, uint32_t n)
{
    kit_init(kit, NOW);
    for (uint32_t i = 0; i < n; i++) {
        kit_put(kit, kiln_test_batch(&profiles[i], 1));
        if (i == (n - 1) / 2)
            CHECK_OK(kiln_store_flush(kit->engine, NULL));
    }
}

static struct kiln_question question(void)
{
    struct kiln_question q = kiln_test_question();

    q.type = KILN_STR(CPU_ID);
    return q;
}

static struct kiln_moments *ask(struct store_kit *kit, const struct kiln_question *q,
                                uint32_t limit)
{
    const struct kiln_moments_opts opts = {limit};
    struct kiln_moments *moments;

    CHECK_OK(kit->engine->ops->moments(kit->engine, q, &opts, &moments, NULL));
    return moments;
}

static void add_path(const struct kiln_timed *timed, uint32_t node, struct kiln_buf *out)
{
    if (node == 0)
        return;
    add_path(timed, timed->nodes[node].parent, out);
    kiln_buf_printf(out, ";%.*s", KILN_STR_ARG(timed->names[timed->nodes[node].name].name));
}

/* A line for each: "time;main;parse value [thread id name]"; threads count from 0. */
static const char *text_of(struct kiln_moments *moments)
{
    static struct kiln_buf out;
    struct kiln_timed *timed;

    kiln_buf_done(&out);
    kiln_buf_init(&out, 1 << 20);
    CHECK_OK(kiln_timed_new(moments->batch, &(struct kiln_timed_opts){0}, &timed, NULL));
    for (uint32_t i = 0; i < timed->n_rows; i++) {
        const struct kiln_timed_row *row = &timed->rows[i];

        kiln_buf_printf(&out, "%llu", (unsigned long long)row->time_ns);
        add_path(timed, row->node, &out);
        kiln_buf_printf(&out, " %lld [%u %.*s %.*s]\n", (long long)row->value, row->thread,
                        KILN_STR_ARG(timed->threads[row->thread].id),
                        KILN_STR_ARG(timed->threads[row->thread].name));
    }
    kiln_buf_printf(&out, "%llu %llu", (unsigned long long)moments->n_all,
                    (unsigned long long)moments->n_timed);
    kiln_buf_putc(&out, '\0');
    CHECK_OK(out.error);
    kiln_timed_free(timed);
    kiln_moments_free(moments);
    return out.ptr;
}

TEST(moments, samples_come_with_their_times_threads_and_stacks)
{
    const struct kiln_drawn profiles[] = {
        {.stacks = "main;parse 5@300 6@100 thread.id=7,thread.name=io\n",
         .time_ns = 100,
         CPU,
         SHOP},
        {.stacks = "main;read 4@200 thread.id=7\nmain 9\n", .time_ns = 150, CPU, SHOP},
        {.stacks = "main;parse 1@250 thread.id=7\n", .time_ns = 200, CPU, CART},
    };
    struct kiln_question q = question();
    struct store_kit kit;

    begin(&kit, profiles, 3);
    CHECK_TEXT(text_of(ask(&kit, &q, 0)),
               "100;main;parse 6 [0 7 io]\n200;main;read 4 [1 7 ]\n250;main;parse 1 [2 7 ]\n"
               "300;main;parse 5 [0 7 io]\n5 4");
    kit_done(&kit);
}

TEST(moments, a_question_chooses_among_them)
{
    const struct kiln_drawn profiles[] = {
        {.stacks = "main;parse 5@300 6@100\nmain;read 3@150\n", .time_ns = 100, CPU, SHOP},
        {.stacks = "main;read 4@200\n", .time_ns = 150, CPU, CART},
    };
    const struct kiln_window window = {150, 300};
    const struct kiln_str read = KILN_STR("read");
    struct kiln_question q = question();
    struct store_kit kit;

    begin(&kit, profiles, 2);
    q.windows = &window;
    q.n_windows = 1;
    CHECK_TEXT(text_of(ask(&kit, &q, 0)), "150;main;read 3 [0  ]\n200;main;read 4 [1  ]\n2 2");
    q.n_windows = 0;
    q.stacks.without = &read;
    q.stacks.n_without = 1;
    CHECK_TEXT(text_of(ask(&kit, &q, 0)), "100;main;parse 6 [0  ]\n300;main;parse 5 [0  ]\n2 2");
    q.type = KILN_STR("memory:inuse_space:bytes:space:bytes");
    CHECK_TEXT(text_of(ask(&kit, &q, 0)), "0 0");
    kit_done(&kit);
}

static void draw_many(struct kiln_buf *out, uint32_t from, uint32_t n)
{
    kiln_buf_init(out, 1 << 20);
    for (uint32_t i = 0; i < n; i++)
        kiln_buf_printf(out, "main;f%u 1@%u\n", i % 7, from + i);
    kiln_buf_putc(out, '\0');
    CHECK_OK(out->error);
}

TEST(moments, of_too_many_each_part_of_the_time_keeps_about_its_share)
{
    struct kiln_buf first, second;
    struct kiln_drawn profiles[2] = {{.time_ns = 1000, CPU, SHOP}, {.time_ns = 5000, CPU, SHOP}};
    struct kiln_question q = question();
    struct kiln_moments *moments;
    struct store_kit kit;
    uint32_t early = 0;

    draw_many(&first, 1000, 3000);
    draw_many(&second, 5000, 1000);
    profiles[0].stacks = first.ptr;
    profiles[1].stacks = second.ptr;
    begin(&kit, profiles, 2);
    moments = ask(&kit, &q, 400);
    CHECK_EQ(moments->n_all, 4000);
    CHECK_EQ(moments->n_timed, 4000);
    CHECK_EQ(moments->batch->n_samples, 400);
    for (uint32_t i = 0; i < 400; i++)
        early += kiln_sample_times(moments->batch, &moments->batch->samples[i])[0] < 5000;
    CHECK(early > 250 && early < 350); /* 300 and some chance, which is always the same */
    kiln_moments_free(moments);
    kiln_buf_done(&first);
    kiln_buf_done(&second);
    kit_done(&kit);
}

TEST(moments, the_memory_of_a_question_is_its_limit)
{
    const struct kiln_drawn profiles[] = {{.stacks = "main 5@300\n", .time_ns = 1, CPU, SHOP}};
    const struct kiln_moments_opts opts = {0};
    struct kiln_question q = question();
    struct kiln_moments *moments;
    struct kiln_leash leash = {.memory_max = 64};
    struct store_kit kit;

    begin(&kit, profiles, 1);
    q.leash = &leash;
    CHECK_EQ(kit.engine->ops->moments(kit.engine, &q, &opts, &moments, NULL), KILN_E_LIMIT);
    CHECK_EQ(leash.memory, 0);
    kit_done(&kit);
}

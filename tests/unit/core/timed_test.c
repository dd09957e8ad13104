/* SPDX-License-Identifier: Apache-2.0 */
#include "core/timed.h"

#include <stdio.h>
#include <stdlib.h>

#include "drawn.h"
#include "test.h"

/* The path to a node: "main;parse". */
static void add_path(const struct kiln_timed *timed, uint32_t node, struct kiln_buf *out)
{
    if (node == 0)
        return;
    CHECK(timed->nodes[node].parent < node);
    add_path(timed, timed->nodes[node].parent, out);
    kiln_buf_printf(out, "%s%.*s", timed->nodes[node].parent ? ";" : "",
                    KILN_STR_ARG(timed->names[timed->nodes[node].name].name));
}

/* A line for each row: "100 main;parse 5 [id name]"; then how many there are, and with times. */
static const char *text_of(struct kiln_batch *batch, uint32_t limit)
{
    static struct kiln_buf out;
    const struct kiln_timed_opts opts = {.limit = limit};
    struct kiln_timed *timed;

    kiln_buf_done(&out);
    kiln_buf_init(&out, 1 << 20);
    CHECK_OK(kiln_timed_new(batch, &opts, &timed, NULL));
    for (uint32_t i = 0; i < timed->n_rows; i++) {
        const struct kiln_timed_row *row = &timed->rows[i];
        const struct kiln_timed_thread *thread = &timed->threads[row->thread];

        kiln_buf_printf(&out, "%llu ", (unsigned long long)row->time_ns);
        add_path(timed, row->node, &out);
        kiln_buf_printf(&out, " %lld [%.*s %.*s]\n", (long long)row->value,
                        KILN_STR_ARG(thread->id), KILN_STR_ARG(thread->name));
    }
    kiln_buf_printf(&out, "%llu %llu", (unsigned long long)timed->n_all,
                    (unsigned long long)timed->n_timed);
    kiln_buf_putc(&out, '\0');
    CHECK_OK(out.error);
    kiln_timed_free(timed);
    kiln_batch_unref(batch);
    return out.ptr;
}

TEST(timed, samples_stand_in_the_order_of_their_times)
{
    CHECK_TEXT(text_of(kiln_test_stacks("main;parse 5@300 6@100\nmain @200\n"), 0),
               "100 main;parse 6 [ ]\n200 main 1 [ ]\n300 main;parse 5 [ ]\n3 3");
}

TEST(timed, wall_time_is_made_of_times_on_processors_and_off_them)
{
    const struct kiln_drawn drawn[] = {
        {.stacks = "main @100\n",
         .type = "samples",
         .unit = "count",
         .period_type = "cpu",
         .period_unit = "nanoseconds",
         .period = 10},
        {.stacks = "main;read 500@50\n", .type = "off_cpu", .unit = "nanoseconds"},
    };
    struct kiln_batch *batch = kiln_test_batch(drawn, 2);
    const struct kiln_timed_opts opts = {.type = &kiln_type_wall.type};
    struct kiln_timed *timed;

    CHECK_OK(kiln_timed_new(batch, &opts, &timed, NULL));
    CHECK_EQ(timed->n_rows, 2);
    CHECK_EQ(timed->rows[0].time_ns, 50);
    CHECK_EQ(timed->rows[0].value, 500);
    CHECK_EQ(timed->rows[1].value, 10);
    kiln_timed_free(timed);
    kiln_batch_unref(batch);
}

TEST(timed, samples_without_a_time_are_only_counted)
{
    CHECK_TEXT(text_of(kiln_test_stacks("main 5@300\nmain;a 7\n- 1@100\n"), 0),
               "100  1 [ ]\n300 main 5 [ ]\n3 2");
    CHECK_TEXT(text_of(kiln_test_stacks("main 5\n"), 0), "1 0");
}

TEST(timed, threads_have_an_id_and_a_name_by_any_of_their_keys)
{
    CHECK_TEXT(text_of(kiln_test_stacks("a @1 thread.id=7,thread.name=io\nb @2 tid=8\n"
                                        "c @3 thread=main\nd @4 thread.id=7,thread.name=io\n"),
                       0),
               "1 a 1 [7 io]\n2 b 1 [8 ]\n3 c 1 [ main]\n4 d 1 [7 io]\n4 4");
}

TEST(timed, threads_of_two_processes_are_two)
{
    const struct kiln_drawn drawn[] = {
        {.stacks = "a @1 thread.id=7\n", .resource = "process.pid=1"},
        {.stacks = "a @2 thread.id=7\n", .resource = "process.pid=2"},
    };
    struct kiln_batch *batch = kiln_test_batch(drawn, 2);
    const struct kiln_timed_opts opts = {0};
    struct kiln_timed *timed;

    CHECK_OK(kiln_timed_new(batch, &opts, &timed, NULL));
    CHECK_EQ(timed->n_rows, 2);
    CHECK_EQ(timed->n_threads, 2);
    CHECK_EQ(timed->rows[0].thread, 0);
    CHECK_EQ(timed->rows[1].thread, 1);
    CHECK_EQ(timed->rows[0].node, timed->rows[1].node);
    kiln_timed_free(timed);
    kiln_batch_unref(batch);
}

TEST(timed, where_there_are_too_many_every_part_of_the_time_keeps_its_share)
{
    struct kiln_buf stacks;
    const char *text;
    uint32_t early = 0, late = 0;

    kiln_buf_init(&stacks, 1 << 20);
    for (int i = 0; i < 300; i++)
        kiln_buf_printf(&stacks, "main;early @%d\n", 1000 + i);
    for (int i = 0; i < 700; i++)
        kiln_buf_printf(&stacks, "main;late @%d\n", 2000 + i);
    kiln_buf_putc(&stacks, '\0');
    text = text_of(kiln_test_stacks(stacks.ptr), 100);
    for (const char *at = text; (at = strstr(at, "early")) != NULL; at++)
        early++;
    for (const char *at = text; (at = strstr(at, "late")) != NULL; at++)
        late++;
    CHECK_EQ(early, 30);
    CHECK_EQ(late, 70);
    CHECK(strstr(text, "\n1000 1000") != NULL);
    kiln_buf_done(&stacks);
}

TEST(timed, memory_has_a_limit)
{
    struct kiln_batch *batch = kiln_test_stacks("main;a;b @1 @2 @3 @4 @5 @6 @7 @8\n");
    struct kiln_timed_opts opts = {.memory_bytes = 64};
    struct kiln_timed *timed;

    CHECK_EQ(kiln_timed_new(batch, &opts, &timed, NULL), KILN_E_LIMIT);
    kiln_batch_unref(batch);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks are drawn one after the other: "level from-to size", times in hours since some midnight,
 * sizes in MiB; a block was made at the hour its data ends, unless "@hour" says later.  Plans are
 * read back as "numbers of blocks > level".
 */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/plan.h"
#include "test.h"

#define HOUR (3600 * KILN_NS_PER_S)
#define MIB  (UINT64_C(1) << 20)

enum { BLOCKS_MAX = 200 };

struct drawn {
    struct kiln_block_info infos[BLOCKS_MAX];
    const struct kiln_block_info *list[BLOCKS_MAX];
    uint32_t n;
};

static uint64_t hours(double h)
{
    return 1000 * 24 * HOUR + (uint64_t)(h * 3600) * KILN_NS_PER_S;
}

static void add(struct drawn *d, uint32_t level, double from, double to, double mib, double made)
{
    struct kiln_block_info *info = &d->infos[d->n];

    *info = (struct kiln_block_info){
        .level = level,
        .min_ns = hours(from),
        .max_ns = hours(to),
        .made_ns = hours(made),
        .bytes = (uint64_t)(mib * (double)MIB),
        .dict_bytes = (uint64_t)(2 * mib * (double)MIB),
    };
    info->id.bytes[15] = (uint8_t)d->n;
    info->id.bytes[14] = (uint8_t)(d->n >> 8);
    d->list[d->n++] = info;
}

static void draw(struct drawn *d, const char *text)
{
    uint32_t level;
    double from, to, mib;
    int used;

    d->n = 0;
    while (sscanf(text, " %u %lf-%lf %lf%n", &level, &from, &to, &mib, &used) == 4) {
        char *end = (char *)text + used;
        double made = to;

        if (*end == '@')
            made = strtod(end + 1, &end);
        add(d, level, from, to, mib, made);
        text = end;
    }
    CHECK(strspn(text, " \n") == strlen(text));
}

static const char *plan_text(int found, const struct kiln_plan *plan)
{
    static char text[512];
    int len = 0;

    if (found == 0)
        return "nothing";
    for (uint32_t i = 0; i < plan->n; i++)
        len += snprintf(text + len, sizeof(text) - (size_t)len, "%u ", plan->blocks[i]);
    snprintf(text + len, sizeof(text) - (size_t)len, "> %u", plan->level);
    return text;
}

static const char *plan_of(const char *blocks, const struct kiln_plan_opts *opts)
{
    struct kiln_plan plan = {0};
    struct drawn d;
    int found;

    draw(&d, blocks);
    found = kiln_plan_next(d.list, NULL, d.n, opts, &plan);
    CHECK(found >= 0);
    return plan_text(found, &plan);
}

static const char *plan_at(double hour, const char *blocks)
{
    return plan_of(blocks, &(struct kiln_plan_opts){.now_ns = hours(hour)});
}

TEST(plan, fresh_blocks_wait_for_company)
{
    CHECK_TEXT(plan_at(10.5, ""), "nothing");
    CHECK_TEXT(plan_at(10.5, "0 9-10 1"), "nothing");
    CHECK_TEXT(plan_at(10.5, "0 9-10 1  0 10-10.2 1  0 10.2-10.4 1"), "nothing");
    CHECK_TEXT(plan_at(10.5, "0 1-2 1  0 2-3 1  0 3-4 1  0 4-5 1  0 5-6 1  0 6-7 1  0 7-8 1@10"),
               "0 1 2 3 4 5 6 > 1");
}

TEST(plan, thirty_two_fresh_blocks_do_not_wait)
{
    struct kiln_plan_opts opts = {.now_ns = hours(10.1)};
    struct kiln_plan plan;
    struct drawn d = {0};

    for (uint32_t i = 0; i < 31; i++)
        add(&d, 0, 10 + i * 0.001, 10.001 + i * 0.001, 1, 10);
    CHECK_EQ(kiln_plan_next(d.list, NULL, d.n, &opts, &plan), 0);
    add(&d, 0, 9, 10, 1, 10);
    CHECK_EQ(kiln_plan_next(d.list, NULL, d.n, &opts, &plan), 1);
    CHECK_EQ(plan.n, 32);
    CHECK_EQ(plan.blocks[0], 31); /* in the order of data */
    CHECK_EQ(plan.level, 1);
}

TEST(plan, more_than_one_merge_can_take_does_not_wait)
{
    const char *blocks = "0 1-2 9@8.9  0 2-3 9@8.9  0 3-4 9@8.9  0 4-5 9@8.9";

    CHECK_TEXT(
        plan_of(blocks, &(struct kiln_plan_opts){.now_ns = hours(9), .memory_bytes = 72 * MIB}),
        "nothing");
    CHECK_TEXT(
        plan_of(blocks, &(struct kiln_plan_opts){.now_ns = hours(9), .memory_bytes = 71 * MIB}),
        "0 1 2 > 1");
    CHECK_TEXT(plan_of(blocks, &(struct kiln_plan_opts){.now_ns = hours(9), .out_bytes = 35 * MIB}),
               "0 1 2 > 1");
}

TEST(plan, two_fresh_blocks_are_merged_after_an_hour)
{
    CHECK_TEXT(plan_at(10.9, "0 9-10 1  0 10-10.2 1"), "nothing");
    CHECK_TEXT(plan_at(11, "0 9-10 1  0 10-10.2 1"), "0 1 > 1");
    CHECK_TEXT(plan_at(20, "0 9-10 1"), "nothing");
}

TEST(plan, blocks_of_a_day_become_one_when_the_day_is_over)
{
    const char *blocks = "1 1-2 3  1 25-26 3  1 3-4 3  1 5-6 3  1 26-27 3";

    CHECK_TEXT(plan_at(25, blocks), "nothing");
    CHECK_TEXT(plan_at(26, blocks), "0 2 3 > 2");
    CHECK_TEXT(plan_at(60, blocks), "0 2 3 > 2");
    CHECK_TEXT(plan_at(60, "2 1-6 8  1 25-26 3  1 26-27 3"), "1 2 > 2");
}

TEST(plan, eight_blocks_of_a_day_do_not_wait)
{
    CHECK_TEXT(plan_at(10, "1 1-2 3  1 2-3 3  1 3-4 3  1 4-5 3  1 5-6 3  1 6-7 3  1 7-8 3"),
               "nothing");
    CHECK_TEXT(
        plan_at(10, "1 1-2 3  1 2-3 3  1 3-4 3  1 4-5 3  1 5-6 3  1 6-7 3  1 7-8 3  1 8-9 3"),
        "0 1 2 3 4 5 6 7 > 2");
}

TEST(plan, a_lone_fresh_block_joins_its_day)
{
    CHECK_TEXT(plan_at(40, "0 1-2 1  1 2-3 4"), "0 1 > 2");
}

TEST(plan, what_comes_late_joins_its_day_when_it_is_worth_it)
{
    CHECK_TEXT(plan_at(90, "2 0-23 80  1 3-4 5@65"), "nothing");
    CHECK_TEXT(plan_at(90, "2 0-23 80  1 3-4 10@65"), "1 0 > 3");
    CHECK_TEXT(plan_at(66, "2 0-23 80  1 3-4 10@65"), "nothing");
    CHECK_TEXT(plan_at(90, "2 0-23 80  1 27-28 10@65"), "nothing");
}

TEST(plan, a_merge_keeps_its_bound_of_bytes)
{
    const char *blocks = "0 1-2 4  0 2-3 4  0 3-4 4  0 4-5 4";

    CHECK_TEXT(plan_of(blocks, &(struct kiln_plan_opts){.now_ns = hours(9), .out_bytes = 12 * MIB}),
               "0 1 2 > 1");
    CHECK_TEXT(plan_of(blocks, &(struct kiln_plan_opts){.now_ns = hours(9), .out_bytes = 8 * MIB}),
               "nothing");
}

TEST(plan, a_merge_that_would_not_fit_into_memory_is_planned_smaller)
{
    const char *blocks = "0 1-2 9  0 2-3 1  0 3-4 1  0 4-5 1";

    CHECK_TEXT(
        plan_of(blocks, &(struct kiln_plan_opts){.now_ns = hours(9), .memory_bytes = 48 * MIB}),
        "0 1 2 3 > 1");
    CHECK_TEXT(
        plan_of(blocks, &(struct kiln_plan_opts){.now_ns = hours(9), .memory_bytes = 36 * MIB}),
        "1 2 3 > 1");
    CHECK_TEXT(
        plan_of(blocks, &(struct kiln_plan_opts){.now_ns = hours(9), .memory_bytes = 5 * MIB}),
        "1 2 > 1");
    CHECK_TEXT(plan_of(blocks, &(struct kiln_plan_opts){.now_ns = hours(9), .memory_bytes = 1}),
               "nothing");
}

TEST(plan, all_means_whatever_the_level)
{
    struct kiln_plan_opts all = {.now_ns = hours(9), .all = true};

    CHECK_TEXT(plan_of("2 1-2 4  0 8-9 1", &all), "0 1 > 3");
    CHECK_TEXT(plan_of("2 1-2 200  0 8-9 1", &all), "nothing");
    CHECK_TEXT(plan_of("2 1-2 4", &all), "nothing");
}

TEST(plan, a_block_that_is_marked_is_left_alone)
{
    struct kiln_plan_opts opts = {.now_ns = hours(9)};
    bool skip[3] = {false, true, false};
    struct kiln_plan plan;
    struct drawn d;

    draw(&d, "0 1-2 1  0 2-3 1  0 3-4 1");
    CHECK_EQ(kiln_plan_next(d.list, skip, d.n, &opts, &plan), 1);
    CHECK_TEXT(plan_text(1, &plan), "0 2 > 1");
}

TEST(plan, the_backlog_is_what_is_due)
{
    struct kiln_plan_opts opts = {.now_ns = hours(10)};
    struct kiln_backlog backlog;
    struct drawn d;

    draw(&d, "0 9.5-9.6 1  0 9.6-9.7 1  1 8-9 4  2 1-8 40");
    backlog = kiln_plan_backlog(d.list, d.n, &opts);
    CHECK_EQ(backlog.blocks, 0);
    opts.now_ns = hours(11);
    backlog = kiln_plan_backlog(d.list, d.n, &opts);
    CHECK_EQ(backlog.blocks, 2);
    CHECK_EQ(backlog.bytes, 2 * MIB);
}

/* Six cuts an hour for ten days: how often is a byte rewritten, and how many blocks are there? */
TEST(plan, a_profile_is_rewritten_about_twice)
{
    struct drawn d = {0};
    double written = 0, fresh = 0;
    uint32_t most = 0;

    for (double hour = 0; hour < 240; hour += 1.0 / 6) {
        struct kiln_plan_opts opts = {.now_ns = hours(hour + 1.0 / 6)};
        struct kiln_plan plan;

        add(&d, 0, hour, hour + 1.0 / 6, 0.1, hour + 1.0 / 6);
        fresh += 0.1;
        while (kiln_plan_next(d.list, NULL, d.n, &opts, &plan) == 1) {
            struct drawn next = {0};
            double from = 1e9, to = 0;
            bool gone[BLOCKS_MAX] = {false};

            for (uint32_t i = 0; i < plan.n; i++) {
                const struct kiln_block_info *b = d.list[plan.blocks[i]];

                gone[plan.blocks[i]] = true;
                from = fmin(from, (double)(b->min_ns - hours(0)) / (double)HOUR);
                to = fmax(to, (double)(b->max_ns - hours(0)) / (double)HOUR);
            }
            written += (double)plan.bytes / (double)MIB;
            for (uint32_t i = 0; i < d.n; i++) {
                if (!gone[i]) {
                    next.infos[next.n] = d.infos[i];
                    next.list[next.n] = &next.infos[next.n];
                    next.n++;
                }
            }
            add(&next, plan.level, from, to, (double)plan.bytes / (double)MIB, hour + 1.0 / 6);
            d = next;
            for (uint32_t i = 0; i < d.n; i++)
                d.list[i] = &d.infos[i];
        }
        most = d.n > most ? d.n : most;
    }
    CHECK(written < 2.5 * fresh);
    CHECK(most < 60);
}

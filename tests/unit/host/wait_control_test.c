/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host that is played: threads that switch and wait as they are told, for simulated minutes.  The
 * dice are seeded, so that each run is the same.
 */
#include <math.h>

#include "base/clock.h"
#include "host/wait_control.h"
#include "test.h"

#define MS KILN_NS_PER_MS
#define S  KILN_NS_PER_S

struct played {
    struct kiln_wait_control control;
    struct kiln_wait_tally tally;
    uint64_t now_ns;
    double switches_per_s, waits_per_s; /* of the host; all waits are of wait_ns */
    uint64_t wait_ns;
};

static struct played play(double share)
{
    struct played p = {.now_ns = 1000 * S, .wait_ns = MS};

    kiln_wait_control_init(&p.control, share, 50 * MS, 42);
    kiln_wait_control_look(&p.control, p.now_ns, &p.tally);
    return p;
}

/* A second, in steps of a millisecond. */
static void second(struct played *p)
{
    double before = (double)p->tally.there_ns;

    for (int i = 0; i < 1000; i++) {
        p->now_ns += MS;
        if (kiln_wait_control_turn(&p->control, p->now_ns))
            p->tally.there_ns += MS;
    }
    double there = ((double)p->tally.there_ns - before) / (double)S;
    double chance = fmin(1, (double)p->wait_ns / (double)p->control.period_ns);

    p->tally.switches += (uint64_t)(p->switches_per_s * there);
    p->tally.taken += (uint64_t)(p->waits_per_s * there * chance);
    kiln_wait_control_look(&p->control, p->now_ns, &p->tally);
}

static void run(struct played *p, int seconds)
{
    for (int i = 0; i < seconds; i++)
        second(p);
}

TEST(wait_control, a_quiet_host_has_the_hook_all_the_time_and_the_period_that_was_wanted)
{
    struct played p = play(0.0025);

    p.switches_per_s = 3000;
    p.waits_per_s = 1000;
    run(&p, 60);
    CHECK_EQ(p.control.period_ns, 50 * MS);
    CHECK(p.control.spans.there == 1);
    CHECK_EQ(p.tally.there_ns, 60 * S);
    CHECK(kiln_wait_control_weight(&p.control, S, 123 * MS) == 1);
}

TEST(wait_control, without_a_limit_nothing_is_held_back)
{
    struct played p = play(0);

    p.switches_per_s = 1e6;
    p.waits_per_s = 1e6;
    run(&p, 60);
    CHECK_EQ(p.control.period_ns, 50 * MS);
    CHECK_EQ(p.tally.there_ns, 60 * S);
}

TEST(wait_control, many_waits_make_the_period_longer_until_what_is_taken_fits)
{
    struct played p = play(0.0025);
    uint64_t before;

    p.waits_per_s = 100000;
    p.wait_ns = 10 * MS;
    run(&p, 60);
    before = p.tally.taken;
    run(&p, 10);
    CHECK((double)(p.tally.taken - before) / 10 * 25e-6 <= 0.00125 * 1.05);
    CHECK(p.control.period_ns > S);
    p.waits_per_s = 10;
    run(&p, 60);
    CHECK_EQ(p.control.period_ns, 50 * MS);
}

TEST(wait_control, samples_that_cost_more_are_fewer)
{
    struct played p = play(0.0025);
    uint64_t before;

    p.waits_per_s = 100000;
    p.wait_ns = 10 * MS;
    for (int i = 0; i < 120; i++) { /* each of them 200 us */
        before = p.tally.taken;
        second(&p);
        p.tally.samples = p.tally.taken;
        p.tally.cpu_ns += (p.tally.taken - before) * 200000;
    }
    CHECK((double)(p.tally.taken - before) * 200e-6 <= 0.00125 * 1.05);
    CHECK(p.control.take_ns > 150000);
}

TEST(wait_control, a_hook_that_is_too_dear_is_there_for_a_part_of_the_time_only)
{
    struct played p = play(0.0025);
    double cost;

    p.switches_per_s = 400000;
    run(&p, 3600);
    cost = (double)p.tally.switches * 150 / (double)(3600 * S);
    CHECK(cost < 0.00125 * 1.2);
    CHECK(cost > 0.00125 * 0.7);
    p.switches_per_s = 1000;
    run(&p, 600);
    CHECK(p.control.spans.there == 1);
}

TEST(wait_control, another_share_or_rate_counts_from_then_on)
{
    struct played p = play(0.0025);

    p.switches_per_s = 400000;
    run(&p, 60);
    CHECK(p.control.spans.there < 0.1);
    kiln_wait_control_set(&p.control, 0, 10 * MS);
    CHECK(p.control.spans.there == 1);
    CHECK(kiln_wait_control_turn(&p.control, p.now_ns));
    CHECK_EQ(p.control.period_ns, 10 * MS);
}

/* ---- weights ---- */

enum { RUNS = 8, WAITS = 1 << 17, MOMENTS = 7200000 }; /* of a millisecond: two hours */

/* Comes and goes for a third of the time; true at the moments when it is there. */
static struct kiln_wait_control come_and_go(bool there[MOMENTS], uint64_t seed)
{
    struct kiln_wait_control control;
    struct kiln_wait_tally tally = {0};

    kiln_wait_control_init(&control, 0.0025, 50 * MS, seed);
    kiln_wait_control_look(&control, S, &tally);
    tally = (struct kiln_wait_tally){.switches = 30000, .there_ns = S};
    kiln_wait_control_look(&control, 2 * S, &tally);
    CHECK(control.spans.there > 0.2 && control.spans.there < 0.4);
    for (uint64_t i = 0; i < MOMENTS; i++)
        there[i] = kiln_wait_control_turn(&control, 2 * S + i * MS);
    return control;
}

/* Waits of one length: how many those stand for of which both ends were seen; 1: all. */
static double weighed(const bool there[MOMENTS], const struct kiln_wait_control *control,
                      uint64_t length_ms)
{
    uint64_t n = 0;

    for (uint64_t i = 0; i < WAITS; i++) {
        uint64_t from = (MOMENTS - length_ms) * i / WAITS;

        n += there[from] && there[from + length_ms];
    }
    return (double)n * kiln_wait_control_weight(control, UINT64_MAX, length_ms * MS) / WAITS;
}

/* Of two hours, with spans of about 4 s, a share is known to some 3 %; of eight runs, to one. */
TEST(wait_control, waits_short_and_long_are_weighed_as_if_all_had_been_seen)
{
    static const uint64_t lengths_ms[] = {1, 500, 5000, 60000};
    double sums[KILN_ARRAY_LEN(lengths_ms)] = {0};
    bool *there = test_malloc(MOMENTS);

    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        struct kiln_wait_control control = come_and_go(there, seed * 7919);

        for (size_t i = 0; i < KILN_ARRAY_LEN(lengths_ms); i++)
            sums[i] += weighed(there, &control, lengths_ms[i]);
    }
    test_free(there);
    for (size_t i = 0; i < KILN_ARRAY_LEN(lengths_ms); i++)
        CHECK(fabs(sums[i] / RUNS - 1) < 0.06);
}

TEST(wait_control, where_one_look_was_enough_the_weight_is_that_of_one)
{
    struct kiln_wait_control control;

    kiln_wait_control_init(&control, 0.0025, 50 * MS, 1);
    control.spans.there = 0.25;
    control.spans.on_ns = S;
    control.spans.off_ns = 3 * S;
    CHECK(fabs(kiln_wait_control_weight(&control, S, 0) - 4) < 1e-9);
    CHECK(fabs(kiln_wait_control_weight(&control, S, 3600 * S) - 16) < 1e-9);
}

TEST(wait_control, what_was_seen_before_a_change_is_weighed_as_it_was_seen)
{
    struct played p = play(0.0025);

    p.switches_per_s = 400000;
    second(&p);
    CHECK(p.control.spans.there < 0.1);
    CHECK(kiln_wait_control_weight(&p.control, p.now_ns - MS, MS) == 1);
    CHECK(kiln_wait_control_weight(&p.control, p.now_ns, MS) > 10);
}

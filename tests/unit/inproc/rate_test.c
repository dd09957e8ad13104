/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/sample/rate.h"

#include "test.h"

enum { KIB = 1024, SECOND = 1000000000 };

/* A program that allocates evenly, for some seconds; returns how many samples were taken. */
static unsigned allocate(struct kiln_in_rate *rate, double bytes_per_s, double from_s, double to_s)
{
    unsigned taken = 0;

    for (double t = from_s; t < to_s; taken++) {
        t += (double)kiln_in_rate_mean(rate) / bytes_per_s;
        kiln_in_rate_note(rate, true, (uint64_t)(t * SECOND));
    }
    return taken;
}

TEST(rate, few_samples_leave_it_as_it_was_asked_for)
{
    struct kiln_in_rate rate;

    kiln_in_rate_init(&rate, 512 * KIB, 200, 0);
    CHECK(allocate(&rate, 50.0 * 1024 * KIB, 0, 10) >= 1000);
    CHECK_EQ(kiln_in_rate_mean(&rate), 512 * KIB);
}

TEST(rate, many_samples_are_held_to_the_limit_after_a_burst)
{
    struct kiln_in_rate rate;

    kiln_in_rate_init(&rate, 512 * KIB, 200, 0);
    CHECK(allocate(&rate, 10e9, 0, 0.1) < 256);
    CHECK(allocate(&rate, 10e9, 0.1, 10) < 10 * 200 + KILN_IN_RATE_BURST);
    CHECK(allocate(&rate, 10e9, 10, 20) > 10 * 100);
}

TEST(rate, it_falls_back_when_less_is_allocated)
{
    struct kiln_in_rate rate;

    kiln_in_rate_init(&rate, 512 * KIB, 200, 0);
    allocate(&rate, 10e9, 0, 5);
    CHECK(kiln_in_rate_mean(&rate) > 10000 * KIB);
    allocate(&rate, 1024.0 * KIB, 5, 300);
    CHECK_EQ(kiln_in_rate_mean(&rate), 512 * KIB);
}

TEST(rate, it_falls_back_when_nothing_is_sampled_at_all)
{
    struct kiln_in_rate rate;

    kiln_in_rate_init(&rate, 512 * KIB, 200, 0);
    allocate(&rate, 10e9, 0, 5);
    for (uint64_t t = 5; t < 20; t++)
        kiln_in_rate_note(&rate, false, t * SECOND);
    CHECK_EQ(kiln_in_rate_mean(&rate), 512 * KIB);
}

TEST(rate, without_a_limit_it_never_changes)
{
    struct kiln_in_rate rate;

    kiln_in_rate_init(&rate, 4 * KIB, 0, 0);
    allocate(&rate, 1e9, 0, 1);
    CHECK_EQ(kiln_in_rate_mean(&rate), 4 * KIB);
}

TEST(rate, a_clock_that_stands_still_does_no_harm)
{
    struct kiln_in_rate rate;

    kiln_in_rate_init(&rate, 512 * KIB, 200, 7 * (uint64_t)SECOND);
    for (int i = 0; i < 10000; i++)
        kiln_in_rate_note(&rate, true, 7 * (uint64_t)SECOND);
    CHECK(kiln_in_rate_mean(&rate) <= (uint64_t)(512 * KIB) << 20);
    CHECK(kiln_in_rate_mean(&rate) >= 512 * KIB);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "host/watchdog.h"

#include "base/clock.h"
#include "host/steer.h"
#include "test.h"

enum { HZ = 19 };

/* A profiler that costs `fixed` and, for each sample a second, `each` (shares of a processor). */
struct model {
    struct kiln_watchdog dog;
    uint64_t now_ns, cpu_ns, memory_bytes;
    double fixed, each;
    uint32_t trims;
};

static struct model model_of(double budget, uint64_t memory, double fixed, double each)
{
    struct model m = {.now_ns = KILN_NS_PER_S, .fixed = fixed, .each = each};

    kiln_watchdog_init(&m.dog, budget, memory, m.now_ns);
    return m;
}

static uint32_t rate(const struct model *m)
{
    return kiln_watchdog_stopped(&m->dog) ? 0 : kiln_rate_lower(HZ, kiln_watchdog_lowered(&m->dog));
}

/* What stands still costs nothing. */
static void run(struct model *m, uint32_t seconds)
{
    while (seconds-- > 0) {
        double share = rate(m) ? m->fixed + m->each * rate(m) : 0;
        struct kiln_watch_use use = {.memory_bytes = m->memory_bytes, .hz = rate(m)};

        m->now_ns += KILN_NS_PER_S;
        m->cpu_ns += (uint64_t)(share * (double)KILN_NS_PER_S);
        use.now_ns = m->now_ns;
        use.cpu_ns = m->cpu_ns;
        m->trims += kiln_watchdog_look(&m->dog, &use);
    }
}

static double mean_share(struct model *m, uint32_t seconds)
{
    uint64_t before = m->cpu_ns;

    run(m, seconds);
    return (double)(m->cpu_ns - before) / (double)seconds / (double)KILN_NS_PER_S;
}

TEST(watchdog, who_stays_within_the_budget_is_left_alone)
{
    struct model m = model_of(0.01, 0, 0.001, 0.0004);

    run(&m, 3600);
    CHECK_EQ(rate(&m), HZ);
    CHECK_EQ(kiln_watchdog_why(&m.dog), KILN_WATCH_WELL);
}

TEST(watchdog, a_start_that_is_dear_is_paid_from_what_was_saved)
{
    struct model m = model_of(0.01, 0, 0.001, 0.0001);

    m.cpu_ns = 2 * KILN_NS_PER_S;
    run(&m, 600);
    CHECK_EQ(rate(&m), HZ);
}

TEST(watchdog, who_uses_too_much_samples_less_and_stays_within_the_budget)
{
    struct model m = model_of(0.01, 0, 0.001, 0.001); /* two percent at 19 Hz, 0.8 at 7 */

    run(&m, 600);
    CHECK_EQ(rate(&m), 7);
    CHECK_EQ(kiln_watchdog_why(&m.dog), KILN_WATCH_CPU);
    CHECK(mean_share(&m, 7200) <= 0.0101);
}

TEST(watchdog, who_is_far_above_it_is_slower_within_seconds)
{
    struct model m = model_of(0.01, 0, 0.1, 0.05);

    run(&m, 8); /* what a start may take is spent, and more */
    CHECK(rate(&m) < HZ);
    run(&m, 60);
    CHECK(mean_share(&m, 7200) <= 0.0101);
}

TEST(watchdog, when_the_load_goes_the_rate_comes_back)
{
    struct model m = model_of(0.01, 0, 0.001, 0.002);

    run(&m, 600);
    CHECK(rate(&m) < HZ);
    m.each = 0.0001;
    run(&m, 300);
    CHECK_EQ(rate(&m), HZ);
    CHECK_EQ(kiln_watchdog_why(&m.dog), KILN_WATCH_WELL);
}

TEST(watchdog, whom_no_rate_helps_works_for_a_while_and_rests_for_a_while)
{
    struct model m = model_of(0.01, 0, 0.05, 0.001);
    uint32_t worked = 0;

    run(&m, 600);
    CHECK(mean_share(&m, 7200) <= 0.0105);
    for (int i = 0; i < 600; i++) {
        run(&m, 1);
        worked += rate(&m) > 0;
    }
    CHECK(worked > 30 && worked < 300);
}

TEST(watchdog, memory_above_its_limit_costs_caches_first_then_rates_then_samples)
{
    struct model m = model_of(0, 1000, 0, 0);

    m.memory_bytes = 900;
    run(&m, 60);
    CHECK_EQ(m.trims, 0);
    m.memory_bytes = 1001;
    run(&m, 1);
    CHECK_EQ(m.trims, 1);
    CHECK_EQ(rate(&m), HZ);
    run(&m, 6);
    CHECK_EQ(rate(&m), 7);
    CHECK_EQ(kiln_watchdog_why(&m.dog), KILN_WATCH_MEMORY);
    run(&m, 60);
    CHECK_EQ(rate(&m), 0);
    CHECK_EQ(m.trims, 1);
    m.memory_bytes = 950; /* below, but not by enough */
    run(&m, 600);
    CHECK_EQ(rate(&m), 0);
    m.memory_bytes = 899;
    run(&m, 300);
    CHECK_EQ(rate(&m), HZ);
    m.memory_bytes = 1001;
    run(&m, 1);
    CHECK_EQ(m.trims, 2);
}

TEST(watchdog, without_budgets_it_says_nothing)
{
    struct model m = model_of(0, 0, 10, 1);

    m.memory_bytes = UINT64_MAX / 2;
    run(&m, 600);
    CHECK_EQ(rate(&m), HZ);
    CHECK_EQ(m.trims, 0);
}

/* A machine that slept, or an agent that was stopped: one look after a long time. */
TEST(watchdog, a_long_time_without_a_look_saves_no_more_than_a_minute)
{
    struct model m = model_of(0.01, 0, 0.05, 0.05);

    run(&m, 600);
    m.now_ns += 86400 * KILN_NS_PER_S;
    run(&m, 1);
    CHECK(mean_share(&m, 3600) <= 0.0105);
}

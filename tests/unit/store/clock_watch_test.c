/* SPDX-License-Identifier: Apache-2.0 */
#include "store/clock_watch.h"

#include "base/clock.h"
#include "test.h"

#define HOUR (3600 * KILN_NS_PER_S)
#define DAY  (24 * HOUR)
#define NOW  (UINT64_C(1700000000) * KILN_NS_PER_S)
#define BOOT (5 * HOUR) /* time since boot */

/* A watch that began at NOW, of a store whose newest data is this old. */
static struct kiln_clock_watch started(uint64_t age_ns)
{
    struct kiln_clock_watch watch;

    kiln_clock_watch_start(&watch, NOW, BOOT, NOW - age_ns);
    return watch;
}

/* How far the clock is ahead so long after the start, where it shows so much more than it should.
 */
static uint64_t ahead(struct kiln_clock_watch *watch, uint64_t after_ns, uint64_t more_ns)
{
    return kiln_clock_watch_look(watch, NOW + after_ns + more_ns, BOOT + after_ns);
}

TEST(clock_watch, a_steady_clock_is_trusted_however_old_the_data_gets)
{
    struct kiln_clock_watch watch = started(HOUR);

    for (uint64_t day = 0; day < 60; day++)
        CHECK_EQ(ahead(&watch, day * DAY, day * KILN_NS_PER_S), 0); /* slewed a little */
}

TEST(clock_watch, a_jump_ahead_is_trusted_after_a_day)
{
    struct kiln_clock_watch watch = started(HOUR);

    CHECK_EQ(ahead(&watch, HOUR, 30 * DAY), 30 * DAY);
    CHECK_EQ(ahead(&watch, HOUR + DAY - 1, 30 * DAY), 30 * DAY);
    CHECK_EQ(ahead(&watch, HOUR + DAY, 30 * DAY), 0);
}

TEST(clock_watch, a_jump_that_is_taken_back_is_forgotten)
{
    struct kiln_clock_watch watch = started(HOUR);

    CHECK(ahead(&watch, HOUR, 30 * DAY) > 0);
    CHECK_EQ(ahead(&watch, 2 * HOUR, 0), 0);
    CHECK(ahead(&watch, 3 * HOUR, 30 * DAY) > 0);
    CHECK(ahead(&watch, 26 * HOUR, 30 * DAY) > 0); /* a day from the second jump */
    CHECK_EQ(ahead(&watch, 27 * HOUR, 30 * DAY), 0);
}

TEST(clock_watch, another_jump_begins_the_day_anew)
{
    struct kiln_clock_watch watch = started(HOUR);

    CHECK(ahead(&watch, HOUR, 30 * DAY) > 0);
    CHECK(ahead(&watch, 20 * HOUR, 10 * DAY) > 0);
    CHECK(ahead(&watch, 30 * HOUR, 10 * DAY) > 0);
    CHECK_EQ(ahead(&watch, 44 * HOUR, 10 * DAY), 0);
}

TEST(clock_watch, a_clock_that_goes_back_is_trusted)
{
    struct kiln_clock_watch watch = started(HOUR);

    CHECK_EQ(kiln_clock_watch_look(&watch, NOW - 30 * DAY, BOOT + 1), 0);
    CHECK_EQ(kiln_clock_watch_look(&watch, NOW + 2, BOOT + 2), 0);
}

TEST(clock_watch, after_a_start_with_old_data_the_clock_is_trusted_after_a_day)
{
    struct kiln_clock_watch watch = started(20 * DAY);

    CHECK_EQ(ahead(&watch, 0, 0), 20 * DAY);
    CHECK_EQ(ahead(&watch, DAY - 1, 0), 20 * DAY);
    CHECK_EQ(ahead(&watch, DAY, 0), 0);
    watch = started(DAY);
    CHECK_EQ(ahead(&watch, 0, 0), 0);
}

TEST(clock_watch, a_machine_that_starts_without_the_time_may_get_it)
{
    struct kiln_clock_watch watch;

    kiln_clock_watch_start(&watch, DAY, 1, NOW);
    CHECK_EQ(kiln_clock_watch_look(&watch, DAY + 1, 2), 0);
    CHECK_EQ(kiln_clock_watch_look(&watch, NOW + 12 * HOUR, 3), 0);
    CHECK(kiln_clock_watch_look(&watch, NOW + 30 * DAY, 4) > 0);
}

TEST(clock_watch, an_empty_store_has_nothing_to_lose)
{
    struct kiln_clock_watch watch;

    kiln_clock_watch_start(&watch, NOW, BOOT, 0);
    CHECK_EQ(kiln_clock_watch_look(&watch, NOW, BOOT), 0);
}

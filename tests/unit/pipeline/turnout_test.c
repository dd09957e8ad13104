/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/processors/turnout.h"

#include "base/clock.h"
#include "test.h"

#define SECOND KILN_NS_PER_S
#define START  (1000 * SECOND)

static void come(struct kiln_turnout *turnout, uint32_t n, uint64_t now_ns)
{
    for (uint32_t i = 0; i < n; i++)
        kiln_turnout_come(turnout, now_ns);
}

TEST(turnout, nobody_knows_before_a_second_is_over)
{
    struct kiln_turnout turnout = {0};

    come(&turnout, 3, START);
    CHECK(!kiln_turnout_is_all(&turnout, 3));
    kiln_turnout_go(&turnout, 3);
    come(&turnout, 2, START + SECOND);
    CHECK(!kiln_turnout_is_all(&turnout, 2));
    come(&turnout, 1, START + SECOND);
    CHECK(kiln_turnout_is_all(&turnout, 3));
}

TEST(turnout, those_that_went_on_and_have_not_ended_are_waited_for)
{
    struct kiln_turnout turnout = {0};

    come(&turnout, 2, START);
    come(&turnout, 2, START + SECOND);
    CHECK(!kiln_turnout_is_all(&turnout, 2)); /* two more are here, and may come again */
    CHECK(kiln_turnout_is_all(&turnout, 4));
    kiln_turnout_go(&turnout, 2);
    CHECK(!kiln_turnout_is_all(&turnout, 2));
}

TEST(turnout, who_stays_away_is_forgotten)
{
    struct kiln_turnout turnout = {0};

    come(&turnout, 4, START);
    kiln_turnout_go(&turnout, 4);
    for (uint64_t i = 1; i <= 2; i++) {
        come(&turnout, 2, START + i * SECOND);
        CHECK_EQ(kiln_turnout_is_all(&turnout, 2), i == 2);
        kiln_turnout_go(&turnout, 2);
    }
    come(&turnout, 2, START + 4 * SECOND); /* nobody was here in the second before */
    CHECK(!kiln_turnout_is_all(&turnout, 2));
}

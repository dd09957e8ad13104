/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sat.h"
#include "test.h"

TEST(sat, differences_stop_at_the_ends)
{
    CHECK(kiln_sat_sub(5, 7) == -2);
    CHECK(kiln_sat_sub(INT64_MAX, -1) == INT64_MAX);
    CHECK(kiln_sat_sub(INT64_MIN, 1) == INT64_MIN);
}

TEST(sat, sums_and_products_stop_at_the_ends)
{
    CHECK_EQ(kiln_sat_add(2, -5), -3);
    CHECK(kiln_sat_add(INT64_MAX, 1) == INT64_MAX);
    CHECK(kiln_sat_add(INT64_MIN, -1) == INT64_MIN);
    CHECK(kiln_sat_add(INT64_MIN, INT64_MAX) == -1);
    CHECK_EQ(kiln_sat_mul(-3, 4), -12);
    CHECK(kiln_sat_mul(INT64_MAX, 2) == INT64_MAX);
    CHECK(kiln_sat_mul(INT64_MAX, -2) == INT64_MIN);
    CHECK(kiln_sat_mul(INT64_MIN, -1) == INT64_MAX);
}

TEST(sat, any_double_has_a_nearest_integer)
{
    CHECK_EQ(kiln_sat_round(2.5), 3);
    CHECK_EQ(kiln_sat_round(-2.5), -3);
    CHECK_EQ(kiln_sat_round(0.49), 0);
    CHECK(kiln_sat_round(0x1p63) == INT64_MAX);
    CHECK(kiln_sat_round(-0x1p63) == INT64_MIN);
    CHECK(kiln_sat_round((double)INFINITY) == INT64_MAX);
    CHECK(kiln_sat_round(-(double)INFINITY) == INT64_MIN);
    CHECK_EQ(kiln_sat_round((double)NAN), 0);
}

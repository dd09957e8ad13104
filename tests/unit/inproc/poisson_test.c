/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/sample/poisson.h"

#include <math.h>

#include "test.h"

static double distance(double a, double b)
{
    return fabs(a - b) / fmax(fabs(b), 1e-300);
}

TEST(poisson, the_logarithm_is_that_of_the_library)
{
    for (double x = 1e-17; x < 1e17; x *= 1.0371)
        CHECK(fabs(kiln_in_log(x) - log(x)) < 1e-12 * fmax(1, fabs(log(x))));
    CHECK(kiln_in_log(1) == 0);
    CHECK(fabs(kiln_in_log(0x1p-53) - log(0x1p-53)) < 1e-12);
}

TEST(poisson, chances_are_exact_from_one_byte_to_all_of_them)
{
    for (double x = 1e-9; x < 39; x *= 1.013)
        CHECK(distance(kiln_in_poisson_chance(x * 524288, 524288), -expm1(-x)) < 1e-12);
    CHECK(kiln_in_poisson_chance(1e15, 512) == 1);
    CHECK(kiln_in_poisson_chance(0, 512) == 0);
}

TEST(poisson, gaps_are_whole_bytes_below_what_was_drawn)
{
    CHECK_EQ(kiln_in_poisson_gap(1, 524288), 0);
    CHECK_EQ(kiln_in_poisson_gap(exp(-1.5), 1000001), 1500001);
    CHECK_EQ(kiln_in_poisson_gap(exp(-0.0009), 1000), 0);
    CHECK_EQ(kiln_in_poisson_gap(0x1p-53, 1e18), 1ULL << 62);
}

/* Sums of 10^5 gaps: an exponential's deviation is its mean. */
TEST(poisson, gaps_have_the_mean_they_are_asked_for)
{
    enum { N = 100000 };
    double sum = 0;
    uint64_t x = 42;

    for (int i = 0; i < N; i++) {
        x = x * 6364136223846793005 + 1442695040888963407;
        sum += (double)kiln_in_poisson_gap((double)((x >> 11) + 1) * 0x1p-53, 524288) + 0.5;
    }
    CHECK(fabs(sum / N - 524288) < 5 * 524288 / sqrt(N));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sat - sums and products that stop at the ends of int64_t instead of wrapping around.
 *
 * Values of profiles come from strangers: a sum of two of them must be a number, not a bug.
 * Threads: no state.
 */
#ifndef KILN_BASE_SAT_H
#define KILN_BASE_SAT_H

#include <math.h>
#include <stdint.h>

static inline int64_t kiln_sat_add(int64_t a, int64_t b)
{
    int64_t sum;

    if (__builtin_add_overflow(a, b, &sum))
        return b < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

static inline int64_t kiln_sat_sub(int64_t a, int64_t b)
{
    int64_t difference;

    if (__builtin_sub_overflow(a, b, &difference))
        return b < 0 ? INT64_MAX : INT64_MIN;
    return difference;
}

static inline int64_t kiln_sat_mul(int64_t a, int64_t b)
{
    int64_t product;

    if (__builtin_mul_overflow(a, b, &product))
        return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
    return product;
}

/* The nearest integer; not a number becomes 0. */
static inline int64_t kiln_sat_round(double x)
{
    if (x >= 0x1p63)
        return INT64_MAX;
    if (x <= -0x1p63)
        return INT64_MIN;
    return isnan(x) ? 0 : (int64_t)llround(x);
}

#endif /* KILN_BASE_SAT_H */

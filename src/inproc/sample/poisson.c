/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A distance g between two points is exponential: -ln(u) * mean.  An allocation of n bytes meets
 * the point where n >= g, that is n > floor(g): whole bytes are exact, and so is what is left of
 * them after n were taken away, floor(g) - n = floor(g - n).
 *
 * The series below are good to some 1e-14, far below what a sample can show, and need neither
 * tables nor a library that a program may have replaced.
 */
#include "inproc/sample/poisson.h"

#include <string.h>

#define LN2 0.693147180559945309417

enum { MANTISSA_BITS = 52, EXPONENT_BIAS = 1023 };

static uint64_t bits_of(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static double of_bits(uint64_t bits)
{
    double x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* x = m * 2^e with m near 1; ln m = 2 artanh((m - 1) / (m + 1)), whose argument is below 0.172. */
double kiln_in_log(double x)
{
    uint64_t bits = bits_of(x);
    int exponent = (int)(bits >> MANTISSA_BITS) - EXPONENT_BIAS;
    double m =
        of_bits((bits & ((1ULL << MANTISSA_BITS) - 1)) | (uint64_t)EXPONENT_BIAS << MANTISSA_BITS);
    double s, square, sum = 0;

    if (m > 1.41421356237309504880) {
        m *= 0.5;
        exponent++;
    }
    s = (m - 1) / (m + 1);
    square = s * s;
    for (int k = 17; k >= 1; k -= 2)
        sum = sum * square + 1.0 / k;
    return 2 * s * sum + exponent * LN2;
}

uint64_t kiln_in_poisson_gap(double unit, double mean)
{
    double gap = -kiln_in_log(unit) * mean;

    return gap < 0x1p62 ? (uint64_t)gap : 1ULL << 62;
}

/* 1 - exp(-x) where x is at most a half: x (1 - x/2 (1 - x/3 (1 - ...))). */
static double small_chance(double x)
{
    double sum = 1;

    for (int k = 14; k >= 2; k--)
        sum = 1 - x / k * sum;
    return x * sum;
}

double kiln_in_poisson_chance(double length, double mean)
{
    double x = length / mean;
    double miss;
    int halvings = 0;

    if (x > 40)
        return 1;
    for (; x > 0.5; x *= 0.5)
        halvings++;
    miss = 1 - small_chance(x);
    if (halvings == 0)
        return small_chance(x);
    while (halvings-- > 0)
        miss *= miss;
    return 1 - miss;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * noise - how far chance alone may move the difference of two measured values: the one formula.
 *
 * A value that n independent observations gave has a standard deviation of value / sqrt(n)
 * (Poisson; as if all observations weighed the same).  One observation is the least that is
 * assumed, also where a side saw nothing: 3 samples against none say little.  Against a fixed total
 * what counts is the share, and a share of everything cannot vary: the variance is binomial, times
 * 1 - share.  The half-width of the 95 % interval of the difference is 1.96 times the root of both
 * variances.
 *
 * Threads: no state.
 */
#ifndef KILN_CORE_NOISE_H
#define KILN_CORE_NOISE_H

#include <stdbool.h>

/* One side of a comparison, as a whole. */
struct kiln_noise_side {
    double total, count; /* and the observations behind it */
    double scale;        /* what its values are multiplied by */
    bool against_total;  /* values are shares of a fixed total */
};

/* Some of it. */
struct kiln_measure {
    double value, count;
};

/* Half-width of the 95 % interval of b - a * scale. */
double kiln_noise(const struct kiln_noise_side *a, struct kiln_measure of_a,
                  const struct kiln_noise_side *b, struct kiln_measure of_b);

#endif /* KILN_CORE_NOISE_H */

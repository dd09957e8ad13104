/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poisson - points at random along allocated bytes, one in `mean` bytes on average: whoever gets a
 * point is sampled.
 *
 * Points do not know of each other: what is drawn at any place is as good as what was drawn before.
 *
 * Threads: from anywhere, handlers of signals included.
 */
#ifndef KILN_INPROC_SAMPLE_POISSON_H
#define KILN_INPROC_SAMPLE_POISSON_H

#include <stdint.h>

/* Whole bytes before the next point; `unit` is random, above 0 and up to 1. */
uint64_t kiln_in_poisson_gap(double unit, double mean);

/* How likely `length` bytes have a point: 1 - exp(-length / mean). */
double kiln_in_poisson_chance(double length, double mean);

/* The logarithm to base e of what is above 0, without the mathematical library. */
double kiln_in_log(double x);

#endif /* KILN_INPROC_SAMPLE_POISSON_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw - whether something that has a size is sampled: with the probability p = min(1, size /
 * mean), weighing 1 / p things and size / p in all.
 *
 * Threads: of the thread whose random numbers are used.
 */
#ifndef KILN_INPROC_SAMPLE_DRAW_H
#define KILN_INPROC_SAMPLE_DRAW_H

#include <stdbool.h>
#include <stdint.h>

struct kiln_in_rate;
struct kiln_in_thread;

struct kiln_in_drawn {
    double count, value;
};

/* *ret is what it stands for, where it is. */
bool kiln_in_draw(struct kiln_in_thread *thread, struct kiln_in_rate *rate, uint64_t size,
                  uint64_t now_ns, struct kiln_in_drawn *ret);

#endif /* KILN_INPROC_SAMPLE_DRAW_H */

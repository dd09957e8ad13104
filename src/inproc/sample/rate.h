/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rate - how many bytes are between two samples on average, so that there are not too many samples.
 *
 * It starts at what was asked for.  Where more samples come than allowed, beyond a short burst, it
 * rises at once; where there are few again, it falls back.  Each sample is weighed by the mean that
 * it was drawn with, so that sums stay unbiased through all of it.
 *
 * Threads: from anywhere, without waiting.
 */
#ifndef KILN_INPROC_SAMPLE_RATE_H
#define KILN_INPROC_SAMPLE_RATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { KILN_IN_RATE_BURST = 128 }; /* samples that may come at once: half of a thread's ring */

struct kiln_in_rate {
    _Atomic uint64_t mean; /* bytes, now */
    uint64_t base;         /* as it was asked for */
    double per_s;          /* samples that are allowed in a second; 0: any number */

    _Atomic uint32_t taken; /* since it was looked at last */
    _Atomic uint64_t looked_ns;
    _Atomic double
        credit; /* of samples, below the burst; of two who look at once one is not counted */
};

void kiln_in_rate_init(struct kiln_in_rate *rate, uint64_t base, double per_s, uint64_t now_ns);

/* One more sample was taken, or (false) only time has passed. */
void kiln_in_rate_note(struct kiln_in_rate *rate, bool taken, uint64_t now_ns);

static inline uint64_t kiln_in_rate_mean(struct kiln_in_rate *rate)
{
    return atomic_load_explicit(&rate->mean, memory_order_relaxed);
}

#endif /* KILN_INPROC_SAMPLE_RATE_H */

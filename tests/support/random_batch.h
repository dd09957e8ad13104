/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_batch - batches made of dice: the same seed, the same batch.
 *
 * Names, files, addresses and attributes come from small pools, so that two batches share much of
 * what they say, as real ones do; some batches carry entries that nothing refers to.
 */
#ifndef KILN_TESTS_SUPPORT_RANDOM_BATCH_H
#define KILN_TESTS_SUPPORT_RANDOM_BATCH_H

#include "core/builder.h"

struct dice {
    uint64_t state;
};

uint64_t dice_roll(struct dice *dice, uint64_t sides); /* 0 .. sides - 1 */

struct random_opts {
    uint64_t seed;
    uint32_t samples;    /* a profile, at most; 0: 20 */
    uint32_t resources;  /* at most; 0: 3 */
    bool no_times;       /* only values */
    bool plain_profiles; /* no ids, no payloads, one shape a profile */
    bool orphans;        /* with dictionary entries that nothing uses */
};

/* Makes of all timestamps the times that a store counts (core/profile_time.h). */
void place_times(struct kiln_batch *batch, uint64_t received_ns);

/* NULL where the builder failed (memory); the caller unrefs it. */
struct kiln_batch *random_batch(const struct random_opts *opts);

#endif /* KILN_TESTS_SUPPORT_RANDOM_BATCH_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* mutate_int - chance, and numbers that decoders and columns may get wrong. */
#ifndef KILN_TESTS_SUPPORT_MUTATE_INT_H
#define KILN_TESTS_SUPPORT_MUTATE_INT_H

#include "mutate.h"
#include "sim_io.h"

static inline uint64_t mutate_roll(uint64_t *random, uint64_t sides)
{
    return kiln_sim_random(random) % (sides ? sides : 1);
}

/* Another number, near the old one or at an edge. */
static inline uint64_t mutate_number(uint64_t *random, uint64_t old)
{
    static const uint64_t edges[] = {0,
                                     0,
                                     1,
                                     2,
                                     127,
                                     128,
                                     65535,
                                     65536,
                                     INT32_MAX,
                                     UINT32_MAX,
                                     (uint64_t)UINT32_MAX + 1,
                                     INT64_MAX,
                                     (uint64_t)INT64_MAX + 1,
                                     UINT64_MAX - 1,
                                     UINT64_MAX};

    switch (mutate_roll(random, 4)) {
    case 0:
        return old + 1;
    case 1:
        return old - 1;
    case 2:
        return mutate_roll(random, 32);
    default:
        return edges[mutate_roll(random, sizeof(edges) / sizeof(edges[0]))];
    }
}

void mutate_protobuf(struct kiln_str in, uint64_t *random, struct kiln_buf *out);
void mutate_json(struct kiln_str in, uint64_t *random, struct kiln_buf *out);

#endif /* KILN_TESTS_SUPPORT_MUTATE_INT_H */

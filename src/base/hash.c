/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/random.h>
#include <time.h>

#include "base/hash.h"

uint64_t kiln_hash_seed = 0x2545f4914f6cdd1du;

__attribute__((constructor)) static void draw_seed(void)
{
    uint64_t seed;

    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
        seed = (uint64_t)clock() ^ (uint64_t)time(NULL) << 20;
    kiln_hash_seed ^= seed | 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "symbol/resolver_int.h"

#define ASIDE_NS (3600 * KILN_NS_PER_S)

static const struct kiln_suspect *find(const struct kiln_aside *aside, uint64_t key)
{
    uint64_t now = kiln_clock_mono_ns();

    for (uint32_t i = 0; i < KILN_ASIDE_MAX; i++) {
        if (aside->suspects[i].key == key && aside->suspects[i].until_ns > now)
            return aside->suspects + i;
    }
    return NULL;
}

bool kiln_aside_has(const struct kiln_aside *aside, uint64_t key)
{
    const struct kiln_suspect *suspect = find(aside, key);

    return suspect && suspect->strikes >= KILN_ASIDE_STRIKES;
}

bool kiln_aside_strike(struct kiln_aside *aside, uint64_t key, uint32_t strikes)
{
    const struct kiln_suspect *known = find(aside, key);
    struct kiln_suspect *suspect;

    if (known) {
        suspect = aside->suspects + (known - aside->suspects);
    } else {
        suspect = aside->suspects + aside->next++ % KILN_ASIDE_MAX;
        *suspect = (struct kiln_suspect){.key = key};
    }
    suspect->strikes += strikes;
    suspect->until_ns = kiln_clock_mono_ns() + ASIDE_NS;
    return suspect->strikes >= KILN_ASIDE_STRIKES;
}

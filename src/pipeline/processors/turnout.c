/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/processors/turnout.h"

#include <assert.h>

#include "base/clock.h"

void kiln_turnout_come(struct kiln_turnout *turnout, uint64_t now_ns)
{
    uint64_t over_ns = turnout->began_ns + KILN_NS_PER_S;

    if (now_ns >= over_ns) {
        turnout->most_before = now_ns < over_ns + KILN_NS_PER_S ? turnout->most : 0;
        turnout->most = 0;
        turnout->began_ns = now_ns;
    }
    turnout->here++;
    if (turnout->most < turnout->here)
        turnout->most = turnout->here;
}

void kiln_turnout_go(struct kiln_turnout *turnout, uint32_t n)
{
    assert(n <= turnout->here);
    turnout->here -= n;
}

bool kiln_turnout_is_all(const struct kiln_turnout *turnout, uint32_t waiting)
{
    return turnout->most_before && waiting >= turnout->most_before && waiting >= turnout->most;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/profile_time.h"

uint64_t kiln_profile_end(uint64_t time_ns, uint64_t duration_ns, uint64_t at_ns)
{
    uint64_t latest = kiln_latest_time(at_ns);
    uint64_t most = latest > time_ns ? latest - time_ns : 0;

    return time_ns + (duration_ns && duration_ns < most ? duration_ns : most);
}

uint32_t kiln_profile_place(const struct kiln_profile *profile, uint64_t received_ns,
                            uint64_t *times, uint32_t n)
{
    uint64_t time_ns = kiln_profile_time(profile->time_ns, received_ns);
    uint64_t start = profile->time_ns ? profile->time_ns : time_ns;
    uint64_t span = kiln_profile_end(time_ns, profile->duration_ns, received_ns) - time_ns;
    uint32_t outside = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t offset = times[i] > start ? times[i] - start : 0;

        offset = offset < span ? offset : span;
        outside += times[i] - start != offset;
        times[i] = time_ns + offset;
    }
    return outside;
}

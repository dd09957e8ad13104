/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_time - the times that count for a profile and for its samples.
 *
 * A profile counts at its own time; without one, or with one more than ten minutes ahead, at the
 * time it was received.  A sample with a timestamp counts at its timestamp, clamped to the range of
 * its profile.  A profile without a duration has no known end: its range ends at the latest time
 * that a profile received with it may have.  Without these limits one wrong timestamp keeps a block
 * for ever, or makes retention rewrite it again and again.
 *
 * Threads: no state.
 */
#ifndef KILN_CORE_PROFILE_TIME_H
#define KILN_CORE_PROFILE_TIME_H

#include "core/batch.h"

#define KILN_AHEAD_MAX_NS (600 * UINT64_C(1000000000))

static inline uint64_t kiln_profile_time(uint64_t time_ns, uint64_t received_ns)
{
    bool ahead = time_ns > received_ns && time_ns - received_ns > KILN_AHEAD_MAX_NS;

    return time_ns == 0 || ahead ? received_ns : time_ns;
}

/* The latest time of anything received (or written) at `at_ns`.  Saturates. */
static inline uint64_t kiln_latest_time(uint64_t at_ns)
{
    return at_ns > UINT64_MAX - KILN_AHEAD_MAX_NS ? UINT64_MAX : at_ns + KILN_AHEAD_MAX_NS;
}

/* The end of the range of a profile that counts at `time_ns`; `at_ns` as above. */
uint64_t kiln_profile_end(uint64_t time_ns, uint64_t duration_ns, uint64_t at_ns);

/*
 * Makes of the timestamps of a profile the times that count.  They keep their distance from the
 * start of the profile where that got another time.  Returns how many were outside the range.
 */
uint32_t kiln_profile_place(const struct kiln_profile *profile, uint64_t received_ns,
                            uint64_t *times, uint32_t n);

#endif /* KILN_CORE_PROFILE_TIME_H */

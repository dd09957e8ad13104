/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_watch - whether the wall clock may be trusted to remove data by age: pure decisions.
 *
 * A clock that is a month ahead for a minute would remove everything.  The clock is not trusted for
 * a day after
 *   - it jumped ahead by more than an hour, against the time since boot;
 *   - a start at which it was more than a day ahead of the newest data.
 * If it jumps again meanwhile, the day begins anew; if it goes back to where it was, it is trusted
 * at once.  A clock that is behind is trusted: it removes less.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_STORE_CLOCK_WATCH_H
#define KILN_STORE_CLOCK_WATCH_H

#include <stdint.h>

struct kiln_clock_watch {
    /* Unix time less the time since boot, which changes when the clock jumps: */
    int64_t expected_ns, most_ns; /* trusted; as far as which it may be */
    int64_t seen_ns;              /* what it was last */
    uint64_t since_ns;            /* for how long: time since boot */
};

/* `newest_ns`: of the data; 0: there is none, and nothing to lose. */
void kiln_clock_watch_start(struct kiln_clock_watch *watch, uint64_t unix_ns, uint64_t boot_ns,
                            uint64_t newest_ns);
/* How far the clock is ahead of where it was expected; 0: it is trusted. */
uint64_t kiln_clock_watch_look(struct kiln_clock_watch *watch, uint64_t unix_ns, uint64_t boot_ns);

#endif /* KILN_STORE_CLOCK_WATCH_H */

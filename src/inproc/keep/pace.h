/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace - when samples of CPU time and of waits are taken: in windows (cpu_window_ms of every
 * cpu_every_ms, the first at once), not while the process is above its CPU threshold
 * (cpu_backoff_percent), not while the library is switched off, and not where the host's profiler
 * takes them already (inproc/keep/self.h, asked at the start and every minute).  Whoever waits for
 * a profile of just now (/debug/pprof) has them taken all the same.
 *
 * Threads: the keeper's; kiln_in_pace_narrow() is the exporter's; kiln_in_pace_want() and
 * _follows() are anybody's.
 */
#ifndef KILN_INPROC_KEEP_PACE_H
#define KILN_INPROC_KEEP_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* Each turn of the keeper, without its lock. */
void kiln_in_pace_turn(uint64_t now_ns);

/* One more, or (-1) one fewer wants CPU time or waits: bits of KILN_PROFILE_CPU and _WALL. */
void kiln_in_pace_want(uint32_t profiles, int change);
/*
 * A window of time, once each: where KILN_PROFILE_CPU or _WALL were sampled in a part of it only,
 * it becomes the time from where that began, and as long as it lasted in all.
 */
void kiln_in_pace_narrow(uint32_t profile, uint64_t *since_ns, uint64_t *until_ns);
/* In a forked child: whoever wanted them asked the parent. */
void kiln_in_pace_forked(void);
/* Whether the keeper has heard of all that are wanted. */
bool kiln_in_pace_follows(uint32_t profiles);

/* ---- its parts ---- */

/* 0 for either: always. */
bool kiln_in_pace_window_is_open(uint32_t window_ms, uint32_t every_ms, uint64_t since_start_ns);

/* Looks at the share of the processors that was used over some seconds. */
struct kiln_in_backoff {
    uint64_t at_ns, cpu_ns; /* of the last look; 0: none yet */
    bool is_off;
};
/* Whether sampling shall rest: from `percent` on, until it is a tenth below; 0: never. */
bool kiln_in_backoff_look(struct kiln_in_backoff *backoff, uint32_t percent, uint32_t processors,
                          uint64_t now_ns, uint64_t cpu_ns);

#endif /* KILN_INPROC_KEEP_PACE_H */

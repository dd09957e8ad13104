/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ticks - times of a sampling clock as small numbers.
 *
 * A host profiler's timer fires on each processor at its own fixed beat, a few microseconds late
 * now and then.  So a time is told as: the how manieth beat since the profile's start, and how far
 * from it.  The beat of a processor is where its times have lately been; it is learned from the
 * times themselves, in the same way by whoever writes and whoever reads.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_STORE_TICKS_H
#define KILN_STORE_TICKS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define KILN_TICKS_CPUS 1024u /* beyond, processors share */

struct kiln_ticks {
    uint64_t period;                /* 1 ... INT64_MAX */
    uint64_t beat[KILN_TICKS_CPUS]; /* some beat of each processor */
    bool is_known[KILN_TICKS_CPUS];
};

static inline void kiln_ticks_begin(struct kiln_ticks *t, uint64_t period)
{
    t->period = period;
    memset(t->is_known, 0, sizeof(t->is_known));
}

/* The first beat of a processor from `start` on. */
static inline uint64_t kiln_ticks_first(const struct kiln_ticks *t, uint32_t cpu, uint64_t start)
{
    int64_t period = (int64_t)t->period;
    int64_t behind = (int64_t)(start - t->beat[cpu]);
    int64_t n = behind / period + (behind % period > 0);

    return t->is_known[cpu] ? t->beat[cpu] + (uint64_t)n * t->period : start;
}

/* Learns from a time that was `off` its beat: small differences are jitter, large ones a new beat.
 */
static inline void kiln_ticks_learn(struct kiln_ticks *t, uint32_t cpu, uint64_t time, uint64_t off)
{
    int64_t late = (int64_t)off;
    int64_t limit = (int64_t)(t->period >> 8);
    bool jitter = t->is_known[cpu] && late < limit && late > -limit;

    t->beat[cpu] = jitter ? time - off + (uint64_t)(late >> 3) : time;
    t->is_known[cpu] = true;
}

struct kiln_tick {
    uint64_t tick; /* beats since the first, two's complement */
    uint64_t off;  /* from that beat, likewise */
};

static inline struct kiln_tick kiln_ticks_encode(struct kiln_ticks *t, uint32_t cpu, uint64_t start,
                                                 uint64_t time)
{
    int64_t period = (int64_t)t->period;
    int64_t since = (int64_t)(time - kiln_ticks_first(t, cpu, start));
    int64_t tick = since / period, rest = since % period;
    struct kiln_tick made;

    tick += rest > period / 2 ? 1 : rest < -(period / 2) ? -1 : 0;
    made.tick = (uint64_t)tick;
    made.off = (uint64_t)since - (uint64_t)tick * t->period;
    kiln_ticks_learn(t, cpu, time, made.off);
    return made;
}

static inline uint64_t kiln_ticks_decode(struct kiln_ticks *t, uint32_t cpu, uint64_t start,
                                         struct kiln_tick tick)
{
    uint64_t time = kiln_ticks_first(t, cpu, start) + tick.tick * t->period + tick.off;

    kiln_ticks_learn(t, cpu, time, tick.off);
    return time;
}

#endif /* KILN_STORE_TICKS_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog - keeps the profiler within its budgets of processor time and memory, by sampling less
 * often and at last not at all, and more often again when it may.
 *
 * Processor time is saved up while less is used than the budget allows, for a minute at most: what
 * a burst takes is paid from that; for a start there are five minutes' worth.  When it is spent,
 * rates are lowered (host/steer.h) by a step each few seconds; who is at the lowest and still above
 * it stops for as long as it takes to save half a minute's worth.  Memory above its limit first
 * costs caches, then rates, then it stops.
 *
 * Pure arithmetic: who owns clocks and caches tells what was used, and does as it is told.
 *
 * Threads: one owner.
 */
#ifndef KILN_HOST_WATCHDOG_H
#define KILN_HOST_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

enum kiln_watch_why { KILN_WATCH_WELL, KILN_WATCH_CPU, KILN_WATCH_MEMORY };

/* How far one budget has pushed it. */
struct kiln_watch_ladder {
    uint32_t lowered; /* so many times */
    bool stopped;
    uint64_t changed_ns;
};

struct kiln_watchdog {
    double cpu_share;      /* of one processor; 0: no limit */
    uint64_t memory_bytes; /* 0: no limit */
    double saved_ns;       /* processor time; below 0: owed */
    double used;           /* share of one processor, of late */
    uint64_t looked_ns, cpu_ns;
    struct kiln_watch_ladder cpu, memory;
    bool trimmed; /* caches, since memory was above its limit */
};

void kiln_watchdog_init(struct kiln_watchdog *dog, double cpu_share, uint64_t memory_bytes,
                        uint64_t now_ns);

struct kiln_watch_use {
    uint64_t now_ns; /* monotonic */
    uint64_t cpu_ns; /* since ever */
    uint64_t memory_bytes;
    uint32_t hz; /* of the clocks, just now */
};
/* About once a second.  True: caches shall go. */
bool kiln_watchdog_look(struct kiln_watchdog *dog, const struct kiln_watch_use *use);

/* What shall be done now. */
uint32_t kiln_watchdog_lowered(const struct kiln_watchdog *dog);
bool kiln_watchdog_stopped(const struct kiln_watchdog *dog);
enum kiln_watch_why kiln_watchdog_why(const struct kiln_watchdog *dog);
/* "cpu", "memory"; "" where all is well. */
const char *kiln_watch_word(enum kiln_watch_why why);

#endif /* KILN_HOST_WATCHDOG_H */

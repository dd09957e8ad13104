/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pulse - how fast counters grow, over about the last minute.
 *
 * Whoever has a timer notes now and then where the counters stand; what is asked for is the growth
 * since the oldest note that is not older than a minute, or so.
 *
 * Threads: safe from anywhere.
 */
#ifndef KILN_BASE_PULSE_H
#define KILN_BASE_PULSE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define KILN_PULSE_EVERY_NS UINT64_C(5000000000)
enum { KILN_PULSE_VALUES = 8, KILN_PULSE_BEATS = 13 };

struct kiln_pulse {
    pthread_mutex_t lock;
    struct kiln_beat {
        uint64_t at_ns; /* monotonic */
        double values[KILN_PULSE_VALUES];
    } beats[KILN_PULSE_BEATS], first;
    uint64_t n; /* beats so far */
};

void kiln_pulse_init(struct kiln_pulse *pulse);
void kiln_pulse_done(struct kiln_pulse *pulse);

/* Whether the last note is old enough for another. */
bool kiln_pulse_is_due(struct kiln_pulse *pulse, uint64_t now_ns);
void kiln_pulse_note(struct kiln_pulse *pulse, uint64_t now_ns,
                     const double values[KILN_PULSE_VALUES]);

struct kiln_pulse_rates {
    double grown[KILN_PULSE_VALUES];      /* since the first note */
    double per_second[KILN_PULSE_VALUES]; /* lately; 0 before there are two notes' worth of time */
};
/* `values` are those of now. */
void kiln_pulse_rates(struct kiln_pulse *pulse, uint64_t now_ns,
                      const double values[KILN_PULSE_VALUES], struct kiln_pulse_rates *ret_rates);

#endif /* KILN_BASE_PULSE_H */

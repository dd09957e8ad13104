/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait_control - keeps what waits cost within a share of one processor, whatever the host does.
 *
 * Two things cost: the hook, which runs at each switch of threads whether it takes the wait or not,
 * and the waits that it takes.  Of these fewer are taken by a longer period T (a wait d is taken
 * with p = min(1, d / T) and stands for d / p); the hook can only be taken away for a while.
 *
 * It is there and away for spans that are drawn from exponential distributions, so that the chance
 * to see both ends of a wait is known: with f the share of time that it is there and r the sum of
 * the two rates, f * (f + (1 - f) * exp(-r * d)).  A wait is given the inverse as weight.
 *
 * Pure arithmetic: who owns the hook tells what was counted, and does as it is told.
 *
 * Threads: one owner.
 */
#ifndef KILN_HOST_WAIT_CONTROL_H
#define KILN_HOST_WAIT_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

/* What the host counted, since ever. */
struct kiln_wait_tally {
    uint64_t switches, taken;
    uint64_t there_ns; /* time that the hook was there */
    uint64_t samples;  /* waits and others */
    uint64_t cpu_ns;   /* of all that is done with samples in user space */
};

/* How the hook comes and goes. */
struct kiln_wait_spans {
    double there;           /* share of time that it is there: 1 always */
    uint64_t on_ns, off_ns; /* means of the spans */
};

struct kiln_wait_control {
    double share;                         /* of one processor that waits may cost; 0: no limit */
    uint64_t base_ns;                     /* the shortest period: what is wanted */
    uint64_t period_ns;                   /* T, just now */
    struct kiln_wait_spans spans, before; /* just now, and until `since_ns` */
    uint64_t since_ns;
    bool on;
    uint64_t turn_ns; /* when the span ends; UINT64_MAX: never */
    uint64_t random;
    uint64_t looked_ns;
    struct kiln_wait_tally last;
    double switches_per_s; /* while it is there */
    double take_ns;        /* what a wait that is taken costs */
};

/* `seed`: of the spans; any number. */
void kiln_wait_control_init(struct kiln_wait_control *control, double share, uint64_t base_ns,
                            uint64_t seed);
/* Another share of the processor, or another period, from now on. */
void kiln_wait_control_set(struct kiln_wait_control *control, double share, uint64_t base_ns);

/* About once a second: looks at what it costs, and changes the period and the spans. */
void kiln_wait_control_look(struct kiln_wait_control *control, uint64_t now_ns,
                            const struct kiln_wait_tally *tally);

/* Whether the hook shall be there now; to be asked at turn_ns at the latest. */
bool kiln_wait_control_turn(struct kiln_wait_control *control, uint64_t now_ns);

/*
 * How many waits one stands for that was seen at `seen_ns`: `between_ns` is the time between the
 * two moments at which its thread was looked at; 0: one was enough.
 */
double kiln_wait_control_weight(const struct kiln_wait_control *control, uint64_t seen_ns,
                                uint64_t between_ns);

/* Processor time that so many switches took in the hook. */
uint64_t kiln_wait_control_cost_ns(uint64_t switches);

#endif /* KILN_HOST_WAIT_CONTROL_H */

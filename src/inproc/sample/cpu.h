/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu - samples of the CPU time that threads use: at each tick of a thread's timer
 * (inproc/sample/timer.h) its stack, which stands for a period of time, and for the periods that
 * were missed.  Ticks also tell who holds an event loop.
 *
 * The kernel looks at timers with each of its own ticks, if the thread runs just then: what expired
 * after the last look is owed when a thread ends, and told with the stack that was seen last.
 *
 * Threads: the tick and those for the calling thread on the thread itself; the rest by the keeper.
 */
#ifndef KILN_INPROC_SAMPLE_CPU_H
#define KILN_INPROC_SAMPLE_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "inproc/sample/signal.h"

/* On a thread that does not block everything.  0, or negative: there are no timers, and the user
 * was told why. */
int kiln_in_cpu_open(void);
void kiln_in_cpu_close(void);

struct kiln_in_thread;

/* Of a thread, its own: */
struct kiln_in_ticks {
    uint64_t first_ns; /* the timer's first expiry, in the setting that they are counted from */
    uint64_t told;     /* that are in records or were not wanted */
    uint32_t stack;    /* of the last one; 0: none was seen */
};

/* The calling thread begins: it is sampled from here on. */
void kiln_in_cpu_thread_begins(void);
/* It ends, or the process does: what it owes is told.  Between enter and leave. */
void kiln_in_cpu_thread_ends(struct kiln_in_thread *thread);
/* The calling thread has turned out to be an event loop. */
void kiln_in_cpu_thread_loops(void);

/*
 * CPU time between two samples: by a share longer than was asked for that round numbers do not
 * agree with, so that a program which does the same every ten milliseconds is seen at all times of
 * its period.
 */
uint64_t kiln_in_cpu_period_ns(void);

/* What runs from now on: samples of CPU time, ticks for loops. */
void kiln_in_cpu_set(bool samples, bool loops);
/* About once a second: new threads, and a signal that the program wants for itself. */
void kiln_in_cpu_work(void);

/* The handler's: `overrun` periods were missed before this one. */
void kiln_in_cpu_tick(enum kiln_in_tick tick, int overrun, void *ucontext);

#endif /* KILN_INPROC_SAMPLE_CPU_H */

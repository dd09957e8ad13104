/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timer - a timer of the CPU time of each thread, which sends the thread itself our signal.
 *
 * Its first expiry is at a random point of the period, so that short threads are seen as often as
 * they should be.  A thread has it from its beginning where the beginning is ours to see; the
 * keeper makes it for the others: it looks at all threads of the process about once a second.
 *
 * Such a timer expires only while its thread runs, and the signal is sent when the thread is about
 * to return to user space (kiln_in_timer_is_harmless): no system call that sleeps ever sees it.
 *
 * Threads: begin, refuse and end on the thread itself; the rest by the keeper alone.
 */
#ifndef KILN_INPROC_SAMPLE_TIMER_H
#define KILN_INPROC_SAMPLE_TIMER_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct kiln_in_thread;

/* Period of the timer of a thread that is an event loop, or of any; 0: it stands. */
uint64_t kiln_in_timer_period_ns(bool is_loop);
/* From now on, for all that have one and all to come. */
void kiln_in_timer_set(uint64_t period_ns, uint64_t loop_period_ns);

/* Gives the calling thread a timer if it has none, where timers run. */
void kiln_in_timer_begin(struct kiln_in_thread *thread);
bool kiln_in_timer_has(struct kiln_in_thread *thread);
/* Takes it away, also of a thread that is gone. */
void kiln_in_timer_end(struct kiln_in_thread *thread);
/* The same of the calling thread, which may have none for now: nor one that the keeper made. */
void kiln_in_timer_refuse(struct kiln_in_thread *thread);
/* Of a thread that has left by a jump: what it was about to make. */
void kiln_in_timer_left(struct kiln_in_thread *thread);
/* In a forked child, which has none, whatever the parent's was. */
void kiln_in_timer_forget(struct kiln_in_thread *thread);

/* Threads that came and went without telling. */
void kiln_in_timer_scan(void);
/* All of them anew, because the signal is another one. */
void kiln_in_timer_renew(void);
/* In a forked child: it has none. */
void kiln_in_timer_forked(void);

/*
 * Whether this kernel sends signals of CPU timers on return to user space only, and not from the
 * tick that interrupts a system call on its way to sleep.  Takes some milliseconds of CPU time
 * where the kernel's version does not tell.
 */
bool kiln_in_timer_is_harmless(void);
/* The same, always by trying, with a timer of any clock; our signal is there, and not blocked. */
bool kiln_in_timer_try(clockid_t clock);

#endif /* KILN_INPROC_SAMPLE_TIMER_H */

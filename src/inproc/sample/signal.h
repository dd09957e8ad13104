/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signal - the signal that timers of threads send, and how the program is kept from noticing.
 *
 * It is SIGPROF where nobody uses that, else a real-time signal that nobody does.  Our handler
 * stays in the kernel once it is there; what the program says about the signal is kept beside it,
 * told when it asks, and followed for every signal that is no tick of ours.  A program that ignores
 * the signal, or blocks or awaits it in particular, has it for itself: ticks come by another then.
 *
 * Whoever blocks everything blocks all but this one: a tick that stays pending would end a call
 * that waits with another mask, or be what such a call waits for.
 *
 * Threads: from anywhere, handlers included; open and move by one at a time.
 */
#ifndef KILN_INPROC_SAMPLE_SIGNAL_H
#define KILN_INPROC_SAMPLE_SIGNAL_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Signals that have our handler: bit N-1 for signal N.  Hooks ask this first. */
extern _Atomic uint64_t kiln_in_signals;

static inline bool kiln_in_signal_is_ours(int sig)
{
    return sig > 0 && sig <= 64 && atomic_load(&kiln_in_signals) >> (sig - 1) & 1;
}

/* Chooses a signal that the calling thread does not block, and installs our handler.  The signal,
 * or -EBUSY: none is free. */
int kiln_in_signal_open(void);
/* The signal of new timers; 0: none. */
int kiln_in_signal_now(void);
/* Where the program wants our signal for itself, or has taken it: another one, as by open().  0:
 * nothing to do. */
int kiln_in_signal_move(void);

/* Whose tick it is: of a thread's own timer, of one that the keeper made, of a trial. */
enum kiln_in_tick { KILN_IN_TICK_OWN, KILN_IN_TICK_FOUND, KILN_IN_TICK_TRIAL, KILN_IN_TICKS };
/* What such a timer is made with. */
void *kiln_in_signal_cookie(enum kiln_in_tick tick);

/* Puts our handler in front of what the program says about a signal that is none of our timers. */
int kiln_in_signal_keep(int sig);

/* The kernel does by itself what one of those does by default. */
void kiln_in_signal_let_go(int sig);

/* What a signal does by itself.  Returns where it does nothing. */
void kiln_in_signal_end_process(int sig);

/* ---- what hooks do for a signal that is ours ---- */

/* As sigaction(). */
int kiln_in_signal_action(int sig, const struct sigaction *set, struct sigaction *ret_old);
/*
 * A set that is to be blocked or waited for: *ret_set is the same without our signals, and is
 * returned; a set that was made for one of them in particular is returned as it is.
 */
const sigset_t *kiln_in_signal_spare(const sigset_t *set, sigset_t *ret_set);

#endif /* KILN_INPROC_SAMPLE_SIGNAL_H */

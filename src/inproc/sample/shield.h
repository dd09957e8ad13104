/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shield - handlers of the program's that run on a small alternate stack are not interrupted by a
 * tick.
 *
 * There is room there for the frame of one signal and the handler, seldom for a second frame and
 * ours: a handler that reports a crash for some milliseconds would be ended in the middle of it.
 * So once a thread has such a stack, handlers that ask for it block our signal too, and the program
 * sees their masks as it has made them.
 *
 * Threads: from anywhere.
 */
#ifndef KILN_INPROC_SAMPLE_SHIELD_H
#define KILN_INPROC_SAMPLE_SHIELD_H

#include <signal.h>

/* From now on, handlers that are there included. */
void kiln_in_shield_begin(void);
/*
 * Handlers that are there, when our signal is chosen.  Not by the keeper, when it is another one
 * later: it might put back a handler that the program replaces just then.
 */
void kiln_in_shield_renew(void);

/* sigaction() of a signal that is not ours. */
int kiln_in_shield_action(int sig, const struct sigaction *set, struct sigaction *ret_old);

#endif /* KILN_INPROC_SAMPLE_SHIELD_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ending - signals that end the process, held up until what was sampled has gone out.
 *
 * SIGHUP, SIGINT and SIGTERM, where signal_ms allows it a time and the program has no handler for
 * them: the thread that gets one waits in our handler while the keeper has the rest exported, and
 * then does what the signal does by itself.  One that comes meanwhile ends the process at once.
 *
 * It is given up, for good, where a handler of ours might not get that far: a thread's alternate
 * stack has no room for it, or system calls are given up.
 *
 * Threads: as each function says.
 */
#ifndef KILN_INPROC_SAMPLE_ENDING_H
#define KILN_INPROC_SAMPLE_ENDING_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define KILN_IN_ENDING_BIT(sig) ((uint64_t)1 << ((sig)-1))
#define KILN_IN_ENDING_SIGNALS                                                                     \
    (KILN_IN_ENDING_BIT(SIGHUP) | KILN_IN_ENDING_BIT(SIGINT) | KILN_IN_ENDING_BIT(SIGTERM))

static inline bool kiln_in_ending_has(int sig)
{
    return (KILN_IN_ENDING_SIGNALS & KILN_IN_ENDING_BIT(sig)) != 0;
}

/* ---- in the handler ---- */

/* Lets others of these signals into the handler. */
void kiln_in_ending_let_through(struct sigaction *action);
/* Returns when the process may end. */
void kiln_in_ending_hold_up(void);

/* ---- the program's ---- */

/* Before the thread cannot have a handler any more; errno is kept. */
void kiln_in_ending_give_up(void);
bool kiln_in_ending_is_given_up(void);

/* ---- the keeper's ---- */

/* Whether somebody waits for the last export. */
bool kiln_in_ending_is_due(void);
void kiln_in_ending_look(void);

#endif /* KILN_INPROC_SAMPLE_ENDING_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait_reason - what a thread waited for, in one word: the attributes thread.state and wait.reason.
 *
 * Threads: constant tables; from any thread.
 */
#ifndef KILN_HOST_WAIT_REASON_H
#define KILN_HOST_WAIT_REASON_H

enum kiln_thread_state {
    KILN_STATE_BLOCKED,
    KILN_STATE_RUNNABLE, /* it could have run: other threads did */
};

enum kiln_wait_reason {
    KILN_REASON_OTHER,
    KILN_REASONS,
};

/* "blocked", "runnable". */
const char *kiln_state_word(enum kiln_thread_state state);
/* "futex", "poll", "disk"... */
const char *kiln_reason_word(enum kiln_wait_reason reason);

#endif /* KILN_HOST_WAIT_REASON_H */

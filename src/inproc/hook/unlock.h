/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unlock - where unlocks of the program's lead: on to the C library's, until the first thread of
 * the process waits for a lock; from then on they look whom they have kept waiting.
 *
 * A load or three nops in front of the C library's unlock of a rwlock are 1.5 to 2 ns of a pair,
 * which nobody has explained; and most programs of one thread have locks that nobody ever waits
 * for.
 *
 * Threads: from anywhere, handlers of signals included.
 */
#ifndef KILN_INPROC_HOOK_UNLOCK_H
#define KILN_INPROC_HOOK_UNLOCK_H

/* Before anybody waits.  There is no way back. */
void kiln_in_unlocks_look(void);

#endif /* KILN_INPROC_HOOK_UNLOCK_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox - whether the program has given up system calls, or is about to.
 *
 * Whoever uses one that is given up may be ended.  From then on threads of the program's use those
 * alone that hardly anybody gives up: what a descriptor is, is not asked, timers are left alone,
 * and nothing is started anew, neither in a child of a fork.
 *
 * Threads: from anywhere, handlers of signals included.
 */
#ifndef KILN_INPROC_THREAD_SANDBOX_H
#define KILN_INPROC_THREAD_SANDBOX_H

#include <stdbool.h>

/* There is no way back, for children neither. */
void kiln_in_sandbox_begin(void);
bool kiln_in_is_sandboxed(void);

#endif /* KILN_INPROC_THREAD_SANDBOX_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook - what functions in front of libc's look like: seen by all, with the slow part out of line,
 * so that the fast one is a test and a jump.
 *
 * Threads: macros.
 */
#ifndef KILN_INPROC_HOOK_HOOK_H
#define KILN_INPROC_HOOK_HOOK_H

/* Where its lines of code begin is a nanosecond of a call. */
#define KILN_IN_HOOK             __attribute__((visibility("default"), aligned(64)))
#define KILN_IN_SLOW             __attribute__((noinline, cold))
#define KILN_IN_RARELY(it_holds) __builtin_expect(!!(it_holds), 0)

#endif /* KILN_INPROC_HOOK_HOOK_H */

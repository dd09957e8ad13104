/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds - which part of a thread's own stack can be read as it is.
 *
 * From the stack pointer up to the thread's own block above its stack (for the first thread: to
 * what the kernel put there) a thread's stack is one piece that stays while the thread runs.  Pages
 * are looked at once, from above, some at a time, and the block of the thread remembers how far.
 * On any other stack (alternate ones of signals, of coroutines) nothing is read directly.
 *
 * Threads: of the thread itself, handlers of signals included.
 */
#ifndef KILN_INPROC_UNWIND_BOUNDS_H
#define KILN_INPROC_UNWIND_BOUNDS_H

#include <stdint.h>

struct kiln_in_thread;

/* [*ret_low, *ret_high) around a stack pointer; both 0: another stack. */
void kiln_in_bounds(struct kiln_in_thread *thread, uint64_t sp, uint64_t *ret_low,
                    uint64_t *ret_high);

#endif /* KILN_INPROC_UNWIND_BOUNDS_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * narrow - threads whose alternate stack has no room for our handler.
 *
 * The handler runs on the alternate stack where a thread has one: runtimes with small stacks of
 * their own count on that.  Programs that use such a stack for faults alone make it as small as
 * 2 KiB, where not even the kernel's frame finds room, and a tick would end the process.  Such a
 * thread has no timer for as long as its stack is so small, and its CPU time is not seen.
 *
 * Threads: of the thread itself.
 */
#ifndef KILN_INPROC_SAMPLE_NARROW_H
#define KILN_INPROC_SAMPLE_NARROW_H

#include <signal.h>
#include <stdbool.h>

/* Whether a tick on this alternate stack would be too much; or might be, beside a handler. */
bool kiln_in_stack_is_narrow(const stack_t *stack);
bool kiln_in_stack_is_tight(const stack_t *stack);

/* Before the thread has such a stack, and when it has none any more. */
void kiln_in_narrow_set(bool is_narrow);

/* Whether there is such a thread that no block tells of: then strangers are left alone. */
bool kiln_in_narrow_unknown(void);

#endif /* KILN_INPROC_SAMPLE_NARROW_H */

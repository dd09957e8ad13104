/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind - the stack of the calling thread, into its block (thread->pcs): leaf first, without
 * frames of this library.  The first address is the leaf's own instruction, of a hook the one that
 * called it; all others are those behind a caller's, as return addresses are.
 *
 * Threads: of the thread itself, between kiln_in_enter() and kiln_in_leave(); handlers of signals
 * included.  kiln_in_unwind_work() is the keeper's.
 */
#ifndef KILN_INPROC_UNWIND_UNWIND_H
#define KILN_INPROC_UNWIND_UNWIND_H

#include <stdint.h>

struct kiln_in_thread;

/* In the slow path of a hook.  Both return the number of addresses, `depth` at most. */
unsigned kiln_in_unwind_here(struct kiln_in_thread *thread, unsigned depth);
/* In a handler: of what it interrupted. */
unsigned kiln_in_unwind_context(struct kiln_in_thread *thread, const void *ucontext,
                                unsigned depth);

/*
 * Of another thread that sleeps, with what the kernel tells of its registers: a frame that hangs on
 * the frame pointer is found only where one below it has kept that.  The keeper's, who makes sure
 * that the thread has not gone on meanwhile.
 */
unsigned kiln_in_unwind_other(uint64_t pc, uint64_t sp, uint64_t *pcs, unsigned depth);
/* The same of who called the function that has this frame. */
unsigned kiln_in_unwind_above(uint64_t frame, uint64_t *pcs, unsigned depth);

/* The caller's stack, as deep as the settings want it, as an id of inproc/thread/stacks.h. */
uint32_t kiln_in_stack_here(struct kiln_in_thread *thread);

/* Each turn of the keeper: looks up what walks have missed, and new mappings. */
void kiln_in_unwind_work(void);

#endif /* KILN_INPROC_UNWIND_UNWIND_H */

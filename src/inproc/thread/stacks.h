/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks - every stack that was ever sampled, once: a table that only grows, without a lock.
 *
 * Memory is mapped in pieces as it is needed, up to a limit, and never given back.
 *
 * Threads: from anywhere, handlers of signals included.
 */
#ifndef KILN_INPROC_THREAD_STACKS_H
#define KILN_INPROC_THREAD_STACKS_H

#include <stdint.h>

/* Leaf first, callers as return addresses (inproc/unwind/unwind.h).  0: no room. */
uint32_t kiln_in_stack_id(const uint64_t *pcs, unsigned n);

/* The keeper's.  Returns the number of addresses; 0: there is no such stack. */
unsigned kiln_in_stack_get(uint32_t id, const uint64_t **ret_pcs);

/* Stacks there are, and bytes of memory they may touch. */
uint32_t kiln_in_stack_count(void);
uint64_t kiln_in_stack_bytes(void);

/* After a fork, and in tests: forgets everything.  Nobody else may be at it. */
void kiln_in_stack_forget(void);

#endif /* KILN_INPROC_THREAD_STACKS_H */

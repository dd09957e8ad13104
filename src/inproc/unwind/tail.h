/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tail - functions that are not on the stack any more, because the last thing they did was to jump
 * into the one that is sampled: what a compiler makes of `return malloc(n);`, and of an unlock at
 * the end of a function.
 *
 * A return address lies behind a call, and what that called is known where it was a plain one.
 * Where it is somebody else than who runs, it is who has jumped.
 *
 * Operators of C++ that allocate are left out: they call malloc() for whoever wrote `new`.
 *
 * Threads: of the thread itself, handlers of signals included.  errno may change.
 */
#ifndef KILN_INPROC_UNWIND_TAIL_H
#define KILN_INPROC_UNWIND_TAIL_H

#include <stdint.h>

/* Looks for the operators; the linker's lock is taken. */
void kiln_in_tail_start(void);

/*
 * Puts them into the stack of a hook's caller, leaf first (inproc/unwind/unwind.h), where they
 * jumped into the hook, an operator, or the library that has called it.  Returns the number of
 * addresses, `depth` at most.
 */
unsigned kiln_in_tail_mend(uint64_t *pcs, unsigned n, unsigned depth);

#endif /* KILN_INPROC_UNWIND_TAIL_H */

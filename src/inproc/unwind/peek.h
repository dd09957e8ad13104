/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peek - reads memory of this process that may not be there: the kernel is asked, nothing faults.
 *
 * Threads: from anywhere, handlers of signals included.  errno may change.
 */
#ifndef KILN_INPROC_UNWIND_PEEK_H
#define KILN_INPROC_UNWIND_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KILN_IN_PAGE = 4096 };

/* How many of `n` bytes at an address can be read, up to the end of a page at least; they are. */
size_t kiln_in_peek(uint64_t at, void *to, size_t n);

/* Whether the eight bytes at an address can be read at this moment. */
bool kiln_in_peek_is_there(uint64_t at);

/*
 * The keeper's: where the process has given up system calls, only that one is used from now on
 * which hardly anybody gives up, because a sandbox may punish others.
 */
void kiln_in_peek_look_around(void);

#endif /* KILN_INPROC_UNWIND_PEEK_H */

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

/*
 * How many of `n` bytes at an address can be read, up to the end of a page at least; they are.
 * None on a thread of the program's where the kernel must not be asked.
 */
size_t kiln_in_peek(uint64_t at, void *to, size_t n);

/* Whether the calling thread may read so at all. */
bool kiln_in_peek_is_allowed(void);

/* Whether the eight bytes at an address can be read at this moment. */
bool kiln_in_peek_is_there(uint64_t at);

/*
 * Before anything is sampled, and the keeper's: where the process has given up system calls, only
 * those are used from now on that hardly anybody gives up, because a sandbox may punish others.
 */
void kiln_in_peek_look_around(void);
/* The same without a look. */
void kiln_in_peek_be_cautious(void);
bool kiln_in_peek_is_cautious(void);

#endif /* KILN_INPROC_UNWIND_PEEK_H */

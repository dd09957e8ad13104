/* SPDX-License-Identifier: Apache-2.0 */
/*
 * next_find - what comes behind a hook.
 *
 * Most often this library stands before the C library, and that is what comes next.  A program that
 * opens us with dlopen(), or has us as a need of one of its libraries, has the C library first: no
 * call of the program's comes to us then, and our own calls still have to find it.
 *
 * Threads: from anywhere.  The linker's own lock is taken and memory allocated: never in a slow
 * path.
 */
#ifndef KILN_INPROC_HOOK_NEXT_FIND_H
#define KILN_INPROC_HOOK_NEXT_FIND_H

#include <stdbool.h>

/*
 * The next definition of a function after this library's; NULL: there is none.  Where it is there
 * in several versions that differ, `version` says which one: what a search finds by itself is the
 * oldest.
 */
void *kiln_in_next_find(const char *name, const char *version);

/* Whether two addresses are of the same library. */
bool kiln_in_are_of_one_file(const void *a, const void *b);

#endif /* KILN_INPROC_HOOK_NEXT_FIND_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * touched - pages of unwinding tables that are there because they were read, and are let go.
 *
 * What a walk finds in a table is kept as a rule, and the place is hardly ever read again; but the
 * kernel maps sixteen pages of the file at the first touch of one, and they count as the program's.
 *
 * Threads: see from anywhere, handlers of signals included; let_go is the keeper's.
 */
#ifndef KILN_INPROC_UNWIND_TOUCHED_H
#define KILN_INPROC_UNWIND_TOUCHED_H

#include <stdint.h>

#include "inproc/unwind/objects.h"

/* Of an object that stays, an entry was read, and some of its index, which has so many bytes. */
void kiln_in_touched_see(const struct kiln_in_object *object, uint64_t index_bytes, uint64_t entry);

/* Lets go of what was touched since, where it is enough to be worth it. */
void kiln_in_touched_let_go(void);

#endif /* KILN_INPROC_UNWIND_TOUCHED_H */

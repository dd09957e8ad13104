/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table - the rule of an address that is not in the cache, from the tables that its object has in
 * memory (.eh_frame_hdr, .eh_frame).
 *
 * Threads: from anywhere, handlers of signals included.
 */
#ifndef KILN_INPROC_UNWIND_TABLE_H
#define KILN_INPROC_UNWIND_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct kiln_in_object;
struct kiln_in_room;

/*
 * The rule of an address, which is put into the cache.  `is_return`: a return address is right
 * behind it.  0: there is no code that is known.
 */
uint64_t kiln_in_table_find(struct kiln_in_room *room, uint64_t address, bool is_return);

/* Where the function begins that has this address; 0: it is not known.  Nothing is kept of it. */
uint64_t kiln_in_table_function(struct kiln_in_room *room, const struct kiln_in_object *object,
                                uint64_t address);

/* Whether there is code at an address. */
bool kiln_in_table_is_code(uint64_t address);

/* How often one was looked for. */
uint64_t kiln_in_table_lookups(void);

#endif /* KILN_INPROC_UNWIND_TABLE_H */

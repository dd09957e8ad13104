/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables - fills table memory (host/memory.h): pages of rows and mappings of processes, on demand,
 * the least recently used ones making room.  The budget holds by construction: nothing of it lives
 * anywhere else.
 *
 * Slots are powers of two of words (buddies).  What the kernel walked through lately it stamped in
 * the slot's header itself; evicting looks at a few slots and takes the oldest.
 *
 * Threads: one owner, the reader's thread.
 */
#ifndef KILN_HOST_TABLES_H
#define KILN_HOST_TABLES_H

#include "host/memory.h"
#include "host/process.h"

struct kiln_tables;

KILN_CHECK int kiln_tables_new(struct kiln_table_memory *memory, struct kiln_metrics *metrics,
                               struct kiln_tables **ret_tables);
void kiln_tables_free(struct kiln_tables *tables);

/*
 * The rows of a page of an object, loaded if they are not there.  -ENOENT: the object has no tables
 * at all (then the page is kept as one row KILN_CFA_NONE, so that nobody asks again).
 */
KILN_CHECK int kiln_tables_page(struct kiln_tables *tables, struct kiln_object *object,
                                uint32_t page, struct kiln_dir_entry *ret_entry);

/*
 * The mappings of a process as they are now, of the era of its last sample.  Opens no file: a
 * mapping whose object nobody asked for yet is left out (a walk that comes there is a miss, and
 * whoever handles the miss asks).  Does nothing where they are there already.
 */
KILN_CHECK int kiln_tables_process(struct kiln_tables *tables, struct kiln_process *process,
                                   struct kiln_dir_entry *ret_entry);

void kiln_tables_drop_process(struct kiln_tables *tables, struct kiln_process *process);
void kiln_tables_drop_object(struct kiln_tables *tables, struct kiln_object *object);

/* The word at an index: what host/walk.h reads by in user space. */
uint64_t kiln_tables_word(const struct kiln_tables *tables, uint32_t index);

struct kiln_tables_stats {
    uint64_t bytes, used_bytes;
    uint64_t pages, processes; /* that are in it */
    uint64_t loaded, evicted;  /* since the start */
    uint64_t bad_objects;      /* whose tables could not be read */
};
void kiln_tables_stats(const struct kiln_tables *tables, struct kiln_tables_stats *ret_stats);

#endif /* KILN_HOST_TABLES_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables_int - what the files of tables share.
 *
 *   tables.c       pages and processes, what goes into them
 *   tables_slot.c  slots: the directory, what was used last, who makes room
 */
#ifndef KILN_HOST_TABLES_INT_H
#define KILN_HOST_TABLES_INT_H

#include "base/mem.h"
#include "host/buddy.h"
#include "host/tables.h"
#include "symbol/cfi.h"

/* A slot that is in the directory. */
struct kiln_slot {
    struct kiln_dir_key key;
    struct kiln_dir_entry entry; /* generation 0: this one is not in use */
    uint64_t version;            /* of a process' mappings */
    uint32_t n_source;           /* mappings it was made of */
    uint32_t next; /* in its chain of the hash, or of unused ones; from 1 on, 0: none */
};

struct kiln_tables {
    struct kiln_table_memory *memory;
    struct kiln_buddy buddy;
    struct kiln_slot *slots; /* number 0 is not used */
    uint32_t n_slots, cap_slots, unused;
    uint32_t *chains; /* by hash of the key */
    uint32_t chain_mask;
    uint32_t n_used;
    uint32_t generation;
    uint64_t random;
    struct kiln_budget budget; /* of `slots` */
    struct kiln_cfi_row *rows; /* of the page that is being made */
    struct kiln_tables_stats stats;
    struct kiln_metric *loaded, *evicted, *bad_objects;
};

/* NULL: there is none.  It counts as used now. */
struct kiln_slot *kiln_slot_find(struct kiln_tables *tables, const struct kiln_dir_key *key);

/* What a new slot shall hold. */
struct kiln_slot_new {
    struct kiln_dir_key key;
    uint32_t n;       /* rows or mappings */
    uint32_t n_words; /* that they take */
    uint64_t era, version;
    uint32_t n_source;
};
/*
 * Takes a slot, others making room, and calls back to write its words; then it is in the directory,
 * instead of the one that had its key.  KILN_E_LIMIT: it is larger than what there is at all.
 */
KILN_CHECK int kiln_slot_put(struct kiln_tables *tables, const struct kiln_slot_new *wanted,
                             void (*write)(void *context, uint64_t *words), void *context,
                             struct kiln_slot **ret_slot);
void kiln_slot_drop(struct kiln_tables *tables, struct kiln_slot *slot);

#endif /* KILN_HOST_TABLES_INT_H */

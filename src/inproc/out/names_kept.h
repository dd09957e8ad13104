/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names_kept - which function an address of a file is in, as far as it was found out before.
 *
 * A table that grows up to a size; when it is full it is emptied, and what is still of use comes
 * back.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_INPROC_OUT_NAMES_KEPT_H
#define KILN_INPROC_OUT_NAMES_KEPT_H

#include "base/buf.h"
#include "base/str.h"

struct kiln_in_kept_slot {
    uint64_t key;                   /* of file and address; 0: free */
    uint32_t at;                    /* in the texts; UINT32_MAX: it is known to have no name */
    uint32_t function, system_name; /* their lengths */
};

struct kiln_in_kept {
    struct kiln_in_kept_slot *slots; /* NULL until something is kept */
    uint32_t n, n_slots;
    struct kiln_buf texts;
};

void kiln_in_kept_init(struct kiln_in_kept *kept);
void kiln_in_kept_done(struct kiln_in_kept *kept);

/* True: it is known; texts live until something is kept. */
bool kiln_in_kept_find(const struct kiln_in_kept *kept, uint64_t key, struct kiln_str *ret_function,
                       struct kiln_str *ret_system_name);
/* An empty function: it has no name.  Without memory nothing is kept. */
void kiln_in_kept_put(struct kiln_in_kept *kept, uint64_t key, struct kiln_str function,
                      struct kiln_str system_name);

#endif /* KILN_INPROC_OUT_NAMES_KEPT_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide_names - function names that summaries of many services (store/wide.h) share: each text once,
 * however many blocks have it.
 *
 * Names are only added, and stay where they are, so that the number of a name says the same as long
 * as anybody holds the table.  A table that is full is replaced by a new one for what comes next;
 * it is freed with the last summary that refers to it.
 *
 * Threads: safe from anywhere.
 */
#ifndef KILN_STORE_WIDE_NAMES_H
#define KILN_STORE_WIDE_NAMES_H

#include <pthread.h>

#include "core/flame.h"
#include "store/namer.h"

enum { KILN_WIDE_NAMES_MAX = 1 << 18 };

struct kiln_wide_names;

/* The table that new names go to; one for a store. */
struct kiln_wide_shelf {
    pthread_mutex_t lock;
    struct kiln_wide_names *current; /* not a reference: NULL after the last one was dropped */
};
void kiln_wide_shelf_init(struct kiln_wide_shelf *shelf);
void kiln_wide_shelf_done(struct kiln_wide_shelf *shelf);

/* A table with room for so many names more; a reference. */
KILN_CHECK int kiln_wide_names_get(struct kiln_wide_shelf *shelf, uint32_t more,
                                   struct kiln_wide_names **ret_names);
struct kiln_wide_names *kiln_wide_names_ref(struct kiln_wide_names *names);
void kiln_wide_names_unref(struct kiln_wide_names *names); /* may be NULL */

/*
 * The numbers of the names of a flame that are marked in `used`, old or new, in `numbers`; 0 is no
 * name.  *ret_bytes is what the table grew by.
 */
KILN_CHECK int kiln_wide_names_add(struct kiln_wide_names *names, const struct kiln_flame *flame,
                                   const bool *used, uint32_t *numbers, size_t *ret_bytes);

/* All numbers so far are less. */
uint32_t kiln_wide_names_n(struct kiln_wide_names *names);
const struct kiln_function_name *kiln_wide_name(const struct kiln_wide_names *names,
                                                uint32_t number);
uint64_t kiln_wide_name_hash(const struct kiln_wide_names *names, uint32_t number);

#endif /* KILN_STORE_WIDE_NAMES_H */

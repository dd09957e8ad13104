/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names - the files of a store's folders, as a list of paths in order.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_STORE_NAMES_H
#define KILN_STORE_NAMES_H

#include "base/buf.h"
#include "base/mem.h"
#include "store/io.h"

struct kiln_names {
    struct kiln_buf text; /* paths, each ended by NUL */
    size_t *starts;
    uint32_t n, cap;
    struct kiln_budget budget;
};

void kiln_names_init(struct kiln_names *names, size_t memory_bytes);
void kiln_names_done(struct kiln_names *names);

/*
 * Adds FOLDER/X/Y for all X and Y, sorted; with an `ending`, only those that end in it; never
 * temporary ones (.tmp).  A folder that is not there has nothing in it.
 */
KILN_CHECK int kiln_names_below(struct kiln_names *names, struct kiln_io *io, const char *folder,
                                const char *ending);
/* Adds FOLDER/X for all X, sorted. */
KILN_CHECK int kiln_names_in(struct kiln_names *names, struct kiln_io *io, const char *folder);

const char *kiln_names_get(const struct kiln_names *names, uint32_t i);

#endif /* KILN_STORE_NAMES_H */

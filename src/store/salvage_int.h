/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage_int - reads one file of aside/ and gives its profiles as batches.
 *
 * Threads: no state.
 */
#ifndef KILN_STORE_SALVAGE_INT_H
#define KILN_STORE_SALVAGE_INT_H

#include "store/salvage.h"
#include "store/store.h"

struct kiln_salvage_source {
    struct kiln_io *io;
    size_t memory_bytes;
    kiln_follow *follow; /* NULL: records with a recipe are unreadable */
    /* Not NULL: of a block, only profiles in this time are wanted. */
    const struct kiln_window *window;
    int (*each)(void *context, const struct kiln_salvaged *batch, struct kiln_err *err);
    void *context;
};

/*
 * Reads `file->name`; fills in tenant, unreadable, state and why.  Fails where `each` does, or the
 * machine.
 */
KILN_CHECK int kiln_salvage_read(const struct kiln_salvage_source *source,
                                 struct kiln_salvage_file *file, struct kiln_err *err);

#endif /* KILN_STORE_SALVAGE_INT_H */

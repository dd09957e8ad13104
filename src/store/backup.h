/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backup - a store's files into another directory, and back: store.json, blocks and symbols.
 *
 * A backup is a store like any other, without a log: it can be opened where it is.
 * kiln_store_backup() (store/store.h) makes one of a live store.
 *
 * Threads: no state.
 */
#ifndef KILN_STORE_BACKUP_H
#define KILN_STORE_BACKUP_H

#include "store/check.h"

struct kiln_transfer_opts {
    bool copy;                                                    /* never hard links */
    void (*progress)(void *context, uint32_t done, uint32_t all); /* NULL: nobody asks */
    void *context;
};

/*
 * Checks the backup and copies it into `data_dir`, which must be new or empty.  A damaged backup is
 * refused: *ret_check (for kiln_store_check_done(), also on failure) says what is wrong with it.
 */
KILN_CHECK int kiln_store_restore(const char *backup_dir, const char *data_dir,
                                  const struct kiln_transfer_opts *opts,
                                  struct kiln_store_check *ret_check, struct kiln_err *err);

#endif /* KILN_STORE_BACKUP_H */

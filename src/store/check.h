/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check - looks at every byte of a store's directory and changes nothing.
 *
 * Blocks, segments of the log, symbol files and store.json are read and their sums and numbers
 * checked.  It needs no lock: on a live store, files that go away meanwhile are not missed.
 *
 * Threads: one owner a check; many at once.
 */
#ifndef KILN_STORE_CHECK_H
#define KILN_STORE_CHECK_H

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/io.h"

enum { KILN_CHECK_DAMAGES_MAX = 1000 }; /* that are told one by one */

struct kiln_store_damage {
    char path[160];
    struct kiln_err err;
};

struct kiln_store_check {
    uint64_t blocks, segments, records, symbols; /* looked at */
    uint64_t profiles, samples;                  /* in whole blocks */
    uint64_t bytes;                              /* of blocks and symbol files */
    uint64_t aside;                              /* files that were set aside before */
    uint64_t n_damages;                          /* all of them */
    struct kiln_store_damage *damages;           /* the first of them */
    uint32_t n_told, cap_told;
    struct kiln_budget budget;
};

struct kiln_store_check_opts {
    void (*progress)(void *context, uint32_t done, uint32_t all); /* NULL: nobody asks */
    void *context;
};

/*
 * Damage is no failure: it is in `ret_check`, which kiln_store_check_done() frees.  Fails where the
 * directory cannot be looked at, is no store (-ENOENT), or is of a newer format.
 */
KILN_CHECK int kiln_store_check(struct kiln_io *io, const struct kiln_store_check_opts *opts,
                                struct kiln_store_check *ret_check, struct kiln_err *err);
void kiln_store_check_done(struct kiln_store_check *check);

/* As a JSON object: docs/formats/cli-json.md. */
void kiln_store_check_format(const struct kiln_store_check *check, struct kiln_buf *out);

#endif /* KILN_STORE_CHECK_H */

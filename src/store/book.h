/* SPDX-License-Identifier: Apache-2.0 */
/*
 * book - the names that a tenant was given later: which build ids have a symbol file
 * (store/symbols.h), and how old what it says is.
 *
 *   symbols/TENANT/BUILD_ID
 *
 * A file is replaced as a whole, by a rename.  What it says counts for all profiles, older and
 * newer.  Files that were read are kept in the store's cache, under the age of their names: each
 * change gives a build id an age that no other ever had.
 *
 * Threads: safe from anywhere.
 */
#ifndef KILN_STORE_BOOK_H
#define KILN_STORE_BOOK_H

#include <pthread.h>

#include "base/metric.h"
#include "core/remap.h"
#include "store/io.h"
#include "store/symbols.h"

enum { KILN_SYMBOLS_PATH_MAX = 768 }; /* of a symbol file's path */

/* symbols/TENANT/BUILD_ID, with bytes that file names should not have as %XX.  -EINVAL for an empty
 * or overlong one. */
KILN_CHECK int kiln_symbols_path(struct kiln_str tenant, struct kiln_str build_id,
                                 char ret_path[KILN_SYMBOLS_PATH_MAX], struct kiln_err *err);

struct kiln_book;

struct kiln_book_opts {
    struct kiln_io *io;
    struct kiln_cache *cache;            /* NULL: nothing is kept */
    _Atomic uint64_t *ages;              /* the last one given; of all books that share a cache */
    struct kiln_str tenant;              /* copied */
    struct kiln_metric *damaged, *files; /* counts; NULL: nobody asks */
};

KILN_CHECK int kiln_book_new(const struct kiln_book_opts *opts, struct kiln_book **ret_book);
void kiln_book_free(struct kiln_book *book); /* may be NULL */

/* As kiln_engine_ops. */
KILN_CHECK int kiln_book_put(struct kiln_book *book, struct kiln_str build_id,
                             const struct kiln_symbol *symbols, uint32_t n, struct kiln_err *err);
KILN_CHECK int kiln_book_drop(struct kiln_book *book, struct kiln_str build_id,
                              struct kiln_err *err);

/* How many build ids have names: most tenants have none, and pay nothing. */
uint32_t kiln_book_count(struct kiln_book *book);
/* The age of the names of a build id, or of their end; 0: it never had any. */
uint64_t kiln_book_age(struct kiln_book *book, struct kiln_str build_id);
/* The largest of them. */
uint64_t kiln_book_last_age(struct kiln_book *book);
/* When they last changed, by the clock that never jumps; 0: not since the start. */
uint64_t kiln_book_changed(struct kiln_book *book, struct kiln_str build_id);
/* Build ids by number, from 0 on; an empty one: has no names; false: there are no more. */
bool kiln_book_list(struct kiln_book *book, uint32_t number, struct kiln_str *ret_build_id);
/* The names of a build id, a reference: 1, 0 where there are none, or an error.  A damaged file is
 * passed over, and counted once. */
KILN_CHECK int kiln_book_get(struct kiln_book *book, struct kiln_str build_id,
                             struct kiln_symbols **ret_symbols);

/* Bytes of names that may be held at once. */
size_t kiln_book_share(const struct kiln_book *book);

/* ---- names of locations ---- */

struct kiln_finder;

/* For the locations of one dictionary, which may grow.  NULL, and 0, where `book` is NULL or has no
 * names. */
KILN_CHECK int kiln_finder_new(struct kiln_book *book, struct kiln_finder **ret_finder);
void kiln_finder_free(struct kiln_finder *finder);
/*
 * Whoever holds a lock on the dictionary lets it go for reading files: notes which names its
 * mappings need, and has them loaded when the lock is free.  Texts of the dictionary must stay.
 */
KILN_CHECK int kiln_finder_note(struct kiln_finder *finder, const struct kiln_batch *batch);
KILN_CHECK int kiln_finder_load(struct kiln_finder *finder);
/* What a location is called better: 1, 0 where it is not, or an error.  Texts live as long as the
 * finder. */
KILN_CHECK int kiln_finder_get(struct kiln_finder *finder, const struct kiln_batch *batch,
                               const struct kiln_location *location,
                               struct kiln_symbol_found *ret_found);
/* An edit that gives these names to what is remapped.  A failure sticks in the builder. */
struct kiln_remap_edit kiln_finder_edit(struct kiln_finder *finder);

/*
 * Gives better names to the locations of *batch: puts a new batch in the place of *batch.  Where
 * there is nothing to name *batch stays the same one.  `memory_bytes` bounds the new one.
 */
KILN_CHECK int kiln_book_apply(struct kiln_book *book, size_t memory_bytes,
                               struct kiln_batch **batch, struct kiln_err *err);

#endif /* KILN_STORE_BOOK_H */

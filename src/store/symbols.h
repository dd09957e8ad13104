/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols - names for addresses that came without: one file for each build id
 * (docs/formats/symbols.md), looked up when profiles are read.
 *
 * A file is replaced as a whole; what it says counts for all profiles, older and newer.  Addresses
 * are those of the file: for a location inside its mapping, its distance from the start plus the
 * mapping's offset; for any other, the address as it is.
 *
 * Threads: loaded symbols are constant; the rest has no state.
 */
#ifndef KILN_STORE_SYMBOLS_H
#define KILN_STORE_SYMBOLS_H

#include "base/buf.h"
#include "core/builder.h"
#include "store/engine.h"
#include "store/io.h"

enum {
    KILN_SYMBOLS_VERSION = 1,
    KILN_SYMBOLS_PATH_MAX = 768,     /* of a symbol file's path */
    KILN_SYMBOLS_BUILD_ID_MAX = 200, /* bytes of a build id */
};

/* ---- bytes ---- */

/* Appends the file of these symbols, which may come in any order.  Of two that begin at the same
 * address the first counts. */
KILN_CHECK int kiln_symbols_encode(struct kiln_str build_id, const struct kiln_symbol *symbols,
                                   uint32_t n, struct kiln_buf *out, struct kiln_err *err);

struct kiln_symbols;

/* `memory_bytes` bounds what it takes; KILN_E_LIMIT beyond. */
KILN_CHECK int kiln_symbols_decode(struct kiln_str data, size_t memory_bytes,
                                   struct kiln_symbols **ret_symbols, struct kiln_err *err);
void kiln_symbols_free(struct kiln_symbols *symbols);

struct kiln_str kiln_symbols_build_id(const struct kiln_symbols *symbols);
uint32_t kiln_symbols_count(const struct kiln_symbols *symbols);
struct kiln_symbol kiln_symbols_get(const struct kiln_symbols *symbols, uint32_t i);
size_t kiln_symbols_bytes(const struct kiln_symbols *symbols); /* of memory */

/* The symbol that an address lies in; false if it lies in none. */
bool kiln_symbols_find(const struct kiln_symbols *symbols, uint64_t address,
                       struct kiln_symbol *ret_symbol);

/* ---- files ---- */

/* symbols/TENANT/BUILD_ID, with bytes that file names should not have as %XX.  -EINVAL for an empty
 * or overlong one. */
KILN_CHECK int kiln_symbols_path(struct kiln_str tenant, struct kiln_str build_id,
                                 char ret_path[KILN_SYMBOLS_PATH_MAX], struct kiln_err *err);

KILN_CHECK int kiln_symbols_put(struct kiln_io *io, struct kiln_str tenant,
                                struct kiln_str build_id, const struct kiln_symbol *symbols,
                                uint32_t n, struct kiln_err *err);

/* Whether a tenant has symbols at all: most have none, and pay nothing. */
bool kiln_symbols_any(struct kiln_io *io, struct kiln_str tenant);

/*
 * Gives names to the locations of *batch that have none and whose mapping has a build id (GNU's,
 * Go's or OpenTelemetry's hash) with symbols of the tenant: puts a new batch in the place of
 * *batch.  Where nothing is found *batch stays the same one.  `memory_bytes` bounds the new batch
 * and the symbols.  A damaged symbol file is passed over and counted in *ret_damaged.
 */
KILN_CHECK int kiln_symbols_apply(struct kiln_io *io, struct kiln_str tenant, size_t memory_bytes,
                                  struct kiln_batch **batch, uint32_t *ret_damaged,
                                  struct kiln_err *err);

/* ---- one location at a time ---- */

struct kiln_symbol_finder;

/* For the locations of one dictionary, which may grow.  NULL, and 0, where the tenant has no
 * symbols.  `memory_bytes` bounds the symbols that are loaded. */
KILN_CHECK int kiln_symbol_finder_new(struct kiln_io *io, struct kiln_str tenant,
                                      size_t memory_bytes, struct kiln_symbol_finder **ret_finder);
void kiln_symbol_finder_free(struct kiln_symbol_finder *finder);
/* The symbol of a location without lines: 1, 0 if there is none, or an error.  Its texts live as
 * long as the finder. */
KILN_CHECK int kiln_symbol_finder_get(struct kiln_symbol_finder *finder,
                                      const struct kiln_batch *batch,
                                      const struct kiln_location *location,
                                      struct kiln_symbol *ret_symbol);

#endif /* KILN_STORE_SYMBOLS_H */

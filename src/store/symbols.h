/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols - names for addresses that came without: the bytes of a symbol file, of which there is
 * one for each build id (docs/formats/symbols.md), and what it says in memory.
 *
 * A symbol is of one address, or of a range; what is said of one address alone goes before the
 * range it lies in.  It has the functions that are there, each with its line: the innermost first,
 * all but the last inlined into the next.  Texts, functions and lists of frames are kept once.
 *
 * Threads: loaded symbols are constant.
 */
#ifndef KILN_STORE_SYMBOLS_H
#define KILN_STORE_SYMBOLS_H

#include "base/buf.h"
#include "store/cache.h"
#include "store/engine.h"

enum {
    KILN_SYMBOLS_VERSION = 2,
    KILN_SYMBOLS_BUILD_ID_MAX = 200, /* bytes of a build id */
};

/* Of the symbols of one build id in memory, as they are written: some two million addresses. */
#define KILN_SYMBOLS_BYTES_MAX ((size_t)128 << 20)

struct kiln_symbols;

/*
 * Appends the file of what `before` (NULL: nothing) has and `symbols` add to it, which may come in
 * any order.  Of two of these that begin at the same address the first counts.  KILN_E_LIMIT where
 * it would take more than KILN_SYMBOLS_BYTES_MAX.
 */
KILN_CHECK int kiln_symbols_encode(struct kiln_str build_id, const struct kiln_symbols *before,
                                   const struct kiln_symbol *symbols, uint32_t n,
                                   struct kiln_buf *out, struct kiln_err *err);

/* `memory_bytes` bounds what it takes; KILN_E_LIMIT beyond. */
KILN_CHECK int kiln_symbols_decode(struct kiln_str data, size_t memory_bytes,
                                   struct kiln_symbols **ret_symbols, struct kiln_err *err);

/* They are counted, and may be kept in a cache. */
static inline struct kiln_symbols *kiln_symbols_ref(struct kiln_symbols *symbols)
{
    kiln_cached_ref((struct kiln_cached *)symbols);
    return symbols;
}
static inline void kiln_symbols_unref(struct kiln_symbols *symbols)
{
    kiln_cached_unref((struct kiln_cached *)symbols);
}

struct kiln_str kiln_symbols_build_id(const struct kiln_symbols *symbols);
uint32_t kiln_symbols_count(const struct kiln_symbols *symbols);
size_t kiln_symbols_bytes(const struct kiln_symbols *symbols); /* of memory */

/* A symbol with its frames; texts are those of the file. */
struct kiln_symbol_found {
    uint64_t address, size;
    uint32_t n;
    struct kiln_symbol_frame frames[KILN_SYMBOL_FRAMES_MAX];
};

/* The i-th, in the order of addresses. */
void kiln_symbols_get(const struct kiln_symbols *symbols, uint32_t i,
                      struct kiln_symbol_found *ret_found);
/* The symbol of an address; false if there is none. */
bool kiln_symbols_find(const struct kiln_symbols *symbols, uint64_t address,
                       struct kiln_symbol_found *ret_found);
bool kiln_symbols_has(const struct kiln_symbols *symbols, uint64_t address);

#endif /* KILN_STORE_SYMBOLS_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate - what a zlib stream in a file was made of, piece by piece, in little memory.
 *
 * Debug information of hundreds of megabytes comes compressed.  libdeflate wants all of it in
 * memory; zlib does not, and takes twice as long as this.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_INFLATE_H
#define KILN_SYMBOL_INFLATE_H

#include "symbol/elf.h"

struct kiln_inflate;

/* The `n` bytes at an offset of `bytes`, which is borrowed. */
KILN_CHECK int kiln_inflate_open(const struct kiln_bytes *bytes, uint64_t at, uint64_t n,
                                 struct kiln_inflate **ret_inflate);
void kiln_inflate_close(struct kiln_inflate *inflate);

/*
 * The next piece, until the next call; no bytes of it: that was all, and its checksum is right.
 * KILN_E_CORRUPT, KILN_E_TRUNCATED; they stay.
 */
KILN_CHECK int kiln_inflate_next(struct kiln_inflate *inflate, const uint8_t **ret_data,
                                 size_t *ret_n);
/* Memory that one takes. */
size_t kiln_inflate_bytes(void);

#endif /* KILN_SYMBOL_INFLATE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compress - gzip (libdeflate) and zstd, whole buffers, with a limit on what may come out.
 *
 * Threads: no state.
 */
#ifndef KILN_BASE_COMPRESS_H
#define KILN_BASE_COMPRESS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum kiln_compression { KILN_PLAIN, KILN_GZIP, KILN_ZSTD };

/* By the magic bytes. */
enum kiln_compression kiln_compression_of(struct kiln_str data);
const char *kiln_compression_name(enum kiln_compression compression);

/*
 * About how many bytes will come out, as far as the data says; it may lie, and nothing may be
 * allocated on its word alone.
 */
size_t kiln_decompressed_hint(enum kiln_compression compression, struct kiln_str data);

/*
 * The memory that uncompressing takes beside its output: the largest window that a frame of zstd
 * asks for, which may be 128 MiB for a few bytes.  0 where it is small whatever the data says.
 */
size_t kiln_decompress_window(enum kiln_compression compression, struct kiln_str data);

enum { KILN_DECOMPRESS_SLACK = 1024 }; /* what zstd wants to have left behind the content */

/*
 * Appends the uncompressed content to `out`, whose max is the limit: a bomb fails there, having
 * allocated no more.  A window is charged to the pool of `out`, where there is one.  Several gzip
 * members or zstd frames in a row are read as one. Returns 0, KILN_E_CORRUPT, KILN_E_TRUNCATED,
 * KILN_E_LIMIT or -ENOMEM.
 */
KILN_CHECK int kiln_decompress(enum kiln_compression compression, struct kiln_str data,
                               struct kiln_buf *out, struct kiln_err *err);

/* The level of what is made rarely and sent far: small, at a cost of about 60 ns a byte. */
enum { KILN_DENSE = -1 };

/* Appends the compressed content to `out`.  `level` 0: a sensible one. */
KILN_CHECK int kiln_compress(enum kiln_compression compression, int level, struct kiln_str data,
                             struct kiln_buf *out);

/* Where content of one kind ends and that of another begins: offsets, ascending. */
enum { KILN_JOINTS_MAX = 3 };
struct kiln_joints {
    size_t at[KILN_JOINTS_MAX];
    uint32_t n;
};

/* The same, in one frame; of zstd, what is between two joints has codes of its own. */
KILN_CHECK int kiln_compress_joined(enum kiln_compression compression, int level,
                                    struct kiln_str data, const struct kiln_joints *joints,
                                    struct kiln_buf *out);

#endif /* KILN_BASE_COMPRESS_H */

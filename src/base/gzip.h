/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip - whole buffers through libdeflate: what base/compress.h does for gzip, for those who do
 * without zstd.
 *
 * Threads: no state.
 */
#ifndef KILN_BASE_GZIP_H
#define KILN_BASE_GZIP_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* By the magic bytes. */
bool kiln_gzip_detect(struct kiln_str data);
/* As kiln_decompressed_hint(). */
size_t kiln_gzip_size_hint(struct kiln_str data);

/* As kiln_decompress() and kiln_compress(). */
KILN_CHECK int kiln_gunzip(struct kiln_str data, struct kiln_buf *out, struct kiln_err *err);
KILN_CHECK int kiln_gzip(int level, struct kiln_str data, struct kiln_buf *out);

#endif /* KILN_BASE_GZIP_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a zlib stream, piece by piece: what libdeflate reads is read the same here.
 */
#include <string.h>

#include <libdeflate.h>

#include "fuzz.h"
#include "symbol/inflate.h"

enum { MOST = 640 << 10 };

static uint8_t ours[MOST], theirs[MOST];

/* How much came out, of at most MOST; negative: it is damaged. */
static int64_t by_pieces(const uint8_t *data, size_t size, uint8_t *to)
{
    struct kiln_bytes bytes = kiln_bytes_memory(data, size);
    struct kiln_inflate *inflate;
    size_t n = 1, all = 0;
    const uint8_t *piece;
    int r;

    if (kiln_inflate_open(&bytes, 0, size, &inflate) < 0)
        return 0;
    while ((r = kiln_inflate_next(inflate, &piece, &n)) == 0 && n > 0 && all + n <= MOST) {
        memcpy(to + all, piece, n);
        all += n;
    }
    if (r < 0)
        FUZZ_CHECK(kiln_inflate_next(inflate, &piece, &n) == r);
    kiln_inflate_close(inflate);
    return r < 0 ? r : (int64_t)all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    int64_t all = by_pieces(data, size, ours);
    size_t n;

    if (d && libdeflate_zlib_decompress(d, data, size, theirs, MOST, &n) == LIBDEFLATE_SUCCESS) {
        FUZZ_CHECK(all == (int64_t)n);
        FUZZ_CHECK(memcmp(ours, theirs, n) == 0);
    }
    libdeflate_free_decompressor(d);
    return 0;
}

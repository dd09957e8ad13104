/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decompression of anything, as gzip and as zstd, must end within its limit; and what we compress
 * must come back as it was.
 */
#include "base/compress.h"
#include "fuzz.h"

#define BYTES_MAX (1u << 20)

static void decompress(enum kiln_compression compression, struct kiln_str data)
{
    struct kiln_buf out;

    kiln_buf_init(&out, BYTES_MAX);
    FUZZ_CHECK(kiln_decompress(compression, data, &out, NULL) < 0 || out.len <= BYTES_MAX);
    kiln_buf_done(&out);
}

static void check_round_trip(enum kiln_compression compression, struct kiln_str data)
{
    struct kiln_buf packed, out;

    kiln_buf_init(&packed, BYTES_MAX);
    kiln_buf_init(&out, BYTES_MAX);
    if (kiln_compress(compression, 1, data, &packed) == 0)
        FUZZ_CHECK(kiln_decompress(compression, kiln_buf_str(&packed), &out, NULL) == 0 &&
                   kiln_str_eq(kiln_buf_str(&out), data));
    kiln_buf_done(&packed);
    kiln_buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str bytes = {(const char *)data, size};

    decompress(kiln_compression_of(bytes), bytes);
    decompress(KILN_GZIP, bytes);
    decompress(KILN_ZSTD, bytes);
    check_round_trip(KILN_GZIP, bytes);
    check_round_trip(KILN_ZSTD, bytes);
    return 0;
}

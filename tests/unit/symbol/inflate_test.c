/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <libdeflate.h>

#include "base/err.h"
#include "base/mem.h"
#include "symbol/inflate.h"
#include "test.h"

enum { LARGE = 1500000 };

/* Text of a few words, bytes of no order, and runs: all kinds of codes and distances. */
static uint8_t *make_content(size_t n)
{
    static const char *const words[] = {"debug", "line ", "\n", "aaaaaaaaaaaaaaaa",
                                        "_ZN",   "12",    "~"};
    uint8_t *made = malloc(n + 16);
    uint32_t state = 1;

    for (size_t at = 0; at < n;) {
        const char *word;

        state = state * 1664525 + 1013904223;
        word = words[(state >> 24) % 7];
        if (*word == '~') {
            made[at++] = (uint8_t)(state >> 16);
        } else {
            memcpy(made + at, word, strlen(word));
            at += strlen(word);
        }
    }
    return made;
}

static uint8_t *pack(int level, const uint8_t *data, size_t n, size_t *ret_n)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
    size_t bound = libdeflate_zlib_compress_bound(c, n);
    uint8_t *packed = malloc(bound);

    *ret_n = libdeflate_zlib_compress(c, data, n, packed, bound);
    libdeflate_free_compressor(c);
    return packed;
}

/* Whether it becomes `expected`; 0, or the error that it ends with. */
static int inflate_all(const uint8_t *packed, size_t n_packed, const uint8_t *expected, size_t n)
{
    struct kiln_bytes bytes = kiln_bytes_memory(packed, n_packed);
    struct kiln_inflate *inflate;
    const uint8_t *piece;
    size_t at = 0, more;
    int r;

    CHECK_OK(kiln_inflate_open(&bytes, 0, n_packed, &inflate));
    while ((r = kiln_inflate_next(inflate, &piece, &more)) == 0 && more > 0) {
        CHECK(at + more <= n);
        CHECK_EQ(memcmp(piece, expected + at, more), 0);
        at += more;
    }
    if (r == 0)
        CHECK_EQ(at, n);
    else
        CHECK_EQ(kiln_inflate_next(inflate, &piece, &more), r);
    kiln_inflate_close(inflate);
    return r;
}

TEST(inflate, streams_of_every_level_are_read_in_pieces)
{
    uint8_t *data = make_content(LARGE);

    for (int level = 0; level <= 12; level += 3) {
        size_t n;
        uint8_t *packed = pack(level, data, LARGE, &n);

        CHECK_OK(inflate_all(packed, n, data, LARGE));
        free(packed);
    }
    free(data);
}

TEST(inflate, small_streams_are_read_too)
{
    uint8_t *data = make_content(400);

    for (size_t size = 0; size < 400; size += 7) {
        size_t n;
        uint8_t *packed = pack(6, data, size, &n);

        CHECK_OK(inflate_all(packed, n, data, size));
        free(packed);
    }
    free(data);
}

TEST(inflate, a_stream_cut_anywhere_is_an_error)
{
    uint8_t *data = make_content(3000);

    for (int level = 0; level <= 6; level += 6) {
        size_t n;
        uint8_t *packed = pack(level, data, 3000, &n);

        for (size_t cut = 0; cut < n; cut++)
            CHECK(inflate_all(packed, cut, data, 3000) < 0);
        free(packed);
    }
    free(data);
}

TEST(inflate, another_checksum_or_header_is_an_error)
{
    uint8_t *data = make_content(3000), *packed;
    size_t n;

    packed = pack(6, data, 3000, &n);
    packed[n - 1] ^= 1;
    CHECK_EQ(inflate_all(packed, n, data, 3000), KILN_E_CORRUPT);
    packed[n - 1] ^= 1;
    packed[1] ^= 1;
    CHECK_EQ(inflate_all(packed, n, data, 3000), KILN_E_CORRUPT);
    free(packed);
    free(data);
}

TEST(inflate, what_looks_back_before_the_beginning_is_an_error)
{
    /* one block of fixed codes: length 3 (symbol 257), distance 1, at the very beginning */
    static const uint8_t packed[] = {0x78, 0x9c, 0x03, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01};

    CHECK_EQ(inflate_all(packed, sizeof(packed), NULL, 0), KILN_E_CORRUPT);
}

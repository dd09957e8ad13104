/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack - columns of unsigned integers as few bytes, four ways; a page tries and keeps the smallest.
 *
 * Decoding trusts nothing: it reads inside the bytes it was given and uses all of them, or fails.
 *
 * Threads: no state.
 */
#ifndef KILN_STORE_PACK_H
#define KILN_STORE_PACK_H

#include "base/buf.h"
#include "base/err.h"

/* On disk: never change a number. */
enum kiln_pack {
    KILN_PACK_BYTES = 0,  /* not numbers: bytes as they are */
    KILN_PACK_SAME = 1,   /* all equal: one varint */
    KILN_PACK_VARINT = 2, /* seven bits a byte, lowest first, the eighth set where more follow */
    KILN_PACK_BITS = 3,   /* groups of 128: smallest as varint, width as byte, then the rest above
                             the smallest, `width` bits each, lowest first */
    KILN_PACK_PLANES = 4, /* width in bytes as byte, then all lowest bytes, all second ones, ... */
    KILN_N_PACKS,
};

enum { KILN_PACK_GROUP = 128 };

/* Appends `n` > 0 numbers.  SAME only where they are. */
void kiln_pack_encode(enum kiln_pack how, const uint64_t *numbers, uint32_t n,
                      struct kiln_buf *out);
/* Fills `n` > 0 numbers from exactly these bytes.  Returns 0 or KILN_E_CORRUPT. */
KILN_CHECK int kiln_pack_decode(enum kiln_pack how, struct kiln_str bytes, uint32_t n,
                                uint64_t *numbers);
/* The bytes that BITS and PLANES would take, and VARINT. */
struct kiln_pack_sizes {
    uint64_t varint, bits, planes;
};
struct kiln_pack_sizes kiln_pack_measure(const uint64_t *numbers, uint32_t n);

/* Small numbers of either sign as small unsigned ones: 0, -1, 1, -2, 2, ... */
static inline uint64_t kiln_zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static inline int64_t kiln_unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

/* The difference of two numbers, whatever they are: it wraps, and so does adding it again. */
static inline uint64_t kiln_zigzag_diff(uint64_t to, uint64_t from)
{
    return kiln_zigzag((int64_t)(to - from));
}

static inline uint64_t kiln_zigzag_add(uint64_t from, uint64_t diff)
{
    return from + (uint64_t)kiln_unzigzag(diff);
}

/* Bytes of a number as VARINT. */
static inline uint32_t kiln_varint_size(uint64_t v)
{
    return (70u - (uint32_t)__builtin_clzll(v | 1)) / 7;
}

#endif /* KILN_STORE_PACK_H */

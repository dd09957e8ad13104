/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain loops over 64-bit numbers; the bytes are described in pack.h.  Bits are packed through an
 * accumulator of 128, so that a width of 64 is no special case.
 */
#include "store/pack.h"

#define VARINT_MAX 10u
#define NARROW     57u /* bits: with up to seven before them, they fit into a word */

static unsigned char *put_varint(unsigned char *at, uint64_t v)
{
    while (v >= 0x80) {
        *at++ = (unsigned char)(v | 0x80);
        v >>= 7;
    }
    *at++ = (unsigned char)v;
    return at;
}

/* The byte behind the number, or NULL where there is none. */
static const unsigned char *get_varint(const unsigned char *at, const unsigned char *end,
                                       uint64_t *ret)
{
    uint64_t v = 0;

    for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
        unsigned char byte = *at++;

        if (shift == 63 && byte > 1)
            return NULL;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret = v;
            return at;
        }
    }
    return NULL;
}

static unsigned width_of(uint64_t v)
{
    return v ? 64u - (unsigned)__builtin_clzll(v) : 0;
}

static size_t packed_size(uint32_t n, unsigned width)
{
    return ((size_t)n * width + 7) / 8;
}

struct span {
    uint64_t min, max;
};

static struct span span_of(const uint64_t *numbers, uint32_t n)
{
    struct span s = {numbers[0], numbers[0]};

    for (uint32_t i = 1; i < n; i++) {
        s.min = numbers[i] < s.min ? numbers[i] : s.min;
        s.max = numbers[i] > s.max ? numbers[i] : s.max;
    }
    return s;
}

static uint32_t group_size(uint32_t left)
{
    return left < KILN_PACK_GROUP ? left : KILN_PACK_GROUP;
}

struct kiln_pack_sizes kiln_pack_measure(const uint64_t *numbers, uint32_t n)
{
    struct kiln_pack_sizes sizes = {0};
    uint64_t max = 0;

    for (uint32_t i = 0; i < n; i += KILN_PACK_GROUP) {
        uint32_t k = group_size(n - i);
        struct span s = span_of(numbers + i, k);

        sizes.bits += 1 + kiln_varint_size(s.min) + packed_size(k, width_of(s.max - s.min));
        for (uint32_t j = 0; j < k; j++)
            sizes.varint += kiln_varint_size(numbers[i + j]);
        max = s.max > max ? s.max : max;
    }
    sizes.planes = 1 + (uint64_t)n * ((width_of(max) + 7) / 8);
    return sizes;
}

/* ---- encoding ---- */

static void encode_varints(const uint64_t *numbers, uint32_t n, struct kiln_buf *out)
{
    for (uint32_t i = 0; i < n; i += KILN_PACK_GROUP) {
        uint32_t k = group_size(n - i);
        unsigned char *start = (unsigned char *)kiln_buf_reserve(out, (size_t)k * VARINT_MAX);
        unsigned char *at = start;

        if (!start)
            return;
        for (uint32_t j = 0; j < k; j++)
            at = put_varint(at, numbers[i + j]);
        out->len += (size_t)(at - start);
    }
}

static unsigned char *pack_bits(unsigned char *at, const uint64_t *numbers, uint32_t n,
                                uint64_t base, unsigned width)
{
    __uint128_t held = 0;
    unsigned n_held = 0;

    for (uint32_t i = 0; i < n; i++) {
        held |= (__uint128_t)(numbers[i] - base) << n_held;
        n_held += width;
        if (n_held >= 64) {
            uint64_t word = (uint64_t)held;

            memcpy(at, &word, sizeof(word));
            at += sizeof(word);
            held >>= 64;
            n_held -= 64;
        }
    }
    for (; n_held; n_held = n_held > 8 ? n_held - 8 : 0) {
        *at++ = (unsigned char)held;
        held >>= 8;
    }
    return at;
}

static void encode_bits(const uint64_t *numbers, uint32_t n, struct kiln_buf *out)
{
    for (uint32_t i = 0; i < n; i += KILN_PACK_GROUP) {
        uint32_t k = group_size(n - i);
        struct span s = span_of(numbers + i, k);
        unsigned width = width_of(s.max - s.min);
        unsigned char *start =
            (unsigned char *)kiln_buf_reserve(out, VARINT_MAX + 1 + (size_t)k * sizeof(*numbers));
        unsigned char *at;

        if (!start)
            return;
        at = put_varint(start, s.min);
        *at++ = (unsigned char)width;
        at = pack_bits(at, numbers + i, k, s.min, width);
        out->len += (size_t)(at - start);
    }
}

static void encode_planes(const uint64_t *numbers, uint32_t n, struct kiln_buf *out)
{
    unsigned width = (width_of(span_of(numbers, n).max) + 7) / 8;
    char *at = kiln_buf_reserve(out, 1 + (size_t)n * width);

    if (!at)
        return;
    *at++ = (char)width;
    for (unsigned plane = 0; plane < width; plane++, at += n) {
        for (uint32_t i = 0; i < n; i++)
            at[i] = (char)(numbers[i] >> plane * 8);
    }
    out->len += 1 + (size_t)n * width;
}

void kiln_pack_encode(enum kiln_pack how, const uint64_t *numbers, uint32_t n, struct kiln_buf *out)
{
    switch (how) {
    case KILN_PACK_SAME:
        encode_varints(numbers, 1, out);
        break;
    case KILN_PACK_BITS:
        encode_bits(numbers, n, out);
        break;
    case KILN_PACK_PLANES:
        encode_planes(numbers, n, out);
        break;
    default:
        encode_varints(numbers, n, out);
    }
}

/* ---- decoding ---- */

static int decode_varints(const unsigned char *at, const unsigned char *end, uint32_t n,
                          uint64_t *numbers)
{
    for (uint32_t i = 0; i < n; i++) {
        if (KILN_LIKELY(at < end && *at < 0x80)) {
            numbers[i] = *at++;
            continue;
        }
        at = get_varint(at, end, &numbers[i]);
        if (!at)
            return KILN_E_CORRUPT;
    }
    return at == end ? 0 : KILN_E_CORRUPT;
}

static int decode_same(const unsigned char *at, const unsigned char *end, uint32_t n,
                       uint64_t *numbers)
{
    uint64_t value = 0;

    at = get_varint(at, end, &value);
    if (!at || at != end)
        return KILN_E_CORRUPT;
    for (uint32_t i = 0; i < n; i++)
        numbers[i] = value;
    return 0;
}

/* Numbers that are small enough for a word that begins with their first byte; as many bytes may be
 * read past their end. */
static void unpack_narrow(const unsigned char *from, uint32_t n, uint64_t base, unsigned width,
                          uint64_t *numbers)
{
    uint64_t mask = (UINT64_C(1) << width) - 1;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t bit = i * width;
        uint64_t word;

        memcpy(&word, from + bit / 8, sizeof(word));
        numbers[i] = base + (word >> bit % 8 & mask);
    }
}

static void unpack_bits(const unsigned char *from, size_t size, uint32_t n, uint64_t base,
                        unsigned width, uint64_t *numbers)
{
    unsigned char bytes[KILN_PACK_GROUP * 8 + 16]; /* may be read a little past the end */
    uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;

    memcpy(bytes, from, size);
    memset(bytes + size, 0, 16);
    if (width <= NARROW) {
        unpack_narrow(bytes, n, base, width, numbers);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        size_t bit = (size_t)i * width;
        __uint128_t words;

        memcpy(&words, bytes + bit / 8, sizeof(words));
        numbers[i] = base + ((uint64_t)(words >> bit % 8) & mask);
    }
}

static int decode_bits(const unsigned char *at, const unsigned char *end, uint32_t n,
                       uint64_t *numbers)
{
    for (uint32_t i = 0; i < n; i += KILN_PACK_GROUP) {
        uint32_t k = group_size(n - i);
        uint64_t base;
        unsigned width;

        at = get_varint(at, end, &base);
        if (!at || at == end || *at > 64)
            return KILN_E_CORRUPT;
        width = *at++;
        if (packed_size(k, width) > (size_t)(end - at))
            return KILN_E_CORRUPT;
        if (width <= NARROW && packed_size(k, width) + sizeof(uint64_t) <= (size_t)(end - at))
            unpack_narrow(at, k, base, width, numbers + i);
        else
            unpack_bits(at, packed_size(k, width), k, base, width, numbers + i);
        at += packed_size(k, width);
    }
    return at == end ? 0 : KILN_E_CORRUPT;
}

static int decode_planes(const unsigned char *at, const unsigned char *end, uint32_t n,
                         uint64_t *numbers)
{
    unsigned width;

    if (at == end || *at > 8)
        return KILN_E_CORRUPT;
    width = *at++;
    if ((uint64_t)(end - at) != (uint64_t)n * width)
        return KILN_E_CORRUPT;
    memset(numbers, 0, n * sizeof(*numbers));
    for (unsigned plane = 0; plane < width; plane++, at += n) {
        for (uint32_t i = 0; i < n; i++)
            numbers[i] |= (uint64_t)at[i] << plane * 8;
    }
    return 0;
}

int kiln_pack_decode(enum kiln_pack how, struct kiln_str bytes, uint32_t n, uint64_t *numbers)
{
    const unsigned char *at = (const unsigned char *)bytes.ptr;
    const unsigned char *end;

    if (bytes.len == 0)
        return KILN_E_CORRUPT;
    end = at + bytes.len;
    switch (how) {
    case KILN_PACK_SAME:
        return decode_same(at, end, n, numbers);
    case KILN_PACK_VARINT:
        return decode_varints(at, end, n, numbers);
    case KILN_PACK_BITS:
        return decode_bits(at, end, n, numbers);
    case KILN_PACK_PLANES:
        return decode_planes(at, end, n, numbers);
    default:
        return KILN_E_CORRUPT;
    }
}

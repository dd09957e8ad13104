/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor - reads little-endian numbers and LEB128 out of bytes in memory.
 *
 * Reading past the end gives zeros and sets `bad`, so that a reader looks once, at the end of what
 * it read.
 *
 * Threads: plain data.
 */
#ifndef KILN_SYMBOL_CURSOR_H
#define KILN_SYMBOL_CURSOR_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct kiln_cursor {
    const uint8_t *at, *end;
    bool bad;
};

static inline uint16_t kiln_get_16(const void *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof(value));
    return le16toh(value);
}

static inline uint32_t kiln_get_32(const void *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return le32toh(value);
}

static inline uint64_t kiln_get_64(const void *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return le64toh(value);
}

/* `n` bytes, which the cursor leaves behind; NULL: there are not so many. */
static inline const uint8_t *kiln_cursor_skip(struct kiln_cursor *c, uint64_t n)
{
    const uint8_t *at = c->at;

    if (n > (uint64_t)(c->end - c->at)) {
        c->bad = true;
        c->at = c->end;
        return NULL;
    }
    c->at += n;
    return at;
}

static inline uint8_t kiln_cursor_8(struct kiln_cursor *c)
{
    const uint8_t *at = kiln_cursor_skip(c, 1);

    return at ? *at : 0;
}

static inline uint16_t kiln_cursor_16(struct kiln_cursor *c)
{
    const uint8_t *at = kiln_cursor_skip(c, 2);

    return at ? kiln_get_16(at) : 0;
}

static inline uint32_t kiln_cursor_32(struct kiln_cursor *c)
{
    const uint8_t *at = kiln_cursor_skip(c, 4);

    return at ? kiln_get_32(at) : 0;
}

static inline uint64_t kiln_cursor_64(struct kiln_cursor *c)
{
    const uint8_t *at = kiln_cursor_skip(c, 8);

    return at ? kiln_get_64(at) : 0;
}

/* Seven bits a byte, lowest first; bits beyond the 64th are dropped. */
static inline uint64_t kiln_cursor_uleb(struct kiln_cursor *c)
{
    uint64_t value = 0;
    uint8_t byte;

    for (unsigned shift = 0;; shift += 7) {
        byte = kiln_cursor_8(c);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
}

static inline int64_t kiln_cursor_sleb(struct kiln_cursor *c)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        byte = kiln_cursor_8(c);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if ((byte & 0x40) && shift < 64)
        value |= ~(uint64_t)0 << shift;
    return (int64_t)value;
}

#endif /* KILN_SYMBOL_CURSOR_H */

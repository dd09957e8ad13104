/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pb - reading and writing the protobuf wire format by hand.
 *
 * Reading goes field by field over a buffer that is never copied:
 *
 *   struct kiln_pb r = kiln_pb_of(bytes);
 *   struct kiln_pb_field f;
 *   int n;
 *   while ((n = kiln_pb_next(&r, &f)) > 0)
 *       switch (f.tag) {
 *       case KILN_PB_VARINT(1): ... f.number ...
 *       case KILN_PB_BYTES(2):  ... f.bytes ...
 *       }
 *   if (n < 0) the input is bad
 *
 * The tag holds the field number and the wire type, so that a known field of a wrong type falls
 * through like an unknown one, as protobuf wants.  Groups, field number 0 and varints of more than
 * ten bytes are errors; nothing is ever read past the end.
 *
 * Writing goes backwards, from the last byte to the first: when a message is complete its length is
 * known, so nested messages need neither a second pass nor a copy.  Fields are therefore written in
 * descending order, repeated ones last to first, and come out ascending:
 *
 *   struct kiln_pb_out w;
 *   kiln_pb_out_init(&w, size_hint, max);
 *   size_t end = kiln_pb_mark(&w);
 *   kiln_pb_put_number(&w, 2, line);
 *   kiln_pb_put_number(&w, 1, function);
 *   kiln_pb_put_message(&w, 3, end);       // wraps what was written since the mark
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CODEC_PB_H
#define KILN_CODEC_PB_H

#include <stdint.h>
#include <string.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define KILN_PB_VARINT(field)  ((field) << 3 | 0u)
#define KILN_PB_FIXED64(field) ((field) << 3 | 1u)
#define KILN_PB_BYTES(field)   ((field) << 3 | 2u)
#define KILN_PB_FIXED32(field) ((field) << 3 | 5u)

struct kiln_pb {
    const uint8_t *at;
    const uint8_t *end;
};

struct kiln_pb_field {
    uint32_t tag;          /* field number << 3 | wire type */
    uint64_t number;       /* varint, fixed64, fixed32 */
    struct kiln_str bytes; /* length-delimited */
};

static inline struct kiln_pb kiln_pb_of(struct kiln_str bytes)
{
    const uint8_t *at = (const uint8_t *)bytes.ptr;

    return (struct kiln_pb){at, bytes.len ? at + bytes.len : at};
}

/*
 * Any varint, out of line.  Returns how many bytes it has, or a negative code.  It takes no reader
 * but its two ends, so that a reader never leaves its registers.
 */
int kiln_pb_varint_long(const uint8_t *at, const uint8_t *end, uint64_t *ret);

/* One varint.  Returns 1; 0 at the end of the buffer; KILN_E_TRUNCATED or KILN_E_MALFORMED. */
KILN_INLINE int kiln_pb_varint(struct kiln_pb *r, uint64_t *ret)
{
    if (KILN_UNLIKELY(r->at == r->end))
        return 0;
    if (KILN_LIKELY(r->at[0] < 0x80)) {
        *ret = *r->at++;
        return 1;
    }
    if (KILN_LIKELY(r->end - r->at >= 2 && r->at[1] < 0x80)) {
        *ret = (r->at[0] & 0x7fu) | (uint64_t)r->at[1] << 7;
        r->at += 2;
        return 1;
    }
    {
        uint64_t value;
        int n = kiln_pb_varint_long(r->at, r->end, &value);

        if (KILN_UNLIKELY(n < 0))
            return n;
        r->at += n;
        *ret = value;
        return 1;
    }
}

/* Seven bits of each of eight bytes, moved together: halves, quarters, all. */
static inline uint64_t kiln_pb_join_sevens(uint64_t x)
{
    x = (x & 0x007f007f007f007fu) | (x & 0x7f007f007f007f00u) >> 1;
    x = (x & 0x00003fff00003fffu) | (x & 0x3fff00003fff0000u) >> 2;
    return (x & 0x000000000fffffffu) | (x & 0x0fffffff00000000u) >> 4;
}

/*
 * One varint where ten bytes may be read.  Returns the byte after it, or NULL if it has more than
 * 64 bits; the caller finds out whether it ends where it should.
 */
KILN_INLINE const uint8_t *kiln_pb_varint_near(const uint8_t *p, uint64_t *ret)
{
    uint64_t eight, stops;

    if (KILN_LIKELY(p[0] < 0x80)) {
        *ret = p[0];
        return p + 1;
    }
    memcpy(&eight, p, 8);
    stops = ~eight & 0x8080808080808080u;
    if (KILN_LIKELY(stops)) {
        *ret = kiln_pb_join_sevens(eight & (stops ^ (stops - 1)) & 0x7f7f7f7f7f7f7f7fu);
        return p + __builtin_ctzll(stops) / 8 + 1;
    }
    *ret = kiln_pb_join_sevens(eight & 0x7f7f7f7f7f7f7f7fu) | (uint64_t)(p[8] & 0x7f) << 56;
    if (p[8] < 0x80)
        return p + 9;
    *ret |= (uint64_t)p[9] << 63;
    return KILN_LIKELY(p[9] <= 1) ? p + 10 : NULL;
}

KILN_INLINE int kiln_pb_fixed64(struct kiln_pb *r, uint64_t *ret)
{
    if (r->at == r->end)
        return 0;
    if (KILN_UNLIKELY(r->end - r->at < 8))
        return KILN_E_TRUNCATED;
    {
        uint64_t number;

        memcpy(&number, r->at, 8); /* little-endian hosts only, as the rest of Kiln */
        *ret = number;
    }
    r->at += 8;
    return 1;
}

/* A length and that many bytes. */
KILN_INLINE int kiln_pb_bytes(struct kiln_pb *r, struct kiln_str *ret)
{
    uint64_t len;
    int n = kiln_pb_varint(r, &len);

    if (KILN_UNLIKELY(n <= 0))
        return n ? n : KILN_E_TRUNCATED;
    if (KILN_UNLIKELY(len > (uint64_t)(r->end - r->at)))
        return KILN_E_TRUNCATED;
    *ret = (struct kiln_str){(const char *)r->at, (size_t)len};
    r->at += len;
    return 1;
}

/* The next field, its value read.  Returns 1, 0 at the end, or a negative code. */
KILN_INLINE int kiln_pb_next(struct kiln_pb *r, struct kiln_pb_field *f)
{
    uint64_t tag;
    int n = kiln_pb_varint(r, &tag);

    if (KILN_UNLIKELY(n <= 0))
        return n;
    if (KILN_UNLIKELY(tag < 8 || tag > UINT32_MAX))
        return KILN_E_MALFORMED;
    f->tag = (uint32_t)tag;
    if ((tag & 7) == 2)
        return kiln_pb_bytes(r, &f->bytes);
    if ((tag & 7) == 0) {
        n = kiln_pb_varint(r, &f->number);
        return KILN_LIKELY(n != 0) ? n : KILN_E_TRUNCATED;
    }
    if ((tag & 7) == 1) {
        n = kiln_pb_fixed64(r, &f->number);
        return KILN_LIKELY(n != 0) ? n : KILN_E_TRUNCATED;
    }
    if ((tag & 7) != 5)
        return KILN_E_MALFORMED;
    if (r->end - r->at < 4)
        return KILN_E_TRUNCATED;
    {
        uint32_t number;

        memcpy(&number, r->at, 4);
        f->number = number;
    }
    r->at += 4;
    return 1;
}

/*
 * The next element of a repeated message or string whose tag is one byte: true if the next field is
 * one and it is whole.  Otherwise nothing is read, and kiln_pb_next() says what comes instead.
 */
KILN_INLINE bool kiln_pb_element(struct kiln_pb *r, uint32_t tag, struct kiln_str *ret)
{
    const uint8_t *p = r->at;
    size_t len;

    if (KILN_UNLIKELY(r->end - p < 3 || p[0] != tag))
        return false;
    len = p[1];
    p += 2;
    if (len >= 0x80) {
        if (KILN_UNLIKELY(*p >= 0x80))
            return false;
        len = (len & 0x7f) | (size_t)*p++ << 7;
    }
    if (KILN_UNLIKELY(len > (size_t)(r->end - p)))
        return false;
    *ret = (struct kiln_str){(const char *)p, len};
    r->at = p + len;
    return true;
}

/* How many varints a packed field holds: its bytes without the high bit. */
size_t kiln_pb_count_varints(struct kiln_str packed);

/* ---- writing, backwards ---- */

struct kiln_pb_out {
    uint8_t *base; /* owned */
    uint8_t *at;   /* the first byte written so far */
    uint8_t *end;
    size_t max;
    int error;              /* sticky */
    struct kiln_pool *pool; /* as a buf's */
    size_t paid;
};

/* `hint`: about how many bytes are to come. */
void kiln_pb_out_init(struct kiln_pb_out *w, size_t hint, size_t max);
void kiln_pb_out_done(struct kiln_pb_out *w);

/* Appends all that was written to `out`, in the right order.  Returns 0 or the sticky error. */
KILN_CHECK int kiln_pb_out_flush(struct kiln_pb_out *w, struct kiln_buf *out);

/* Makes room for `n` more bytes in front; false on failure. */
bool kiln_pb_out_grow(struct kiln_pb_out *w, size_t n);

static inline bool kiln_pb_room(struct kiln_pb_out *w, size_t n)
{
    return KILN_LIKELY((size_t)(w->at - w->base) >= n) || kiln_pb_out_grow(w, n);
}

static inline size_t kiln_pb_varint_size(uint64_t v)
{
    return (size_t)(9 * (64 - __builtin_clzll(v | 1)) + 64) / 64;
}

/* A bare varint: for packed fields. */
static inline void kiln_pb_raw_varint(struct kiln_pb_out *w, uint64_t v)
{
    uint8_t *p;

    if (KILN_UNLIKELY(!kiln_pb_room(w, 10)))
        return;
    if (KILN_LIKELY(v < 0x80)) {
        *--w->at = (uint8_t)v;
        return;
    }
    w->at -= kiln_pb_varint_size(v);
    for (p = w->at; v >= 0x80; v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    *p = (uint8_t)v;
}

/* A row of them, first to last as they will be read.  Where all have room, none is asked for. */
static inline void kiln_pb_raw_varints(struct kiln_pb_out *w, const uint32_t *numbers, uint32_t n)
{
    uint8_t *at = w->at;

    if (KILN_UNLIKELY((size_t)(at - w->base) < (size_t)n * 5)) {
        while (n-- > 0)
            kiln_pb_raw_varint(w, numbers[n]);
        return;
    }
    while (n-- > 0) {
        uint32_t v = numbers[n];

        if (KILN_LIKELY(v < 1u << 14)) {
            at[-1] = (uint8_t)(v < 0x80 ? v : v >> 7);
            at[-2] = (uint8_t)(v | 0x80);
            at -= 1 + (v >= 0x80);
            continue;
        }
        at -= kiln_pb_varint_size(v);
        for (uint8_t *p = at;; v >>= 7) {
            *p++ = (uint8_t)(v | (v >= 0x80 ? 0x80 : 0));
            if (v < 0x80)
                break;
        }
    }
    w->at = at;
}

static inline void kiln_pb_raw_fixed64(struct kiln_pb_out *w, uint64_t v)
{
    if (KILN_UNLIKELY(!kiln_pb_room(w, 8)))
        return;
    w->at -= 8;
    memcpy(w->at, &v, 8);
}

static inline void kiln_pb_raw_bytes(struct kiln_pb_out *w, const void *data, size_t len)
{
    if (len == 0 || KILN_UNLIKELY(!kiln_pb_room(w, len)))
        return;
    w->at -= len;
    memcpy(w->at, data, len);
}

/* Where the next message or packed field will end: a distance from the end, so it survives growth.
 */
static inline size_t kiln_pb_mark(const struct kiln_pb_out *w)
{
    return (size_t)(w->end - w->at);
}

/* Once more what was written between two marks. */
static inline void kiln_pb_raw_again(struct kiln_pb_out *w, size_t from, size_t to)
{
    if (KILN_UNLIKELY(!kiln_pb_room(w, to - from)))
        return;
    w->at -= to - from;
    memcpy(w->at, w->end - to, to - from);
}

/* Puts tag and length before everything written since the mark. */
static inline void kiln_pb_put_message(struct kiln_pb_out *w, uint32_t field, size_t mark)
{
    kiln_pb_raw_varint(w, kiln_pb_mark(w) - mark);
    kiln_pb_raw_varint(w, KILN_PB_BYTES(field));
}

/* Fields.  Numbers of 0 and empty bytes are the default and are left out. */
static inline void kiln_pb_put_number(struct kiln_pb_out *w, uint32_t field, uint64_t v)
{
    if (v == 0)
        return;
    kiln_pb_raw_varint(w, v);
    kiln_pb_raw_varint(w, KILN_PB_VARINT(field));
}

static inline void kiln_pb_put_fixed64(struct kiln_pb_out *w, uint32_t field, uint64_t v)
{
    if (v == 0)
        return;
    kiln_pb_raw_fixed64(w, v);
    kiln_pb_raw_varint(w, KILN_PB_FIXED64(field));
}

static inline void kiln_pb_put_bytes(struct kiln_pb_out *w, uint32_t field, struct kiln_str s)
{
    if (s.len == 0)
        return;
    kiln_pb_raw_bytes(w, s.ptr, s.len);
    kiln_pb_raw_varint(w, s.len);
    kiln_pb_raw_varint(w, KILN_PB_BYTES(field));
}

/* The same, also when empty: elements of a repeated field, members of a oneof. */
static inline void kiln_pb_put_element(struct kiln_pb_out *w, uint32_t field, struct kiln_str s)
{
    kiln_pb_raw_bytes(w, s.ptr, s.len);
    kiln_pb_raw_varint(w, s.len);
    kiln_pb_raw_varint(w, KILN_PB_BYTES(field));
}

#endif /* KILN_CODEC_PB_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jfr_read - integers and strings of a recording, as they lie there.
 *
 * Threads: plain data, no state.
 */
#ifndef KILN_CODEC_JFR_READ_H
#define KILN_CODEC_JFR_READ_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"

/* ---- reading bytes ---- */

/* A place in a chunk.  The first failure sticks, and everything reads as 0 after it. */
struct kiln_jfr_in {
    const uint8_t *at;
    const uint8_t *end;
    int error;
};

static inline void kiln_jfr_in_fail(struct kiln_jfr_in *in, int code)
{
    if (!in->error)
        in->error = code;
    in->at = in->end;
}

static inline size_t kiln_jfr_in_left(const struct kiln_jfr_in *in)
{
    return (size_t)(in->end - in->at);
}

uint64_t kiln_jfr_varint_long(struct kiln_jfr_in *in);

/* An integer: 7 bits a byte, low ones first; a ninth byte holds 8 bits. */
static inline uint64_t kiln_jfr_varint(struct kiln_jfr_in *in)
{
    if (KILN_LIKELY(in->at < in->end && *in->at < 0x80))
        return *in->at++;
    return kiln_jfr_varint_long(in);
}

static inline void kiln_jfr_skip(struct kiln_jfr_in *in, uint64_t bytes)
{
    if (KILN_UNLIKELY(bytes > kiln_jfr_in_left(in)))
        kiln_jfr_in_fail(in, KILN_E_TRUNCATED);
    else
        in->at += bytes;
}

/* A number of things to come, each of at least one byte. */
static inline uint64_t kiln_jfr_count(struct kiln_jfr_in *in)
{
    uint64_t n = kiln_jfr_varint(in);

    if (KILN_LIKELY(n <= kiln_jfr_in_left(in)))
        return n;
    kiln_jfr_in_fail(in, KILN_E_TRUNCATED);
    return 0;
}

/* ---- texts ---- */

enum kiln_jfr_encoding {
    KILN_JFR_NULL,
    KILN_JFR_EMPTY,
    KILN_JFR_REF,    /* the id of an entry of the pool of java.lang.String */
    KILN_JFR_UTF8,   /* Java's kind of it: NUL as two bytes, characters past U+FFFF as six */
    KILN_JFR_CHARS,  /* UTF-16 units, an integer each */
    KILN_JFR_LATIN1, /* a byte each */
};

/* A string where it lies: the bytes after encoding and count. */
struct kiln_jfr_text {
    const uint8_t *ptr;
    uint32_t len;      /* bytes */
    uint32_t encoding; /* enum kiln_jfr_encoding */
};

/* The longest text that is kept, in bytes of UTF-8: the rest is cut off. */
#define KILN_JFR_TEXT_MAX 4096u

struct kiln_jfr_text kiln_jfr_read_text(struct kiln_jfr_in *in);

/* Writes UTF-8 into out[KILN_JFR_TEXT_MAX]; a REF must have been resolved.  Returns its length. */
size_t kiln_jfr_text_format(struct kiln_jfr_text text, char *out);

/*
 * Names that differ from run to run (lambdas, generated accessors, unpacked libraries) become one:
 * Shop$$Lambda$21/0x0000000800c03000 is Shop$$Lambda_.  Works in place; returns the new length.
 */
size_t kiln_jfr_plain_name(char *name, size_t len);

#endif /* KILN_CODEC_JFR_READ_H */

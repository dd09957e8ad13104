/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json - reading and writing JSON (RFC 8259) in one pass, without a tree in between.
 *
 * The reader pulls: the caller says what it expects next and gets it, or an error that names line
 * and column.
 *
 *   kiln_json_init(&r, text, &err);
 *   n = kiln_json_object(&r);
 *   while (n == 0 && (n = kiln_json_member(&r, &name)) > 0)
 *       n = kiln_str_eq(name, KILN_STR("period")) ? kiln_json_i64(&r, &period) :
 * kiln_json_skip(&r); if (n < 0) err says why kiln_json_done(&r);
 *
 * Every call returns 0 (or 1 where it says so), or a negative code; the first error sticks and
 * every later call returns it again, so that a loop may look once.  Syntax is strict: no comments,
 * no trailing commas, no bare words, UTF-8 checked, no unpaired surrogates.  A byte order mark at
 * the start is passed over.  64-bit integers stay exact.
 *
 * Memory: one buffer for the longest string with an escape; everything else points into the text.
 *
 * The writer appends to a kiln_buf and keeps no state but a comma: whoever closes what he opened
 * gets valid JSON.  Bytes that are not UTF-8 are written as U+FFFD.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_BASE_JSON_H
#define KILN_BASE_JSON_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* Objects and arrays within each other. */
#define KILN_JSON_DEPTH_MAX 512u

struct kiln_json {
    const char *at;
    const char *end;
    const char *start;
    const char *last;     /* where the last string or number starts */
    struct kiln_err *err; /* may be NULL */
    struct kiln_buf scratch;
    uint32_t depth;
    bool first; /* no member or element of the innermost container has been read yet */
    int error;  /* sticky */
};

enum kiln_json_kind {
    KILN_JSON_NOTHING, /* the end of the text, or no value can start here */
    KILN_JSON_OBJECT,
    KILN_JSON_ARRAY,
    KILN_JSON_STRING,
    KILN_JSON_NUMBER,
    KILN_JSON_BOOL,
    KILN_JSON_NULL,
};

void kiln_json_init(struct kiln_json *r, struct kiln_str text, struct kiln_err *err);
void kiln_json_done(struct kiln_json *r);

/* What the next value is, by its first byte; nothing is consumed. */
enum kiln_json_kind kiln_json_peek(struct kiln_json *r);

/* Enters an object; then `member` gives 1 and a name for each member, whose value must be read or
 * skipped, and 0 after the last.  The name is borrowed until the next call. */
KILN_CHECK int kiln_json_object(struct kiln_json *r);
KILN_CHECK int kiln_json_member(struct kiln_json *r, struct kiln_str *ret_name);

/* Enters an array; then `element` gives 1 before each element, which must be read, and 0 at the
 * end. */
KILN_CHECK int kiln_json_array(struct kiln_json *r);
KILN_CHECK int kiln_json_element_slow(struct kiln_json *r);

static inline KILN_CHECK int kiln_json_element(struct kiln_json *r)
{
    if (KILN_LIKELY(r->at < r->end && *r->at == ',' && !r->first)) {
        r->at++;
        return 1;
    }
    return kiln_json_element_slow(r);
}

/* A string: a part of the text, or, if it has escapes, borrowed until the next call. */
KILN_CHECK int kiln_json_string(struct kiln_json *r, struct kiln_str *ret);
KILN_CHECK int kiln_json_bool(struct kiln_json *r, bool *ret);

/* A number that is an integer ("12", also "1.2e1") in range; else an error. */
KILN_CHECK int kiln_json_i64(struct kiln_json *r, int64_t *ret);
KILN_CHECK int kiln_json_u64(struct kiln_json *r, uint64_t *ret);
/* Any finite number, rounded to the nearest double. */
KILN_CHECK int kiln_json_double(struct kiln_json *r, double *ret);
/* The text of a number, its syntax checked. */
KILN_CHECK int kiln_json_number(struct kiln_json *r, struct kiln_str *ret);

/* Passes over a value of any kind and checks its syntax. */
KILN_CHECK int kiln_json_skip(struct kiln_json *r);

/* Consumes a null: 1, or 0 where the value is something else. */
KILN_CHECK int kiln_json_null(struct kiln_json *r);

/* 1 if another value follows at the top level (JSON lines), 0 if only white space does. */
KILN_CHECK int kiln_json_more(struct kiln_json *r);

/* Where a value starts, to come back to it with `seek` when what it refers to has been read. */
size_t kiln_json_tell(struct kiln_json *r);
void kiln_json_seek(struct kiln_json *r, size_t position);

/* Fails with a sentence of the caller's; line and column of the last string or number are added. */
int kiln_json_fail(struct kiln_json *r, int code, const char *fmt, ...) KILN_PRINTF(3, 4);

/* Numbers that stand in a string, in JSON's syntax.  0, KILN_E_MALFORMED or -ERANGE. */
KILN_CHECK int kiln_json_parse_i64(struct kiln_str text, int64_t *ret);
KILN_CHECK int kiln_json_parse_u64(struct kiln_str text, uint64_t *ret);
KILN_CHECK int kiln_json_parse_double(struct kiln_str text, double *ret);

/* ---- writing ---- */

struct kiln_json_out {
    struct kiln_buf *buf;
    uint32_t indent; /* spaces a level; 0: all on one line, without spaces */
    uint32_t depth;
    bool first;    /* nothing is in the innermost container yet */
    bool has_name; /* a name was written, its value comes */
};

void kiln_json_out_init(struct kiln_json_out *w, struct kiln_buf *buf, uint32_t indent);

void kiln_json_put_object(struct kiln_json_out *w);
void kiln_json_end_object(struct kiln_json_out *w);
void kiln_json_put_array(struct kiln_json_out *w);
void kiln_json_end_array(struct kiln_json_out *w);

/* A name of a member: one that needs no escapes, and any. */
void kiln_json_put_name(struct kiln_json_out *w, const char *name);
void kiln_json_put_name_str(struct kiln_json_out *w, struct kiln_str name);

void kiln_json_put_str(struct kiln_json_out *w, struct kiln_str s);
void kiln_json_put_i64(struct kiln_json_out *w, int64_t value);
void kiln_json_put_u64(struct kiln_json_out *w, uint64_t value);
/* In quotes, for readers whose numbers are doubles. */
void kiln_json_put_i64_text(struct kiln_json_out *w, int64_t value);
void kiln_json_put_u64_text(struct kiln_json_out *w, uint64_t value);
/* The shortest text that reads back as the same double; "NaN", "Infinity", "-Infinity" in quotes.
 */
void kiln_json_put_double(struct kiln_json_out *w, double value);
void kiln_json_put_bool(struct kiln_json_out *w, bool flag);
void kiln_json_put_null(struct kiln_json_out *w);

/* Opens a string value whose text is appended to w->buf by the caller, already without anything
 * that needs an escape (hexadecimal, base64); and closes it. */
void kiln_json_put_raw_begin(struct kiln_json_out *w);
void kiln_json_put_raw_end(struct kiln_json_out *w);

#endif /* KILN_BASE_JSON_H */

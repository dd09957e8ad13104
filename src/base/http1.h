/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1 - the grammar of HTTP/1.1: heads of requests and of answers, and bodies, from bytes that
 * come in any pieces.
 *
 * Strict, because two programs that read the same bytes differently are how requests are smuggled:
 * lines end in CR LF, names are tokens followed by their colon, no line is continued, a length is
 * said once and in one way.  What breaks a rule is refused with a status; nothing is guessed.
 *
 * Threads: one owner at a time; no other state.
 */
#ifndef KILN_BASE_HTTP1_H
#define KILN_BASE_HTTP1_H

#include "base/str.h"

struct kiln_header {
    struct kiln_str name; /* lower case */
    struct kiln_str value;
};

enum { KILN_HTTP_HEADERS_MAX = 128 };

/* A head, of either protocol.  Everything points into the bytes that were parsed. */
struct kiln_http_head {
    int status; /* of an answer; then without method and target */
    struct kiln_str method;
    struct kiln_str target; /* as it came: "/a%20b?c=d" */
    struct kiln_header headers[KILN_HTTP_HEADERS_MAX];
    uint32_t n_headers;
    int minor;       /* HTTP/1.minor */
    bool keep_alive; /* the client wants to go on with the connection */
    bool expect;     /* 100-continue */
    bool chunked;    /* a body follows, in chunks */
    bool has_length; /* Content-Length was there */
    uint64_t length; /* of the body */
};

/* How far the search for the end of a head has come; zero at its first byte. */
struct kiln_http1_scan {
    size_t line; /* where the line starts that has not ended yet */
    size_t at;   /* what lies before has been looked at */
};

/*
 * Finds the empty line that ends a head which starts at `data`.  Returns its length with that
 * line, 0 if it is not there yet (call again with more), or KILN_E_MALFORMED.
 */
KILN_CHECK int64_t kiln_http1_find_end(struct kiln_http1_scan *scan, struct kiln_str data);

/*
 * Parses a whole head, names to lower case in place.  Returns 0, or the status to refuse it with:
 * 400, 417, 431, 501 or 505.
 */
KILN_CHECK int kiln_http1_parse_head(char *data, size_t len, struct kiln_http_head *ret_head);

/* The same for the head of an answer.  Returns 0 or KILN_E_MALFORMED. */
KILN_CHECK int kiln_http1_parse_answer(char *data, size_t len, struct kiln_http_head *ret_head);

/* ---- bodies ---- */

enum kiln_http1_body_state {
    KILN_BODY_LENGTH, /* `left` bytes */
    KILN_BODY_SIZE,   /* digits of a chunk's size */
    KILN_BODY_EXTENSION,
    KILN_BODY_SIZE_LF,
    KILN_BODY_DATA,
    KILN_BODY_DATA_CR,
    KILN_BODY_DATA_LF,
    KILN_BODY_TRAILER, /* at the start of a line */
    KILN_BODY_TRAILER_NAME,
    KILN_BODY_TRAILER_VALUE,
    KILN_BODY_TRAILER_LF,
    KILN_BODY_LAST_LF,
    KILN_BODY_DONE,
};

struct kiln_http1_body {
    enum kiln_http1_body_state state;
    uint32_t digits;   /* of a chunk's size */
    uint32_t overhead; /* bytes of extensions and trailers so far */
    uint64_t left;
};

void kiln_http1_body_init(struct kiln_http1_body *body, const struct kiln_http_head *head);

/*
 * Takes bytes from the front of *in; *ret_piece is the content among them, possibly empty.
 * Returns 1 while there may be more (call again while *in is not empty), 0 at the end of the body,
 * or KILN_E_MALFORMED, KILN_E_LIMIT for trailers without end.
 */
KILN_CHECK int kiln_http1_body_next(struct kiln_http1_body *body, struct kiln_str *in,
                                    struct kiln_str *ret_piece);

#endif /* KILN_BASE_HTTP1_H */

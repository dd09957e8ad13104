/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer - reads what a server of HTTP/1.1 answers, from bytes that come in any pieces.
 *
 * Interim answers (100 and the like) are passed over.  A body has a length, comes in chunks, or
 * lasts until the server closes the connection.  One that is too long is left out: whether a
 * request was taken is told by the status, and who sends it again sends it twice.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_INPROC_OUT_ANSWER_H
#define KILN_INPROC_OUT_ANSWER_H

#include "base/buf.h"
#include "base/err.h"
#include "base/http1.h"

enum {
    KILN_IN_ANSWER_HEAD_MAX = 32 << 10,
    KILN_IN_ANSWER_BODY_MAX = 256 << 10,
};

struct kiln_in_answer {
    int status;              /* 0 until the head is there */
    bool keep_alive;         /* the connection may be used again */
    bool until_close;        /* the end of the connection ends the body */
    bool is_protobuf;        /* what the body is said to be */
    uint32_t retry_after_ms; /* 0: not said */
    struct kiln_buf head, body;
    struct kiln_http1_scan scan;
    struct kiln_http1_body state;
};

void kiln_in_answer_init(struct kiln_in_answer *answer);
void kiln_in_answer_done(struct kiln_in_answer *answer);

/*
 * Takes the next bytes.  1: more is to come; 0: it is complete; KILN_E_MALFORMED, KILN_E_LIMIT (of
 * its head) or -ENOMEM.  Behind the end of an answer nobody asked for bytes: then the connection is
 * not used again.
 */
KILN_CHECK int kiln_in_answer_feed(struct kiln_in_answer *answer, struct kiln_str bytes);
/* No more bytes will come: 0, or KILN_E_TRUNCATED. */
KILN_CHECK int kiln_in_answer_end(struct kiln_in_answer *answer);

/* "120" or "Sun, 06 Nov 1994 08:49:37 GMT" as milliseconds from `now_s` (Unix time) on; 0: neither,
 * or past. */
uint32_t kiln_in_retry_after(struct kiln_str text, uint64_t now_s);

#endif /* KILN_INPROC_OUT_ANSWER_H */

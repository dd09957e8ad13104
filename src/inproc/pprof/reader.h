/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader - requests out of the bytes of a connection, which come in any pieces.
 *
 *   room() -> recv() -> took()  ──▶  HEAD: may it go on?  ──▶  took(0)  ──▶  WHOLE  ──▶  next()
 *
 * After the head somebody decides whether the body is wanted at all; nothing is allocated for it
 * before.  What follows a request (pipelined) waits until next().
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_INPROC_PPROF_READER_H
#define KILN_INPROC_PPROF_READER_H

#include "base/buf.h"
#include "base/http1.h"

enum {
    KILN_IN_HEAD_BYTES = 12 << 10, /* of a request's head, at most */
    KILN_IN_BODY_BYTES = 1 << 20,  /* of its body */
    KILN_IN_READER_BYTES = 16 << 10
};

/* Points into the reader. */
struct kiln_in_request {
    struct kiln_str method;
    struct kiln_str path;  /* as it came, without the query */
    struct kiln_str query; /* as it came, without the question mark */
    struct kiln_str authorization;
    struct kiln_str body;
    bool has_body; /* one follows, or has come */
};

enum kiln_in_read {
    KILN_IN_READ_MORE,
    KILN_IN_READ_HEAD,  /* the request but for its body */
    KILN_IN_READ_WHOLE, /* all of it */
    /* or a status from 400 on, to refuse it with: nothing more can be read */
};

struct kiln_in_reader {
    char *bytes; /* the head, and what follows */
    size_t len;
    struct kiln_http1_scan scan;
    size_t head; /* bytes of the head; 0 until it is there */
    struct kiln_http1_body framing;
    struct kiln_buf body;
    struct kiln_in_request request;
    bool keep_alive; /* the client wants to go on */
    bool expect;     /* it waits for a word before it sends the body */
};

/* 0 or -ENOMEM. */
KILN_CHECK int kiln_in_reader_init(struct kiln_in_reader *reader);
void kiln_in_reader_done(struct kiln_in_reader *reader);

/* Where the next bytes go, never none while took() says MORE; and: so many came. */
char *kiln_in_reader_room(struct kiln_in_reader *reader, size_t *ret_n);
KILN_CHECK int kiln_in_reader_took(struct kiln_in_reader *reader, size_t n);

/* Forgets the request; what came behind it is the start of the next: as took(). */
KILN_CHECK int kiln_in_reader_next(struct kiln_in_reader *reader);

#endif /* KILN_INPROC_PPROF_READER_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply - what a request is answered with, in the shapes of Go's net/http/pprof: an error is a line
 * of plain text under the header X-Go-Pprof, without which `go tool pprof` shows no reason.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_INPROC_PPROF_REPLY_H
#define KILN_INPROC_PPROF_REPLY_H

#include <stdbool.h>

#include "base/buf.h"

enum { KILN_IN_REPLY_BYTES = 64 << 20 }; /* of a body, at most */

struct kiln_in_reply {
    int status;
    const char *type;     /* of the content */
    const char *location; /* NULL: none */
    const char *allow;    /* methods; NULL: not said */
    char file[48];        /* the name under which to keep it; "": none */
    struct kiln_buf body;
    bool failed; /* an error of pprof's shape */
};

void kiln_in_reply_init(struct kiln_in_reply *reply);
void kiln_in_reply_done(struct kiln_in_reply *reply);

/* Whatever was there becomes an error: one sentence. */
void kiln_in_reply_fail(struct kiln_in_reply *reply, int status, const char *fmt, ...)
    KILN_PRINTF(3, 4);

/* Appends status line and headers, up to the empty line. */
void kiln_in_reply_head(const struct kiln_in_reply *reply, bool keep_alive, struct kiln_buf *out);

#endif /* KILN_INPROC_PPROF_REPLY_H */

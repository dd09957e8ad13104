/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_body - bodies of requests: JSON objects whose members are all known.
 *
 * Threads: as native_int.h.
 */
#ifndef KILN_API_NATIVE_BODY_H
#define KILN_API_NATIVE_BODY_H

#include "api/native_int.h"

struct kiln_native_body {
    struct kiln_native_call *call;
    struct kiln_json json;
};

/*
 * Reads the body, uncompressed first where it must be; `member` is called for each member of the
 * object and reads its value.  Errors are -EBADMSG, and name the line.
 */
KILN_CHECK int kiln_native_body_read(struct kiln_native_call *call,
                                     int (*member)(struct kiln_native_body *body,
                                                   struct kiln_str name, void *context),
                                     void *context);

/* The body as text; where it must be uncompressed, in `plain`, whose max is the limit. */
KILN_CHECK int kiln_native_body_plain(struct kiln_native_call *call, struct kiln_buf *plain,
                                      struct kiln_str *ret);

/* A text, kept with the call. */
KILN_CHECK int kiln_native_body_text(struct kiln_native_body *body, size_t max,
                                     struct kiln_str *ret);
/* A time: a text as parameters have it, or a number (Unix time). */
KILN_CHECK int kiln_native_body_time(struct kiln_native_body *body, const char *name,
                                     uint64_t *ret_ns);
/* Refuses a member, naming those that are known. */
int kiln_native_body_unknown(struct kiln_native_body *body, struct kiln_str name,
                             const char *known);

#endif /* KILN_API_NATIVE_BODY_H */

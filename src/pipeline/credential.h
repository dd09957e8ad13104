/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credential - who calls: a header that is asked for before each call, for what it holds may have
 * changed.
 *
 * Threads: asked from anywhere.
 */
#ifndef KILN_PIPELINE_CREDENTIAL_H
#define KILN_PIPELINE_CREDENTIAL_H

#include "base/buf.h"
#include "base/err.h"
#include "base/http1.h"

struct kiln_credential {
    /* Appends to both, which are empty.  NULL: nobody is asked. */
    int (*header)(void *context, struct kiln_buf *name, struct kiln_buf *value,
                  struct kiln_err *err);
    void *context; /* outlives whoever calls */
};

enum { KILN_SIGNED_MAX = 64 };

/* All headers of one call, with the credential in the place of one of its name. */
struct kiln_signed {
    struct kiln_buf name, value;
    struct kiln_header headers[KILN_SIGNED_MAX + 1];
    uint32_t n;
};

/*
 * `headers` are KILN_SIGNED_MAX at most, and outlive `ret`, which stays where it is until it is
 * done; that it need not be after a failure.
 */
KILN_CHECK int kiln_sign(const struct kiln_credential *credential,
                         const struct kiln_header *headers, uint32_t n, struct kiln_signed *ret,
                         struct kiln_err *err);
void kiln_signed_done(struct kiln_signed *done);

#endif /* KILN_PIPELINE_CREDENTIAL_H */

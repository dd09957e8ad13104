/* SPDX-License-Identifier: Apache-2.0 */
/*
 * params - percent-encoding, and the parameters of a query that are written in it.
 *
 * Threads: one owner at a time; no other state.
 */
#ifndef KILN_BASE_PARAMS_H
#define KILN_BASE_PARAMS_H

#include "base/buf.h"

/*
 * Appends the decoded text to `out`; with `form`, "+" is a space, as in queries.  Returns 0,
 * KILN_E_MALFORMED for a "%" without two digits, -ENOMEM or KILN_E_LIMIT.
 */
KILN_CHECK int kiln_percent_decode(struct kiln_str text, bool form, struct kiln_buf *out);

/* Goes through all parameters; names and values are decoded, and borrowed until the next call. */
struct kiln_params {
    struct kiln_str rest;
    struct kiln_buf buf;
    struct kiln_str name, value;
};
void kiln_params_init(struct kiln_params *params, struct kiln_str query);
KILN_CHECK int kiln_params_next(struct kiln_params *params); /* 1, 0 at the end, or an error */
void kiln_params_done(struct kiln_params *params);

#endif /* KILN_BASE_PARAMS_H */

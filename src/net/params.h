/* SPDX-License-Identifier: Apache-2.0 */
/*
 * params - percent-encoding.
 *
 * Threads: no state.
 */
#ifndef KILN_NET_PARAMS_H
#define KILN_NET_PARAMS_H

#include "base/buf.h"

/*
 * Appends the decoded text to `out`; with `form`, "+" is a space, as in queries.  Returns 0,
 * KILN_E_MALFORMED for a "%" without two digits, -ENOMEM or KILN_E_LIMIT.
 */
KILN_CHECK int kiln_percent_decode(struct kiln_str text, bool form, struct kiln_buf *out);

#endif /* KILN_NET_PARAMS_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * htpasswd - passwords as Apache's htpasswd writes them: plain, {SHA}, {SSHA}, $apr1$, and what
 * crypt(3) knows (bcrypt $2y$, $5$, $6$).
 *
 * Threads: pure functions.
 */
#ifndef KILN_COLLECTOR_HTPASSWD_H
#define KILN_COLLECTOR_HTPASSWD_H

#include "base/err.h"
#include "base/str.h"

/* Whether a password is the one that `hash`, which stands behind a name and a colon, is of. */
bool kiln_htpasswd_fits(const char *password, struct kiln_str hash);
/* Whether that takes its time, on purpose. */
bool kiln_htpasswd_is_slow(struct kiln_str hash);

/* Whether all lines ("name:hash") are of a kind that is known; the error names the first other. */
KILN_CHECK int kiln_htpasswd_check(struct kiln_str lines, struct kiln_err *err);

#endif /* KILN_COLLECTOR_HTPASSWD_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * masking - hashes in the place of what must not be seen, as the Collector's `hash_function` has
 * them: sha1, md5, sha3 (256 bits), hmac-sha256 and hmac-sha512 with an `hmac_key`.
 *
 * Threads: no state.
 */
#ifndef KILN_COLLECTOR_PROCESSORS_MASKING_H
#define KILN_COLLECTOR_PROCESSORS_MASKING_H

#include "base/config.h"
#include "core/redact.h"

/* As written; NULL: not there. */
struct kiln_masking {
    const char *function, *key;
};

/* Whether there is such a function, and a key that is long enough; faults are told at `node`. */
KILN_CHECK int kiln_masking_check(const struct kiln_node *node, const struct kiln_masking *masking,
                                  struct kiln_err *err);

/* Has a rule write hashes, where a function is named; `masking` must live as long as the rule. */
void kiln_masking_apply(const struct kiln_masking *masking, struct kiln_redact_spec *spec);

#endif /* KILN_COLLECTOR_PROCESSORS_MASKING_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256 - SHA-256 (FIPS 180-4), for fingerprints that are the same everywhere and for ever.
 *
 * Threads: no state.
 */
#ifndef KILN_BASE_SHA256_H
#define KILN_BASE_SHA256_H

#include <stdint.h>

#include "base/str.h"

#define KILN_SHA256_BYTES 32

void kiln_sha256(struct kiln_str data, uint8_t ret_digest[KILN_SHA256_BYTES]);

#endif /* KILN_BASE_SHA256_H */

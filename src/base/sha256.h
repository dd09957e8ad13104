/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256 - SHA-256 (FIPS 180-4), for fingerprints that are the same everywhere and for ever.
 *
 * Threads: a run has one owner at a time; the rest has no state.
 */
#ifndef KILN_BASE_SHA256_H
#define KILN_BASE_SHA256_H

#include <stdint.h>

#include "base/str.h"

#define KILN_SHA256_BYTES 32

void kiln_sha256(struct kiln_str data, uint8_t ret_digest[KILN_SHA256_BYTES]);

/* The same of data that comes in pieces: begin, add each, end. */
struct kiln_sha256_run {
    uint32_t state[8];
    uint64_t len;
    uint8_t rest[64]; /* len % 64 bytes that make no whole block yet */
};
void kiln_sha256_begin(struct kiln_sha256_run *run);
void kiln_sha256_add(struct kiln_sha256_run *run, struct kiln_str piece);
void kiln_sha256_end(struct kiln_sha256_run *run, uint8_t ret_digest[KILN_SHA256_BYTES]);

#endif /* KILN_BASE_SHA256_H */

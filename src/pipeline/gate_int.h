/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_int - tokens and buckets, the two halves of the gate.
 *
 * Threads: a set of tokens is constant once read; buckets have a lock.
 */
#ifndef KILN_PIPELINE_GATE_INT_H
#define KILN_PIPELINE_GATE_INT_H

#include "base/sha256.h"
#include "pipeline/gate.h"

/* ---- tokens ---- */

struct kiln_token {
    uint8_t digest[KILN_SHA256_BYTES];
    unsigned access;                  /* bits: 1 << enum kiln_access */
    char tenant[KILN_TENANT_MAX + 1]; /* "": any */
    char name[64];
};

struct kiln_tokens {
    struct kiln_token *list;
    uint32_t n;
};

KILN_CHECK int kiln_tokens_load(const char *path, struct kiln_tokens *ret_tokens,
                                struct kiln_err *err);
void kiln_tokens_done(struct kiln_tokens *tokens);

/* The token that a client sent, or NULL; takes the same time whatever is wrong with it. */
const struct kiln_token *kiln_tokens_find(const struct kiln_tokens *tokens, struct kiln_str secret);

/* The secret in an Authorization header: a bearer's token, or a password, decoded into `room`.
 * KILN_STR_NONE where there is none. */
struct kiln_str kiln_token_secret(struct kiln_str header, char *room, size_t size);

/* ---- buckets ---- */

struct kiln_buckets;

KILN_CHECK int kiln_buckets_new(uint64_t bytes_per_s, uint64_t burst_bytes,
                                struct kiln_buckets **ret_buckets);
void kiln_buckets_free(struct kiln_buckets *buckets);

/*
 * Takes `bytes` from a tenant's bucket, which may go below empty once: the next one waits.  Returns
 * 0, or how many seconds it takes until there is something again (`bytes` are not taken then).
 */
uint32_t kiln_buckets_take(struct kiln_buckets *buckets, const char *tenant, uint64_t bytes);
/* Takes them in any case. */
void kiln_buckets_charge(struct kiln_buckets *buckets, const char *tenant, uint64_t bytes);

#endif /* KILN_PIPELINE_GATE_INT_H */

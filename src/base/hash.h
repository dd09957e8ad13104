/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash - fast seeded hashing for in-memory tables.
 *
 * The seed is drawn once per process, so that a sender cannot prepare keys that collide.  Hashes
 * therefore differ from run to run: they never reach a file, the wire or the order of anything.
 *
 * Threads: safe from anywhere; the seed is drawn before main().
 */
#ifndef KILN_BASE_HASH_H
#define KILN_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

extern uint64_t kiln_hash_seed;

/* Of any bytes. */
static inline uint64_t kiln_hash(const void *data, size_t len)
{
    return XXH3_64bits_withSeed(data, len, kiln_hash_seed);
}

/* Stirs one more number into a running hash: for records of a few integers. */
static inline uint64_t kiln_hash_mix(uint64_t hash, uint64_t value)
{
    __uint128_t product = (__uint128_t)(hash ^ 0x9e3779b97f4a7c15u) * (value ^ kiln_hash_seed);

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#endif /* KILN_BASE_HASH_H */

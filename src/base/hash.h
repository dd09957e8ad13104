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

/* Two words into one: a product folded in half.  Both are masked, so that none can make it zero. */
static inline uint64_t kiln_hash_fold(uint64_t a, uint64_t b)
{
    uint64_t seed = kiln_hash_seed;
    __uint128_t product = (__uint128_t)(a ^ seed) * (b ^ (seed << 32 | seed >> 32));

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t kiln_hash_load(const unsigned char *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof(word));
    return word;
}

/* Of 8 to 64 bytes, as most names have: 16 at a time, the last 16 once more from the end. */
static inline uint64_t kiln_hash_name(const unsigned char *p, size_t len)
{
    const unsigned char *end = p + len;
    uint64_t hash = len;

    for (; end - p > 16; p += 16)
        hash = kiln_hash_fold(kiln_hash_load(p) ^ hash, kiln_hash_load(p + 8));
    p = end - (len < 16 ? len : 16);
    return kiln_hash_fold(kiln_hash_load(p) ^ hash, kiln_hash_load(end - 8));
}

/* Of any bytes. */
static inline uint64_t kiln_hash(const void *data, size_t len)
{
    if (len - 8 <= 56)
        return kiln_hash_name(data, len);
    return XXH3_64bits_withSeed(data, len, kiln_hash_seed);
}

/* Stirs one more number into a running hash: for records of a few integers. */
static inline uint64_t kiln_hash_mix(uint64_t hash, uint64_t value)
{
    __uint128_t product = (__uint128_t)(hash ^ 0x9e3779b97f4a7c15u) * (value ^ kiln_hash_seed);

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#endif /* KILN_BASE_HASH_H */

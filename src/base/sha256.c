/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The message is cut into blocks of 64 bytes; the last is padded with a one bit, zeroes and the
 * length in bits, big-endian.  Each block turns the eight words of the state 64 times, with words
 * stretched from the block and constants from the cube roots of the first 64 primes.
 */
#include "base/sha256.h"

#define BLOCK 64u

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned by)
{
    return x >> by | x << (32 - by);
}

static void stretch(const uint8_t *block, uint32_t words[64])
{
    for (unsigned i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (unsigned i = 16; i < 64; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];

        words[i] = words[i - 16] + words[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
                   (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

static void turn(uint32_t state[8], const uint8_t *block)
{
    uint32_t words[64], s[8];

    stretch(block, words);
    memcpy(s, state, sizeof(s));
    for (unsigned i = 0; i < 64; i++) {
        uint32_t e = s[4], a = s[0];
        uint32_t t1 = s[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                      ((e & s[5]) ^ (~e & s[6])) + round_constants[i] + words[i];
        uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                      ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));

        memmove(s + 1, s, 7 * sizeof(*s));
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (unsigned i = 0; i < 8; i++)
        state[i] += s[i];
}

/* The one or two blocks at the end: what is left of the data, the padding, the length. */
static void finish(uint32_t state[8], struct kiln_str rest, uint64_t total_len)
{
    uint8_t last[2 * BLOCK] = {0};
    size_t size = rest.len + 9 <= BLOCK ? BLOCK : 2 * BLOCK;

    if (rest.len)
        memcpy(last, rest.ptr, rest.len);
    last[rest.len] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        last[size - 1 - i] = (uint8_t)(total_len * 8 >> 8 * i);
    for (size_t at = 0; at < size; at += BLOCK)
        turn(state, last + at);
}

void kiln_sha256_begin(struct kiln_sha256_run *run)
{
    *run = (struct kiln_sha256_run){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                              0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void kiln_sha256_add(struct kiln_sha256_run *run, struct kiln_str piece)
{
    size_t held = (size_t)(run->len % BLOCK), at = 0;

    run->len += piece.len;
    if (held) {
        size_t n = piece.len < BLOCK - held ? piece.len : BLOCK - held;

        if (n)
            memcpy(run->rest + held, piece.ptr, n);
        if (held + n < BLOCK)
            return;
        turn(run->state, run->rest);
        at = n;
    }
    for (; piece.len - at >= BLOCK; at += BLOCK)
        turn(run->state, (const uint8_t *)piece.ptr + at);
    if (piece.len > at)
        memcpy(run->rest, piece.ptr + at, piece.len - at);
}

void kiln_sha256_end(struct kiln_sha256_run *run, uint8_t ret_digest[KILN_SHA256_BYTES])
{
    finish(run->state, (struct kiln_str){(const char *)run->rest, (size_t)(run->len % BLOCK)},
           run->len);
    for (unsigned i = 0; i < KILN_SHA256_BYTES; i++)
        ret_digest[i] = (uint8_t)(run->state[i / 4] >> (24 - 8 * (i % 4)));
}

void kiln_sha256(struct kiln_str data, uint8_t ret_digest[KILN_SHA256_BYTES])
{
    struct kiln_sha256_run run;

    kiln_sha256_begin(&run);
    kiln_sha256_add(&run, data);
    kiln_sha256_end(&run, ret_digest);
}

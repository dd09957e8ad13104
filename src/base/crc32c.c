/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With SSE4.2 or the ARMv8 CRC extension: one instruction for 8 bytes.  Without: eight tables, 8
 * bytes a step, where table[k][b] is the sum of byte b followed by k zero bytes.
 */
#include "base/crc32c.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u

typedef uint32_t sum(uint32_t crc, const void *data, size_t n);

static uint32_t table[8][256];

static inline uint64_t load(const unsigned char *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof(word));
    return le64toh(word);
}

uint32_t kiln_crc32c_portable(uint32_t crc, const void *data, size_t n)
{
    const unsigned char *p = data;

    crc = ~crc;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word = load(p) ^ crc;

        crc = 0;
        for (int k = 0; k < 8; k++)
            crc ^= table[7 - k][word >> 8 * k & 0xff];
    }
    for (; n; p++, n--)
        crc = crc >> 8 ^ table[0][(crc ^ *p) & 0xff];
    return ~crc;
}

#if defined(__x86_64__)
#include <nmmintrin.h>
#define FAST     __attribute__((target("sse4.2")))
#define STEP_8   _mm_crc32_u64
#define STEP_1   _mm_crc32_u8
#define HAS_FAST __builtin_cpu_supports("sse4.2")
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#define FAST     __attribute__((target("+crc")))
#define STEP_8   __crc32cd
#define STEP_1   __crc32cb
#define HAS_FAST (getauxval(AT_HWCAP) & HWCAP_CRC32)
#endif

#ifdef FAST
FAST static uint32_t fast(uint32_t crc, const void *data, size_t n)
{
    const unsigned char *p = data;

    crc = ~crc;
    for (; n >= 8; p += 8, n -= 8)
        crc = (uint32_t)STEP_8(crc, load(p));
    for (; n; p++, n--)
        crc = STEP_1(crc, *p);
    return ~crc;
}
#else
#define HAS_FAST false
#define fast     kiln_crc32c_portable
#endif

static sum *best = kiln_crc32c_portable;

__attribute__((constructor)) static void fill_table(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;

        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        table[0][b] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++)
            table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 0xff];
    if (HAS_FAST)
        best = fast;
}

uint32_t kiln_crc32c(uint32_t crc, const void *data, size_t n)
{
    return best(crc, data, n);
}

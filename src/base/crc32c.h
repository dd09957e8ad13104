/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32c - CRC-32C (Castagnoli, reflected), the checksum of everything the store writes.
 *
 * A sum over pieces: start with 0 and give each piece the sum so far.
 *
 *   kiln_crc32c(kiln_crc32c(0, "1234", 4), "56789", 5) == kiln_crc32c(0, "123456789", 9)
 *
 * Threads: no state; the way that is fastest here is chosen before main().
 */
#ifndef KILN_BASE_CRC32C_H
#define KILN_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t kiln_crc32c(uint32_t crc, const void *data, size_t n);

/* The same without the processor's help, for those that have none, and for tests. */
uint32_t kiln_crc32c_portable(uint32_t crc, const void *data, size_t n);

#endif /* KILN_BASE_CRC32C_H */

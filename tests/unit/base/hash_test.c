/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "test.h"

#define LONGEST 100u

TEST(hash, every_byte_and_the_length_count)
{
    unsigned char bytes[LONGEST] = {0};

    for (size_t len = 1; len <= LONGEST; len++) {
        uint64_t hash = kiln_hash(bytes, len);

        CHECK(hash != kiln_hash(bytes, len - 1));
        CHECK(hash == kiln_hash(bytes, len));
        for (size_t i = 0; i < len; i++) {
            bytes[i] ^= 1u << i % 8;
            CHECK(hash != kiln_hash(bytes, len));
            bytes[i] ^= 1u << i % 8;
        }
    }
}

/* Counted names, as senders have them, fall evenly on the two halves of the numbers. */
TEST(hash, similar_names_are_spread)
{
    char name[] = "worker-thread-0000";
    uint32_t high = 0, low = 0;

    for (uint32_t i = 0; i < 1000; i++) {
        uint64_t hash;

        for (uint32_t k = 0, n = i; k < 3; k++, n /= 10)
            name[sizeof(name) - 2 - k] = (char)('0' + n % 10);
        hash = kiln_hash(name, sizeof(name) - 1);
        high += (uint32_t)(hash >> 63);
        low += hash & 1;
    }
    CHECK(high > 350 && high < 650);
    CHECK(low > 350 && low < 650);
}

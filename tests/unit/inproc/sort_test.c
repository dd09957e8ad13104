/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/thread/sort.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { MOST = 1000, WIDEST = 37 };

static int by_first_bytes(const void *a, const void *b, void *arg)
{
    return memcmp(a, b, *(size_t *)arg);
}

static void check_sorted(size_t n, size_t size)
{
    unsigned char elements[MOST * WIDEST];
    size_t compared = size < 3 ? size : 3;
    uint32_t sum = 0, random = (uint32_t)(n * size + 1);

    for (size_t i = 0; i < n * size; i++) {
        random = random * 1103515245 + 12345;
        elements[i] = (unsigned char)(random >> 16);
        sum += elements[i];
    }
    kiln_in_sort(elements, n, size, by_first_bytes, &compared);
    for (size_t i = 0; i < n * size; i++)
        sum -= elements[i];
    CHECK_EQ(sum, 0);
    for (size_t i = 1; i < n; i++)
        CHECK(memcmp(elements + (i - 1) * size, elements + i * size, compared) <= 0);
}

TEST(sort, arrays_of_any_length_and_width)
{
    for (size_t size = 1; size <= WIDEST; size++)
        for (size_t n = 0; n <= MOST; n = n < 20 ? n + 1 : n * 3)
            check_sorted(n, size);
    check_sorted(MOST, WIDEST);
}

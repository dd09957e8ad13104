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

static int by_number(const void *a, const void *b, void *arg)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    ++*(size_t *)arg;
    return x < y ? -1 : x > y;
}

static uint32_t in_order(uint32_t i)
{
    return i;
}

static uint32_t reversed(uint32_t i)
{
    return MOST - i;
}

static uint32_t all_equal(uint32_t i)
{
    return i / MOST;
}

static uint32_t up_and_down(uint32_t i)
{
    return i < MOST / 2 ? i : MOST - i;
}

static uint32_t a_saw(uint32_t i)
{
    return i % 17;
}

/* Orders that are the worst for somebody: 20 splits and a heap take 40 comparisons of each at most.
 */
TEST(sort, no_order_takes_long)
{
    uint32_t (*const orders[])(uint32_t) = {in_order, reversed, all_equal, up_and_down, a_saw};
    uint32_t numbers[MOST];

    for (size_t order = 0; order < sizeof(orders) / sizeof(orders[0]); order++) {
        size_t compared = 0;

        for (uint32_t i = 0; i < MOST; i++)
            numbers[i] = orders[order](i);
        kiln_in_sort(numbers, MOST, sizeof(numbers[0]), by_number, &compared);
        for (uint32_t i = 1; i < MOST; i++)
            CHECK(numbers[i - 1] <= numbers[i]);
        CHECK(compared < (size_t)40 * MOST);
    }
}

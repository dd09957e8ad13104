/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sort.h"

#include "random_batch.h"
#include "test.h"

#define MAX 5000u

TEST(sort, any_list_comes_out_in_order_and_equal_keys_as_they_were)
{
    static struct kiln_keyed list[MAX], scratch[MAX];
    struct dice dice = {3};

    for (uint32_t round = 0; round < 200; round++) {
        uint32_t n = (uint32_t)dice_roll(&dice, round % 10 ? 100 : MAX);
        unsigned shift = (unsigned)dice_roll(&dice, 60);

        for (uint32_t i = 0; i < n; i++)
            list[i] = (struct kiln_keyed){.key = dice_roll(&dice, 1 + i) << shift, .at = i};
        kiln_sort_keyed(list, scratch, n);
        for (uint32_t i = 1; i < n; i++)
            CHECK(list[i - 1].key < list[i].key ||
                  (list[i - 1].key == list[i].key && list[i - 1].at < list[i].at));
    }
}

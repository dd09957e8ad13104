/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ticks.h"

#include "random_batch.h"
#include "test.h"

#define PERIOD 52631578u

TEST(ticks, times_on_a_beat_become_small_numbers)
{
    static struct kiln_ticks in, out;
    uint64_t start = 1700000000000000000, beat = start - 12345678;
    struct dice dice = {1};

    kiln_ticks_begin(&in, PERIOD);
    kiln_ticks_begin(&out, PERIOD);
    for (uint64_t i = 1; i < 1000; i++) {
        uint64_t time = beat + i * PERIOD + dice_roll(&dice, 10000);
        struct kiln_tick t = kiln_ticks_encode(&in, 1, start, time);

        CHECK(kiln_ticks_decode(&out, 1, start, t) == time);
        if (i > 1) {
            CHECK_EQ(t.tick, i - 1);
            CHECK((int64_t)t.off > -12000 && (int64_t)t.off < 12000);
        }
    }
}

TEST(ticks, any_times_come_back)
{
    static struct kiln_ticks in, out;
    static const uint64_t periods[] = {1, 2, 1000, PERIOD, INT64_MAX};
    struct dice dice = {2};

    for (size_t p = 0; p < KILN_ARRAY_LEN(periods); p++) {
        kiln_ticks_begin(&in, periods[p]);
        kiln_ticks_begin(&out, periods[p]);
        for (uint32_t i = 0; i < 2000; i++) {
            uint64_t high = dice_roll(&dice, UINT64_C(1) << 32) << 32;
            uint64_t time = i % 3 ? UINT64_MAX - i * 17 : high | i;
            uint64_t start = i % 5 ? high : time - dice_roll(&dice, 1000000);
            uint32_t cpu = (uint32_t)dice_roll(&dice, KILN_TICKS_CPUS);
            struct kiln_tick t = kiln_ticks_encode(&in, cpu, start, time);

            CHECK(kiln_ticks_decode(&out, cpu, start, t) == time);
        }
    }
}

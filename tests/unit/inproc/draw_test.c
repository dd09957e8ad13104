/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/sample/draw.h"

#include <math.h>

#include "inproc/sample/rate.h"
#include "inproc/thread/thread.h"
#include "test.h"

enum { MEAN = 100000, N = 100000 };

static struct kiln_in_thread *begin(void)
{
    struct kiln_in_thread *thread;

    CHECK_OK(kiln_in_threads_init(7));
    atomic_store(&kiln_in_on, KILN_IN_ON);
    thread = kiln_in_enter_as(NULL); /* left in another frame */
    CHECK(thread);
    return thread;
}

static void end(struct kiln_in_thread *thread)
{
    kiln_in_leave(thread);
    atomic_store(&kiln_in_on, KILN_IN_OFF);
    kiln_in_thread_end();
}

static struct kiln_in_drawn draw_many(struct kiln_in_rate *rate, uint64_t size, uint32_t *ret_n)
{
    struct kiln_in_thread *thread = begin();
    struct kiln_in_drawn sum = {0}, one;

    *ret_n = 0;
    for (unsigned i = 0; i < N; i++) {
        if (!kiln_in_draw(thread, rate, size, 1000, &one))
            continue;
        ++*ret_n;
        sum.count += one.count;
        sum.value += one.value;
    }
    end(thread);
    return sum;
}

TEST(draw, sums_are_right_within_four_sigma_for_every_size)
{
    static const uint64_t sizes[] = {1, 100, 5000, MEAN / 2, MEAN - 1};

    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct kiln_in_rate rate;
        struct kiln_in_drawn sum;
        double size = (double)sizes[i];
        uint32_t n;

        kiln_in_rate_init(&rate, MEAN, 0, 0);
        sum = draw_many(&rate, sizes[i], &n);
        CHECK(fabs(sum.value - N * size) <= 4 * sqrt(N * size * (MEAN - size)));
        CHECK(fabs(sum.count - N) <= 4 * sqrt(N * (MEAN / size - 1)));
    }
}

TEST(draw, what_is_as_large_as_the_mean_is_always_taken_and_stands_for_itself)
{
    struct kiln_in_rate rate;
    struct kiln_in_drawn sum;
    uint32_t n;

    kiln_in_rate_init(&rate, MEAN, 0, 0);
    sum = draw_many(&rate, 3 * MEAN, &n);
    CHECK_EQ(n, N);
    CHECK(sum.count == N);
    CHECK(sum.value == 3.0 * MEAN * N);
}

TEST(draw, what_has_no_size_is_never_taken)
{
    struct kiln_in_rate rate;
    uint32_t n;

    kiln_in_rate_init(&rate, MEAN, 0, 0);
    draw_many(&rate, 0, &n);
    CHECK_EQ(n, 0);
}

TEST(draw, where_no_time_passes_there_are_not_many_more_than_a_burst)
{
    struct kiln_in_rate rate;
    uint32_t n;

    kiln_in_rate_init(&rate, MEAN, 500, 0);
    draw_many(&rate, MEAN, &n);
    CHECK(n >= KILN_IN_RATE_BURST);
    CHECK(n < 8 * KILN_IN_RATE_BURST);
}

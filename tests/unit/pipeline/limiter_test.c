/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/processors/limiter.h"

#include <errno.h>

#include "base/mem.h"
#include "base/meminfo.h"
#include "drawn.h"
#include "relay.h"
#include "test.h"

#define MIB ((uint64_t)1 << 20)

/* Statement 72: above the soft limit data is refused, to be sent again, and then it is taken. */
TEST(limiter, refuses_above_the_soft_limit_and_recovers)
{
    uint64_t soft = kiln_meminfo_used() + 512 * MIB;
    struct relay_sink sink = RELAY_SINK;
    struct relay_post posts[4] = {0};
    struct kiln_consumer *limiter;
    struct kiln_pool pool;
    struct kiln_limiter_opts opts = {.processor = {.id = "memory_limiter", .next = &sink.consumer},
                                     .soft_bytes = soft,
                                     .hard_bytes = soft + 1024 * MIB,
                                     .pool = &pool};

    kiln_pool_init(&pool, "test", SIZE_MAX, NULL);
    CHECK_OK(kiln_limiter_new(&opts, &limiter));
    relay_send(&posts[0], limiter, kiln_test_stacks("main 1\n"), NULL);
    CHECK_EQ(sink.n, 1);
    CHECK_OK(kiln_pool_take(&pool, soft));
    relay_send(&posts[1], limiter, kiln_test_stacks("main 1\n"), NULL);
    relay_send(&posts[2], limiter, NULL, NULL); /* other signals as well */
    CHECK_EQ(sink.n, 1);
    for (int i = 1; i < 3; i++) {
        CHECK_EQ(posts[i].ended, 1);
        CHECK_EQ(posts[i].outcome.code, -EAGAIN);
        CHECK(posts[i].outcome.retry_after_s > 0);
    }
    kiln_pool_give(&pool, soft);
    relay_send(&posts[3], limiter, kiln_test_stacks("main 1\n"), NULL);
    CHECK_EQ(sink.n, 2);
    relay_end(&sink, 0);
    kiln_limiter_free(limiter);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(limiter, looks_at_what_the_process_takes)
{
    struct relay_sink sink = RELAY_SINK;
    struct relay_post post = {0};
    struct kiln_consumer *limiter;
    struct kiln_limiter_opts opts = {.processor = {.id = "memory_limiter", .next = &sink.consumer},
                                     .soft_bytes = 4096,
                                     .hard_bytes = 8192};

    CHECK_OK(kiln_limiter_new(&opts, &limiter));
    relay_send(&post, limiter, kiln_test_stacks("main 1\n"), NULL);
    CHECK_EQ(post.outcome.code, -EAGAIN);
    kiln_limiter_free(limiter);
}

TEST(meminfo, says_something)
{
    CHECK(kiln_meminfo_used() > 4096);
    CHECK(kiln_meminfo_total() >= kiln_meminfo_used());
}

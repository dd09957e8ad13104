/* SPDX-License-Identifier: Apache-2.0 */
#include "store/shared_keys.h"

#include <pthread.h>
#include <stdio.h>

#include "base/mem.h"
#include "blocks.h"
#include "drawn.h"
#include "sim_io.h"
#include "store/block_int.h"
#include "test.h"

enum { KEYS = 1000, THREADS = 4 };

static struct kiln_str key_of(char text[32], uint32_t i)
{
    snprintf(text, 32, "service-%u", i);
    return kiln_str_of(text);
}

TEST(shared_keys, equal_keys_are_one_until_the_last_goes)
{
    int64_t live = kiln_mem_live();
    struct kiln_str kept[KEYS], again;
    char text[32];

    for (uint32_t i = 0; i < KEYS; i++)
        kept[i] = kiln_shared_key_get(key_of(text, i));
    for (uint32_t i = 0; i < KEYS; i++) {
        again = kiln_shared_key_get(key_of(text, i));
        CHECK(again.ptr == kept[i].ptr);
        CHECK(kiln_str_eq(again, key_of(text, i)));
        kiln_shared_key_put(kept[i]);
        CHECK(kiln_str_eq(again, key_of(text, i))); /* it is still there */
        kiln_shared_key_put(again);
    }
    CHECK_EQ(kiln_mem_live(), live);
}

static void *use(void *context)
{
    char text[32];

    (void)context;
    for (uint32_t i = 0; i < 20 * KEYS; i++) {
        struct kiln_str key = kiln_shared_key_get(key_of(text, i % 7));

        CHECK(kiln_str_eq(key, key_of(text, i % 7)));
        kiln_shared_key_put(key);
    }
    return NULL;
}

TEST(shared_keys, threads_share_them)
{
    int64_t live = kiln_mem_live();
    pthread_t threads[THREADS];

    for (uint32_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, use, NULL), 0);
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(kiln_mem_live(), live);
}

TEST(shared_keys, blocks_share_those_of_their_series)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_drawn p = {.stacks = "main 1\n", .time_ns = 5, .resource = "service.name=shop"};
    struct kiln_batch *batch = kiln_test_batch(&p, 1);
    struct kiln_block *a = block_of(io, batch), *b = block_of(io, batch);

    CHECK_EQ(a->footer.n_shared, 1);
    CHECK(a->footer.series[0].key.ptr == b->footer.series[0].key.ptr);
    kiln_block_unref(a);
    CHECK(kiln_str_starts(b->footer.series[0].key, KILN_STR("shop")));
    kiln_block_unref(b);
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

/* An allocation that fails leaves nothing behind. */
TEST(shared_keys, without_memory_there_is_no_key)
{
    int64_t live = kiln_mem_live();

    for (uint64_t n = 1; n <= 2; n++) {
        kiln_mem_fail_at(n);
        CHECK(!kiln_shared_key_get(KILN_STR("shop")).ptr);
        kiln_mem_fail_at(0);
        CHECK_EQ(kiln_mem_live(), live);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "core/merge.h"
#include "random_batch.h"
#include "resolve.h"
#include "stacks.h"
#include "test.h"

static bool equal_drawings(const char *x, const char *y)
{
    struct kiln_batch *a = batch_of_stacks(x), *b = batch_of_stacks(y);
    bool equal = kiln_batch_equal(a, b);

    CHECK_EQ(equal, kiln_batch_equal(b, a));
    kiln_batch_unref(a);
    kiln_batch_unref(b);
    return equal;
}

TEST(batch_equal, every_frame_value_and_order_counts)
{
    CHECK(equal_drawings("main;read 3\n", "main;read 3\n"));
    CHECK(equal_drawings("", ""));
    CHECK(!equal_drawings("main;read 3\n", "main;read 4\n"));
    CHECK(!equal_drawings("main;read 3\n", "main;write 3\n"));
    CHECK(!equal_drawings("main;read 3\n", "read;main 3\n"));
    CHECK(!equal_drawings("main;read 3\n", "main;read 3\nmain 1\n"));
    CHECK(!equal_drawings("a 1\nb 2\n", "b 2\na 1\n"));
}

TEST(batch_equal, the_order_of_tables_does_not_count)
{
    struct kiln_batch *a = batch_of_stacks("main;read 3\nmain 1\n");
    struct kiln_builder *b;
    struct kiln_batch *other, *both[2] = {a}, *merged;

    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_builder_string(b, KILN_STR("read"));
    kiln_builder_string(b, KILN_STR("nobody"));
    CHECK_OK(kiln_builder_finish(b, &other, NULL));
    both[1] = a;
    CHECK_OK(kiln_merge((struct kiln_batch *[]){other, a}, 2, NULL, &merged, NULL));
    CHECK(kiln_batch_equal(a, merged));
    CHECK(kiln_batch_equal(both[1], a));
    kiln_batch_unref(a);
    kiln_batch_unref(other);
    kiln_batch_unref(merged);
}

TEST(batch_equal, random_batches_equal_themselves_and_no_other)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct kiln_batch *a = random_batch(&(struct random_opts){.seed = seed});
        struct kiln_batch *again = random_batch(&(struct random_opts){.seed = seed});
        struct kiln_batch *other = random_batch(&(struct random_opts){.seed = seed + 1});

        CHECK(kiln_batch_equal(a, again));
        CHECK(!kiln_batch_equal(a, other));
        kiln_batch_unref(a);
        kiln_batch_unref(again);
        kiln_batch_unref(other);
    }
}

TEST(batch_equal, it_leaves_no_memory_behind)
{
    struct kiln_batch *a = batch_of_stacks("main;read 3\n");
    int64_t live = kiln_mem_live();

    for (uint64_t n = 1; n < 60; n++) {
        kiln_mem_fail_at(n);
        (void)kiln_batch_equal(a, a);
        kiln_mem_fail_at(0);
        CHECK_EQ(kiln_mem_live(), live);
    }
    kiln_batch_unref(a);
}

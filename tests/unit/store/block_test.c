/* SPDX-License-Identifier: Apache-2.0 */
#include "store/block.h"

#include "blocks.h"
#include "drawn.h"
#include "random_batch.h"
#include "resolve.h"
#include "sim_io.h"
#include "starved.h"
#include "test.h"

/* What comes back from a block of this batch says the same. */
static void check_round_trip(const struct kiln_batch *batch)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_block *block = block_of(io, batch);
    struct kiln_err err = {0};
    struct kiln_batch *back = block_batch(block, NULL, NULL, &err);

    if (!back)
        fail_msg("%s: %s", err.where, err.text);
    check_invariants(back);
    check_no_orphans(back);
    block_check_same(batch, back);
    if (kiln_block_verify(block, &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
    kiln_batch_unref(back);
    kiln_block_unref(block);
    kiln_sim_free(io);
}

TEST(block, a_drawn_profile_comes_back_as_it_was)
{
    struct kiln_batch *batch = kiln_test_batch(
        &(struct kiln_drawn){.stacks = "main;parse@json.c:12;read 3 thread=main,n=7\n"
                                       "main;parse>inner 5\n"
                                       "main;lib.so+0x1234 2\n"
                                       "- 1\n",
                             .type = "cpu",
                             .unit = "nanoseconds",
                             .period_type = "cpu",
                             .period_unit = "nanoseconds",
                             .period = 10000000,
                             .time_ns = 1700000000000000000,
                             .duration_ns = 10000000000,
                             .resource = "service.name=shop,host.name=a",
                             .scope = "agent"},
        1);

    check_round_trip(batch);
    kiln_batch_unref(batch);
}

TEST(block, times_keep_their_values)
{
    struct kiln_batch *batch = kiln_test_batch(
        &(struct kiln_drawn){.stacks = "main;a 5@1700000000000000100 -6@1700000000000000300\n"
                                       "main;b @1700000000000000200 @1699999999999999999\n"
                                       "main;a 9@1700000000000000200\n",
                             .time_ns = 1700000000000000000,
                             .resource = "service.name=shop"},
        1);

    check_round_trip(batch);
    kiln_batch_unref(batch);
}

TEST(block, whatever_is_written_comes_back)
{
    for (uint64_t seed = 0; seed < 150; seed++) {
        struct random_opts opts = {.seed = seed,
                                   .samples = seed % 10 == 3 ? 3000 : 20,
                                   .orphans = seed % 2 == 0,
                                   .no_times = seed % 5 == 1,
                                   .plain_profiles = seed % 3 == 1};
        struct kiln_batch *batch = random_batch(&opts);

        assert_non_null(batch);
        check_round_trip(batch);
        kiln_batch_unref(batch);
    }
}

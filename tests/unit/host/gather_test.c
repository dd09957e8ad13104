/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/err.h"
#include "base/mem.h"
#include "host/gather.h"
#include "test.h"

static struct kiln_identity sh = {.refs = 1, .pid = 10, .name = "sh"};
static struct kiln_identity make = {.refs = 1, .pid = 11, .name = "make"};
static struct kiln_object libc = {.refs = 1, .id = 1, .path = "/lib/libc.so.6"};

static struct kiln_gframe at(uint64_t address)
{
    return (struct kiln_gframe){.kind = KILN_FRAME_NATIVE, .object = &libc, .address = address};
}

static int add(struct kiln_gather *gather, struct kiln_identity *identity, uint32_t tid,
               const char *comm, const struct kiln_gframe *frames, uint32_t n)
{
    return kiln_gather_add(gather, &(struct kiln_gather_sample){.identity = identity,
                                                                .tid = tid,
                                                                .comm = comm,
                                                                .frames = frames,
                                                                .n_frames = n,
                                                                .value = 1});
}

TEST(gather, equal_samples_are_counted_and_stacks_kept_once)
{
    struct kiln_gframe deep[] = {at(1), at(2), at(3)}, flat[] = {at(3)};
    struct kiln_gathering *g;
    struct kiln_gather *gather;

    CHECK_OK(kiln_gather_new(0, &gather));
    CHECK_OK(add(gather, &make, 11, "make", deep, 3));
    CHECK_OK(add(gather, &sh, 10, "sh", deep, 3));
    CHECK_OK(add(gather, &sh, 10, "sh", deep, 3));
    CHECK_OK(add(gather, &sh, 12, "worker", deep, 3));
    CHECK_OK(add(gather, &sh, 10, "sh", flat, 1));
    CHECK_OK(kiln_gather_take(gather, &g));
    CHECK_EQ(g->n_counted, 5);
    CHECK_EQ(g->n_identities, 2);
    CHECK_EQ(g->n_stacks, 2);
    CHECK_EQ(g->n_frames, 4);
    CHECK_EQ(g->n_samples, 4);
    for (uint32_t i = 1; i < g->n_samples; i++)
        CHECK(g->samples[i - 1].process <= g->samples[i].process);
    CHECK(g->identities[g->samples[0].process] == &make);
    kiln_gathering_free(g);
    kiln_gather_free(gather);
}

TEST(gather, another_end_thread_or_name_is_another_sample)
{
    struct kiln_gather_sample sample = {.identity = &sh,
                                        .tid = 10,
                                        .comm = "sh",
                                        .frames = (struct kiln_gframe[]){at(1)},
                                        .n_frames = 1,
                                        .value = 2};
    struct kiln_gathering *g;
    struct kiln_gather *gather;

    CHECK_OK(kiln_gather_new(0, &gather));
    CHECK_OK(kiln_gather_add(gather, &sample));
    sample.end = KILN_END_JIT;
    CHECK_OK(kiln_gather_add(gather, &sample));
    sample.comm = "a name that is much too long";
    CHECK_OK(kiln_gather_add(gather, &sample));
    sample.tid = 13;
    CHECK_OK(kiln_gather_add(gather, &sample));
    CHECK_OK(kiln_gather_take(gather, &g));
    CHECK_EQ(g->n_samples, 4);
    CHECK_EQ(g->n_stacks, 1);
    CHECK_EQ(g->n_counted, 8);
    CHECK_TEXT(g->samples[3].comm, "a name that is ");
    kiln_gathering_free(g);
    kiln_gather_free(gather);
}

TEST(gather, objects_and_identities_are_held_until_the_gathering_is_freed)
{
    struct kiln_gframe frames[] = {at(1), {.kind = KILN_FRAME_KERNEL, .address = 9}};
    struct kiln_gathering *g;
    struct kiln_gather *gather;

    CHECK_OK(kiln_gather_new(0, &gather));
    CHECK_OK(add(gather, &sh, 10, "sh", frames, 2));
    CHECK_EQ(sh.refs, 2);
    CHECK_EQ(libc.refs, 2);
    CHECK_OK(kiln_gather_take(gather, &g));
    kiln_gather_free(gather);
    CHECK_EQ(sh.refs, 2);
    kiln_gathering_free(g);
    CHECK_EQ(sh.refs, 1);
    CHECK_EQ(libc.refs, 1);
}

TEST(gather, after_taking_it_begins_anew)
{
    struct kiln_gframe frames[] = {at(1)};
    struct kiln_gathering *g;
    struct kiln_gather *gather;

    CHECK_OK(kiln_gather_new(0, &gather));
    CHECK_OK(kiln_gather_take(gather, &g));
    CHECK(g == NULL);
    CHECK_OK(add(gather, &sh, 10, "sh", frames, 1));
    CHECK_OK(kiln_gather_take(gather, &g));
    kiln_gathering_free(g);
    CHECK_OK(kiln_gather_take(gather, &g));
    CHECK(g == NULL);
    kiln_gather_free(gather);
    CHECK_EQ(sh.refs, 1);
}

TEST(gather, an_interval_takes_no_more_than_its_budget)
{
    struct kiln_gathering *g;
    struct kiln_gather *gather;
    uint64_t taken = 0;
    int r = 0;

    CHECK_OK(kiln_gather_new(32 << 10, &gather));
    for (uint64_t i = 0; i < 10000 && r == 0; i++) {
        struct kiln_gframe frames[] = {at(i), at(i + 1)};

        r = add(gather, &sh, 10, "sh", frames, 2);
        taken += r == 0;
    }
    CHECK_EQ(r, KILN_E_LIMIT);
    CHECK(taken > 100);
    CHECK_OK(kiln_gather_take(gather, &g));
    CHECK_EQ(g->n_counted, taken);
    kiln_gathering_free(g);
    kiln_gather_free(gather);
    CHECK_EQ(libc.refs, 1);
}

TEST(gather, the_processes_that_it_holds_count)
{
    struct kiln_identity large = {.refs = 1, .pid = 12, .name = "large", .size = 20 << 10};
    struct kiln_gframe frames[] = {at(1)};
    struct kiln_gather *gather;

    CHECK_OK(kiln_gather_new(32 << 10, &gather));
    CHECK_OK(add(gather, &large, 12, "large", frames, 1));
    CHECK_OK(add(gather, &large, 12, "large", frames, 1));
    CHECK(kiln_gather_bytes(gather) > large.size && kiln_gather_bytes(gather) < 2 * large.size);
    make.size = large.size;
    CHECK_EQ(add(gather, &make, 11, "make", frames, 1), KILN_E_LIMIT);
    make.size = 0;
    kiln_gather_free(gather);
    CHECK_EQ(large.refs, 1);
    CHECK_EQ(make.refs, 1);
}

TEST(gather, without_memory_a_sample_is_refused_and_nothing_leaks)
{
    int64_t before = kiln_mem_live();

    for (uint64_t n = 1; n < 16; n++) {
        struct kiln_gframe frames[] = {at(1), at(2)};
        struct kiln_gather *gather;
        int r;

        CHECK_OK(kiln_gather_new(0, &gather));
        kiln_mem_fail_at(n);
        r = add(gather, &sh, 10, "sh", frames, 2);
        CHECK_EQ(r, kiln_mem_failed() ? -ENOMEM : 0);
        kiln_mem_fail_at(0);
        kiln_gather_free(gather);
    }
    CHECK_EQ(kiln_mem_live(), before);
    CHECK_EQ(sh.refs, 1);
    CHECK_EQ(libc.refs, 1);
}

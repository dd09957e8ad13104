/* SPDX-License-Identifier: Apache-2.0 */
#include "core/concat.h"

#include "base/mem.h"
#include "drawn.h"
#include "random_batch.h"
#include "resolve.h"
#include "test.h"

static struct kiln_batch *drawn(const char *resource, const char *stacks)
{
    struct kiln_drawn profile = {.resource = resource, .stacks = stacks, .time_ns = 5};

    return kiln_test_batch(&profile, 1);
}

TEST(concat, equal_resources_and_scopes_are_there_once_and_all_profiles_are)
{
    struct kiln_batch *all[] = {drawn("host=a", "main;read 3\n"), drawn("host=b", "main;read 4\n"),
                                drawn("host=a", "main;read 3\nmain;read 3\n")};
    struct kiln_batch *one;

    CHECK_OK(kiln_concat(all, 3, NULL, &one, NULL));
    check_invariants(one);
    CHECK_EQ(one->n_resources, 2);
    CHECK_EQ(one->n_scopes, 2);
    CHECK_EQ(one->n_profiles, 3);
    CHECK_EQ(one->scopes[0].n_profiles, 2);
    CHECK_EQ(one->n_samples, 4);
    CHECK_EQ(one->dict.n_stacks, 2);
    for (int i = 0; i < 3; i++)
        kiln_batch_unref(all[i]);
    kiln_batch_unref(one);
}

static void add_counts(const struct kiln_batch *batch, uint64_t counts[3])
{
    counts[0] += batch->n_profiles;
    counts[1] += batch->n_samples;
    counts[2] += batch->n_observations;
}

/* Of batches made of dice: nothing is lost, nothing is added up, nothing is left over. */
static void check_random(uint64_t seed)
{
    struct kiln_batch *all[5], *one;
    struct resolved apart = {0};
    uint64_t before[3] = {0}, after[3] = {0};
    char *a, *b;

    for (uint32_t i = 0; i < 5; i++) {
        struct random_opts opts = {.seed = seed * 5 + i, .orphans = i & 1};

        all[i] = random_batch(&opts);
        add_counts(all[i], before);
        resolve_add(&apart, all[i], 0);
    }
    CHECK_OK(kiln_concat(all, 5, NULL, &one, NULL));
    check_invariants(one);
    check_no_orphans(one);
    add_counts(one, after);
    CHECK(memcmp(before, after, sizeof(before)) == 0);
    a = resolve_text(&apart);
    b = resolve_batch(one, 0);
    CHECK_TEXT(a, b);
    kiln_free(a);
    kiln_free(b);
    for (uint32_t i = 0; i < 5; i++)
        kiln_batch_unref(all[i]);
    kiln_batch_unref(one);
}

TEST(concat, says_what_its_parts_say)
{
    for (uint64_t seed = 1; seed <= 60; seed++)
        check_random(seed);
}

TEST(concat, one_batch_stays_what_it_is)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct kiln_batch *batch = random_batch(&(struct random_opts){.seed = seed}), *one;

        CHECK_OK(kiln_concat(&batch, 1, NULL, &one, NULL));
        CHECK_EQ(one->n_samples, batch->n_samples);
        kiln_batch_unref(batch);
        kiln_batch_unref(one);
    }
}

TEST(concat, without_memory_is_an_error)
{
    struct kiln_batch *all[] = {drawn("host=a", "main;read 3\n"), drawn("host=b", "main 4\n")};
    int64_t live = kiln_mem_live();
    uint64_t n = 0;
    bool failed;

    do {
        struct kiln_batch *one;
        int r;

        kiln_mem_fail_at(++n);
        r = kiln_concat(all, 2, NULL, &one, NULL);
        failed = kiln_mem_failed();
        kiln_mem_fail_at(0);
        CHECK(r == 0 || failed);
        if (r == 0)
            kiln_batch_unref(one);
        CHECK_EQ(kiln_mem_live(), live);
    } while (failed);
    CHECK(n > 10);
    kiln_batch_unref(all[0]);
    kiln_batch_unref(all[1]);
}

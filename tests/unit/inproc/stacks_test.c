/* SPDX-License-Identifier: Apache-2.0 */
/* Equal stacks have equal numbers, whoever brings them, and numbers give the stacks back. */
#include <pthread.h>
#include <stdlib.h>

#include "inproc/thread/stacks.h"
#include "inproc/thread/thread.h"
#include "test.h"

/* Stack `i` of many: some deep, some that share all but a frame. */
static unsigned make(uint64_t pcs[KILN_IN_DEPTH_MAX], uint32_t i)
{
    unsigned n = 1 + i % 40;

    for (unsigned f = 0; f < n; f++)
        pcs[f] = 0x400000 + (f == n - 1 ? (uint64_t)i * 16 : f * 64);
    return n;
}

static bool is(uint32_t id, const uint64_t *pcs, unsigned n)
{
    const uint64_t *found;

    return kiln_in_stack_get(id, &found) == n && memcmp(found, pcs, n * sizeof(*pcs)) == 0;
}

TEST(stacks, equal_ones_have_one_number)
{
    uint64_t a[] = {1, 2, 3}, b[] = {1, 2, 4}, c[] = {1, 2};

    kiln_in_stack_forget();
    CHECK_NE(kiln_in_stack_id(a, 3), 0);
    CHECK_EQ(kiln_in_stack_id(a, 3), kiln_in_stack_id(a, 3));
    CHECK_NE(kiln_in_stack_id(a, 3), kiln_in_stack_id(b, 3));
    CHECK_NE(kiln_in_stack_id(a, 3), kiln_in_stack_id(c, 2));
    CHECK_EQ(kiln_in_stack_count(), 3);
    CHECK(is(kiln_in_stack_id(b, 3), b, 3));
}

TEST(stacks, of_no_frames_or_too_many_are_none)
{
    uint64_t pcs[KILN_IN_DEPTH_MAX + 1] = {0};
    const uint64_t *found;

    CHECK_EQ(kiln_in_stack_id(pcs, 0), 0);
    CHECK_EQ(kiln_in_stack_id(pcs, KILN_IN_DEPTH_MAX + 1), 0);
    CHECK_EQ(kiln_in_stack_get(0, &found), 0);
    CHECK_EQ(kiln_in_stack_get(UINT32_MAX, &found), 0);
}

TEST(stacks, many_are_all_found_again)
{
    enum { N = 20000 };
    uint64_t pcs[KILN_IN_DEPTH_MAX];
    uint32_t *ids = calloc(N, sizeof(*ids));

    kiln_in_stack_forget();
    for (uint32_t i = 0; i < N; i++)
        ids[i] = kiln_in_stack_id(pcs, make(pcs, i));
    for (uint32_t i = 0; i < N; i++) {
        unsigned n = make(pcs, i);

        CHECK_EQ(kiln_in_stack_id(pcs, n), ids[i]);
        CHECK(is(ids[i], pcs, n));
    }
    CHECK_EQ(kiln_in_stack_count(), N);
    free(ids);
}

TEST(stacks, that_find_no_room_are_refused_and_the_others_stay)
{
    uint64_t pcs[KILN_IN_DEPTH_MAX] = {0}, first[] = {7, 8};
    uint32_t id, known;

    kiln_in_stack_forget();
    known = kiln_in_stack_id(first, 2);
    do {
        pcs[0]++;
        id = kiln_in_stack_id(pcs, KILN_IN_DEPTH_MAX);
    } while (id);
    CHECK(kiln_in_stack_bytes() <= 40 << 20);
    CHECK_EQ(kiln_in_stack_id(first, 2), known);
    kiln_in_stack_forget();
}

enum { SHARED = 3000 };
static uint32_t shared_ids[4][SHARED];

static void *bring(void *arg)
{
    uint32_t *ids = arg;
    uint64_t pcs[KILN_IN_DEPTH_MAX];

    for (uint32_t i = 0; i < SHARED; i++)
        ids[i] = kiln_in_stack_id(pcs, make(pcs, i));
    return NULL;
}

TEST(stacks, threads_that_bring_the_same_agree)
{
    pthread_t threads[4];

    kiln_in_stack_forget();
    for (unsigned i = 0; i < 4; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, bring, shared_ids[i]));
    for (unsigned i = 0; i < 4; i++)
        CHECK_OK(pthread_join(threads[i], NULL));
    for (unsigned i = 1; i < 4; i++)
        CHECK_EQ(memcmp(shared_ids[0], shared_ids[i], sizeof(shared_ids[0])), 0);
    CHECK_EQ(kiln_in_stack_count(), SHARED);
}

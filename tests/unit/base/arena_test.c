/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "base/err.h"
#include "starved.h"
#include "test.h"

TEST(arena, what_it_gives_is_aligned_and_apart)
{
    struct kiln_budget budget = {.limit = 1u << 24};
    struct kiln_arena arena;
    char *all[500];

    kiln_arena_init(&arena, &budget);
    for (size_t i = 0; i < 500; i++) {
        all[i] = kiln_arena_alloc(&arena, i * 37 + 1);
        CHECK(all[i] != NULL);
        CHECK_EQ((uintptr_t)all[i] % _Alignof(max_align_t), 0);
        memset(all[i], (int)(i % 251), i * 37 + 1);
    }
    for (size_t i = 0; i < 500; i++) {
        CHECK_EQ((unsigned char)all[i][0], i % 251);
        CHECK_EQ((unsigned char)all[i][i * 37], i % 251);
    }
    kiln_arena_done(&arena);
    CHECK_EQ(budget.used, 0);
}

TEST(arena, an_empty_copy_has_an_address)
{
    struct kiln_budget budget = {.limit = 1u << 20};
    struct kiln_arena arena;

    kiln_arena_init(&arena, &budget);
    CHECK(kiln_arena_copy(&arena, KILN_STR_NONE).ptr != NULL);
    CHECK_STR(kiln_arena_copy(&arena, KILN_STR("read")), "read");
    kiln_arena_done(&arena);
}

TEST(arena, no_size_is_too_absurd_to_be_refused)
{
    struct kiln_budget budget = {.limit = SIZE_MAX};
    struct kiln_arena arena;

    kiln_arena_init(&arena, &budget);
    for (size_t less = 0; less < 64; less++)
        CHECK(kiln_arena_alloc(&arena, SIZE_MAX - less) == NULL);
    CHECK_EQ(budget.used, 0);
    kiln_arena_done(&arena);
}

TEST(arena, the_budget_ends_it_and_gets_everything_back)
{
    struct kiln_budget budget = {.limit = 100000};
    struct kiln_arena arena;
    uint32_t n = 0;

    kiln_arena_init(&arena, &budget);
    while (kiln_arena_alloc(&arena, 1000))
        n++;
    CHECK(n > 10 && n <= 100);
    CHECK(budget.used <= budget.limit);
    kiln_arena_done(&arena);
    CHECK_EQ(budget.used, 0);
}

TEST(arena, what_it_adopts_is_charged_and_freed)
{
    struct kiln_budget budget = {.limit = 1000};
    int64_t live = kiln_mem_live();
    struct kiln_arena arena;
    void *large = kiln_malloc(900), *more = kiln_malloc(900);

    kiln_arena_init(&arena, &budget);
    CHECK_OK(kiln_arena_adopt(&arena, large, 900));
    CHECK(budget.used >= 900);
    CHECK_EQ(kiln_arena_adopt(&arena, more, 900), KILN_E_LIMIT);
    kiln_free(more); /* what is refused stays the caller's */
    kiln_arena_done(&arena);
    CHECK_EQ(kiln_mem_live(), live);
}

TEST(arena, running_out_of_memory_is_no_memory_and_no_leak)
{
    struct kiln_budget budget = {.limit = 1u << 20};
    struct kiln_starved s = {0};

    while (kiln_test_starve(&s)) {
        struct kiln_arena arena;

        kiln_arena_init(&arena, &budget);
        s.r = 0;
        for (uint32_t i = 0; i < 50 && s.r == 0; i++)
            s.r = kiln_arena_alloc(&arena, 4000) ? 0 : KILN_E_LIMIT;
        kiln_arena_done(&arena);
        CHECK_EQ(budget.used, 0);
    }
    CHECK(s.n > 3);
}

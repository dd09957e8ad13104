/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "test.h"

TEST(mem, the_chosen_allocation_fails_and_no_other)
{
    void *first, *second, *third;

    kiln_mem_fail_at(2);
    first = kiln_malloc(8);
    CHECK(!kiln_mem_failed());
    second = kiln_calloc(2, 8);
    CHECK(kiln_mem_failed());
    third = kiln_realloc(NULL, 8);
    CHECK(first && !second && third);
    kiln_free(first);
    kiln_free(third);
}

static void *free_elsewhere(void *block)
{
    kiln_free(block);
    return NULL;
}

TEST(mem, live_bytes_are_counted_whoever_frees_them)
{
    size_t before = kiln_mem_live_bytes();
    uint64_t made = kiln_mem_made_bytes();
    int64_t blocks = kiln_mem_live();
    char *block = kiln_malloc(1000), *other = kiln_calloc(10, 100);
    pthread_t thread;

    CHECK(kiln_mem_live_bytes() >= before + 2000);
    block = kiln_realloc(block, 50000);
    CHECK(kiln_mem_live_bytes() >= before + 51000);
    CHECK(kiln_mem_live_bytes() < before + 60000);
    CHECK_EQ(kiln_mem_live(), blocks + 2);
    kiln_free(other);
    CHECK_EQ(pthread_create(&thread, NULL, free_elsewhere, block), 0);
    pthread_join(thread, NULL);
    CHECK_EQ(kiln_mem_live_bytes(), before);
    CHECK_EQ(kiln_mem_live(), blocks);
    CHECK(kiln_mem_made_bytes() >= made + 51000);
    CHECK(kiln_mem_made_bytes() < made + 60000);
}

TEST(mem, an_array_grows_by_doubling_and_is_charged)
{
    struct kiln_budget budget = {.limit = 1000};
    uint32_t *array = NULL, cap = 0;

    CHECK_OK(kiln_grow(&budget, (void **)&array, &cap, 1, sizeof(*array), 100));
    CHECK_EQ(cap, 16);
    CHECK_EQ(budget.used, 64);
    CHECK_OK(kiln_grow(&budget, (void **)&array, &cap, 17, sizeof(*array), 100));
    CHECK_EQ(cap, 32);
    CHECK_OK(kiln_reserve(&budget, (void **)&array, &cap, 33, sizeof(*array), 100));
    CHECK_EQ(cap, 33);
    kiln_array_free(&budget, (void **)&array, &cap, sizeof(*array));
    CHECK_EQ(budget.used, 0);
    CHECK_EQ(budget.peak, 132);
}

TEST(mem, an_array_stays_as_it_was_when_it_cannot_grow)
{
    struct kiln_budget budget = {.limit = 100};
    uint32_t *array = NULL, cap = 0;

    CHECK_OK(kiln_reserve(&budget, (void **)&array, &cap, 10, sizeof(*array), 100));
    CHECK_EQ(kiln_grow(&budget, (void **)&array, &cap, 101, sizeof(*array), 100), KILN_E_LIMIT);
    CHECK_EQ(kiln_grow(&budget, (void **)&array, &cap, 50, sizeof(*array), 100), KILN_E_LIMIT);
    CHECK_EQ(kiln_grow(&budget, (void **)&array, &cap, UINT64_MAX, sizeof(*array), UINT32_MAX),
             KILN_E_LIMIT);
    kiln_mem_fail_at(1);
    CHECK_EQ(kiln_grow(&budget, (void **)&array, &cap, 11, sizeof(*array), 100), -ENOMEM);
    CHECK_EQ(cap, 10);
    CHECK_EQ(budget.used, 40);
    kiln_array_free(&budget, (void **)&array, &cap, sizeof(*array));
}

TEST(arena, allocations_are_aligned_and_apart)
{
    struct kiln_budget budget = {.limit = 1u << 20};
    struct kiln_arena arena;
    char *last = NULL;

    kiln_arena_init(&arena, &budget);
    for (size_t size = 0; size < 3000; size += 7) {
        char *ptr = kiln_arena_alloc(&arena, size);

        CHECK(ptr && (uintptr_t)ptr % 16 == 0);
        memset(ptr, 'x', size);
        CHECK(size == 0 || ptr != last);
        last = ptr;
    }
    CHECK(budget.used > 3000u * 3000 / 7 / 2);
    kiln_arena_done(&arena);
    CHECK_EQ(budget.used, 0);
}

TEST(arena, the_budget_is_the_limit)
{
    struct kiln_budget budget = {.limit = 10000};
    struct kiln_arena arena;
    int n = 0;

    kiln_arena_init(&arena, &budget);
    CHECK(kiln_arena_alloc(&arena, SIZE_MAX) == NULL);
    CHECK(kiln_arena_alloc(&arena, 20000) == NULL);
    while (kiln_arena_alloc(&arena, 100))
        n++;
    CHECK(n > 30 && n <= 100);
    CHECK(budget.used <= budget.limit);
    kiln_arena_done(&arena);
}

TEST(arena, adopted_memory_is_charged_and_freed_with_it)
{
    struct kiln_budget budget = {.limit = 10000};
    int64_t live = kiln_mem_live();
    struct kiln_arena arena;
    void *mine = kiln_malloc(9000), *more = kiln_malloc(9000);

    kiln_arena_init(&arena, &budget);
    CHECK_OK(kiln_arena_adopt(&arena, mine, 9000));
    CHECK(budget.used >= 9000);
    CHECK_EQ(kiln_arena_adopt(&arena, more, 9000), KILN_E_LIMIT);
    kiln_free(more);
    kiln_arena_done(&arena);
    CHECK_EQ(kiln_mem_live(), live);
    CHECK_EQ(budget.used, 0);
}

TEST(arena, a_copy_of_an_empty_text_is_not_a_failure)
{
    struct kiln_budget budget = {.limit = 10000};
    struct kiln_arena arena;

    kiln_arena_init(&arena, &budget);
    CHECK(kiln_arena_copy(&arena, KILN_STR_NONE).ptr != NULL);
    CHECK_STR(kiln_arena_copy(&arena, KILN_STR("abc")), "abc");
    kiln_arena_done(&arena);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/mem.h"
#include "symbol/resolver_int.h"
#include "test.h"

static const struct kiln_name_frame frames[] = {
    {.function = {"inlined", 7}, .file = {"sum.h", 5}, .line = 70, .column = 9},
    {.function = {"kiln::sum(int)", 14},
     .system_name = {"_ZN4kiln3sumEi", 14},
     .file = {"sum.cc", 6},
     .line = 7,
     .start_line = 3},
};
static const struct kiln_name a_name = {.frames = frames + 1, .n = 1, .module = {"m", 1}};
static const struct kiln_name two_frames = {.frames = frames, .n = 2};

static void put(struct kiln_name_cache *cache, uint64_t address, const struct kiln_name *name)
{
    const struct kiln_kept_key key = {1, 2, address};
    struct kiln_name kept;

    CHECK_OK(kiln_name_cache_put(cache, &key, name, &kept));
    CHECK(kiln_str_eq(kiln_name_function(&kept), kiln_name_function(name)));
}

static int get(struct kiln_name_cache *cache, uint64_t address, struct kiln_name *ret_name)
{
    const struct kiln_kept_key key = {1, 2, address};

    return kiln_name_cache_get(cache, &key, ret_name);
}

TEST(name_cache, gives_back_all_of_a_name)
{
    struct kiln_name_cache cache;
    struct kiln_name name;

    kiln_name_cache_init(&cache, 1 << 20);
    CHECK_EQ(get(&cache, 5, &name), 0);
    put(&cache, 5, &a_name);
    CHECK_EQ(get(&cache, 5, &name), 1);
    CHECK_EQ(name.n, 1);
    CHECK_STR(name.frames[0].function, "kiln::sum(int)");
    CHECK_STR(name.frames[0].system_name, "_ZN4kiln3sumEi");
    CHECK_STR(name.frames[0].file, "sum.cc");
    CHECK_STR(name.module, "m");
    CHECK_EQ(name.frames[0].line, 7);
    CHECK_EQ(name.frames[0].start_line, 3);
    CHECK(!name.shallow);
    CHECK_EQ(get(&cache, 6, &name), 0);
    kiln_name_cache_done(&cache);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(name_cache, knows_that_there_is_no_name)
{
    const struct kiln_name none = {0};
    struct kiln_name_cache cache;
    struct kiln_name name = a_name;

    kiln_name_cache_init(&cache, 1 << 20);
    put(&cache, 5, &none);
    CHECK_EQ(get(&cache, 5, &name), 1);
    CHECK_EQ(name.n, 0);
    CHECK_EQ(name.begin, 0);
    kiln_name_cache_done(&cache);
}

TEST(name_cache, knows_where_a_function_without_a_name_begins)
{
    const struct kiln_name nameless = {.begin = 0x1230};
    struct kiln_name_cache cache;
    struct kiln_name name = a_name;

    kiln_name_cache_init(&cache, 1 << 20);
    put(&cache, 5, &nameless);
    CHECK_EQ(get(&cache, 5, &name), 1);
    CHECK_EQ(name.n, 0);
    CHECK_EQ(name.begin, 0x1230);
    put(&cache, 5, &a_name);
    CHECK_EQ(get(&cache, 5, &name), 1);
    CHECK_STR(kiln_name_function(&name), "kiln::sum(int)");
    CHECK_EQ(name.begin, 0);
    kiln_name_cache_done(&cache);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(name_cache, keeps_a_text_once)
{
    struct kiln_name_cache cache;
    struct kiln_name first;
    struct kiln_name second;

    kiln_name_cache_init(&cache, 1 << 20);
    put(&cache, 5, &a_name);
    put(&cache, 6, &a_name);
    CHECK_EQ(get(&cache, 5, &first), 1);
    CHECK_EQ(get(&cache, 6, &second), 1);
    CHECK(first.frames == second.frames);
    kiln_name_cache_done(&cache);
}

TEST(name_cache, gives_back_all_frames_of_an_address)
{
    struct kiln_name_cache cache;
    struct kiln_name name, other;

    kiln_name_cache_init(&cache, 1 << 20);
    put(&cache, 5, &two_frames);
    put(&cache, 6, &a_name);
    CHECK_EQ(get(&cache, 5, &name), 1);
    CHECK_EQ(name.n, 2);
    CHECK_STR(name.frames[0].function, "inlined");
    CHECK_STR(name.frames[0].file, "sum.h");
    CHECK_EQ(name.frames[0].line, 70);
    CHECK_EQ(name.frames[0].column, 9);
    CHECK_STR(name.frames[1].function, "kiln::sum(int)");
    CHECK_EQ(name.frames[1].line, 7);
    CHECK_EQ(get(&cache, 6, &other), 1);
    CHECK_EQ(other.n, 1);
    CHECK(other.frames[0].function.ptr == name.frames[1].function.ptr);
    kiln_name_cache_done(&cache);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(name_cache, lines_of_one_function_are_not_taken_for_each_other)
{
    struct kiln_name_frame other_line = frames[1];
    const struct kiln_name name_there = {.frames = &other_line, .n = 1, .module = {"m", 1}};
    struct kiln_name_cache cache;
    struct kiln_name name;

    other_line.line = 8;
    kiln_name_cache_init(&cache, 1 << 20);
    put(&cache, 5, &a_name);
    put(&cache, 6, &name_there);
    CHECK_EQ(get(&cache, 5, &name), 1);
    CHECK_EQ(name.frames[0].line, 7);
    CHECK_EQ(get(&cache, 6, &name), 1);
    CHECK_EQ(name.frames[0].line, 8);
    kiln_name_cache_done(&cache);
}

TEST(name_cache, a_deeper_answer_takes_the_place_of_a_shallow_one)
{
    struct kiln_name shallow = a_name;
    struct kiln_name_cache cache;
    struct kiln_name name;

    shallow.shallow = true;
    kiln_name_cache_init(&cache, 1 << 20);
    put(&cache, 5, &shallow);
    CHECK_EQ(get(&cache, 5, &name), 1);
    CHECK(name.shallow);
    put(&cache, 5, &two_frames);
    CHECK_EQ(get(&cache, 5, &name), 1);
    CHECK(!name.shallow);
    CHECK_EQ(name.n, 2);
    kiln_name_cache_done(&cache);
}

TEST(name_cache, forgets_what_is_not_asked_for_and_stays_small)
{
    enum { N = 100000, BYTES = 1 << 20 };
    struct kiln_name_cache cache;
    struct kiln_name name;

    kiln_name_cache_init(&cache, BYTES);
    put(&cache, 0, &a_name);
    for (uint64_t i = 1; i < N; i++) {
        put(&cache, i, &a_name);
        CHECK_EQ(get(&cache, 0, &name), 1);
        kiln_name_cache_turn(&cache);
        CHECK(kiln_name_cache_bytes(&cache) <= BYTES);
    }
    CHECK_EQ(get(&cache, 1, &name), 0);
    CHECK_EQ(get(&cache, N - 1, &name), 1);
    kiln_name_cache_done(&cache);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(name_cache, what_was_given_out_lives_until_the_next_turn)
{
    struct kiln_name_cache cache;
    struct kiln_name name;

    kiln_name_cache_init(&cache, 1 << 20);
    put(&cache, 0, &a_name);
    CHECK_EQ(get(&cache, 0, &name), 1);
    for (uint64_t i = 1; i < 50000; i++)
        put(&cache, i, &a_name);
    CHECK_STR(kiln_name_function(&name), "kiln::sum(int)");
    kiln_name_cache_done(&cache);
}

TEST(name_cache, without_memory_nothing_is_lost_but_the_name)
{
    const struct kiln_kept_key key = {1, 2, 3};
    struct kiln_name name;

    for (uint64_t n = 1;; n++) {
        struct kiln_name_cache cache;
        bool failed;
        int r;

        kiln_name_cache_init(&cache, 1 << 20);
        kiln_mem_fail_at(n);
        r = kiln_name_cache_put(&cache, &key, &a_name, &name);
        failed = kiln_mem_failed();
        kiln_mem_fail_at(0);
        if (r < 0)
            CHECK_EQ(r, -ENOMEM);
        CHECK_OK(kiln_name_cache_put(&cache, &key, &a_name, &name));
        kiln_name_cache_done(&cache);
        CHECK_EQ(kiln_mem_live(), 0);
        if (!failed)
            break;
    }
}

TEST(name_cache, many_names_that_are_all_different_make_room_for_each_other)
{
    struct kiln_name_cache cache;

    kiln_name_cache_init(&cache, 3 << 20);
    for (uint32_t i = 0; i < 40000; i++) {
        char function[64];
        struct kiln_name_frame deep[KILN_NAME_FRAMES_MAX];
        struct kiln_name name = {.frames = deep, .n = 1 + i * 7 % KILN_NAME_FRAMES_MAX};

        (void)snprintf(function, sizeof(function), "%.*s_%u", (int)(i % 29),
                       "a_function_of_some_long_program", i * 7);
        for (uint32_t k = 0; k < name.n; k++)
            deep[k] = (struct kiln_name_frame){.function = kiln_str_of(function), .line = i + k};
        put(&cache, i, &name);
        kiln_name_cache_turn(&cache);
    }
    CHECK(kiln_name_cache_bytes(&cache) <= 3 << 20);
    kiln_name_cache_done(&cache);
    CHECK_EQ(kiln_mem_live(), 0);
}

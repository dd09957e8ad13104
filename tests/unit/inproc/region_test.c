/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/sample/region.h"

#include "test.h"

/* Regions are drawn as text: a letter for each page that a region has, '.' for one of nobody's. */
enum { PAGES = 16 };

static void add(uint64_t first, uint64_t pages, char letter)
{
    CHECK_OK(kiln_in_region_add(&(struct kiln_in_live){
        .address = first + 1, .size = pages, .count = 1, .stack = (uint32_t)letter}));
}

static void draw_one(const struct kiln_in_live *region, void *picture)
{
    for (uint64_t i = 0; i < region->size; i++)
        ((char *)picture)[region->address - 1 + i] = (char)region->stack;
}

static const char *drawn(void)
{
    static char picture[PAGES + 1];

    memset(picture, '.', PAGES);
    kiln_in_region_each(draw_one, picture);
    return picture;
}

static void cut(uint64_t first, uint64_t pages)
{
    kiln_in_region_cut(first + 1, first + 1 + pages);
}

TEST(region, either_end_and_the_middle_can_be_cut_off)
{
    add(2, 12, 'a');
    CHECK_TEXT(drawn(), "..aaaaaaaaaaaa..");
    cut(0, 4);
    CHECK_TEXT(drawn(), "....aaaaaaaaaa..");
    cut(12, 4);
    CHECK_TEXT(drawn(), "....aaaaaaaa....");
    cut(6, 3);
    CHECK_TEXT(drawn(), "....aa...aaa....");
    CHECK_EQ(kiln_in_region_count(), 2);
    cut(0, PAGES);
    CHECK_TEXT(drawn(), "................");
    CHECK_EQ(kiln_in_region_count(), 0);
}

TEST(region, a_cut_may_go_through_several)
{
    add(0, 4, 'a');
    add(5, 4, 'b');
    add(10, 4, 'c');
    cut(2, 10);
    CHECK_TEXT(drawn(), "aa..........cc..");
    CHECK_EQ(kiln_in_region_count(), 2);
    cut(0, PAGES);
}

TEST(region, what_only_touches_is_not_cut)
{
    add(4, 4, 'a');
    cut(0, 4);
    cut(8, 8);
    CHECK_TEXT(drawn(), "....aaaa........");
    cut(0, PAGES);
}

TEST(region, one_is_taken_by_where_it_begins)
{
    struct kiln_in_live taken = {0};

    add(3, 2, 'a');
    add(8, 5, 'b');
    CHECK(!kiln_in_region_take(5, &taken));
    CHECK(kiln_in_region_take(9, &taken));
    CHECK_EQ(taken.size, 5);
    CHECK_TEXT(drawn(), "...aa...........");
    cut(0, PAGES);
}

TEST(region, there_is_room_for_so_many_only)
{
    for (uint64_t i = 0; i < KILN_IN_REGIONS_MAX; i++)
        CHECK_OK(kiln_in_region_add(&(struct kiln_in_live){.address = 3 * i + 1, .size = 3}));
    CHECK_EQ(kiln_in_region_add(&(struct kiln_in_live){.address = 1, .size = 1}), -1);
    kiln_in_region_cut(2, 3);
    CHECK_EQ(kiln_in_region_count(), KILN_IN_REGIONS_MAX);
    kiln_in_region_cut(0, UINT64_MAX);
    CHECK_EQ(kiln_in_region_count(), 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Power fails at every operation of a put, a drop and a rewriting: names are those of before or
 * after, what was acknowledged is there, and samples are never lost or doubled.
 */
#include <stdio.h>
#include <string.h>

#include "nameless.h"
#include "store/check.h"
#include "store_kit.h"
#include "test.h"

#define NOW    1000000
#define BEFORE "main;app+0x20 5\n"
#define AFTER  "main;get;read 5\n"

static void begin(struct store_kit *kit)
{
    const struct kiln_nameless drawn = {
        .stacks = "10;20 5\n", .build_id = "abc", .service = "shop", .time_ns = NOW};

    kit_init(kit, NOW);
    kit_put(kit, kiln_test_nameless(&drawn));
    CHECK_OK(kiln_store_flush(kit->engine, NULL));
    kiln_test_put_names(kit->engine, "abc", "10 main\n");
    CHECK_TEXT(kit_drawing(kit, 0, 0), BEFORE);
}

static int put_more(struct store_kit *kit)
{
    const struct kiln_symbol_frame get = {.name = KILN_STR("get"), .file = KILN_STR("get.c")};
    const struct kiln_symbol_frame read = {.name = KILN_STR("read"), .file = KILN_STR("read.c")};
    const struct kiln_symbol_frame both[] = {read, get};
    const struct kiln_symbol symbol = {.address = 0x20, .size = 1, .frames = both, .n = 2};

    return kit->engine->ops->put_symbols(kit->engine, KILN_STR("anonymous"), KILN_STR("abc"),
                                         &symbol, 1, NULL);
}

static int drop(struct store_kit *kit)
{
    return kit->engine->ops->drop_symbols(kit->engine, KILN_STR("anonymous"), KILN_STR("abc"),
                                          NULL);
}

static int rewrite(struct store_kit *kit)
{
    int r = put_more(kit);

    return r < 0 ? r : kiln_store_compact(kit->engine, true, NULL);
}

static void check_whole(struct store_kit *kit)
{
    struct kiln_store_check check;

    CHECK_OK(kiln_store_check(kit->io, &(struct kiln_store_check_opts){0}, &check, NULL));
    CHECK_EQ(check.n_damages, 0);
    kiln_store_check_done(&check);
}

/* Does it with power failing at each of its operations; `before` or `after` is what is there. */
static void cut_everywhere(int (*act)(struct store_kit *kit), const char *before, const char *after)
{
    bool is_done = false;
    uint64_t n = 1;

    for (; !is_done; n++) {
        struct store_kit kit;
        const char *text;
        int r;

        begin(&kit);
        kiln_sim_cut_at(kit.io, n);
        r = act(&kit);
        is_done = !kiln_sim_is_dead(kit.io);
        kit_cut_power(&kit, n);
        kit_open(&kit);
        text = kit_drawing(&kit, 0, 0);
        if (strcmp(text, before) != 0 || r == 0)
            CHECK_TEXT(text, after);
        check_whole(&kit);
        CHECK_OK(put_more(&kit));
        kiln_test_put_names(kit.engine, "abc", "10 main\n");
        CHECK_OK(kiln_store_compact(kit.engine, true, NULL));
        CHECK_TEXT(kit_drawing(&kit, 0, 0), AFTER);
        kit_done(&kit);
    }
    CHECK(n > 2);
}

TEST(naming_cut, names_that_were_put_are_there_whole_or_not_at_all)
{
    cut_everywhere(put_more, BEFORE, AFTER);
}

TEST(naming_cut, names_that_were_dropped_are_gone_or_there)
{
    cut_everywhere(drop, BEFORE, "app+0x10;app+0x20 5\n");
}

TEST(naming_cut, a_block_that_gets_its_names_is_there_once)
{
    cut_everywhere(rewrite, BEFORE, AFTER);
}

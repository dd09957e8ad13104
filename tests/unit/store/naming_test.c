/* SPDX-License-Identifier: Apache-2.0 */
/* Names that come later than the samples: every question has them, from heads and from blocks. */
#include <stdio.h>

#include "answers.h"
#include "nameless.h"
#include "store_kit.h"
#include "test.h"

#define NOW 1000000

static void put(struct store_kit *kit, const char *stacks)
{
    const struct kiln_nameless drawn = {.stacks = stacks, .build_id = "abc", .time_ns = NOW};

    kit_put(kit, kiln_test_nameless(&drawn));
}

static void flush(struct store_kit *kit)
{
    CHECK_OK(kiln_store_flush(kit->engine, NULL));
}

TEST(naming, an_address_without_a_name_becomes_all_that_was_inlined_there)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "start;10;+20 5\n");
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "start;app+0x10;app+0x20 5\n");
    for (int i = 0; i < 2; i++) { /* from the head, then from a block */
        kiln_test_put_names(kit.engine, "abc", "10 get;main\n20 .read\n");
        CHECK_TEXT(kit_drawing(&kit, 0, 0), "start;main;get;read 5\n");
        flush(&kit);
    }
    kit_reopen(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "start;main;get;read 5\n");
    kit_done(&kit);
}

TEST(naming, what_a_symbol_table_named_gets_what_is_deeper_and_nothing_else)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "main@10;main@14;main@18;known!10;kernel?10 5\n");
    kiln_test_put_names(kit.engine, "abc", "10 get;main\n14 .other\n18\n");
    for (int i = 0; i < 2; i++) {
        CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;get;main;main;known;kernel 5\n");
        flush(&kit);
    }
    kit_done(&kit);
}

TEST(naming, what_was_dropped_is_as_it_was)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "main@10;20 5\n");
    kiln_test_put_names(kit.engine, "abc", "10 get;main\n20 read\n");
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;get;read 5\n");
    CHECK_OK(
        kit.engine->ops->drop_symbols(kit.engine, KILN_STR("anonymous"), KILN_STR("abc"), NULL));
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;app+0x20 5\n");
    kit_done(&kit);
}

TEST(naming, what_lacks_a_name_is_told_until_it_has_a_symbol)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    CHECK_TEXT(kiln_test_unnamed(kit.engine), "");
    put(&kit, "start;30;10;main@20;known!40;kernel?50;+60 5\n30;10 1\n");
    CHECK_TEXT(kiln_test_unnamed(kit.engine), "abc /bin/app 10 20 30 60\n");
    flush(&kit);
    put(&kit, "10;70 1\n");
    CHECK_TEXT(kiln_test_unnamed(kit.engine), "abc /bin/app 10 20 30 60 70\n");
    kiln_test_put_names(kit.engine, "abc", "10 get;main\n20\n60-70 read\n");
    CHECK_TEXT(kiln_test_unnamed(kit.engine), "abc /bin/app 30 70\n");
    kiln_test_put_names(kit.engine, "abc", "30 x\n70 y\n");
    CHECK_TEXT(kiln_test_unnamed(kit.engine), "");
    CHECK_OK(
        kit.engine->ops->drop_symbols(kit.engine, KILN_STR("anonymous"), KILN_STR("abc"), NULL));
    CHECK_TEXT(kiln_test_unnamed(kit.engine), "abc /bin/app 10 20 30 60 70\n");
    kit_done(&kit);
}

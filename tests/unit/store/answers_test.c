/* SPDX-License-Identifier: Apache-2.0 */
/* What answers mean (store/engine.h), on stacks that are drawn. */
#include "answers.h"

#include "base/clock.h"
#include "base/regex.h"
#include "drawn.h"
#include "store_kit.h"
#include "test.h"

#define NOW (UINT64_C(1700000000) * KILN_NS_PER_S)
#define T0  (NOW - 3600 * KILN_NS_PER_S) /* times in drawings below are small: they are moved here \
                                          */

#define CPU .type = "cpu", .unit = "nanoseconds", .period_type = "cpu", .period_unit = "nanoseconds"

static const struct kiln_merge_wants tree = {.nodes_max = 1000};

/* A store with these profiles; some cut into a block, some not. */
static void begin(struct store_kit *kit, const struct kiln_drawn *profiles, uint32_t n)
{
    kit_init(kit, NOW);
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_drawn one = profiles[i];

        one.time_ns += T0;
        kit_put(kit, kiln_test_batch(&one, 1));
        if (i == n / 2)
            CHECK_OK(kiln_store_flush(kit->engine, NULL));
    }
}

#define BEGIN(kit, ...)                                                                            \
    do {                                                                                           \
        const struct kiln_drawn drawn_[] = {__VA_ARGS__};                                          \
        begin((kit), drawn_, KILN_ARRAY_LEN(drawn_));                                              \
    } while (0)

TEST(answers, a_merge_is_one_tree_of_everything)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();

    BEGIN(&kit, {CPU, .stacks = "main;read 3\nmain 1\n", .resource = "service.name=shop"},
          {CPU, .stacks = "main;read 4\nmain;idle 5\n", .resource = "service.name=cart"},
          {CPU, .stacks = "main;read 7\n", .resource = "service.name=shop", .time_ns = 5});
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree), "total 20 0\n"
                                                       "  main 20 1\n"
                                                       "    idle 5 5\n"
                                                       "    read 14 14\n");
    kit_done(&kit);
}

TEST(answers, a_tree_keeps_the_largest_nodes_and_folds_the_others)
{
    struct store_kit kit;
    struct kiln_question q = kiln_test_question();
    struct kiln_merge_wants two = {.nodes_max = 2};

    BEGIN(&kit, {CPU, .stacks = "main;a 3\nmain;b 1\nmain;c 3\nmain;a;d 1\nx 1\n"});
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &two), "total 9 0\n"
                                                      "  main 8 0\n"
                                                      "    a 4 3\n"
                                                      "      other 1 1\n"
                                                      "    other 4 4\n"
                                                      "  other 1 1\n");
    kit_done(&kit);
}

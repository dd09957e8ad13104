/* SPDX-License-Identifier: Apache-2.0 */
/* What a service shows of its functions where other services of its block have functions of the
 * same name. */
#include "answers.h"
#include "drawn.h"
#include "store_kit.h"
#include "test.h"

/* The clock stands so early that times are short to draw. */
#define NOW 1000000
#define CPU .type = "cpu", .unit = "nanoseconds", .period_type = "cpu", .period_unit = "nanoseconds"

/* The file of the only function, of one service or, for NULL, of all. */
static const char *file_of(struct store_kit *kit, const char *service)
{
    static const struct kiln_merge_wants wants = {.functions = true};
    static char file[64];
    struct kiln_question q = kiln_test_question();
    struct kiln_matcher m = {.name = KILN_STR("service_name"),
                             .value = kiln_str_of(service ? service : "")};
    struct kiln_merged *merged = NULL;

    q.matchers = &m;
    q.n_matchers = service ? 1 : 0;
    CHECK_OK(kit->engine->ops->merge(kit->engine, &q, &wants, &merged, NULL));
    CHECK_EQ(merged->flame->n_functions, 1);
    snprintf(file, sizeof(file), "%.*s",
             KILN_STR_ARG(merged->flame->names[merged->flame->functions[0].name].file));
    kiln_merged_free(merged);
    return file;
}

TEST(block_naming, services_have_their_own_files_of_functions_of_one_name)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    kit_put(&kit,
            kiln_test_batch(&(struct kiln_drawn){CPU, .stacks = "get@cart.go:1 1", .time_ns = 10,
                                                 .resource = "service.name=cart"},
                            1));
    kit_put(&kit,
            kiln_test_batch(&(struct kiln_drawn){CPU, .stacks = "get 1\nget@shop.go:1 2",
                                                 .time_ns = 10, .resource = "service.name=shop"},
                            1));
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    CHECK_TEXT(file_of(&kit, NULL), "cart.go");
    CHECK_TEXT(file_of(&kit, "shop"), "shop.go");
    CHECK_TEXT(file_of(&kit, "cart"), "cart.go");
    kit_done(&kit);
}

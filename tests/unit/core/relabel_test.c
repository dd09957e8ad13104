/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "core/relabel.h"
#include "random_batch.h"
#include "resolve.h"
#include "stacks.h"
#include "test.h"

/* A batch of one sample, in a function of this file, in a mapping of this file. */
static struct kiln_batch *batch_with_paths(const char *source, const char *mapping)
{
    struct kiln_batch *batch;
    struct kiln_builder *b;
    struct kiln_function f = {0};
    struct kiln_mapping m = {.start = 1, .limit = 2};
    struct kiln_location l = {.address = 1};
    struct kiln_line line = {0};
    uint32_t location;

    CHECK_OK(kiln_builder_new(NULL, &b));
    f.name = kiln_builder_string(b, KILN_STR("/build/main"));
    f.filename = kiln_builder_string(b, kiln_str_of(source));
    m.filename = kiln_builder_string(b, kiln_str_of(mapping));
    line.function = kiln_builder_function(b, &f);
    l.mapping = kiln_builder_mapping(b, &m);
    location = kiln_builder_location(b, &l, &line, 1);
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &(struct kiln_profile){0});
    kiln_builder_add_value(b, 0, kiln_builder_stack(b, &location, 1), 0, 7);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

static void check_relabelled(const char *rule_text, const char *path, const char *expected)
{
    struct kiln_batch *batch = batch_with_paths(path, path), *relabelled;
    struct kiln_relabel_rule rule;

    CHECK_OK(kiln_relabel_parse(kiln_str_of(rule_text), &rule, NULL));
    CHECK_OK(kiln_relabel(batch, &rule, 1, &relabelled, NULL));
    CHECK_STR(kiln_batch_str(relabelled, relabelled->dict.functions[1].filename), expected);
    CHECK_STR(kiln_batch_str(relabelled, relabelled->dict.mappings[1].filename), expected);
    CHECK_STR(kiln_batch_str(relabelled, relabelled->dict.functions[1].name), "/build/main");
    CHECK_EQ(relabelled->observations[0], 7);
    kiln_batch_unref(batch);
    kiln_batch_unref(relabelled);
}

TEST(relabel, the_beginning_of_a_path_is_replaced)
{
    check_relabelled("/build=/src", "/build/a.c", "/src/a.c");
    check_relabelled("/build/=/src/", "/build/a.c", "/src/a.c");
    check_relabelled("/build=/src", "/build", "/src");
    check_relabelled("C:\\build=/src", "C:\\build\\a.c", "/src\\a.c");
}

TEST(relabel, without_a_new_beginning_it_is_trimmed)
{
    check_relabelled("/build", "/build/a.c", "a.c");
    check_relabelled("/build=", "/build/lib/a.c", "lib/a.c");
    check_relabelled("/build/", "/build/a.c", "a.c");
}

TEST(relabel, only_whole_folder_names_match)
{
    check_relabelled("/build=/src", "/build2/a.c", "/build2/a.c");
    check_relabelled("/build=/src", "/other/build/a.c", "/other/build/a.c");
    check_relabelled("/build=/src", "", "");
}

TEST(relabel, the_first_rule_that_fits_is_taken)
{
    struct kiln_batch *batch = batch_with_paths("/a/b/x.c", "/a/lib.so"), *relabelled;
    struct kiln_relabel_rule rules[] = {{KILN_STR("/a/b"), KILN_STR("/one")},
                                        {KILN_STR("/a"), KILN_STR("/two")}};

    CHECK_OK(kiln_relabel(batch, rules, 2, &relabelled, NULL));
    CHECK_STR(kiln_batch_str(relabelled, relabelled->dict.functions[1].filename), "/one/x.c");
    CHECK_STR(kiln_batch_str(relabelled, relabelled->dict.mappings[1].filename), "/two/lib.so");
    kiln_batch_unref(batch);
    kiln_batch_unref(relabelled);
}

TEST(relabel, a_rule_without_a_beginning_is_an_error)
{
    struct kiln_relabel_rule rule;
    struct kiln_err err = {0};

    CHECK_EQ(kiln_relabel_parse(KILN_STR("=/src"), &rule, &err), KILN_E_MALFORMED);
    CHECK_TEXT(err.text, "\"=/src\" is not FROM=TO");
    CHECK_EQ(kiln_relabel_parse(KILN_STR(""), &rule, NULL), KILN_E_MALFORMED);
}

TEST(relabel, without_a_rule_that_fits_nothing_changes)
{
    struct kiln_relabel_rule rule = {KILN_STR("/nowhere"), KILN_STR("/x")};

    for (uint64_t seed = 0; seed < 30; seed++) {
        struct kiln_batch *batch = random_batch(&(struct random_opts){.seed = seed});
        struct kiln_batch *relabelled;

        CHECK_OK(kiln_relabel(batch, &rule, 1, &relabelled, NULL));
        CHECK(kiln_batch_equal(batch, relabelled));
        kiln_batch_unref(batch);
        kiln_batch_unref(relabelled);
    }
}

TEST(relabel, running_out_of_memory_anywhere_leaks_nothing)
{
    struct kiln_batch *batch = batch_with_paths("/build/a.c", "/build/b.so"), *relabelled = NULL;
    struct kiln_relabel_rule rule = {KILN_STR("/build"), KILN_STR("/x")};
    int64_t live = kiln_mem_live();
    int r = -1;

    for (uint64_t n = 1; r < 0; n++) {
        kiln_mem_fail_at(n);
        r = kiln_relabel(batch, &rule, 1, &relabelled, NULL);
        kiln_mem_fail_at(0);
        CHECK(r == 0 || kiln_mem_live() == live);
        assert_true(n < 1000);
    }
    kiln_batch_unref(batch);
    kiln_batch_unref(relabelled);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lines.h"

#include <stdio.h>

#include "core/builder.h"
#include "drawn.h"
#include "test.h"

/* "FILE start total" of each file, then "line self total" of each line of the first. */
static const char *text_of(const char *stacks, const char *function, const char *file)
{
    static char text[2048];
    struct kiln_batch *batch = kiln_test_stacks(stacks);
    const struct kiln_lines_opts opts = {.function = kiln_str_of(function),
                                         .file = kiln_str_of(file)};
    struct kiln_lines *lines = NULL;
    struct kiln_err err = {0};
    size_t n = 0;

    text[0] = '\0';
    if (kiln_lines_new(batch, &opts, &lines, &err) < 0)
        snprintf(text, sizeof(text), "%s", err.text);
    for (uint32_t i = 0; lines && i < lines->n_files; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "[%.*s] %lld %lld\n",
                              KILN_STR_ARG(lines->files[i].file), (long long)lines->files[i].self,
                              (long long)lines->files[i].total);
    for (uint32_t i = 0; lines && i < lines->n_lines; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%lld: %lld %lld\n",
                              (long long)lines->lines[i].line, (long long)lines->lines[i].self,
                              (long long)lines->lines[i].total);
    kiln_lines_free(lines);
    kiln_batch_unref(batch);
    return text;
}

TEST(lines, a_line_has_what_it_spent_itself_and_what_it_called_spent)
{
    CHECK_TEXT(text_of("main;parse@j.c:12;read 3\nmain;parse@j.c:12 2\nmain;parse@j.c:7 1\n"
                       "main;write 9\n",
                       "parse", ""),
               "[j.c] 3 6\n7: 1 1\n12: 2 5\n");
}

TEST(lines, a_line_that_recurses_counts_once)
{
    CHECK_TEXT(text_of("f@a.c:5;f@a.c:5;f@a.c:8 10\nf@a.c:5;f@a.c:5 1\n", "f", ""),
               "[a.c] 11 11\n5: 1 11\n8: 10 10\n");
}

TEST(lines, inlined_frames_have_lines_of_their_own)
{
    CHECK_TEXT(text_of("main;parse@j.c:12>skip@j.c:30 4\nmain;parse@j.c:13 1\n", "skip", ""),
               "[j.c] 4 4\n30: 4 4\n");
    CHECK_TEXT(text_of("main;parse@j.c:12>skip@j.c:30 4\nmain;parse@j.c:13 1\n", "parse", ""),
               "[j.c] 1 5\n12: 0 4\n13: 1 1\n");
}

TEST(lines, functions_of_one_name_are_told_apart_by_their_file)
{
    static const char stacks[] = "run@a.go:1 2\nrun@b.go:1 5\nrun@c.go:9;run@b.go:2 1\n";

    CHECK_TEXT(text_of(stacks, "run", ""), "[b.go] 6 6\n[a.go] 2 2\n[c.go] 0 1\n1: 5 5\n2: 1 1\n");
    CHECK_TEXT(text_of(stacks, "run", "a.go"), "[a.go] 2 2\n[b.go] 6 6\n[c.go] 0 1\n1: 2 2\n");
    CHECK_TEXT(text_of(stacks, "run", "d.go"), "no stack has such a function");
    CHECK_TEXT(text_of(stacks, "ru", ""), "no stack has such a function");
}

TEST(lines, what_is_not_known_is_line_0)
{
    CHECK_TEXT(text_of("main 1\nmain@m.c:3 1\n", "main", ""), "[] 1 1\n[m.c] 1 1\n0: 1 1\n");
    CHECK_TEXT(text_of("main;lib.so+0x1234 7\n", "lib.so+0x1234", ""), "[] 7 7\n0: 7 7\n");
}

TEST(lines, a_batch_that_takes_too_much_memory_is_refused)
{
    struct kiln_batch *batch = kiln_test_stacks("main@a.c:1 1\n");
    struct kiln_lines_opts opts = {.function = KILN_STR("main"), .memory_bytes = 8};
    struct kiln_lines *lines;

    CHECK_EQ(kiln_lines_new(batch, &opts, &lines, NULL), KILN_E_LIMIT);
    kiln_batch_unref(batch);
}

/* Code of a mapping that was compiled from a file, with a function of another file inlined. */
static void add_code(struct kiln_builder *b, uint64_t address, const char *module, const char *file)
{
    const struct kiln_mapping mapping = {.limit = 4096,
                                         .filename = kiln_builder_string(b, kiln_str_of(module))};
    const struct kiln_function inlined = {.name = kiln_builder_string(b, KILN_STR("min")),
                                          .filename = kiln_builder_string(b, KILN_STR("min.h"))};
    const struct kiln_function function = {.name = kiln_builder_string(b, KILN_STR("f")),
                                           .filename = kiln_builder_string(b, kiln_str_of(file))};
    const struct kiln_line lines[] = {{.function = kiln_builder_function(b, &inlined), .line = 1},
                                      {.function = kiln_builder_function(b, &function), .line = 2}};
    const struct kiln_location location = {
        .address = address, .mapping = module[0] ? kiln_builder_mapping(b, &mapping) : 0};

    (void)kiln_builder_location(b, &location, lines, 2);
}

TEST(lines, the_mappings_of_a_file_are_those_whose_code_was_compiled_from_it)
{
    struct kiln_builder *b;
    struct kiln_batch *batch;
    uint32_t found[4];

    CHECK_OK(kiln_builder_new(NULL, &b));
    add_code(b, 1, "/bin/one", "a.c");
    add_code(b, 2, "/bin/one", "a.c");
    add_code(b, 3, "/bin/two", "b.c");
    add_code(b, 4, "/bin/three", "a.c");
    add_code(b, 5, "", "c.c");
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    CHECK_EQ(kiln_lines_mappings(batch, KILN_STR("a.c"), found, 4), 2);
    CHECK_STR(batch->dict.strings[batch->dict.mappings[found[0]].filename], "/bin/one");
    CHECK_STR(batch->dict.strings[batch->dict.mappings[found[1]].filename], "/bin/three");
    CHECK_EQ(kiln_lines_mappings(batch, KILN_STR("min.h"), found, 4), 3);
    CHECK_EQ(kiln_lines_mappings(batch, KILN_STR("a.c"), found, 1), 1);
    CHECK_EQ(kiln_lines_mappings(batch, KILN_STR("c.c"), found, 4), 0);
    CHECK_EQ(kiln_lines_mappings(batch, KILN_STR("none.c"), found, 4), 0);
    kiln_batch_unref(batch);
}

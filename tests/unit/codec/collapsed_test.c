/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/mem.h"
#include "codec/collapsed.h"
#include "decoded.h"

#define DECODES(in, out)                                                                           \
    do {                                                                                           \
        struct kiln_batch *batch_ = kiln_test_decode(kiln_collapsed_decode, KILN_STR(in));         \
                                                                                                   \
        CHECK_TEXT(kiln_test_stacks(batch_, 0), out);                                              \
        kiln_batch_unref(batch_);                                                                  \
    } while (0)

TEST(collapsed, lines_are_stacks_and_their_counts)
{
    DECODES("main;parse;read 3\nmain 4\n", "main;parse;read 3\nmain 4\n");
}

TEST(collapsed, what_is_read_is_samples)
{
    struct kiln_batch *batch = kiln_test_decode(kiln_collapsed_decode, KILN_STR("a;b 1\n"));

    CHECK_STR(kiln_batch_str(batch, batch->profiles[0].sample_type.type), "samples");
    CHECK_STR(kiln_batch_str(batch, batch->profiles[0].sample_type.unit), "count");
    kiln_batch_unref(batch);
}

TEST(collapsed, frames_may_hold_blanks_and_lines_may_end_as_on_windows)
{
    DECODES("operator new(unsigned long);a b 3\r\nx;y\t7\r\n",
            "operator new(unsigned long);a b 3\nx;y 7\n");
}

TEST(collapsed, comments_and_empty_lines_are_passed_over)
{
    DECODES("# made by hand\n\n  \r\na;b 1\n#x;y 2", "a;b 1\n");
}

TEST(collapsed, the_last_line_needs_no_end)
{
    DECODES("a;b 1\nc;d 2", "a;b 1\nc;d 2\n");
}

TEST(collapsed, fractions_are_rounded_and_large_counts_are_exact)
{
    DECODES("a;b 1.5\na;c 2.4\na;d 9007199254740993\na;e 1e3\n",
            "a;b 2\na;c 2\na;d 9007199254740993\na;e 1000\n");
}

TEST(collapsed, suffixes_say_what_a_frame_is)
{
    DECODES("main;do_syscall_64_[k];Foo::bar_[j] 3\n",
            "main;do_syscall_64@kernel;Foo::bar@jit 3\n");
}

TEST(collapsed, an_inlined_frame_is_a_line_of_its_caller)
{
    DECODES("main;parse;skip_[i];peek_[i];read 3\n", "main;parse;(skip);(peek);read 3\n");
    DECODES("main_[i];read 3\n", "main;read 3\n"); /* nobody to be inlined into */
}

TEST(collapsed, an_empty_name_is_an_unknown_frame)
{
    DECODES("a;;b 3\n", "a;[unknown];b 3\n");
}

TEST(collapsed, the_empty_stack_and_semicolons_come_back)
{
    DECODES("[no stack] 3\nLjava/lang/String\xef\xbc\x9b;b 1\n", " 3\nLjava/lang/String;;b 1\n");
}

TEST(collapsed, text_that_is_not_utf8_is_repaired)
{
    DECODES("a\xff;b 1\n", "a\xef\xbf\xbd;b 1\n");
}

TEST(collapsed, a_line_without_a_count_is_an_error_that_names_the_line)
{
    struct kiln_err err;

    CHECK_EQ(kiln_test_refused(kiln_collapsed_decode, KILN_STR("a;b 1\nc;d\n"), &err),
             KILN_E_MALFORMED);
    CHECK_TEXT(err.where, "line 2");
    CHECK_TEXT(err.text, "not a stack, a blank and a count: c;d");
    kiln_test_refused(kiln_collapsed_decode, KILN_STR("a;b x1\n"), &err);
    kiln_test_refused(kiln_collapsed_decode, KILN_STR("a;b 1e99\n"), &err);
    kiln_test_refused(kiln_collapsed_decode, KILN_STR("a;b nan\n"), &err);
    kiln_test_refused(kiln_collapsed_decode, KILN_STR("12\n"), &err);
}

TEST(collapsed, a_stack_that_is_too_deep_is_an_error)
{
    static char deep[2 * 70000 + 8];
    struct kiln_err err;

    for (size_t i = 0; i < 70000; i++)
        memcpy(deep + 2 * i, "a;", 2);
    memcpy(deep + 2 * 70000, "a 1\n", 5);
    CHECK_EQ(kiln_test_refused(kiln_collapsed_decode, kiln_str_of(deep), &err), KILN_E_LIMIT);
    CHECK_TEXT(err.where, "line 1");
}

TEST(collapsed, running_out_of_memory_is_an_error_and_leaks_nothing)
{
    kiln_test_decode_starved(kiln_collapsed_decode,
                             KILN_STR("a\xff;b_[i];c_[k];d\xef\xbc\x9b 1\n"));
}

TEST(collapsed, it_is_known_by_its_lines)
{
    CHECK(kiln_collapsed_detect(KILN_STR("main;parse;read 3\nmain 4\n")));
    CHECK(kiln_collapsed_detect(KILN_STR("# comment\r\na b;c d 1.5\r\n")));
    CHECK(!kiln_collapsed_detect(KILN_STR("")));
    CHECK(!kiln_collapsed_detect(KILN_STR("main 4\n")));
    CHECK(!kiln_collapsed_detect(KILN_STR("Chapter 1\nOnce; upon a time\n")));
    CHECK(!kiln_collapsed_detect(KILN_STR("int main()\n{\n  return 3;\n}\n")));
    CHECK(!kiln_collapsed_detect(KILN_STR("{\"a\":1}")));
    CHECK(!kiln_collapsed_detect(KILN_STR("a;b\x01 3\n")));
    CHECK(kiln_collapsed_detect(KILN_STR("[no stack] 3\n")));
}

/* Unrefs the batch. */
static void check_written(struct kiln_batch *batch, const char *stacks)
{
    struct kiln_view_opts opts = {0};
    struct kiln_err err = {0};
    struct kiln_view *view;
    struct kiln_buf text;

    CHECK_OK(kiln_view_new(batch, &opts, &view, &err));
    kiln_buf_init(&text, 1u << 20);
    CHECK_OK(kiln_collapsed_encode(view, &text, &err));
    CHECK_STR(kiln_buf_str(&text), stacks);
    kiln_buf_done(&text);
    kiln_view_free(view);
    kiln_batch_unref(batch);
}

/* A line that begins with '#' is a comment. */
TEST(collapsed, characters_that_lines_cannot_hold_come_back)
{
    static const char stacks[] = "\xef\xbc\x83priv;\xe2\x90\x9b[2J\xe2\x90\x8a\xe2\x90\xa1;#b 3\n"
                                 "\xe2\x90\x80\xe2\x90\x89;\xe2\x90\xa0\xef\xbc\x83 1\n";
    static const char names[] = "#priv;\x1b[2J\n\x7f;#b 3\n";
    struct kiln_batch *batch = kiln_test_decode(kiln_collapsed_decode, KILN_STR(stacks));

    CHECK(kiln_collapsed_detect(KILN_STR(stacks)));
    CHECK_OK(memcmp(kiln_test_stacks(batch, 0), names, strlen(names)));
    check_written(batch, stacks);
}

TEST(collapsed, what_is_written_reads_back_the_same)
{
    static const char stacks[] = "[no stack] 5\nmain;pa rse;skip_[i];read 3\n"
                                 "main;do_syscall_64_[k] 4\nString\xef\xbc\x9b;jitted_[j] 1\n";
    struct kiln_batch *batch = kiln_test_decode(kiln_collapsed_decode, KILN_STR(stacks));

    check_written(batch, stacks);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/err.h"
#include "test.h"

TEST(err, every_code_has_a_sentence)
{
    CHECK_TEXT(kiln_err_text(0), "no error");
    CHECK_TEXT(kiln_err_text(KILN_E_RANGE), "an index points outside its table");
    CHECK_TEXT(kiln_err_text(-ENOMEM), "Cannot allocate memory");
}

TEST(err, the_path_is_built_on_the_way_out)
{
    struct kiln_err err = {0};

    CHECK_EQ(kiln_err_set(&err, KILN_E_RANGE, "stack_index", "%d is too large", 9), KILN_E_RANGE);
    kiln_err_within(&err, "samples[%d]", 5);
    kiln_err_within(&err, "profiles[%d]", 2);
    CHECK_TEXT(err.where, "profiles[2].samples[5].stack_index");
    CHECK_TEXT(err.text, "9 is too large");
}

TEST(err, the_first_error_is_kept)
{
    struct kiln_err err = {0};

    kiln_err_set(&err, KILN_E_RANGE, NULL, "first");
    CHECK_EQ(kiln_err_set(&err, KILN_E_LIMIT, NULL, "second"), KILN_E_LIMIT);
    CHECK_EQ(err.code, KILN_E_RANGE);
    CHECK_TEXT(err.text, "first");
}

TEST(err, a_caller_may_not_care)
{
    CHECK_EQ(kiln_err_set(NULL, KILN_E_LIMIT, "x", "y"), KILN_E_LIMIT);
    kiln_err_within(NULL, "x");
}

TEST(err, a_place_is_put_before_errors_only)
{
    struct kiln_err err = {0};

    kiln_err_within(&err, "nowhere");
    CHECK_TEXT(err.where, "");
}

TEST(err, a_path_that_is_too_long_is_cut_and_ends)
{
    struct kiln_err err = {0};
    char text[1000];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    kiln_err_set(&err, KILN_E_UTF8, text, "%s", text);
    for (int i = 0; i < 3; i++)
        kiln_err_within(&err, "%s", text);
    CHECK_EQ(strlen(err.where), sizeof(err.where) - 1);
    CHECK_EQ(strlen(err.text), sizeof(err.text) - 1);
}

TEST(err, the_file_stands_before_the_place)
{
    struct kiln_err err = {0};

    CHECK(kiln_err_set(&err, KILN_E_MALFORMED, "line 3, column 5", "this is no rule") < 0);
    CHECK_EQ(kiln_err_in_file(&err, KILN_E_MALFORMED, "rules.yaml"), KILN_E_MALFORMED);
    CHECK_TEXT(err.where, "rules.yaml: line 3, column 5");
    CHECK_TEXT(err.text, "this is no rule");
}

TEST(err, a_file_without_more_is_the_place)
{
    struct kiln_err err = {0};

    CHECK_EQ(kiln_err_in_file(&err, -ENOENT, "absent.yaml"), -ENOENT);
    CHECK_TEXT(err.where, "absent.yaml");
    CHECK_TEXT(err.text, "No such file or directory");
}

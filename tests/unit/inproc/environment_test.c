/* SPDX-License-Identifier: Apache-2.0 */
/* Variables, and libraries taken out of LD_PRELOAD. */
#include <stdlib.h>

#include "inproc/environment.h"
#include "test.h"

TEST(environment, an_empty_variable_is_none)
{
    setenv("KILN_TEST", "", 1);
    CHECK(!kiln_in_env("KILN_TEST"));
    setenv("KILN_TEST", "x", 1);
    CHECK_TEXT(kiln_in_env("KILN_TEST"), "x");
    unsetenv("KILN_TEST");
    CHECK(!kiln_in_env("KILN_TEST"));
}

TEST(environment, flags_are_words)
{
    bool flag = false;

    CHECK(!kiln_in_env_flag("KILN_TEST", &flag));
    setenv("KILN_TEST", "1", 1);
    CHECK(kiln_in_env_flag("KILN_TEST", &flag) && flag);
    setenv("KILN_TEST", "OFF", 1);
    CHECK(kiln_in_env_flag("KILN_TEST", &flag) && !flag);
    setenv("KILN_TEST", "false", 1);
    CHECK(kiln_in_env_flag("KILN_TEST", &flag) && !flag);
    setenv("KILN_TEST", "flase", 1); /* as if nothing were said */
    CHECK(!kiln_in_env_flag("KILN_TEST", &flag) && !flag);
    unsetenv("KILN_TEST");
}

/* What is left of a list. */
static const char *left(const char *list)
{
    setenv("LD_PRELOAD", list, 1);
    kiln_in_preload_remove("libkiln.so");
    return getenv("LD_PRELOAD");
}

TEST(environment, a_preload_is_found_by_its_file_name)
{
    setenv("LD_PRELOAD", "/a/libkiln.so.d/other.so /b/libx.so", 1);
    CHECK(!kiln_in_preloads("libkiln.so"));
    setenv("LD_PRELOAD", "/b/libx.so:/a/libkiln.so.0", 1);
    CHECK(kiln_in_preloads("libkiln.so"));
    unsetenv("LD_PRELOAD");
    CHECK(!kiln_in_preloads("libkiln.so"));
}

TEST(environment, a_preload_is_taken_out_and_others_stay)
{
    CHECK_TEXT(left("/a/libkiln.so:/b/libx.so"), "/b/libx.so");
    CHECK_TEXT(left("/b/libx.so /a/libkiln.so /c/liby.so"), "/b/libx.so:/c/liby.so");
    CHECK_TEXT(left("/b/libx.so::libkiln.so.0.2.3:"), "/b/libx.so");
    CHECK(!left("/a/libkiln.so"));
    CHECK_TEXT(left("/b/libx.so"), "/b/libx.so");
    unsetenv("LD_PRELOAD");
    kiln_in_preload_remove("libkiln.so");
}

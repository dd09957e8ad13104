/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "symbol/v8_name.h"
#include "test.h"

static struct kiln_str renamed(const char *text)
{
    static char buffer[64];

    return kiln_v8_name(kiln_str_of(text), buffer, sizeof(buffer));
}

/* "file:line"; "" where there is no place. */
static const char *place(const char *name)
{
    static char text[128];
    struct kiln_str file;
    uint32_t line;

    text[0] = '\0';
    if (kiln_v8_name_place(kiln_str_of(name), &file, &line))
        snprintf(text, sizeof(text), "%.*s:%u", KILN_STR_ARG(file), line);
    return text;
}

TEST(v8_name, functions_of_all_versions_are_of_one_kind)
{
    CHECK_STR(renamed("LazyCompile:*fib /f.js:2"), "JS:*fib /f.js:2");
    CHECK_STR(renamed("Function:^get total /f.js:3"), "JS:^get total /f.js:3");
    CHECK_STR(renamed("JS:+'fib /f.js:2:13"), "JS:+'fib /f.js:2:13");
}

TEST(v8_name, other_texts_stay)
{
    CHECK_STR(renamed("Eval:~ /f.js:1"), "Eval:~ /f.js:1");
    CHECK_STR(renamed("Functions:x"), "Functions:x");
    CHECK_STR(renamed("py::fib:/f.py"), "py::fib:/f.py");
    CHECK_STR(renamed(""), "");
    CHECK_STR(renamed("Function:"), "JS:");
}

TEST(v8_name, a_name_longer_than_the_buffer_stays)
{
    char text[100] = "Function:~";

    memset(text + 10, 'x', 80);
    CHECK_STR(renamed(text), text);
}

TEST(v8_name, code_below_the_optimizing_compilers_is_bytecode)
{
    CHECK(kiln_v8_name_is_bytecode(KILN_STR("JS:~f /f.js:1:1")));
    CHECK(kiln_v8_name_is_bytecode(KILN_STR("JS:^f /f.js:1:1")));
    CHECK(!kiln_v8_name_is_bytecode(KILN_STR("JS:+f /f.js:1:1")));
    CHECK(!kiln_v8_name_is_bytecode(KILN_STR("JS:*f /f.js:1:1")));
}

TEST(v8_name, a_place_is_a_file_and_a_line_with_or_without_a_column)
{
    CHECK_TEXT(place("JS:*fib /f.js:2:13"), "/f.js:2");
    CHECK_TEXT(place("JS:*fib /f.js:2"), "/f.js:2");
    CHECK_TEXT(place("JS:^get total /app/f.js:3"), "/app/f.js:3");
    CHECK_TEXT(place("JS:* file:///app/f.mjs:1:1"), "file:///app/f.mjs:1");
    CHECK_TEXT(place("JS:~f node:internal/timers:508:16"), "node:internal/timers:508");
    CHECK_TEXT(place("Eval:~ /f.js:1:1"), "/f.js:1");
    CHECK_TEXT(place("Script:~ /f.js:1"), "/f.js:1");
}

TEST(v8_name, without_a_place_there_is_none)
{
    CHECK_TEXT(place("JS:~fib"), "");
    CHECK_TEXT(place("JS:~fib "), "");
    CHECK_TEXT(place("JS:~fib :"), "");
    CHECK_TEXT(place("Eval:~ :1:1"), "");
    CHECK_TEXT(place("JS:~fib /f.js"), "");
    CHECK_TEXT(place("JS:~fib /f.js:x"), "");
    CHECK_TEXT(place("JS:~fib /f.js:4294967296"), "");
    CHECK_TEXT(place("JS:"), "");
    CHECK_TEXT(place("RegExp:a /f.js:1:1"), "");
    CHECK_TEXT(place(""), "");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "base/err.h"
#include "jitdump_maker.h"
#include "symbol/names.h"
#include "test.h"

static struct jitdump_maker maker;

static struct kiln_names *open_made(void)
{
    struct kiln_bytes bytes = kiln_bytes_memory(maker.data, maker.n);
    struct kiln_names *names;

    CHECK_OK(kiln_names_open(KILN_SOURCE_JITDUMP, &bytes, NULL, &names));
    return names;
}

/* "name file:line"; "name" where there is no line; "" where there is no name. */
static struct kiln_str at(struct kiln_names *names, uint64_t address)
{
    static char text[256];
    struct kiln_name name;
    int n = 0;

    text[0] = '\0';
    if (!kiln_names_find(names, address, &name))
        return kiln_str_of(text);
    CHECK_EQ(name.n, 1);
    n = snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(name.frames[0].function));
    if (name.frames[0].line)
        snprintf(text + n, sizeof(text) - (size_t)n, " %.*s:%u", KILN_STR_ARG(name.frames[0].file),
                 name.frames[0].line);
    return kiln_str_of(text);
}

TEST(names_jitdump, code_has_the_name_it_was_loaded_with)
{
    struct kiln_names *names;

    jitdump_maker_begin(&maker, 0);
    jitdump_maker_load(&maker, 0x1000, 0x40, "first");
    jitdump_maker_record(&maker, 4, "unwinding tables", 16);
    jitdump_maker_load(&maker, 0x2000, 0x10, "second");
    jitdump_maker_record(&maker, 3, "", 0);
    names = open_made();
    CHECK_STR(at(names, 0x1000), "first");
    CHECK_STR(at(names, 0x103f), "first");
    CHECK_STR(at(names, 0x1040), "");
    CHECK_STR(at(names, 0x200f), "second");
    CHECK_STR(at(names, 0xfff), "");
    kiln_names_close(names);
}

TEST(names_jitdump, code_that_came_later_hides_what_was_there)
{
    struct kiln_names *names;

    jitdump_maker_begin(&maker, 0);
    jitdump_maker_load(&maker, 0x1000, 0x100, "old");
    jitdump_maker_load(&maker, 0x1040, 0x40, "new");
    names = open_made();
    CHECK_STR(at(names, 0x103f), "old");
    CHECK_STR(at(names, 0x1040), "new");
    CHECK_STR(at(names, 0x1080), "old");
    kiln_names_close(names);
}

TEST(names_jitdump, addresses_have_lines_of_the_code_that_follows)
{
    static const struct jitdump_line lines[] = {
        {0x1000, 10, "a.js"}, {0x1010, 12, NULL}, {0x1020, 3, "b.js"}};
    struct kiln_names *names;

    jitdump_maker_begin(&maker, 0);
    jitdump_maker_lines(&maker, 0x1000, lines, 3);
    jitdump_maker_load(&maker, 0x1000, 0x40, "one");
    jitdump_maker_load(&maker, 0x1100, 0x40, "two");
    jitdump_maker_lines(&maker, 0x1000, lines, 3);
    jitdump_maker_load(&maker, 0x1200, 0x40, "three");
    names = open_made();
    CHECK_STR(at(names, 0x1000), "one a.js:10");
    CHECK_STR(at(names, 0x101f), "one a.js:12");
    CHECK_STR(at(names, 0x103f), "one b.js:3");
    CHECK_STR(at(names, 0x1100), "two");
    CHECK_STR(at(names, 0x1200), "three");
    kiln_names_close(names);
}

TEST(names_jitdump, code_that_moves_keeps_its_name_and_its_lines)
{
    static const struct jitdump_line lines[] = {{0x1000, 10, "a.js"}, {0x1010, 12, NULL}};
    struct kiln_names *names;

    jitdump_maker_begin(&maker, 0);
    jitdump_maker_lines(&maker, 0x1000, lines, 2);
    jitdump_maker_load(&maker, 0x1000, 0x40, "moving");
    jitdump_maker_load(&maker, 0x2000, 0x40, "in the way");
    jitdump_maker_move(&maker, 1, 0x2000, 0x40);
    jitdump_maker_move(&maker, 7, 0x3000, 0x40);
    names = open_made();
    CHECK_STR(at(names, 0x2010), "moving a.js:12");
    CHECK_STR(at(names, 0x3000), "");
    kiln_names_close(names);
}

TEST(names_jitdump, v8_has_its_own_ways)
{
    static const struct jitdump_line lines[] = {{0x1040, 10, "a.js"}, {0x1050, 12, NULL}};
    struct kiln_names *names;
    struct kiln_name name;

    jitdump_maker_begin(&maker, JITDUMP_V8);
    jitdump_maker_lines(&maker, 0x1000, lines, 2);
    jitdump_maker_load(&maker, 0x1000, 0x40, "JS:*render /app/a b.js:9:20");
    jitdump_maker_lines(&maker, 0x2000, lines, 2);
    jitdump_maker_load(&maker, 0x2000, 0x40, "JS:^render /app/view.js:9:20");
    names = open_made();
    CHECK_STR(at(names, 0x1000), "JS:*render /app/a b.js:9:20 a.js:10");
    CHECK_STR(at(names, 0x1010), "JS:*render /app/a b.js:9:20 a.js:12");
    CHECK(kiln_names_find(names, 0x2010, &name));
    CHECK_EQ(name.frames[0].line, 0);
    CHECK_EQ(name.frames[0].start_line, 9);
    CHECK_STR(name.frames[0].file, "/app/view.js");
    kiln_names_close(names);
}

TEST(names_jitdump, older_v8_is_read_as_newer)
{
    static const struct jitdump_line lines[] = {{0x1040, 10, "a.js"}, {0x1050, 12, NULL}};
    struct kiln_names *names;
    struct kiln_name name;

    jitdump_maker_begin(&maker, JITDUMP_V8);
    jitdump_maker_lines(&maker, 0x1000, lines, 2);
    jitdump_maker_load(&maker, 0x1000, 0x40, "LazyCompile:*render /app/view.js:9");
    jitdump_maker_lines(&maker, 0x2000, lines, 2);
    jitdump_maker_load(&maker, 0x2000, 0x40, "Function:^render /app/view.js:9");
    names = open_made();
    CHECK_STR(at(names, 0x1010), "JS:*render /app/view.js:9 a.js:12");
    CHECK(kiln_names_find(names, 0x2010, &name));
    CHECK_STR(name.frames[0].function, "JS:^render /app/view.js:9");
    CHECK_STR(name.frames[0].system_name, "Function:^render /app/view.js:9");
    CHECK_EQ(name.frames[0].line, 0);
    CHECK_EQ(name.frames[0].start_line, 9);
    CHECK_STR(name.frames[0].file, "/app/view.js");
    kiln_names_close(names);
}

TEST(names_jitdump, lines_with_an_entry_that_cannot_be_are_not_believed)
{
    static const struct jitdump_line wrong[][2] = {
        {{0x1000, 10, "a.js"}, {0x5000, 12, NULL}}, /* of other code */
        {{0x1000, 10, "a.js"}, {0x0fff, 12, NULL}},
        {{0x1000, 10, "\x02\xfa\x03"}, {0x1010, 12, NULL}}, /* no text */
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(wrong); i++) {
        struct kiln_names *names;

        jitdump_maker_begin(&maker, 0);
        jitdump_maker_lines(&maker, 0x1000, wrong[i], 2);
        jitdump_maker_load(&maker, 0x1000, 0x40, "code");
        names = open_made();
        CHECK_STR(at(names, 0x1008), "code");
        kiln_names_close(names);
    }
}

TEST(names_jitdump, a_file_that_grows_is_as_if_it_were_read_whole)
{
    static const struct jitdump_line lines[] = {{0x1000, 10, "a.js"}};
    size_t n;

    jitdump_maker_begin(&maker, 0);
    jitdump_maker_load(&maker, 0x1000, 0x20, "first");
    jitdump_maker_lines(&maker, 0x1000, lines, 1);
    jitdump_maker_load(&maker, 0x1000, 0x40, "second");
    n = maker.n;
    for (size_t cut = 40; cut <= n; cut++) {
        struct kiln_bytes part = kiln_bytes_memory(maker.data, cut);
        struct kiln_bytes whole = kiln_bytes_memory(maker.data, n);
        struct kiln_names *names;

        CHECK_OK(kiln_names_open(KILN_SOURCE_JITDUMP, &part, NULL, &names));
        (void)at(names, 0x1000);
        CHECK_OK(kiln_names_grow(names, &whole));
        CHECK_STR(at(names, 0x1010), "second a.js:10");
        kiln_names_close(names);
    }
}

TEST(names_jitdump, a_file_that_was_replaced_does_not_grow)
{
    struct kiln_names *names;
    struct kiln_bytes bytes;

    jitdump_maker_begin(&maker, 0);
    jitdump_maker_load(&maker, 0x1000, 0x20, "first");
    names = open_made();
    jitdump_maker_begin(&maker, 0);
    jitdump_maker_load(&maker, 0x1000, 0x20, "other");
    jitdump_maker_load(&maker, 0x2000, 0x20, "more");
    bytes = kiln_bytes_memory(maker.data, maker.n);
    CHECK_EQ(kiln_names_grow(names, &bytes), KILN_E_UNSUPPORTED);
    kiln_names_close(names);
}

TEST(names_jitdump, what_is_no_jitdump_is_refused)
{
    static const char text[] = "7f1c5a000000 1c0 a perf-map, and long enough to be a header";
    struct kiln_bytes bytes = kiln_bytes_memory(text, sizeof(text));
    struct kiln_names *names;

    CHECK_EQ(kiln_names_open(KILN_SOURCE_JITDUMP, &bytes, NULL, &names), KILN_E_UNKNOWN);
    bytes = kiln_bytes_memory(text, 3);
    CHECK_EQ(kiln_names_open(KILN_SOURCE_JITDUMP, &bytes, NULL, &names), KILN_E_UNKNOWN);
    jitdump_maker_begin(&maker, 0);
    maker.data[4] = 2;
    bytes = kiln_bytes_memory(maker.data, maker.n);
    CHECK_EQ(kiln_names_open(KILN_SOURCE_JITDUMP, &bytes, NULL, &names), KILN_E_UNSUPPORTED);
}

TEST(names_jitdump, sizes_of_records_that_cannot_be_end_the_reading)
{
    static const uint32_t sizes[] = {0, 15, UINT32_MAX};

    for (size_t i = 0; i < KILN_ARRAY_LEN(sizes); i++) {
        struct kiln_names *names;
        size_t second;

        jitdump_maker_begin(&maker, 0);
        jitdump_maker_load(&maker, 0x1000, 0x20, "first");
        second = maker.n;
        jitdump_maker_load(&maker, 0x2000, 0x20, "second");
        memcpy(maker.data + second + 4, &sizes[i], 4);
        names = open_made();
        CHECK_STR(at(names, 0x1000), "first");
        CHECK_STR(at(names, 0x2000), "");
        kiln_names_close(names);
    }
}

TEST(names_jitdump, no_more_is_kept_than_is_allowed)
{
    const struct kiln_names_limits limits = {.symbols = 2};
    struct kiln_bytes bytes;
    struct kiln_names *names;

    jitdump_maker_begin(&maker, 0);
    for (uint64_t i = 0; i < 10; i++)
        jitdump_maker_load(&maker, 0x1000 * (i + 1), 0x20, "code");
    bytes = kiln_bytes_memory(maker.data, maker.n);
    CHECK_OK(kiln_names_open(KILN_SOURCE_JITDUMP, &bytes, &limits, &names));
    CHECK_STR(at(names, 0x2000), "code");
    CHECK_STR(at(names, 0x3000), "");
    kiln_names_close(names);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/frame.h"

#include "core/builder.h"
#include "test.h"

static bool is_made_up(const char *name, const char *system_name, const char *file)
{
    struct kiln_str strings[] = {KILN_STR(""), kiln_str_of(name), kiln_str_of(system_name),
                                 kiln_str_of(file)};
    struct kiln_dict dict = {.strings = strings, .n_strings = 4};
    struct kiln_function function = {.name = name[0] ? 1 : 0,
                                     .system_name = system_name[0] ? 2 : 0,
                                     .filename = file[0] ? 3 : 0};

    return kiln_frame_is_made_up(&dict, &function);
}

TEST(frame, what_is_made_of_a_beginning_is_known_as_made_up)
{
    struct kiln_buf text;
    struct kiln_str name;

    kiln_buf_init(&text, 256);
    name = kiln_frame_unnamed(KILN_STR("/usr/lib/libc.so.6"), UINT64_MAX, &text);
    CHECK_STR(name, "libc.so.6+0xffffffffffffffff");
    kiln_buf_putc(&text, '\0');
    CHECK(is_made_up(text.ptr, "", ""));
    kiln_buf_done(&text);
    CHECK(is_made_up("libc.so.6+0x1230", "", ""));
    CHECK(is_made_up("a b+0x0", "", ""));
}

TEST(frame, names_of_functions_are_not_made_up)
{
    CHECK(!is_made_up("", "", ""));
    CHECK(!is_made_up("main", "", ""));
    CHECK(!is_made_up("f", "", ""));
    CHECK(!is_made_up("0x1230", "", ""));
    CHECK(!is_made_up("+0x1230", "", ""));
    CHECK(!is_made_up("libc.so.6+0x", "", ""));
    CHECK(!is_made_up("libc.so.6+1230", "", ""));
    CHECK(!is_made_up("libc.so.6+0x1230()", "", ""));
    CHECK(!is_made_up("libc.so.6+0x11112222333344445", "", ""));
    CHECK(!is_made_up("libc.so.6+0x1230", "known", ""));
    CHECK(!is_made_up("libc.so.6+0x1230", "", "known.c"));
}

TEST(frame, a_location_lacks_a_name_without_a_line_or_with_one_that_is_made_up)
{
    struct kiln_str strings[] = {KILN_STR(""), KILN_STR("app+0x10"), KILN_STR("main")};
    struct kiln_function functions[] = {{.name = 0}, {.name = 1}, {.name = 2}};
    struct kiln_line lines[] = {{.function = 1}, {.function = 2}, {.function = 1}};
    struct kiln_dict dict = {.strings = strings, .functions = functions, .lines = lines};

    CHECK(kiln_frame_lacks_name(&dict, &(struct kiln_location){.n = 0}));
    CHECK(kiln_frame_lacks_name(&dict, &(struct kiln_location){.first = 0, .n = 1}));
    CHECK(!kiln_frame_lacks_name(&dict, &(struct kiln_location){.first = 1, .n = 1}));
    CHECK(!kiln_frame_lacks_name(&dict, &(struct kiln_location){.first = 1, .n = 2}));
}

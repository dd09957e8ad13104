/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/names_wire.h"

#include <string.h>

#include "symbol/names_int.h"
#include "test.h"

static char packet[KILN_WIRE_PACKET];
static struct kiln_name_frame room[KILN_NAME_FRAMES_MAX];

static const struct kiln_name_frame frames[] = {
    {.function = {"inlined", 7}, .file = {"sum.h", 5}, .line = 70, .column = 9},
    {.function = {"kiln::sum(int)", 14},
     .system_name = {"_ZN4kiln3sumEi", 14},
     .file = {"sum.cc", 6},
     .line = 7,
     .start_line = 3},
};

TEST(names_wire, all_of_a_name_arrives)
{
    const struct kiln_name sent = {.frames = frames, .n = 2, .shallow = true, .module = {"m", 1}};
    const struct kiln_name none = {.begin = 0x1230};
    struct kiln_str rest;
    struct kiln_name name;
    size_t len = 0;

    CHECK(kiln_wire_add(packet, &len, &sent));
    CHECK(kiln_wire_add(packet, &len, &none));
    rest = (struct kiln_str){packet, len};
    CHECK_OK(kiln_wire_next(&rest, room, &name));
    CHECK_EQ(name.n, 2);
    CHECK(name.shallow);
    CHECK_STR(name.module, "m");
    CHECK_STR(name.frames[0].function, "inlined");
    CHECK_EQ(name.frames[0].system_name.len, 0);
    CHECK_STR(name.frames[0].file, "sum.h");
    CHECK_EQ(name.frames[0].line, 70);
    CHECK_EQ(name.frames[0].column, 9);
    CHECK_STR(name.frames[1].system_name, "_ZN4kiln3sumEi");
    CHECK_EQ(name.frames[1].start_line, 3);
    CHECK_OK(kiln_wire_next(&rest, room, &name));
    CHECK_EQ(name.n, 0);
    CHECK_EQ(name.begin, 0x1230);
    CHECK(!name.shallow);
    CHECK_EQ(rest.len, 0);
}

TEST(names_wire, nothing_that_is_cut_off_is_taken)
{
    const struct kiln_name sent = {.frames = frames, .n = 2, .module = {"m", 1}};
    struct kiln_name name;
    size_t len = 0;

    CHECK(kiln_wire_add(packet, &len, &sent));
    for (size_t n = 0; n < len; n++) {
        struct kiln_str rest = {packet, n};

        CHECK_EQ(kiln_wire_next(&rest, room, &name), KILN_E_TRUNCATED);
    }
}

TEST(names_wire, too_many_frames_and_frames_without_a_function_are_refused)
{
    const struct kiln_wire_name head = {.n = KILN_NAME_FRAMES_MAX + 1};
    const struct kiln_name_frame empty = {.line = 1};
    const struct kiln_name nameless = {.frames = &empty, .n = 1};
    struct kiln_str rest = {packet, sizeof(packet)};
    struct kiln_name name;
    size_t len = 0;

    memset(packet, 0, sizeof(packet));
    memcpy(packet, &head, sizeof(head));
    CHECK_EQ(kiln_wire_next(&rest, room, &name), KILN_E_MALFORMED);
    CHECK(kiln_wire_add(packet, &len, &nameless));
    rest = (struct kiln_str){packet, len};
    CHECK_EQ(kiln_wire_next(&rest, room, &name), KILN_E_MALFORMED);
}

/* ---- frames on their way ---- */

static void add_function(struct kiln_frames *to, const char *function, uint32_t line)
{
    const struct kiln_name_frame frame = {.function = kiln_str_of(function), .line = line};

    kiln_frames_add(to, &frame, KILN_STR_NONE);
}

TEST(names_frames, of_too_many_the_innermost_stay_and_the_outermost)
{
    static struct kiln_frames made;

    kiln_frames_clear(&made);
    for (uint32_t i = 0; i < 1000; i++)
        add_function(&made, i == 999 ? "main" : "f", i);
    CHECK_EQ(made.n, KILN_NAME_FRAMES_MAX);
    CHECK_EQ(made.frames[0].line, 0);
    CHECK_EQ(made.frames[KILN_NAME_FRAMES_MAX - 2].line, KILN_NAME_FRAMES_MAX - 2);
    CHECK_STR(made.frames[KILN_NAME_FRAMES_MAX - 1].function, "main");
    CHECK_EQ(made.frames[KILN_NAME_FRAMES_MAX - 1].line, 999);
}

TEST(names_frames, whatever_they_are_called_they_fit_into_a_packet)
{
    static char longest[3 * KILN_SYMTAB_NAME_MAX];
    const struct kiln_name_frame frame = {.function = {longest, sizeof(longest)},
                                          .system_name = {longest + 1, sizeof(longest) - 1},
                                          .file = {longest, sizeof(longest)}};
    static struct kiln_frames made;
    struct kiln_name name = {.frames = made.frames};
    size_t len = sizeof(struct kiln_names_said);

    memset(longest, 'x', sizeof(longest));
    longest[0] = 'y';
    kiln_frames_clear(&made);
    for (uint32_t i = 0; i < 100; i++)
        kiln_frames_add(&made, &frame, KILN_STR_NONE);
    add_function(&made, "main", 0);
    CHECK(made.n > 2);
    CHECK_STR(made.frames[made.n - 1].function, "main");
    name.n = made.n;
    CHECK(kiln_wire_add(packet, &len, &name));
    kiln_frames_clear(&made);
    for (uint32_t i = 0; i < 100; i++)
        kiln_frames_add(&made, &(struct kiln_name_frame){.function = {longest, 800}},
                        KILN_STR_NONE);
    name.n = made.n;
    len = sizeof(struct kiln_names_said);
    CHECK(kiln_wire_add(packet, &len, &name));
}

TEST(names_frames, a_frame_without_a_name_is_none)
{
    static struct kiln_frames made;

    kiln_frames_clear(&made);
    add_function(&made, "", 7);
    CHECK_EQ(made.n, 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/keyboard.h"

#include "test.h"

/* The keys that bytes make, as text: a character stands for itself. */
static const char *keys_of(const char *bytes)
{
    static const char *const names[] = {"up",   "down", "left",   "right",   "home", "end",
                                        "pgup", "pgdn", "delete", "backtab", "f1",   "other"};
    static char text[256];
    struct kiln_keyboard keys = {0};
    size_t n = 0;
    uint32_t key;

    text[0] = '\0';
    for (const char *c = bytes;; c++) {
        key = *c ? kiln_keyboard_take(&keys, (unsigned char)*c) : kiln_keyboard_pause(&keys);
        if (key >= KILN_KEY_UP)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "<%s>", names[key - KILN_KEY_UP]);
        else if (key == KILN_KEY_ESCAPE)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "<esc>");
        else if (key >= 0x80)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "<U+%X>", key);
        else if (key)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%c", key);
        if (!*c)
            return text;
    }
}

TEST(keyboard, characters_stand_for_themselves)
{
    CHECK_TEXT(keys_of("q/?"), "q/?");
    CHECK_TEXT(keys_of("\n\b"), "\r\177");
}

TEST(keyboard, arrows_come_in_two_modes)
{
    CHECK_TEXT(keys_of("\033[A\033[B\033OC\033OD"), "<up><down><right><left>");
    CHECK_TEXT(keys_of("\033[1;5A"), "<up>");
    CHECK_TEXT(keys_of("\033[H\033[F\033[1~\033[4~\033[5~\033[6~\033[Z\033OP"),
               "<home><end><home><end><pgup><pgdn><backtab><f1>");
}

TEST(keyboard, escape_alone_is_a_key_when_nothing_follows)
{
    CHECK_TEXT(keys_of("\033"), "<esc>");
    CHECK_TEXT(keys_of("\033\033"), "<esc><esc>");
    CHECK_TEXT(keys_of("\033\033[A"), "<esc><up>");
}

TEST(keyboard, sequences_that_nobody_knows_are_one_key)
{
    CHECK_TEXT(keys_of("\033[200~q\033[?1;2cq"), "<other>q<other>q");
    CHECK_TEXT(keys_of("\033[1;2;3;4;5;6;7;8;9;10;11;12;13Aq"), "<other>q");
    CHECK_TEXT(keys_of("\033xq"), "<other>q");
    CHECK_TEXT(keys_of("\033[1\033[A"), "<other><up>");
}

TEST(keyboard, a_half_of_a_sequence_is_dropped_when_nothing_follows)
{
    CHECK_TEXT(keys_of("\033[1;"), "");
}

TEST(keyboard, characters_of_several_bytes_are_one_key)
{
    CHECK_TEXT(keys_of("\xc3\xa9q"), "<U+E9>q");
    CHECK_TEXT(keys_of("\xe2\x82\xac"), "<U+20AC>");
    CHECK_TEXT(keys_of("\xf0\x9f\x98\x80"), "<U+1F600>");
}

TEST(keyboard, bytes_that_are_no_character_are_passed_over)
{
    CHECK_TEXT(keys_of("\xff\x80q"), "q");
    CHECK_TEXT(keys_of("\xc3q"), "q");
    CHECK_TEXT(keys_of("\xe2\x82\033[A"), "<up>");
    CHECK_TEXT(keys_of("\xed\xa0\x80q"), "q");
}

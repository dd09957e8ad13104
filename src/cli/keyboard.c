/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sequences, as terminals have sent them since the VT100 (ECMA-48):
 *
 *   ESC [ parameters final     parameters are 0x30 to 0x3f, the final byte is 0x40 to 0x7e:
 *                              ESC [ A (up), ESC [ 5 ~ (page up), ESC [ 1 ; 5 C (right, with Ctrl)
 *   ESC O final                the same keys in application mode, and F1 to F4
 *   ESC ESC                    the first Escape is a key, the second begins anew
 *   ESC character              Alt with a key: nobody asks for that
 *
 * All else is UTF-8.
 */
#include "cli/keyboard.h"

#include "base/attr.h"
#include "base/str.h"

enum { ESCAPE = 27 };

static const struct {
    char final;
    uint32_t key;
} by_letter[] = {
    {'A', KILN_KEY_UP},   {'B', KILN_KEY_DOWN}, {'C', KILN_KEY_RIGHT},    {'D', KILN_KEY_LEFT},
    {'H', KILN_KEY_HOME}, {'F', KILN_KEY_END},  {'Z', KILN_KEY_BACK_TAB}, {'P', KILN_KEY_F1},
};

static const struct {
    int number;
    uint32_t key;
} by_number[] = {
    {1, KILN_KEY_HOME},      {3, KILN_KEY_DELETE}, {4, KILN_KEY_END}, {5, KILN_KEY_PAGE_UP},
    {6, KILN_KEY_PAGE_DOWN}, {7, KILN_KEY_HOME},   {8, KILN_KEY_END}, {11, KILN_KEY_F1},
};

static uint32_t of_sequence(const struct kiln_keyboard *keys, unsigned char final)
{
    int number = 0;

    for (size_t i = 0; i < KILN_ARRAY_LEN(by_letter); i++)
        if (by_letter[i].final == final)
            return by_letter[i].key;
    if (final != '~')
        return KILN_KEY_OTHER;
    for (uint32_t i = 2; i < keys->n && keys->bytes[i] >= '0' && keys->bytes[i] <= '9'; i++)
        number = number * 10 % 1000 + keys->bytes[i] - '0';
    for (size_t i = 0; i < KILN_ARRAY_LEN(by_number); i++)
        if (by_number[i].number == number)
            return by_number[i].key;
    return KILN_KEY_OTHER;
}

static uint32_t end(struct kiln_keyboard *keys, uint32_t key)
{
    *keys = (struct kiln_keyboard){0};
    return key;
}

static void put(struct kiln_keyboard *keys, unsigned char byte)
{
    if (keys->n < sizeof(keys->bytes))
        keys->bytes[keys->n++] = byte;
    else
        keys->overlong = true;
}

/* Behind ESC. */
static uint32_t take_sequence(struct kiln_keyboard *keys, unsigned char byte)
{
    if (byte == ESCAPE) { /* whatever began is over */
        bool alone = keys->n == 1;

        end(keys, KILN_KEY_NONE);
        put(keys, byte);
        return alone ? KILN_KEY_ESCAPE : KILN_KEY_OTHER;
    }
    if (keys->n == 1 && byte != '[' && byte != 'O')
        return end(keys, KILN_KEY_OTHER);
    if (keys->n == 1) {
        put(keys, byte);
        return KILN_KEY_NONE;
    }
    if (byte >= 0x40 && byte <= 0x7e)
        return end(keys, keys->overlong ? KILN_KEY_OTHER : of_sequence(keys, byte));
    if (byte < 0x20 || byte > 0x7e)
        return end(keys, KILN_KEY_OTHER);
    put(keys, byte);
    return KILN_KEY_NONE;
}

static uint32_t code_point(const unsigned char *p, size_t n)
{
    uint32_t code = p[0] & (0x7fu >> n);

    for (size_t i = 1; i < n; i++)
        code = code << 6 | (p[i] & 0x3f);
    return code;
}

/* Of a character of several bytes; what is none gives nothing. */
static uint32_t take_character(struct kiln_keyboard *keys, unsigned char byte)
{
    struct kiln_str all;
    size_t whole, n;

    if (keys->n && (byte & 0xc0) != 0x80) {
        end(keys, KILN_KEY_NONE);
        return kiln_keyboard_take(keys, byte);
    }
    put(keys, byte);
    whole = keys->bytes[0] >= 0xf0 ? 4 : keys->bytes[0] >= 0xe0 ? 3 : 2;
    if (keys->bytes[0] < 0xc2 || keys->bytes[0] > 0xf4)
        return end(keys, KILN_KEY_NONE);
    if (keys->n < whole)
        return KILN_KEY_NONE;
    all = (struct kiln_str){(const char *)keys->bytes, keys->n};
    n = kiln_utf8_len(all);
    return end(keys, n ? code_point(keys->bytes, n) : KILN_KEY_NONE);
}

uint32_t kiln_keyboard_take(struct kiln_keyboard *keys, unsigned char byte)
{
    if (keys->n && keys->bytes[0] == ESCAPE)
        return take_sequence(keys, byte);
    if (byte == ESCAPE) {
        end(keys, KILN_KEY_NONE);
        put(keys, byte);
        return KILN_KEY_NONE;
    }
    if (byte >= 0x80 || keys->n)
        return take_character(keys, byte);
    if (byte == '\n')
        return KILN_KEY_ENTER;
    return byte == '\b' ? KILN_KEY_BACKSPACE : byte;
}

bool kiln_keyboard_waits(const struct kiln_keyboard *keys)
{
    return keys->n > 0;
}

uint32_t kiln_keyboard_pause(struct kiln_keyboard *keys)
{
    return end(keys, keys->n == 1 && keys->bytes[0] == ESCAPE ? KILN_KEY_ESCAPE : KILN_KEY_NONE);
}

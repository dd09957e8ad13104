/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keyboard - what a terminal sends, as keys.
 *
 * A key is one character, or a sequence that begins with Escape: bytes may come in pieces, so that
 * a decoder keeps what it began.  Escape alone is a key too: whoever waited for the rest of a
 * sequence in vain says so (kiln_keyboard_pause).
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CLI_KEYBOARD_H
#define KILN_CLI_KEYBOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A character stands for itself (Unicode); control characters have their names here. */
enum kiln_key {
    KILN_KEY_NONE = 0,
    KILN_KEY_CTRL_C = 3,
    KILN_KEY_TAB = 9,
    KILN_KEY_CTRL_L = 12,
    KILN_KEY_ENTER = 13,
    KILN_KEY_CTRL_U = 21,
    KILN_KEY_CTRL_W = 23,
    KILN_KEY_CTRL_Z = 26,
    KILN_KEY_ESCAPE = 27,
    KILN_KEY_BACKSPACE = 127,
    KILN_KEY_UP = 0x110000,
    KILN_KEY_DOWN,
    KILN_KEY_LEFT,
    KILN_KEY_RIGHT,
    KILN_KEY_HOME,
    KILN_KEY_END,
    KILN_KEY_PAGE_UP,
    KILN_KEY_PAGE_DOWN,
    KILN_KEY_DELETE,
    KILN_KEY_BACK_TAB,
    KILN_KEY_F1,
    KILN_KEY_OTHER, /* a sequence that nobody knows */
};

struct kiln_keyboard {
    unsigned char bytes[16]; /* of a sequence or character that is not whole yet */
    uint32_t n;
    bool overlong; /* more than that came: passed over until it ends */
};

/* Takes a byte; the key that it completes, or KILN_KEY_NONE. */
uint32_t kiln_keyboard_take(struct kiln_keyboard *keys, unsigned char byte);
/* Whether a sequence has begun; and the key that it is if nothing more comes. */
bool kiln_keyboard_waits(const struct kiln_keyboard *keys);
uint32_t kiln_keyboard_pause(struct kiln_keyboard *keys);

#endif /* KILN_CLI_KEYBOARD_H */

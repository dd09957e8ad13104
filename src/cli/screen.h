/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen - a whole terminal for a page that changes: raw keys, another screen, and everything as it
 * was, whatever happens.
 *
 * What a page shows is written at once.  A program that has a screen runs below a guard
 * (kiln_screen_guard): a process that does nothing but wait, and puts the terminal right when the
 * program ends without having done so, be it by SIGKILL.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_SCREEN_H
#define KILN_CLI_SCREEN_H

#include <termios.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/keyboard.h"

struct kiln_screen {
    int in, out; /* descriptors of the terminal */
    struct termios before;
    bool is_open;
    uint32_t columns, rows;
    struct kiln_keyboard keys;
};

/* The descriptors are borrowed.  -ENOTTY: they are no terminals. */
KILN_CHECK int kiln_screen_open(struct kiln_screen *screen, int in, int out, struct kiln_err *err);
/* Also for one of zeros, and for one that is closed. */
void kiln_screen_close(struct kiln_screen *screen);

/* Asks how large it is; true: not as before. */
bool kiln_screen_measure(struct kiln_screen *screen);

/* Shows a page: lines with a line feed between them, which fit the screen. */
KILN_CHECK int kiln_screen_show(struct kiln_screen *screen, struct kiln_str page);

/* Reads keys that are there; at most `max`.  -EIO: the terminal is gone. */
KILN_CHECK int kiln_screen_read(struct kiln_screen *screen, uint32_t *ret_keys, uint32_t max);

/* Leaves the terminal to others until the job is continued (Ctrl-Z). */
void kiln_screen_suspend(struct kiln_screen *screen);

/*
 * Runs `run(context)` in a child, and waits: returns its exit code.  Where a signal ended it, the
 * terminal is put right, and the code is 128 and the signal's number.  Signals that end programs
 * are passed on to the child, which gets SIGTERM also where this process vanishes.  Before there
 * are threads.
 */
int kiln_screen_guard(int tty, int (*run)(void *context), void *context, struct kiln_err *err);

#endif /* KILN_CLI_SCREEN_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * term - colours and widths: what a terminal can do, and how wide a text is on it.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_TERM_H
#define KILN_CLI_TERM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

enum kiln_style {
    KILN_STYLE_PLAIN,
    KILN_STYLE_STRONG,
    KILN_STYLE_FAINT,
    KILN_STYLE_HOT,  /* much of the whole */
    KILN_STYLE_WARM, /* some of the whole */
    KILN_STYLE_WORSE,
    KILN_STYLE_BETTER,
    KILN_STYLE_WAITS,    /* time that is spent waiting */
    KILN_STYLE_SELECTED, /* what keys are about */
    KILN_STYLE_COUNT
};

struct kiln_term {
    bool is_terminal;
    bool color;
    uint32_t width; /* columns; 0: not limited */
};

/* Looks at a descriptor and the environment.  `color_mode` is an enum kiln_color_mode. */
struct kiln_term kiln_term_of(int fd, uint32_t color_mode);

/* Writes the text, in colours where there are colours. */
void kiln_term_put(const struct kiln_term *term, struct kiln_buf *out, enum kiln_style style,
                   struct kiln_str text);

/* How many columns a text takes. */
uint32_t kiln_term_columns(struct kiln_str text);

/* The longest start, and the longest end, of a text that takes at most `columns`. */
struct kiln_str kiln_term_cut(struct kiln_str text, uint32_t columns);
struct kiln_str kiln_term_tail(struct kiln_str text, uint32_t columns);

/* Breaks a text into lines of 80 columns at most, the last of which ends; the cursor stands in
 * column `at`, new lines start at `indent`. */
void kiln_term_wrap(struct kiln_buf *out, struct kiln_str text, uint32_t at, uint32_t indent);
/* The same for lines of `columns` at most. */
void kiln_term_wrap_to(struct kiln_buf *out, struct kiln_str text, uint32_t at, uint32_t indent,
                       uint32_t columns);

/* Hot, warm or plain, for a share between 0 and 1. */
enum kiln_style kiln_style_of_share(double share);

/*
 * Says on standard error, if that is a terminal and the work has lasted for a while, how far it is:
 * "reading 12 of 300".  Call it often; `done` == `all` wipes the line away.
 */
void kiln_term_progress(const char *verb, uint32_t done, uint32_t all);

#endif /* KILN_CLI_TERM_H */

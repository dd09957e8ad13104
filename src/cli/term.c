/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Widths come from wcwidth() in a UTF-8 locale, which glibc always has under the name C.UTF-8;
 * where it has not, every character counts as one column.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "cli/options.h"
#include "cli/term.h"

enum { PROGRESS_MS = 300, WRAP_COLUMNS = 80 };

static const char *const escapes[KILN_STYLE_COUNT] = {
    [KILN_STYLE_PLAIN] = "",           [KILN_STYLE_STRONG] = "\033[1m",
    [KILN_STYLE_FAINT] = "\033[2m",    [KILN_STYLE_HOT] = "\033[31m",
    [KILN_STYLE_WARM] = "\033[33m",    [KILN_STYLE_WORSE] = "\033[31m",
    [KILN_STYLE_BETTER] = "\033[32m",  [KILN_STYLE_WAITS] = "\033[36m",
    [KILN_STYLE_SELECTED] = "\033[7m",
};

static bool wants_color(bool is_terminal, uint32_t color_mode)
{
    const char *no_color = getenv("NO_COLOR");
    const char *name = getenv("TERM");

    if (color_mode != KILN_COLOR_AUTO)
        return color_mode == KILN_COLOR_ALWAYS;
    return is_terminal && !(no_color && *no_color) && !(name && strcmp(name, "dumb") == 0);
}

static uint32_t terminal_width(int fd)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    uint64_t number;

    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col)
        return size.ws_col;
    if (columns && kiln_str_parse_u64(kiln_str_of(columns), &number) == 0 && number < 10000)
        return (uint32_t)number;
    return 80;
}

struct kiln_term kiln_term_of(int fd, uint32_t color_mode)
{
    bool is_terminal = isatty(fd) == 1;

    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        setlocale(LC_CTYPE, "");
    return (struct kiln_term){
        .is_terminal = is_terminal,
        .color = wants_color(is_terminal, color_mode),
        .width = is_terminal ? terminal_width(fd) : 0,
    };
}

void kiln_term_put(const struct kiln_term *term, struct kiln_buf *out, enum kiln_style style,
                   struct kiln_str text)
{
    bool color = term->color && style != KILN_STYLE_PLAIN && text.len;

    if (color)
        kiln_buf_puts(out, escapes[style]);
    kiln_buf_add_str(out, text);
    if (color)
        kiln_buf_puts(out, "\033[0m");
}

/* The bytes of the next character, and its columns. */
static size_t next_character(struct kiln_str text, uint32_t *ret_columns)
{
    mbstate_t state = {0};
    wchar_t wide;
    size_t n = mbrtowc(&wide, text.ptr, text.len, &state);
    int columns;

    if (n == 0 || n > text.len) {
        *ret_columns = 1;
        return 1;
    }
    columns = wcwidth(wide);
    *ret_columns = columns < 0 ? 1 : (uint32_t)columns;
    return n;
}

struct kiln_str kiln_term_cut(struct kiln_str text, uint32_t columns)
{
    struct kiln_str head = {text.ptr, 0};

    while (text.len) {
        uint32_t wide;
        size_t n = next_character(text, &wide);

        if (wide > columns)
            break;
        columns -= wide;
        head.len += n;
        text.ptr += n;
        text.len -= n;
    }
    return head;
}

struct kiln_str kiln_term_tail(struct kiln_str text, uint32_t columns)
{
    uint32_t left = kiln_term_columns(text);

    while (left > columns) {
        uint32_t wide;
        size_t n = next_character(text, &wide);

        left -= wide;
        text.ptr += n;
        text.len -= n;
    }
    return text;
}

uint32_t kiln_term_columns(struct kiln_str text)
{
    uint32_t columns = 0;

    while (text.len) {
        uint32_t wide;
        size_t n = next_character(text, &wide);

        columns += wide;
        text.ptr += n;
        text.len -= n;
    }
    return columns;
}

void kiln_term_wrap(struct kiln_buf *out, struct kiln_str text, uint32_t at, uint32_t indent)
{
    kiln_term_wrap_to(out, text, at, indent, WRAP_COLUMNS);
}

void kiln_term_wrap_to(struct kiln_buf *out, struct kiln_str text, uint32_t at, uint32_t indent,
                       uint32_t columns)
{
    bool first = true;

    while (text.ptr && text.len) {
        struct kiln_str word = kiln_str_cut(&text, ' ');
        uint32_t wide = kiln_term_columns(word);

        if (!first && at + 1 + wide > columns) {
            kiln_buf_putc(out, '\n');
            kiln_buf_printf(out, "%*s", (int)indent, "");
            at = indent;
        } else if (!first) {
            kiln_buf_putc(out, ' ');
            at++;
        }
        kiln_buf_add_str(out, word);
        at += wide;
        first = false;
    }
    kiln_buf_putc(out, '\n');
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void kiln_term_progress(const char *verb, uint32_t done, uint32_t all)
{
    static uint64_t next_ms;
    static bool shown;
    uint64_t now = now_ms();

    if (!next_ms)
        next_ms = now + PROGRESS_MS;
    if (done == all && shown)
        fputs("\r\033[K", stderr);
    if (done == all || now < next_ms || !isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[K%s %u of %u", verb, done, all);
    next_ms = now + PROGRESS_MS;
    shown = true;
}

enum kiln_style kiln_style_of_share(double share)
{
    if (share >= 0.1)
        return KILN_STYLE_HOT;
    return share >= 0.02 ? KILN_STYLE_WARM : KILN_STYLE_PLAIN;
}

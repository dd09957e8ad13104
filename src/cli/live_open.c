/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Enter opens: a function with its callers and callees, a stack frame by frame; and the help.
 */
#include <stdio.h>

#include "base/clock.h"
#include "cli/live_page.h"
#include "cli/report.h"

/* Lines of a body, of which a part is shown: the one with the selected row among them. */
struct body {
    struct kiln_live_page *page;
    const struct kiln_term *term;
    struct kiln_buf *out;
    uint32_t columns, rows; /* that there is room for */
    uint32_t line;          /* of all */
    uint32_t top;           /* the first that is shown */
    uint32_t written;
};

static bool is_shown(struct body *body)
{
    return body->line >= body->top && body->written < body->rows;
}

static void end_line(struct body *body, bool shown)
{
    body->line++;
    if (!shown)
        return;
    body->written++;
    kiln_buf_putc(body->out, '\n');
}

static void put_line(struct body *body, enum kiln_style style, const char *text)
{
    struct kiln_live_pen pen = {.term = body->term, .out = body->out, .left = body->columns};
    bool shown = is_shown(body);

    if (shown)
        kiln_live_puts(&pen, style, text);
    end_line(body, shown);
}

static void put_frame_cells(const struct kiln_live_page *page, uint32_t frame,
                            struct kiln_live_pen *pen)
{
    const struct kiln_live_frame *f = &page->window->book.frames[frame];

    kiln_live_puts(pen, KILN_STYLE_PLAIN, " ");
    if (pen->left > 70)
        kiln_live_put_cell(pen, KILN_STYLE_FAINT, f->module, 18, false);
    kiln_live_puts(pen, KILN_STYLE_PLAIN, " ");
    kiln_live_put_cell(pen, f->unnamed || f->kernel ? KILN_STYLE_FAINT : KILN_STYLE_PLAIN, f->name,
                       pen->left, false);
}

/* A row that can be selected: a share (below 0: none) and a frame. */
static void put_row(struct body *body, uint32_t row, double share, uint32_t frame)
{
    struct kiln_live_page *page = body->page;
    bool selected = row == page->selected, shown = is_shown(body);
    struct kiln_live_pen pen = {.term = body->term, .left = body->columns, .plain = selected};
    struct kiln_buf line;
    char number[16];

    if (!shown) {
        end_line(body, false);
        return;
    }
    kiln_buf_init(&line, 1 << 16);
    pen.out = &line;
    kiln_live_puts(&pen, KILN_STYLE_PLAIN, selected ? "▸ " : "  ");
    snprintf(number, sizeof(number), "%4u ", page->n_stack - row);
    if (share < 0)
        kiln_live_puts(&pen, KILN_STYLE_FAINT, number);
    else
        kiln_live_put_share(&pen, share, 6);
    if (share >= 0 && body->columns >= 60) {
        kiln_live_puts(&pen, KILN_STYLE_PLAIN, " ");
        kiln_live_put_bar(&pen, share, 0, 1, 10);
    }
    put_frame_cells(page, frame, &pen);
    kiln_term_put(body->term, body->out, selected ? KILN_STYLE_SELECTED : KILN_STYLE_PLAIN,
                  kiln_buf_str(&line));
    kiln_buf_done(&line);
    end_line(body, true);
}

/* ---- a function ---- */

/* So much time, of so much: "1.2s (34.5%)". */
static void put_amount(struct kiln_live_pen *pen, const char *title, uint64_t ns, uint64_t whole)
{
    struct kiln_buf text;

    kiln_buf_init(&text, 256);
    kiln_buf_puts(&text, title);
    if (ns) {
        kiln_report_share(&text, kiln_share((double)ns, (double)whole));
        kiln_buf_puts(&text, " (");
        kiln_report_number(&text, (double)ns, KILN_STR("nanoseconds"));
        kiln_buf_putc(&text, ')');
    } else {
        kiln_buf_puts(&text, "nothing");
    }
    kiln_live_put(pen, KILN_STYLE_PLAIN, kiln_buf_str(&text));
    kiln_buf_done(&text);
}

static void put_function_head(struct body *body, uint32_t frame)
{
    struct kiln_live_pen pen = {.term = body->term, .out = body->out, .left = body->columns};
    struct kiln_live_page *page = body->page;
    const struct kiln_live_frame *f = &page->window->book.frames[frame];
    uint64_t whole = page->rows ? kiln_live_amount(&page->rows->total, page->mode) : 0;

    if (!is_shown(body)) {
        end_line(body, false);
        end_line(body, false);
        return;
    }
    kiln_live_puts(&pen, KILN_STYLE_PLAIN, "  ");
    kiln_live_put(&pen, KILN_STYLE_STRONG, f->name);
    if (f->module.len) {
        kiln_live_puts(&pen, KILN_STYLE_FAINT, "  ");
        kiln_live_put(&pen, KILN_STYLE_FAINT, f->module);
    }
    end_line(body, true);
    pen.left = body->columns;
    put_amount(&pen, "  self ", kiln_live_amount(&page->around.self, page->mode), whole);
    put_amount(&pen, ", total ", kiln_live_amount(&page->around.total, page->mode), whole);
    end_line(body, true);
}

static void put_side(struct body *body, const char *title, const char *none,
                     const struct kiln_live_rows *rows, uint32_t first)
{
    const struct kiln_live_page *page = body->page;
    double whole = (double)kiln_live_amount(&page->around.total, page->mode);

    put_line(body, KILN_STYLE_FAINT, rows->n ? title : none);
    for (uint32_t i = 0; i < rows->n; i++)
        put_row(body, first + i,
                kiln_share((double)kiln_live_amount(&rows->rows[i].total, page->mode), whole),
                rows->rows[i].id);
}

/* Scrolls so that the selected row, `before` lines below the top of its part, is in sight. */
static void choose_top(struct body *body, uint32_t selected_line)
{
    body->top = selected_line + 2 > body->rows ? selected_line + 2 - body->rows : 0;
}

uint32_t kiln_live_draw_function(struct kiln_live_page *page, const struct kiln_term *term,
                                 uint32_t columns, uint32_t rows, struct kiln_buf *out)
{
    const struct kiln_live_around *around = &page->around;
    struct body body = {.page = page, .term = term, .out = out, .columns = columns, .rows = rows};

    page->rows_shown = rows;
    if (!around->callers)
        return 0;
    choose_top(&body, page->selected + (page->selected < around->callers->n ? 3 : 5));
    put_function_head(&body, page->trail[page->n_trail - 1]);
    put_side(&body, "  called by", "  called by nobody: a stack begins here", around->callers, 0);
    put_line(&body, KILN_STYLE_PLAIN, "");
    put_side(&body, "  calls", "  calls nothing", around->callees, around->callers->n);
    return body.written;
}

/* ---- a stack ---- */

uint32_t kiln_live_draw_stack(struct kiln_live_page *page, const struct kiln_term *term,
                              uint32_t columns, uint32_t rows, struct kiln_buf *out)
{
    struct body body = {.page = page, .term = term, .out = out, .columns = columns, .rows = rows};
    struct kiln_live_pen pen = {.term = term, .out = out, .left = columns};
    uint64_t whole = page->rows ? kiln_live_amount(&page->rows->total, page->mode) : 0;

    page->rows_shown = rows;
    choose_top(&body, page->selected + 1);
    if (is_shown(&body)) {
        put_amount(&pen, "  one stack, ", kiln_live_amount(&page->stack_amount, page->mode), whole);
        if (page->stack_reason != KILN_LIVE_NONE) {
            kiln_live_puts(&pen, KILN_STYLE_WAITS, ", waits for ");
            kiln_live_put(&pen, KILN_STYLE_WAITS, page->window->book.texts[page->stack_reason]);
        }
        kiln_live_puts(&pen, KILN_STYLE_FAINT, "   innermost first, when it was opened");
    }
    end_line(&body, is_shown(&body));
    for (uint32_t i = 0; i < page->n_stack; i++)
        put_row(&body, i, -1, page->stack[page->n_stack - 1 - i]);
    return body.written;
}

/* ---- the help ---- */

uint32_t kiln_live_draw_help(const struct kiln_term *term, uint32_t columns, uint32_t rows,
                             struct kiln_buf *out)
{
    static const char *const lines[][2] = {
        {"1 2 3 4, Tab", "functions, processes, services, stacks"},
        {"c  w  o", "time on processors; all time; time spent waiting"},
        {"↑ ↓ PgUp PgDn, j k", "choose a row, which stays chosen; Home: the first"},
        {"Enter", "a process, a service: look at it alone;"},
        {"", "a function: who calls it, what it calls; a stack: its frames"},
        {"t", "stacks through the chosen function"},
        {"Esc, Backspace", "back: what is open, then the focus, then the filter"},
        {"/", "show rows that match an expression (Perl's)"},
        {"s  r", "sort by self, total, name; turn it around"},
        {"K", "the kernel's functions: shown, or part of who called it"},
        {"+ -", "look at more or less of the past"},
        {"Space, p", "hold everything, and sample nothing; again: go on"},
        {"?", "this help"},
        {"q, Ctrl-C", "leave"},
    };
    uint32_t written = 0;

    for (size_t i = 0; i < KILN_ARRAY_LEN(lines) && written < rows; i++, written++) {
        struct kiln_live_pen pen = {.term = term, .out = out, .left = columns};

        kiln_live_puts(&pen, KILN_STYLE_PLAIN, "   ");
        kiln_live_put_cell(&pen, KILN_STYLE_STRONG, kiln_str_of(lines[i][0]), columns > 60 ? 20 : 8,
                           false);
        kiln_live_puts(&pen, KILN_STYLE_PLAIN, lines[i][1]);
        kiln_buf_putc(out, '\n');
    }
    return written;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of lists.  Each pane has its own; a narrow terminal gets fewer of them, those that matter
 * least going first, and the last one has what is left.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/live_page.h"
#include "cli/report.h"

enum cell {
    CELL_SELF,
    CELL_TOTAL,
    CELL_BAR,
    CELL_REASON,
    CELL_MODULE,
    CELL_CPU,
    CELL_WAITS,
    CELL_PID,
    CELL_MEMBERS,
    CELL_PROCESS,
    CELL_SERVICE,
    CELL_HOTTEST,
    CELL_HOST,
    CELL_NAME,
    CELL_STACK,
};

struct column {
    enum cell cell;
    const char *title;
    uint32_t width; /* 0: what is left */
    uint32_t from;  /* columns that a terminal needs to have it */
    bool right;
    bool for_waits; /* where waiting is shown alone */
};

enum { COLUMNS_MAX = 9, BAR = 10, SHARE = 6 };

static const struct column panes[KILN_LIVE_PANES][COLUMNS_MAX] = {
    [KILN_LIVE_FUNCTIONS] = {{CELL_SELF, "self", SHARE, 0, true, false},
                             {CELL_TOTAL, "total", SHARE, 36, true, false},
                             {CELL_BAR, "", BAR, 60, false, false},
                             {CELL_REASON, "waits for", 10, 64, false, true},
                             {CELL_MODULE, "module", 18, 70, false, false},
                             {CELL_NAME, "function", 0, 0, false, false}},
    [KILN_LIVE_PROCESSES] = {{CELL_CPU, "cpu", SHARE, 0, true, false},
                             {CELL_WAITS, "waits", SHARE, 0, true, true},
                             {CELL_BAR, "", BAR, 72, false, false},
                             {CELL_PID, "pid", 7, 0, true, false},
                             {CELL_PROCESS, "process", 16, 0, false, false},
                             {CELL_REASON, "waits for", 10, 76, false, true},
                             {CELL_SERVICE, "service", 16, 100, false, false},
                             {CELL_HOST, "host", 0, 50, false, false},
                             {CELL_HOTTEST, "hottest function", 0, 50, false, false}},
    [KILN_LIVE_SERVICES] = {{CELL_CPU, "cpu", SHARE, 0, true, false},
                            {CELL_WAITS, "waits", SHARE, 0, true, true},
                            {CELL_BAR, "", BAR, 72, false, false},
                            {CELL_MEMBERS, "processes", 9, 50, true, false},
                            {CELL_SERVICE, "service", 24, 0, false, false},
                            {CELL_REASON, "waits for", 10, 76, false, true},
                            {CELL_HOTTEST, "hottest function", 0, 60, false, false}},
    [KILN_LIVE_STACKS] = {{CELL_SELF, "share", SHARE, 0, true, false},
                          {CELL_BAR, "", BAR, 60, false, false},
                          {CELL_REASON, "waits for", 10, 64, false, true},
                          {CELL_STACK, "stack, innermost first", 0, 0, false, false}},
};

static bool is_shown(const struct kiln_live_page *page, const struct column *column,
                     uint32_t columns)
{
    if (!column->title || columns < column->from)
        return false;
    if (column->cell == CELL_HOST || column->cell == CELL_HOTTEST) /* a server knows one of them */
        return page->remote == (column->cell == CELL_HOST);
    return !column->for_waits || page->mode != KILN_LIVE_BY_CPU;
}

/* ---- texts ---- */

void kiln_live_put(struct kiln_live_pen *pen, enum kiln_style style, struct kiln_str text)
{
    struct kiln_str head;
    struct kiln_buf safe;

    kiln_buf_init(&safe, 1 << 16);
    kiln_cli_put_safe(&safe, text);
    head = kiln_term_cut(kiln_buf_str(&safe), pen->left);
    kiln_term_put(pen->term, pen->out, pen->plain ? KILN_STYLE_PLAIN : style, head);
    pen->left -= kiln_term_columns(head);
    kiln_buf_done(&safe);
}

void kiln_live_puts(struct kiln_live_pen *pen, enum kiln_style style, const char *text)
{
    kiln_live_put(pen, style, kiln_str_of(text));
}

static void put_spaces(struct kiln_live_pen *pen, uint32_t n)
{
    n = n < pen->left ? n : pen->left;
    for (uint32_t i = 0; i < n; i++)
        kiln_buf_putc(pen->out, ' ');
    pen->left -= n;
}

/* "std::vector<…>::push_back": both ends of a name tell more than its middle. */
static void cut_middle(struct kiln_str text, uint32_t columns, struct kiln_buf *out)
{
    uint32_t tail = columns / 3, head = columns > tail ? columns - tail - 1 : 0;

    kiln_buf_add_str(out, kiln_term_cut(text, head));
    kiln_buf_puts(out, "…");
    kiln_buf_add_str(out, kiln_term_tail(text, tail));
}

void kiln_live_put_cell(struct kiln_live_pen *pen, enum kiln_style style, struct kiln_str text,
                        uint32_t columns, bool right)
{
    struct kiln_buf safe, cut;
    uint32_t wide;

    columns = columns < pen->left ? columns : pen->left;
    kiln_buf_init(&safe, 1 << 16);
    kiln_buf_init(&cut, 1 << 16);
    kiln_cli_put_safe(&safe, text);
    wide = kiln_term_columns(kiln_buf_str(&safe));
    if (wide > columns && columns)
        cut_middle(kiln_buf_str(&safe), columns, &cut);
    else if (wide <= columns)
        kiln_buf_add_str(&cut, kiln_buf_str(&safe));
    wide = kiln_term_columns(kiln_buf_str(&cut));
    wide = wide < columns ? wide : columns;
    if (right)
        put_spaces(pen, columns - wide);
    kiln_term_put(pen->term, pen->out, pen->plain ? KILN_STYLE_PLAIN : style, kiln_buf_str(&cut));
    pen->left -= wide;
    if (!right)
        put_spaces(pen, columns - wide);
    kiln_buf_done(&safe);
    kiln_buf_done(&cut);
}

/* ---- bars ---- */

static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

static uint32_t put_blocks(struct kiln_live_pen *pen, enum kiln_style style, uint32_t n_eighths)
{
    struct kiln_buf text;
    uint32_t columns = (n_eighths + 7) / 8;

    kiln_buf_init(&text, 4096);
    for (uint32_t i = 0; i < n_eighths / 8; i++)
        kiln_buf_puts(&text, "█");
    kiln_buf_puts(&text, eighths[n_eighths % 8]);
    kiln_live_put(pen, style, kiln_buf_str(&text));
    kiln_buf_done(&text);
    return columns;
}

void kiln_live_put_bar(struct kiln_live_pen *pen, double cpu, double waits, double scale,
                       uint32_t columns)
{
    double whole = cpu + waits, part = whole < scale ? whole / scale : 1;
    uint32_t all = (uint32_t)(part * columns * 8 + 0.5), used = 0;
    uint32_t of_cpu = cpu + waits > 0 ? (uint32_t)(all * (cpu / (cpu + waits)) + 0.5) : 0;

    if (all && !pen->term->color && waits > 0) /* two colours that cannot be seen are one bar */
        of_cpu = all;
    if (of_cpu < all) /* what waits begins with a whole block */
        of_cpu = (of_cpu + 4) / 8 * 8;
    if (of_cpu)
        used += put_blocks(pen, kiln_style_of_share(whole), of_cpu < all ? of_cpu : all);
    if (all > of_cpu)
        used += put_blocks(pen, KILN_STYLE_WAITS, all - of_cpu);
    put_spaces(pen, columns > used ? columns - used : 0);
}

void kiln_live_put_share(struct kiln_live_pen *pen, double share, uint32_t columns)
{
    struct kiln_buf text;

    kiln_buf_init(&text, 64);
    kiln_report_share(&text, share);
    kiln_live_put_cell(pen, kiln_style_of_share(share), kiln_buf_str(&text), columns, true);
    kiln_buf_done(&text);
}

/* ---- cells ---- */

static double share_of(const struct kiln_live_page *page, const struct kiln_live_amount *amount)
{
    return kiln_share((double)kiln_live_amount(amount, page->mode),
                      (double)kiln_live_amount(&page->rows->total, page->mode));
}

static void put_bar(const struct kiln_live_page *page, const struct kiln_live_row *row,
                    struct kiln_live_pen *pen)
{
    const struct kiln_live_amount *amount =
        page->order == KILN_LIVE_BY_TOTAL ? &row->total : &row->self;
    struct kiln_live_amount cpu = {.ns = {amount->ns[KILN_LIVE_CPU]}}, waits = *amount;

    waits.ns[KILN_LIVE_CPU] = 0;
    kiln_live_put_bar(pen, share_of(page, &cpu), share_of(page, &waits), page->scale, BAR);
}

/* Per cent of a processor, as top has it; how many threads wait, on average. */
static void put_rate(const struct kiln_live_page *page, uint64_t ns, bool percent,
                     struct kiln_live_pen *pen)
{
    double rate = kiln_share((double)ns, (double)page->rows->span_ns);
    char text[32];

    if (ns == 0)
        snprintf(text, sizeof(text), ".");
    else if (percent)
        snprintf(text, sizeof(text), rate < 10 ? "%.1f%%" : "%.0f%%", rate * 100);
    else
        snprintf(text, sizeof(text), rate < 100 ? "%.2f" : "%.0f", rate);
    kiln_live_put_cell(pen, percent ? kiln_style_of_share(rate) : KILN_STYLE_WAITS,
                       kiln_str_of(text), SHARE, true);
}

static void put_number(struct kiln_live_pen *pen, uint32_t number, uint32_t columns)
{
    char text[16];

    snprintf(text, sizeof(text), number ? "%" PRIu32 : ".", number);
    kiln_live_put_cell(pen, KILN_STYLE_PLAIN, kiln_str_of(text), columns, true);
}

static void put_frame(const struct kiln_live_page *page, uint32_t frame, uint32_t columns,
                      struct kiln_live_pen *pen)
{
    const struct kiln_live_frame *f;

    if (frame == KILN_LIVE_NONE) {
        put_spaces(pen, columns);
        return;
    }
    f = &page->window->book.frames[frame];
    kiln_live_put_cell(pen, f->unnamed || f->kernel ? KILN_STYLE_FAINT : KILN_STYLE_PLAIN, f->name,
                       columns, false);
}

/* "leaf ← caller ← ..." as far as there is room. */
static void put_stack(const struct kiln_live_page *page, const struct kiln_live_row *row,
                      struct kiln_live_pen *pen)
{
    for (uint32_t i = row->n; i-- > 0 && pen->left > 4;) {
        const struct kiln_live_frame *f = &page->window->book.frames[row->path[i]];

        kiln_live_put(pen, f->unnamed || f->kernel ? KILN_STYLE_FAINT : KILN_STYLE_PLAIN, f->name);
        if (i)
            kiln_live_puts(pen, KILN_STYLE_FAINT, " ← ");
    }
}

static struct kiln_str text_of(const struct kiln_live_page *page, uint32_t text)
{
    return text == KILN_LIVE_NONE ? KILN_STR("") : page->window->book.texts[text];
}

static void put_names(const struct kiln_live_page *page, const struct kiln_live_row *row,
                      enum cell cell, uint32_t width, struct kiln_live_pen *pen)
{
    const struct kiln_live_book *book = &page->window->book;
    struct kiln_str text = KILN_STR("");
    enum kiln_style style = KILN_STYLE_FAINT;

    if (cell == CELL_MODULE)
        text = book->frames[row->id].module;
    else if (cell == CELL_SERVICE)
        text = text_of(page, page->pane == KILN_LIVE_SERVICES ? row->id
                                                              : book->processes[row->id].service);
    else if (cell == CELL_PROCESS)
        text = book->processes[row->id].name;
    else if (cell == CELL_HOST)
        text = book->processes[row->id].host;
    else
        text = text_of(page, row->reason);
    if (cell == CELL_REASON)
        style = KILN_STYLE_WAITS;
    else if (cell == CELL_PROCESS || page->pane == KILN_LIVE_SERVICES)
        style = KILN_STYLE_PLAIN;
    kiln_live_put_cell(pen, style, text, width, false);
}

static void put_cell(const struct kiln_live_page *page, const struct kiln_live_row *row,
                     const struct column *column, struct kiln_live_pen *pen)
{
    uint32_t width = column->width ? column->width : pen->left;

    switch (column->cell) {
    case CELL_SELF:
        kiln_live_put_share(pen, share_of(page, &row->self), width);
        break;
    case CELL_TOTAL:
        kiln_live_put_share(pen, share_of(page, &row->total), width);
        break;
    case CELL_BAR:
        put_bar(page, row, pen);
        break;
    case CELL_CPU:
        put_rate(page, row->total.ns[KILN_LIVE_CPU], true, pen);
        break;
    case CELL_WAITS:
        put_rate(page, kiln_live_amount(&row->total, KILN_LIVE_BY_WAIT), false, pen);
        break;
    case CELL_PID:
        put_number(pen, page->window->book.processes[row->id].pid, width);
        break;
    case CELL_MEMBERS:
        put_number(pen, row->n, width);
        break;
    case CELL_HOTTEST:
        put_frame(page, row->hottest, width, pen);
        break;
    case CELL_NAME:
        put_frame(page, row->id, width, pen);
        break;
    case CELL_STACK:
        put_stack(page, row, pen);
        break;
    default:
        put_names(page, row, column->cell, width, pen);
    }
}

static bool is_sorted_by(const struct kiln_live_page *page, enum cell cell)
{
    bool lists = page->pane == KILN_LIVE_PROCESSES || page->pane == KILN_LIVE_SERVICES;

    if (page->order == KILN_LIVE_BY_NAME)
        return cell == CELL_NAME || cell == CELL_STACK || cell == CELL_PROCESS ||
               (cell == CELL_SERVICE && page->pane == KILN_LIVE_SERVICES);
    if (lists) /* by their sum, where both count */
        return (cell == CELL_CPU && page->mode != KILN_LIVE_BY_WAIT) ||
               (cell == CELL_WAITS && page->mode != KILN_LIVE_BY_CPU);
    return cell == (page->order == KILN_LIVE_BY_TOTAL && page->pane == KILN_LIVE_FUNCTIONS
                        ? CELL_TOTAL
                        : CELL_SELF);
}

void kiln_live_draw_titles(const struct kiln_live_page *page, struct kiln_live_pen *pen)
{
    uint32_t columns = pen->left;
    char title[64];

    put_spaces(pen, 1);
    for (uint32_t i = 0; i < COLUMNS_MAX; i++) {
        const struct column *column = &panes[page->pane][i];

        if (!is_shown(page, column, columns))
            continue;
        snprintf(title, sizeof(title), "%s%s", column->title,
                 is_sorted_by(page, column->cell) ? (page->ascending ? "▴" : "▾") : "");
        put_spaces(pen, 1);
        kiln_live_put_cell(pen, KILN_STYLE_FAINT, kiln_str_of(title),
                           column->width ? column->width : pen->left, column->right);
    }
}

void kiln_live_draw_row(const struct kiln_live_page *page, uint32_t row, struct kiln_live_pen *pen)
{
    uint32_t columns = pen->left;

    kiln_live_puts(pen, KILN_STYLE_PLAIN, row == page->selected ? "▸" : " ");
    for (uint32_t i = 0; i < COLUMNS_MAX; i++) {
        const struct column *column = &panes[page->pane][i];

        if (!is_shown(page, column, columns))
            continue;
        put_spaces(pen, 1);
        put_cell(page, &page->rows->rows[row], column, pen);
    }
    if (pen->plain)
        put_spaces(pen, pen->left);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   kiln live  HOST                                     ▁▂▃▅▇  1.34 of 2 processors
 *    1 Functions  2 Processes  3 Services  4 Stacks            CPU  wall  off-CPU
 *    last 10 s, 97 Hz, stacks 99.8% complete    only nginx    filter: json
 *     self  total            module             function
 *   ▸12.3%  45.6%  ████▌     xz                 lzma_encode
 *    ...
 *    ? help  / filter  Enter open  s sort  Space pause  q quit
 */
#include "cli/live_page.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/hash.h"
#include "cli/report.h"

enum { HEAD_ROWS = 4, FOOT_ROWS = 1, TREND_SHOWN = 40, NAME_ROOM = 20 };

const uint32_t kiln_live_spans[] = {2, 5, 10, 30, 60, 300, 0};
enum { SPAN_FIRST = 2 };

const char *kiln_live_pane_name(enum kiln_live_pane pane)
{
    static const char *const names[] = {"Functions", "Processes", "Services", "Stacks"};

    return names[pane];
}

const char *kiln_live_mode_name(enum kiln_live_mode mode)
{
    static const char *const names[] = {"CPU", "wall", "off-CPU"};

    return names[mode];
}

const char *kiln_live_order_name(enum kiln_live_order order)
{
    static const char *const names[] = {"self", "total", "name"};

    return names[order];
}

/* Where time is spent waiting, it is the kernel that waits, for somebody: whoever called it. */
void kiln_live_page_init(struct kiln_live_page *page, struct kiln_live_window *window)
{
    *page = (struct kiln_live_page){
        .window = window,
        .span = SPAN_FIRST,
        .kernel = {[KILN_LIVE_BY_CPU] = true},
        .process = KILN_LIVE_NONE,
        .service = KILN_LIVE_NONE,
        .through = KILN_LIVE_NONE,
        .stack_reason = KILN_LIVE_NONE,
        .facts = {.complete = -1},
    };
}

void kiln_live_page_done(struct kiln_live_page *page)
{
    kiln_regex_free(page->regex);
    kiln_live_rows_free(page->rows);
    kiln_live_around_done(&page->around);
    kiln_free(page->stack);
}

/* ---- asking ---- */

struct kiln_live_question kiln_live_page_question(const struct kiln_live_page *page)
{
    uint64_t span_ns = kiln_live_spans[page->span] * KILN_NS_PER_S;

    return (struct kiln_live_question){
        .pane = page->pane,
        .mode = page->mode,
        .order = page->order,
        .ascending = page->ascending,
        .no_kernel = !page->kernel[page->mode],
        .from_ns = page->now_ns > span_ns ? page->now_ns - span_ns : 0,
        .until_ns = page->now_ns,
        .process = page->remote ? KILN_LIVE_NONE : page->process,
        .service = page->remote ? KILN_LIVE_NONE : page->service,
        .frame = page->pane == KILN_LIVE_STACKS ? page->through : KILN_LIVE_NONE,
        .filter = page->regex,
    };
}

uint32_t kiln_live_page_count(const struct kiln_live_page *page)
{
    if (page->open == KILN_LIVE_STACK)
        return page->n_stack;
    if (page->open == KILN_LIVE_FUNCTION)
        return page->around.callers ? page->around.callers->n + page->around.callees->n : 0;
    return page->rows ? page->rows->n : 0;
}

uint32_t kiln_live_page_neighbour(const struct kiln_live_page *page, uint32_t row)
{
    const struct kiln_live_around *around = &page->around;

    return row < around->callers->n ? around->callers->rows[row].id
                                    : around->callees->rows[row - around->callers->n].id;
}

uint64_t kiln_live_page_which(const struct kiln_live_page *page, uint32_t row)
{
    const struct kiln_live_row *r;

    if (page->open == KILN_LIVE_STACK)
        return row;
    if (page->open == KILN_LIVE_FUNCTION)
        return (uint64_t)(row < page->around.callers->n) << 32 |
               kiln_live_page_neighbour(page, row);
    r = &page->rows->rows[row];
    return page->pane == KILN_LIVE_STACKS ? kiln_hash(r->path, r->n * sizeof(*r->path)) : r->id;
}

/* Bars are as long as can be, but do not change with each row that comes and goes. */
static void choose_scale(struct kiln_live_page *page)
{
    static const double scales[] = {0.05, 0.1, 0.25, 0.5};
    const struct kiln_live_rows *rows = page->rows;
    double whole = (double)kiln_live_amount(&rows->total, page->mode), most = 0;

    for (uint32_t i = 0; i < rows->n; i++) {
        const struct kiln_live_row *row = &rows->rows[i];
        double share = kiln_share(
            (double)kiln_live_amount(page->order == KILN_LIVE_BY_TOTAL ? &row->total : &row->self,
                                     page->mode),
            whole);

        most = share > most ? share : most;
    }
    page->scale = 1;
    for (size_t i = KILN_ARRAY_LEN(scales); i-- > 0 && most <= scales[i];)
        page->scale = scales[i];
}

/* The row that was chosen may be elsewhere now, or nowhere: then what took its place is. */
static void find_selected(struct kiln_live_page *page)
{
    uint32_t n = kiln_live_page_count(page);

    for (uint32_t i = 0; page->follows && i < n; i++)
        if (kiln_live_page_which(page, i) == page->chosen) {
            page->selected = i;
            return;
        }
    if (page->selected >= n)
        page->selected = n ? n - 1 : 0;
}

static int ask_function(struct kiln_live_page *page, struct kiln_live_question *question)
{
    struct kiln_live_around around = {0};
    int r;

    question->frame = page->trail[page->n_trail - 1];
    r = kiln_live_around_new(page->window, question, &around);
    kiln_live_around_done(&page->around);
    page->around = around;
    return r;
}

int kiln_live_page_ask(struct kiln_live_page *page, uint64_t now_ns)
{
    struct kiln_live_question question;
    struct kiln_live_rows *rows = NULL;
    int r;

    page->now_ns = now_ns;
    question = kiln_live_page_question(page);
    r = kiln_live_rows_new(page->window, &question, &rows);
    kiln_live_rows_free(page->rows); /* they may be of another pane: nothing is better */
    page->rows = rows;
    if (r == 0)
        choose_scale(page);
    if (r == 0 && page->open == KILN_LIVE_FUNCTION)
        r = ask_function(page, &question);
    if (r == 0)
        find_selected(page);
    return r;
}

/* ---- the head ---- */

static const char *const heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/* As many of the last seconds as there is room for, by the processors there are. */
static void put_trend(const struct kiln_live_page *page, uint32_t columns, struct kiln_buf *out)
{
    uint32_t n = page->n_trend < columns ? page->n_trend : columns;
    double most = page->facts.processors ? page->facts.processors : 0;

    for (uint32_t i = 0; i < page->n_trend && !page->facts.processors; i++)
        most = page->trend[i] > most ? page->trend[i] : most;
    for (uint32_t i = page->n_trend - n; i < page->n_trend; i++) {
        double share = most > 0 ? page->trend[i] / most : 0;

        kiln_buf_puts(out, heights[share >= 1 ? 7 : (uint32_t)(share * 8)]);
    }
}

/* A line with something at its left and something at its right end. */
static void put_ends(struct kiln_live_pen *pen, struct kiln_str left, struct kiln_str right,
                     enum kiln_style style)
{
    uint32_t wide = kiln_term_columns(right);

    if (wide + NAME_ROOM / 2 > pen->left) {
        kiln_live_put(pen, style, left);
        return;
    }
    kiln_live_put_cell(pen, style, left, pen->left - wide, false);
    kiln_live_put(pen, KILN_STYLE_PLAIN, right);
}

static void put_used(const struct kiln_live_page *page, struct kiln_buf *out)
{
    const struct kiln_live_rows *rows = page->rows;
    double span = (double)rows->span_ns;

    if (page->mode != KILN_LIVE_BY_WAIT) {
        kiln_buf_printf(out, "%.2f", kiln_share((double)rows->total.ns[KILN_LIVE_CPU], span));
        if (page->facts.processors)
            kiln_buf_printf(out, " of %u", page->facts.processors);
        kiln_buf_puts(out, page->facts.processors == 1 ? " processor" : " processors");
    }
    if (page->mode == KILN_LIVE_BY_WALL)
        kiln_buf_puts(out, ", ");
    if (page->mode != KILN_LIVE_BY_CPU)
        kiln_buf_printf(
            out, "%.1f threads wait",
            kiln_share((double)kiln_live_amount(&rows->total, KILN_LIVE_BY_WAIT), span));
}

static void draw_title(const struct kiln_live_page *page, struct kiln_live_pen *pen)
{
    struct kiln_buf right, used;
    uint32_t wide;

    kiln_buf_init(&right, 1 << 12);
    kiln_live_puts(pen, KILN_STYLE_STRONG, " kiln live");
    kiln_live_puts(pen, KILN_STYLE_PLAIN, "  ");
    kiln_buf_init(&used, 1 << 10);
    if (page->rows) {
        put_used(page, &used);
        wide = kiln_term_columns(kiln_buf_str(&used)) + NAME_ROOM;
        wide = wide < pen->left ? pen->left - wide : 0;
        put_trend(page, wide < TREND_SHOWN ? wide : TREND_SHOWN, &right);
        kiln_buf_puts(&right, "  ");
        kiln_buf_add_str(&right, kiln_buf_str(&used));
        kiln_buf_putc(&right, ' ');
    }
    kiln_buf_done(&used);
    put_ends(pen, kiln_str_of(page->facts.host), kiln_buf_str(&right), KILN_STYLE_PLAIN);
    kiln_buf_done(&right);
}

/* What is chosen is in brackets where it cannot be shown in another way. */
static void put_tab(struct kiln_live_pen *pen, const char *text, bool chosen)
{
    bool marks = chosen && !pen->term->color;

    kiln_live_puts(pen, chosen ? KILN_STYLE_SELECTED : KILN_STYLE_PLAIN, marks ? "[" : " ");
    kiln_live_puts(pen, chosen ? KILN_STYLE_SELECTED : KILN_STYLE_PLAIN, text);
    kiln_live_puts(pen, chosen ? KILN_STYLE_SELECTED : KILN_STYLE_PLAIN, marks ? "]" : " ");
}

static uint32_t modes_width(void)
{
    uint32_t width = 0;

    for (int i = 0; i < KILN_LIVE_MODES; i++)
        width += kiln_term_columns(kiln_str_of(kiln_live_mode_name((enum kiln_live_mode)i))) + 2;
    return width;
}

static void draw_tabs(const struct kiln_live_page *page, struct kiln_live_pen *pen)
{
    uint32_t modes = modes_width();
    bool wide = pen->left >= 54 + modes;
    char text[32];

    for (int i = 0; i < KILN_LIVE_PANES; i++) {
        const char *name = kiln_live_pane_name((enum kiln_live_pane)i);

        snprintf(text, sizeof(text), wide ? "%d %s" : "%d %.4s", i + 1, name);
        put_tab(pen, text, page->pane == (enum kiln_live_pane)i && page->open == KILN_LIVE_LIST);
    }
    if (pen->left < modes)
        return;
    kiln_live_put_cell(pen, KILN_STYLE_PLAIN, KILN_STR(""), pen->left - modes, false);
    for (int i = 0; i < KILN_LIVE_MODES; i++)
        put_tab(pen, kiln_live_mode_name((enum kiln_live_mode)i),
                page->mode == (enum kiln_live_mode)i);
}

static void put_focus(const struct kiln_live_page *page, struct kiln_live_pen *pen)
{
    const struct kiln_live_book *book = &page->window->book;
    char pid[24];

    if (page->process != KILN_LIVE_NONE) {
        snprintf(pid, sizeof(pid), " (%u)", book->processes[page->process].pid);
        kiln_live_puts(pen, KILN_STYLE_FAINT, "   only ");
        kiln_live_put(pen, KILN_STYLE_STRONG, book->processes[page->process].name);
        kiln_live_puts(pen, KILN_STYLE_STRONG, pid);
    } else if (page->service != KILN_LIVE_NONE) {
        kiln_live_puts(pen, KILN_STYLE_FAINT, "   only ");
        kiln_live_put(pen, KILN_STYLE_STRONG, book->texts[page->service]);
    }
    if (page->pane == KILN_LIVE_STACKS && page->through != KILN_LIVE_NONE) {
        kiln_live_puts(pen, KILN_STYLE_FAINT, "   through ");
        kiln_live_put(pen, KILN_STYLE_STRONG, book->frames[page->through].name);
    }
    if (page->filter[0] && !page->editing) {
        kiln_live_puts(pen, KILN_STYLE_FAINT, "   filter ");
        kiln_live_puts(pen, page->filter_is_bad ? KILN_STYLE_HOT : KILN_STYLE_STRONG, page->filter);
    }
}

/* "12 of 345", at the right end where there is room. */
static void put_position(const struct kiln_live_page *page, struct kiln_live_pen *pen)
{
    uint32_t n = kiln_live_page_count(page), wide;
    char text[40];

    if (n == 0)
        return;
    wide = (uint32_t)snprintf(text, sizeof(text), "%u of %u ", page->selected + 1, n);
    if (pen->left < wide + 2)
        return;
    kiln_live_put_cell(pen, KILN_STYLE_FAINT, kiln_str_of(text), pen->left, true);
}

static void draw_state(const struct kiln_live_page *page, struct kiln_live_pen *pen)
{
    uint32_t span = kiln_live_spans[page->span];
    char text[160];
    int n;

    if (page->paused)
        kiln_live_puts(pen, KILN_STYLE_SELECTED, " paused ");
    n = snprintf(text, sizeof(text), span < 60 ? " last %u s" : " last %u min",
                 span < 60 ? span : span / 60);
    if (page->facts.hz)
        n += snprintf(text + n, sizeof(text) - (size_t)n, ", %u Hz", page->facts.hz);
    if (page->facts.complete >= 0)
        n += snprintf(text + n, sizeof(text) - (size_t)n, ", stacks %.1f%% complete",
                      page->facts.complete * 100);
    if (page->facts.lost)
        n += snprintf(text + n, sizeof(text) - (size_t)n, ", %llu lost",
                      (unsigned long long)page->facts.lost);
    kiln_live_puts(pen, KILN_STYLE_FAINT, text);
    put_focus(page, pen);
    put_position(page, pen);
}

/* ---- the foot ---- */

static void draw_foot(const struct kiln_live_page *page, struct kiln_live_pen *pen)
{
    static const char *const hints[] = {
        "? help", "/ filter",    "Enter open",         "Esc back", "c w o CPU, wall, off-CPU",
        "s sort", "Space pause", "+ - time looked at", "q quit"};

    if (page->editing) {
        kiln_live_puts(pen, KILN_STYLE_STRONG, " filter: ");
        kiln_live_puts(pen, page->filter_is_bad ? KILN_STYLE_HOT : KILN_STYLE_PLAIN, page->filter);
        kiln_live_puts(pen, KILN_STYLE_SELECTED, pen->term->color ? " " : "_");
        kiln_live_puts(pen, KILN_STYLE_FAINT, "   Enter keeps it, Esc drops it");
        return;
    }
    if (page->facts.notice[0]) {
        kiln_live_puts(pen, KILN_STYLE_WARM, " ");
        kiln_live_puts(pen, KILN_STYLE_WARM, page->facts.notice);
        return;
    }
    for (size_t i = 0; i < KILN_ARRAY_LEN(hints); i++) {
        if (kiln_term_columns(kiln_str_of(hints[i])) + 2 > pen->left)
            break;
        kiln_live_puts(pen, KILN_STYLE_FAINT, i ? "  " : " ");
        kiln_live_puts(pen, KILN_STYLE_FAINT, hints[i]);
    }
}

/* ---- lists ---- */

static const char *nothing(const struct kiln_live_page *page)
{
    if (page->mode != KILN_LIVE_BY_CPU && page->facts.no_waits)
        return "nothing is known of what waits: off-CPU time is not sampled here";
    if (page->regex && page->rows && kiln_live_amount(&page->rows->total, page->mode))
        return "nothing matches the filter";
    return page->paused ? "paused" : "nothing was sampled yet";
}

/* Scrolls as little as shows the selected row. */
static void scroll(struct kiln_live_page *page, uint32_t rows)
{
    page->rows_shown = rows;
    if (page->selected < page->top)
        page->top = page->selected;
    if (rows && page->selected >= page->top + rows)
        page->top = page->selected - rows + 1;
    if (page->top >= kiln_live_page_count(page))
        page->top = 0;
}

/* A whole line in one style: its cells have none of their own. */
static void draw_selected(const struct kiln_live_page *page, uint32_t row,
                          const struct kiln_term *term, uint32_t columns, struct kiln_buf *out)
{
    struct kiln_live_pen pen = {.term = term, .left = columns, .plain = true};
    struct kiln_buf line;

    kiln_buf_init(&line, 1 << 16);
    pen.out = &line;
    kiln_live_draw_row(page, row, &pen);
    kiln_term_put(term, out, KILN_STYLE_SELECTED, kiln_buf_str(&line));
    kiln_buf_done(&line);
}

static uint32_t draw_list(struct kiln_live_page *page, const struct kiln_term *term,
                          uint32_t columns, uint32_t rows, struct kiln_buf *out)
{
    uint32_t n = kiln_live_page_count(page), written = 0;

    scroll(page, rows);
    for (uint32_t i = page->top; i < n && written < rows; i++, written++) {
        struct kiln_live_pen pen = {.term = term, .out = out, .left = columns};

        if (i == page->selected)
            draw_selected(page, i, term, columns, out);
        else
            kiln_live_draw_row(page, i, &pen);
        kiln_buf_putc(out, '\n');
    }
    if (n == 0 && rows) {
        struct kiln_live_pen pen = {.term = term, .out = out, .left = columns};

        kiln_live_puts(&pen, KILN_STYLE_FAINT, "   ");
        kiln_live_puts(&pen, KILN_STYLE_FAINT, nothing(page));
        kiln_buf_putc(out, '\n');
        written = 1;
    }
    return written;
}

/* ---- all of it ---- */

static void draw_line(const struct kiln_live_page *page, const struct kiln_term *term,
                      uint32_t columns, struct kiln_buf *out,
                      void (*draw)(const struct kiln_live_page *, struct kiln_live_pen *))
{
    struct kiln_live_pen pen = {.term = term, .out = out, .left = columns};

    draw(page, &pen);
    kiln_buf_putc(out, '\n');
}

static uint32_t draw_body(struct kiln_live_page *page, const struct kiln_term *term,
                          uint32_t columns, uint32_t rows, struct kiln_buf *out)
{
    if (page->help)
        return kiln_live_draw_help(term, columns, rows, out);
    if (page->open == KILN_LIVE_FUNCTION)
        return kiln_live_draw_function(page, term, columns, rows, out);
    if (page->open == KILN_LIVE_STACK)
        return kiln_live_draw_stack(page, term, columns, rows, out);
    draw_line(page, term, columns, out, kiln_live_draw_titles);
    return 1 + draw_list(page, term, columns, rows - 1, out);
}

void kiln_live_page_draw(struct kiln_live_page *page, const struct kiln_term *term,
                         uint32_t columns, uint32_t rows, struct kiln_buf *out)
{
    struct kiln_live_pen pen = {.term = term, .out = out, .left = columns};
    uint32_t left;

    if (rows < HEAD_ROWS + FOOT_ROWS + 1) {
        kiln_live_puts(&pen, KILN_STYLE_PLAIN, "kiln live: the terminal is too small");
        return;
    }
    left = rows - HEAD_ROWS - FOOT_ROWS + 1;
    draw_line(page, term, columns, out, draw_title);
    draw_line(page, term, columns, out, draw_tabs);
    draw_line(page, term, columns, out, draw_state);
    for (left -= draw_body(page, term, columns, left, out); left; left--)
        kiln_buf_putc(out, '\n');
    draw_foot(page, &pen);
}

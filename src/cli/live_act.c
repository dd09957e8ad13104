/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys.  Whatever a key changes, the page is asked and drawn again after it.
 */
#include <errno.h>
#include <stdio.h>

#include "cli/keyboard.h"
#include "cli/live_page.h"

/* ---- the chosen row ---- */

static void go_to(struct kiln_live_page *page, int64_t row)
{
    uint32_t n = kiln_live_page_count(page);

    page->follows = false;
    if (n == 0 || row < 0)
        row = 0;
    else if (row >= n)
        row = n - 1;
    page->selected = (uint32_t)row;
    if (n && row > 0) {
        page->follows = true;
        page->chosen = kiln_live_page_which(page, page->selected);
    }
}

static void start_at_top(struct kiln_live_page *page)
{
    page->selected = page->top = 0;
    page->follows = false;
}

/* ---- filter ---- */

/* A filter that makes no sense yet, as "foo(", leaves the last one that did. */
static void set_filter(struct kiln_live_page *page)
{
    struct kiln_regex *regex = NULL;
    struct kiln_err err = {0};
    struct kiln_buf pattern;
    bool lower = true;
    int r = 0;

    for (const char *c = page->filter; *c; c++)
        lower &= *c < 'A' || *c > 'Z';
    kiln_buf_init(&pattern, 1024);
    kiln_buf_puts(&pattern, lower ? "(?i)" : "");
    kiln_buf_puts(&pattern, page->filter);
    if (page->filter[0])
        r = kiln_regex_new(kiln_buf_str(&pattern), KILN_REGEX_GIVES_UP, &regex, &err);
    kiln_buf_done(&pattern);
    page->filter_is_bad = r < 0;
    if (r < 0)
        return;
    kiln_regex_free(page->regex);
    page->regex = regex;
    start_at_top(page);
}

static void drop_filter(struct kiln_live_page *page)
{
    page->filter[0] = '\0';
    page->editing = false;
    set_filter(page);
}

static void add_character(char *text, size_t size, uint32_t c)
{
    size_t n = strlen(text);
    char bytes[5] = "";

    if (c < 0x80)
        snprintf(bytes, sizeof(bytes), "%c", (char)c);
    else if (c < 0x800)
        snprintf(bytes, sizeof(bytes), "%c%c", (char)(0xc0 | c >> 6), (char)(0x80 | (c & 0x3f)));
    else if (c < 0x10000)
        snprintf(bytes, sizeof(bytes), "%c%c%c", (char)(0xe0 | c >> 12),
                 (char)(0x80 | (c >> 6 & 0x3f)), (char)(0x80 | (c & 0x3f)));
    if (n + strlen(bytes) < size)
        memcpy(text + n, bytes, strlen(bytes) + 1);
}

static void erase_character(char *text)
{
    size_t n = strlen(text);

    while (n && ((unsigned char)text[n - 1] & 0xc0) == 0x80)
        n--;
    text[n ? n - 1 : 0] = '\0';
}

static void edit(struct kiln_live_page *page, uint32_t key)
{
    switch (key) {
    case KILN_KEY_ENTER:
        page->editing = false;
        break;
    case KILN_KEY_ESCAPE:
    case KILN_KEY_CTRL_C:
        drop_filter(page);
        break;
    case KILN_KEY_CTRL_U:
        page->filter[0] = '\0';
        set_filter(page);
        break;
    case KILN_KEY_BACKSPACE:
        erase_character(page->filter);
        set_filter(page);
        break;
    default:
        if (key < ' ' || key >= KILN_KEY_UP)
            break;
        add_character(page->filter, sizeof(page->filter), key);
        set_filter(page);
    }
}

/* ---- opening and going back ---- */

static void open_function(struct kiln_live_page *page, uint32_t frame)
{
    if (page->n_trail == KILN_LIVE_TRAIL_MAX)
        memmove(page->trail, page->trail + 1, --page->n_trail * sizeof(*page->trail));
    page->trail[page->n_trail++] = frame;
    page->open = KILN_LIVE_FUNCTION;
    start_at_top(page);
}

static void open_stack(struct kiln_live_page *page, const struct kiln_live_row *row)
{
    uint32_t *copy = kiln_malloc(row->n * sizeof(*copy));

    if (!copy)
        return;
    memcpy(copy, row->path, row->n * sizeof(*copy));
    kiln_free(page->stack);
    page->stack = copy;
    page->n_stack = row->n;
    page->stack_amount = row->total;
    page->stack_reason = row->reason;
    page->open = KILN_LIVE_STACK;
    start_at_top(page);
}

static void show_pane(struct kiln_live_page *page, enum kiln_live_pane pane)
{
    page->pane = pane;
    page->open = KILN_LIVE_LIST;
    page->n_trail = 0;
    start_at_top(page);
}

/* What is in focus; the filter was for finding it. */
static void focus(struct kiln_live_page *page, uint32_t process, uint32_t service)
{
    page->process = process;
    page->service = service;
    page->refocused = true;
    drop_filter(page);
    show_pane(page, KILN_LIVE_FUNCTIONS);
}

static void enter_list(struct kiln_live_page *page, const struct kiln_live_row *row)
{
    switch (page->pane) {
    case KILN_LIVE_PROCESSES:
        focus(page, row->id, KILN_LIVE_NONE);
        break;
    case KILN_LIVE_SERVICES:
        focus(page, KILN_LIVE_NONE, row->id);
        break;
    case KILN_LIVE_STACKS:
        open_stack(page, row);
        break;
    default:
        open_function(page, row->id);
    }
}

static void enter(struct kiln_live_page *page)
{
    if (page->selected >= kiln_live_page_count(page))
        return;
    if (page->open == KILN_LIVE_STACK)
        open_function(page, page->stack[page->n_stack - 1 - page->selected]);
    else if (page->open == KILN_LIVE_FUNCTION)
        open_function(page, kiln_live_page_neighbour(page, page->selected));
    else
        enter_list(page, &page->rows->rows[page->selected]);
}

static void go_back(struct kiln_live_page *page)
{
    if (page->open == KILN_LIVE_FUNCTION && page->n_trail > 1)
        page->n_trail--;
    else if (page->open != KILN_LIVE_LIST)
        show_pane(page, page->pane);
    else if (page->pane == KILN_LIVE_STACKS && page->through != KILN_LIVE_NONE)
        page->through = KILN_LIVE_NONE;
    else if (page->filter[0])
        drop_filter(page);
    else if (page->process != KILN_LIVE_NONE || page->service != KILN_LIVE_NONE) {
        bool was_process = page->process != KILN_LIVE_NONE;

        focus(page, KILN_LIVE_NONE, KILN_LIVE_NONE);
        show_pane(page, was_process ? KILN_LIVE_PROCESSES : KILN_LIVE_SERVICES);
    }
    start_at_top(page);
}

/* The stacks through the function that is open or chosen. */
static void show_stacks(struct kiln_live_page *page)
{
    if (page->open == KILN_LIVE_FUNCTION)
        page->through = page->trail[page->n_trail - 1];
    else if (page->open == KILN_LIVE_LIST && page->pane == KILN_LIVE_FUNCTIONS && page->rows &&
             page->selected < page->rows->n)
        page->through = page->rows->rows[page->selected].id;
    else
        return;
    drop_filter(page);
    show_pane(page, KILN_LIVE_STACKS);
}

/* ---- other questions ---- */

static void set_mode(struct kiln_live_page *page, enum kiln_live_mode mode)
{
    page->mode = mode;
    start_at_top(page);
}

static void change_span(struct kiln_live_page *page, int by)
{
    if (by < 0 && page->span)
        page->span--;
    else if (by > 0 && kiln_live_spans[page->span + 1])
        page->span++;
}

static bool move(struct kiln_live_page *page, uint32_t key)
{
    int64_t at = page->selected, whole = page->rows_shown > 1 ? page->rows_shown - 1 : 1;

    switch (key) {
    case KILN_KEY_UP:
    case 'k':
        go_to(page, at - 1);
        return true;
    case KILN_KEY_DOWN:
    case 'j':
        go_to(page, at + 1);
        return true;
    case KILN_KEY_PAGE_UP:
        go_to(page, at - whole);
        return true;
    case KILN_KEY_PAGE_DOWN:
        go_to(page, at + whole);
        return true;
    case KILN_KEY_HOME:
    case 'g':
        go_to(page, 0);
        return true;
    case KILN_KEY_END:
    case 'G':
        go_to(page, INT64_MAX);
        return true;
    default:
        return false;
    }
}

static bool ask_otherwise(struct kiln_live_page *page, uint32_t key)
{
    switch (key) {
    case 'c':
        set_mode(page, KILN_LIVE_BY_CPU);
        return true;
    case 'w':
        set_mode(page, KILN_LIVE_BY_WALL);
        return true;
    case 'o':
        set_mode(page, KILN_LIVE_BY_WAIT);
        return true;
    case 's':
        page->order = (page->order + 1) % KILN_LIVE_ORDERS;
        start_at_top(page);
        return true;
    case 'r':
        page->ascending = !page->ascending;
        start_at_top(page);
        return true;
    case 'K':
        page->kernel[page->mode] = !page->kernel[page->mode];
        return true;
    case '+':
    case '=':
        change_span(page, 1);
        return true;
    case '-':
        change_span(page, -1);
        return true;
    default:
        return false;
    }
}

static bool show_otherwise(struct kiln_live_page *page, uint32_t key)
{
    switch (key) {
    case '1':
    case '2':
    case '3':
    case '4':
        show_pane(page, (enum kiln_live_pane)(key - '1'));
        return true;
    case KILN_KEY_TAB:
    case KILN_KEY_RIGHT:
        show_pane(page, (page->pane + 1) % KILN_LIVE_PANES);
        return true;
    case KILN_KEY_BACK_TAB:
    case KILN_KEY_LEFT:
        show_pane(page, (page->pane + KILN_LIVE_PANES - 1) % KILN_LIVE_PANES);
        return true;
    case KILN_KEY_ENTER:
        enter(page);
        return true;
    case KILN_KEY_ESCAPE:
    case KILN_KEY_BACKSPACE:
        go_back(page);
        return true;
    case 't':
        show_stacks(page);
        return true;
    default:
        return false;
    }
}

static void run_key(struct kiln_live_page *page, uint32_t key)
{
    switch (key) {
    case 'q':
    case KILN_KEY_CTRL_C:
        page->quit = true;
        break;
    case KILN_KEY_CTRL_Z:
        page->suspend = true;
        break;
    case '/':
        page->editing = page->open == KILN_LIVE_LIST;
        break;
    case ' ':
    case 'p':
        page->paused = !page->paused;
        break;
    case '?':
    case 'h':
    case KILN_KEY_F1:
        page->help = true;
        break;
    default:
        break;
    }
}

void kiln_live_page_key(struct kiln_live_page *page, uint32_t key)
{
    page->facts.notice[0] = '\0';
    if (page->help && key != KILN_KEY_CTRL_C && key != KILN_KEY_CTRL_Z && key != 'q') {
        page->help = false;
        return;
    }
    if (page->editing && key != KILN_KEY_CTRL_Z)
        edit(page, key);
    else if (!move(page, key) && !ask_otherwise(page, key) && !show_otherwise(page, key))
        run_key(page, key);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_page - the page of `kiln live`: what is shown, what keys make of it, and its lines.
 *
 *   live_act.c     keys
 *   live_page.c    the frame: head, tabs, titles, keys
 *   live_cells.c   columns and rows of lists
 *   live_open.c    one function, one stack, the help
 *
 * A list is a question to the window (cli/live.h) and a row that keys are about.  That row stays
 * selected when others overtake it, once a key has chosen it; until then it is the first.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_LIVE_PAGE_H
#define KILN_CLI_LIVE_PAGE_H

#include "cli/live.h"
#include "cli/term.h"

enum { KILN_LIVE_TREND = 64, KILN_LIVE_TRAIL_MAX = 16, KILN_LIVE_FILTER_MAX = 128 };

/* What the source tells of itself. */
struct kiln_live_facts {
    char host[64];       /* or the server's address */
    uint32_t processors; /* 0: not known */
    uint32_t hz;         /* 0: not known */
    uint64_t samples, lost;
    double complete;  /* share of stacks; below 0: not known */
    bool no_waits;    /* it cannot tell what waits */
    char notice[200]; /* the last thing that went wrong; "": nothing */
};

enum kiln_live_open { KILN_LIVE_LIST, KILN_LIVE_FUNCTION, KILN_LIVE_STACK };

struct kiln_live_page {
    struct kiln_live_window *window;
    struct kiln_live_facts facts;
    bool remote; /* a server answers for what is in focus alone */
    /* the question */
    enum kiln_live_pane pane;
    enum kiln_live_mode mode;
    enum kiln_live_order order;
    bool ascending;
    bool kernel[KILN_LIVE_MODES]; /* shown */
    uint32_t span;                /* of kiln_live_spans */
    uint32_t process, service;    /* in focus, or KILN_LIVE_NONE */
    uint32_t through;             /* STACKS: only those through this frame, or KILN_LIVE_NONE */
    char filter[KILN_LIVE_FILTER_MAX];
    struct kiln_regex *regex; /* of the last filter that made sense */
    bool editing, filter_is_bad;
    /* where one is */
    enum kiln_live_open open;
    bool help;
    uint32_t trail[KILN_LIVE_TRAIL_MAX]; /* functions that were opened one from another */
    uint32_t n_trail;
    uint32_t *stack; /* that is open, root first */
    uint32_t n_stack;
    struct kiln_live_amount stack_amount;
    uint32_t stack_reason;
    uint32_t selected, top; /* rows */
    bool follows;           /* the selected row is known by what it is, not where */
    uint64_t chosen;        /* which it is */
    /* what it was answered */
    struct kiln_live_rows *rows;    /* LIST */
    struct kiln_live_around around; /* FUNCTION */
    double scale;                   /* the share that a whole bar stands for */
    uint64_t now_ns;                /* by the window's clock */
    double trend[KILN_LIVE_TREND];  /* processors used, a second each, the last at the end */
    uint32_t n_trend;
    /* what keys asked of the program */
    bool quit, paused, suspend, refocused;
    uint32_t rows_shown; /* of the list, at the last drawing */
};

extern const uint32_t kiln_live_spans[]; /* seconds; ends with 0 */

void kiln_live_page_init(struct kiln_live_page *page, struct kiln_live_window *window);
void kiln_live_page_done(struct kiln_live_page *page);

/* Asks the window again: after a key, or when something came. */
KILN_CHECK int kiln_live_page_ask(struct kiln_live_page *page, uint64_t now_ns);
/* The question that the page stands for. */
struct kiln_live_question kiln_live_page_question(const struct kiln_live_page *page);

void kiln_live_page_key(struct kiln_live_page *page, uint32_t key);

/* Lines with a line feed between them: at most `rows`, each of at most `columns`. */
void kiln_live_page_draw(struct kiln_live_page *page, const struct kiln_term *term,
                         uint32_t columns, uint32_t rows, struct kiln_buf *out);

/* The name of a pane ("Functions"), a mode ("CPU"), an order ("self"). */
const char *kiln_live_pane_name(enum kiln_live_pane pane);
const char *kiln_live_mode_name(enum kiln_live_mode mode);
const char *kiln_live_order_name(enum kiln_live_order order);

/* ---- inside ---- */

/* How many rows there are to choose among, and which one a row is. */
uint32_t kiln_live_page_count(const struct kiln_live_page *page);
uint64_t kiln_live_page_which(const struct kiln_live_page *page, uint32_t row);
/* FUNCTION: the frame of a row: callers, then callees. */
uint32_t kiln_live_page_neighbour(const struct kiln_live_page *page, uint32_t row);

/* A line that is being written. */
struct kiln_live_pen {
    const struct kiln_term *term;
    struct kiln_buf *out;
    uint32_t left; /* columns */
    bool plain;    /* the whole line has a style already */
};
/* As much of a text as there is room for. */
void kiln_live_put(struct kiln_live_pen *pen, enum kiln_style style, struct kiln_str text);
void kiln_live_puts(struct kiln_live_pen *pen, enum kiln_style style, const char *text);
/* A text in so many columns: cut in its middle, or filled with spaces. */
void kiln_live_put_cell(struct kiln_live_pen *pen, enum kiln_style style, struct kiln_str text,
                        uint32_t columns, bool right);
/* A bar of so many columns for parts of one: on a processor, then waiting. */
void kiln_live_put_bar(struct kiln_live_pen *pen, double cpu, double waits, double scale,
                       uint32_t columns);
/* "12.3%", at the right of its columns */
void kiln_live_put_share(struct kiln_live_pen *pen, double share, uint32_t columns);

void kiln_live_draw_titles(const struct kiln_live_page *page, struct kiln_live_pen *pen);
void kiln_live_draw_row(const struct kiln_live_page *page, uint32_t row, struct kiln_live_pen *pen);
/* The lines of what is open, and of the help; returns how many lines were written. */
uint32_t kiln_live_draw_function(struct kiln_live_page *page, const struct kiln_term *term,
                                 uint32_t columns, uint32_t rows, struct kiln_buf *out);
uint32_t kiln_live_draw_stack(struct kiln_live_page *page, const struct kiln_term *term,
                              uint32_t columns, uint32_t rows, struct kiln_buf *out);
uint32_t kiln_live_draw_help(const struct kiln_term *term, uint32_t columns, uint32_t rows,
                             struct kiln_buf *out);

#endif /* KILN_CLI_LIVE_PAGE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every sample of the slices that count is added to a cell: of its frames, its process, its service
 * or its stack.  Cells of frames, processes and services lie in an array by their number in the
 * book; those that got something become rows.
 *
 * What is the most frequent of something within a row (the hottest function of a process, what a
 * function waits for) is found by notes (row, what, how much), sorted at the end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "cli/live.h"

#define ROWS_BYTES_MAX ((size_t)256 << 20)

enum { ENTRIES_MAX = 1 << 26 };

uint64_t kiln_live_amount(const struct kiln_live_amount *amount, enum kiln_live_mode mode)
{
    uint64_t waits = amount->ns[KILN_LIVE_BLOCKED] + amount->ns[KILN_LIVE_RUNNABLE];

    switch (mode) {
    case KILN_LIVE_BY_CPU:
        return amount->ns[KILN_LIVE_CPU];
    case KILN_LIVE_BY_WAIT:
        return waits;
    default:
        return amount->ns[KILN_LIVE_CPU] + waits;
    }
}

static bool counts(uint32_t kind, enum kiln_live_mode mode)
{
    return mode == KILN_LIVE_BY_WALL || (mode == KILN_LIVE_BY_CPU) == (kind == KILN_LIVE_CPU);
}

/* ---- notes ---- */

struct note {
    uint32_t row, what;
    uint64_t ns;
};

struct notes {
    struct note *items;
    uint32_t n, cap;
};

static int by_row_and_what(const void *a, const void *b)
{
    const struct note *x = a, *y = b;

    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return (x->what > y->what) - (x->what < y->what);
}

static int put_note(struct kiln_budget *budget, struct notes *notes, struct note note)
{
    int r;

    if (note.row == KILN_LIVE_NONE || note.what == KILN_LIVE_NONE)
        return 0;
    r = kiln_grow(budget, (void **)&notes->items, &notes->cap, (uint64_t)notes->n + 1,
                  sizeof(*notes->items), ENTRIES_MAX);
    if (r == 0)
        notes->items[notes->n++] = note;
    return r;
}

/* Sums those of the same row and thing, and calls what is largest in each row by its number. */
static void settle(struct notes *notes, void (*found)(void *context, uint32_t row, uint32_t what),
                   void *context)
{
    struct note best = {0}, sum;

    if (notes->n)
        qsort(notes->items, notes->n, sizeof(*notes->items), by_row_and_what);
    for (uint32_t i = 0; i < notes->n;) {
        sum = notes->items[i++];
        while (i < notes->n && by_row_and_what(&sum, &notes->items[i]) == 0)
            sum.ns += notes->items[i++].ns;
        if (sum.ns > best.ns || sum.row != best.row)
            best = sum;
        if (i == notes->n || notes->items[i].row != best.row)
            found(context, best.row, best.what);
    }
}

/* ---- adding up ---- */

struct summing {
    const struct kiln_live_window *window;
    const struct kiln_live_question *question;
    struct kiln_live_rows *out;
    struct kiln_live_row *cells; /* by number; of stacks: as they come */
    uint32_t *stamps;            /* of frames: the last sample that had it, and 1 */
    uint32_t n_cells, cells_cap, stamps_cap, stamp;
    struct kiln_intern by_path;
    struct notes hottest, reasons;
    struct notes members; /* SERVICES: row, process */
};

/* A sample as the question sees it. */
struct seen {
    const struct kiln_live_sample *sample;
    const uint32_t *path;
    uint32_t n;
};

static void add(struct kiln_live_amount *amount, const struct kiln_live_sample *sample)
{
    amount->ns[sample->kind] += sample->ns;
}

static uint32_t leaf(const struct seen *seen)
{
    return seen->n ? seen->path[seen->n - 1] : KILN_LIVE_NONE;
}

static int add_functions(struct summing *s, const struct seen *seen)
{
    s->stamp++;
    for (uint32_t i = 0; i < seen->n; i++) {
        uint32_t frame = seen->path[i];

        if (s->stamps[frame] != s->stamp)
            add(&s->cells[frame].total, seen->sample);
        s->stamps[frame] = s->stamp;
    }
    if (seen->n)
        add(&s->cells[leaf(seen)].self, seen->sample);
    return put_note(&s->out->budget, &s->reasons,
                    (struct note){leaf(seen), seen->sample->reason, seen->sample->ns});
}

static int add_to(struct summing *s, const struct seen *seen, uint32_t cell)
{
    int r;

    add(&s->cells[cell].total, seen->sample);
    add(&s->cells[cell].self, seen->sample);
    r = put_note(&s->out->budget, &s->hottest, (struct note){cell, leaf(seen), seen->sample->ns});
    if (r < 0)
        return r;
    return put_note(&s->out->budget, &s->reasons,
                    (struct note){cell, seen->sample->reason, seen->sample->ns});
}

static int add_process(struct summing *s, const struct seen *seen)
{
    return seen->sample->process == KILN_LIVE_NONE ? 0 : add_to(s, seen, seen->sample->process);
}

static int add_service(struct summing *s, const struct seen *seen)
{
    uint32_t process = seen->sample->process, service;
    int r;

    if (process == KILN_LIVE_NONE)
        return 0;
    service = s->window->book.processes[process].service;
    r = add_to(s, seen, service);
    return r < 0 ? r : put_note(&s->out->budget, &s->members, (struct note){service, process, 1});
}

static int find_stack(struct summing *s, const struct seen *seen, uint32_t *ret)
{
    size_t bytes = seen->n * sizeof(*seen->path);
    uint64_t hash = kiln_hash(seen->path, bytes);
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&s->by_path, hash);
         kiln_intern_next(&s->by_path, &p);)
        if (s->cells[p.entry].n == seen->n &&
            memcmp(s->cells[p.entry].path, seen->path, bytes) == 0) {
            *ret = p.entry;
            return 0;
        }
    r = kiln_grow(&s->out->budget, (void **)&s->cells, &s->cells_cap, (uint64_t)s->n_cells + 1,
                  sizeof(*s->cells), ENTRIES_MAX);
    if (r == 0)
        r = kiln_intern_add(&s->by_path, &s->out->budget, hash, s->n_cells);
    if (r < 0)
        return r;
    s->cells[s->n_cells] = (struct kiln_live_row){
        .path = seen->path, .n = seen->n, .hottest = KILN_LIVE_NONE, .reason = KILN_LIVE_NONE};
    *ret = s->n_cells++;
    return 0;
}

static int add_stack(struct summing *s, const struct seen *seen)
{
    uint32_t cell = 0;
    int r = seen->n ? find_stack(s, seen, &cell) : 0;

    if (r < 0 || seen->n == 0)
        return r;
    add(&s->cells[cell].total, seen->sample);
    add(&s->cells[cell].self, seen->sample);
    return put_note(&s->out->budget, &s->reasons,
                    (struct note){cell, seen->sample->reason, seen->sample->ns});
}

static int (*const adders[KILN_LIVE_PANES])(struct summing *s, const struct seen *seen) = {
    [KILN_LIVE_FUNCTIONS] = add_functions,
    [KILN_LIVE_PROCESSES] = add_process,
    [KILN_LIVE_SERVICES] = add_service,
    [KILN_LIVE_STACKS] = add_stack,
};

/* ---- which samples ---- */

/* Frames of the kernel are at the end; a thread of the kernel has no others. */
static uint32_t without_kernel(const struct kiln_live_book *book, const uint32_t *path, uint32_t n)
{
    uint32_t left = n;

    while (left && book->frames[path[left - 1]].kernel)
        left--;
    return left ? left : n;
}

static bool in_focus(const struct summing *s, const struct seen *seen)
{
    const struct kiln_live_question *q = s->question;
    uint32_t process = seen->sample->process;

    if (q->process != KILN_LIVE_NONE && process != q->process)
        return false;
    if (q->service != KILN_LIVE_NONE &&
        (process == KILN_LIVE_NONE || s->window->book.processes[process].service != q->service))
        return false;
    if (q->frame == KILN_LIVE_NONE)
        return true;
    for (uint32_t i = 0; i < seen->n; i++)
        if (seen->path[i] == q->frame)
            return true;
    return false;
}

/* Of what lasted longer than the time looked at, the end alone is within it. */
static void cut_long(const struct summing *s, const struct kiln_live_slice *slice,
                     struct kiln_live_sample *sample)
{
    const struct kiln_live_question *q = s->question;
    uint64_t from_ns = q->from_ns > s->window->began_ns ? q->from_ns : s->window->began_ns;
    uint64_t last_ns = sample->last_ms * KILN_NS_PER_MS;
    uint64_t within_ns = slice->at_ns > from_ns ? slice->at_ns - from_ns : 0;

    if (last_ns > within_ns)
        sample->ns = (uint64_t)((double)sample->ns * ((double)within_ns / (double)last_ns));
}

static int add_slice(struct summing *s, const struct kiln_live_slice *slice,
                     int (*adder)(struct summing *, const struct seen *))
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < slice->n_samples; i++) {
        struct kiln_live_sample sample = slice->samples[i];
        struct seen seen = {&sample, sample.n ? slice->path + sample.first : NULL, sample.n};

        if (!counts(sample.kind, s->question->mode))
            continue;
        cut_long(s, slice, &sample);
        if (s->question->no_kernel)
            seen.n = without_kernel(&s->window->book, seen.path, seen.n);
        if (!in_focus(s, &seen))
            continue;
        if (seen.n)
            add(&s->out->total, &sample);
        r = adder(s, &seen);
    }
    return r;
}

static int add_slices(struct summing *s, int (*adder)(struct summing *, const struct seen *))
{
    const struct kiln_live_question *q = s->question;
    const struct kiln_live_window *w = s->window;
    uint64_t from_ns = q->from_ns > w->began_ns ? q->from_ns : w->began_ns;
    int r = 0;

    s->out->span_ns = q->until_ns > from_ns ? q->until_ns - from_ns : 0;
    for (uint32_t i = 0; r == 0 && i < w->n; i++) {
        const struct kiln_live_slice *slice = kiln_live_window_at(w, i);

        if (slice->at_ns > q->from_ns && slice->at_ns <= q->until_ns)
            r = add_slice(s, slice, adder);
    }
    return r;
}

/* ---- rows ---- */

static struct kiln_str name_of(const struct summing *s, const struct kiln_live_row *row)
{
    const struct kiln_live_book *book = &s->window->book;

    switch (s->question->pane) {
    case KILN_LIVE_PROCESSES:
        return book->processes[row->id].name;
    case KILN_LIVE_SERVICES:
        return book->texts[row->id];
    case KILN_LIVE_STACKS:
        return book->frames[row->path[row->n - 1]].name;
    default:
        return book->frames[row->id].name;
    }
}

static bool matches(struct kiln_regex *filter, struct kiln_str text)
{
    return kiln_regex_matches(filter, text) == 1;
}

static bool frame_matches(const struct summing *s, uint32_t frame)
{
    const struct kiln_live_frame *f = &s->window->book.frames[frame];

    return matches(s->question->filter, f->name) || matches(s->question->filter, f->module);
}

static bool passes(const struct summing *s, const struct kiln_live_row *row)
{
    const struct kiln_live_book *book = &s->window->book;
    struct kiln_regex *filter = s->question->filter;
    char pid[16];

    if (!filter)
        return true;
    switch (s->question->pane) {
    case KILN_LIVE_PROCESSES:
        snprintf(pid, sizeof(pid), "%u", book->processes[row->id].pid);
        return matches(filter, book->processes[row->id].name) ||
               matches(filter, kiln_str_of(pid)) ||
               matches(filter, book->texts[book->processes[row->id].service]);
    case KILN_LIVE_SERVICES:
        return matches(filter, book->texts[row->id]);
    case KILN_LIVE_STACKS:
        for (uint32_t i = 0; i < row->n; i++)
            if (frame_matches(s, row->path[i]))
                return true;
        return false;
    default:
        return frame_matches(s, row->id);
    }
}

static void set_hottest(void *context, uint32_t row, uint32_t what)
{
    ((struct summing *)context)->cells[row].hottest = what;
}

static void set_reason(void *context, uint32_t row, uint32_t what)
{
    ((struct summing *)context)->cells[row].reason = what;
}

/* How many processes each service has. */
static void count_members(struct summing *s)
{
    struct notes *notes = &s->members;

    if (notes->n)
        qsort(notes->items, notes->n, sizeof(*notes->items), by_row_and_what);
    for (uint32_t i = 0; i < notes->n; i++)
        if (i == 0 || by_row_and_what(&notes->items[i - 1], &notes->items[i]) != 0)
            s->cells[notes->items[i].row].n++;
}

static int compare(const void *a, const void *b, void *context)
{
    const struct summing *s = context;
    const struct kiln_live_row *x = a, *y = b;
    enum kiln_live_mode mode = s->question->mode;
    enum kiln_live_order order = s->question->order;
    uint64_t left[2] = {kiln_live_amount(&x->self, mode), kiln_live_amount(&x->total, mode)};
    uint64_t right[2] = {kiln_live_amount(&y->self, mode), kiln_live_amount(&y->total, mode)};
    int first = order == KILN_LIVE_BY_TOTAL, sign = s->question->ascending ? -1 : 1;

    if (order != KILN_LIVE_BY_NAME && left[first] != right[first])
        return sign * (left[first] > right[first] ? -1 : 1);
    if (order != KILN_LIVE_BY_NAME && left[!first] != right[!first])
        return sign * (left[!first] > right[!first] ? -1 : 1);
    first = kiln_str_cmp(name_of(s, x), name_of(s, y));
    if (first)
        return sign * first;
    return x->id != y->id ? (x->id < y->id ? -1 : 1) : (x->path > y->path) - (x->path < y->path);
}

static int take_rows(struct summing *s)
{
    struct kiln_live_rows *out = s->out;
    int r = 0;

    settle(&s->hottest, set_hottest, s);
    settle(&s->reasons, set_reason, s);
    count_members(s);
    for (uint32_t i = 0; r == 0 && i < s->n_cells; i++) {
        if (kiln_live_amount(&s->cells[i].total, KILN_LIVE_BY_WALL) == 0 ||
            !passes(s, &s->cells[i]))
            continue;
        r = kiln_grow(&out->budget, (void **)&out->rows, &out->cap, (uint64_t)out->n + 1,
                      sizeof(*out->rows), ENTRIES_MAX);
        if (r == 0)
            out->rows[out->n++] = s->cells[i];
    }
    if (r == 0 && out->n)
        qsort_r(out->rows, out->n, sizeof(*out->rows), compare, s);
    return r;
}

static int make_cells(struct summing *s, uint32_t n)
{
    int r = kiln_reserve(&s->out->budget, (void **)&s->cells, &s->cells_cap, n, sizeof(*s->cells),
                         ENTRIES_MAX);

    if (r < 0)
        return r;
    s->n_cells = n;
    for (uint32_t i = 0; i < n; i++)
        s->cells[i] =
            (struct kiln_live_row){.id = i, .hottest = KILN_LIVE_NONE, .reason = KILN_LIVE_NONE};
    return 0;
}

static int make_stamps(struct summing *s)
{
    uint32_t n = s->window->book.n_frames;
    int r = kiln_reserve(&s->out->budget, (void **)&s->stamps, &s->stamps_cap, n,
                         sizeof(*s->stamps), ENTRIES_MAX);

    if (r == 0 && n)
        memset(s->stamps, 0, n * sizeof(*s->stamps));
    return r;
}

static int begin(struct summing *s)
{
    const struct kiln_live_book *book = &s->window->book;
    int r;

    switch (s->question->pane) {
    case KILN_LIVE_PROCESSES:
        return make_cells(s, book->n_processes);
    case KILN_LIVE_SERVICES:
        return make_cells(s, book->n_texts);
    case KILN_LIVE_STACKS:
        return 0;
    default:
        r = make_cells(s, book->n_frames);
        return r < 0 ? r : make_stamps(s);
    }
}

static void free_notes(struct kiln_budget *budget, struct notes *notes)
{
    kiln_array_free(budget, (void **)&notes->items, &notes->cap, sizeof(*notes->items));
}

static void done(struct summing *s)
{
    struct kiln_budget *budget = &s->out->budget;

    free_notes(budget, &s->hottest);
    free_notes(budget, &s->reasons);
    free_notes(budget, &s->members);
    kiln_intern_done(&s->by_path, budget);
    kiln_array_free(budget, (void **)&s->cells, &s->cells_cap, sizeof(*s->cells));
    kiln_array_free(budget, (void **)&s->stamps, &s->stamps_cap, sizeof(*s->stamps));
}

static struct kiln_live_rows *new_rows(void)
{
    struct kiln_live_rows *rows = kiln_calloc(1, sizeof(*rows));

    if (rows)
        rows->budget.limit = ROWS_BYTES_MAX;
    return rows;
}

int kiln_live_rows_new(const struct kiln_live_window *window,
                       const struct kiln_live_question *question, struct kiln_live_rows **ret_rows)
{
    struct summing s = {.window = window, .question = question, .out = new_rows()};
    int r;

    if (!s.out)
        return -ENOMEM;
    r = begin(&s);
    if (r == 0)
        r = add_slices(&s, adders[question->pane]);
    if (r == 0)
        r = take_rows(&s);
    done(&s);
    if (r < 0)
        kiln_live_rows_free(s.out);
    else
        *ret_rows = s.out;
    return r;
}

void kiln_live_rows_free(struct kiln_live_rows *rows)
{
    if (!rows)
        return;
    kiln_array_free(&rows->budget, (void **)&rows->rows, &rows->cap, sizeof(*rows->rows));
    kiln_free(rows);
}

/* ---- around one function ---- */

/* The neighbours of a function in a stack, `step` frames away: each once. */
static int add_neighbours(struct summing *s, const struct seen *seen, int step)
{
    uint32_t wanted = s->question->frame;

    s->stamp++;
    for (uint32_t i = 0; i < seen->n; i++) {
        uint32_t at = i + (uint32_t)step; /* wraps: then it is not below n */

        if (seen->path[i] != wanted || at >= seen->n || s->stamps[seen->path[at]] == s->stamp)
            continue;
        s->stamps[seen->path[at]] = s->stamp;
        add(&s->cells[seen->path[at]].total, seen->sample);
    }
    if (leaf(seen) == wanted)
        add(&s->cells[wanted].self, seen->sample);
    return 0;
}

static int add_callers(struct summing *s, const struct seen *seen)
{
    return add_neighbours(s, seen, -1);
}

static int add_callees(struct summing *s, const struct seen *seen)
{
    return add_neighbours(s, seen, 1);
}

static int make_side(const struct kiln_live_window *window,
                     const struct kiln_live_question *question,
                     int (*adder)(struct summing *, const struct seen *),
                     struct kiln_live_rows **ret_rows, struct kiln_live_amount *ret_self)
{
    struct kiln_live_question q = *question;
    struct summing s = {.window = window, .question = &q, .out = new_rows()};
    int r;

    if (!s.out)
        return -ENOMEM;
    q.pane = KILN_LIVE_FUNCTIONS;
    q.order = KILN_LIVE_BY_TOTAL;
    q.filter = NULL;
    r = begin(&s);
    if (r == 0)
        r = add_slices(&s, adder);
    if (r == 0)
        *ret_self = s.cells[q.frame].self;
    if (r == 0)
        r = take_rows(&s);
    done(&s);
    if (r < 0)
        kiln_live_rows_free(s.out);
    else
        *ret_rows = s.out;
    return r;
}

int kiln_live_around_new(const struct kiln_live_window *window,
                         const struct kiln_live_question *question,
                         struct kiln_live_around *ret_around)
{
    struct kiln_live_around around = {0};
    int r;

    if (question->frame >= window->book.n_frames)
        return -EINVAL;
    r = make_side(window, question, add_callers, &around.callers, &around.self);
    if (r == 0)
        r = make_side(window, question, add_callees, &around.callees, &around.self);
    if (r < 0) {
        kiln_live_around_done(&around);
        return r;
    }
    around.total = around.callers->total;
    *ret_around = around;
    return 0;
}

void kiln_live_around_done(struct kiln_live_around *around)
{
    kiln_live_rows_free(around->callers);
    kiln_live_rows_free(around->callees);
    *around = (struct kiln_live_around){0};
}

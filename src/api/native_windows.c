/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /api/v1/spans: what ran while slow spans were open.
 *
 * Samples with timestamps count where they lie in a window.  Those without count at the start of
 * their profile, which may lie before the window: profiles are looked for a while back, and of each
 * that reaches into the window the instant of its start is added to what is asked.
 *
 * One question answers all: its windows and links are set anew for each part.
 */
#include <errno.h>
#include <stdlib.h>

#include "api/native_body.h"
#include "api/native_int.h"
#include "base/clock.h"

enum { WINDOWS_MAX = 100, PROFILES_MAX = 1000, ROWS_DEFAULT = 20, ROWS_MAX = 1000 };
enum { PROFILE_BYTES = 1024 }; /* about as many have a profile and a function in the answer */
#define OVERLAP_NS_DEFAULT (60 * KILN_NS_PER_S)
#define OVERLAP_S_MAX      3600.0

struct span_window {
    struct kiln_window time;
    uint8_t trace_id[16], span_id[8];
    bool has_trace, has_span;
    struct kiln_str name;
};

struct windows {
    struct kiln_str query;
    struct span_window *items;
    uint32_t n, cap;
    uint64_t limit;
    uint64_t overlap_ns;
    /* Everything that was asked, for the answer to all together. */
    struct kiln_window *asked;
    uint32_t n_asked, cap_asked;
};

/* ---- the body ---- */

static int read_id(struct kiln_native_body *body, const char *name, uint8_t *id, size_t size,
                   bool *ret_has)
{
    struct kiln_str text;
    int r = kiln_json_string(&body->json, &text);

    if (r < 0)
        return r;
    *ret_has = text.len > 0;
    return text.len ? kiln_native_id(body->call, name, text, id, size) : 0;
}

static int read_window_member(struct kiln_native_body *body, struct kiln_str name,
                              struct span_window *window)
{
    if (kiln_str_eq(name, KILN_STR("from")))
        return kiln_native_body_time(body, "from", &window->time.start_ns);
    if (kiln_str_eq(name, KILN_STR("until")))
        return kiln_native_body_time(body, "until", &window->time.end_ns);
    if (kiln_str_eq(name, KILN_STR("trace_id")))
        return read_id(body, "trace_id", window->trace_id, 16, &window->has_trace);
    if (kiln_str_eq(name, KILN_STR("span_id")))
        return read_id(body, "span_id", window->span_id, 8, &window->has_span);
    if (kiln_str_eq(name, KILN_STR("name")))
        return kiln_native_body_text(body, 1024, &window->name);
    return kiln_native_body_unknown(body, name, "from, until, trace_id, span_id, name");
}

static int read_window(struct kiln_native_body *body, struct windows *windows)
{
    struct span_window window = {.name = KILN_STR("")};
    struct kiln_str name;
    int r = kiln_json_object(&body->json);

    while (r == 0 && (r = kiln_json_member(&body->json, &name)) > 0)
        r = read_window_member(body, name, &window);
    if (r < 0)
        return r;
    if (window.time.start_ns >= window.time.end_ns)
        return kiln_native_refuse(body->call, "windows", "from must be before until");
    if (windows->n == WINDOWS_MAX)
        return kiln_err_set(&body->call->err, KILN_E_LIMIT, "windows", "more than %d of them",
                            WINDOWS_MAX);
    r = kiln_grow(&body->call->budget, (void **)&windows->items, &windows->cap,
                  windows->n + UINT64_C(1), sizeof(window), WINDOWS_MAX);
    if (r == 0)
        windows->items[windows->n++] = window;
    return r;
}

static int read_list(struct kiln_native_body *body, struct windows *windows)
{
    int r = kiln_json_array(&body->json);

    while (r == 0 && (r = kiln_json_element(&body->json)) > 0)
        r = read_window(body, windows);
    return r;
}

static int read_limit(struct kiln_native_body *body, uint64_t *ret)
{
    uint64_t n;
    int r = kiln_json_u64(&body->json, &n);

    if (r < 0)
        return r;
    if (n < 1 || n > ROWS_MAX)
        return kiln_native_refuse(body->call, "limit", "not a number from 1 to %d", ROWS_MAX);
    *ret = n;
    return 0;
}

static int read_overlap(struct kiln_native_body *body, uint64_t *ret_ns)
{
    double seconds;
    int r = kiln_json_double(&body->json, &seconds);

    if (r < 0)
        return r;
    if (!(seconds >= 0 && seconds <= OVERLAP_S_MAX))
        return kiln_native_refuse(body->call, "overlap_seconds", "not a number from 0 to 3600");
    *ret_ns = (uint64_t)(seconds * 1e9);
    return 0;
}

static int read_member(struct kiln_native_body *body, struct kiln_str name, void *context)
{
    struct windows *windows = context;

    if (kiln_str_eq(name, KILN_STR("query")))
        return kiln_native_body_text(body, 65536, &windows->query);
    if (kiln_str_eq(name, KILN_STR("windows")))
        return read_list(body, windows);
    if (kiln_str_eq(name, KILN_STR("limit")))
        return read_limit(body, &windows->limit);
    if (kiln_str_eq(name, KILN_STR("overlap_seconds")))
        return read_overlap(body, &windows->overlap_ns);
    return kiln_native_body_unknown(body, name, "query, windows, limit, overlap_seconds");
}

/* ---- windows that overlap, made apart ---- */

static int by_start(const void *a, const void *b)
{
    const struct kiln_window *x = a, *y = b;

    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static uint32_t join(struct kiln_window *windows, uint32_t n)
{
    uint32_t kept = 0;

    qsort(windows, n, sizeof(*windows), by_start);
    for (uint32_t i = 0; i < n; i++) {
        if (kept && windows[i].start_ns <= windows[kept - 1].end_ns) {
            if (windows[i].end_ns > windows[kept - 1].end_ns)
                windows[kept - 1].end_ns = windows[i].end_ns;
        } else {
            windows[kept++] = windows[i];
        }
    }
    return kept;
}

static int ask_also(struct kiln_native_call *call, struct windows *windows,
                    struct kiln_window window)
{
    int r =
        kiln_grow(&call->budget, (void **)&windows->asked, &windows->cap_asked,
                  windows->n_asked + UINT64_C(1), sizeof(window), WINDOWS_MAX * (PROFILES_MAX + 1));

    if (r == 0)
        windows->asked[windows->n_asked++] = window;
    return r;
}

/* ---- one window ---- */

static bool overlaps(const struct kiln_found_row *row, const struct kiln_window *window)
{
    return row->time_ns < window->end_ns &&
           (row->time_ns >= window->start_ns || row->duration_ns > window->start_ns - row->time_ns);
}

/* Only what is linked to the span, where one is named. */
static void set_links(struct kiln_question *question, const struct span_window *window)
{
    question->trace_ids = &window->trace_id;
    question->n_trace_ids = window->has_trace;
    question->span_ids = &window->span_id;
    question->n_span_ids = window->has_span;
}

static void put_overlapping(struct kiln_native_call *call, const struct windows *windows,
                            const struct span_window *window, const struct kiln_found *found)
{
    uint64_t n = 0;

    kiln_json_put_name(&call->w, "profiles");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < found->n_rows; i++)
        if (overlaps(&found->rows[i], &window->time) && ++n <= windows->limit)
            kiln_native_put_profile(call, &found->rows[i]);
    kiln_json_end_array(&call->w);
    kiln_native_put_u64(call, "all", n);
    if (n > windows->limit || found->n_rows < found->n_all)
        kiln_native_note(call, "rows_cut", "some windows overlap more profiles than are shown");
}

/* Which profiles reach into the window; the instants where they begin are asked too. */
static int find_overlapping(struct kiln_native_call *call, struct kiln_ask *ask,
                            struct windows *windows, const struct span_window *window)
{
    const struct kiln_found_opts opts = {.order = KILN_FOUND_NEWEST, .limit = PROFILES_MAX};
    uint64_t start = window->time.start_ns;
    struct kiln_window around = {start > windows->overlap_ns ? start - windows->overlap_ns : 0,
                                 window->time.end_ns};
    struct kiln_found *found;
    int r;

    ask->question.windows = &around;
    ask->question.n_windows = 1;
    r = kiln_ask_found(ask, &opts, &found, &call->err);
    if (r < 0)
        return r;
    r = kiln_native_room(call, ask, 4096 + windows->limit * PROFILE_BYTES);
    if (r == 0) {
        put_overlapping(call, windows, window, found);
        r = ask_also(call, windows, window->time);
    }
    for (uint32_t i = 0; r == 0 && i < found->n_rows; i++) {
        uint64_t at = found->rows[i].time_ns;

        if (at < start && overlaps(&found->rows[i], &window->time))
            r = ask_also(call, windows, (struct kiln_window){at, at + 1});
    }
    kiln_found_free(found);
    return r;
}

/* The total, what it rests on, and the top of `n` windows. */
static int put_merged(struct kiln_native_call *call, struct kiln_ask *ask,
                      struct kiln_window *asked, uint32_t n, uint64_t limit,
                      struct kiln_basis *ret_basis)
{
    const struct kiln_merge_wants wants = {.functions = true};
    struct kiln_merged *merged;
    int r;

    ask->question.windows = asked;
    ask->question.n_windows = join(asked, n);
    r = kiln_ask_merge(ask, &wants, &merged, &call->err);
    if (r < 0)
        return r;
    kiln_native_put_i64(call, "total", merged->total);
    kiln_native_put_basis(call, &merged->basis);
    kiln_native_put_top(call, merged->flame, merged->basis.count, (uint32_t)limit);
    *ret_basis = merged->basis;
    kiln_merged_free(merged);
    return 0;
}

static int put_window(struct kiln_native_call *call, struct kiln_ask *ask, struct windows *windows,
                      const struct span_window *window)
{
    uint32_t before = windows->n_asked, n;
    struct kiln_window *copy;
    struct kiln_basis basis;
    int r;

    set_links(&ask->question, window);
    kiln_json_put_object(&call->w);
    kiln_native_put_range(call, window->time.start_ns, window->time.end_ns);
    kiln_native_put_text(call, "name", window->name);
    r = find_overlapping(call, ask, windows, window);
    if (r < 0)
        return r;
    n = windows->n_asked - before;
    copy = kiln_malloc(n * sizeof(*copy));
    if (!copy)
        return kiln_err_set(&call->err, -ENOMEM, NULL, "out of memory");
    memcpy(copy, windows->asked + before, n * sizeof(*copy));
    r = put_merged(call, ask, copy, n, windows->limit, &basis);
    kiln_free(copy);
    kiln_json_end_object(&call->w);
    return r;
}

/* ---- all of them ---- */

/* Together, links count where every window has one. */
static int put_together(struct kiln_native_call *call, struct kiln_ask *ask,
                        struct windows *windows)
{
    uint8_t traces[WINDOWS_MAX][16], spans[WINDOWS_MAX][8];
    uint32_t n_traces = 0, n_spans = 0;
    struct kiln_basis basis;
    int r;

    for (uint32_t i = 0; i < windows->n; i++) {
        if (windows->items[i].has_trace)
            memcpy(traces[n_traces++], windows->items[i].trace_id, sizeof(traces[0]));
        if (windows->items[i].has_span)
            memcpy(spans[n_spans++], windows->items[i].span_id, sizeof(spans[0]));
    }
    ask->question.trace_ids = (const uint8_t(*)[16])traces;
    ask->question.n_trace_ids = n_traces == windows->n ? n_traces : 0;
    ask->question.span_ids = (const uint8_t(*)[8])spans;
    ask->question.n_span_ids = n_spans == windows->n ? n_spans : 0;
    r = put_merged(call, ask, windows->asked, windows->n_asked, windows->limit, &basis);
    if (r == 0)
        kiln_native_note_basis(call, &basis);
    return r;
}

static int put_answer(struct kiln_native_call *call, struct kiln_ask *ask, struct windows *windows)
{
    int r = 0;

    kiln_json_put_object(&call->w);
    kiln_native_put_type(call, &ask->type);
    kiln_json_put_name(&call->w, "windows");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; r == 0 && i < windows->n; i++)
        r = put_window(call, ask, windows, &windows->items[i]);
    kiln_json_end_array(&call->w);
    if (r == 0)
        r = put_together(call, ask, windows);
    kiln_native_put_notes(call);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
    return r;
}

/* The type is looked for from the first window to the last. */
static int answer(struct kiln_native_call *call, struct windows *windows)
{
    const struct kiln_native_wish wish = {0};
    struct kiln_native_args *args = &call->args;
    struct kiln_ask *ask;
    int r;

    args->query = windows->query;
    args->from_ns = UINT64_MAX;
    args->until_ns = 0;
    for (uint32_t i = 0; i < windows->n; i++) {
        const struct kiln_window *time = &windows->items[i].time;

        args->from_ns = time->start_ns < args->from_ns ? time->start_ns : args->from_ns;
        args->until_ns = time->end_ns > args->until_ns ? time->end_ns : args->until_ns;
    }
    args->from_ns -= args->from_ns < windows->overlap_ns ? args->from_ns : windows->overlap_ns;
    r = kiln_native_ask(call, &wish, &ask);
    if (r < 0)
        return r;
    r = put_answer(call, ask, windows);
    kiln_native_close(call, ask);
    return r;
}

int kiln_native_run_windows(struct kiln_native_call *call)
{
    struct windows windows = {
        .query = KILN_STR(""), .limit = ROWS_DEFAULT, .overlap_ns = OVERLAP_NS_DEFAULT};
    int r = kiln_native_body_read(call, read_member, &windows);

    if (r == 0 && windows.n == 0)
        r = kiln_native_refuse(call, "windows", "name at least one");
    if (r == 0)
        r = answer(call, &windows);
    kiln_array_free(&call->budget, (void **)&windows.items, &windows.cap, sizeof(*windows.items));
    kiln_array_free(&call->budget, (void **)&windows.asked, &windows.cap_asked,
                    sizeof(*windows.asked));
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of a question: any list of windows becomes one that ascends and does not overlap.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/when.h"
#include "query/query_int.h"

static int by_start(const void *a, const void *b)
{
    const struct kiln_window *x = a, *y = b;

    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Joins windows that touch; returns how many are left. */
static uint32_t join(struct kiln_window *windows, uint32_t n)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n; i++) {
        struct kiln_window *last = kept ? &windows[kept - 1] : NULL;

        if (!last || windows[i].start_ns > last->end_ns)
            windows[kept++] = windows[i];
        else if (windows[i].end_ns > last->end_ns)
            last->end_ns = windows[i].end_ns;
    }
    return kept;
}

static int check_window(const struct kiln_window *w, uint64_t range_ns, struct kiln_err *err)
{
    char text[80];
    struct kiln_buf buf;

    if (w->end_ns < w->start_ns) {
        kiln_buf_init(&buf, sizeof(text));
        kiln_when_format(w->end_ns, &buf);
        kiln_buf_puts(&buf, " is before ");
        kiln_when_format(w->start_ns, &buf);
        (void)kiln_err_set(err, KILN_E_RANGE, NULL, "the end of the time range, %.*s, its start",
                           KILN_STR_ARG(kiln_buf_str(&buf)));
        kiln_buf_done(&buf);
        return KILN_E_RANGE;
    }
    if (range_ns && w->end_ns - w->start_ns > range_ns)
        return kiln_err_set(err, KILN_E_LIMIT, NULL,
                            "a time range of %.1f h is more than the %.1f h that may be asked for",
                            (double)(w->end_ns - w->start_ns) / 3.6e12, (double)range_ns / 3.6e12);
    return 0;
}

int kiln_ask_set_windows(struct kiln_ask *ask, const struct kiln_query *query, struct kiln_err *err)
{
    const struct kiln_window one = {query->start_ns, query->end_ns};
    const struct kiln_window *windows = query->n_windows ? query->windows : &one;
    uint64_t range_ns = ask->limits.range_ns;
    uint32_t n = query->n_windows ? query->n_windows : 1;
    int r = 0;

    if (!query->n_windows && !one.start_ns && !one.end_ns) {
        if (range_ns)
            return kiln_err_set(err, KILN_E_LIMIT, NULL, "a time range must be said");
        return 0;
    }
    if (n > KILN_QUERY_WINDOWS_MAX)
        return kiln_err_set(err, KILN_E_LIMIT, NULL, "more than %d windows",
                            KILN_QUERY_WINDOWS_MAX);
    ask->windows = kiln_arena_alloc(&ask->arena, n * sizeof(*ask->windows));
    if (!ask->windows)
        return -ENOMEM;
    memcpy(ask->windows, windows, n * sizeof(*windows));
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = check_window(&windows[i], range_ns, err);
    if (r < 0)
        return r;
    qsort(ask->windows, n, sizeof(*ask->windows), by_start);
    ask->question.windows = ask->windows;
    ask->question.n_windows = join(ask->windows, n);
    return 0;
}

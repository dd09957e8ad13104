/* SPDX-License-Identifier: Apache-2.0 */
/* Single profiles, and the spans and traces that samples are linked to. */
#include <errno.h>
#include <stdlib.h>

#include "api/native_int.h"
#include "base/sat.h"

/* Spans that are looked at to add up traces. */
enum { TRACE_SPANS_MAX = 100000 };

static void put_facts(struct kiln_native_call *call, const struct kiln_found_row *row)
{
    kiln_native_put_i64(call, "value", row->value);
    kiln_native_put_number(call, "count", row->count);
    kiln_native_put_u64(call, "samples", row->n_samples);
}

void kiln_native_put_profile(struct kiln_native_call *call, const struct kiln_found_row *row)
{
    struct kiln_series series = {KILN_STR(""), KILN_STR(""), KILN_STR("")};

    if (kiln_series_parse(row->series, &series) < 0)
        series = (struct kiln_series){KILN_STR(""), KILN_STR(""), KILN_STR("")};
    kiln_json_put_object(&call->w);
    kiln_native_put_id(call, "id", row->profile_id, sizeof(row->profile_id));
    kiln_native_put_time(call, "time", row->time_ns);
    kiln_native_put_seconds(call, "duration_seconds", row->duration_ns);
    kiln_native_put_text(call, "type", series.type);
    kiln_native_put_text(call, "service", series.service);
    kiln_native_put_labels(call, &series);
    put_facts(call, row);
    kiln_json_end_object(&call->w);
}

static void note_cut(struct kiln_native_call *call, uint64_t shown, uint64_t all)
{
    if (shown < all)
        kiln_native_note(call, "rows_cut", "%llu of %llu are shown (limit=N shows more)",
                         (unsigned long long)shown, (unsigned long long)all);
}

static int find(struct kiln_native_call *call, struct kiln_ask *ask,
                const struct kiln_found_opts *opts, struct kiln_found **ret_found)
{
    int r = kiln_ask_found(ask, opts, ret_found, &call->err);

    if (r < 0)
        return r;
    r = kiln_native_room(call, ask, 4096 + (size_t)(*ret_found)->n_rows * 512);
    if (r < 0)
        kiln_found_free(*ret_found);
    return r;
}

static uint32_t limit_of(const struct kiln_native_call *call)
{
    return call->args.limit ? call->args.limit : TRACE_SPANS_MAX;
}

static void put_profiles(struct kiln_native_call *call, const struct kiln_found *found)
{
    kiln_json_put_object(&call->w);
    kiln_json_put_name(&call->w, "profiles");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < found->n_rows; i++)
        kiln_native_put_profile(call, &found->rows[i]);
    kiln_json_end_array(&call->w);
    kiln_native_put_u64(call, "all", found->n_all);
    kiln_native_put_basis(call, &found->basis);
    note_cut(call, found->n_rows, found->n_all);
    kiln_native_note_basis(call, &found->basis);
    kiln_native_put_notes(call);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
}

int kiln_native_run_profiles(struct kiln_native_call *call)
{
    const struct kiln_native_wish wish = {.any_type = true};
    const struct kiln_found_opts opts = {.order = call->args.order, .limit = limit_of(call)};
    struct kiln_found *found;
    struct kiln_ask *ask;
    int r = kiln_native_ask(call, &wish, &ask);

    if (r < 0)
        return r;
    r = find(call, ask, &opts, &found);
    if (r == 0) {
        put_profiles(call, found);
        kiln_found_free(found);
    }
    kiln_native_close(call, ask);
    return r;
}

/* ---- spans ---- */

static void put_span(struct kiln_native_call *call, const struct kiln_found_row *row,
                     uint32_t n_spans)
{
    struct kiln_series series = {KILN_STR(""), KILN_STR(""), KILN_STR("")};

    if (kiln_series_parse(row->series, &series) < 0)
        series = (struct kiln_series){KILN_STR(""), KILN_STR(""), KILN_STR("")};
    kiln_json_put_object(&call->w);
    kiln_native_put_id(call, "trace_id", row->trace_id, sizeof(row->trace_id));
    kiln_native_put_id(call, "span_id", row->span_id, sizeof(row->span_id));
    if (n_spans)
        kiln_native_put_u64(call, "spans", n_spans);
    kiln_native_put_time(call, "first", row->time_ns);
    kiln_native_put_seconds(call, "duration_seconds", row->duration_ns);
    kiln_native_put_text(call, "type", series.type);
    kiln_native_put_text(call, "service", series.service);
    put_facts(call, row);
    kiln_json_end_object(&call->w);
}

struct trace {
    struct kiln_found_row row; /* its spans added up */
    uint32_t n_spans;
};

static int by_trace(const void *a, const void *b)
{
    const struct kiln_found_row *x = a, *y = b;

    return memcmp(x->trace_id, y->trace_id, sizeof(x->trace_id));
}

static int by_time(const void *a, const void *b)
{
    const struct trace *x = a, *y = b;

    if (x->row.time_ns != y->row.time_ns)
        return x->row.time_ns < y->row.time_ns ? 1 : -1;
    return memcmp(x->row.trace_id, y->row.trace_id, sizeof(x->row.trace_id));
}

static int by_value(const void *a, const void *b)
{
    const struct trace *x = a, *y = b;

    if (x->row.value != y->row.value)
        return x->row.value < y->row.value ? 1 : -1;
    return by_time(a, b);
}

static void add_span(struct trace *trace, const struct kiln_found_row *row)
{
    uint64_t end = trace->row.time_ns + trace->row.duration_ns;
    uint64_t row_end = row->time_ns + row->duration_ns;

    if (row->time_ns < trace->row.time_ns)
        trace->row.time_ns = row->time_ns;
    trace->row.duration_ns = (row_end > end ? row_end : end) - trace->row.time_ns;
    trace->row.value = kiln_sat_add(trace->row.value, row->value);
    trace->row.count += row->count;
    trace->row.n_samples += row->n_samples;
    trace->n_spans++;
}

/* Adds spans up by trace, into an array of as many at most; how many there are. */
static uint32_t add_up(struct kiln_found *found, struct trace *traces)
{
    uint32_t n = 0;

    qsort(found->rows, found->n_rows, sizeof(*found->rows), by_trace);
    for (uint32_t i = 0; i < found->n_rows; i++) {
        if (i > 0 && by_trace(&found->rows[i], &found->rows[i - 1]) == 0) {
            add_span(&traces[n - 1], &found->rows[i]);
            continue;
        }
        traces[n] = (struct trace){found->rows[i], 1};
        memset(traces[n++].row.span_id, 0, sizeof(traces[0].row.span_id));
    }
    return n;
}

static int put_traces(struct kiln_native_call *call, struct kiln_ask *ask, struct kiln_found *found)
{
    size_t bytes = ((size_t)found->n_rows + 1) * sizeof(struct trace);
    struct trace *traces;
    uint32_t n, shown;
    int r = kiln_native_room(call, ask, bytes);

    if (r < 0)
        return r;
    traces = kiln_malloc(bytes);
    if (!traces)
        return kiln_err_set(&call->err, -ENOMEM, NULL, "out of memory");
    n = add_up(found, traces);
    qsort(traces, n, sizeof(*traces), call->args.order == KILN_FOUND_NEWEST ? by_time : by_value);
    shown = call->args.limit && call->args.limit < n ? call->args.limit : n;
    for (uint32_t i = 0; i < shown; i++)
        put_span(call, &traces[i].row, traces[i].n_spans);
    kiln_free(traces);
    note_cut(call, shown, n);
    return 0;
}

static int put_spans(struct kiln_native_call *call, struct kiln_ask *ask, struct kiln_found *found,
                     bool whole_traces)
{
    int r = 0;

    kiln_json_put_name(&call->w, "spans");
    kiln_json_put_array(&call->w);
    if (whole_traces)
        r = put_traces(call, ask, found);
    for (uint32_t i = 0; !whole_traces && i < found->n_rows; i++)
        put_span(call, &found->rows[i], 0);
    kiln_json_end_array(&call->w);
    kiln_native_put_u64(call, "all", found->n_all);
    kiln_native_put_basis(call, &found->basis);
    if (found->n_rows < found->n_all)
        note_cut(call, found->n_rows, found->n_all);
    kiln_native_note_basis(call, &found->basis);
    return r;
}

/* What ran under the spans that were named; of no span named, an empty table. */
static int put_ran(struct kiln_native_call *call, struct kiln_ask *ask)
{
    const struct kiln_flame nothing = {0};
    const struct kiln_merge_wants wants = {.functions = true};
    struct kiln_merged *merged;
    int r;

    if (!(call->args.said & KILN_NATIVE_LINKS)) {
        kiln_native_put_top(call, &nothing, 0, 0);
        return 0;
    }
    r = kiln_ask_merge(ask, &wants, &merged, &call->err);
    if (r < 0)
        return r;
    kiln_native_put_top(call, merged->flame, merged->basis.count, KILN_NATIVE_ROWS_DEFAULT);
    kiln_merged_free(merged);
    return 0;
}

static int answer_spans(struct kiln_native_call *call, struct kiln_ask *ask, bool whole_traces)
{
    const struct kiln_found_opts opts = {
        .spans = true,
        .order = call->args.order,
        .limit = whole_traces ? TRACE_SPANS_MAX : limit_of(call),
    };
    struct kiln_found *found;
    int r = find(call, ask, &opts, &found);

    if (r < 0)
        return r;
    kiln_json_put_object(&call->w);
    kiln_native_put_type(call, &ask->type);
    kiln_native_put_range(call, call->args.from_ns, call->args.until_ns);
    r = put_spans(call, ask, found, whole_traces);
    kiln_found_free(found);
    if (r == 0)
        r = put_ran(call, ask);
    kiln_native_put_notes(call);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
    return r;
}

int kiln_native_run_spans(struct kiln_native_call *call)
{
    static const char *const words[] = {"span", "trace", NULL};
    const struct kiln_native_wish wish = {0};
    struct kiln_ask *ask;
    int by = 0, r;

    if (call->args.by.n > 1)
        return kiln_native_refuse(call, "by", "said more than once");
    if (call->args.by.n)
        by = kiln_native_choose(call, "by", call->args.by.items[0], words);
    r = by < 0 ? by : kiln_native_ask(call, &wish, &ask);
    if (r < 0)
        return r;
    r = answer_spans(call, ask, by == 1);
    kiln_native_close(call, ask);
    return r;
}

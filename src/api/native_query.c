/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/query: a tree and a table, a series over time (native_series.c), or a file. */
#include <errno.h>

#include "api/native_int.h"

static const char *const formats[] = {"json",  "flamegraph", "top",       "series",     "timeline",
                                      "pprof", "otlp",       "otlp-json", "speedscope", "collapsed",
                                      "svg",   "dot",        NULL};
enum { FORMAT_JSON, FORMAT_FLAMEGRAPH, FORMAT_TOP, FORMAT_SERIES, FORMAT_TIMELINE };

void kiln_native_begin_answer(struct kiln_native_call *call, const struct kiln_type *type,
                              struct kiln_window range, const struct kiln_basis *basis)
{
    kiln_json_put_object(&call->w);
    kiln_native_put_type(call, type);
    kiln_native_put_range(call, range.start_ns, range.end_ns);
    kiln_native_put_basis(call, basis);
    kiln_native_note_basis(call, basis);
}

void kiln_native_end_answer(struct kiln_native_call *call)
{
    kiln_native_put_notes(call);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
}

void kiln_native_begin_question(struct kiln_native_call *call, const struct kiln_ask *ask,
                                const struct kiln_basis *basis)
{
    const struct kiln_question *question = &ask->question;
    struct kiln_window range = {0, 0};

    if (question->n_windows) {
        range.start_ns = question->windows[0].start_ns;
        range.end_ns = question->windows[question->n_windows - 1].end_ns;
    }
    kiln_native_begin_answer(call, &ask->type, range, basis);
}

/* ---- trees and tables ---- */

int kiln_native_put_merged(struct kiln_native_call *call, const struct kiln_merged *merged)
{
    const struct kiln_flame *flame = merged->flame;

    kiln_native_put_i64(call, "total", merged->total);
    /* The table first: whoever asks with curl sees it before thousands of numbers. */
    if (flame->functions)
        kiln_native_put_top(call, flame, merged->basis.count, call->args.limit);
    return flame->nodes ? kiln_native_put_flame(call, flame) : 0;
}

static int put_merged(struct kiln_native_call *call, struct kiln_ask *ask,
                      const struct kiln_merged *merged)
{
    int r = kiln_native_room(call, ask, kiln_native_flame_bytes(merged->flame));

    if (r < 0)
        return r;
    kiln_native_begin_question(call, ask, &merged->basis);
    r = kiln_native_put_merged(call, merged);
    kiln_native_end_answer(call);
    return r;
}

static int answer_merge(struct kiln_native_call *call, struct kiln_ask *ask, int format)
{
    const struct kiln_merge_wants wants = {
        .nodes_max = format == FORMAT_TOP ? 0 : call->args.nodes,
        .functions = format != FORMAT_FLAMEGRAPH,
        .exact = call->args.exact,
    };
    struct kiln_merged *merged;
    int r = kiln_ask_merge(ask, &wants, &merged, &call->err);

    if (r < 0)
        return r;
    r = put_merged(call, ask, merged);
    kiln_merged_free(merged);
    return r;
}

/* ---- which of them ---- */

static int answer(struct kiln_native_call *call, struct kiln_ask *ask, int format)
{
    if (format == FORMAT_SERIES)
        return kiln_native_answer_series(call, ask);
    if (format == FORMAT_TIMELINE)
        return kiln_native_answer_timeline(call, ask);
    if (format < FORMAT_SERIES)
        return answer_merge(call, ask, format);
    return kiln_native_file(call, ask, kiln_format_named(kiln_str_of(formats[format])));
}

static int ask_and_answer(struct kiln_native_call *call, const struct kiln_native_wish *wish,
                          int format)
{
    struct kiln_ask *ask;
    int r = kiln_native_ask(call, wish, &ask);

    if (r < 0)
        return r;
    r = answer(call, ask, format);
    kiln_native_close(call, ask);
    return r;
}

int kiln_native_run_query(struct kiln_native_call *call)
{
    const struct kiln_native_wish wish = {0};
    int format = 0;

    if (call->args.format.len)
        format = kiln_native_choose(call, "format", call->args.format, formats);
    return format < 0 ? format : ask_and_answer(call, &wish, format);
}

/* ---- one profile ---- */

/* The type of what has the id; where profiles of several have it, the query must say which. */
static int type_of(struct kiln_native_call *call, struct kiln_str *ret)
{
    const struct kiln_native_wish wish = {.any_type = true, .all_times = true};
    const struct kiln_found_opts opts = {.limit = 100};
    struct kiln_series series = {.type = KILN_STR("")};
    struct kiln_found *found = NULL;
    struct kiln_ask *ask;
    int r = kiln_native_ask(call, &wish, &ask);

    if (r < 0)
        return r;
    *ret = KILN_STR("");
    r = kiln_ask_found(ask, &opts, &found, &call->err);
    for (uint32_t i = 0; r == 0 && i < found->n_rows; i++) {
        if (kiln_series_parse(found->rows[i].series, &series) < 0)
            continue;
        if (ret->len && !kiln_str_eq(*ret, series.type))
            r = kiln_err_set(&call->err, KILN_E_AMBIGUOUS, "query",
                             "the id is of a %.*s and of a %.*s: say which", KILN_STR_ARG(*ret),
                             KILN_STR_ARG(series.type));
        else if (!ret->len)
            *ret = kiln_arena_copy(&call->arena, series.type);
    }
    if (r == 0 && found->n_rows == 0)
        r = kiln_err_set(&call->err, -ENOENT, "id", "no profile has this id");
    kiln_found_free(found);
    kiln_native_close(call, ask);
    return r;
}

/* It is a query for its id, at any time, and a file unless something else is said. */
static int answer_profile(struct kiln_native_call *call, int format)
{
    struct kiln_native_wish wish = {.all_times = true};
    int r = type_of(call, &wish.type);

    return r < 0 ? r : ask_and_answer(call, &wish, format);
}

int kiln_native_run_profile(struct kiln_native_call *call)
{
    struct kiln_native_ids *ids = &call->args.profile_ids;
    uint8_t id[16];
    int format = kiln_native_choose(
        call, "format", call->args.format.len ? call->args.format : KILN_STR("pprof"), formats);
    int r;

    if (format < 0)
        return format;
    if (format == FORMAT_SERIES)
        return kiln_native_refuse(call, "format", "one profile is no series");
    r = kiln_native_id(call, "id", call->request->rest, id, sizeof(id));
    if (r < 0)
        return r;
    ids->bytes = id;
    ids->n = 1;
    r = answer_profile(call, format);
    ids->bytes = NULL;
    ids->n = 0;
    return r;
}

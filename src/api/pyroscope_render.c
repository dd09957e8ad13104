/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The older endpoints, GET with parameters:
 *
 *   /pyroscope/render        query, from, until, format (json, dot), max-nodes or maxNodes,
 *                            groupBy, aggregation (sum, avg)
 *   /pyroscope/render-diff   leftQuery, leftFrom, leftUntil, rightQuery, ..., max-nodes
 *   /pyroscope/label-values  label, from, until
 *
 * A query is a selector whose name is the type.  They answer with flamebearer JSON:
 *
 *   {"version":1,"flamebearer":{names, levels, numTicks, maxSelf},"metadata":{format, spyName,
 *    sampleRate, units, name},"timeline":{startTime, samples, durationDelta, watermarks},
 *    "groups":{...},"heatmap":null,"leftTicks":...,"rightTicks":...}
 *
 * and with Connect's JSON where something is wrong.
 */
#include <errno.h>

#include "api/pyroscope_flame.h"
#include "api/pyroscope_int.h"
#include "base/clock.h"
#include "base/when.h"
#include "net/grpc.h"

#define QUERY_MAX 65536u

/* ---- parameters ---- */

/* The value of a parameter in the arena; empty where there is none. */
static int get_param(struct kiln_pyro_call *call, const char *name, struct kiln_str *ret)
{
    struct kiln_buf value;
    int r;

    *ret = KILN_STR_NONE;
    kiln_buf_init(&value, QUERY_MAX);
    r = kiln_request_param(call->http, name, &value);
    if (r > 0) {
        *ret = kiln_arena_copy(&call->arena, kiln_buf_str(&value));
        r = ret->ptr ? 0 : -ENOMEM;
    }
    kiln_buf_done(&value);
    return r < 0 ? kiln_err_set(&call->err, r, name, "%s", kiln_err_text(r)) : 0;
}

static int get_time(struct kiln_pyro_call *call, const char *name, int64_t *ret_ms)
{
    uint64_t now = kiln_clock_unix_ns(), at = now;
    struct kiln_str text;
    int r = get_param(call, name, &text);

    if (r == 0 && text.len)
        r = kiln_when_parse_legacy(text, now, &at);
    if (r < 0)
        return kiln_err_set(&call->err, r, name, "this is no time");
    *ret_ms = (int64_t)(at / KILN_NS_PER_MS);
    return 0;
}

static int get_nodes(struct kiln_pyro_call *call, int64_t *ret)
{
    static const char *const names[] = {"max-nodes", "maxNodes"};
    struct kiln_str text;
    int64_t n;
    int r = 0;

    for (size_t i = 0; i < KILN_ARRAY_LEN(names) && r == 0; i++) {
        r = get_param(call, names[i], &text);
        if (r == 0 && kiln_str_parse_i64(text, &n) == 0 && n)
            *ret = n;
    }
    return r;
}

/* Cuts the type off a selector. */
static int split_query(struct kiln_pyro_call *call, const char *name, struct kiln_str query,
                       struct kiln_pyro_request *request)
{
    const char *brace = query.len ? memchr(query.ptr, '{', query.len) : NULL;
    struct kiln_type type;

    if (query.len == 0)
        return kiln_pyro_refuse(call, "\"%s\" is required", name);
    request->type = query;
    if (brace)
        request->type.len = (size_t)(brace - query.ptr);
    request->type = kiln_str_trim(request->type);
    if (request->type.len == 0)
        return kiln_pyro_refuse(call, "\"%s\" must contain a profile-type selection", name);
    if (kiln_query_type(request->type, &type) < 0)
        return kiln_pyro_refuse(call, "failed to parse \"%s\"", name);
    if (brace)
        request->selector = (struct kiln_str){brace, query.len - (size_t)(brace - query.ptr)};
    return 0;
}

/* One side: `query`, `from` and `until` are the names of its parameters. */
static int get_side(struct kiln_pyro_call *call, const char *const names[3],
                    struct kiln_pyro_request *request)
{
    struct kiln_str query;
    int r = get_param(call, names[0], &query);

    if (r == 0)
        r = split_query(call, names[0], query, request);
    if (r == 0)
        r = get_time(call, names[1], &request->start_ms);
    if (r == 0)
        r = get_time(call, names[2], &request->end_ms);
    if (r == 0)
        r = get_nodes(call, &request->max_nodes);
    return r;
}

/* ---- answers ---- */

static void reply(struct kiln_pyro_call *call, int code, const char *type,
                  const struct kiln_buf *body)
{
    struct kiln_rpc_status status = {.code = kiln_pyro_code(code)};
    char text[512];
    struct kiln_buf error;

    if (code == 0 && body->error) {
        code = kiln_err_set(&call->err, body->error, NULL, KILN_API_TOO_LARGE);
        status.code = kiln_pyro_code(code);
    }
    if (code == 0) {
        kiln_pyro_note(call);
        kiln_request_reply(
            call->http,
            &(struct kiln_reply){.status = 200, .content_type = type, .body = kiln_buf_str(body)});
        return;
    }
    status.message = kiln_pyro_message(call, code, text, sizeof(text));
    kiln_buf_init(&error, 4096);
    kiln_status_format_connect(&status, &error);
    kiln_request_reply(call->http,
                       &(struct kiln_reply){.status = kiln_rpc_code_connect(status.code),
                                            .content_type = "application/json",
                                            .body = kiln_buf_str(&error)});
    kiln_buf_done(&error);
}

static void put_text(struct kiln_json_out *w, const char *name, struct kiln_str text)
{
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, text);
}

static void put_number(struct kiln_json_out *w, const char *name, int64_t number)
{
    kiln_json_put_name(w, name);
    kiln_json_put_i64(w, number);
}

static bool is_one_of(struct kiln_str text, const char *words)
{
    struct kiln_str rest = kiln_str_of(words);

    while (rest.ptr)
        if (kiln_str_eq(text, kiln_str_cut(&rest, ' ')))
            return true;
    return false;
}

static void put_metadata(struct kiln_json_out *w, const char *format, const struct kiln_type *type)
{
    bool cpu = kiln_str_eq(type->type, KILN_STR("cpu"));

    kiln_json_put_name(w, "metadata");
    kiln_json_put_object(w);
    put_text(w, "format", kiln_str_of(format));
    put_text(w, "spyName", KILN_STR(""));
    put_number(w, "sampleRate", cpu ? 1000000000 : 100);
    put_text(w, "units",
             cpu ? KILN_STR("samples")
             : is_one_of(type->type, "inuse_objects alloc_objects goroutine samples")
                 ? KILN_STR("objects")
                 : type->unit);
    put_text(w, "name", type->type);
    kiln_json_end_object(w);
}

static void put_null(struct kiln_json_out *w, const char *name)
{
    kiln_json_put_name(w, name);
    kiln_json_put_null(w);
}

void kiln_pyro_put_flamebearer(struct kiln_json_out *w, const struct kiln_levels *levels,
                               const struct kiln_type *type)
{
    put_number(w, "version", 1);
    kiln_json_put_name(w, "flamebearer");
    kiln_json_put_object(w);
    kiln_levels_put_flamebearer(levels, w);
    kiln_json_end_object(w);
    put_metadata(w, levels->n_sides == 2 ? "double" : "single", type);
}

void kiln_pyro_put_ticks(struct kiln_json_out *w, const struct kiln_levels *levels)
{
    put_null(w, "timeline");
    put_null(w, "groups");
    put_null(w, "heatmap");
    if (levels->n_sides == 2) {
        put_number(w, "leftTicks", levels->ticks[0]);
        put_number(w, "rightTicks", levels->ticks[1]);
    }
}

/* ---- render: the timeline ---- */

/* Seconds between two points: at most some 1,500 of them, and a number that people like. */
static int64_t interval_s(int64_t range_ms)
{
    static const struct {
        int64_t up_to_ms, s;
    } steps[] = {
        {17500, 15},          {25000, 20},           {45000, 30},       {90000, 60},
        {210000, 120},        {450000, 300},         {750000, 600},     {1050000, 900},
        {1500000, 1200},      {2700000, 1800},       {5400000, 3600},   {9000000, 7200},
        {16200000, 10800},    {32400000, 21600},     {86400000, 43200}, {604800000, 86400},
        {1814400000, 604800}, {3628799999, 2592000},
    };
    int64_t each_ms = range_ms / 1500;

    for (size_t i = 0; i < KILN_ARRAY_LEN(steps); i++)
        if (each_ms <= steps[i].up_to_ms)
            return steps[i].s;
    return 31536000;
}

/* Points at every step, those without one zero; `series` NULL: all of them. */
static void put_timeline(struct kiln_json_out *w, const struct kiln_pyro_request *request,
                         const struct kiln_timeline *timeline,
                         const struct kiln_timeline_series *series)
{
    int64_t step_ms = (int64_t)request->step_s * 1000;
    int64_t first = request->start_ms / step_ms, last = request->end_ms / step_ms;
    uint32_t at = 0;

    kiln_json_put_object(w);
    put_number(w, "startTime", first * (int64_t)request->step_s);
    kiln_json_put_name(w, "samples");
    kiln_json_put_array(w);
    for (int64_t i = first; i < last; i++) {
        double value = 0;

        while (series && at < series->n) {
            const struct kiln_timeline_point *point = &timeline->points[series->first + at];
            int64_t ms = request->start_ms + (int64_t)point->bucket * step_ms;

            if (ms / step_ms > i)
                break;
            value = ms / step_ms == i ? point->value : value;
            at++;
        }
        kiln_json_put_i64(w, (int64_t)value);
    }
    kiln_json_end_array(w);
    put_number(w, "durationDelta", (int64_t)request->step_s);
    put_null(w, "watermarks");
    kiln_json_end_object(w);
}

static void put_groups(struct kiln_json_out *w, const struct kiln_pyro_request *request,
                       const struct kiln_timeline *timeline)
{
    kiln_json_put_object(w);
    for (uint32_t i = 0; i < timeline->n_series; i++) {
        struct kiln_str key = timeline->series[i].labels[0];

        kiln_json_put_name_str(w, key.len ? key : KILN_STR("*"));
        put_timeline(w, request, timeline, &timeline->series[i]);
    }
    kiln_json_end_object(w);
}

static int add_timeline(struct kiln_pyro_call *call, struct kiln_json_out *w)
{
    struct kiln_pyro_request *request = &call->request;
    struct kiln_timeline *timeline;
    struct kiln_ask *ask;
    int r;

    request->step_s = (double)interval_s(request->end_ms - request->start_ms);
    r = kiln_pyro_select_timeline(call, &ask, &timeline);
    if (r < 0)
        return r;
    kiln_json_put_name(w, "timeline");
    put_timeline(w, request, timeline, timeline->n_series == 1 ? &timeline->series[0] : NULL);
    kiln_json_put_name(w, "groups");
    if (request->group_by.n)
        put_groups(w, request, timeline);
    else
        kiln_json_put_null(w);
    put_null(w, "heatmap");
    kiln_timeline_free(timeline);
    kiln_pyro_ask_close(ask);
    return 0;
}

/* ---- render ---- */

static int add_flame(struct kiln_pyro_call *call, struct kiln_json_out *w)
{
    struct kiln_merged *merged;
    struct kiln_levels levels;
    struct kiln_ask *ask;
    int r = kiln_pyro_merge_tree(call, &ask, &merged);

    if (r < 0)
        return r;
    r = kiln_levels_init(&levels, merged->flame, &ask->leash);
    if (r == 0) {
        kiln_pyro_put_flamebearer(w, &levels, &ask->type);
        kiln_levels_done(&levels);
    }
    kiln_merged_free(merged);
    kiln_pyro_ask_close(ask);
    return r;
}

static int render_json(struct kiln_pyro_call *call, struct kiln_buf *body)
{
    struct kiln_pyro_request *request = &call->request;
    struct kiln_str by, aggregation;
    struct kiln_json_out w;
    int r = get_param(call, "groupBy", &by);

    if (r == 0)
        r = get_param(call, "aggregation", &aggregation);
    if (r < 0)
        return r;
    if (by.len)
        request->group_by = (struct kiln_texts){.items = &by, .n = 1};
    request->aggregation = kiln_str_eq(aggregation, KILN_STR("avg"));
    kiln_json_out_init(&w, body, 0);
    kiln_json_put_object(&w);
    r = add_flame(call, &w);
    if (r == 0)
        r = add_timeline(call, &w);
    kiln_json_end_object(&w);
    return r;
}

static void render(struct kiln_request *http)
{
    static const char *const names[] = {"query", "from", "until"};
    const char *type = "application/json";
    struct kiln_pyro_call call;
    struct kiln_str format;
    struct kiln_buf body;
    int r;

    kiln_pyro_call_init(&call, http->context, http);
    kiln_pyro_buf_init(&call, &body);
    r = get_side(&call, names, &call.request);
    if (r == 0)
        r = get_param(&call, "format", &format);
    if (r == 0 && kiln_str_eq(format, KILN_STR("dot"))) {
        type = "text/plain; charset=utf-8";
        r = kiln_pyro_dot(&call, &body);
    } else if (r == 0) {
        r = render_json(&call, &body);
    }
    reply(&call, r, type, &body);
    kiln_buf_done(&body);
    kiln_pyro_call_done(&call);
}

/* ---- render-diff ---- */

static int diff_json(struct kiln_pyro_call *call, struct kiln_buf *body)
{
    struct kiln_pyro_pair pair;
    struct kiln_levels levels;
    struct kiln_json_out w;
    int r = kiln_pyro_pair_open(call, false, &pair);

    if (r < 0)
        return r;
    r = kiln_levels_init_diff(&levels, pair.diff, &pair.ask->leash);
    if (r == 0) {
        kiln_json_out_init(&w, body, 0);
        kiln_json_put_object(&w);
        kiln_pyro_put_flamebearer(&w, &levels, &pair.ask->type);
        kiln_pyro_put_ticks(&w, &levels);
        kiln_json_end_object(&w);
        kiln_levels_done(&levels);
    }
    kiln_pyro_pair_close(&pair);
    return r;
}

static void render_diff(struct kiln_request *http)
{
    static const char *const left_names[] = {"leftQuery", "leftFrom", "leftUntil"};
    static const char *const right_names[] = {"rightQuery", "rightFrom", "rightUntil"};
    struct kiln_pyro_request left = {0}, right = {0};
    struct kiln_pyro_call call;
    struct kiln_buf body;
    int r;

    kiln_pyro_call_init(&call, http->context, http);
    kiln_pyro_buf_init(&call, &body);
    r = get_side(&call, left_names, &left);
    if (r == 0)
        r = get_side(&call, right_names, &right);
    if (r == 0 && !kiln_str_eq(left.type, right.type))
        r = kiln_pyro_refuse(&call, "profile types must match");
    call.request.left = &left;
    call.request.right = &right;
    if (r == 0)
        r = diff_json(&call, &body);
    reply(&call, r, "application/json", &body);
    kiln_buf_done(&body);
    kiln_pyro_call_done(&call);
}

/* ---- label-values ---- */

/* The names in an answer, whose field 1 is a text, or a message with the text in its field 1. */
static int put_names(struct kiln_str bytes, bool types, struct kiln_json_out *w)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f, inner;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        struct kiln_pb message = kiln_pb_of(f.bytes);

        if (types && kiln_pb_next(&message, &inner) > 0)
            f.bytes = inner.bytes;
        kiln_json_put_str(w, f.bytes);
    }
    return n;
}

static int list_values(struct kiln_pyro_call *call, struct kiln_buf *body)
{
    bool types = kiln_str_eq(call->request.name, KILN_STR("__name__"));
    struct kiln_json_out w;
    struct kiln_buf bytes;
    int r = types ? kiln_pyro_profile_types(call) : kiln_pyro_label_values(call);

    kiln_pyro_buf_init(call, &bytes);
    if (r == 0)
        r = kiln_pb_out_flush(&call->out, &bytes);
    kiln_json_out_init(&w, body, 0);
    kiln_json_put_array(&w);
    if (r == 0)
        r = put_names(kiln_buf_str(&bytes), types, &w);
    kiln_json_end_array(&w);
    kiln_buf_done(&bytes);
    return r;
}

/* Only where a time is given is there one: the default would be an empty range. */
static int get_range(struct kiln_pyro_call *call)
{
    struct kiln_str from, until;
    int r = get_param(call, "from", &from);

    if (r == 0)
        r = get_param(call, "until", &until);
    if (r == 0 && from.len) {
        r = get_time(call, "from", &call->request.start_ms);
        if (r == 0)
            r = get_time(call, "until", &call->request.end_ms);
    }
    return r;
}

static void label_values(struct kiln_request *http)
{
    struct kiln_pyro_call call;
    struct kiln_buf body;
    int r;

    kiln_pyro_call_init(&call, http->context, http);
    kiln_pyro_buf_init(&call, &body);
    r = get_param(&call, "label", &call.request.name);
    if (r == 0 && call.request.name.len == 0)
        r = kiln_pyro_refuse(&call, "label parameter is required");
    if (r == 0)
        r = get_range(&call);
    if (r == 0)
        r = list_values(&call, &body);
    reply(&call, r, "application/json", &body);
    kiln_buf_done(&body);
    kiln_pyro_call_done(&call);
}

/* ---- what the server is ---- */

static void build_info(struct kiln_request *http)
{
    struct kiln_json_out w;
    struct kiln_buf body;

    kiln_buf_init(&body, 1024);
    kiln_json_out_init(&w, &body, 0);
    kiln_json_put_object(&w);
    put_text(&w, "status", KILN_STR("success"));
    kiln_json_put_name(&w, "data");
    kiln_json_put_object(&w);
    put_text(&w, "version", KILN_STR(KILN_VERSION));
    put_text(&w, "revision", KILN_STR(""));
    put_text(&w, "branch", KILN_STR(""));
    put_text(&w, "buildUser", KILN_STR(""));
    put_text(&w, "buildDate", KILN_STR(""));
    put_text(&w, "goVersion", KILN_STR(""));
    kiln_json_end_object(&w);
    kiln_json_end_object(&w);
    kiln_request_reply(http, &(struct kiln_reply){.status = 200,
                                                  .content_type = "application/json",
                                                  .body = kiln_buf_str(&body)});
    kiln_buf_done(&body);
}

int kiln_pyro_add_render(struct kiln_api *api, struct kiln_router *router)
{
    static const struct {
        const char *path;
        void (*handler)(struct kiln_request *http);
        enum kiln_access access;
    } routes[] = {
        {"/pyroscope/render", render, KILN_ACCESS_READ},
        {"/pyroscope/render-diff", render_diff, KILN_ACCESS_READ},
        {"/pyroscope/label-values", label_values, KILN_ACCESS_READ},
        {"/api/v1/status/buildinfo", build_info, KILN_ACCESS_SELF},
    };
    int r = 0;

    for (size_t i = 0; i < KILN_ARRAY_LEN(routes) && r == 0; i++)
        r = kiln_router_add(router, &(struct kiln_route){.method = "GET",
                                                         .path = routes[i].path,
                                                         .access = routes[i].access,
                                                         .handler = routes[i].handler,
                                                         .context = api,
                                                         .lane = KILN_LANE_LONG});
    return r;
}

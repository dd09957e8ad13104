/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a request to a question.  Times are milliseconds, both ends included: what came at `end`
 * itself belongs to the answer.  Levels are summed, as Pyroscope does.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "api/pyroscope_int.h"
#include "base/bytetext.h"
#include "base/clock.h"
#include "base/regex.h"
#include "net/rpc.h"

#define MS_MAX INT64_C(9000000000000) /* year 2255: in nanoseconds it still fits */

/* ---- errors ---- */

int kiln_pyro_refuse(struct kiln_pyro_call *call, const char *fmt, ...)
{
    char text[sizeof(call->err.text)];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    call->err = (struct kiln_err){0};
    return kiln_err_set(&call->err, KILN_E_MALFORMED, NULL, "%s", text);
}

const char *kiln_pyro_message(const struct kiln_pyro_call *call, int code, char *text, size_t size)
{
    const struct kiln_err *err = &call->err;

    if (err->code == 0)
        return kiln_err_text(code);
    snprintf(text, size, "%s%s%s", err->where, err->where[0] ? ": " : "", err->text);
    return text;
}

enum kiln_rpc_code kiln_pyro_code(int code)
{
    switch (code) {
    case KILN_E_MALFORMED:
    case KILN_E_TRUNCATED:
    case KILN_E_PATTERN:
    case KILN_E_RANGE:
    case KILN_E_NOMATCH:
    case KILN_E_AMBIGUOUS:
    case -ENOENT: /* of a type that was not said in full */
    case KILN_E_UTF8:
    case KILN_E_UNKNOWN:
    case KILN_E_CORRUPT:
    case -ERANGE:
        return KILN_RPC_INVALID_ARGUMENT;
    case KILN_E_LIMIT:
    case -ENOMEM:
    case -EAGAIN:
    case -ENOSPC:
    case -EDQUOT:
        return KILN_RPC_RESOURCE_EXHAUSTED;
    case KILN_E_UNSUPPORTED:
        return KILN_RPC_UNIMPLEMENTED;
    case -ECANCELED:
        return KILN_RPC_CANCELLED;
    case -ETIMEDOUT:
        return KILN_RPC_DEADLINE_EXCEEDED;
    case -EEXIST:
        return KILN_RPC_ALREADY_EXISTS;
    case -ESHUTDOWN:
        return KILN_RPC_UNAVAILABLE;
    default:
        return KILN_RPC_INTERNAL;
    }
}

/* ---- numbers ---- */

static uint64_t ns_of(int64_t ms)
{
    return (uint64_t)(ms < 0 ? 0 : ms > MS_MAX ? MS_MAX : ms) * KILN_NS_PER_MS;
}

int kiln_pyro_window(struct kiln_pyro_call *call, const struct kiln_pyro_request *request,
                     struct kiln_window *ret)
{
    if (request->start_ms == 0 || request->end_ms == 0)
        return kiln_pyro_refuse(call, "missing time range in the query");
    if (request->start_ms > request->end_ms)
        return kiln_pyro_refuse(call, "query start time is after end time");
    *ret = (struct kiln_window){ns_of(request->start_ms), ns_of(request->end_ms) + 1};
    return 0;
}

int kiln_pyro_nodes(struct kiln_pyro_call *call, int64_t wanted, uint32_t *ret)
{
    uint32_t max = kiln_querier_limits(call->api->querier)->nodes_max;

    if (wanted < 0)
        return kiln_pyro_refuse(call, "max flamegraph nodes limit must be set (max allowed %u)",
                                max);
    if (wanted > max)
        return kiln_pyro_refuse(call, "max flamegraph nodes limit %lld is greater than allowed %u",
                                (long long)wanted, max);
    *ret = wanted ? (uint32_t)wanted : KILN_PYRO_NODES < max ? KILN_PYRO_NODES : max;
    return 0;
}

int kiln_pyro_step(struct kiln_pyro_call *call, double step_s, uint64_t *ret_ms)
{
    if (!(step_s >= 0.001))
        return kiln_pyro_refuse(call, "step must be >= 1ms");
    *ret_ms = step_s < (double)MS_MAX / 1000 ? (uint64_t)(step_s * 1000 + 1e-6) : (uint64_t)MS_MAX;
    return 0;
}

/* ---- ids ---- */

static void *array(struct kiln_pyro_call *call, uint32_t n, size_t size)
{
    return kiln_arena_alloc(&call->arena, n * size);
}

/* Hexadecimal texts of `size` bytes each; dashes are passed over. */
static int read_ids(struct kiln_pyro_call *call, const struct kiln_texts *texts, size_t size,
                    const char *what, uint8_t **ret)
{
    uint8_t *ids = array(call, texts->n, size);

    if (!ids)
        return -ENOMEM;
    for (uint32_t i = 0; i < texts->n; i++) {
        struct kiln_str text = texts->items[i];
        char digits[32];
        size_t n = 0;

        for (size_t k = 0; k < text.len && n < sizeof(digits); k++)
            if (text.ptr[k] != '-')
                digits[n++] = text.ptr[k];
        if (text.len > 36 || kiln_hex_decode((struct kiln_str){digits, n}, ids + i * size, size))
            return kiln_pyro_refuse(call, "invalid %s: \"%.*s\"", what,
                                    text.len < 64 ? (int)text.len : 64, text.ptr);
    }
    *ret = ids;
    return 0;
}

static int set_ids(struct kiln_pyro_call *call, const struct kiln_pyro_request *request,
                   struct kiln_query *query)
{
    uint8_t *ids;
    int r = 0;

    if (request->span_ids.n && request->trace_ids.n)
        return kiln_pyro_refuse(call, "span_selector and trace_id_selector cannot be combined");
    if (request->profile_ids.n) {
        r = read_ids(call, &request->profile_ids, 16, "profile id", &ids);
        if (r < 0)
            return r;
        query->profile_ids = (const uint8_t(*)[16])(void *)ids;
        query->n_profile_ids = request->profile_ids.n;
    }
    if (request->trace_ids.n) {
        r = read_ids(call, &request->trace_ids, 16, "trace id", &ids);
        if (r < 0)
            return r;
        query->trace_ids = (const uint8_t(*)[16])(void *)ids;
        query->n_trace_ids = request->trace_ids.n;
    }
    if (request->span_ids.n) {
        r = read_ids(call, &request->span_ids, 8, "span id", &ids);
        if (r < 0)
            return r;
        query->span_ids = (const uint8_t(*)[8])(void *)ids;
        query->n_span_ids = request->span_ids.n;
    }
    return r;
}

/* ---- stacks ---- */

/* One expression that matches where any of these does. */
static int any_of(struct kiln_pyro_call *call, const struct kiln_texts *texts,
                  struct kiln_regex **ret)
{
    struct kiln_buf pattern;
    int r;

    if (texts->n == 0)
        return 0;
    kiln_buf_init(&pattern, 65536);
    for (uint32_t i = 0; i < texts->n; i++) {
        kiln_buf_puts(&pattern, i ? "|(?:" : "(?:");
        kiln_buf_add_str(&pattern, texts->items[i]);
        kiln_buf_puts(&pattern, ")");
    }
    r = pattern.error;
    if (r == 0)
        r = kiln_regex_new(kiln_buf_str(&pattern), KILN_REGEX_RE2 | KILN_REGEX_GIVES_UP, ret,
                           &call->err);
    kiln_buf_done(&pattern);
    return r;
}

/*
 * A frame filter wants all of what it includes and none of what it excludes; an engine can be told
 * of one name and one expression that must be there.
 */
static int set_stacks(struct kiln_pyro_call *call, const struct kiln_pyro_request *request,
                      struct kiln_stack_choice *stacks)
{
    int r;

    if (request->with.n > 1 || request->with_regexes.n > 1)
        return kiln_err_set(&call->err, KILN_E_UNSUPPORTED, NULL,
                            "a frame filter may include one function name and one expression");
    if (!request->go_pgo) { /* which wins */
        stacks->call_site = request->call_site.items;
        stacks->n_call_site = request->call_site.n;
    }
    stacks->with = request->with.items;
    stacks->n_with = request->with.n;
    stacks->without = request->without.items;
    stacks->n_without = request->without.n;
    r = any_of(call, &request->with_regexes, &stacks->with_regex);
    if (r == 0)
        r = any_of(call, &request->without_regexes, &stacks->without_regex);
    return r;
}

/* ---- types ---- */

static int set_type(struct kiln_pyro_call *call, struct kiln_str id, struct kiln_query *query)
{
    struct kiln_type type;
    uint32_t parts = 1;

    for (size_t i = 0; i < id.len; i++)
        parts += id.ptr[i] == ':';
    if (kiln_query_type(id, &type) < 0)
        return kiln_pyro_refuse(call,
                                "profile-type selection must be of the form <name>:<sample-type>:"
                                "<sample-unit>:<period-type>:<period-unit>(:delta), got(%u): "
                                "\"%.*s\"",
                                parts, id.len < 64 ? (int)id.len : 64, id.len ? id.ptr : "");
    if (parts == 6)
        id.len = (size_t)(type.period_unit.ptr + type.period_unit.len - id.ptr);
    query->type = id;
    query->needs_type = true;
    return 0;
}

/* ---- the whole ---- */

static int open_ask(struct kiln_pyro_call *call, const struct kiln_query *query,
                    struct kiln_ask **ret_ask)
{
    struct kiln_err err = {0};
    struct kiln_str last =
        query->n_selectors ? query->selectors[query->n_selectors - 1] : KILN_STR_NONE;
    int r = kiln_ask_open(call->api->querier, query, ret_ask, &err);

    if (r == KILN_E_MALFORMED || r == KILN_E_PATTERN)
        return kiln_pyro_refuse(call, "parsing label selector \"%.*s\": %s%s%s",
                                last.len < 100 ? (int)last.len : 100, last.len ? last.ptr : "",
                                err.where, err.where[0] ? ": " : "", err.text);
    if (r == KILN_E_LIMIT) /* longer than may be asked for: the caller's fault */
        return kiln_pyro_refuse(call, "%s", err.text);
    if (r < 0)
        call->err = err;
    else
        (*ret_ask)->question.n_damaged = &call->n_damaged;
    return r;
}

static int fill_query(struct kiln_pyro_call *call, const struct kiln_pyro_request *request,
                      enum kiln_pyro_part part, struct kiln_query *query)
{
    struct kiln_str *selectors;
    int r;

    if (part == KILN_PYRO_MATCHERS) {
        query->selectors = request->matchers.items;
        query->n_selectors = request->matchers.n;
        return 0;
    }
    selectors = array(call, 2, sizeof(*selectors));
    if (!selectors)
        return -ENOMEM;
    selectors[0] = request->selector;
    selectors[1] = request->also;
    r = set_type(call, request->type, query);
    if (r == 0)
        r = set_ids(call, request, query);
    if (r == 0)
        r = set_stacks(call, request, &query->stacks);
    query->selectors = selectors;
    query->n_selectors = request->also.len ? 2 : 1;
    return r;
}

/* A call may ask many questions; all of them together have the time of one. */
static uint64_t time_left_ms(const struct kiln_pyro_call *call)
{
    struct kiln_query_limits limits =
        kiln_querier_limits_of(call->api->querier, kiln_str_of(call->http->tenant));
    uint64_t gone_ms = (kiln_clock_mono_ns() - call->began_mono_ns) / KILN_NS_PER_MS;
    uint64_t most = limits.time_ms;

    if (call->timeout_ms && call->timeout_ms < most)
        most = call->timeout_ms;
    return gone_ms < most ? most - gone_ms : 1;
}

int kiln_pyro_ask(struct kiln_pyro_call *call, const struct kiln_pyro_request *request,
                  enum kiln_pyro_part part, const struct kiln_window *window,
                  struct kiln_ask **ret_ask)
{
    struct kiln_query query = {
        .tenants = kiln_str_of(call->http->tenant),
        .start_ns = window->start_ns,
        .end_ns = window->end_ns,
        .sum_levels = true,
        .gone = kiln_request_gone(call->http),
        .timeout_ms = time_left_ms(call),
    };
    int r = fill_query(call, request, part, &query);

    if (r == 0)
        r = open_ask(call, &query, ret_ask);
    if (r < 0) {
        kiln_regex_free(query.stacks.with_regex);
        kiln_regex_free(query.stacks.without_regex);
    }
    return r;
}

void kiln_pyro_ask_close(struct kiln_ask *ask)
{
    if (!ask)
        return;
    kiln_regex_free(ask->question.stacks.with_regex);
    kiln_regex_free(ask->question.stacks.without_regex);
    kiln_ask_close(ask);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every request goes the same way: its parameters are read, the endpoint makes the body, and one
 * place turns what came of it into a reply.  An error is
 *
 *   {"error":{"code":"bad_parameter","message":"from: not a time: \"yesterdy\"","where":"from"}}
 */
#include <errno.h>
#include <stdio.h>

#include "api/native_int.h"
#include "base/clock.h"
#include "net/problem.h"
#include "pipeline/gate.h"

#define BODY_MAX   ((size_t)256 << 20)
#define ARGS_BYTES ((size_t)16 << 20) /* most of it for what is kept */
#define JSON       "application/json"
#define TOLD_MAX   ((size_t)1 << 20)
#define OPENED_MAX ((size_t)64 << 20) /* of a file, as it comes */
#define TOKEN_MAX  ((size_t)16 << 10)
/* A picture has a script of its own, which asks nobody for anything. */
#define PICTURE_POLICY                                                                             \
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"

extern const char kiln_asset_openapi_yaml[];
extern const size_t kiln_asset_openapi_yaml_len;

static int run_openapi(struct kiln_native_call *call)
{
    call->content_type = "application/yaml";
    call->cacheable = true;
    kiln_buf_add(&call->body, kiln_asset_openapi_yaml, kiln_asset_openapi_yaml_len);
    return 0;
}

#define P(suffix) KILN_NATIVE_BIT(suffix)
#define RANGE     KILN_NATIVE_RANGE
#define STACKS    KILN_NATIVE_STACKS
#define LINKS     KILN_NATIVE_LINKS
#define SIDE(side)                                                                                 \
    (P(side##_QUERY) | P(side##_FROM) | P(side##_UNTIL) | P(side##_VERSION) | P(side##_DEPLOYMENT))

static const struct kiln_native_endpoint endpoints[] = {
    {"GET", "/api/v1/query", KILN_ACCESS_READ,
     RANGE | STACKS | LINKS | P(FORMAT) | P(NODES) | P(LIMIT) | P(STEP) | P(BY) | P(PROFILE_ID) |
         P(EXACT) | P(POINTS),
     kiln_native_run_query, 0},
    {"GET", "/api/v1/diff", KILN_ACCESS_READ,
     RANGE | STACKS | SIDE(LEFT) | SIDE(RIGHT) | P(NORMALIZE) | P(FORMAT) | P(NODES) | P(LIMIT) |
         P(EXACT),
     kiln_native_run_diff, 0},
    {"GET", "/api/v1/labels", KILN_ACCESS_READ, RANGE, kiln_native_run_labels, 0},
    {"GET", "/api/v1/labels/*", KILN_ACCESS_READ, RANGE | P(LIMIT) | P(MATCH),
     kiln_native_run_values, 0},
    {"GET", "/api/v1/series", KILN_ACCESS_READ, RANGE | P(BY) | P(LIMIT), kiln_native_run_series,
     0},
    {"GET", "/api/v1/types", KILN_ACCESS_READ, RANGE, kiln_native_run_types, 0},
    {"GET", "/api/v1/profiles", KILN_ACCESS_READ,
     RANGE | STACKS | LINKS | P(ORDER) | P(LIMIT) | P(PROFILE_ID), kiln_native_run_profiles, 0},
    {"GET", "/api/v1/profiles/*", KILN_ACCESS_READ, RANGE | P(FORMAT) | P(NODES) | P(LIMIT),
     kiln_native_run_profile, 0},
    {"GET", "/api/v1/spans", KILN_ACCESS_READ, RANGE | STACKS | LINKS | P(BY) | P(ORDER) | P(LIMIT),
     kiln_native_run_spans, 0},
    {"POST", "/api/v1/spans", KILN_ACCESS_READ, P(TIMEOUT), kiln_native_run_windows, TOLD_MAX},
    {"GET", "/api/v1/functions", KILN_ACCESS_READ, RANGE | P(FUNCTION) | P(STEP),
     kiln_native_run_function, 0},
    {"GET", "/api/v1/gap", KILN_ACCESS_READ, RANGE | STACKS | LINKS | P(LIMIT) | P(EXACT) | P(SORT),
     kiln_native_run_gap, 0},
    {"GET", "/api/v1/source", KILN_ACCESS_READ, RANGE | STACKS | LINKS | P(PROFILE_ID) | P(FILE),
     kiln_native_run_source, 0},
    {"POST", "/api/v1/files", KILN_ACCESS_READ,
     P(NAME) | P(TYPE) | P(FORMAT) | P(NODES) | P(LIMIT) | P(TIMEOUT), kiln_native_run_open,
     OPENED_MAX},
    {"GET", "/api/v1/services", KILN_ACCESS_READ, P(TIMEOUT) | P(SERVICE) | P(MATCH) | P(LIMIT),
     kiln_native_run_services, 0},
    {"GET", "/api/v1/deployments", KILN_ACCESS_READ, P(SERVICE) | P(FROM) | P(UNTIL) | P(TIMEOUT),
     kiln_native_run_deployments, 0},
    {"POST", "/api/v1/deployments", KILN_ACCESS_WRITE, 0, kiln_native_run_deploy, TOLD_MAX},
    {"DELETE", "/api/v1/deployments/*", KILN_ACCESS_WRITE, 0, kiln_native_run_undeploy, 0},
    {"GET", "/api/v1/annotations", KILN_ACCESS_READ, P(SERVICE) | P(FROM) | P(UNTIL),
     kiln_native_run_annotations, 0},
    {"POST", "/api/v1/annotations", KILN_ACCESS_WRITE, 0, kiln_native_run_annotate, TOLD_MAX},
    {"DELETE", "/api/v1/annotations/*", KILN_ACCESS_WRITE, 0, kiln_native_run_unannotate, 0},
    {"GET", "/api/v1/findings", KILN_ACCESS_READ, P(SERVICE) | P(FROM) | P(UNTIL),
     kiln_native_run_findings, 0},
    {"GET", "/api/v1/symbols", KILN_ACCESS_READ, P(MISSING) | P(LIMIT), kiln_native_run_symbols, 0},
    {"GET", "/api/v1/symbols/*", KILN_ACCESS_READ, 0, kiln_native_run_symbols_of, 0},
    {"PUT", "/api/v1/symbols/*", KILN_ACCESS_WRITE, P(OFFSET) | P(TOTAL) | P(SHA256) | P(NAME),
     kiln_native_run_symbols_put, OPENED_MAX},
    {"DELETE", "/api/v1/symbols/*", KILN_ACCESS_WRITE, 0, kiln_native_run_symbols_delete, 0},
    {"GET", "/api/v1/session", KILN_ACCESS_NONE, 0, kiln_native_run_session, 0},
    {"POST", "/api/v1/session", KILN_ACCESS_NONE, 0, kiln_native_run_sign_in, TOKEN_MAX},
    {"DELETE", "/api/v1/session", KILN_ACCESS_NONE, 0, kiln_native_run_sign_out, 0},
    {"GET", "/api/v1/status", KILN_ACCESS_SELF, 0, kiln_native_run_status, 0},
    {"GET", "/api/v1/agents", KILN_ACCESS_SELF, 0, kiln_native_run_agents, 0},
    {"GET", "/api/v1/openapi.yaml", KILN_ACCESS_NONE, 0, run_openapi, 0},
};

/* What must not wait behind questions that take long: agents, and what they are told. */
static const struct kiln_native_endpoint quick_endpoints[] = {
    {"POST", "/api/v1/agents/*", KILN_ACCESS_WRITE, 0, kiln_native_run_report, TOLD_MAX},
    {"GET", "/api/v1/orders", KILN_ACCESS_READ, 0, kiln_native_run_orders, 0},
    {"POST", "/api/v1/orders", KILN_ACCESS_CONTROL, P(HZ) | P(DURATION) | P(LABEL),
     kiln_native_run_order, TOLD_MAX},
    {"DELETE", "/api/v1/orders/*", KILN_ACCESS_CONTROL, 0, kiln_native_run_unorder, 0},
};

/* ---- errors ---- */

struct fault {
    int code, status;
    const char *word;
};

static const struct fault faults[] = {
    {-EINVAL, 400, "bad_parameter"},
    {KILN_E_MALFORMED, 400, "bad_parameter"},
    {KILN_E_PATTERN, 400, "bad_parameter"},
    {KILN_E_RANGE, 400, "bad_parameter"},
    {KILN_E_UTF8, 400, "bad_parameter"},
    {KILN_E_UNKNOWN, 400, "unknown_parameter"},
    {-EBADMSG, 400, "bad_body"},
    {-EKEYREJECTED, 401, "unauthenticated"},
    {-EUSERS, 429, "throttled"},
    {-EPERM, 403, "forbidden"},
    {KILN_E_NOMATCH, 404, "no_such_type"},
    {KILN_E_AMBIGUOUS, 400, "ambiguous_type"},
    {-ENOENT, 404, "not_found"},
    {-EEXIST, 409, "conflict"},
    {KILN_E_LIMIT, 413, "limit"},
    {-ERANGE, 413, "limit"},
    {-EDQUOT, 422, "limit"},
    {KILN_E_UNSUPPORTED, 501, "unsupported"},
    {-ECANCELED, 503, "stopping"},
    {-ESHUTDOWN, 503, "stopping"},
    {-EAGAIN, 503, "busy"},
    {-ENOMEM, 503, "busy"},
    {-ETIMEDOUT, 504, "timeout"},
    {-ENOSPC, 507, "no_space"},
};

static struct fault fault_of(int code)
{
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(faults); i++)
        if (faults[i].code == code)
            return faults[i];
    return (struct fault){code, 500, "internal"};
}

/* "from: not a time": the place, then the sentence, then what to go on with. */
static void add_message(const struct kiln_native_call *call, const char *where, int code,
                        struct kiln_buf *out)
{
    const struct kiln_err *err = &call->err;

    if (where[0])
        kiln_buf_printf(out, "%s: ", where);
    if (call->param && err->where[0])
        kiln_buf_printf(out, "%s: ", err->where);
    kiln_buf_puts(out, err->text[0] ? err->text : kiln_err_text(code));
    kiln_buf_puts(out, call->known);
}

static void put_error(struct kiln_native_call *call, int code)
{
    const char *where = call->param ? call->param : call->err.where;
    struct fault fault = fault_of(code);
    struct kiln_buf message;

    kiln_buf_init(&message, 4096);
    add_message(call, where, code, &message);
    kiln_buf_clear(&call->body);
    kiln_problem_format(fault.word, kiln_buf_str(&message), kiln_str_of(where), &call->body);
    kiln_buf_done(&message);
    call->content_type = JSON;
    call->status = fault.status;
    call->n_notes = 0;
    call->disposition[0] = '\0';
}

/* ---- replies ---- */

static void add_header(struct kiln_reply *reply, struct kiln_str name, const char *value)
{
    reply->headers[reply->n_headers++] = (struct kiln_header){name, kiln_str_of(value)};
}

/* What a file cannot say by itself: the codes of its notes. */
static void list_notes(const struct kiln_native_call *call, char *out, size_t size)
{
    size_t at = 0;

    out[0] = '\0';
    for (uint32_t i = 0; i < call->n_notes && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s", i ? ", " : "", call->notes[i].code);
}

static void reply_call(struct kiln_native_call *call)
{
    struct kiln_reply reply = {.status = call->status,
                               .content_type = call->content_type,
                               .body = kiln_buf_str(&call->body)};
    char notes[256], retry[16];

    add_header(&reply, KILN_STR("cache-control"), call->cacheable ? "no-cache" : "no-store");
    add_header(&reply, KILN_STR("x-content-type-options"), "nosniff");
    if (call->content_type && strcmp(call->content_type, "image/svg+xml") == 0)
        add_header(&reply, KILN_STR("content-security-policy"), PICTURE_POLICY);
    if (call->disposition[0])
        add_header(&reply, KILN_STR("content-disposition"), call->disposition);
    list_notes(call, notes, sizeof(notes));
    if (notes[0])
        add_header(&reply, KILN_STR("x-kiln-notes"), notes);
    if (call->cookie[0])
        add_header(&reply, KILN_STR("set-cookie"), call->cookie);
    if (call->status == 401)
        add_header(&reply, KILN_STR("www-authenticate"), "Bearer realm=\"kiln\"");
    snprintf(retry, sizeof(retry), "%u", call->retry_s ? call->retry_s : 5);
    if (call->status == 503 || call->retry_s)
        add_header(&reply, KILN_STR("retry-after"), retry);
    kiln_request_reply(call->request, &reply);
}

static void call_init(struct kiln_native_call *call, struct kiln_api *api,
                      struct kiln_request *request)
{
    *call = (struct kiln_native_call){
        .api = api, .request = request, .status = 200, .content_type = JSON};
    call->now_ns = kiln_clock_unix_ns();
    call->budget.limit = ARGS_BYTES;
    kiln_arena_init(&call->arena, &call->budget);
    kiln_buf_init(&call->body, BODY_MAX);
    call->body.pool = kiln_querier_pool(api->querier);
    kiln_json_out_init(&call->w, &call->body, 0);
}

static void call_done(struct kiln_native_call *call)
{
    kiln_native_args_done(call);
    kiln_arena_done(&call->arena);
    if (call->paid)
        kiln_pool_give(kiln_querier_pool(call->api->querier), call->paid);
    kiln_buf_done(&call->body);
}

/* ---- routes ---- */

struct route {
    struct kiln_api *api;
    const struct kiln_native_endpoint *endpoint;
};

static const struct {
    int (*run)(struct kiln_native_call *call);
    const char *action;
} audited[] = {
    {kiln_native_run_undeploy, "delete deployment"},
    {kiln_native_run_unannotate, "delete annotation"},
    {kiln_native_run_symbols_delete, "delete debug files"},
    {kiln_native_run_order, "give order"},
    {kiln_native_run_unorder, "withdraw order"},
    {kiln_native_run_sign_in, "sign in"},
};

/* Sign-ins that fail are counted by the gate, which does not write a line for each. */
static void audit(const struct kiln_native_call *call, const struct kiln_native_endpoint *endpoint,
                  int r)
{
    struct kiln_str target = call->audited[0] ? kiln_str_of(call->audited) : call->request->rest;

    if (!call->api->gate || r == -EKEYREJECTED || r == -EUSERS)
        return;
    for (size_t i = 0; i < KILN_ARRAY_LEN(audited); i++)
        if (endpoint->run == audited[i].run)
            kiln_gate_audit(call->api->gate, call->request, audited[i].action, target,
                            call->status);
}

static void handle(struct kiln_request *request)
{
    const struct route *route = request->context;
    struct kiln_native_call call;
    int r;

    call_init(&call, route->api, request);
    r = kiln_native_args_read(&call, route->endpoint->params);
    if (r == 0)
        r = route->endpoint->run(&call);
    if (r == 0 && call.body.error)
        r = kiln_err_set(&call.err, call.body.error, NULL, KILN_API_TOO_LARGE);
    if (r < 0)
        put_error(&call, r);
    audit(&call, route->endpoint, r);
    reply_call(&call);
    call_done(&call);
}

static int add(struct kiln_api *api, struct kiln_router *router,
               const struct kiln_native_endpoint *endpoint, enum kiln_lane lane)
{
    struct route *route = kiln_malloc(sizeof(*route));
    int r;

    if (!route)
        return -ENOMEM;
    *route = (struct route){api, endpoint};
    r = kiln_router_add(router, &(struct kiln_route){.method = endpoint->method,
                                                     .path = endpoint->path,
                                                     .access = endpoint->access,
                                                     .handler = handle,
                                                     .context = route,
                                                     .done = kiln_free,
                                                     .body_max = endpoint->body_max,
                                                     .lane = lane});
    if (r < 0)
        kiln_free(route);
    return r;
}

int kiln_api_add_link(struct kiln_api *api, struct kiln_router *router)
{
    return add(api, router, &quick_endpoints[0], KILN_LANE_QUICK);
}

int kiln_api_add_native(struct kiln_api *api, struct kiln_router *router)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < KILN_ARRAY_LEN(endpoints); i++)
        r = add(api, router, &endpoints[i], KILN_LANE_LONG);
    for (uint32_t i = 0; r == 0 && i < KILN_ARRAY_LEN(quick_endpoints); i++)
        r = add(api, router, &quick_endpoints[i], KILN_LANE_QUICK);
    return r;
}

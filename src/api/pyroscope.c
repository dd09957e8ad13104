/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Services and methods.  A call is uncompressed, read (JSON becomes protobuf first), run, and its
 * answer written as it was asked: protobuf, or JSON by the same tables.
 */
#include <errno.h>
#include <stdio.h>

#include "api/pyroscope_int.h"
#include "base/attr.h"
#include "base/clock.h"
#include "net/rpc.h"

#define CALL_MEMORY ((size_t)32 << 20) /* what a request is made of, read */

struct method {
    const char *path;
    const struct kiln_message *request, *answer;
    int (*run)(struct kiln_pyro_call *call);
    enum kiln_access access;
};

#define QUERIER(name) "/querier.v1.QuerierService/" name
#define ADHOC(name)   "/adhocprofiles.v1.AdHocProfileService/" name
static const struct method methods[] = {
    {QUERIER("ProfileTypes"), &kiln_pyro_types_request, &kiln_pyro_types_answer,
     kiln_pyro_profile_types, KILN_ACCESS_READ},
    {QUERIER("LabelNames"), &kiln_pyro_names_request, &kiln_pyro_names_answer,
     kiln_pyro_label_names, KILN_ACCESS_READ},
    {QUERIER("LabelValues"), &kiln_pyro_values_request, &kiln_pyro_names_answer,
     kiln_pyro_label_values, KILN_ACCESS_READ},
    {QUERIER("Series"), &kiln_pyro_series_request, &kiln_pyro_series_answer, kiln_pyro_series,
     KILN_ACCESS_READ},
    {QUERIER("SelectMergeStacktraces"), &kiln_pyro_stacks_request, &kiln_pyro_stacks_answer,
     kiln_pyro_stacktraces, KILN_ACCESS_READ},
    {QUERIER("SelectMergeSpanProfile"), &kiln_pyro_span_request, &kiln_pyro_stacks_answer,
     kiln_pyro_span_profile, KILN_ACCESS_READ},
    {QUERIER("SelectMergeProfile"), &kiln_pyro_profile_request, &kiln_pyro_profile_answer,
     kiln_pyro_merge_profile, KILN_ACCESS_READ},
    {QUERIER("SelectSeries"), &kiln_pyro_timeline_request, &kiln_pyro_timeline_answer,
     kiln_pyro_select_series, KILN_ACCESS_READ},
    {QUERIER("SelectHeatmap"), &kiln_pyro_heatmap_request, &kiln_pyro_heatmap_answer,
     kiln_pyro_select_heatmap, KILN_ACCESS_READ},
    {QUERIER("Diff"), &kiln_pyro_diff_request, &kiln_pyro_diff_answer, kiln_pyro_diff,
     KILN_ACCESS_READ},
    {QUERIER("GetProfileStats"), &kiln_pyro_nothing, &kiln_pyro_stats_answer,
     kiln_pyro_profile_stats, KILN_ACCESS_READ},
    {QUERIER("AnalyzeQuery"), &kiln_pyro_analyze_request, &kiln_pyro_analyze_answer,
     kiln_pyro_analyze_query, KILN_ACCESS_READ},
    {"/settings.v1.SettingsService/Get", &kiln_pyro_nothing, &kiln_pyro_settings_answer,
     kiln_pyro_settings_get, KILN_ACCESS_READ},
    {"/settings.v1.SettingsService/Set", &kiln_pyro_set_request, &kiln_pyro_set_answer,
     kiln_pyro_settings_set, KILN_ACCESS_WRITE},
    {"/settings.v1.SettingsService/Delete", &kiln_pyro_named_request, &kiln_pyro_nothing,
     kiln_pyro_settings_delete, KILN_ACCESS_WRITE},
    {ADHOC("Upload"), &kiln_pyro_upload_request, &kiln_pyro_adhoc_answer, kiln_pyro_adhoc_upload,
     KILN_ACCESS_WRITE},
    {ADHOC("Get"), &kiln_pyro_adhoc_request, &kiln_pyro_adhoc_answer, kiln_pyro_adhoc_get,
     KILN_ACCESS_READ},
    {ADHOC("List"), &kiln_pyro_nothing, &kiln_pyro_adhoc_list_answer, kiln_pyro_adhoc_list,
     KILN_ACCESS_READ},
    {ADHOC("Diff"), &kiln_pyro_adhoc_diff_request, &kiln_pyro_adhoc_diff_answer,
     kiln_pyro_adhoc_diff, KILN_ACCESS_READ},
    {"/capabilities.v1.FeatureFlagsService/GetFeatureFlags", &kiln_pyro_nothing,
     &kiln_pyro_flags_answer, kiln_pyro_feature_flags, KILN_ACCESS_SELF},
    {"/version.v1.Version/Version", &kiln_pyro_nothing, &kiln_pyro_version_answer,
     kiln_pyro_version, KILN_ACCESS_SELF},
    {"/grpc.health.v1.Health/Check", &kiln_pyro_nothing, &kiln_pyro_health_answer, kiln_pyro_health,
     KILN_ACCESS_NONE},
};

/* ---- a call ---- */

/* Accept: * / *; allow-utf8-labelnames=true */
static bool takes_utf8_names(const struct kiln_request *http)
{
    for (uint32_t i = 0; i < http->n_headers; i++)
        if (kiln_str_eq(http->headers[i].name, KILN_STR("accept")) &&
            kiln_str_contains(http->headers[i].value, KILN_STR("allow-utf8-labelnames=true")))
            return true;
    return false;
}

void kiln_pyro_call_init(struct kiln_pyro_call *call, struct kiln_api *api,
                         struct kiln_request *http)
{
    *call =
        (struct kiln_pyro_call){.api = api, .http = http, .began_mono_ns = kiln_clock_mono_ns()};
    call->utf8_names = takes_utf8_names(http);
    call->budget.limit = CALL_MEMORY;
    kiln_arena_init(&call->arena, &call->budget);
    kiln_pb_out_init(&call->out, 256, KILN_PYRO_ANSWER_MAX);
    call->out.pool = kiln_querier_pool(api->querier);
}

void kiln_pyro_buf_init(struct kiln_pyro_call *call, struct kiln_buf *buf)
{
    kiln_buf_init(buf, KILN_PYRO_ANSWER_MAX);
    buf->pool = kiln_querier_pool(call->api->querier);
}

void kiln_pyro_call_done(struct kiln_pyro_call *call)
{
    kiln_pb_out_done(&call->out);
    kiln_arena_done(&call->arena);
}

void kiln_pyro_note(struct kiln_pyro_call *call)
{
    const char *damaged = call->n_damaged ? KILN_DAMAGED_NOTE : "";

    call->http->note = call->n_damaged ? damaged : NULL;
    if (call->error_percent > 0) {
        snprintf(call->note, sizeof(call->note),
                 "the tree was pruned: values may be too low by up to %.2g%% of everything%s%s",
                 call->error_percent, *damaged ? "; " : "", damaged);
        call->http->note = call->note;
    }
}

/* The message as protobuf, in `content` where it had to be made. */
static int get_message(struct kiln_pyro_call *call, const struct kiln_rpc *rpc,
                       const struct method *method, struct kiln_buf *content, struct kiln_str *ret)
{
    struct kiln_buf plain;
    int r = 0;

    *ret = rpc->message;
    kiln_buf_init(&plain, KILN_PYRO_REQUEST_MAX);
    plain.pool = kiln_querier_pool(call->api->querier);
    if (rpc->compression != KILN_PLAIN) {
        struct kiln_buf *into = rpc->json ? &plain : content;

        r = kiln_decompress(rpc->compression, rpc->message, into, &call->err);
        *ret = kiln_buf_str(into);
    }
    if (r == 0 && rpc->json) {
        r = kiln_protojson_read(method->request, *ret, content, &call->err);
        *ret = kiln_buf_str(content);
    }
    kiln_buf_done(&plain);
    return r;
}

/* The answer where it was written: it may be large. */
static struct kiln_str written(const struct kiln_pb_out *w)
{
    return (struct kiln_str){(const char *)w->at, (size_t)(w->end - w->at)};
}

static int run(struct kiln_pyro_call *call, struct kiln_rpc *rpc, const struct method *method,
               struct kiln_buf *answer)
{
    struct kiln_buf content;
    struct kiln_str message;
    int r;

    kiln_pyro_buf_init(call, &content);
    content.max = 2 * (size_t)KILN_PYRO_REQUEST_MAX;
    r = get_message(call, rpc, method, &content, &message);
    if (r == 0)
        r = kiln_message_read(method->request, message, &call->arena, &call->request, &call->err);
    if (r == 0)
        r = method->run(call);
    if (r == 0 && rpc->json)
        r = call->out.error ? call->out.error
                            : kiln_protojson_write(method->answer, written(&call->out), answer);
    else if (r == 0)
        r = kiln_pb_out_flush(&call->out, answer);
    kiln_buf_done(&content);
    if (r == KILN_E_LIMIT && call->err.code == 0)
        kiln_err_set(&call->err, r, NULL, KILN_API_TOO_LARGE);
    return r;
}

static const struct method *method_of(const struct kiln_request *http)
{
    size_t i = 0;

    while (i + 1 < KILN_ARRAY_LEN(methods) &&
           !kiln_str_eq(http->path, kiln_str_of(methods[i].path)))
        i++;
    return &methods[i];
}

static void handle(struct kiln_rpc *rpc)
{
    struct kiln_pyro_call call;
    struct kiln_buf answer;
    char text[512];
    int r;

    kiln_pyro_call_init(&call, rpc->context, rpc->request);
    call.timeout_ms = rpc->timeout_ms;
    kiln_pyro_buf_init(&call, &answer);
    r = run(&call, rpc, method_of(rpc->request), &answer);
    if (r == 0)
        kiln_pyro_note(&call);
    if (r == 0)
        kiln_rpc_reply(rpc, kiln_buf_str(&answer));
    else
        kiln_rpc_fail(rpc, &(struct kiln_rpc_status){
                               .code = kiln_pyro_code(r),
                               .message = kiln_pyro_message(&call, r, text, sizeof(text))});
    kiln_buf_done(&answer);
    kiln_pyro_call_done(&call);
}

/* ---- routes ---- */

int kiln_api_add_pyroscope(struct kiln_api *api, struct kiln_router *router)
{
    int r = 0;

    for (size_t i = 0; i < KILN_ARRAY_LEN(methods) && r == 0; i++) {
        struct kiln_rpc_route route = {.path = methods[i].path,
                                       .access = methods[i].access,
                                       .handler = handle,
                                       .context = api,
                                       .body_max = KILN_PYRO_REQUEST_MAX,
                                       .lane = KILN_LANE_LONG};

        r = kiln_rpc_add(router, &route);
    }
    if (r == 0)
        r = kiln_pyro_add_render(api, router);
    return r;
}

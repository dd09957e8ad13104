/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is not about samples.
 *
 *   GetProfileStatsResponse  1 data_ingested 2 oldest_profile_time 3 newest_profile_time (ms)
 *   AnalyzeQueryResponse     1 query_scopes { 1 component_type 2 component_count 3 block_count
 *                              4 series_count 5 profile_count 6 sample_count 8 profile_bytes }
 *                            2 query_impact { 2 total_bytes_in_time_range 3 total_queried_series }
 *   Setting                  1 name 2 value 3 modifiedAt (ms)
 *   FeatureFlag              1 name 2 enabled 3 description
 */
#include <errno.h>

#include "api/pyroscope_int.h"
#include "base/clock.h"

#define KIND "settings"

/* ---- the store ---- */

int kiln_pyro_one_tenant(struct kiln_pyro_call *call, struct kiln_str *ret)
{
    struct kiln_str rest = kiln_str_of(call->http->tenant);
    uint32_t n = 0;

    *ret = rest;
    for (; rest.ptr; n++)
        (void)kiln_str_cut(&rest, '|');
    return n > 1 ? kiln_pyro_refuse(call, "expected 1 tenant, got %u", n) : 0;
}

int kiln_pyro_profile_stats(struct kiln_pyro_call *call)
{
    struct kiln_engine *engine = call->api->engine;
    struct kiln_engine_stats stats = {0};
    struct kiln_str tenant;
    int r = kiln_pyro_one_tenant(call, &tenant);

    if (r < 0)
        return r;
    engine->ops->stats(engine, tenant, &stats);
    kiln_pb_put_number(&call->out, 3, stats.newest_ns / KILN_NS_PER_MS);
    kiln_pb_put_number(&call->out, 2, stats.oldest_ns / KILN_NS_PER_MS);
    kiln_pb_put_number(&call->out, 1, stats.profiles > 0);
    return 0;
}

/* The series that a question touches. */
struct reach {
    uint64_t n_series, n_profiles, n_observations;
};

static int add_series(void *context, const struct kiln_series *series,
                      const struct kiln_series_found *found)
{
    struct reach *reach = context;

    (void)series;
    reach->n_series++;
    reach->n_profiles += found->n_profiles;
    reach->n_observations += found->n_observations;
    return 0;
}

static int measure(struct kiln_pyro_call *call, struct kiln_ask *ask, struct reach *reach,
                   struct kiln_engine_stats *stats)
{
    struct kiln_engine *engine = call->api->engine;

    for (uint32_t i = 0; i < ask->question.n_tenants; i++) {
        struct kiln_engine_stats more = {0};

        engine->ops->stats(engine, ask->question.tenants[i], &more);
        stats->blocks += more.blocks;
        stats->block_bytes += more.block_bytes + more.log_bytes;
        stats->observations += more.observations;
    }
    return kiln_pyro_each_series(call, &ask->question, add_series, reach);
}

static void put_reach(struct kiln_pb_out *w, const struct reach *reach,
                      const struct kiln_engine_stats *stats)
{
    double share =
        stats->observations ? (double)reach->n_observations / (double)stats->observations : 0;
    uint64_t bytes = (uint64_t)((double)stats->block_bytes * (share < 1 ? share : 1));
    size_t end = kiln_pb_mark(w);

    kiln_pb_put_number(w, 3, reach->n_series);
    kiln_pb_put_number(w, 2, bytes);
    kiln_pb_put_message(w, 2, end);
    end = kiln_pb_mark(w);
    kiln_pb_put_number(w, 8, bytes);
    kiln_pb_put_number(w, 6, reach->n_observations);
    kiln_pb_put_number(w, 5, reach->n_profiles);
    kiln_pb_put_number(w, 4, reach->n_series);
    kiln_pb_put_number(w, 3, stats->blocks);
    kiln_pb_put_number(w, 2, 1);
    kiln_pb_put_bytes(w, 1, KILN_STR("kiln"));
    kiln_pb_put_message(w, 1, end);
}

int kiln_pyro_analyze_query(struct kiln_pyro_call *call)
{
    struct kiln_engine_stats stats = {0};
    struct reach reach = {0};
    struct kiln_window window;
    struct kiln_ask *ask;
    int r = kiln_pyro_window(call, &call->request, &window);

    call->request.matchers = (struct kiln_texts){.items = &call->request.query, .n = 1};
    if (r == 0)
        r = kiln_pyro_ask(call, &call->request, KILN_PYRO_MATCHERS, &window, &ask);
    if (r < 0)
        return r;
    r = measure(call, ask, &reach, &stats);
    if (r == 0)
        put_reach(&call->out, &reach, &stats);
    kiln_pyro_ask_close(ask);
    return r;
}

/* ---- settings ---- */

static void put_setting(struct kiln_pb_out *w, struct kiln_str name, struct kiln_str value,
                        uint64_t modified_ns)
{
    size_t end = kiln_pb_mark(w);

    kiln_pb_put_number(w, 3, modified_ns / KILN_NS_PER_MS);
    kiln_pb_put_bytes(w, 2, value);
    kiln_pb_put_bytes(w, 1, name);
    kiln_pb_put_message(w, 1, end);
}

/* Appends one to a buffer: they come in the order in which they shall stand. */
static int get_setting(void *context, const struct kiln_kept_item *item)
{
    struct kiln_pb_out w;
    int r;

    kiln_pb_out_init(&w, item->text.len + 64, KILN_PYRO_ANSWER_MAX);
    put_setting(&w, item->name, item->text, item->modified_ns);
    r = kiln_pb_out_flush(&w, context);
    kiln_pb_out_done(&w);
    return r;
}

int kiln_pyro_settings_get(struct kiln_pyro_call *call)
{
    struct kiln_str tenant;
    struct kiln_buf all;
    int r = kiln_pyro_one_tenant(call, &tenant);

    if (r < 0)
        return r;
    kiln_pyro_buf_init(call, &all);
    r = kiln_kept_each(call->api->kept, tenant, KIND, get_setting, &all, &call->err);
    kiln_pb_raw_bytes(&call->out, all.ptr, all.len);
    kiln_buf_done(&all);
    return r;
}

int kiln_pyro_settings_set(struct kiln_pyro_call *call)
{
    struct kiln_pyro_request *request = &call->request;
    struct kiln_kept_item item = {.name = request->name, .text = request->value};
    struct kiln_str tenant;
    int r = kiln_pyro_one_tenant(call, &tenant);

    if (r < 0)
        return r;
    if (!request->has_setting || request->name.len == 0)
        return kiln_pyro_refuse(call, "no setting values provided");
    item.modified_ns = request->modified_ms > 0 ? (uint64_t)request->modified_ms * KILN_NS_PER_MS
                                                : kiln_clock_unix_ns();
    r = kiln_kept_set(call->api->kept, tenant, KIND, &item, &call->err);
    if (r == 0)
        put_setting(&call->out, request->name, request->value, item.modified_ns);
    return r;
}

int kiln_pyro_settings_delete(struct kiln_pyro_call *call)
{
    struct kiln_str tenant;
    int r = kiln_pyro_one_tenant(call, &tenant);

    if (r == 0 && call->request.name.len == 0)
        r = kiln_pyro_refuse(call, "no setting name provided");
    if (r == 0)
        r = kiln_kept_delete(call->api->kept, tenant, KIND, call->request.name, &call->err);
    return r < 0 ? r : 0;
}

/* ---- the server ---- */

int kiln_pyro_feature_flags(struct kiln_pyro_call *call)
{
    static const struct {
        const char *name, *text;
        bool on;
    } flags[] = {
        {"pyroscopeRuler", "Recording rules that export metrics from profiles.", false},
        {"pyroscopeRulerFunctions", "Recording rules for single functions.", false},
        {"utf8LabelNames", "Label names may be any text.", true},
        {"v2StorageLayer", "Storage in immutable blocks.", true},
    };
    struct kiln_pb_out *w = &call->out;

    for (size_t i = KILN_ARRAY_LEN(flags); i-- > 0;) {
        size_t end = kiln_pb_mark(w);

        kiln_pb_put_bytes(w, 3, kiln_str_of(flags[i].text));
        kiln_pb_put_number(w, 2, flags[i].on);
        kiln_pb_put_bytes(w, 1, kiln_str_of(flags[i].name));
        kiln_pb_put_message(w, 1, end);
    }
    return 0;
}

int kiln_pyro_version(struct kiln_pyro_call *call)
{
    kiln_pb_put_number(&call->out, 1, 1);
    return 0;
}

int kiln_pyro_health(struct kiln_pyro_call *call)
{
    kiln_pb_put_number(&call->out, 1, 1); /* SERVING */
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of requests.  Field numbers are those of Pyroscope's .proto files; of what only the
 * newest clients send (formats FUNCTIONS and SANDWICH, sandwichFunction) no number is known, so
 * that it can be said in JSON alone: its own numbers here are past what .proto files use.
 */
#include <stddef.h>

#include "api/pyroscope_messages.h"

#define AT(member) .kept = true, .offset = offsetof(struct kiln_pyro_request, member)
#define TEXT(no, json, proto, member)                                                              \
    {                                                                                              \
        .number = no, .kind = KILN_FIELD_STRING, .name = json, .proto_name = proto, AT(member)     \
    }
#define TEXTS(no, json, proto, member)                                                             \
    {                                                                                              \
        .number = no, .kind = KILN_FIELD_STRING, .name = json, .proto_name = proto,                \
        .repeated = true, AT(member)                                                               \
    }
#define LONG(no, json, proto, member)                                                              \
    {                                                                                              \
        .number = no, .kind = KILN_FIELD_LONG, .name = json, .proto_name = proto, AT(member)       \
    }
#define DOUBLE(no, json, member)                                                                   \
    {                                                                                              \
        .number = no, .kind = KILN_FIELD_DOUBLE, .name = json, AT(member)                          \
    }
#define ENUM(no, json, proto, member, list)                                                        \
    {                                                                                              \
        .number = no, .kind = KILN_FIELD_ENUM, .name = json, .proto_name = proto, AT(member),      \
        .names = list                                                                              \
    }
#define INNER(no, json, proto, table)                                                              \
    {                                                                                              \
        .number = no, .kind = KILN_FIELD_MESSAGE, .name = json, .proto_name = proto,               \
        .message = &(table)                                                                        \
    }
#define MESSAGE(symbol, words, fields)                                                             \
    const struct kiln_message symbol = {words, fields, sizeof(fields) / sizeof((fields)[0])}

/* ---- enums ---- */

static const struct kiln_enum_name formats[] = {
    {"PROFILE_FORMAT_UNSPECIFIED", KILN_PYRO_UNSPECIFIED},
    {"PROFILE_FORMAT_FLAMEGRAPH", KILN_PYRO_FLAMEGRAPH},
    {"PROFILE_FORMAT_TREE", KILN_PYRO_TREE},
    {"PROFILE_FORMAT_DOT", KILN_PYRO_DOT},
    {"PROFILE_FORMAT_PPROF", KILN_PYRO_PPROF},
    {"PROFILE_FORMAT_FUNCTIONS", KILN_PYRO_FUNCTIONS},
    {"PROFILE_FORMAT_SANDWICH", KILN_PYRO_SANDWICH},
    {NULL, 0},
};
static const struct kiln_enum_name aggregations[] = {
    {"TIME_SERIES_AGGREGATION_TYPE_SUM", 0},
    {"TIME_SERIES_AGGREGATION_TYPE_AVERAGE", 1},
    {NULL, 0},
};
static const struct kiln_enum_name exemplar_types[] = {
    {"EXEMPLAR_TYPE_UNSPECIFIED", KILN_PYRO_EXEMPLARS_UNSPECIFIED},
    {"EXEMPLAR_TYPE_NONE", KILN_PYRO_EXEMPLARS_NONE},
    {"EXEMPLAR_TYPE_INDIVIDUAL", KILN_PYRO_EXEMPLARS_INDIVIDUAL},
    {"EXEMPLAR_TYPE_SPAN", KILN_PYRO_EXEMPLARS_SPAN},
    {NULL, 0},
};
static const struct kiln_enum_name heatmap_types[] = {
    {"HEATMAP_QUERY_TYPE_UNSPECIFIED", 0},
    {"HEATMAP_QUERY_TYPE_INDIVIDUAL", 1},
    {"HEATMAP_QUERY_TYPE_SPAN", 2},
    {NULL, 0},
};
static const struct kiln_enum_name async_types[] = {
    {"ASYNC_QUERY_TYPE_DISABLED", 0},
    {"ASYNC_QUERY_TYPE_FORCE", 1},
    {NULL, 0},
};

/* ---- what requests are made of ---- */

static const struct kiln_field location_fields[] = {
    {.number = 1, .kind = KILN_FIELD_STRING, .name = "name", .appends = true, AT(call_site)},
};
static MESSAGE(location, "Location", location_fields);

static const struct kiln_field go_pgo_fields[] = {
    {.number = 1,
     .kind = KILN_FIELD_INT,
     .name = "keepLocations",
     .proto_name = "keep_locations",
     AT(keep_locations)},
    {.number = 2,
     .kind = KILN_FIELD_BOOL,
     .name = "aggregateCallees",
     .proto_name = "aggregate_callees",
     AT(aggregate_callees)},
};
static MESSAGE(go_pgo, "GoPGO", go_pgo_fields);

static const struct kiln_field filter_fields[] = {
    TEXTS(1, "includeFunctionNames", "include_function_names", with),
    TEXTS(2, "excludeFunctionNames", "exclude_function_names", without),
    TEXTS(3, "includeFunctionNameRegexes", "include_function_name_regexes", with_regexes),
    TEXTS(4, "excludeFunctionNameRegexes", "exclude_function_name_regexes", without_regexes),
};
static MESSAGE(frame_filter, "FrameFilter", filter_fields);

static const struct kiln_field stack_selector_fields[] = {
    {.number = 1,
     .kind = KILN_FIELD_MESSAGE,
     .name = "callSite",
     .proto_name = "call_site",
     .repeated = true,
     .message = &location},
    {.number = 2,
     .kind = KILN_FIELD_MESSAGE,
     .name = "goPgo",
     .proto_name = "go_pgo",
     AT(go_pgo),
     .message = &go_pgo},
    INNER(3, "frameFilter", "frame_filter", frame_filter),
};
static MESSAGE(stack_selector, "StackTraceSelector", stack_selector_fields);

static const struct kiln_field async_fields[] = {
    ENUM(2, "type", NULL, async, async_types),
};
static MESSAGE(async_request, "AsyncQueryRequest", async_fields);

/* ---- querier.v1 ---- */

const struct kiln_message kiln_pyro_nothing = {"the request", NULL, 0};

static const struct kiln_field types_fields[] = {
    LONG(1, "start", NULL, start_ms),
    LONG(2, "end", NULL, end_ms),
};
MESSAGE(kiln_pyro_types_request, "ProfileTypesRequest", types_fields);

static const struct kiln_field names_fields[] = {
    TEXTS(1, "matchers", NULL, matchers),
    LONG(2, "start", NULL, start_ms),
    LONG(3, "end", NULL, end_ms),
};
MESSAGE(kiln_pyro_names_request, "LabelNamesRequest", names_fields);

static const struct kiln_field values_fields[] = {
    TEXT(1, "name", NULL, name),
    TEXTS(2, "matchers", NULL, matchers),
    LONG(3, "start", NULL, start_ms),
    LONG(4, "end", NULL, end_ms),
};
MESSAGE(kiln_pyro_values_request, "LabelValuesRequest", values_fields);

static const struct kiln_field series_fields[] = {
    TEXTS(1, "matchers", NULL, matchers),
    TEXTS(2, "labelNames", "label_names", label_names),
    LONG(3, "start", NULL, start_ms),
    LONG(4, "end", NULL, end_ms),
};
MESSAGE(kiln_pyro_series_request, "SeriesRequest", series_fields);

static const struct kiln_field stacks_fields[] = {
    TEXT(1, "profileTypeID", "profile_typeID", type),
    TEXT(2, "labelSelector", "label_selector", selector),
    LONG(3, "start", NULL, start_ms),
    LONG(4, "end", NULL, end_ms),
    LONG(5, "maxNodes", "max_nodes", max_nodes),
    ENUM(6, "format", NULL, format, formats),
    INNER(7, "stackTraceSelector", "stack_trace_selector", stack_selector),
    TEXTS(8, "profileIdSelector", "profile_id_selector", profile_ids),
    INNER(9, "async", NULL, async_request),
    TEXTS(10, "traceIdSelector", "trace_id_selector", trace_ids),
    TEXTS(11, "spanSelector", "span_selector", span_ids),
    TEXT(60001, "sandwichFunction", "sandwich_function", sandwich),
};
MESSAGE(kiln_pyro_stacks_request, "SelectMergeStacktracesRequest", stacks_fields);

static const struct kiln_field span_fields[] = {
    TEXT(1, "profileTypeID", "profile_typeID", type),
    TEXT(2, "labelSelector", "label_selector", selector),
    TEXTS(3, "spanSelector", "span_selector", span_ids),
    LONG(4, "start", NULL, start_ms),
    LONG(5, "end", NULL, end_ms),
    LONG(6, "maxNodes", "max_nodes", max_nodes),
    ENUM(7, "format", NULL, format, formats),
};
MESSAGE(kiln_pyro_span_request, "SelectMergeSpanProfileRequest", span_fields);

static const struct kiln_field profile_fields[] = {
    TEXT(1, "profileTypeID", "profile_typeID", type),
    TEXT(2, "labelSelector", "label_selector", selector),
    LONG(3, "start", NULL, start_ms),
    LONG(4, "end", NULL, end_ms),
    LONG(5, "maxNodes", "max_nodes", max_nodes),
    INNER(6, "stackTraceSelector", "stack_trace_selector", stack_selector),
    TEXTS(7, "profileIdSelector", "profile_id_selector", profile_ids),
    TEXTS(8, "traceIdSelector", "trace_id_selector", trace_ids),
};
MESSAGE(kiln_pyro_profile_request, "SelectMergeProfileRequest", profile_fields);

static const struct kiln_field timeline_fields[] = {
    TEXT(1, "profileTypeID", "profile_typeID", type),
    TEXT(2, "labelSelector", "label_selector", selector),
    LONG(3, "start", NULL, start_ms),
    LONG(4, "end", NULL, end_ms),
    TEXTS(5, "groupBy", "group_by", group_by),
    DOUBLE(6, "step", step_s),
    ENUM(7, "aggregation", NULL, aggregation, aggregations),
    INNER(8, "stackTraceSelector", "stack_trace_selector", stack_selector),
    LONG(9, "limit", NULL, limit),
    ENUM(10, "exemplarType", "exemplar_type", exemplars, exemplar_types),
};
MESSAGE(kiln_pyro_timeline_request, "SelectSeriesRequest", timeline_fields);

static const struct kiln_field heatmap_fields[] = {
    TEXT(1, "profileTypeID", "profile_typeID", type),
    TEXT(2, "labelSelector", "label_selector", selector),
    LONG(3, "start", NULL, start_ms),
    LONG(4, "end", NULL, end_ms),
    DOUBLE(5, "step", step_s),
    TEXTS(6, "groupBy", "group_by", group_by),
    ENUM(7, "queryType", "query_type", heatmap, heatmap_types),
    ENUM(8, "exemplarType", "exemplar_type", exemplars, exemplar_types),
    LONG(9, "limit", NULL, limit),
};
MESSAGE(kiln_pyro_heatmap_request, "SelectHeatmapRequest", heatmap_fields);

#define SIDE(no, side)                                                                             \
    {                                                                                              \
        .number = no, .kind = KILN_FIELD_MESSAGE, .name = #side, AT(side),                         \
        .apart = sizeof(struct kiln_pyro_request), .message = &kiln_pyro_stacks_request            \
    }
static const struct kiln_field diff_fields[] = {
    SIDE(1, left),
    SIDE(2, right),
    ENUM(60002, "format", NULL, format, formats), /* of both sides */
    LONG(60003, "maxNodes", "max_nodes", max_nodes),
};
MESSAGE(kiln_pyro_diff_request, "DiffRequest", diff_fields);

static const struct kiln_field analyze_fields[] = {
    LONG(2, "start", NULL, start_ms),
    LONG(3, "end", NULL, end_ms),
    TEXT(4, "query", NULL, query),
};
MESSAGE(kiln_pyro_analyze_request, "AnalyzeQueryRequest", analyze_fields);

/* ---- settings.v1 ---- */

static const struct kiln_field setting_fields[] = {
    TEXT(1, "name", NULL, name),
    TEXT(2, "value", NULL, value),
    LONG(3, "modifiedAt", NULL, modified_ms),
};
static MESSAGE(setting, "Setting", setting_fields);

static const struct kiln_field set_fields[] = {
    {.number = 1,
     .kind = KILN_FIELD_MESSAGE,
     .name = "setting",
     AT(has_setting),
     .message = &setting},
};
MESSAGE(kiln_pyro_set_request, "SetSettingsRequest", set_fields);

static const struct kiln_field named_fields[] = {
    TEXT(1, "name", NULL, name),
};
MESSAGE(kiln_pyro_named_request, "DeleteSettingsRequest", named_fields);

/* ---- adhocprofiles.v1 ---- */

static const struct kiln_field upload_fields[] = {
    TEXT(1, "name", NULL, name),
    TEXT(2, "profile", NULL, profile),
    LONG(3, "maxNodes", "max_nodes", max_nodes),
};
MESSAGE(kiln_pyro_upload_request, "AdHocProfilesUploadRequest", upload_fields);

static const struct kiln_field adhoc_fields[] = {
    TEXT(1, "id", NULL, id),
    TEXT(2, "profileType", "profile_type", type),
    LONG(3, "maxNodes", "max_nodes", max_nodes),
};
MESSAGE(kiln_pyro_adhoc_request, "AdHocProfilesGetRequest", adhoc_fields);

static const struct kiln_field adhoc_diff_fields[] = {
    TEXT(1, "leftId", "left_id", left_id),
    TEXT(2, "rightId", "right_id", right_id),
    TEXT(3, "profileType", "profile_type", type),
    LONG(4, "maxNodes", "max_nodes", max_nodes),
};
MESSAGE(kiln_pyro_adhoc_diff_request, "AdHocProfilesDiffRequest", adhoc_diff_fields);

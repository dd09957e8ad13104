/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of answers, by which protobuf becomes JSON.  Field numbers are those of Pyroscope's
 * .proto files; functions and sandwich, which are asked for in JSON alone, have numbers of our own.
 */
#include <stddef.h>

#include "api/pyroscope_messages.h"
#include "api/pyroscope_own.h"

#define TEXT(no, json)                                                                             \
    {                                                                                              \
        .number = no, .kind = KILN_FIELD_STRING, .name = json                                      \
    }
#define TEXTS(no, json)                                                                            \
    {                                                                                              \
        .number = no, .kind = KILN_FIELD_STRING, .name = json, .repeated = true                    \
    }
#define LONG(no, json)                                                                             \
    {                                                                                              \
        .number = no, .kind = KILN_FIELD_LONG, .name = json                                        \
    }
#define ULONG(no, json)                                                                            \
    {                                                                                              \
        .number = no, .kind = KILN_FIELD_ULONG, .name = json                                       \
    }
#define BOOL(no, json)                                                                             \
    {                                                                                              \
        .number = no, .kind = KILN_FIELD_BOOL, .name = json                                        \
    }
#define NUMBERS(no, json, which)                                                                   \
    {                                                                                              \
        .number = no, .kind = KILN_FIELD_##which, .name = json, .repeated = true                   \
    }
#define INNER(no, json, table)                                                                     \
    {                                                                                              \
        .number = no, .kind = KILN_FIELD_MESSAGE, .name = json, .message = &(table)                \
    }
#define INNERS(no, json, table)                                                                    \
    {                                                                                              \
        .number = no, .kind = KILN_FIELD_MESSAGE, .name = json, .repeated = true,                  \
        .message = &(table)                                                                        \
    }
#define MESSAGE(symbol, words, fields)                                                             \
    const struct kiln_message symbol = {words, fields, sizeof(fields) / sizeof((fields)[0])}

/* ---- google.v1.Profile ---- */

static const struct kiln_field value_type_fields[] = {LONG(1, "type"), LONG(2, "unit")};
static MESSAGE(value_type, "ValueType", value_type_fields);

static const struct kiln_field tag_fields[] = {
    LONG(1, "key"),
    LONG(2, "str"),
    LONG(3, "num"),
    LONG(4, "numUnit"),
};
static MESSAGE(tag, "Label", tag_fields);

static const struct kiln_field sample_fields[] = {
    NUMBERS(1, "locationId", ULONG),
    NUMBERS(2, "value", LONG),
    INNERS(3, "label", tag),
};
static MESSAGE(sample, "Sample", sample_fields);

static const struct kiln_field mapping_fields[] = {
    ULONG(1, "id"),
    ULONG(2, "memoryStart"),
    ULONG(3, "memoryLimit"),
    ULONG(4, "fileOffset"),
    LONG(5, "filename"),
    LONG(6, "buildId"),
    BOOL(7, "hasFunctions"),
    BOOL(8, "hasFilenames"),
    BOOL(9, "hasLineNumbers"),
    BOOL(10, "hasInlineFrames"),
};
static MESSAGE(mapping, "Mapping", mapping_fields);

static const struct kiln_field line_fields[] = {ULONG(1, "functionId"), LONG(2, "line")};
static MESSAGE(line, "Line", line_fields);

static const struct kiln_field location_fields[] = {
    ULONG(1, "id"),          ULONG(2, "mappingId"), ULONG(3, "address"),
    INNERS(4, "line", line), BOOL(5, "isFolded"),
};
static MESSAGE(location, "Location", location_fields);

static const struct kiln_field function_fields[] = {
    ULONG(1, "id"),      LONG(2, "name"),      LONG(3, "systemName"),
    LONG(4, "filename"), LONG(5, "startLine"),
};
static MESSAGE(function, "Function", function_fields);

static const struct kiln_field profile_fields[] = {
    INNERS(1, "sampleType", value_type),
    INNERS(2, "sample", sample),
    INNERS(3, "mapping", mapping),
    INNERS(4, "location", location),
    INNERS(5, "function", function),
    TEXTS(6, "stringTable"),
    LONG(7, "dropFrames"),
    LONG(8, "keepFrames"),
    LONG(9, "timeNanos"),
    LONG(10, "durationNanos"),
    INNER(11, "periodType", value_type),
    LONG(12, "period"),
    NUMBERS(13, "comment", LONG),
    LONG(14, "defaultSampleType"),
};
MESSAGE(kiln_pyro_profile_answer, "Profile", profile_fields);

static const struct kiln_field pprof_fields[] = {INNER(1, "profile", kiln_pyro_profile_answer)};
static MESSAGE(pprof, "PprofProfile", pprof_fields);

/* ---- types.v1 ---- */

static const struct kiln_field pair_fields[] = {TEXT(1, "name"), TEXT(2, "value")};
static MESSAGE(pair, "LabelPair", pair_fields);

static const struct kiln_field labels_fields[] = {INNERS(1, "labels", pair)};
static MESSAGE(labels, "Labels", labels_fields);

static const struct kiln_field type_fields[] = {
    TEXT(1, "ID"),         TEXT(2, "name"),       TEXT(4, "sampleType"),
    TEXT(5, "sampleUnit"), TEXT(6, "periodType"), TEXT(7, "periodUnit"),
};
static MESSAGE(type, "ProfileType", type_fields);

static const struct kiln_field exemplar_fields[] = {
    LONG(1, "timestamp"), TEXT(2, "profileId"),      TEXT(3, "spanId"),
    LONG(4, "value"),     INNERS(5, "labels", pair), TEXT(6, "traceId"),
};
static MESSAGE(exemplar, "Exemplar", exemplar_fields);

static const struct kiln_field annotation_fields[] = {TEXT(1, "key"), TEXT(2, "value")};
static MESSAGE(annotation, "ProfileAnnotation", annotation_fields);

static const struct kiln_field point_fields[] = {
    {.number = 1, .kind = KILN_FIELD_DOUBLE, .name = "value"},
    LONG(2, "timestamp"),
    INNERS(3, "annotations", annotation),
    INNERS(4, "exemplars", exemplar),
};
static MESSAGE(point, "Point", point_fields);

static const struct kiln_field series_fields[] = {
    INNERS(1, "labels", pair),
    INNERS(2, "points", point),
};
static MESSAGE(series, "Series", series_fields);

static const struct kiln_field slot_fields[] = {
    LONG(1, "timestamp"),
    NUMBERS(2, "yMin", DOUBLE),
    NUMBERS(3, "counts", INT),
    INNERS(4, "exemplars", exemplar),
};
static MESSAGE(slot, "HeatmapSlot", slot_fields);

static const struct kiln_field heatmap_series_fields[] = {
    INNERS(1, "labels", pair),
    INNERS(2, "slots", slot),
};
static MESSAGE(heatmap_series, "HeatmapSeries", heatmap_series_fields);

/* ---- querier.v1 ---- */

static const struct kiln_field types_fields[] = {INNERS(1, "profileTypes", type)};
MESSAGE(kiln_pyro_types_answer, "ProfileTypesResponse", types_fields);

static const struct kiln_field names_fields[] = {TEXTS(1, "names")};
MESSAGE(kiln_pyro_names_answer, "LabelNamesResponse", names_fields);

static const struct kiln_field sets_fields[] = {INNERS(2, "labelsSet", labels)};
MESSAGE(kiln_pyro_series_answer, "SeriesResponse", sets_fields);

static const struct kiln_field level_fields[] = {NUMBERS(1, "values", LONG)};
static MESSAGE(level, "Level", level_fields);

static const struct kiln_field flame_fields[] = {
    TEXTS(1, "names"),     INNERS(2, "levels", level), LONG(3, "total"),
    LONG(4, "maxSelf"),    LONG(5, "leftTicks"), /* of a diff */
    LONG(6, "rightTicks"),
};
static MESSAGE(flame, "FlameGraph", flame_fields);

static const struct kiln_field one_function_fields[] = {
    TEXT(KILN_OWN_NAME, "name"),
    LONG(KILN_OWN_SELF, "self"),
    LONG(KILN_OWN_TOTAL, "total"),
    LONG(KILN_OWN_LEFT_SELF, "leftSelf"),
    LONG(KILN_OWN_LEFT_TOTAL, "leftTotal"),
    LONG(KILN_OWN_RIGHT_SELF, "rightSelf"),
    LONG(KILN_OWN_RIGHT_TOTAL, "rightTotal"),
};
static MESSAGE(one_function, "FunctionStat", one_function_fields);

static const struct kiln_field functions_fields[] = {
    LONG(KILN_OWN_TOTAL, "total"),
    LONG(KILN_OWN_LEFT_TOTAL, "leftTotal"),
    LONG(KILN_OWN_RIGHT_TOTAL, "rightTotal"),
    INNERS(KILN_OWN_LIST, "functions", one_function),
};
static MESSAGE(functions, "FunctionList", functions_fields);

static const struct kiln_message sandwich_node;
static const struct kiln_field sandwich_node_fields[] = {
    {.number = KILN_OWN_NAME, .kind = KILN_FIELD_INT, .name = "nameIndex"},
    LONG(KILN_OWN_SELF, "self"),
    LONG(KILN_OWN_TOTAL, "total"),
    BOOL(KILN_OWN_TRUNCATED, "truncated"),
    INNERS(KILN_OWN_LIST, "children", sandwich_node),
};
static MESSAGE(sandwich_node, "SandwichNode", sandwich_node_fields);

static const struct kiln_field sandwich_fields[] = {
    TEXTS(KILN_OWN_NAME, "names"),
    LONG(KILN_OWN_SELF, "self"),
    LONG(KILN_OWN_TOTAL, "total"),
    INNER(KILN_OWN_CALLERS, "callers", sandwich_node),
    INNER(KILN_OWN_CALLEES, "callees", sandwich_node),
};
static MESSAGE(sandwich, "Sandwich", sandwich_fields);

static const struct kiln_field stacks_fields[] = {
    INNER(1, "flamegraph", flame),
    {.number = 2, .kind = KILN_FIELD_BYTES, .name = "tree"},
    TEXT(3, "dot"),
    INNER(5, "pprof", pprof),
    INNER(KILN_OWN_FUNCTIONS, "functions", functions),
    INNER(KILN_OWN_SANDWICH, "sandwich", sandwich),
};
MESSAGE(kiln_pyro_stacks_answer, "SelectMergeStacktracesResponse", stacks_fields);

static const struct kiln_field diff_fields[] = {
    INNER(1, "flamegraph", flame),
    INNER(KILN_OWN_FUNCTIONS, "functions", functions),
};
MESSAGE(kiln_pyro_diff_answer, "DiffResponse", diff_fields);

static const struct kiln_field timeline_fields[] = {INNERS(1, "series", series)};
MESSAGE(kiln_pyro_timeline_answer, "SelectSeriesResponse", timeline_fields);

static const struct kiln_field heatmap_fields[] = {INNERS(1, "series", heatmap_series)};
MESSAGE(kiln_pyro_heatmap_answer, "SelectHeatmapResponse", heatmap_fields);

static const struct kiln_field stats_fields[] = {
    BOOL(1, "dataIngested"),
    LONG(2, "oldestProfileTime"),
    LONG(3, "newestProfileTime"),
};
MESSAGE(kiln_pyro_stats_answer, "GetProfileStatsResponse", stats_fields);

static const struct kiln_field scope_fields[] = {
    TEXT(1, "componentType"), ULONG(2, "componentCount"), ULONG(3, "blockCount"),
    ULONG(4, "seriesCount"),  ULONG(5, "profileCount"),   ULONG(6, "sampleCount"),
    ULONG(7, "indexBytes"),   ULONG(8, "profileBytes"),   ULONG(9, "symbolBytes"),
};
static MESSAGE(scope, "QueryScope", scope_fields);

static const struct kiln_field impact_fields[] = {
    ULONG(2, "totalBytesInTimeRange"),
    ULONG(3, "totalQueriedSeries"),
    BOOL(4, "deduplicationNeeded"),
};
static MESSAGE(impact, "QueryImpact", impact_fields);

static const struct kiln_field analyze_fields[] = {
    INNERS(1, "queryScopes", scope),
    INNER(2, "queryImpact", impact),
};
MESSAGE(kiln_pyro_analyze_answer, "AnalyzeQueryResponse", analyze_fields);

/* ---- others ---- */

static const struct kiln_field setting_fields[] = {
    TEXT(1, "name"),
    TEXT(2, "value"),
    LONG(3, "modifiedAt"),
};
static MESSAGE(setting, "Setting", setting_fields);

static const struct kiln_field settings_fields[] = {INNERS(1, "settings", setting)};
MESSAGE(kiln_pyro_settings_answer, "GetSettingsResponse", settings_fields);

static const struct kiln_field set_fields[] = {INNER(1, "setting", setting)};
MESSAGE(kiln_pyro_set_answer, "SetSettingsResponse", set_fields);

static const struct kiln_field flag_fields[] = {
    TEXT(1, "name"),
    BOOL(2, "enabled"),
    TEXT(3, "description"),
    TEXT(4, "documentationUrl"),
};
static MESSAGE(flag, "FeatureFlag", flag_fields);

static const struct kiln_field flags_fields[] = {INNERS(1, "featureFlags", flag)};
MESSAGE(kiln_pyro_flags_answer, "GetFeatureFlagsResponse", flags_fields);

static const struct kiln_field version_fields[] = {ULONG(1, "QuerierAPI")};
MESSAGE(kiln_pyro_version_answer, "VersionResponse", version_fields);

static const struct kiln_enum_name serving[] = {
    {"UNKNOWN", 0},
    {"SERVING", 1},
    {"NOT_SERVING", 2},
    {NULL, 0},
};
static const struct kiln_field health_fields[] = {
    {.number = 1, .kind = KILN_FIELD_ENUM, .name = "status", .names = serving},
};
MESSAGE(kiln_pyro_health_answer, "HealthCheckResponse", health_fields);

static const struct kiln_field adhoc_fields[] = {
    TEXT(1, "id"),          TEXT(2, "name"),          LONG(3, "uploadedAt"),
    TEXT(4, "profileType"), TEXTS(5, "profileTypes"), TEXT(6, "flamebearerProfile"),
};
MESSAGE(kiln_pyro_adhoc_answer, "AdHocProfilesGetResponse", adhoc_fields);

static const struct kiln_field uploaded_fields[] = {
    TEXT(1, "id"),
    TEXT(2, "name"),
    LONG(3, "uploadedAt"),
};
static MESSAGE(uploaded, "AdHocProfilesProfileMetadata", uploaded_fields);

static const struct kiln_field adhoc_list_fields[] = {INNERS(1, "profiles", uploaded)};
MESSAGE(kiln_pyro_adhoc_list_answer, "AdHocProfilesListResponse", adhoc_list_fields);

static const struct kiln_field adhoc_diff_fields[] = {
    TEXTS(1, "profileTypes"),
    TEXT(2, "flamebearerProfile"),
};
MESSAGE(kiln_pyro_adhoc_diff_answer, "AdHocProfilesDiffResponse", adhoc_diff_fields);

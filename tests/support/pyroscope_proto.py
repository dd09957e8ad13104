# SPDX-License-Identifier: Apache-2.0
"""Pyroscope's messages for Google's protobuf library, from a list of their fields: a second opinion on our bytes.

    messages = load()                       # google.protobuf must be importable
    request = messages["SelectSeriesRequest"](profile_typeID="...", step=15)
"""
# A message a line: NAME: field=number type, ...; * is repeated, ? optional, a capital names a message, or an enum in E.
MESSAGES = """
LabelPair: name=1 string, value=2 string
Labels: labels=1 LabelPair*
ProfileType: ID=1 string, name=2 string, sample_type=4 string, sample_unit=5 string, period_type=6 string, period_unit=7 string
ProfileTypesRequest: start=1 int64, end=2 int64
ProfileTypesResponse: profile_types=1 ProfileType*
LabelNamesRequest: matchers=1 string*, start=2 int64, end=3 int64
LabelNamesResponse: names=1 string*
LabelValuesRequest: name=1 string, matchers=2 string*, start=3 int64, end=4 int64
LabelValuesResponse: names=1 string*
SeriesRequest: matchers=1 string*, label_names=2 string*, start=3 int64, end=4 int64
SeriesResponse: labels_set=2 Labels*
Location_: name=1 string
GoPGO: keep_locations=1 uint32, aggregate_callees=2 bool
StackTraceSelector: call_site=1 Location_*, go_pgo=2 GoPGO
AsyncQueryRequest: request_id=1 string, type=2 EAsyncQueryType
SelectMergeStacktracesRequest: profile_typeID=1 string, label_selector=2 string, start=3 int64, end=4 int64, max_nodes=5 int64?, format=6 EProfileFormat, stack_trace_selector=7 StackTraceSelector?, profile_id_selector=8 string*, async=9 AsyncQueryRequest?, trace_id_selector=10 string*, span_selector=11 string*
SelectMergeSpanProfileRequest: profile_typeID=1 string, label_selector=2 string, span_selector=3 string*, start=4 int64, end=5 int64, max_nodes=6 int64?, format=7 EProfileFormat
SelectMergeProfileRequest: profile_typeID=1 string, label_selector=2 string, start=3 int64, end=4 int64, max_nodes=5 int64?, stack_trace_selector=6 StackTraceSelector?, profile_id_selector=7 string*, trace_id_selector=8 string*
Level: values=1 int64*
FlameGraph: names=1 string*, levels=2 Level*, total=3 int64, max_self=4 int64
FlameGraphDiff: names=1 string*, levels=2 Level*, total=3 int64, max_self=4 int64, leftTicks=5 int64, rightTicks=6 int64
ValueType: type=1 int64, unit=2 int64
Label: key=1 int64, str=2 int64, num=3 int64, num_unit=4 int64
Sample: location_id=1 uint64*, value=2 int64*, label=3 Label*
Mapping: id=1 uint64, memory_start=2 uint64, memory_limit=3 uint64, file_offset=4 uint64, filename=5 int64, build_id=6 int64, has_functions=7 bool, has_filenames=8 bool, has_line_numbers=9 bool, has_inline_frames=10 bool
Line: function_id=1 uint64, line=2 int64
Location: id=1 uint64, mapping_id=2 uint64, address=3 uint64, line=4 Line*, is_folded=5 bool
Function: id=1 uint64, name=2 int64, system_name=3 int64, filename=4 int64, start_line=5 int64
Profile: sample_type=1 ValueType*, sample=2 Sample*, mapping=3 Mapping*, location=4 Location*, function=5 Function*, string_table=6 string*, drop_frames=7 int64, keep_frames=8 int64, time_nanos=9 int64, duration_nanos=10 int64, period_type=11 ValueType, period=12 int64, comment=13 int64*, default_sample_type=14 int64
PprofProfile: profile=1 Profile
SelectMergeStacktracesResponse: flamegraph=1 FlameGraph, tree=2 bytes, dot=3 string, pprof=5 PprofProfile
SelectMergeSpanProfileResponse: flamegraph=1 FlameGraph, tree=2 bytes
DiffRequest: left=1 SelectMergeStacktracesRequest, right=2 SelectMergeStacktracesRequest
DiffResponse: flamegraph=1 FlameGraphDiff
SelectSeriesRequest: profile_typeID=1 string, label_selector=2 string, start=3 int64, end=4 int64, group_by=5 string*, step=6 double, aggregation=7 EAggregation?, stack_trace_selector=8 StackTraceSelector?, limit=9 int64?, exemplar_type=10 EExemplarType
Exemplar: timestamp=1 int64, profile_id=2 string, span_id=3 string, value=4 int64, labels=5 LabelPair*, trace_id=6 string
ProfileAnnotation: key=1 string, value=2 string
Point: value=1 double, timestamp=2 int64, annotations=3 ProfileAnnotation*, exemplars=4 Exemplar*
Series: labels=1 LabelPair*, points=2 Point*
SelectSeriesResponse: series=1 Series*
SelectHeatmapRequest: profile_typeID=1 string, label_selector=2 string, start=3 int64, end=4 int64, step=5 double, group_by=6 string*, query_type=7 EHeatmapQueryType, exemplar_type=8 EExemplarType, limit=9 int64?
HeatmapSlot: timestamp=1 int64, y_min=2 double*, counts=3 int32*, exemplars=4 Exemplar*
HeatmapSeries: labels=1 LabelPair*, slots=2 HeatmapSlot*
SelectHeatmapResponse: series=1 HeatmapSeries*
GetProfileStatsRequest:
GetProfileStatsResponse: data_ingested=1 bool, oldest_profile_time=2 int64, newest_profile_time=3 int64
AnalyzeQueryRequest: start=2 int64, end=3 int64, query=4 string
QueryScope: component_type=1 string, component_count=2 uint64, block_count=3 uint64, series_count=4 uint64, profile_count=5 uint64, sample_count=6 uint64, index_bytes=7 uint64, profile_bytes=8 uint64, symbol_bytes=9 uint64
QueryImpact: total_bytes_in_time_range=2 uint64, total_queried_series=3 uint64, deduplication_needed=4 bool
AnalyzeQueryResponse: query_scopes=1 QueryScope*, query_impact=2 QueryImpact
Setting: name=1 string, value=2 string, modifiedAt=3 int64
SetSettingsRequest: setting=1 Setting
SetSettingsResponse: setting=1 Setting
GetSettingsRequest:
GetSettingsResponse: settings=1 Setting*
GetFeatureFlagsRequest:
FeatureFlag: name=1 string, enabled=2 bool, description=3 string?, documentation_url=4 string?
GetFeatureFlagsResponse: feature_flags=1 FeatureFlag*
VersionRequest:
VersionResponse: QuerierAPI=1 uint64
HealthCheckRequest: service=1 string
HealthCheckResponse: status=1 EServing
"""
ENUMS = """
EAsyncQueryType: ASYNC_QUERY_TYPE_DISABLED ASYNC_QUERY_TYPE_FORCE
EProfileFormat: PROFILE_FORMAT_UNSPECIFIED PROFILE_FORMAT_FLAMEGRAPH PROFILE_FORMAT_TREE PROFILE_FORMAT_DOT PROFILE_FORMAT_PPROF
EAggregation: TIME_SERIES_AGGREGATION_TYPE_SUM TIME_SERIES_AGGREGATION_TYPE_AVERAGE
EExemplarType: EXEMPLAR_TYPE_UNSPECIFIED EXEMPLAR_TYPE_NONE EXEMPLAR_TYPE_INDIVIDUAL EXEMPLAR_TYPE_SPAN
EHeatmapQueryType: HEATMAP_QUERY_TYPE_UNSPECIFIED HEATMAP_QUERY_TYPE_INDIVIDUAL HEATMAP_QUERY_TYPE_SPAN
EServing: UNKNOWN SERVING NOT_SERVING
"""


def load():
    """{name: class}."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    file = descriptor_pb2.FileDescriptorProto(name="kiln_test.proto", package="kiln_test", syntax="proto3")
    for line in ENUMS.strip().splitlines():
        name, _, words = line.partition(":")
        enum = file.enum_type.add(name=name)
        for number, word in enumerate(words.split()):
            enum.value.add(name=word, number=number)
    for line in MESSAGES.strip().splitlines():
        name, _, words = line.partition(":")
        message = file.message_type.add(name=name)
        for word in filter(None, (w.strip() for w in words.split(","))):
            add_field(message, word)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {m.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"kiln_test.{m.name}"))
            for m in file.message_type}


def add_field(message, word):
    head, kind = word.split()
    name, _, number = head.partition("=")
    field = message.field.add(name=name, number=int(number), label=3 if kind.endswith("*") else 1)
    if kind.endswith("?"):
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}")
    kind = kind.rstrip("*?")
    if kind[0].isupper():
        field.type = 14 if kind[0] == "E" and kind[1].isupper() else 11
        field.type_name = f".kiln_test.{kind}"
    else:
        field.type = {"double": 1, "int64": 3, "uint64": 4, "int32": 5, "bool": 8, "string": 9, "bytes": 12, "uint32": 13}[kind]

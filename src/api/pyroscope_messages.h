/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope_messages - the messages of Pyroscope's services: what a request says, and the tables
 * that read requests and turn answers into JSON (api/protojson.h).
 *
 * All requests are one struct, of which each fills a part: they ask the same things.
 *
 * Threads: constant.
 */
#ifndef KILN_API_PYROSCOPE_MESSAGES_H
#define KILN_API_PYROSCOPE_MESSAGES_H

#include "api/protojson.h"

enum kiln_pyro_format {
    KILN_PYRO_UNSPECIFIED,
    KILN_PYRO_FLAMEGRAPH,
    KILN_PYRO_TREE,
    KILN_PYRO_DOT,
    KILN_PYRO_PPROF,
    /* only by name: their numbers are nowhere published */
    KILN_PYRO_FUNCTIONS = 1001,
    KILN_PYRO_SANDWICH,
};

enum kiln_pyro_exemplars {
    KILN_PYRO_EXEMPLARS_UNSPECIFIED,
    KILN_PYRO_EXEMPLARS_NONE,
    KILN_PYRO_EXEMPLARS_INDIVIDUAL,
    KILN_PYRO_EXEMPLARS_SPAN,
};

struct kiln_pyro_request {
    int64_t start_ms, end_ms;
    struct kiln_str name, value; /* a label's, a setting's */
    struct kiln_texts matchers, label_names;
    struct kiln_str type, selector, query;
    struct kiln_str also; /* a selector of ours, beside `selector`; no request has it */
    int64_t max_nodes;
    int64_t format;
    struct kiln_texts call_site;
    struct kiln_texts with, without, with_regexes, without_regexes;
    int64_t keep_locations;
    bool aggregate_callees, go_pgo;
    struct kiln_texts profile_ids, trace_ids, span_ids;
    int64_t async;
    struct kiln_str sandwich;
    struct kiln_texts group_by;
    double step_s;
    int64_t aggregation, limit, exemplars, heatmap;
    struct kiln_pyro_request *left, *right;
    bool has_setting;
    int64_t modified_ms;
    /* ad hoc profiles */
    struct kiln_str id, left_id, right_id, profile;
};

/* ---- requests ---- */

extern const struct kiln_message kiln_pyro_nothing; /* no field at all: also answers */
extern const struct kiln_message kiln_pyro_types_request;
extern const struct kiln_message kiln_pyro_names_request;
extern const struct kiln_message kiln_pyro_values_request;
extern const struct kiln_message kiln_pyro_series_request;
extern const struct kiln_message kiln_pyro_stacks_request;
extern const struct kiln_message kiln_pyro_span_request;
extern const struct kiln_message kiln_pyro_profile_request;
extern const struct kiln_message kiln_pyro_timeline_request;
extern const struct kiln_message kiln_pyro_heatmap_request;
extern const struct kiln_message kiln_pyro_diff_request;
extern const struct kiln_message kiln_pyro_analyze_request;
extern const struct kiln_message kiln_pyro_set_request;
extern const struct kiln_message kiln_pyro_named_request; /* name = 1 */
extern const struct kiln_message kiln_pyro_upload_request;
extern const struct kiln_message kiln_pyro_adhoc_request;
extern const struct kiln_message kiln_pyro_adhoc_diff_request;

/* ---- answers ---- */

extern const struct kiln_message kiln_pyro_types_answer;
extern const struct kiln_message kiln_pyro_names_answer;
extern const struct kiln_message kiln_pyro_series_answer;
extern const struct kiln_message kiln_pyro_stacks_answer;
extern const struct kiln_message kiln_pyro_profile_answer; /* google.v1.Profile */
extern const struct kiln_message kiln_pyro_timeline_answer;
extern const struct kiln_message kiln_pyro_heatmap_answer;
extern const struct kiln_message kiln_pyro_diff_answer;
extern const struct kiln_message kiln_pyro_stats_answer;
extern const struct kiln_message kiln_pyro_analyze_answer;
extern const struct kiln_message kiln_pyro_settings_answer;
extern const struct kiln_message kiln_pyro_set_answer;
extern const struct kiln_message kiln_pyro_flags_answer;
extern const struct kiln_message kiln_pyro_version_answer;
extern const struct kiln_message kiln_pyro_health_answer;
extern const struct kiln_message kiln_pyro_adhoc_answer;
extern const struct kiln_message kiln_pyro_adhoc_list_answer;
extern const struct kiln_message kiln_pyro_adhoc_diff_answer;

#endif /* KILN_API_PYROSCOPE_MESSAGES_H */

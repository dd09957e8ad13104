/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope_int - one call of Pyroscope's API while it is answered.
 *
 *   pyroscope.c           services and their methods; from a call to an answer
 *   pyroscope_ask.c       a request as a question (query/query.h), its limits and errors
 *   pyroscope_labels.c    ProfileTypes, LabelNames, LabelValues, Series
 *   pyroscope_stacks.c    SelectMergeStacktraces, ...SpanProfile, ...Profile, Diff
 *   pyroscope_formats.c   what they answer with: dot, pprof, functions; pyroscope_sandwich.c
 *   pyroscope_timeline.c  SelectSeries; pyroscope_heatmap.c  SelectHeatmap
 *   pyroscope_others.c    statistics, settings, feature flags, version, health
 *   pyroscope_adhoc.c     profiles that people upload to look at them
 *   pyroscope_render.c    the older endpoints under /pyroscope
 *
 * A method fills call->out with its answer as protobuf (fields in descending order: codec/pb.h) and
 * returns 0, or returns a negative code and leaves a sentence in call->err.
 *
 * Threads: a call has one owner.
 */
#ifndef KILN_API_PYROSCOPE_INT_H
#define KILN_API_PYROSCOPE_INT_H

#include "api/api.h"
#include "api/pyroscope_messages.h"
#include "base/json.h"
#include "codec/pb.h"
#include "core/flame_diff.h"
#include "net/rpc.h"

enum {
    KILN_PYRO_REQUEST_MAX = 4 << 20,
    KILN_PYRO_ANSWER_MAX = 256 << 20,
    KILN_PYRO_NODES = 8192, /* of a flame graph where nothing is said */
};

struct kiln_pyro_call {
    struct kiln_api *api;
    struct kiln_request *http;
    uint64_t timeout_ms; /* what the client waits for; 0: it did not say */
    uint64_t began_mono_ns;
    bool utf8_names; /* the client takes label names that are no words */
    struct kiln_pyro_request request;
    struct kiln_budget budget;
    struct kiln_arena arena;
    struct kiln_pb_out out;
    struct kiln_err err;
    uint32_t n_damaged;   /* files that the answer may lack */
    double error_percent; /* of everything: no value of the answer is too low by more */
    char note[256];
};

void kiln_pyro_call_init(struct kiln_pyro_call *call, struct kiln_api *api,
                         struct kiln_request *http);
void kiln_pyro_call_done(struct kiln_pyro_call *call);
/* Before an answer that is not an error: its header says what it lacks. */
void kiln_pyro_note(struct kiln_pyro_call *call);
/* For a part of the answer, which is paid for as the answer is. */
void kiln_pyro_buf_init(struct kiln_pyro_call *call, struct kiln_buf *buf);

/* An error of the caller's: invalid_argument. */
int kiln_pyro_refuse(struct kiln_pyro_call *call, const char *fmt, ...) KILN_PRINTF(2, 3);
/* The sentence for a person, in `text`. */
const char *kiln_pyro_message(const struct kiln_pyro_call *call, int code, char *text, size_t size);
enum kiln_rpc_code kiln_pyro_code(int code);

/* ---- asking ---- */

/* Which part of a request matters, beside its times and tenants. */
enum kiln_pyro_part {
    KILN_PYRO_MATCHERS, /* of any type */
    KILN_PYRO_SAMPLES,  /* a type, a selector, stacks, ids */
};

/* Both times are there and in order; `ret` is what is asked for. */
KILN_CHECK int kiln_pyro_window(struct kiln_pyro_call *call,
                                const struct kiln_pyro_request *request, struct kiln_window *ret);
KILN_CHECK int kiln_pyro_ask(struct kiln_pyro_call *call, const struct kiln_pyro_request *request,
                             enum kiln_pyro_part part, const struct kiln_window *window,
                             struct kiln_ask **ret_ask);
void kiln_pyro_ask_close(struct kiln_ask *ask); /* also its expressions */
/* max_nodes, checked. */
KILN_CHECK int kiln_pyro_nodes(struct kiln_pyro_call *call, int64_t wanted, uint32_t *ret);
/* The step in milliseconds, checked. */
KILN_CHECK int kiln_pyro_step(struct kiln_pyro_call *call, double step_s, uint64_t *ret_ms);

/* The series of the first window that a question could be about, by the labels that make series. */
KILN_CHECK int kiln_pyro_each_series(struct kiln_pyro_call *call,
                                     const struct kiln_question *question,
                                     int (*each)(void *context, const struct kiln_series *series,
                                                 const struct kiln_series_found *found),
                                     void *context);

/* ---- writing ---- */

/* Sorted, each once; in the arena. */
KILN_CHECK int kiln_pyro_sort_names(struct kiln_pyro_call *call, const struct kiln_texts *texts,
                                    struct kiln_texts *ret);
/* LabelPairs as elements of a field; those without a value are left out. */
void kiln_pyro_put_pairs(struct kiln_pb_out *w, uint32_t field, const struct kiln_str *names,
                         const struct kiln_str *values, uint32_t n);
/* One Exemplar as an element of a field; `without` are the names of labels that are left out. */
void kiln_pyro_put_exemplar(struct kiln_pb_out *w, uint32_t field,
                            const struct kiln_exemplar *exemplar, const struct kiln_texts *without);

/* ---- shared by methods and the older endpoints ---- */

KILN_CHECK int kiln_pyro_merge(struct kiln_pyro_call *call, const struct kiln_pyro_request *request,
                               const struct kiln_merge_wants *wants, struct kiln_ask **ret_ask,
                               struct kiln_merged **ret_merged);
/* The tree of the request, of as many nodes as it wants. */
KILN_CHECK int kiln_pyro_merge_tree(struct kiln_pyro_call *call, struct kiln_ask **ret_ask,
                                    struct kiln_merged **ret_merged);
/* The stacks of the request as a batch of one profile. */
KILN_CHECK int kiln_pyro_get_profile(struct kiln_pyro_call *call, struct kiln_ask **ret_ask,
                                     struct kiln_merged **ret_merged);
/* Memory for what is made of a batch, which goes with the ask: about twice of what it has itself.
 */
KILN_CHECK int kiln_pyro_charge(struct kiln_pyro_call *call, struct kiln_ask *ask,
                                const struct kiln_batch *batch, size_t *ret_bytes);
/* The flames of request->left and right laid over each other; close the ask when done with it. */
struct kiln_pyro_pair {
    struct kiln_ask *ask; /* of the right one: for memory */
    struct kiln_flame_diff *diff;
};
KILN_CHECK int kiln_pyro_pair_open(struct kiln_pyro_call *call, bool functions,
                                   struct kiln_pyro_pair *ret_pair);
void kiln_pyro_pair_close(struct kiln_pyro_pair *pair);

KILN_CHECK int kiln_pyro_select_timeline(struct kiln_pyro_call *call, struct kiln_ask **ret_ask,
                                         struct kiln_timeline **ret_timeline);
KILN_CHECK int kiln_pyro_dot(struct kiln_pyro_call *call, struct kiln_buf *out);

/* ---- methods ---- */

int kiln_pyro_profile_types(struct kiln_pyro_call *call);
int kiln_pyro_label_names(struct kiln_pyro_call *call);
int kiln_pyro_label_values(struct kiln_pyro_call *call);
int kiln_pyro_series(struct kiln_pyro_call *call);
int kiln_pyro_stacktraces(struct kiln_pyro_call *call);
int kiln_pyro_span_profile(struct kiln_pyro_call *call);
int kiln_pyro_merge_profile(struct kiln_pyro_call *call);
int kiln_pyro_diff(struct kiln_pyro_call *call);
int kiln_pyro_select_series(struct kiln_pyro_call *call);
int kiln_pyro_select_heatmap(struct kiln_pyro_call *call);
int kiln_pyro_profile_stats(struct kiln_pyro_call *call);
int kiln_pyro_analyze_query(struct kiln_pyro_call *call);
int kiln_pyro_settings_get(struct kiln_pyro_call *call);
int kiln_pyro_settings_set(struct kiln_pyro_call *call);
int kiln_pyro_settings_delete(struct kiln_pyro_call *call);
int kiln_pyro_feature_flags(struct kiln_pyro_call *call);
int kiln_pyro_version(struct kiln_pyro_call *call);
int kiln_pyro_health(struct kiln_pyro_call *call);
int kiln_pyro_adhoc_upload(struct kiln_pyro_call *call);
int kiln_pyro_adhoc_get(struct kiln_pyro_call *call);
int kiln_pyro_adhoc_list(struct kiln_pyro_call *call);
int kiln_pyro_adhoc_diff(struct kiln_pyro_call *call);
/* Some things are of one tenant: invalid_argument for several. */
KILN_CHECK int kiln_pyro_one_tenant(struct kiln_pyro_call *call, struct kiln_str *ret);

/* ---- formats ---- */

KILN_CHECK int kiln_pyro_put_pprof(struct kiln_pyro_call *call);
KILN_CHECK int kiln_pyro_put_functions(struct kiln_pyro_call *call);
KILN_CHECK int kiln_pyro_put_sandwich(struct kiln_pyro_call *call);
void kiln_pyro_put_diff_functions(struct kiln_pyro_call *call, const struct kiln_flame_diff *diff);

/* Members of the older endpoints' JSON: the flame graph with what it is of, and what it has not. */
struct kiln_levels;
void kiln_pyro_put_flamebearer(struct kiln_json_out *w, const struct kiln_levels *levels,
                               const struct kiln_type *type);
void kiln_pyro_put_ticks(struct kiln_json_out *w, const struct kiln_levels *levels);

KILN_CHECK int kiln_pyro_add_render(struct kiln_api *api, struct kiln_router *router);

#endif /* KILN_API_PYROSCOPE_INT_H */

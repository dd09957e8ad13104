/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks in other shapes than a flame graph: dot, pprof (whole, or cut for Go's profile-guided
 * optimisation), a list of functions, the callers and callees of one.
 */
#include <errno.h>

#include "api/pyroscope_int.h"
#include "api/pyroscope_own.h"
#include "codec/dot.h"
#include "codec/pprof.h"
#include "core/merge.h"
#include "core/remap.h"

#define DOT_NODES 100

int kiln_pyro_get_profile(struct kiln_pyro_call *call, struct kiln_ask **ret_ask,
                          struct kiln_merged **ret_merged)
{
    struct kiln_merge_wants wants = {.profile = true, .exact = true};

    return kiln_pyro_merge(call, &call->request, &wants, ret_ask, ret_merged);
}

int kiln_pyro_charge(struct kiln_pyro_call *call, struct kiln_ask *ask,
                     const struct kiln_batch *batch, size_t *ret_bytes)
{
    size_t bytes = 2 * kiln_batch_bytes(batch) + ((size_t)1 << 20);
    int r = kiln_leash_take(&ask->leash, bytes);

    if (r < 0)
        return kiln_err_set(&call->err, r, NULL,
                            "there is no memory for %zu MiB more: ask for less time", bytes >> 20);
    *ret_bytes = bytes;
    return 0;
}

static bool is_empty(const struct kiln_merged *merged)
{
    return !merged->profile || merged->profile->n_samples == 0;
}

/* ---- dot ---- */

static int draw(struct kiln_pyro_call *call, struct kiln_ask *ask, struct kiln_batch *batch,
                uint32_t nodes, struct kiln_buf *out)
{
    struct kiln_view_opts wants = {0};
    struct kiln_dot_opts opts = {
        .graph.nodes_max = nodes < KILN_CALL_GRAPH_NODES_MAX ? nodes : KILN_CALL_GRAPH_NODES_MAX};
    struct kiln_view *view;
    int r = kiln_pyro_charge(call, ask, batch, &wants.memory_bytes);

    if (r < 0)
        return r;
    r = kiln_view_new(batch, &wants, &view, &call->err);
    if (r == 0) {
        r = kiln_dot_encode(view, &opts, out, &call->err);
        kiln_view_free(view);
    }
    kiln_leash_give(&ask->leash, wants.memory_bytes);
    return r;
}

int kiln_pyro_dot(struct kiln_pyro_call *call, struct kiln_buf *out)
{
    int64_t wanted = call->request.max_nodes ? call->request.max_nodes : DOT_NODES;
    struct kiln_merged *merged;
    struct kiln_ask *ask;
    uint32_t nodes;
    int r = kiln_pyro_nodes(call, wanted, &nodes);

    if (r == 0)
        r = kiln_pyro_get_profile(call, &ask, &merged);
    if (r < 0)
        return r;
    if (!is_empty(merged))
        r = draw(call, ask, merged->profile, nodes, out);
    kiln_merged_free(merged);
    kiln_pyro_ask_close(ask);
    return r;
}

/* ---- pprof ---- */

struct trimming {
    struct kiln_builder *b;
    struct kiln_remap *remap;
    const struct kiln_batch *from;
    const struct kiln_pyro_request *request;
    uint32_t *locations; /* room for one stack */
};

/* The location without its line: callees of one function become one. */
static uint32_t callee(const struct trimming *t, uint32_t location)
{
    const struct kiln_dict *dict = &t->from->dict;
    const struct kiln_location *source = &dict->locations[location];
    struct kiln_location plain = {0};
    struct kiln_line line = {0};

    if (source->n == 0)
        return kiln_remap_location(t->remap, location);
    plain.mapping = kiln_remap_mapping(t->remap, source->mapping);
    line.function = kiln_remap_function(t->remap, dict->lines[source->first].function);
    return kiln_builder_location(t->b, &plain, &line, 1);
}

static void add_trimmed(const struct trimming *t, const struct kiln_sample *sample)
{
    struct kiln_range stack = t->from->dict.stacks[sample->stack];
    int64_t keep = t->request->keep_locations;
    uint32_t n = keep > 0 && stack.n > keep ? (uint32_t)keep : stack.n;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t location = t->from->dict.frames[stack.first + i];

        t->locations[i] = i == 0 && t->request->aggregate_callees
                              ? callee(t, location)
                              : kiln_remap_location(t->remap, location);
    }
    if (n)
        kiln_builder_add_value(t->b, 0, kiln_builder_stack(t->b, t->locations, n), 0,
                               kiln_sample_total(t->from, sample));
}

static void fill_trimmed(struct trimming *t)
{
    struct kiln_profile head = kiln_remap_profile(t->remap, 0);
    uint32_t deepest = 1;

    kiln_builder_add_resource(t->b, &(struct kiln_resource){0});
    kiln_builder_add_scope(t->b, &(struct kiln_scope){0});
    kiln_builder_add_profile(t->b, &head);
    for (uint32_t i = 0; i < t->from->dict.n_stacks; i++)
        if (t->from->dict.stacks[i].n > deepest)
            deepest = t->from->dict.stacks[i].n;
    t->locations = kiln_builder_scratch(t->b, deepest * sizeof(*t->locations));
    for (uint32_t i = 0; t->locations && i < t->from->n_samples; i++)
        add_trimmed(t, &t->from->samples[i]);
}

/* Stacks cut to their innermost frames, which is all that the compiler looks at. */
static int trim(const struct kiln_batch *from, const struct kiln_pyro_request *request,
                size_t memory, struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct trimming t = {.from = from, .request = request};
    struct kiln_limits limits = kiln_limits_default;
    struct kiln_batch *batch = NULL;
    int r;

    limits.memory_bytes = memory;
    r = kiln_builder_new(&limits, &t.b);

    if (r < 0)
        return r;
    r = kiln_remap_new(t.b, from, NULL, &t.remap);
    if (r < 0) {
        kiln_builder_free(t.b);
        return r;
    }
    fill_trimmed(&t);
    kiln_remap_free(t.remap);
    r = kiln_builder_finish(t.b, &batch, err);
    if (r == 0)
        r = kiln_merge(&batch, 1, NULL, ret_batch, err);
    kiln_batch_unref(batch);
    return r;
}

static int encode(struct kiln_pyro_call *call, const struct kiln_batch *batch)
{
    struct kiln_buf pprof;
    int r;

    kiln_pyro_buf_init(call, &pprof);
    r = kiln_pprof_encode(batch, NULL, &pprof, &call->err);
    if (r == 0)
        kiln_pb_raw_bytes(&call->out, pprof.ptr, pprof.len);
    kiln_buf_done(&pprof);
    return r;
}

static int put_batch(struct kiln_pyro_call *call, struct kiln_ask *ask, struct kiln_batch *batch)
{
    struct kiln_batch *cut = NULL;
    size_t memory;
    int r = kiln_pyro_charge(call, ask, batch, &memory);

    if (r < 0)
        return r;
    if (call->request.go_pgo)
        r = trim(batch, &call->request, memory, &cut, &call->err);
    if (r == 0)
        r = encode(call, cut ? cut : batch);
    kiln_batch_unref(cut);
    kiln_leash_give(&ask->leash, memory);
    return r;
}

int kiln_pyro_put_pprof(struct kiln_pyro_call *call)
{
    struct kiln_merged *merged;
    struct kiln_ask *ask;
    int r = kiln_pyro_get_profile(call, &ask, &merged);

    if (r < 0)
        return r;
    if (!is_empty(merged))
        r = put_batch(call, ask, merged->profile);
    kiln_merged_free(merged);
    kiln_pyro_ask_close(ask);
    return r;
}

/* ---- functions ---- */

/* How many of them: max_nodes is their limit here. */
static uint32_t rows_of(const struct kiln_pyro_call *call, uint32_t n)
{
    int64_t limit = call->request.max_nodes;

    return limit > 0 && limit < n ? (uint32_t)limit : n;
}

int kiln_pyro_put_functions(struct kiln_pyro_call *call)
{
    struct kiln_merge_wants wants = {.functions = true};
    struct kiln_pb_out *w = &call->out;
    struct kiln_merged *merged;
    struct kiln_ask *ask;
    int r = kiln_pyro_merge(call, &call->request, &wants, &ask, &merged);
    size_t end = kiln_pb_mark(w);

    if (r < 0)
        return r;
    for (uint32_t i = rows_of(call, merged->flame->n_functions); i-- > 0;) {
        const struct kiln_flame_function *f = &merged->flame->functions[i];
        size_t mark = kiln_pb_mark(w);

        kiln_pb_put_number(w, KILN_OWN_TOTAL, (uint64_t)f->total);
        kiln_pb_put_number(w, KILN_OWN_SELF, (uint64_t)f->self);
        kiln_pb_put_bytes(w, KILN_OWN_NAME, merged->flame->names[f->name].name);
        kiln_pb_put_message(w, KILN_OWN_LIST, mark);
    }
    kiln_pb_put_number(w, KILN_OWN_TOTAL, (uint64_t)merged->total);
    kiln_pb_put_message(w, KILN_OWN_FUNCTIONS, end);
    kiln_merged_free(merged);
    kiln_pyro_ask_close(ask);
    return 0;
}

void kiln_pyro_put_diff_functions(struct kiln_pyro_call *call, const struct kiln_flame_diff *diff)
{
    struct kiln_pb_out *w = &call->out;
    size_t end = kiln_pb_mark(w);

    for (uint32_t i = rows_of(call, diff->n_functions); i-- > 0;) {
        const struct kiln_flame_diff_function *f = &diff->functions[i];
        size_t mark = kiln_pb_mark(w);

        kiln_pb_put_number(w, KILN_OWN_RIGHT_TOTAL, (uint64_t)f->total.right);
        kiln_pb_put_number(w, KILN_OWN_RIGHT_SELF, (uint64_t)f->self.right);
        kiln_pb_put_number(w, KILN_OWN_LEFT_TOTAL, (uint64_t)f->total.left);
        kiln_pb_put_number(w, KILN_OWN_LEFT_SELF, (uint64_t)f->self.left);
        kiln_pb_put_bytes(w, KILN_OWN_NAME, diff->names[f->name].name);
        kiln_pb_put_message(w, KILN_OWN_LIST, mark);
    }
    kiln_pb_put_number(w, KILN_OWN_RIGHT_TOTAL, (uint64_t)diff->total.right);
    kiln_pb_put_number(w, KILN_OWN_LEFT_TOTAL, (uint64_t)diff->total.left);
    kiln_pb_put_message(w, KILN_OWN_FUNCTIONS, end);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks added up.
 *
 *   SelectMergeStacktracesResponse  1 flamegraph  2 tree  3 dot  5 pprof { 1 profile }
 *   SelectMergeSpanProfileResponse  1 flamegraph  2 tree
 *   DiffResponse                    1 flamegraph (with both ticks)
 *
 * A diff compares trees of many more nodes than it shows: what one side folded away would look as
 * if it were not there.
 */
#include <errno.h>
#include <math.h>

#include "api/pyroscope_flame.h"
#include "api/pyroscope_int.h"
#include "base/clock.h"

#define DIFF_NODES 65536u /* of each side, at least */

int kiln_pyro_merge(struct kiln_pyro_call *call, const struct kiln_pyro_request *request,
                    const struct kiln_merge_wants *wants, struct kiln_ask **ret_ask,
                    struct kiln_merged **ret_merged)
{
    const struct kiln_flame *flame;
    struct kiln_window window;
    struct kiln_ask *ask;
    int r = kiln_pyro_window(call, request, &window);

    if (r == 0)
        r = kiln_pyro_ask(call, request, KILN_PYRO_SAMPLES, &window, &ask);
    if (r < 0)
        return r;
    r = kiln_ask_merge(ask, wants, ret_merged, &call->err);
    if (r < 0) {
        kiln_pyro_ask_close(ask);
        return r;
    }
    *ret_ask = ask;
    flame = (*ret_merged)->flame;
    if (flame)
        call->error_percent =
            fmax(call->error_percent, kiln_flame_percent(flame, flame->error_bound));
    return 0;
}

int kiln_pyro_merge_tree(struct kiln_pyro_call *call, struct kiln_ask **ret_ask,
                         struct kiln_merged **ret_merged)
{
    struct kiln_merge_wants wants = {0};
    int r = kiln_pyro_nodes(call, call->request.max_nodes, &wants.nodes_max);

    return r < 0 ? r : kiln_pyro_merge(call, &call->request, &wants, ret_ask, ret_merged);
}

static int put_flame(struct kiln_pyro_call *call, const struct kiln_flame *flame,
                     struct kiln_leash *leash)
{
    size_t end = kiln_pb_mark(&call->out);
    struct kiln_levels levels;
    int r = kiln_levels_init(&levels, flame, leash);

    if (r < 0)
        return r;
    kiln_levels_put(&levels, &call->out);
    kiln_pb_put_message(&call->out, 1, end);
    kiln_levels_done(&levels);
    return 0;
}

static void put_tree(struct kiln_pyro_call *call, const struct kiln_flame *flame)
{
    size_t end = kiln_pb_mark(&call->out);

    kiln_tree_bytes_put(flame, &call->out);
    if (kiln_pb_mark(&call->out) != end)
        kiln_pb_put_message(&call->out, 2, end);
}

/* A flame graph, or a tree. */
static int put_nodes(struct kiln_pyro_call *call)
{
    struct kiln_merged *merged;
    struct kiln_ask *ask;
    int r = kiln_pyro_merge_tree(call, &ask, &merged);

    if (r < 0)
        return r;
    if (call->request.format == KILN_PYRO_TREE)
        put_tree(call, merged->flame);
    else
        r = put_flame(call, merged->flame, &ask->leash);
    kiln_merged_free(merged);
    kiln_pyro_ask_close(ask);
    return r;
}

static int put_dot(struct kiln_pyro_call *call)
{
    struct kiln_buf dot;
    int r;

    kiln_pyro_buf_init(call, &dot);
    r = kiln_pyro_dot(call, &dot);
    if (r == 0)
        kiln_pb_put_bytes(&call->out, 3, kiln_buf_str(&dot));
    kiln_buf_done(&dot);
    return r;
}

static int put_pprof(struct kiln_pyro_call *call)
{
    size_t end = kiln_pb_mark(&call->out);
    int r = kiln_pyro_put_pprof(call);

    kiln_pb_put_message(&call->out, 1, end);
    kiln_pb_put_message(&call->out, 5, end);
    return r;
}

int kiln_pyro_stacktraces(struct kiln_pyro_call *call)
{
    if (call->request.async)
        return kiln_err_set(&call->err, KILN_E_UNSUPPORTED, NULL,
                            "asynchronous queries are not supported");
    switch (call->request.format) {
    case KILN_PYRO_DOT:
        return put_dot(call);
    case KILN_PYRO_PPROF:
        return put_pprof(call);
    case KILN_PYRO_FUNCTIONS:
        return kiln_pyro_put_functions(call);
    case KILN_PYRO_SANDWICH:
        return kiln_pyro_put_sandwich(call);
    default:
        return put_nodes(call);
    }
}

int kiln_pyro_span_profile(struct kiln_pyro_call *call)
{
    return put_nodes(call);
}

int kiln_pyro_merge_profile(struct kiln_pyro_call *call)
{
    return kiln_pyro_put_pprof(call);
}

/* ---- diffs ---- */

static int check_sides(struct kiln_pyro_call *call, uint32_t *ret_nodes)
{
    static struct kiln_pyro_request nothing; /* never written to */
    struct kiln_pyro_request *request = &call->request;
    int64_t left, right;

    if (!request->left)
        request->left = &nothing;
    if (!request->right)
        request->right = &nothing;
    left = request->left->max_nodes;
    right = request->right->max_nodes;
    return kiln_pyro_nodes(call, left > right ? left : right, ret_nodes);
}

static int lay_over(const struct kiln_merged *left, const struct kiln_merged *right, uint32_t nodes,
                    struct kiln_flame_diff **ret_diff, struct kiln_err *err)
{
    struct kiln_flame_diff_opts opts = {
        .count_left = left->basis.count, .count_right = right->basis.count, .nodes_max = nodes};

    return kiln_flame_diff_new(left->flame, right->flame, &opts, ret_diff, err);
}

int kiln_pyro_pair_open(struct kiln_pyro_call *call, bool functions,
                        struct kiln_pyro_pair *ret_pair)
{
    struct kiln_merge_wants wants = {.functions = functions};
    struct kiln_merged *left, *right;
    struct kiln_ask *left_ask;
    uint32_t nodes, max = kiln_querier_limits(call->api->querier)->nodes_max;
    int r = check_sides(call, &nodes);

    if (r < 0)
        return r;
    if (!functions)
        wants.nodes_max = nodes > max / 4 ? max : nodes * 4 > DIFF_NODES ? nodes * 4 : DIFF_NODES;
    r = kiln_pyro_merge(call, call->request.left, &wants, &left_ask, &left);
    if (r < 0)
        return r;
    r = kiln_pyro_merge(call, call->request.right, &wants, &ret_pair->ask, &right);
    if (r == 0) {
        r = lay_over(left, right, nodes, &ret_pair->diff, &call->err);
        kiln_merged_free(right);
        if (r < 0)
            kiln_pyro_ask_close(ret_pair->ask);
    }
    kiln_merged_free(left);
    kiln_pyro_ask_close(left_ask);
    return r;
}

void kiln_pyro_pair_close(struct kiln_pyro_pair *pair)
{
    kiln_flame_diff_free(pair->diff);
    kiln_pyro_ask_close(pair->ask);
}

int kiln_pyro_diff(struct kiln_pyro_call *call)
{
    const struct kiln_pyro_request *request = &call->request;
    bool functions = request->format == KILN_PYRO_FUNCTIONS ||
                     (request->left && request->left->format == KILN_PYRO_FUNCTIONS);
    size_t end = kiln_pb_mark(&call->out);
    struct kiln_pyro_pair pair;
    struct kiln_levels levels;
    int r = kiln_pyro_pair_open(call, functions, &pair);

    if (r < 0)
        return r;
    if (functions) {
        kiln_pyro_put_diff_functions(call, pair.diff);
    } else {
        r = kiln_levels_init_diff(&levels, pair.diff, &pair.ask->leash);
        if (r == 0) {
            kiln_levels_put(&levels, &call->out);
            kiln_pb_put_message(&call->out, 1, end);
            kiln_levels_done(&levels);
        }
    }
    kiln_pyro_pair_close(&pair);
    return r;
}

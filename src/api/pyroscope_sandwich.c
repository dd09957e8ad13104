/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callers and the callees of one function, each as a tree whose root is the function.
 *
 * The nodes of a tree lie in preorder and protobuf is written backwards: whoever goes from the last
 * node to the first has written all of a node's children when he comes to the node, and nothing
 * else since the last of its subtree was begun.
 */
#include <errno.h>

#include "api/pyroscope_int.h"
#include "api/pyroscope_own.h"
#include "core/top.h"

#define DEPTH_MAX 200u /* deeper JSON is for no reader */

static bool is_other(struct kiln_str name)
{
    return kiln_str_eq(name, KILN_STR("(other)"));
}

/* Names of the answer, as they are met. */
struct names {
    struct kiln_str *list;
    uint32_t n;
    uint32_t *index; /* of the frames of the tree at hand, and one; 0: not met yet */
};

static uint32_t name_of(struct names *names, const struct kiln_tree *tree, uint32_t frame)
{
    struct kiln_str name = tree->frames[frame].name;

    if (names->index[frame] == 0) {
        names->list[names->n++] = is_other(name) ? KILN_STR("other") : name;
        names->index[frame] = names->n;
    }
    return names->index[frame] - 1;
}

static void put_node(struct kiln_pb_out *w, struct names *names, const struct kiln_tree *tree,
                     uint32_t i)
{
    const struct kiln_tree_node *node = &tree->nodes[i];
    bool cut = is_other(tree->frames[node->frame].name);

    kiln_pb_put_number(w, KILN_OWN_TRUNCATED,
                       cut || (node->depth == DEPTH_MAX && node->subtree > 1));
    kiln_pb_put_number(w, KILN_OWN_TOTAL, (uint64_t)node->total_b);
    kiln_pb_put_number(w, KILN_OWN_SELF, (uint64_t)node->self_b);
    kiln_pb_put_number(w, KILN_OWN_NAME, name_of(names, tree, node->frame));
}

/* From the function, which is the only child of the tree's root. */
static int put_tree(struct kiln_pb_out *w, struct names *names, const struct kiln_tree *tree,
                    uint32_t field)
{
    size_t *marks = kiln_calloc(tree->n_nodes, sizeof(*marks)); /* before each node was written */
    int r;

    names->index = kiln_calloc((size_t)tree->n_frames + 1, sizeof(*names->index));
    for (uint32_t i = tree->n_nodes; marks && names->index && i-- > 1;) {
        marks[i] = kiln_pb_mark(w);
        if (tree->nodes[i].depth > DEPTH_MAX)
            continue;
        put_node(w, names, tree, i);
        kiln_pb_put_message(w, i == 1 ? field : KILN_OWN_LIST,
                            marks[i + tree->nodes[i].subtree - 1]);
    }
    r = marks && names->index ? 0 : -ENOMEM;
    kiln_free(names->index);
    kiln_free(marks);
    return r;
}

static int put_halves(struct kiln_pyro_call *call, const struct kiln_tree *callers,
                      const struct kiln_tree *callees)
{
    struct kiln_pb_out *w = &call->out;
    size_t end = kiln_pb_mark(w);
    struct names names = {0};
    int r;

    if (callees->n_nodes < 2)
        return 0;
    names.list = kiln_calloc((size_t)callers->n_frames + callees->n_frames, sizeof(*names.list));
    r = names.list ? put_tree(w, &names, callees, KILN_OWN_CALLEES) : -ENOMEM;
    if (r == 0)
        r = put_tree(w, &names, callers, KILN_OWN_CALLERS);
    kiln_pb_put_number(w, KILN_OWN_TOTAL, (uint64_t)callees->nodes[1].total_b);
    kiln_pb_put_number(w, KILN_OWN_SELF, (uint64_t)callees->nodes[1].self_b);
    for (uint32_t i = names.n; i-- > 0;)
        kiln_pb_put_element(w, KILN_OWN_NAME, names.list[i]);
    kiln_pb_put_message(w, KILN_OWN_SANDWICH, end);
    kiln_free(names.list);
    return r;
}

/* An expression for exactly this name. */
static void quote(struct kiln_str name, struct kiln_buf *out)
{
    kiln_buf_puts(out, "\\A");
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] > 0 && strchr("\\^$.[]|()?*+{}#-", name.ptr[i]))
            kiln_buf_putc(out, '\\');
        kiln_buf_putc(out, name.ptr[i]);
    }
    kiln_buf_puts(out, "\\z");
}

static int put_sandwich(struct kiln_pyro_call *call, const struct kiln_view *view, uint32_t nodes)
{
    struct kiln_tree_opts opts = {.order = KILN_TREE_BY_NAME, .nodes_max = nodes};
    struct kiln_tree *callers, *callees;
    struct kiln_buf pattern;
    int r;

    kiln_buf_init(&pattern, 65536);
    quote(call->request.sandwich, &pattern);
    r = pattern.error;
    if (r == 0)
        r = kiln_sandwich(view, kiln_buf_str(&pattern), &opts, &callers, &callees, &call->err);
    kiln_buf_done(&pattern);
    if (r < 0)
        return r;
    r = put_halves(call, callers, callees);
    kiln_tree_free(callers);
    kiln_tree_free(callees);
    return r;
}

static int answer(struct kiln_pyro_call *call, struct kiln_ask *ask, struct kiln_batch *batch,
                  uint32_t nodes)
{
    struct kiln_view_opts opts = {0};
    struct kiln_view *view;
    int r = kiln_pyro_charge(call, ask, batch, &opts.memory_bytes);

    if (r < 0)
        return r;
    r = kiln_view_new(batch, &opts, &view, &call->err);
    if (r == 0) {
        r = put_sandwich(call, view, nodes);
        kiln_view_free(view);
    }
    kiln_leash_give(&ask->leash, opts.memory_bytes);
    return r;
}

int kiln_pyro_put_sandwich(struct kiln_pyro_call *call)
{
    struct kiln_merged *merged;
    struct kiln_ask *ask;
    uint32_t nodes;
    int r = kiln_pyro_nodes(call, call->request.max_nodes, &nodes);

    if (r == 0 && call->request.sandwich.len == 0)
        r = kiln_pyro_refuse(call, "sandwich_function is required");
    if (r < 0)
        return r;
    if (call->request.with.n == 0) { /* other stacks do not matter */
        call->request.with.items = &call->request.sandwich;
        call->request.with.n = 1;
    }
    r = kiln_pyro_get_profile(call, &ask, &merged);
    if (r < 0)
        return r;
    if (merged->profile && merged->profile->n_samples)
        r = answer(call, ask, merged->profile, nodes);
    kiln_merged_free(merged);
    kiln_pyro_ask_close(ask);
    return r;
}

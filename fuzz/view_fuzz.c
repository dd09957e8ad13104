/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views, trees, tops, sandwiches and diffs of whatever collapsed stacks or a pprof hold.
 *
 * The first byte of an input chooses granularity, folding and the decoder, the rest of the first
 * line is an expression, and what follows is the profile.
 */
#include "codec/collapsed.h"
#include "codec/pprof.h"
#include "core/diff.h"
#include "core/top.h"
#include "decode_fuzz.h"

#define MEMORY_BYTES (64u << 20)

static void check_tree(const struct kiln_tree *tree)
{
    FUZZ_CHECK(tree->nodes[0].subtree == tree->n_nodes);
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const struct kiln_tree_node *node = &tree->nodes[i];
        const struct kiln_tree_node *parent = &tree->nodes[node->parent];

        FUZZ_CHECK(node->parent < i && node->depth == parent->depth + 1);
        FUZZ_CHECK(node->frame < tree->n_frames && tree->frames[node->frame].name.len > 0);
        FUZZ_CHECK(i + node->subtree <= node->parent + parent->subtree);
    }
}

static void look(const struct kiln_view *view, const struct kiln_tree_opts *opts,
                 struct kiln_str pattern)
{
    struct kiln_tree *tree, *callees;
    struct kiln_top_row *rows;
    uint32_t n;

    if (kiln_tree_new(view, opts, &tree, NULL) == 0) {
        check_tree(tree);
        kiln_tree_free(tree);
    }
    if (kiln_sandwich(view, pattern, opts, &tree, &callees, NULL) == 0) {
        check_tree(tree);
        check_tree(callees);
        kiln_tree_free(tree);
        kiln_tree_free(callees);
    }
    if (kiln_top(view, KILN_TOP_BY_SELF, &rows, &n) == 0) {
        FUZZ_CHECK(n == view->n_frames);
        kiln_free(rows);
    }
}

static void compare(const struct kiln_view *a, const struct kiln_view *b,
                    const struct kiln_tree_opts *opts)
{
    struct kiln_tree *tree;
    struct kiln_diff *diff;

    if (kiln_diff_new(a, b, KILN_NORMALIZE_TOTAL, &diff, NULL) < 0)
        return;
    FUZZ_CHECK(diff->n_rows >= b->n_frames || a != b);
    if (kiln_tree_new_diff(a, b, diff->scale_a, opts, &tree, NULL) == 0) {
        check_tree(tree);
        kiln_tree_free(tree);
    }
    kiln_diff_free(diff);
}

static void look_at(struct kiln_batch *batch, unsigned bits, struct kiln_str pattern)
{
    const struct kiln_tree_opts tree_opts = {
        .from_leaf = bits & 4, .nodes_max = bits & 8 ? 5 : 0, .memory_bytes = MEMORY_BYTES};
    struct kiln_view_opts opts = {.granularity = (enum kiln_granularity)(bits & 3),
                                  .memory_bytes = MEMORY_BYTES};
    struct kiln_view *whole, *part;

    if (kiln_view_new(batch, &opts, &whole, NULL) < 0)
        return;
    look(whole, &tree_opts, pattern);
    *(bits & 16 ? &opts.focus : &opts.hide) = pattern;
    opts.labels = &pattern;
    opts.n_labels = bits & 32 ? 1 : 0;
    if (kiln_view_new(batch, &opts, &part, NULL) == 0) {
        FUZZ_CHECK(part->total_unfiltered == whole->total_unfiltered);
        look(part, &tree_opts, KILN_STR("a"));
        compare(whole, part, &tree_opts);
        kiln_view_free(part);
    }
    kiln_view_free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str rest = {(const char *)data, size};
    struct kiln_str line = kiln_str_cut(&rest, '\n');
    unsigned bits = size ? data[0] : 0;
    struct kiln_batch *batch;

    if (!rest.ptr || !line.len)
        return 0;
    batch = kiln_fuzz_decode(bits & 64 ? kiln_pprof_decode : kiln_collapsed_decode, rest);
    if (batch)
        look_at(batch, bits, (struct kiln_str){line.ptr + 1, line.len - 1});
    kiln_batch_unref(batch);
    return 0;
}

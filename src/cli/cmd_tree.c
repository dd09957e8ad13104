/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/report.h"
#include "codec/text_tree.h"
#include "core/tree.h"

/*
 * Columns before the names, and how many a name has at least; at most it has more than any compiler
 * makes, for a tree repeats a name wherever it occurs.
 */
enum { NUMBER_COLUMNS = 54, NAME_COLUMNS_MIN = 20, NAME_COLUMNS_MAX = 4096 };

struct printer {
    struct kiln_cli *cli;
    const struct kiln_view *view;
    const struct kiln_tree *tree;
    double threshold; /* nodes below are left out */
};

/* ---- which nodes ---- */

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x < y) - (x > y);
}

/* The total of the n-th largest node: nodes from there on are a connected tree, as totals only
 * shrink downwards.  Negative on failure. */
static double nth_largest(const struct kiln_tree *tree, uint32_t n)
{
    double *totals = kiln_malloc(tree->n_nodes * sizeof(*totals));
    double answer;

    if (!totals)
        return -1;
    for (uint32_t i = 0; i < tree->n_nodes; i++)
        totals[i] = fabs((double)tree->nodes[i].total_b);
    qsort(totals, tree->n_nodes, sizeof(*totals), descending);
    answer = totals[n];
    kiln_free(totals);
    return answer;
}

static int set_threshold(struct printer *p)
{
    const struct kiln_args *args = &p->cli->args;
    double by_share = args->min_share / 100 * fabs((double)p->tree->nodes[0].total_b);
    double by_count = 0;

    if (args->limit && args->limit < p->tree->n_nodes)
        by_count = nth_largest(p->tree, args->limit);
    p->threshold = by_share > by_count ? by_share : by_count;
    return by_count < 0 ? -ENOMEM : 0;
}

/* ---- text ---- */

static int print_text(const struct printer *p, struct kiln_err *err)
{
    const struct kiln_args *args = &p->cli->args;
    double share = kiln_share(p->threshold, fabs((double)p->tree->nodes[0].total_b));
    uint32_t columns = p->cli->term.width;
    struct kiln_text_tree_opts opts = {
        .depth_max = args->depth,
        .min_share = share > 0 ? share : -1,
        .colour = p->cli->term.color,
        .fit = true,
    };

    if (columns)
        opts.name_chars = columns > NUMBER_COLUMNS + NAME_COLUMNS_MIN ? columns - NUMBER_COLUMNS
                                                                      : NAME_COLUMNS_MIN;
    else
        opts.name_chars = NAME_COLUMNS_MAX;
    return kiln_text_tree_encode(p->view, p->tree, &opts, &p->cli->out, err);
}

/* ---- JSON ---- */

static bool is_shown(const struct printer *p, uint32_t i)
{
    const struct kiln_tree_node *node = &p->tree->nodes[i];
    uint32_t depth_max = p->cli->args.depth ? p->cli->args.depth : UINT32_MAX;

    return node->depth <= depth_max && fabs((double)node->total_b) >= p->threshold;
}

static void put_node(struct kiln_json_out *w, const struct printer *p, uint32_t i)
{
    const struct kiln_tree_node *node = &p->tree->nodes[i];

    kiln_json_put_object(w);
    kiln_json_put_name(w, "depth");
    kiln_json_put_u64(w, node->depth);
    kiln_json_put_frame(w, &p->tree->frames[node->frame]);
    kiln_json_put_name(w, "self");
    kiln_json_put_i64(w, node->self_b);
    kiln_json_put_name(w, "total");
    kiln_json_put_i64(w, node->total_b);
    kiln_json_end_object(w);
}

static void print_json(const struct printer *p)
{
    struct kiln_json_out w;
    uint32_t hidden = 0;

    kiln_json_out_init(&w, &p->cli->out, 2);
    kiln_json_put_object(&w);
    kiln_json_put_view(&w, p->view);
    kiln_json_put_name(&w, "nodes");
    kiln_json_put_array(&w);
    for (uint32_t i = 1; i < p->tree->n_nodes;) {
        if (is_shown(p, i)) {
            put_node(&w, p, i++);
        } else {
            hidden += p->tree->nodes[i].subtree;
            i += p->tree->nodes[i].subtree;
        }
    }
    kiln_json_end_array(&w);
    kiln_json_put_name(&w, "hidden");
    kiln_json_put_u64(&w, hidden);
    kiln_json_end_object(&w);
    kiln_buf_putc(&p->cli->out, '\n');
}

/* ---- the command ---- */

static int make_tree(const struct kiln_cli *cli, const struct kiln_view *view,
                     struct kiln_tree **ret_tree, struct kiln_err *err)
{
    const struct kiln_args *args = &cli->args;
    struct kiln_tree_opts opts = {.from_leaf = args->inverted};
    const char *start = args->callers ? args->callers : args->callees;
    int r;

    if (!start)
        return kiln_tree_new(view, &opts, ret_tree, err);
    r = kiln_sandwich(view, kiln_str_of(start), &opts, args->callers ? ret_tree : NULL,
                      args->callers ? NULL : ret_tree, err);
    if (r == 0 && (*ret_tree)->n_nodes == 1)
        r = kiln_report_no_function(start, err);
    return r;
}

static int print(struct printer *p, struct kiln_err *err)
{
    int r = set_threshold(p);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    if (!p->cli->args.json)
        return print_text(p, err);
    print_json(p);
    return 0;
}

static int run(struct kiln_cli *cli)
{
    struct kiln_err err = {0};
    struct kiln_tree *tree = NULL;
    struct kiln_view *view;
    int code = kiln_input_view_of(cli, 0, &view);
    int r;

    if (code)
        return code;
    r = make_tree(cli, view, &tree, &err);
    if (r == 0)
        r = print(&(struct printer){.cli = cli, .view = view, .tree = tree}, &err);
    kiln_tree_free(tree);
    kiln_view_free(view);
    return r < 0 ? kiln_cli_fail(NULL, &err) : KILN_EXIT_WELL;
}

static const struct kiln_option options[] = {
    KILN_OPT("min-share", 0, KILN_OPT_PERCENT, min_share, "PERCENT",
             "leave out what is below PERCENT of the whole (1)"),
    KILN_OPT_LIMIT("show only the N largest nodes"),
    KILN_OPT("depth", 'd', KILN_OPT_COUNT, depth, "N", "go down N calls at most"),
    KILN_OPT("inverted", 'i', KILN_OPT_FLAG, inverted, NULL,
             "start from the functions that cost, with their callers below them"),
    KILN_OPT("callers", 0, KILN_OPT_TEXT, callers, "REGEX",
             "start from the functions that match, with their callers below them"),
    KILN_OPT("callees", 0, KILN_OPT_TEXT, callees, "REGEX",
             "start from the functions that match, with what they call below them"),
    KILN_OPT_WIDE,
    KILN_OPT_JSON,
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Tree", options};

const struct kiln_command kiln_cmd_tree = {
    .name = "tree",
    .summary = "who calls whom, as an indented tree",
    .operands = "FILE...",
    .operands_min = 1,
    .operands_max = KILN_OPERANDS_ANY,
    .about = "Prints the call tree, the largest branch first. A function that stands right below "
             "another, without a branch, is called by it and by nothing else that is shown.",
    .groups = {&group, &kiln_group_selection, &kiln_group_input},
    .examples = {{"kiln tree examples/checkout.pb.gz", "the tree"},
                 {"kiln tree --callers mallocgc examples/checkout.pb.gz", "who allocates memory"},
                 {"kiln tree -n 12 -i examples/checkout.pb.gz",
                  "the twelve largest nodes, from the leaves"}},
    .defaults = {.min_share = 1},
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call tree as lines.  Nodes below a threshold are left out; a node that is the only one left
 * below its parent stands right under it, in the same column, so that deep stacks stay readable;
 * only siblings get a branch:
 *
 *   main
 *   serve
 *   ├─ parse
 *   │  read
 *   └─ answer
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/report.h"
#include "core/tree.h"

enum { PREFIX_BYTES_MAX = 400, BRANCH_BYTES = 5 /* "│  " */ };

struct printer {
    struct kiln_cli *cli;
    const struct kiln_view *view;
    const struct kiln_tree *tree;
    double threshold;
    uint32_t depth_max;
    uint32_t *siblings;  /* of each node: how many of its children are shown */
    uint32_t *last;      /* of each node: the last of those */
    uint32_t *prefix_at; /* of each depth: bytes of the prefix */
    char prefix[PREFIX_BYTES_MAX + BRANCH_BYTES + 1];
    uint32_t hidden;
};

static const struct kiln_column columns[] = {
    {"total", KILN_RIGHT, KILN_KEEP},
    {"total%", KILN_RIGHT, KILN_KEEP},
    {"self", KILN_RIGHT, KILN_KEEP},
    {"name", KILN_LEFT, KILN_CUT_MIDDLE},
};

static bool is_shown(const struct printer *p, uint32_t i)
{
    const struct kiln_tree_node *node = &p->tree->nodes[i];

    return node->depth <= p->depth_max && fabs((double)node->total_b) >= p->threshold;
}

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

/* A node is visited before its children: a child of a hidden node is hidden. */
static void count_children(struct printer *p)
{
    for (uint32_t i = 1; i < p->tree->n_nodes;) {
        const struct kiln_tree_node *node = &p->tree->nodes[i];

        if (!is_shown(p, i)) {
            p->hidden += node->subtree;
            i += node->subtree;
            continue;
        }
        p->siblings[node->parent]++;
        p->last[node->parent] = i;
        i++;
    }
}

/* ---- lines ---- */

static void put_name(struct printer *p, uint32_t i, struct kiln_buf *out)
{
    const struct kiln_tree_node *node = &p->tree->nodes[i];
    uint32_t at = p->prefix_at[node->depth];
    uint32_t below = at;

    kiln_buf_add(out, p->prefix, at);
    if (p->siblings[node->parent] > 1) {
        bool last = p->last[node->parent] == i;
        const char *space = last ? "   " : "│  ";

        kiln_buf_puts(out, last ? "└─ " : "├─ ");
        if (at + BRANCH_BYTES < PREFIX_BYTES_MAX) {
            memcpy(p->prefix + at, space, strlen(space));
            below += (uint32_t)strlen(space);
        }
    }
    p->prefix_at[node->depth + 1] = below;
    kiln_cli_put_safe(out, p->tree->frames[node->frame].name);
}

static void add_row(struct printer *p, struct kiln_table *table, uint32_t i)
{
    const struct kiln_tree_node *node = &p->tree->nodes[i];
    double share = kiln_share((double)node->total_b, (double)p->view->total_unfiltered);
    enum kiln_style hot =
        kiln_style_of_share(kiln_share((double)node->self_b, (double)p->view->total_unfiltered));

    kiln_report_value(kiln_table_cell(table, KILN_STYLE_PLAIN), (double)node->total_b,
                      &p->view->type);
    kiln_report_share(kiln_table_cell(table, KILN_STYLE_PLAIN), share);
    kiln_report_value(kiln_table_cell(table, hot), (double)node->self_b, &p->view->type);
    put_name(p, i, kiln_table_cell(table, KILN_STYLE_PLAIN));
}

static void print_text(struct printer *p)
{
    struct kiln_table table;

    kiln_table_init(&table, columns, KILN_ARRAY_LEN(columns));
    for (uint32_t i = 1; i < p->tree->n_nodes;) {
        bool shown = is_shown(p, i);

        if (shown)
            add_row(p, &table, i);
        i += shown ? 1 : p->tree->nodes[i].subtree;
    }
    kiln_table_print(&table, &p->cli->term, 0, &p->cli->out);
    kiln_table_done(&table);
    if (p->hidden)
        kiln_buf_printf(&p->cli->out, "... %u smaller ones (--min-share 0 shows all)\n", p->hidden);
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

static void print_json(struct printer *p)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, &p->cli->out, 2);
    kiln_json_put_object(&w);
    kiln_json_put_view(&w, p->view);
    kiln_json_put_name(&w, "hidden");
    kiln_json_put_u64(&w, p->hidden);
    kiln_json_put_name(&w, "nodes");
    kiln_json_put_array(&w);
    for (uint32_t i = 1; i < p->tree->n_nodes;) {
        bool shown = is_shown(p, i);

        if (shown)
            put_node(&w, p, i);
        i += shown ? 1 : p->tree->nodes[i].subtree;
    }
    kiln_json_end_array(&w);
    kiln_json_end_object(&w);
    kiln_buf_putc(&p->cli->out, '\n');
}

/* ---- the command ---- */

static int print(struct printer *p)
{
    int r = -ENOMEM;

    p->depth_max = p->cli->args.depth ? p->cli->args.depth : UINT32_MAX;
    p->siblings = kiln_calloc(p->tree->n_nodes, sizeof(*p->siblings));
    p->last = kiln_calloc(p->tree->n_nodes, sizeof(*p->last));
    p->prefix_at = kiln_calloc((size_t)p->tree->max_depth + 2, sizeof(*p->prefix_at));
    if (p->siblings && p->last && p->prefix_at)
        r = set_threshold(p);
    if (r == 0) {
        count_children(p);
        if (p->cli->args.json)
            print_json(p);
        else
            print_text(p);
    }
    kiln_free(p->siblings);
    kiln_free(p->last);
    kiln_free(p->prefix_at);
    return r;
}

static int make_tree(const struct kiln_cli *cli, const struct kiln_view *view,
                     struct kiln_tree **ret_tree, struct kiln_err *err)
{
    const struct kiln_args *args = &cli->args;
    struct kiln_tree_opts opts = {.from_leaf = args->inverted};

    if (args->callers)
        return kiln_sandwich(view, kiln_str_of(args->callers), &opts, ret_tree, NULL, err);
    if (args->callees)
        return kiln_sandwich(view, kiln_str_of(args->callees), &opts, NULL, ret_tree, err);
    return kiln_tree_new(view, &opts, ret_tree, err);
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
    if (r == 0) {
        struct printer p = {.cli = cli, .view = view, .tree = tree};

        if (!cli->args.json)
            kiln_report_head(cli, view, &cli->out);
        r = print(&p);
        if (r < 0)
            kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
    }
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/output.h"
#include "codec/callgraph.h"
#include "codec/dot.h"

/* In percent on the command line; there 0 means everything, in the options it means the default. */
static double share_of(double percent)
{
    return percent > 0 ? percent / 100 : -1;
}

static int draw(struct kiln_cli *cli, const struct kiln_view *view, enum kiln_format format,
                struct kiln_err *err)
{
    struct kiln_call_graph_opts graph = {
        .nodes_max = cli->args.nodes,
        .node_share = share_of(cli->args.min_share),
    };
    struct kiln_callgraph_opts svg = {.title = cli->args.title, .graph = graph};
    struct kiln_dot_opts dot = {.title = cli->args.title, .graph = graph};

    if (format == KILN_FORMAT_DOT)
        return kiln_dot_encode(view, &dot, &cli->out, err);
    return kiln_callgraph_encode(view, &svg, &cli->out, err);
}

static int run(struct kiln_cli *cli)
{
    struct kiln_err err = {0};
    enum kiln_format format;
    struct kiln_view *view;
    int code = kiln_output_format(cli, KILN_FORMAT_SVG, &format);
    int r;

    if (code)
        return code;
    if (format != KILN_FORMAT_SVG && format != KILN_FORMAT_DOT)
        return kiln_cli_usage(cli->command, "a graph is svg or dot, not %s",
                              kiln_format_info(format)->name);
    code = kiln_input_view_of(cli, 0, &view);
    if (code)
        return code;
    r = draw(cli, view, format, &err);
    kiln_view_free(view);
    return r < 0 ? kiln_cli_fail(NULL, &err) : kiln_output_deliver(cli, format);
}

static const struct kiln_option options[] = {
    KILN_OPT("nodes", 'n', KILN_OPT_COUNT, nodes, "N", "draw N functions at most (80)"),
    KILN_OPT("min-share", 0, KILN_OPT_PERCENT, min_share, "PERCENT",
             "leave out functions below PERCENT of the whole (0.5)"),
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Graph", options};

const struct kiln_command kiln_cmd_graph = {
    .name = "graph",
    .summary = "draw the call graph, as SVG or for Graphviz",
    .operands = "FILE...",
    .operands_min = 1,
    .operands_max = KILN_OPERANDS_ANY,
    .about =
        "Draws each function once, with arrows to what it calls, as wide as what passes through "
        "them. --to dot writes the input of Graphviz instead.",
    .groups = {&group, &kiln_group_output, &kiln_group_selection, &kiln_group_input},
    .examples = {{"kiln graph examples/checkout.pb.gz -o /tmp/graph.svg", "the whole program"},
                 {"kiln graph --focus sql --to dot examples/checkout.pb.gz",
                  "the way to the database, for Graphviz"}},
    .defaults = {.min_share = 0.5},
    .run = run,
};

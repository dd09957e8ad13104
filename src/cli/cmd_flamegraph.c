/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/output.h"
#include "codec/svg.h"

static struct kiln_svg_opts svg_opts(const struct kiln_cli *cli)
{
    return (struct kiln_svg_opts){
        .title = cli->args.title,
        .width = cli->args.width,
        .depth_max = cli->args.depth,
        .min_share = cli->args.min_share / 100,
        .root_below = cli->args.root_below,
    };
}

static int draw(struct kiln_cli *cli, const struct kiln_view *view, struct kiln_err *err)
{
    struct kiln_tree_opts tree_opts = {.from_leaf = cli->args.inverted};
    struct kiln_svg_opts opts = svg_opts(cli);
    struct kiln_tree *tree;
    int r = kiln_tree_new(view, &tree_opts, &tree, err);

    if (r < 0)
        return r;
    r = kiln_svg_encode(view, tree, &opts, &cli->out, err);
    kiln_tree_free(tree);
    return r;
}

/* The diff knows how to make the two comparable. */
static int draw_diff(struct kiln_cli *cli, const struct kiln_view *base,
                     const struct kiln_view *view, struct kiln_err *err)
{
    struct kiln_tree_opts tree_opts = {.from_leaf = cli->args.inverted};
    struct kiln_svg_opts opts = svg_opts(cli);
    struct kiln_diff *diff;
    struct kiln_tree *tree;
    int r = kiln_diff_new(base, view, (enum kiln_normalize)cli->args.normalize, &diff, err);

    if (r < 0)
        return r;
    opts.normalized = diff->normalized;
    r = kiln_tree_new_diff(base, view, diff->scale_a, &tree_opts, &tree, err);
    kiln_diff_free(diff);
    if (r < 0)
        return r;
    r = kiln_svg_encode(view, tree, &opts, &cli->out, err);
    kiln_tree_free(tree);
    return r;
}

static int run(struct kiln_cli *cli)
{
    struct kiln_view *base = NULL;
    struct kiln_view *view = NULL;
    struct kiln_err err = {0};
    enum kiln_format format;
    int code;

    cli->args.to = KILN_FORMAT_SVG;
    code = kiln_output_format(cli, KILN_FORMAT_SVG, &format);
    if (code == 0)
        code = kiln_input_view_of(cli, 0, &view);
    if (code == 0 && cli->args.base)
        code = kiln_input_view_file(cli, cli->args.base, &base);
    if (code == 0) {
        int r = base ? draw_diff(cli, base, view, &err) : draw(cli, view, &err);

        code = r < 0 ? kiln_cli_fail(NULL, &err) : kiln_output_deliver(cli, format);
    }
    kiln_view_free(base);
    kiln_view_free(view);
    return code;
}

static const char *const normalizations[] = {"time", "total", "none", NULL};

static const struct kiln_option options[] = {
    KILN_OPT("output", 'o', KILN_OPT_TEXT, output, "FILE", "write FILE instead of standard output"),
    KILN_OPT("title", 0, KILN_OPT_TEXT, title, "TEXT", "what the drawing says it is of"),
    KILN_OPT("base", 0, KILN_OPT_TEXT, base, "FILE",
             "draw what changed since FILE: red is more, blue is less"),
    KILN_OPT_OF("normalize", normalize, normalizations, "BY",
                "with --base, compare over the same time, as shares of the total, or as they are: "
                "none (time)"),
    KILN_OPT("inverted", 'i', KILN_OPT_FLAG, inverted, NULL,
             "start from the functions that cost, with their callers beyond them"),
    KILN_OPT("root-below", 0, KILN_OPT_FLAG, root_below, NULL,
             "let flames rise: callees above their callers"),
    KILN_OPT("width", 0, KILN_OPT_COUNT, width, "PIXELS",
             "the width where nothing else says it; a browser fills its window (1200)"),
    KILN_OPT("min-share", 0, KILN_OPT_PERCENT, min_share, "PERCENT",
             "fold what is narrower than PERCENT of the whole (what would be invisible)"),
    KILN_OPT("depth", 'd', KILN_OPT_COUNT, depth, "N", "draw N calls deep at most (256)"),
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Drawing", options};

const struct kiln_command kiln_cmd_flamegraph = {
    .name = "flamegraph",
    .summary = "draw a flame graph, as one SVG file",
    .operands = "FILE...",
    .operands_min = 1,
    .operands_max = KILN_OPERANDS_ANY,
    .about = "Draws the call tree: every box is a function, as wide as its share, above what it "
             "calls. The SVG needs nothing else; in a browser it zooms, searches and tells more "
             "about what the pointer or the keyboard is on. Several files are added up.",
    .groups = {&group, &kiln_group_selection, &kiln_group_input},
    .examples = {{"kiln flamegraph examples/checkout.pb.gz -o /tmp/flamegraph.svg", "all of it"},
                 {"kiln flamegraph --base examples/checkout.pb.gz examples/checkout-v2.pb.gz -o "
                  "/tmp/diff.svg",
                  "what version 2 changed"},
                 {"kiln flamegraph -i --hide syscall examples/checkout.pb.gz -o /tmp/inverted.svg",
                  "from the leaves, without system calls"}},
    .run = run,
};

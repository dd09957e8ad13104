/* SPDX-License-Identifier: Apache-2.0 */
/* The flame graph of an answer as a tree: its arrays become a flame, which becomes a view. */
#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "cli/query.h"
#include "cli/remote.h"
#include "codec/text_tree.h"
#include "core/flame_tree.h"

#define TARGET_MAX ((size_t)1 << 20)

/* Columns before the names, and how many a name has at least and at most. */
enum { NUMBER_COLUMNS = 54, NAME_COLUMNS_MIN = 20, NAME_COLUMNS_MAX = 4096, NODES = 16384 };

static struct kiln_str text_at(const struct kiln_said_array *array, uint32_t i)
{
    return i < array->n ? ((const struct kiln_str *)array->items)[i] : KILN_STR("");
}

static double number_at(const struct kiln_said_array *array, uint32_t i)
{
    return ((const double *)array->items)[i];
}

/* Whether the arrays are those of a tree: the root first, no node deeper than its caller allows. */
static bool is_tree(const struct kiln_said *said)
{
    double before = -1;

    if (said->depth.n != said->name.n || said->self.n != said->name.n ||
        said->node_total.n != said->name.n || said->name.n == 0)
        return false;
    for (uint32_t i = 0; i < said->name.n; i++) {
        double name = number_at(&said->name, i), depth = number_at(&said->depth, i);

        if (!(name >= 0 && name < said->names.n) || !(depth >= 0 && depth <= before + 1) ||
            (depth == 0) != (i == 0) || depth != floor(depth))
            return false;
        before = depth;
    }
    return true;
}

static void fill(const struct kiln_said *said, struct kiln_flame *flame)
{
    for (uint32_t i = 0; i < flame->n_names; i++)
        flame->names[i] = (struct kiln_flame_name){
            .name = text_at(&said->names, i),
            .file = text_at(&said->files, i),
            .module = text_at(&said->modules, i),
            .kind = text_at(&said->kinds, i),
        };
    for (uint32_t i = 0; i < flame->n_nodes; i++)
        flame->nodes[i] = (struct kiln_flame_node){
            .name = (uint32_t)number_at(&said->name, i),
            .depth = (uint32_t)number_at(&said->depth, i),
            .self = (int64_t)number_at(&said->self, i),
            .total = (int64_t)number_at(&said->node_total, i),
        };
}

/* The texts stay the answer's; parents and ends are not needed for a view. */
static int make_flame(const struct kiln_said *said, struct kiln_flame *flame)
{
    *flame = (struct kiln_flame){
        .n_names = said->names.n,
        .n_nodes = said->name.n,
        .other = said->other > 0 ? (uint32_t)said->other : 0,
        .total = (int64_t)said->total,
    };
    if (!is_tree(said))
        return KILN_E_MALFORMED;
    flame->names = kiln_calloc(flame->n_names, sizeof(*flame->names));
    flame->nodes = kiln_calloc(flame->n_nodes, sizeof(*flame->nodes));
    if (!flame->names || !flame->nodes)
        return -ENOMEM;
    fill(said, flame);
    return 0;
}

static int print_view(struct kiln_cli *cli, const struct kiln_view *view, struct kiln_err *err)
{
    uint32_t columns = cli->term.width;
    struct kiln_text_tree_opts opts = {
        .depth_max = cli->args.depth,
        .min_share = cli->args.min_share > 0 ? cli->args.min_share / 100 : -1,
        .colour = cli->term.color,
        .fit = true,
        .name_chars = NAME_COLUMNS_MAX,
    };

    if (columns)
        opts.name_chars = columns > NUMBER_COLUMNS + NAME_COLUMNS_MIN ? columns - NUMBER_COLUMNS
                                                                      : NAME_COLUMNS_MIN;
    return kiln_text_tree_encode_view(view, &opts, &cli->out, err);
}

static int print(struct kiln_cli *cli, const struct kiln_said *said)
{
    const struct kiln_flame_facts facts = {
        .type = said->type,
        .count = said->basis.count,
        .n_profiles = (uint32_t)said->basis.profiles,
        .duration_ns = (uint64_t)(said->basis.rate_seconds * 1e9),
    };
    struct kiln_view *view = NULL;
    struct kiln_flame flame;
    struct kiln_err err = {0};
    int r = make_flame(said, &flame);

    if (r == 0)
        r = kiln_flame_view_new(&flame, &facts, &view, &err);
    if (r == 0)
        r = print_view(cli, view, &err);
    kiln_view_free(view);
    kiln_free(flame.names);
    kiln_free(flame.nodes);
    if (r == 0)
        return KILN_EXIT_WELL;
    kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
    return kiln_cli_fail("the server's answer", &err);
}

int kiln_query_tree(struct kiln_cli *cli)
{
    struct kiln_said said;
    struct kiln_buf target;
    int code;

    kiln_buf_init(&target, TARGET_MAX);
    kiln_buf_puts(&target, "/api/v1/query?format=flamegraph");
    kiln_remote_put_number(&target, "nodes", cli->args.nodes ? cli->args.nodes : NODES);
    kiln_query_put_choice(cli, &target);
    code = kiln_query_get(cli, &target, false, &said);
    kiln_buf_done(&target);
    if (code == 0 && !cli->args.json)
        kiln_query_say_notes(&said);
    if (code == 0 && said.basis.profiles <= 0)
        code = kiln_query_nothing(cli, &said);
    else if (code == 0 && !cli->args.json)
        code = print(cli, &said);
    kiln_said_done(&said);
    return code;
}

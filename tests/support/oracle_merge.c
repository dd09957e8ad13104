/* SPDX-License-Identifier: Apache-2.0 */
/* All facts as one profile, of which core/ makes a tree and a top table. */
#include "oracle_int.h"

#include <errno.h>
#include <stdlib.h>

#include "base/sat.h"
#include "core/remap.h"
#include "core/top.h"
#include "core/tree.h"

/* What a stack of the merged profile adds up to. */
struct sum {
    int64_t value;
    double mean;
};

struct merging {
    const struct kiln_facts *facts;
    struct kiln_builder *b;
    struct kiln_budget budget;
    struct sum *sums;   /* parallel to the builder's stacks */
    uint32_t *profiles; /* of each process: how many were considered */
    uint32_t n_sums, cap_sums;
    uint32_t profile;
};

/* ---- one profile ---- */

static int add_to_stack(struct merging *m, const struct kiln_fact *fact, uint32_t stack)
{
    uint32_t process = m->facts->profiles[fact->profile].process;
    int r = kiln_grow(&m->budget, (void **)&m->sums, &m->cap_sums, (uint64_t)stack + 1,
                      sizeof(*m->sums), UINT32_MAX);

    if (r < 0)
        return r;
    for (; m->n_sums <= stack; m->n_sums++)
        m->sums[m->n_sums] = (struct sum){0};
    m->sums[stack].value = kiln_sat_add(m->sums[stack].value, fact->value);
    if (m->profiles[process])
        m->sums[stack].mean += (double)fact->value / m->profiles[process];
    return 0;
}

/* The facts of one source, from *at on. */
static int add_source(struct merging *m, uint32_t source, uint32_t *at)
{
    const struct kiln_facts *facts = m->facts;
    struct kiln_remap *remap;
    int r;

    if (*at == facts->n_facts || facts->profiles[facts->facts[*at].profile].source != source)
        return 0;
    r = kiln_remap_new(m->b, facts->sources[source].batch, NULL, &remap);
    if (r < 0)
        return r;
    while (r == 0 && *at < facts->n_facts &&
           facts->profiles[facts->facts[*at].profile].source == source) {
        const struct kiln_fact *fact = &facts->facts[(*at)++];

        r = add_to_stack(m, fact, kiln_remap_stack(remap, kiln_fact_sample(facts, fact)->stack));
    }
    kiln_remap_free(remap);
    return r;
}

static struct kiln_value_type named(struct kiln_builder *b, struct kiln_str type,
                                    struct kiln_str unit)
{
    return (struct kiln_value_type){kiln_builder_string(b, type), kiln_builder_string(b, unit)};
}

/* A count must not be taken as time for its period a second time. */
static void open_profile(struct merging *m, const struct kiln_basis *basis)
{
    struct kiln_profile head = {.time_ns = basis->min_ns, .duration_ns = basis->covered_ns};
    struct kiln_str id = m->facts->n_facts && !m->facts->question->n_parts
                             ? kiln_fact_source(m->facts, m->facts->facts)->series.type
                             : m->facts->question->type;
    struct kiln_str parts[5] = {{0}};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(parts) && id.ptr; i++)
        parts[i] = kiln_str_cut(&id, ':');
    head.sample_type = named(m->b, parts[1], parts[2]);
    head.period_type = named(m->b, parts[3], parts[4]);
    if (m->facts->n_facts && !m->facts->question->n_parts &&
        !kiln_str_eq(parts[2], KILN_STR("count")))
        head.period = kiln_fact_head(m->facts, m->facts->facts[0].profile)->period;
    kiln_builder_add_resource(m->b, &(struct kiln_resource){0});
    kiln_builder_add_scope(m->b, &(struct kiln_scope){0});
    m->profile = kiln_builder_add_profile(m->b, &head);
}

static int count_profiles(struct merging *m)
{
    m->profiles = kiln_calloc((size_t)m->facts->processes.n + 1, sizeof(*m->profiles));
    if (!m->profiles)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->facts->n_profiles; i++)
        m->profiles[m->facts->profiles[i].process] += m->facts->profiles[i].considered;
    return 0;
}

static int add_up(struct merging *m)
{
    uint32_t at = 0;
    int r = count_profiles(m);

    for (uint32_t i = 0; i < m->facts->n_sources && r == 0; i++)
        r = add_source(m, i, &at);
    for (uint32_t i = 0; i < m->n_sums && r == 0; i++) {
        const struct sum *sum = &m->sums[i];
        int64_t value = m->facts->question->average ? kiln_sat_round(sum->mean) : sum->value;

        if (value)
            kiln_builder_add_value(m->b, m->profile, i, 0, value);
    }
    kiln_free(m->profiles);
    kiln_array_free(&m->budget, (void **)&m->sums, &m->cap_sums, sizeof(*m->sums));
    return r;
}

static int one_profile(const struct kiln_facts *facts, const struct kiln_basis *basis,
                       struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct merging m = {.facts = facts, .budget = {.limit = SIZE_MAX}};
    int r = kiln_builder_new(NULL, &m.b);

    if (r < 0)
        return r;
    open_profile(&m, basis);
    r = add_up(&m);
    if (r < 0)
        kiln_builder_fail(m.b, r);
    return kiln_builder_finish(m.b, ret_batch, err);
}

/* ---- flame ---- */

struct weighed {
    const struct kiln_tree_node *node;
    uint64_t path;
};

/* By what nodes stay. */
static int by_weight(const void *a, const void *b)
{
    const struct weighed *x = a, *y = b;

    if (x->node->total_b != y->node->total_b)
        return x->node->total_b > y->node->total_b ? -1 : 1;
    if (x->node->depth != y->node->depth)
        return x->node->depth < y->node->depth ? -1 : 1;
    return (x->path > y->path) - (x->path < y->path);
}

/* Which nodes stay, by their place in the tree; NULL: all do. */
static int find_kept(const struct kiln_tree *tree, uint32_t nodes_max, bool **ret_kept)
{
    struct weighed *order;
    uint64_t *paths;
    int r = -ENOMEM;

    if (tree->n_nodes - 1 <= nodes_max)
        return 0;
    order = kiln_calloc(tree->n_nodes, sizeof(*order));
    paths = kiln_calloc(tree->n_nodes, sizeof(*paths));
    *ret_kept = kiln_calloc(tree->n_nodes, sizeof(**ret_kept));
    if (order && paths && *ret_kept) {
        for (uint32_t i = 1; i < tree->n_nodes; i++) {
            const struct kiln_tree_node *node = &tree->nodes[i];

            paths[i] =
                kiln_node_path(paths[node->parent], kiln_node_name(tree->frames[node->frame].name));
            order[i - 1] = (struct weighed){node, paths[i]};
        }
        qsort(order, tree->n_nodes - 1, sizeof(*order), by_weight);
        for (uint32_t i = 0; i < nodes_max; i++)
            (*ret_kept)[order[i].node - tree->nodes] = true;
        r = 0;
    }
    kiln_free(order);
    kiln_free(paths);
    return r;
}

struct folding {
    const struct kiln_tree *tree;
    struct kiln_flame *flame;
    bool *kept; /* which nodes of the tree; NULL: all */
};

static void put_node(struct kiln_flame *flame, uint32_t name, uint32_t parent,
                     const struct kiln_tree_node *from)
{
    flame->nodes[flame->n_nodes++] = (struct kiln_flame_node){.name = name,
                                                              .parent = parent,
                                                              .depth = from->depth,
                                                              .self = from->self_b,
                                                              .total = from->total_b};
}

/* Closes the nodes from *at up that are at least as deep as `depth`: what was folded comes last. */
static void close_nodes(struct folding *f, int64_t *folded, bool *any, uint32_t *at, uint32_t depth)
{
    struct kiln_flame *flame = f->flame;

    while (*at != UINT32_MAX && flame->nodes[*at].depth >= depth) {
        uint32_t node = *at;

        if (any[node]) {
            struct kiln_tree_node other = {.depth = flame->nodes[node].depth + 1,
                                           .self_b = folded[node],
                                           .total_b = folded[node]};

            put_node(flame, UINT32_MAX, node, &other);
            flame->nodes[flame->n_nodes - 1].end = flame->n_nodes;
        }
        flame->nodes[node].end = flame->n_nodes;
        *at = node ? flame->nodes[node].parent : UINT32_MAX;
    }
}

static bool fold(struct folding *f, int64_t *folded, bool *any)
{
    const struct kiln_tree *tree = f->tree;
    uint32_t at = UINT32_MAX; /* the deepest open node */
    bool folds = false;

    for (uint32_t i = 0; i < tree->n_nodes;) {
        const struct kiln_tree_node *node = &tree->nodes[i];

        close_nodes(f, folded, any, &at, node->depth);
        if (i && f->kept && !f->kept[i]) {
            folded[at] = kiln_sat_add(folded[at], node->total_b);
            folds = any[at] = true;
            i += node->subtree;
            continue;
        }
        put_node(f->flame, i ? node->frame + 1 : 0, at == UINT32_MAX ? 0 : at, node);
        at = f->flame->n_nodes - 1;
        i++;
    }
    close_nodes(f, folded, any, &at, 0);
    return folds;
}

static int copy_name(struct kiln_flame *flame, const struct kiln_frame *frame)
{
    struct kiln_flame_name *name = &flame->names[flame->n_names++];

    name->name = kiln_arena_copy(&flame->arena, frame->name);
    name->file = kiln_arena_copy(&flame->arena, frame->file);
    name->module = kiln_arena_copy(&flame->arena, frame->module);
    name->kind = kiln_arena_copy(&flame->arena, frame->kind);
    name->inlined = frame->inlined;
    return name->name.ptr && name->file.ptr && name->module.ptr && name->kind.ptr ? 0 : -ENOMEM;
}

static int copy_names(struct kiln_flame *flame, const struct kiln_view *view)
{
    struct kiln_frame root = {.name = KILN_STR("total")};
    int r;

    flame->names = kiln_calloc((size_t)view->n_frames + 2, sizeof(*flame->names));
    if (!flame->names)
        return -ENOMEM;
    r = copy_name(flame, &root);
    for (uint32_t i = 0; i < view->n_frames && r == 0; i++)
        r = copy_name(flame, &view->frames[i]);
    return r;
}

static int name_other(struct kiln_flame *flame)
{
    struct kiln_frame other = {.name = KILN_STR("other")};
    int r = copy_name(flame, &other);

    flame->other = flame->n_names - 1;
    for (uint32_t i = 0; i < flame->n_nodes; i++) {
        if (flame->nodes[i].name == UINT32_MAX)
            flame->nodes[i].name = flame->other;
    }
    return r;
}

static int fold_tree(struct kiln_flame *flame, const struct kiln_tree *tree, uint32_t nodes_max)
{
    struct folding f = {.tree = tree, .flame = flame};
    int64_t *folded = NULL;
    bool *any = NULL;
    int r = find_kept(tree, nodes_max, &f.kept);

    if (r < 0) {
        kiln_free(f.kept);
        return r;
    }
    flame->nodes = kiln_calloc((size_t)tree->n_nodes * 2, sizeof(*flame->nodes));
    folded = kiln_calloc((size_t)tree->n_nodes * 2, sizeof(*folded));
    any = kiln_calloc((size_t)tree->n_nodes * 2, sizeof(*any));
    if (!flame->nodes || !folded || !any)
        r = -ENOMEM;
    else if (fold(&f, folded, any))
        r = name_other(flame);
    flame->nodes_all = tree->n_nodes;
    kiln_free(folded);
    kiln_free(any);
    kiln_free(f.kept);
    return r;
}

static int make_tree(struct kiln_flame *flame, const struct kiln_view *view, uint32_t nodes_max,
                     struct kiln_err *err)
{
    struct kiln_tree_opts opts = {.order = KILN_TREE_BY_NAME};
    struct kiln_tree *tree;
    int r = kiln_tree_new(view, &opts, &tree, err);

    if (r < 0)
        return r;
    r = fold_tree(flame, tree, nodes_max);
    kiln_tree_free(tree);
    return r;
}

static int make_functions(struct kiln_flame *flame, const struct kiln_view *view)
{
    struct kiln_top_row *rows;
    uint32_t n;
    int r = kiln_top(view, KILN_TOP_BY_SELF, &rows, &n);

    if (r < 0)
        return r;
    flame->functions = kiln_calloc((size_t)n + 1, sizeof(*flame->functions));
    if (!flame->functions)
        r = -ENOMEM;
    for (uint32_t i = 0; i < n && r == 0; i++)
        flame->functions[flame->n_functions++] =
            (struct kiln_flame_function){rows[i].frame + 1, rows[i].self, rows[i].total};
    kiln_free(rows);
    return r;
}

static int make_flame(const struct kiln_view *view, const struct kiln_merge_wants *wants,
                      struct kiln_flame **ret_flame, struct kiln_err *err)
{
    struct kiln_flame *flame = kiln_calloc(1, sizeof(*flame));
    int r;

    if (!flame)
        return -ENOMEM;
    flame->budget.limit = SIZE_MAX;
    flame->total = view->total;
    kiln_arena_init(&flame->arena, &flame->budget);
    r = copy_names(flame, view);
    if (r == 0 && wants->functions)
        r = make_functions(flame, view);
    if (r == 0 && wants->nodes_max)
        r = make_tree(flame, view, wants->nodes_max, err);
    if (r < 0)
        kiln_flame_free(flame);
    else
        *ret_flame = flame;
    return r;
}

/* ---- everything ---- */

static int fill(struct kiln_merged *merged, const struct kiln_facts *facts,
                const struct kiln_merge_wants *wants, struct kiln_err *err)
{
    struct kiln_view *view = NULL;
    struct kiln_batch *batch;
    int r = kiln_fact_basis(facts, &merged->basis);

    if (r < 0)
        return r;
    r = one_profile(facts, &merged->basis, &batch, err);
    if (r < 0)
        return r;
    r = kiln_view_new(batch, &(struct kiln_view_opts){0}, &view, err);
    if (r == 0)
        merged->total = view->total;
    if (r == 0 && (wants->nodes_max || wants->functions))
        r = make_flame(view, wants, &merged->flame, err);
    kiln_view_free(view);
    if (r == 0 && wants->profile)
        merged->profile = batch;
    else
        kiln_batch_unref(batch);
    return r;
}

int kiln_oracle_merge(struct kiln_engine *engine, const struct kiln_question *question,
                      const struct kiln_merge_wants *wants, struct kiln_merged **ret_merged,
                      struct kiln_err *err)
{
    struct kiln_merged *merged;
    struct kiln_facts facts;
    int r = kiln_facts_init(&facts, engine, question, err);

    if (r < 0)
        return r;
    merged = kiln_calloc(1, sizeof(*merged));
    r = merged ? fill(merged, &facts, wants, err) : -ENOMEM;
    kiln_facts_done(&facts);
    if (r < 0) {
        kiln_merged_free(merged);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_merged = merged;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "drawn_flame.h"

#include "drawn.h"
#include "test.h"

/* Frame i of the view is name i + 1; "(other)" of the tree is "other". */
static void add_names(struct kiln_flame *flame, const struct kiln_tree *tree)
{
    flame->names = kiln_calloc((size_t)tree->n_frames + 1, sizeof(*flame->names));
    CHECK(flame->names != NULL);
    flame->n_names = tree->n_frames + 1;
    flame->names[0].name = KILN_STR("total");
    for (uint32_t i = 0; i < tree->n_frames; i++) {
        const struct kiln_frame *frame = &tree->frames[i];
        bool other = kiln_str_eq(frame->name, KILN_STR("(other)"));

        flame->names[i + 1] = (struct kiln_flame_name){
            .name = other ? KILN_STR("other") : kiln_arena_copy(&flame->arena, frame->name),
            .file = kiln_arena_copy(&flame->arena, frame->file),
            .module = KILN_STR(""),
            .kind = KILN_STR(""),
        };
        if (other)
            flame->other = i + 1;
    }
}

static void add_nodes(struct kiln_flame *flame, const struct kiln_tree *tree)
{
    flame->nodes = kiln_calloc(tree->n_nodes, sizeof(*flame->nodes));
    CHECK(flame->nodes != NULL);
    flame->n_nodes = tree->n_nodes;
    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        const struct kiln_tree_node *node = &tree->nodes[i];

        flame->nodes[i] = (struct kiln_flame_node){
            .name = node->frame == KILN_TREE_ROOT ? 0 : node->frame + 1,
            .parent = node->parent,
            .end = i + node->subtree,
            .depth = node->depth,
            .self = node->self_b,
            .total = node->total_b,
        };
    }
}

static void add_functions(struct kiln_flame *flame, const struct kiln_view *view)
{
    struct kiln_top_row *rows;

    CHECK_OK(kiln_top(view, KILN_TOP_BY_SELF, &rows, &flame->n_functions));
    flame->functions = kiln_calloc((size_t)flame->n_functions + 1, sizeof(*flame->functions));
    CHECK(flame->functions != NULL);
    for (uint32_t i = 0; i < flame->n_functions; i++)
        flame->functions[i] =
            (struct kiln_flame_function){rows[i].frame + 1, rows[i].self, rows[i].total};
    kiln_free(rows);
}

struct kiln_flame *kiln_test_flame(const char *stacks, uint32_t nodes_max)
{
    struct kiln_view *view = kiln_test_view(kiln_test_stacks(stacks), NULL);
    const struct kiln_tree_opts opts = {.order = KILN_TREE_BY_NAME, .nodes_max = nodes_max};
    struct kiln_flame *flame = kiln_calloc(1, sizeof(*flame));
    struct kiln_tree *tree;

    CHECK(flame != NULL);
    CHECK_OK(kiln_tree_new(view, &opts, &tree, NULL));
    flame->budget.limit = (size_t)64 << 20;
    kiln_arena_init(&flame->arena, &flame->budget);
    flame->total = view->total;
    add_names(flame, tree);
    add_nodes(flame, tree);
    add_functions(flame, view);
    kiln_tree_free(tree);
    kiln_view_free(view);
    return flame;
}

/* ---- as text ---- */

static char text[16384];

static size_t add_line(size_t len, uint32_t depth, struct kiln_str name, const char *numbers)
{
    CHECK(len + depth + name.len + 64 < sizeof(text));
    return len + (size_t)snprintf(text + len, sizeof(text) - len, "%*s%.*s %s\n", (int)depth, "",
                                  KILN_STR_ARG(name), numbers);
}

const char *kiln_test_flame_tree_text(const struct kiln_flame *flame)
{
    char numbers[64];
    size_t len = 0;

    for (uint32_t i = 0; i < flame->n_nodes; i++) {
        const struct kiln_flame_node *node = &flame->nodes[i];

        snprintf(numbers, sizeof(numbers), "%lld %lld", (long long)node->total,
                 (long long)node->self);
        len = add_line(len, node->depth, flame->names[node->name].name, numbers);
    }
    return text;
}

const char *kiln_test_flame_diff_text(const struct kiln_flame_diff *diff)
{
    char numbers[96];
    size_t len = 0;

    for (uint32_t i = 0; i < diff->n_nodes; i++) {
        const struct kiln_flame_diff_node *node = &diff->nodes[i];

        snprintf(numbers, sizeof(numbers), "%lld->%lld %lld->%lld", (long long)node->total.left,
                 (long long)node->total.right, (long long)node->self.left,
                 (long long)node->self.right);
        len = add_line(len, node->depth, diff->names[node->name].name, numbers);
    }
    return text;
}

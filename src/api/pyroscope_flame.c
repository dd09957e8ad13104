/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FlameGraph        1 names  2 levels  3 total  4 max_self  5 leftTicks  6 rightTicks (of a diff)
 * Level             1 values, packed
 *
 * One pass over the nodes, which lie in preorder, lays out everything: a child begins where its
 * parent's cursor stands and moves it by its total, and the nodes of a level are met from left to
 * right.
 *
 * TREE is a walk over the nodes, each a varint with the length of its name, the name, its own value
 * as a varint, and the number of its children; a node stands before its children, the last child
 * first, and the root has no name.  That is postorder backwards, and protobuf is written backwards.
 */
#include "api/pyroscope_flame.h"

#include <errno.h>

#include "base/mem.h"
#include "base/sat.h"

/* What layout() needs to know of a node, of a flame, a diff or a tree. */
struct node {
    uint32_t name, parent, depth;
    int64_t self[2], total[2];
};

struct source {
    const struct kiln_flame *flame; /* one of them */
    const struct kiln_flame_diff *diff;
    const struct kiln_tree *tree;
    const struct kiln_flame_name *names; /* of a flame or a diff */
    uint32_t n_nodes, n_names;
};

/* Of a tree, 0 is the root, which has no frame. */
static struct kiln_str name_in(const struct source *s, uint32_t i)
{
    struct kiln_str name;

    if (!s->tree)
        return s->names[i].name;
    if (i == 0)
        return KILN_STR("total");
    name = s->tree->frames[i - 1].name;
    return kiln_str_eq(name, KILN_STR("(other)")) ? KILN_STR("other") : name;
}

static struct node node_of_tree(const struct kiln_tree *tree, uint32_t i)
{
    const struct kiln_tree_node *n = &tree->nodes[i];
    struct node node = {.name = i ? n->frame + 1 : 0, .parent = n->parent, .depth = n->depth};

    node.self[tree->is_diff] = n->self_b;
    node.total[tree->is_diff] = n->total_b;
    if (tree->is_diff) {
        node.self[0] = n->self_a;
        node.total[0] = n->total_a;
    }
    return node;
}

static struct node node_of(const struct source *s, uint32_t i)
{
    if (s->tree) {
        return node_of_tree(s->tree, i);
    } else if (s->flame) {
        const struct kiln_flame_node *n = &s->flame->nodes[i];

        return (struct node){n->name, n->parent, n->depth, {n->self, 0}, {n->total, 0}};
    } else {
        const struct kiln_flame_diff_node *n = &s->diff->nodes[i];

        return (struct node){n->name,
                             n->parent,
                             n->depth,
                             {n->self.left, n->self.right},
                             {n->total.left, n->total.right}};
    }
}

/* What is needed while it is laid out. */
struct work {
    int64_t (*cursor)[2]; /* of each node: where its next child begins */
    int64_t (*end)[2];    /* of each level: where its last box ends */
    uint32_t *at;         /* of each level: where its next box goes */
    uint32_t *name;       /* of the answer, and one; 0: not met yet */
};

static void work_done(struct work *work)
{
    kiln_free(work->cursor);
    kiln_free(work->end);
    kiln_free(work->at);
    kiln_free(work->name);
}

static int work_init(struct work *work, const struct source *s, uint32_t n_levels)
{
    work->cursor = kiln_calloc(s->n_nodes, sizeof(*work->cursor));
    work->end = kiln_calloc(n_levels, sizeof(*work->end));
    work->at = kiln_calloc(n_levels + 1, sizeof(*work->at));
    work->name = kiln_calloc(s->n_names, sizeof(*work->name));
    return work->cursor && work->end && work->at && work->name ? 0 : -ENOMEM;
}

static uint32_t name_of(struct kiln_levels *levels, struct kiln_str *names, struct work *work,
                        const struct source *s, uint32_t name)
{
    if (work->name[name] == 0) {
        names[levels->n_names++] = name_in(s, name);
        work->name[name] = levels->n_names;
    }
    return work->name[name] - 1;
}

static void layout(struct kiln_levels *levels, struct kiln_str *names, struct work *work,
                   const struct source *s)
{
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        struct node n = node_of(s, i);
        struct kiln_box *box = &levels->boxes[work->at[n.depth]++];

        box->name = name_of(levels, names, work, s, n.name);
        for (uint32_t k = 0; k < levels->n_sides; k++) {
            int64_t x = i ? work->cursor[n.parent][k] : 0;

            if (i)
                work->cursor[n.parent][k] = kiln_sat_add(x, n.total[k]);
            work->cursor[i][k] = kiln_sat_add(x, n.self[k]);
            box->side[k].x = kiln_sat_sub(x, work->end[n.depth][k]);
            box->side[k].total = n.total[k];
            box->side[k].self = n.self[k];
            work->end[n.depth][k] = kiln_sat_add(x, n.total[k]);
            if (n.self[k] > levels->max_self)
                levels->max_self = n.self[k];
        }
    }
}

/* Counts the boxes of each level. */
static int count(struct kiln_levels *levels, const struct source *s)
{
    uint32_t deepest = 0;

    for (uint32_t i = 0; i < s->n_nodes; i++) {
        uint32_t depth = node_of(s, i).depth;

        deepest = depth > deepest ? depth : deepest;
    }
    levels->n_levels = deepest + 1;
    levels->first = kiln_calloc((size_t)levels->n_levels + 1, sizeof(*levels->first));
    if (!levels->first)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->n_nodes; i++)
        levels->first[node_of(s, i).depth + 1]++;
    for (uint32_t i = 0; i < levels->n_levels; i++)
        levels->first[i + 1] += levels->first[i];
    return 0;
}

static int fill(struct kiln_levels *levels, const struct source *s)
{
    struct work work = {0};
    struct kiln_str *names = kiln_calloc(s->n_names, sizeof(*names));
    int r = count(levels, s);

    levels->names = names;
    levels->boxes = kiln_calloc(s->n_nodes, sizeof(*levels->boxes));
    if (r == 0)
        r = work_init(&work, s, levels->n_levels);
    if (!names || !levels->boxes)
        r = -ENOMEM;
    if (r == 0) {
        memcpy(work.at, levels->first, levels->n_levels * sizeof(*work.at));
        layout(levels, names, &work, s);
    }
    work_done(&work);
    return r;
}

static int init(struct kiln_levels *levels, const struct source *s, struct kiln_leash *leash)
{
    size_t bytes = s->n_nodes * (sizeof(struct kiln_box) + sizeof(int64_t[2])) +
                   s->n_names * (sizeof(struct kiln_str) + sizeof(uint32_t));
    int r = kiln_leash_reserve(leash, bytes, NULL);

    if (r < 0)
        return r;
    levels->leash = leash;
    levels->memory = bytes;
    r = fill(levels, s);
    if (r < 0)
        kiln_levels_done(levels);
    return r;
}

int kiln_levels_init(struct kiln_levels *levels, const struct kiln_flame *flame,
                     struct kiln_leash *leash)
{
    struct source s = {.flame = flame,
                       .names = flame->names,
                       .n_nodes = flame->n_nodes,
                       .n_names = flame->n_names};

    *levels = (struct kiln_levels){.n_sides = 1, .total = flame->total};
    return init(levels, &s, leash);
}

int kiln_levels_init_diff(struct kiln_levels *levels, const struct kiln_flame_diff *diff,
                          struct kiln_leash *leash)
{
    struct source s = {
        .diff = diff, .names = diff->names, .n_nodes = diff->n_nodes, .n_names = diff->n_names};

    *levels = (struct kiln_levels){.n_sides = 2,
                                   .total = kiln_sat_add(diff->total.left, diff->total.right),
                                   .ticks = {diff->total.left, diff->total.right}};
    return init(levels, &s, leash);
}

int kiln_levels_init_tree(struct kiln_levels *levels, const struct kiln_tree *tree,
                          struct kiln_leash *leash)
{
    struct source s = {.tree = tree, .n_nodes = tree->n_nodes, .n_names = tree->n_frames + 1};
    struct node root = node_of_tree(tree, 0);

    *levels = (struct kiln_levels){.n_sides = tree->is_diff ? 2 : 1,
                                   .total = kiln_sat_add(root.total[0], root.total[1])};
    if (tree->is_diff)
        memcpy(levels->ticks, root.total, sizeof(levels->ticks));
    return init(levels, &s, leash);
}

void kiln_levels_done(struct kiln_levels *levels)
{
    kiln_free(levels->boxes);
    kiln_free(levels->first);
    kiln_free((void *)(uintptr_t)levels->names);
    if (levels->leash)
        kiln_leash_give(levels->leash, levels->memory);
    *levels = (struct kiln_levels){0};
}

/* ---- protobuf ---- */

static void put_level(const struct kiln_levels *levels, uint32_t level, struct kiln_pb_out *w)
{
    size_t message = kiln_pb_mark(w);

    for (uint32_t i = levels->first[level + 1]; i-- > levels->first[level];) {
        const struct kiln_box *box = &levels->boxes[i];

        kiln_pb_raw_varint(w, box->name);
        for (uint32_t k = levels->n_sides; k-- > 0;) {
            kiln_pb_raw_varint(w, (uint64_t)box->side[k].self);
            kiln_pb_raw_varint(w, (uint64_t)box->side[k].total);
            kiln_pb_raw_varint(w, (uint64_t)box->side[k].x);
        }
    }
    kiln_pb_put_message(w, 1, message);
    kiln_pb_put_message(w, 2, message);
}

void kiln_levels_put(const struct kiln_levels *levels, struct kiln_pb_out *w)
{
    kiln_pb_put_number(w, 6, (uint64_t)levels->ticks[1]);
    kiln_pb_put_number(w, 5, (uint64_t)levels->ticks[0]);
    kiln_pb_put_number(w, 4, (uint64_t)levels->max_self);
    kiln_pb_put_number(w, 3, (uint64_t)levels->total);
    for (uint32_t i = levels->n_levels; i-- > 0;)
        put_level(levels, i, w);
    for (uint32_t i = levels->n_names; i-- > 0;)
        kiln_pb_put_element(w, 1, levels->names[i]);
}

/* ---- JSON of the older endpoints ---- */

static void put_boxes(const struct kiln_levels *levels, uint32_t level, struct kiln_json_out *w)
{
    kiln_json_put_array(w);
    for (uint32_t i = levels->first[level]; i < levels->first[level + 1]; i++) {
        const struct kiln_box *box = &levels->boxes[i];

        for (uint32_t k = 0; k < levels->n_sides; k++) {
            kiln_json_put_i64(w, box->side[k].x);
            kiln_json_put_i64(w, box->side[k].total);
            kiln_json_put_i64(w, box->side[k].self);
        }
        kiln_json_put_u64(w, box->name);
    }
    kiln_json_end_array(w);
}

void kiln_levels_put_flamebearer(const struct kiln_levels *levels, struct kiln_json_out *w)
{
    kiln_json_put_name(w, "names");
    kiln_json_put_array(w);
    for (uint32_t i = 0; i < levels->n_names; i++)
        kiln_json_put_str(w, levels->names[i]);
    kiln_json_end_array(w);
    kiln_json_put_name(w, "levels");
    kiln_json_put_array(w);
    for (uint32_t i = 0; i < levels->n_levels; i++)
        put_boxes(levels, i, w);
    kiln_json_end_array(w);
    kiln_json_put_name(w, "numTicks");
    kiln_json_put_i64(w, levels->total);
    kiln_json_put_name(w, "maxSelf");
    kiln_json_put_i64(w, levels->max_self);
}

/* ---- TREE ---- */

static uint32_t count_children(const struct kiln_flame *flame, uint32_t node)
{
    uint32_t n = 0;

    for (uint32_t i = node + 1; i < flame->nodes[node].end; i = flame->nodes[i].end)
        n++;
    return n;
}

static void put_tree_node(const struct kiln_flame *flame, uint32_t i, struct kiln_pb_out *w)
{
    const struct kiln_flame_node *node = &flame->nodes[i];
    struct kiln_str name = i ? flame->names[node->name].name : KILN_STR_NONE;

    kiln_pb_raw_varint(w, count_children(flame, i));
    kiln_pb_raw_varint(w, node->self > 0 ? (uint64_t)node->self : 0);
    kiln_pb_raw_bytes(w, name.ptr, name.len);
    kiln_pb_raw_varint(w, name.len);
}

void kiln_tree_bytes_put(const struct kiln_flame *flame, struct kiln_pb_out *w)
{
    uint32_t at = 0;

    if (flame->n_nodes < 2)
        return;
    /* A node is left when the next one is not below it, and so are those above it that end there.
     */
    for (uint32_t next = 1; next <= flame->n_nodes; next++) {
        for (; flame->nodes[at].end == next; at = flame->nodes[at].parent) {
            put_tree_node(flame, at, w);
            if (at == 0)
                return;
        }
        at = next;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trie and tree are the same bytes: nodes in the order of a walk, parents before their children,
 *
 *   varint length of the name, name, varint value, varint number of children, children...
 *
 * In a tree a node is a frame and its value what it had itself.  In a trie a node is a piece of
 * text, and the pieces from the root to a node with a value make a folded stack "a;b;c".  The root
 * has an empty name in both.
 *
 * A few bytes can stand for a long stack, so the frames of all stacks together have a limit.
 */
#include <errno.h>

#include "base/mem.h"
#include "codec/pb.h"
#include "codec/textframe.h"
#include "pipeline/receivers/ingest_tree.h"

#define FRAMES_MAX (16u << 20) /* of all stacks together */
#define TEXT_MAX   (1u << 20)  /* of one folded stack */

struct level {
    uint64_t left; /* children still to come */
    size_t text;   /* trie: bytes of text above and in this node */
};

struct walk {
    struct kiln_pb in;
    struct kiln_textstack stack;
    struct kiln_budget budget;
    struct level *levels;
    uint32_t *locations; /* tree: of the nodes from the root, but the root itself */
    uint32_t n_levels, cap_levels, cap_locations;
    struct kiln_buf text; /* trie */
    uint64_t frames;      /* of all stacks so far */
    uint32_t profile;
    bool is_trie;
    struct kiln_err *err;
};

struct node {
    struct kiln_str name;
    uint64_t value, children;
};

static uint32_t add_profile(struct kiln_builder *b)
{
    struct kiln_value_type samples = {kiln_builder_string(b, KILN_STR("samples")),
                                      kiln_builder_string(b, KILN_STR("count"))};

    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    return kiln_builder_add_profile(b, &(struct kiln_profile){.sample_type = samples});
}

/* ---- folded stacks ---- */

static int add_folded(struct kiln_textstack *s, struct kiln_str text, uint64_t *frames,
                      uint32_t profile, int64_t value, struct kiln_err *err)
{
    int r = 0;

    while (r == 0 && text.ptr) {
        struct kiln_textframe frame = {.name = kiln_str_cut(&text, ';')};

        if (frame.name.len == 0)
            continue;
        r = ++*frames > FRAMES_MAX ? KILN_E_LIMIT : kiln_textstack_add(s, &frame);
    }
    if (r < 0)
        return kiln_err_set(err, r, NULL, "the stacks have too many frames, or no memory");
    kiln_builder_add_value(s->b, profile, kiln_textstack_take(s, true), 0, value);
    return kiln_builder_error(s->b);
}

int kiln_ingest_lines(struct kiln_str content, struct kiln_builder *b, struct kiln_err *err)
{
    uint32_t profile = add_profile(b);
    struct kiln_textstack stack;
    uint64_t frames = 0;
    int r = kiln_builder_error(b);

    kiln_textstack_init(&stack, b);
    while (r == 0 && content.ptr) {
        struct kiln_str line = kiln_str_trim(kiln_str_cut(&content, '\n'));

        if (line.len)
            r = add_folded(&stack, line, &frames, profile, 1, err);
    }
    kiln_textstack_done(&stack);
    return r;
}

/* ---- nodes ---- */

static int read_node(struct walk *w, struct node *ret)
{
    uint64_t len = 0;
    int r = kiln_pb_varint(&w->in, &len);

    if (r > 0 && len > (uint64_t)(w->in.end - w->in.at))
        r = 0;
    if (r > 0) {
        ret->name = (struct kiln_str){(const char *)w->in.at, (size_t)len};
        w->in.at += len;
        r = kiln_pb_varint(&w->in, &ret->value);
    }
    if (r > 0)
        r = kiln_pb_varint(&w->in, &ret->children);
    if (r <= 0)
        return kiln_err_set(w->err, r ? r : KILN_E_TRUNCATED, NULL, "the tree ends inside a node");
    return 0;
}

static int push(struct walk *w, struct level level)
{
    int r;

    if (w->n_levels > kiln_builder_limits(w->stack.b)->stack_depth)
        return kiln_err_set(w->err, KILN_E_LIMIT, NULL, "the tree is deeper than %u nodes",
                            kiln_builder_limits(w->stack.b)->stack_depth);
    r = kiln_grow(&w->budget, (void **)&w->levels, &w->cap_levels, w->n_levels + 1u,
                  sizeof(*w->levels), UINT32_MAX);
    if (r == 0)
        r = kiln_grow(&w->budget, (void **)&w->locations, &w->cap_locations, w->n_levels + 1u,
                      sizeof(*w->locations), UINT32_MAX);
    if (r == 0)
        w->levels[w->n_levels++] = level;
    return r;
}

static int64_t value_of(const struct node *node)
{
    return node->value > INT64_MAX ? INT64_MAX : (int64_t)node->value;
}

static int add_trie_node(struct walk *w, const struct node *node)
{
    w->text.len = w->n_levels ? w->levels[w->n_levels - 1].text : 0;
    kiln_buf_add_str(&w->text, node->name);
    if (w->text.error)
        return kiln_err_set(w->err, w->text.error, NULL, "a stack is longer than %u bytes",
                            TEXT_MAX);
    return node->value ? add_folded(&w->stack, kiln_buf_str(&w->text), &w->frames, w->profile,
                                    value_of(node), w->err)
                       : 0;
}

/* The locations of the path are at hand: a stack is a copy of them, leaf first. */
static int add_tree_node(struct walk *w, const struct node *node)
{
    uint32_t depth = w->n_levels; /* the root is none of its frames */
    struct kiln_textframe frame = {.name = node->name};
    uint32_t *room;

    if (depth)
        w->locations[depth - 1] = kiln_textstack_location(&w->stack, &frame);
    if (!node->value || !depth)
        return kiln_builder_error(w->stack.b);
    w->frames += depth;
    if (w->frames > FRAMES_MAX)
        return kiln_err_set(w->err, KILN_E_LIMIT, NULL, "the stacks have more than %u frames",
                            FRAMES_MAX);
    room = kiln_builder_stack_room(w->stack.b, depth);
    for (uint32_t i = 0; room && i < depth; i++)
        room[i] = w->locations[depth - 1 - i];
    if (room)
        kiln_builder_add_value(w->stack.b, w->profile, kiln_builder_stack_take(w->stack.b, depth),
                               0, value_of(node));
    return kiln_builder_error(w->stack.b);
}

static int walk_nodes(struct walk *w)
{
    struct node node = {0};
    int r;

    do {
        r = read_node(w, &node);
        if (r == 0)
            r = w->is_trie ? add_trie_node(w, &node) : add_tree_node(w, &node);
        if (w->n_levels)
            w->levels[w->n_levels - 1].left--;
        if (r == 0)
            r = push(w, (struct level){node.children, w->text.len});
        while (w->n_levels && w->levels[w->n_levels - 1].left == 0)
            w->n_levels--;
    } while (r == 0 && w->n_levels);
    return r;
}

static int decode(struct kiln_str content, bool is_trie, struct kiln_builder *b,
                  struct kiln_err *err)
{
    struct walk w = {
        .in = kiln_pb_of(content),
        .budget = {.limit = kiln_builder_limits(b)->memory_bytes},
        .is_trie = is_trie,
        .err = err,
    };
    int r;

    w.profile = add_profile(b);
    kiln_textstack_init(&w.stack, b);
    kiln_buf_init(&w.text, TEXT_MAX);
    r = kiln_builder_error(b);
    if (r == 0)
        r = walk_nodes(&w);
    if (r == 0 && w.in.at != w.in.end)
        r = kiln_err_set(err, KILN_E_MALFORMED, NULL, "%zu bytes stand behind the tree",
                         (size_t)(w.in.end - w.in.at));
    kiln_buf_done(&w.text);
    kiln_textstack_done(&w.stack);
    kiln_array_free(&w.budget, (void **)&w.levels, &w.cap_levels, sizeof(*w.levels));
    kiln_array_free(&w.budget, (void **)&w.locations, &w.cap_locations, sizeof(*w.locations));
    return r;
}

int kiln_ingest_trie(struct kiln_str content, struct kiln_builder *b, struct kiln_err *err)
{
    return decode(content, true, b, err);
}

int kiln_ingest_tree(struct kiln_str content, struct kiln_builder *b, struct kiln_err *err)
{
    return decode(content, false, b, err);
}

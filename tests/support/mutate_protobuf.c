/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message becomes a tree: what has a length is taken for a message if it reads as one.  One node
 * is changed, and the tree is written again, with the lengths that follow.
 */
#include <stdlib.h>
#include <string.h>

#include "mutate_int.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5, DEPTH_MAX = 12, NODES_MAX = 1 << 20 };

struct node {
    uint32_t field, wire;
    uint64_t number;
    struct kiln_str bytes; /* of BYTES, if it is no message */
    bool is_message;
    uint32_t child, next; /* numbers + 1; 0: none */
};

struct tree {
    struct node *nodes;
    uint32_t n, cap;
    struct kiln_buf texts; /* that were made up */
};

static bool get_varint(struct kiln_str *in, uint64_t *ret)
{
    uint64_t v = 0;

    for (uint32_t shift = 0; shift < 64 && in->len; shift += 7) {
        uint8_t byte = (uint8_t)*in->ptr++;

        in->len--;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret = v;
            return true;
        }
    }
    return false;
}

static uint32_t add_node(struct tree *t)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 1024;
        t->nodes = realloc(t->nodes, t->cap * sizeof(*t->nodes));
    }
    t->nodes[t->n] = (struct node){0};
    return t->n++;
}

static bool parse(struct tree *t, struct kiln_str in, uint32_t depth, uint32_t *ret_first);

static bool parse_bytes(struct tree *t, uint32_t at, struct kiln_str *in, uint32_t depth)
{
    uint64_t len;
    uint32_t first = 0, n;

    if (!get_varint(in, &len) || len > in->len)
        return false;
    t->nodes[at].bytes = (struct kiln_str){in->ptr, (size_t)len};
    in->ptr += len;
    in->len -= (size_t)len;
    n = t->n;
    if (len > 1 && depth < DEPTH_MAX && parse(t, t->nodes[at].bytes, depth + 1, &first)) {
        t->nodes[at].is_message = true;
        t->nodes[at].child = first;
    } else {
        t->n = n;
    }
    return true;
}

static bool parse_field(struct tree *t, uint32_t at, struct kiln_str *in, uint32_t depth)
{
    uint64_t key, number = 0;
    size_t n;

    if (!get_varint(in, &key) || key >> 3 == 0 || key >> 3 > 600)
        return false;
    t->nodes[at].field = (uint32_t)(key >> 3);
    t->nodes[at].wire = key & 7;
    switch (key & 7) {
    case VARINT:
        if (!get_varint(in, &number))
            return false;
        break;
    case FIXED64:
    case FIXED32:
        n = (key & 7) == FIXED64 ? 8 : 4;
        if (in->len < n)
            return false;
        memcpy(&number, in->ptr, n);
        in->ptr += n;
        in->len -= n;
        break;
    case BYTES:
        return parse_bytes(t, at, in, depth);
    default:
        return false;
    }
    t->nodes[at].number = number;
    return true;
}

/* All fields of a message; *ret_first is 1 + the first. */
static bool parse(struct tree *t, struct kiln_str in, uint32_t depth, uint32_t *ret_first)
{
    uint32_t last = 0;

    *ret_first = 0;
    while (in.len) {
        uint32_t at = add_node(t);

        if (t->n > NODES_MAX || !parse_field(t, at, &in, depth))
            return false;
        if (last)
            t->nodes[last - 1].next = at + 1;
        else
            *ret_first = at + 1;
        last = at + 1;
    }
    return true;
}

/* ---- writing ---- */

static void put_varint(struct kiln_buf *out, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        kiln_buf_putc(out, (char)(v | 0x80));
    kiln_buf_putc(out, (char)v);
}

static void put_all(const struct tree *t, uint32_t first, struct kiln_buf *out);

static void put_bytes(const struct tree *t, const struct node *n, struct kiln_buf *out)
{
    struct kiln_buf inner;

    if (!n->is_message) {
        put_varint(out, n->bytes.len);
        kiln_buf_add_str(out, n->bytes);
        return;
    }
    kiln_buf_init(&inner, out->max);
    put_all(t, n->child, &inner);
    put_varint(out, inner.len);
    kiln_buf_add_str(out, kiln_buf_str(&inner));
    kiln_buf_done(&inner);
}

static void put_all(const struct tree *t, uint32_t first, struct kiln_buf *out)
{
    for (uint32_t at = first; at; at = t->nodes[at - 1].next) {
        const struct node *n = &t->nodes[at - 1];

        put_varint(out, (uint64_t)n->field << 3 | n->wire);
        if (n->wire == VARINT)
            put_varint(out, n->number);
        else if (n->wire == BYTES)
            put_bytes(t, n, out);
        else
            kiln_buf_add(out, &n->number, n->wire == FIXED64 ? 8 : 4);
    }
}

/* ---- changing ---- */

/* Text that was made up, from `at` on in t->texts; there is room for all of it. */
static struct kiln_str made(struct tree *t, size_t at)
{
    return (struct kiln_str){t->texts.ptr + at, t->texts.len - at};
}

/* A list of packed numbers with one that is another, or one more. */
static void change_packed(struct tree *t, struct node *n, uint64_t *random)
{
    struct kiln_str in = n->bytes;
    uint64_t wanted = mutate_roll(random, in.len + 1), v;
    size_t at = t->texts.len;

    for (uint64_t i = 0; get_varint(&in, &v); i++)
        put_varint(&t->texts, i == wanted ? mutate_number(random, v) : v);
    if (mutate_roll(random, 2))
        put_varint(&t->texts, mutate_number(random, 0));
    n->bytes = made(t, at);
}

static void change_text(struct tree *t, struct node *n, uint64_t *random)
{
    static const char *const texts[] = {"",  "\x01",         "\xff\xfe",
                                        "a", "service.name", "\xf0\x9f\x94\xa5"};
    size_t at = t->texts.len;

    if (mutate_roll(random, 2)) {
        n->bytes = kiln_str_of(texts[mutate_roll(random, sizeof(texts) / sizeof(texts[0]))]);
        return;
    }
    kiln_buf_add_str(&t->texts, n->bytes);
    kiln_buf_putc(&t->texts, (char)mutate_roll(random, 256));
    n->bytes = made(t, at);
}

static void change_node(struct tree *t, uint32_t at, uint64_t *random)
{
    struct node *n = &t->nodes[at];

    if (n->wire != BYTES)
        n->number = mutate_number(random, n->number);
    else if (n->is_message && mutate_roll(random, 2))
        n->child = 0; /* an empty message */
    else if (n->is_message && n->child)
        n->child = t->nodes[n->child - 1].next; /* without its first field */
    else if (mutate_roll(random, 2))
        change_packed(t, n, random);
    else
        change_text(t, n, random);
}

/* A copy of a node, with the same children, behind another. */
static void insert_copy(struct tree *t, uint32_t of, uint32_t behind)
{
    uint32_t at = add_node(t);

    t->nodes[at] = t->nodes[of];
    t->nodes[at].next = t->nodes[behind].next;
    t->nodes[behind].next = at + 1;
}

static void insert_new(struct tree *t, uint32_t behind, uint64_t *random)
{
    uint32_t at = add_node(t);
    struct node *n = &t->nodes[at];

    n->field = 1 + (uint32_t)mutate_roll(random, 14);
    n->wire = mutate_roll(random, 2) ? BYTES : VARINT;
    n->number = mutate_roll(random, 8);
    if (n->wire == BYTES && mutate_roll(random, 2))
        n->bytes = (struct kiln_str){"\0", 1}; /* the list [0] */
    n->next = t->nodes[behind].next;
    t->nodes[behind].next = at + 1;
}

/* Another node of the same field, or the same one. */
static uint32_t relative(const struct tree *t, uint32_t at, uint64_t *random)
{
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t other = (uint32_t)mutate_roll(random, t->n);

        if (t->nodes[other].field == t->nodes[at].field &&
            t->nodes[other].wire == t->nodes[at].wire && other > at)
            return other; /* children come behind their parents: no circles */
    }
    return at;
}

static void change_tree(struct tree *t, uint64_t *random)
{
    uint32_t at = (uint32_t)mutate_roll(random, t->n), next;

    switch (mutate_roll(random, 8)) {
    case 0: /* the next one is gone */
        next = t->nodes[at].next;
        if (next)
            t->nodes[at].next = t->nodes[next - 1].next;
        break;
    case 1:
        insert_copy(t, at, at);
        break;
    case 2:
        insert_new(t, at, random);
        break;
    case 3: /* what another has */
        next = relative(t, at, random);
        if (!t->nodes[at].is_message) {
            t->nodes[at].number = t->nodes[next].number;
            t->nodes[at].bytes = t->nodes[next].bytes;
            t->nodes[at].is_message = t->nodes[next].is_message;
            t->nodes[at].child = t->nodes[next].child;
        }
        break;
    default:
        change_node(t, at, random);
    }
}

void mutate_protobuf(struct kiln_str in, uint64_t *random, struct kiln_buf *out)
{
    struct tree t = {0};
    uint32_t first = 0;

    kiln_buf_init(&t.texts, 2 * in.len + 4096);
    (void)!kiln_buf_reserve(&t.texts, 2 * in.len + 4096); /* it must not move */
    if (parse(&t, in, 0, &first) && t.n)
        change_tree(&t, random);
    if (first)
        put_all(&t, first, out);
    else
        kiln_buf_add_str(out, in);
    kiln_buf_done(&t.texts);
    free(t.nodes);
}

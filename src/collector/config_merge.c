/* SPDX-License-Identifier: Apache-2.0 */
/* Trees are never changed: a merge makes the nodes that differ, and shares what is below them. */
#include <errno.h>
#include <string.h>

#include "collector/config_int.h"

enum { KEYS_MAX = 1000, DEPTH_MAX = 32 };

static int merge_at(struct kiln_resolver *r, const struct kiln_node *earlier,
                    const struct kiln_node *later, uint32_t depth, const struct kiln_node **ret);

static int add(struct kiln_resolver *r, struct kiln_members *members, const struct kiln_node *node)
{
    if (members->n >= KEYS_MAX)
        return kiln_node_fail(node, KILN_E_LIMIT, r->err, "a map has more than 1,000 keys");
    return kiln_members_add(members, r->arena, node) ? 0 : kiln_resolver_no_memory(r);
}

static int make_map(struct kiln_resolver *r, const struct kiln_node *like,
                    const struct kiln_members *members, const struct kiln_node **ret)
{
    struct kiln_node *map = kiln_arena_alloc(r->arena, sizeof(*map));

    if (!map)
        return kiln_resolver_no_memory(r);
    *map = *like;
    map->kind = KILN_NODE_MAP;
    map->text = NULL;
    map->next = NULL;
    map->first = members->first;
    map->n = members->n;
    *ret = map;
    return 0;
}

static const struct kiln_node *member(const struct kiln_node *map, const char *key)
{
    return kiln_members_find(&(struct kiln_members){.first = map->first}, key);
}

/* What a member of the result is, of those that both have. */
static int merge_member(struct kiln_resolver *r, const struct kiln_node *m,
                        const struct kiln_node *later, uint32_t depth, struct kiln_members *ret)
{
    const struct kiln_node *over = member(later, m->key);
    int n = over ? merge_at(r, m, over, depth + 1, &m) : 0;

    return n < 0 ? n : add(r, ret, m);
}

static int merge_at(struct kiln_resolver *r, const struct kiln_node *earlier,
                    const struct kiln_node *later, uint32_t depth, const struct kiln_node **ret)
{
    struct kiln_members members = {0};
    int n = 0;

    *ret = later;
    if (earlier->kind != KILN_NODE_MAP || later->kind != KILN_NODE_MAP)
        return 0;
    if (depth > DEPTH_MAX)
        return kiln_node_fail(later, KILN_E_LIMIT, r->err, "maps stand too deep within each other");
    for (const struct kiln_node *m = earlier->first; n == 0 && m; m = m->next)
        n = merge_member(r, m, later, depth, &members);
    for (const struct kiln_node *m = later->first; n == 0 && m; m = m->next)
        n = member(earlier, m->key) ? 0 : add(r, &members, m);
    return n < 0 ? n : make_map(r, later, &members, ret);
}

int kiln_config_merge(struct kiln_resolver *r, const struct kiln_node *earlier,
                      const struct kiln_node *later, const struct kiln_node **ret)
{
    return merge_at(r, earlier, later, 0, ret);
}

/* ---- keys that are paths ---- */

static const char *copy_key(struct kiln_resolver *r, struct kiln_str part)
{
    char *key = kiln_arena_alloc(r->arena, part.len + 1);

    if (!key)
        return NULL;
    memcpy(key, part.ptr, part.len);
    key[part.len] = '\0';
    return key;
}

/* {a: {b: node}} of "a::b". */
static int wrap(struct kiln_resolver *r, const struct kiln_node *node, const char *path,
                uint32_t depth, const struct kiln_node **ret)
{
    const char *colons = strstr(path, "::");
    struct kiln_str head = {path, colons ? (size_t)(colons - path) : strlen(path)};
    struct kiln_members members = {0};
    struct kiln_node part = *node;
    int n = 0;

    if (head.len == 0 || depth > DEPTH_MAX)
        return kiln_node_fail(node, KILN_E_MALFORMED, r->err,
                              "\"%.80s\" is no path of keys (a::b::c)", node->key);
    part.key = copy_key(r, head);
    if (!part.key)
        return kiln_resolver_no_memory(r);
    if (!colons)
        n = add(r, &members, &part);
    else if ((n = wrap(r, node, colons + 2, depth + 1, ret)) == 0)
        n = add(r, &members, *ret);
    if (n < 0 || !colons) {
        *ret = members.first;
        return n;
    }
    part.original = NULL;
    return make_map(r, &part, &members, ret);
}

static int unfold_at(struct kiln_resolver *r, const struct kiln_node *map, uint32_t depth,
                     const struct kiln_node **ret);

/* Puts a member beside those that are there already, into one of them if it has the same key. */
static int place(struct kiln_resolver *r, struct kiln_members *members,
                 const struct kiln_node *node)
{
    const struct kiln_node *before = kiln_members_find(members, node->key);
    struct kiln_members all = {0};
    int n = 0;

    if (!before)
        return add(r, members, node);
    for (const struct kiln_node *m = members->first; n == 0 && m; m = m->next) {
        const struct kiln_node *now = m;

        if (m == before)
            n = kiln_config_merge(r, m, node, &now);
        if (n == 0)
            n = add(r, &all, now);
    }
    *members = all;
    return n;
}

static int unfold_member(struct kiln_resolver *r, const struct kiln_node *m, uint32_t depth,
                         struct kiln_members *members)
{
    int n = m->kind == KILN_NODE_MAP ? unfold_at(r, m, depth + 1, &m) : 0;

    if (n == 0 && strstr(m->key, "::"))
        n = wrap(r, m, m->key, 0, &m);
    return n < 0 ? n : place(r, members, m);
}

static int unfold_at(struct kiln_resolver *r, const struct kiln_node *map, uint32_t depth,
                     const struct kiln_node **ret)
{
    struct kiln_members members = {0};
    int n = 0;

    if (depth > DEPTH_MAX)
        return kiln_node_fail(map, KILN_E_LIMIT, r->err, "maps stand too deep within each other");
    for (const struct kiln_node *m = map->first; n == 0 && m; m = m->next)
        n = unfold_member(r, m, depth, &members);
    return n < 0 ? n : make_map(r, map, &members, ret);
}

int kiln_config_unfold(struct kiln_resolver *r, const struct kiln_node *map,
                       const struct kiln_node **ret)
{
    return unfold_at(r, map, 0, ret);
}

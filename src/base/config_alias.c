/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An alias is a node that shares what is below the one it names.  Whoever walks the tree sees all
 * of it again, so that it counts with all its size, and stands as deep as it is high: a few lines
 * cannot become more work than the limits allow.
 */
#include "base/config_int.h"

#define TAGS "tag:yaml.org,2002:"

struct kiln_yaml_anchor {
    struct kiln_yaml_anchor *next;
    struct kiln_str name;
    const struct kiln_node *node;
    uint32_t before; /* nodes when it began */
    uint32_t size;   /* nodes, with itself; 0: it is not complete */
    uint32_t height; /* levels below it */
};

/* ---- anchors ---- */

static const char *anchor_of(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return (const char *)event->data.scalar.anchor;
    case YAML_MAPPING_START_EVENT:
        return (const char *)event->data.mapping_start.anchor;
    case YAML_SEQUENCE_START_EVENT:
        return (const char *)event->data.sequence_start.anchor;
    default:
        return NULL;
    }
}

int kiln_yaml_anchor(struct kiln_yaml *r, const struct kiln_node *node)
{
    const char *name = anchor_of(&r->event);
    struct kiln_yaml_anchor *anchor;

    if (!name)
        return 0;
    anchor = kiln_arena_alloc(r->arena, sizeof(*anchor));
    if (!anchor)
        return kiln_yaml_no_memory(r);
    *anchor = (struct kiln_yaml_anchor){.next = r->anchors,
                                        .name = kiln_arena_copy(r->arena, kiln_str_of(name)),
                                        .node = node,
                                        .before = r->nodes - 1};
    if (!anchor->name.ptr)
        return kiln_yaml_no_memory(r);
    if (node->kind == KILN_NODE_TEXT)
        anchor->size = 1;
    else
        r->anchors_open[r->depth - 1] = anchor;
    r->anchors = anchor;
    return 0;
}

void kiln_yaml_anchor_close(struct kiln_yaml *r, uint32_t height)
{
    struct kiln_yaml_anchor *anchor = r->anchors_open[r->depth];

    if (!anchor)
        return;
    anchor->size = r->nodes - anchor->before;
    anchor->height = height;
}

void kiln_yaml_stands_below(struct kiln_yaml *r, uint32_t height)
{
    if (r->depth && r->height[r->depth - 1] < height)
        r->height[r->depth - 1] = height;
}

/* ---- aliases ---- */

static const struct kiln_yaml_anchor *find(const struct kiln_yaml *r, struct kiln_str name)
{
    for (const struct kiln_yaml_anchor *a = r->anchors; a; a = a->next)
        if (kiln_str_eq(a->name, name))
            return a;
    return NULL;
}

int kiln_yaml_alias(struct kiln_yaml *r)
{
    const char *name = (const char *)r->event.data.alias.anchor;
    const struct kiln_yaml_anchor *anchor = find(r, kiln_str_of(name));
    struct kiln_node *node;
    int n;

    if (!anchor)
        return kiln_yaml_fail(r, KILN_E_MALFORMED, "no anchor of this name stands before");
    if (!anchor->size)
        return kiln_yaml_fail(r, KILN_E_MALFORMED, "an alias stands within what it names");
    if (r->depth + anchor->height > KILN_YAML_DEPTH)
        return kiln_yaml_fail(r, KILN_E_LIMIT, "lists and maps stand too deep within each other");
    n = kiln_yaml_add(r, anchor->node->kind, &node);
    if (n < 0)
        return n;
    if (anchor->size - 1 > KILN_YAML_NODES - r->nodes)
        return kiln_yaml_fail(r, KILN_E_LIMIT, "aliases stand for too many values");
    r->nodes += anchor->size - 1;
    node->text = anchor->node->text;
    node->quoted = anchor->node->quoted;
    node->first = anchor->node->first;
    node->n = anchor->node->n;
    kiln_yaml_stands_below(r, anchor->height);
    return 0;
}

/* ---- merge keys ---- */

static int inherit_from(struct kiln_yaml *r, const struct kiln_node *map,
                        struct kiln_members *members)
{
    if (map->kind != KILN_NODE_MAP)
        return kiln_node_fail(map, KILN_E_MALFORMED, r->err,
                              "<< takes the keys of a map, or of a list of maps");
    for (const struct kiln_node *m = map->first; m; m = m->next) {
        if (kiln_members_find(members, m->key))
            continue;
        if (members->n == KILN_YAML_KEYS)
            return kiln_node_fail(map, KILN_E_LIMIT, r->err, "a map has more than 1,000 keys");
        if (!kiln_members_add(members, r->arena, m))
            return kiln_yaml_no_memory(r);
    }
    return 0;
}

static int inherit_all(struct kiln_yaml *r, const struct kiln_node *from,
                       struct kiln_members *members)
{
    int n = 0;

    if (from->kind != KILN_NODE_LIST)
        return inherit_from(r, from, members);
    for (const struct kiln_node *map = from->first; n == 0 && map; map = map->next)
        n = inherit_from(r, map, members);
    return n;
}

static const struct kiln_node *merge_key(const struct kiln_node *map)
{
    for (const struct kiln_node *m = map->first; m; m = m->next)
        if (strcmp(m->key, "<<") == 0)
            return m;
    return NULL;
}

int kiln_yaml_inherit(struct kiln_yaml *r, struct kiln_node *map)
{
    const struct kiln_node *from = merge_key(map);
    struct kiln_members members = {0};
    int n;

    if (!from)
        return 0;
    for (const struct kiln_node *m = map->first; m; m = m->next)
        if (m != from && !kiln_members_add(&members, r->arena, m))
            return kiln_yaml_no_memory(r);
    n = inherit_all(r, from, &members);
    map->first = members.first;
    map->n = members.n;
    return n;
}

/* ---- tags ---- */

static const char *tag_of(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return (const char *)event->data.scalar.tag;
    case YAML_MAPPING_START_EVENT:
        return (const char *)event->data.mapping_start.tag;
    case YAML_SEQUENCE_START_EVENT:
        return (const char *)event->data.sequence_start.tag;
    default:
        return NULL;
    }
}

bool kiln_yaml_knows_tag(const yaml_event_t *event)
{
    static const char *const known[] = {"!",         TAGS "str",  TAGS "int", TAGS "float",
                                        TAGS "bool", TAGS "null", TAGS "map", TAGS "seq"};
    const char *tag = tag_of(event);

    for (uint32_t i = 0; tag && i < KILN_ARRAY_LEN(known); i++)
        if (strcmp(tag, known[i]) == 0)
            return true;
    return !tag;
}

bool kiln_yaml_says_text(const yaml_event_t *event)
{
    const char *tag = tag_of(event);

    return tag && (strcmp(tag, "!") == 0 || strcmp(tag, TAGS "str") == 0);
}

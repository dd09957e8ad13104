/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one configuration to the next: an exporter of which nothing has changed is not made anew,
 * but goes on in the next graph with its queue, its connections and its counters.
 *
 *   graph before            graph
 *     unit (lent) ─────────▶ unit (carried)      from kiln_graph_succeed() on
 *     home ◀──────────────── home                whose settings and extensions it was made with
 *
 * Nothing has changed where its part of the configuration is the same, word for word, and so is
 * that of every extension it names.  Its home is freed when the last of its components is.
 */
#include "collector/graph_int.h"

/* ---- what is the same ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_node(const struct kiln_node *a, const struct kiln_node *b)
{
    if (!a || !b)
        return a == b;
    if (a->kind != b->kind || a->n != b->n || !same_text(a->key, b->key) ||
        !same_text(a->text, b->text) || !same_text(a->original, b->original))
        return false;
    for (a = a->first, b = b->first; a && b; a = a->next, b = b->next)
        if (!same_node(a, b))
            return false;
    return true;
}

static const struct kiln_piece *find(const struct kiln_piece_list *list, const char *id)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (strcmp(list->items[i]->id, id) == 0)
            return list->items[i];
    return NULL;
}

/* Whether every extension that a text below `node` may name is what it was, or was none. */
static bool same_extensions(const struct kiln_graph *a, const struct kiln_graph *b,
                            const struct kiln_node *node)
{
    const struct kiln_piece *was, *is;

    if (node->text) {
        was = find(&a->extensions, node->text);
        is = find(&b->extensions, node->text);
        if (was != is && (!was || !is || !same_node(was->node, is->node)))
            return false;
    }
    for (const struct kiln_node *member = node->first; member; member = member->next)
        if (!same_extensions(a, b, member))
            return false;
    return true;
}

/* ---- carrying ---- */

static bool can_go_on(const struct kiln_unit *unit)
{
    return unit->component && unit->component->ops->let_go && unit->started && !unit->lent;
}

struct kiln_unit *kiln_graph_find_carried(struct kiln_graph *graph, const struct kiln_piece *piece,
                                          enum kiln_signal signal)
{
    struct kiln_graph *before = graph->opts.before;

    if (!before || piece->type->kind != KILN_EXPORTER)
        return NULL;
    for (uint32_t i = 0; i < before->n_units; i++) {
        struct kiln_unit *unit = &before->units[i];

        if (can_go_on(unit) && unit->piece->type == piece->type && unit->signal == signal &&
            same_node(unit->piece->node, piece->node) &&
            same_extensions(before, graph, piece->node))
            return unit;
    }
    return NULL;
}

void kiln_graph_succeed(struct kiln_graph *graph)
{
    for (uint32_t i = 0; i < graph->n_units; i++) {
        struct kiln_unit *unit = &graph->units[i];

        if (!unit->from)
            continue;
        unit->from->lent = true;
        unit->from = NULL;
        unit->home->refs++;
    }
    graph->opts.before = NULL;
}

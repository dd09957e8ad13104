/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Components are made from the end: a pipeline after those that its connectors lead to, and in it
 * exporters before processors, the last of them first; receivers when every pipeline is there.
 * This order is the one of starting, and backwards the one of stopping.  Exporters that are at work
 * already and need not change are carried over (graph_carry.c).
 */
#include <errno.h>
#include <stdio.h>

#include "collector/graph_int.h"
#include "pipeline/fanout.h"

static int no_memory(struct kiln_err *err)
{
    return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
}

static struct kiln_unit *add_unit(struct kiln_graph *graph)
{
    return &graph->units[graph->n_units++]; /* as many as there can be were counted */
}

/* Whose it is, and where that stands. */
static int fail(const struct kiln_piece *piece, int code, struct kiln_err *err)
{
    const struct kiln_err why = *err;

    *err = (struct kiln_err){0};
    return kiln_node_fail(piece->node, code, err, "%s::%.60s: %.40s%s%.150s",
                          kiln_component_section_names[piece->type->kind], piece->id, why.where,
                          why.where[0] ? ": " : "", why.text);
}

static int make_component(struct kiln_graph *graph, const struct kiln_piece *piece,
                          struct kiln_component_env *env, struct kiln_component **ret,
                          struct kiln_err *err)
{
    struct kiln_unit *unit;
    int r;

    env->id = piece->id;
    env->graph = graph;
    env->pool = graph->opts.pool;
    env->sockets = graph->opts.sockets;
    env->metrics = graph->opts.metrics;
    env->log = graph->opts.log;
    r = piece->type->make(env, piece->settings, ret, err);
    if (r < 0)
        return fail(piece, r, err);
    unit = add_unit(graph);
    unit->component = *ret;
    unit->piece = piece;
    unit->signal = env->signal;
    unit->home = graph;
    return 0;
}

/* An exporter that is at work and need not change; false: there is none. */
static bool carry(struct kiln_graph *graph, const struct kiln_piece *piece, enum kiln_signal signal,
                  struct kiln_component **ret)
{
    struct kiln_unit *from = kiln_graph_find_carried(graph, piece, signal), *unit;

    if (!from)
        return false;
    unit = add_unit(graph);
    *unit = (struct kiln_unit){.component = from->component,
                               .piece = piece,
                               .signal = signal,
                               .home = from->home,
                               .from = from,
                               .carried = true,
                               .started = true};
    *ret = from->component;
    return true;
}

/* What takes a delivery to all of `next`: the only one, or a fan-out. */
static int lead_to(struct kiln_graph *graph, struct kiln_consumer *const *next, uint32_t n,
                   struct kiln_consumer **ret, struct kiln_err *err)
{
    struct kiln_unit *unit;

    if (n == 1) {
        *ret = next[0];
        return 0;
    }
    if (kiln_fanout_new(next, n, ret) < 0)
        return no_memory(err);
    unit = add_unit(graph);
    unit->between = *ret;
    unit->between_free = kiln_fanout_free;
    return 0;
}

static int make_pipeline(struct kiln_graph *graph, struct kiln_pipeline *pipeline,
                         struct kiln_err *err);

static bool names(const struct kiln_piece_list *list, const struct kiln_piece *piece)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (list->items[i] == piece)
            return true;
    return false;
}

/* All pipelines of a signal that begin with this receiver or connector; *ret NULL: none. */
static int lead_to_pipelines(struct kiln_graph *graph, const struct kiln_piece *piece,
                             enum kiln_signal signal, struct kiln_consumer **ret,
                             struct kiln_err *err)
{
    struct kiln_consumer **next =
        kiln_graph_alloc(graph, graph->n_pipelines, sizeof(struct kiln_consumer *), err);
    uint32_t n = 0;
    int r = next ? 0 : -ENOMEM;

    for (uint32_t i = 0; r == 0 && i < graph->n_pipelines; i++) {
        struct kiln_pipeline *pipeline = &graph->pipelines[i];

        if (pipeline->signal != signal || !names(&pipeline->receivers, piece))
            continue;
        r = make_pipeline(graph, pipeline, err);
        next[n++] = pipeline->in;
    }
    *ret = NULL;
    return r < 0 || !n ? r : lead_to(graph, next, n, ret, err);
}

static int make_end(struct kiln_graph *graph, const struct kiln_pipeline *pipeline,
                    struct kiln_piece *piece, struct kiln_consumer **ret, struct kiln_err *err)
{
    struct kiln_component_env env = {.signal = pipeline->signal};
    struct kiln_component **made = &piece->made[pipeline->signal];
    int r = 0;

    if (!*made && piece->type->kind == KILN_CONNECTOR) {
        r = lead_to_pipelines(graph, piece, pipeline->signal, &env.next[pipeline->signal], err);
        if (r == 0 && !env.next[pipeline->signal])
            r = kiln_node_fail(piece->node, KILN_E_MALFORMED, err,
                               "connectors::%.60s: must be used as both receiver and exporter but "
                               "is not used as receiver",
                               piece->id);
    }
    if (r == 0 && !*made && !carry(graph, piece, pipeline->signal, made))
        r = make_component(graph, piece, &env, made, err);
    if (r == 0)
        *ret = (*made)->in;
    return r;
}

static int make_ends(struct kiln_graph *graph, struct kiln_pipeline *pipeline, struct kiln_err *err)
{
    uint32_t n = pipeline->exporters.n;
    struct kiln_consumer **ends = kiln_graph_alloc(graph, n, sizeof(struct kiln_consumer *), err);
    int r = ends ? 0 : -ENOMEM;

    for (uint32_t i = 0; r == 0 && i < n; i++)
        r = make_end(graph, pipeline, pipeline->exporters.items[i], &ends[i], err);
    return r < 0 ? r : lead_to(graph, ends, n, &pipeline->in, err);
}

static int make_pipeline(struct kiln_graph *graph, struct kiln_pipeline *pipeline,
                         struct kiln_err *err)
{
    int r;

    if (pipeline->state == KILN_PIPELINE_MADE)
        return 0;
    if (pipeline->state == KILN_PIPELINE_BEGUN)
        return kiln_node_fail(pipeline->node, KILN_E_MALFORMED, err,
                              "service::pipelines::%.60s: cycle detected: its connectors lead back "
                              "to it",
                              pipeline->name);
    pipeline->state = KILN_PIPELINE_BEGUN;
    r = make_ends(graph, pipeline, err);
    for (uint32_t i = pipeline->processors.n; r == 0 && i > 0; i--) {
        struct kiln_component_env env = {.signal = pipeline->signal};
        struct kiln_component *made;

        env.next[pipeline->signal] = pipeline->in;
        r = make_component(graph, pipeline->processors.items[i - 1], &env, &made, err);
        if (r == 0)
            pipeline->in = made->in;
    }
    pipeline->state = KILN_PIPELINE_MADE;
    return r;
}

static int make_entry(struct kiln_graph *graph, const struct kiln_piece *piece,
                      enum kiln_signal signal, struct kiln_consumer **ret, struct kiln_err *err)
{
    struct kiln_consumer *next;
    struct kiln_unit *unit;
    int r = lead_to_pipelines(graph, piece, signal, &next, err);

    *ret = NULL;
    if (r < 0 || !next)
        return r;
    if (kiln_way_in_new(piece->id, signal, next, graph->opts.metrics, ret) < 0)
        return no_memory(err);
    unit = add_unit(graph);
    unit->between = *ret;
    unit->between_free = kiln_way_in_free;
    return 0;
}

static int make_receiver(struct kiln_graph *graph, struct kiln_piece *piece, struct kiln_err *err)
{
    struct kiln_component_env env = {0};
    int r = 0;

    if (!piece->used) /* configured, and named by nobody */
        return 0;
    for (int signal = 0; r == 0 && signal < KILN_SIGNALS; signal++)
        r = make_entry(graph, piece, (enum kiln_signal)signal, &env.next[signal], err);
    return r < 0 ? r : make_component(graph, piece, &env, &piece->made[0], err);
}

/* Connectors that end nothing were never made. */
static int check_connectors(const struct kiln_graph *graph, struct kiln_err *err)
{
    for (uint32_t i = 0; i < graph->n_pieces[KILN_CONNECTOR]; i++) {
        const struct kiln_piece *piece = &graph->pieces[KILN_CONNECTOR][i];
        bool made = false;

        for (int signal = 0; signal < KILN_SIGNALS; signal++)
            made |= piece->made[signal] != NULL;
        if (piece->used && !made)
            return kiln_node_fail(piece->node, KILN_E_MALFORMED, err,
                                  "connectors::%.60s: must be used as both receiver and exporter "
                                  "but is not used as exporter",
                                  piece->id);
    }
    return 0;
}

/* The most units there can be: every reference one, every fan-out and entry one. */
static uint32_t most_units(const struct kiln_graph *graph)
{
    uint32_t n = graph->extensions.n + graph->n_pieces[KILN_RECEIVER] * (2 * KILN_SIGNALS + 1);

    for (uint32_t i = 0; i < graph->n_pipelines; i++)
        n += graph->pipelines[i].processors.n + 2 * graph->pipelines[i].exporters.n + 1;
    return n;
}

int kiln_graph_make(struct kiln_graph *graph, struct kiln_err *err)
{
    int r = 0;

    graph->units = kiln_graph_alloc(graph, most_units(graph), sizeof(*graph->units), err);
    if (!graph->units)
        return -ENOMEM;
    for (uint32_t i = 0; r == 0 && i < graph->extensions.n; i++) {
        struct kiln_piece *piece = graph->extensions.items[i];

        r = make_component(graph, piece, &(struct kiln_component_env){0}, &piece->made[0], err);
    }
    for (uint32_t i = 0; r == 0 && i < graph->n_pipelines; i++)
        r = make_pipeline(graph, &graph->pipelines[i], err);
    if (r == 0)
        r = check_connectors(graph, err);
    for (uint32_t i = 0; r == 0 && i < graph->n_pieces[KILN_RECEIVER]; i++)
        r = make_receiver(graph, &graph->pieces[KILN_RECEIVER][i], err);
    return r;
}

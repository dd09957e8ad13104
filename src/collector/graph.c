/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/graph.h"

#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collector/graph_int.h"

enum { GRAPH_MEMORY = 16 << 20 };
#define UNDO_NS (5 * KILN_NS_PER_S)

void *kiln_graph_alloc(struct kiln_graph *graph, size_t n, size_t size, struct kiln_err *err)
{
    void *memory = kiln_arena_alloc(&graph->arena, n * size + !n);

    if (memory)
        memset(memory, 0, n * size);
    else
        kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    return memory;
}

static int make(struct kiln_graph *graph, struct kiln_err *err)
{
    struct kiln_err fault = {0};
    int r = kiln_graph_make(graph, &fault);

    if (r < 0)
        (void)!kiln_faults_note(graph->opts.faults, &fault, err);
    return r;
}

int kiln_graph_new(const struct kiln_node *root, const struct kiln_graph_opts *opts,
                   struct kiln_graph **ret_graph, struct kiln_err *err)
{
    struct kiln_graph *graph = kiln_calloc(1, sizeof(*graph));
    int r;

    if (!graph)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    graph->opts = *opts;
    graph->refs = 1;
    graph->budget.limit = GRAPH_MEMORY;
    kiln_arena_init(&graph->arena, &graph->budget);
    r = kiln_graph_read(graph, root, err);
    if (r == 0)
        r = make(graph, err);
    if (r < 0) {
        graph->opts.released = NULL; /* it was never kept */
        kiln_graph_free(graph);
        return r;
    }
    *ret_graph = graph;
    return 0;
}

static int start_unit(struct kiln_unit *unit, struct kiln_err *err)
{
    struct kiln_component *component = unit->component;
    int r = 0;

    if (unit->carried && component->ops->go_on)
        component->ops->go_on(component);
    else if (!unit->carried && component && component->ops->start)
        r = component->ops->start(component, err);
    unit->started = r == 0;
    if (r < 0)
        kiln_err_within(err, "%s::%s", kiln_component_section_names[unit->piece->type->kind],
                        unit->piece->id);
    return r;
}

/* Before those who wait for their deliveries are stopped. */
static void release_deliveries(struct kiln_unit *unit, bool goes_on, uint64_t when_ns)
{
    struct kiln_component *component = unit->component;

    if (!unit->started || !component || unit->from)
        return;
    if (goes_on)
        component->ops->let_go(component);
    else if (component->ops->release)
        component->ops->release(component, when_ns);
}

static void stop_unit(struct kiln_unit *unit, uint64_t deadline_ns)
{
    struct kiln_component *component = unit->component;
    bool works = unit->started && component && !unit->from;

    if (works && unit->lent)
        component->ops->let_go(component);
    else if (works && component->ops->stop)
        component->ops->stop(component, deadline_ns);
    unit->started = false;
}

/* The first of several receivers may have taken, and acknowledged, what its exporters still hold.
 */
static void undo_start(struct kiln_graph *graph, uint32_t n)
{
    uint64_t deadline_ns = kiln_clock_mono_ns() + UNDO_NS;

    for (uint32_t i = 0; i < n; i++)
        release_deliveries(&graph->units[i], graph->units[i].carried, 0);
    for (uint32_t i = n; i > 0; i--)
        if (!graph->units[i - 1].carried)
            stop_unit(&graph->units[i - 1], deadline_ns);
}

int kiln_graph_start(struct kiln_graph *graph, struct kiln_err *err)
{
    int r = 0;
    uint32_t n = 0;

    for (; r == 0 && n < graph->n_units; n += r == 0)
        r = start_unit(&graph->units[n], err);
    if (r < 0)
        undo_start(graph, n);
    atomic_store(&graph->running, r == 0);
    return r;
}

bool kiln_graph_is_running(const struct kiln_graph *graph)
{
    return atomic_load(&graph->running);
}

void kiln_graph_stop(struct kiln_graph *graph, uint64_t deadline_ns)
{
    uint64_t now = kiln_clock_mono_ns();
    /* Half of the time is for deliveries to end as they should, the other for what is queued. */
    uint64_t when_ns = deadline_ns > now ? now + (deadline_ns - now) / 2 : now;

    atomic_store(&graph->running, false);
    for (uint32_t i = 0; i < graph->n_units; i++)
        release_deliveries(&graph->units[i], graph->units[i].lent, when_ns);
    for (uint32_t i = graph->n_units; i > 0; i--)
        stop_unit(&graph->units[i - 1], deadline_ns);
}

static void unref(struct kiln_graph *graph);

static void free_unit(struct kiln_graph *graph, struct kiln_unit *unit)
{
    if (unit->component && !unit->lent && !unit->from)
        unit->component->ops->free(unit->component);
    unit->component = NULL;
    if (unit->between)
        unit->between_free(unit->between);
    unit->between = NULL;
    if (unit->home && unit->home != graph && !unit->from)
        unref(unit->home);
}

static bool is_extension(const struct kiln_unit *unit)
{
    return unit->piece && unit->piece->type->kind == KILN_EXTENSION;
}

/* Nothing that was made of it is there any more. */
static void unref(struct kiln_graph *graph)
{
    if (--graph->refs)
        return;
    for (uint32_t i = graph->n_units; i > 0; i--)
        if (is_extension(&graph->units[i - 1]))
            free_unit(graph, &graph->units[i - 1]);
    for (int kind = 0; kind < KILN_COMPONENT_KINDS; kind++) {
        for (uint32_t i = 0; i < graph->n_pieces[kind]; i++) {
            const struct kiln_piece *piece = &graph->pieces[kind][i];

            if (piece->settings && piece->type->settings_done)
                piece->type->settings_done(piece->settings);
        }
    }
    if (graph->opts.released)
        graph->opts.released(graph->opts.context);
    kiln_arena_done(&graph->arena);
    kiln_free(graph);
}

/* Extensions stay for those that were lent: they may be asked at any time. */
void kiln_graph_free(struct kiln_graph *graph)
{
    if (!graph)
        return;
    for (uint32_t i = graph->n_units; i > 0; i--)
        if (!is_extension(&graph->units[i - 1]))
            free_unit(graph, &graph->units[i - 1]);
    unref(graph);
}

void kiln_graph_want_own(struct kiln_graph *graph)
{
    if (graph)
        graph->wants_own = true;
}

bool kiln_graph_wants_own(const struct kiln_graph *graph)
{
    return graph->wants_own;
}

struct kiln_component *kiln_graph_extension(const struct kiln_graph *graph, const char *id,
                                            const struct kiln_component_type *type)
{
    for (uint32_t i = 0; i < graph->extensions.n; i++) {
        const struct kiln_piece *piece = graph->extensions.items[i];

        if (strcmp(piece->id, id) == 0 && piece->type == type)
            return piece->made[0];
    }
    return NULL;
}

const struct kiln_graph *kiln_graph_before(const struct kiln_graph *graph)
{
    return graph ? graph->opts.before : NULL;
}

struct kiln_component *kiln_graph_receiver_before(const struct kiln_graph *graph, const char *id,
                                                  const struct kiln_component_type *type)
{
    const struct kiln_graph *before = kiln_graph_before(graph);

    for (uint32_t i = 0; before && i < before->n_pieces[KILN_RECEIVER]; i++) {
        const struct kiln_piece *piece = &before->pieces[KILN_RECEIVER][i];

        if (strcmp(piece->id, id) == 0 && piece->type == type)
            return piece->made[0];
    }
    return NULL;
}

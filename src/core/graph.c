/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heaviest frames come from kiln_top().  There are few enough of them that all possible edges
 * are a matrix: one walk over the rows fills it.  From the matrix go, in this order: edges that are
 * too light, all but the heaviest few for each node, and indirect edges whose ends are also joined
 * by a longer way.  The heaviest caller of a node stays in the first two steps, so that no node
 * that is called is left alone.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/graph.h"
#include "core/top.h"

#define NODES      80
#define NODE_SHARE 0.005
#define EDGE_SHARE 0.001
#define EDGES_PER  4 /* edges for each node, at most */
#define WORDS      (KILN_CALL_GRAPH_NODES_MAX / 64)
#define NO_NODE    UINT32_MAX

struct cell {
    int64_t value;
    uint32_t row; /* 1 + the last row that had this edge */
    bool used, direct;
};

static double size_of(int64_t value)
{
    return value < 0 ? -(double)value : (double)value;
}

static double limit_of(const struct kiln_view *view, double share, double by_default)
{
    return (share < 0 ? 0 : share > 0 ? share : by_default) * size_of(view->total);
}

/* Takes the frames of the graph out of `rows` and fills node_of[frame]. */
static int choose_nodes(struct kiln_call_graph *graph, const struct kiln_call_graph_opts *opts,
                        const struct kiln_top_row *rows, uint32_t n_rows, uint32_t *node_of)
{
    uint32_t max = opts->nodes_max ? opts->nodes_max : NODES;
    double least = limit_of(graph->view, opts->node_share, NODE_SHARE);

    if (max > KILN_CALL_GRAPH_NODES_MAX)
        max = KILN_CALL_GRAPH_NODES_MAX;
    if (max > n_rows)
        max = n_rows;
    graph->nodes = kiln_malloc((max ? max : 1) * sizeof(*graph->nodes));
    if (!graph->nodes)
        return -ENOMEM;
    for (uint32_t i = 0; i < graph->view->n_frames; i++)
        node_of[i] = NO_NODE;
    for (uint32_t i = 0; i < n_rows && graph->n_nodes < max; i++) {
        if (size_of(rows[i].total) < least)
            continue;
        node_of[rows[i].frame] = graph->n_nodes;
        graph->nodes[graph->n_nodes++] = (struct kiln_call_graph_node){
            .frame = rows[i].frame, .self = rows[i].self, .total = rows[i].total};
    }
    graph->dropped_nodes = n_rows - graph->n_nodes;
    return 0;
}

/* Adds the edges of one row, each at most once. */
static void add_row(const struct kiln_call_graph *graph, uint32_t row, const uint32_t *node_of,
                    struct cell *cells)
{
    const struct kiln_view_row *r = &graph->view->rows[row];
    uint32_t caller = NO_NODE;
    bool direct = true;

    for (uint32_t i = 0; i < r->n; i++) {
        uint32_t node = node_of[graph->view->path[r->first + i]];
        struct cell *cell;

        if (node == NO_NODE) {
            direct = false;
            continue;
        }
        if (caller != NO_NODE) {
            cell = &cells[(size_t)caller * graph->n_nodes + node];
            cell->used = true;
            cell->direct |= direct;
            if (cell->row != row + 1 && __builtin_add_overflow(cell->value, r->value, &cell->value))
                cell->value = r->value < 0 ? INT64_MIN : INT64_MAX;
            cell->row = row + 1;
        }
        caller = node;
        direct = true;
    }
}

static int heavier_first(const void *a, const void *b)
{
    const struct kiln_call_graph_edge *x = a, *y = b;

    if (x->value != y->value)
        return x->value < y->value ? 1 : -1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

/* All edges of the matrix, heaviest first. */
static int collect(struct kiln_call_graph *graph, const struct cell *cells)
{
    size_t n = graph->n_nodes, used = 0;

    for (size_t i = 0; i < n * n; i++)
        used += cells[i].used;
    graph->edges = kiln_malloc((used ? used : 1) * sizeof(*graph->edges));
    if (!graph->edges)
        return -ENOMEM;
    for (size_t i = 0; i < n * n; i++)
        if (cells[i].used)
            graph->edges[graph->n_edges++] = (struct kiln_call_graph_edge){
                .from = (uint32_t)(i / n),
                .to = (uint32_t)(i % n),
                .value = cells[i].value,
                .indirect = !cells[i].direct,
            };
    qsort(graph->edges, graph->n_edges, sizeof(*graph->edges), heavier_first);
    return 0;
}

/* Drops light edges; edges are sorted, so that the first to reach a node is its heaviest caller. */
static void drop_light(struct kiln_call_graph *graph, double least)
{
    bool called[KILN_CALL_GRAPH_NODES_MAX] = {false};
    uint32_t kept = 0;

    for (uint32_t i = 0; i < graph->n_edges; i++) {
        struct kiln_call_graph_edge edge = graph->edges[i];
        bool first = edge.from != edge.to && !called[edge.to];

        if (first)
            called[edge.to] = true;
        else if (size_of(edge.value) < least || i >= EDGES_PER * graph->n_nodes)
            continue;
        graph->edges[kept++] = edge;
    }
    graph->dropped_edges += graph->n_edges - kept;
    graph->n_edges = kept;
}

/* Who calls whom, a bit each: fast enough to ask for ways through the graph again and again. */
struct reach {
    uint64_t callees[KILN_CALL_GRAPH_NODES_MAX][WORDS];
};

static void set_bit(uint64_t *bits, uint32_t at, bool on)
{
    bits[at / 64] = (bits[at / 64] & ~(1ull << at % 64)) | (uint64_t)on << at % 64;
}

static bool get_bit(const uint64_t *bits, uint32_t at)
{
    return bits[at / 64] >> at % 64 & 1;
}

/* Takes a node that is in `reached` but not in `done`; NO_NODE if there is none. */
static uint32_t take_next(const uint64_t *reached, uint64_t *done)
{
    for (uint32_t w = 0; w < WORDS; w++) {
        uint64_t left = reached[w] & ~done[w];

        if (!left)
            continue;
        done[w] |= left & -left;
        return w * 64 + (uint32_t)__builtin_ctzll(left);
    }
    return NO_NODE;
}

/* True if `to` can be reached from `from` without the edge between them. */
static bool has_longer_way(const struct reach *reach, uint32_t from, uint32_t to)
{
    uint64_t reached[WORDS], done[WORDS] = {0};
    uint32_t at;

    memcpy(reached, reach->callees[from], sizeof(reached));
    set_bit(reached, to, false);
    set_bit(done, from, true);
    while ((at = take_next(reached, done)) != NO_NODE) {
        if (get_bit(reach->callees[at], to))
            return true;
        for (uint32_t w = 0; w < WORDS; w++)
            reached[w] |= reach->callees[at][w];
    }
    return false;
}

/* Drops indirect edges, the lightest first, as long as their ends stay joined. */
static int drop_implied(struct kiln_call_graph *graph)
{
    struct reach *reach = kiln_calloc(1, sizeof(*reach));
    uint32_t kept = 0;

    if (!reach)
        return -ENOMEM;
    for (uint32_t i = 0; i < graph->n_edges; i++)
        set_bit(reach->callees[graph->edges[i].from], graph->edges[i].to, true);
    for (uint32_t i = graph->n_edges; i-- > 0;) {
        struct kiln_call_graph_edge *edge = &graph->edges[i];

        if (edge->indirect && edge->from != edge->to && has_longer_way(reach, edge->from, edge->to))
            set_bit(reach->callees[edge->from], edge->to, false);
    }
    for (uint32_t i = 0; i < graph->n_edges; i++)
        if (get_bit(reach->callees[graph->edges[i].from], graph->edges[i].to))
            graph->edges[kept++] = graph->edges[i];
    graph->dropped_edges += graph->n_edges - kept;
    graph->n_edges = kept;
    kiln_free(reach);
    return 0;
}

static int fill(struct kiln_call_graph *graph, const struct kiln_call_graph_opts *opts,
                const struct kiln_top_row *rows, uint32_t n_rows)
{
    size_t n_frames = graph->view->n_frames;
    uint32_t *node_of = kiln_malloc((n_frames ? n_frames : 1) * sizeof(*node_of));
    struct cell *cells = NULL;
    int r = node_of ? choose_nodes(graph, opts, rows, n_rows, node_of) : -ENOMEM;

    if (r == 0 && graph->n_nodes) {
        cells = kiln_calloc((size_t)graph->n_nodes * graph->n_nodes, sizeof(*cells));
        r = cells ? 0 : -ENOMEM;
    }
    if (r == 0 && cells) {
        for (uint32_t i = 0; i < graph->view->n_rows; i++)
            add_row(graph, i, node_of, cells);
        r = collect(graph, cells);
    }
    if (r == 0) {
        drop_light(graph, limit_of(graph->view, opts->edge_share, EDGE_SHARE));
        r = drop_implied(graph);
    }
    kiln_free(cells);
    kiln_free(node_of);
    return r;
}

int kiln_call_graph_new(const struct kiln_view *view, const struct kiln_call_graph_opts *opts,
                        struct kiln_call_graph **ret_graph)
{
    static const struct kiln_call_graph_opts defaults;
    struct kiln_call_graph *graph = kiln_calloc(1, sizeof(*graph));
    struct kiln_top_row *rows = NULL;
    uint32_t n_rows = 0;
    int r;

    if (!graph)
        return -ENOMEM;
    graph->view = view;
    r = kiln_top(view, KILN_TOP_BY_TOTAL, &rows, &n_rows);
    if (r == 0)
        r = fill(graph, opts ? opts : &defaults, rows, n_rows);
    kiln_free(rows);
    if (r < 0) {
        kiln_call_graph_free(graph);
        return r;
    }
    *ret_graph = graph;
    return 0;
}

void kiln_call_graph_free(struct kiln_call_graph *graph)
{
    if (!graph)
        return;
    kiln_free(graph->nodes);
    kiln_free(graph->edges);
    kiln_free(graph);
}

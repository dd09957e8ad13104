/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_int - what the files of the graph share: graph_read.c reads the configuration into pieces
 * and pipelines, graph_make.c makes components of them, graph_carry.c takes them over
 * from the graph before, entry.c is where receivers hand over, graph.c starts and stops;
 * extensions/zpages.c shows it.
 */
#ifndef KILN_COLLECTOR_GRAPH_INT_H
#define KILN_COLLECTOR_GRAPH_INT_H

#include "base/arena.h"
#include "collector/graph.h"

/* One component as the configuration has it. */
struct kiln_piece {
    const struct kiln_component_type *type; /* NULL: there is none, which was told */
    const char *id;
    const struct kiln_node *node;
    void *settings;
    struct kiln_component *made[KILN_SIGNALS]; /* exporters, connectors; [0]: the others */
    bool used;
};

/* The pieces that a list of a pipeline names. */
struct kiln_piece_list {
    struct kiln_piece **items;
    uint32_t n;
    uint32_t said; /* how many stand there, those that are at fault included */
};

enum kiln_pipeline_state { KILN_PIPELINE_READ, KILN_PIPELINE_BEGUN, KILN_PIPELINE_MADE };

struct kiln_pipeline {
    const char *name; /* "profiles/second" */
    enum kiln_signal signal;
    const struct kiln_node *node;
    struct kiln_piece_list receivers; /* and connectors */
    struct kiln_piece_list processors;
    struct kiln_piece_list exporters; /* and connectors */
    struct kiln_consumer *in;         /* once it is made */
    enum kiln_pipeline_state state;
};

/* A component in the order of making, or a consumer between two of them. */
struct kiln_unit {
    struct kiln_component *component;
    const struct kiln_piece *piece;
    enum kiln_signal signal;
    struct kiln_graph *home; /* that made it */
    struct kiln_unit *from;  /* of the graph before, as long as that has it; NULL: it is ours */
    bool carried;            /* it was at work before us */
    bool lent;               /* the next graph has it */
    struct kiln_consumer *between; /* freed by `between_free` */
    void (*between_free)(struct kiln_consumer *consumer);
    bool started;
};

struct kiln_graph {
    struct kiln_graph_opts opts;
    struct kiln_budget budget;
    struct kiln_arena arena; /* of all arrays below */
    struct kiln_piece *pieces[KILN_COMPONENT_KINDS];
    uint32_t n_pieces[KILN_COMPONENT_KINDS];
    struct kiln_piece_list extensions; /* that the service names */
    struct kiln_pipeline *pipelines;
    uint32_t n_pipelines;
    struct kiln_unit *units;
    uint32_t n_units;
    bool wants_own; /* profiles of this process */
    uint32_t refs;  /* the owner, and components of ours in other graphs */
    _Atomic bool running;
};

/* Zeroed memory of the graph's; NULL and the error where there is none. */
void *kiln_graph_alloc(struct kiln_graph *graph, size_t n, size_t size, struct kiln_err *err);

/* ---- graph_read.c ---- */

KILN_CHECK int kiln_graph_read(struct kiln_graph *graph, const struct kiln_node *root,
                               struct kiln_err *err);

/* ---- graph_make.c ---- */

KILN_CHECK int kiln_graph_make(struct kiln_graph *graph, struct kiln_err *err);

/* ---- graph_carry.c ---- */

/* The unit of the graph before that this exporter can go on as; NULL: there is none. */
struct kiln_unit *kiln_graph_find_carried(struct kiln_graph *graph, const struct kiln_piece *piece,
                                          enum kiln_signal signal);

/* ---- entry.c ---- */

/*
 * Where a receiver hands over: counts what went well and what did not, of one receiver and one
 * signal (otelcol_receiver_{accepted,refused,failed}_*).
 */
KILN_CHECK int kiln_way_in_new(const char *receiver, enum kiln_signal signal,
                               struct kiln_consumer *next, struct kiln_metrics *metrics,
                               struct kiln_consumer **ret_entry);
void kiln_way_in_free(struct kiln_consumer *entry);

#endif /* KILN_COLLECTOR_GRAPH_INT_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph - the pipelines of a configuration: made, started, stopped in order.
 *
 *                    ┌─▶ processor ─▶ processor ─┬─▶ exporter
 *   receiver ─ entry ┤        a pipeline         └─▶ connector ─▶ another pipeline
 *            (counts)└─▶ ...
 *
 * There is one receiver and one extension for each id, one exporter and connector for each id and
 * signal, and a processor for each pipeline that names it.  They start from the exporters up, and
 * stop from the receivers down, so that each finds the next one at work.
 *
 * A graph may follow another one that is at work: exporters of which nothing has changed are
 * carried over, running, with what waits in them.
 *
 *   kiln_graph_new(root, {.before = old}, &graph)    both are there, the old one is at work
 *   kiln_graph_succeed(graph)                        from here on they are the new one's
 *   kiln_graph_stop(old), kiln_graph_free(old)       what still is on its way reaches them
 *   kiln_graph_start(graph)                          where it cannot, they are at work all the same
 *
 * The entry counts what its receiver handed on, when it ended: otelcol_receiver_{accepted,refused,
 * failed}_profile_samples.
 *
 * Threads: one owner.
 */
#ifndef KILN_COLLECTOR_GRAPH_H
#define KILN_COLLECTOR_GRAPH_H

#include "collector/component.h"
#include "collector/faults.h"

struct kiln_graph_opts {
    struct kiln_graph *before; /* see above; NULL: none */
    /* Kept for as long as anything that was made of the configuration is there: called with
     * `context` when nothing is any more.  NULL: the configuration outlives it all. */
    void (*released)(void *context);
    void *context;
    /* These outlive all graphs that follow each other. */
    struct kiln_pool *pool;
    struct kiln_sockets *sockets; /* which stay open from one graph to the next; NULL: none do */
    struct kiln_metrics *metrics;
    struct kiln_log *log;
    struct kiln_faults *faults; /* all that is wrong goes there; NULL: only the first is told */
};

/*
 * Reads all of a configuration and makes its components, which start nothing yet: this is all that
 * `validate` does.  Keys and references that are wrong are errors in the Collector's words:
 * "service::pipelines::profiles: references exporter "otlp/x" which is not configured".  Of a
 * component, a pipeline and each reference one is told; what cannot be made, only the first.
 */
KILN_CHECK int kiln_graph_new(const struct kiln_node *root, const struct kiln_graph_opts *opts,
                              struct kiln_graph **ret_graph, struct kiln_err *err);
/* Takes over what is carried: once, before the graph before is stopped. */
void kiln_graph_succeed(struct kiln_graph *graph);
/* Where a component cannot start, those that have are stopped again, but those that were carried
 * over: they wait for a graph that follows this one, or for its stop. */
KILN_CHECK int kiln_graph_start(struct kiln_graph *graph, struct kiln_err *err);
void kiln_graph_stop(struct kiln_graph *graph, uint64_t deadline_ns); /* but what is lent */
void kiln_graph_free(struct kiln_graph *graph);
/* Whether all components have started and none was told to stop; from any thread. */
bool kiln_graph_is_running(const struct kiln_graph *graph);

/*
 * A component says in its make() that it has a use for profiles of this process (own.h), and
 * whoever runs the graph sees to it.  `graph` may be NULL.
 */
void kiln_graph_want_own(struct kiln_graph *graph);
bool kiln_graph_wants_own(const struct kiln_graph *graph);

/*
 * The extension of this id that a component refers to, of this type; NULL where service::extensions
 * does not name it.  For make(): extensions are made before everything else.
 */
struct kiln_component *kiln_graph_extension(const struct kiln_graph *graph, const char *id,
                                            const struct kiln_component_type *type);

/* For make(): the receiver of this id and type in the graph that this one follows, which is at work
 * until this one starts; NULL: there is none. */
struct kiln_component *kiln_graph_receiver_before(const struct kiln_graph *graph, const char *id,
                                                  const struct kiln_component_type *type);

/* For make(): the graph that this one follows, whose exporters may be carried over; NULL: none. */
const struct kiln_graph *kiln_graph_before(const struct kiln_graph *graph);

#endif /* KILN_COLLECTOR_GRAPH_H */

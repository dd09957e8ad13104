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
/* Where a component cannot start, those that have are stopped again. */
KILN_CHECK int kiln_graph_start(struct kiln_graph *graph, struct kiln_err *err);
void kiln_graph_stop(struct kiln_graph *graph, uint64_t deadline_ns);
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

#endif /* KILN_COLLECTOR_GRAPH_H */

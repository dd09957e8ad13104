/* SPDX-License-Identifier: Apache-2.0 */
/*
 * component - a receiver, processor, exporter, connector or extension, as a configuration names it.
 *
 *   receivers ──▶ processors of a pipeline ──▶ exporters        graph.h puts them together
 *
 * A type says how its part of the configuration is read, which starts nothing and asks nobody, and
 * how one is made of it.  Reading is by table (base/config.h), so that every key that is not known
 * is an error with its place.
 *
 * Threads: read, make, start, stop and free are called by the thread that owns the graph; what a
 * component does in between is its own business.
 */
#ifndef KILN_COLLECTOR_COMPONENT_H
#define KILN_COLLECTOR_COMPONENT_H

#include "base/config.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/pool.h"
#include "net/sockets.h"
#include "pipeline/pipeline.h"

enum kiln_component_kind {
    KILN_EXTENSION,
    KILN_RECEIVER,
    KILN_PROCESSOR,
    KILN_EXPORTER,
    KILN_CONNECTOR,
    KILN_COMPONENT_KINDS
};

/* Bits of struct kiln_component_type: which signals it takes. */
#define KILN_TAKES(signal)  (1u << (signal))
#define KILN_TAKES_PROFILES KILN_TAKES(KILN_SIGNAL_PROFILES)
#define KILN_TAKES_ALL      ((1u << KILN_SIGNALS) - 1)

struct kiln_graph;

/* What a component is made with.  All of it is borrowed and outlives the component. */
struct kiln_component_env {
    const char *id; /* "otlp/second" */
    /* Of a processor, exporter or connector; a receiver looks at `next`. */
    enum kiln_signal signal;
    /* Where deliveries go: of a processor and connector next[signal]; of a receiver NULL where no
     * pipeline wants that signal. */
    struct kiln_consumer *next[KILN_SIGNALS];
    struct kiln_graph *graph; /* to find extensions: kiln_graph_extension() */
    struct kiln_pool *pool;   /* memory of what is on its way */
    /* For kiln_listen_opts, with a name such as "receivers::otlp::grpc"; NULL: just listen. */
    struct kiln_sockets *sockets;
    struct kiln_metrics *metrics;
    struct kiln_log *log;
};

struct kiln_component;

struct kiln_component_ops {
    /* Begins to work; what it depends on has started.  NULL: nothing to do. */
    int (*start)(struct kiln_component *component, struct kiln_err *err);
    /*
     * From `when_ns` (CLOCK_MONOTONIC) on no delivery that it was handed waits for somebody who may
     * be away.  Called before those who wait for their deliveries are stopped.  NULL: none does.
     */
    void (*release)(struct kiln_component *component, uint64_t when_ns);
    /*
     * A receiver takes no more and waits for what is under way; a processor hands on what it holds;
     * an exporter sends what waits, all until `deadline_ns` (CLOCK_MONOTONIC).  Whoever hands
     * deliveries to it has stopped.  NULL: nothing to do.
     */
    void (*stop)(struct kiln_component *component, uint64_t deadline_ns);
    /*
     * Of an exporter that the next graph takes over, before those that hand deliveries to it are
     * stopped, and once more after them: it goes on with all that was acknowledged, ends every
     * delivery that is still open, and holds none until go_on.  NULL: it is never taken over.
     */
    void (*let_go)(struct kiln_component *component);
    void (*go_on)(struct kiln_component *component); /* NULL: nothing to do */
    void (*free)(struct kiln_component *component);  /* stopped, or never started */
};

/* The head of every component. */
struct kiln_component {
    const struct kiln_component_ops *ops;
    struct kiln_consumer *in; /* where deliveries go in; NULL of a receiver or an extension */
};

struct kiln_component_type {
    const char *name;    /* "otlp_grpc" */
    const char *aliases; /* other names, in a row: "otlp" */
    enum kiln_component_kind kind;
    unsigned signals;      /* KILN_TAKES... */
    const char *stability; /* "beta": what `kiln collector components` says */
    size_t settings_size;
    /*
     * Fills the settings (settings_size bytes, zero) from its part of the configuration (NULL where
     * it is empty), which outlives them.
     */
    int (*read)(const struct kiln_node *node, void *settings, struct kiln_err *err);
    void (*settings_done)(void *settings); /* also after read failed; NULL: nothing to free */
    int (*make)(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err);
};

/* The type of this kind and name (or alias); NULL where there is none. */
const struct kiln_component_type *kiln_component_find(enum kiln_component_kind kind,
                                                      struct kiln_str name);
/* All of them, ended by NULL: registry.c. */
extern const struct kiln_component_type *const kiln_component_types[];

extern const char *const kiln_signal_names[KILN_SIGNALS]; /* "profiles" */
/* "receiver", "receivers" */
extern const char *const kiln_component_kind_names[KILN_COMPONENT_KINDS];
extern const char *const kiln_component_section_names[KILN_COMPONENT_KINDS];

#endif /* KILN_COLLECTOR_COMPONENT_H */

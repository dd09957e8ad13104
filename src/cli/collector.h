/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collector - `kiln collector`: a configuration at work, and what else can be done with one.
 *
 *   configuration ──▶ stage: a graph            SIGHUP: another stage takes its place
 *                         │
 *   sockets, pool, metrics, and exporters that need not change: stay            pages: /metrics
 *
 * A configuration that cannot be read or cannot run is exit code 1, as of an OpenTelemetry
 * Collector.
 *
 * Threads: the main thread; pages are served by workers.
 */
#ifndef KILN_CLI_COLLECTOR_H
#define KILN_CLI_COLLECTOR_H

#include <signal.h>

#include "cli/cli.h"
#include "collector/config.h"
#include "collector/graph.h"
#include "collector/telemetry.h"
#include "net/origin.h"

/* Of print-config. */
enum { KILN_COLLECTOR_REDACTED, KILN_COLLECTOR_UNREDACTED };
enum { KILN_COLLECTOR_YAML, KILN_COLLECTOR_JSON };

/* ---- collector_stage.c: one configuration ---- */

struct kiln_stage {
    struct kiln_collector_config *config;
    struct kiln_telemetry telemetry;
    struct kiln_graph *graph; /* NULL: between two */
};

struct kiln_stage_opts {
    const struct kiln_args *args;
    /* What one stage after another has; NULL: nothing will be started. */
    struct kiln_sockets *sockets;
    struct kiln_pool *pool;
    struct kiln_metrics *metrics;
    struct kiln_log *log;
    struct kiln_faults *faults; /* all that is wrong with the configuration */
    struct kiln_graph *before;  /* at work, whose exporters may go on; NULL: none */
};

/* Reads the configuration that the command line names and makes its parts; starts nothing. */
KILN_CHECK int kiln_stage_new(const struct kiln_stage_opts *opts, struct kiln_stage **ret_stage,
                              struct kiln_err *err);
/* Makes its graph (anew, after it was stopped and freed). */
KILN_CHECK int kiln_stage_graph(struct kiln_stage *stage, const struct kiln_stage_opts *opts,
                                struct kiln_err *err);
void kiln_stage_free(struct kiln_stage *stage);
/* Says what a person should know about this configuration, which is no error. */
void kiln_stage_remark(const struct kiln_stage *stage, const struct kiln_stage_opts *opts);

/* ---- collector_pages.c: /metrics ---- */

struct kiln_stage_pages {
    struct kiln_metrics *metrics; /* of all stages, and the process */
    uint64_t started_unix_ns;     /* the process */
    struct kiln_origin_policy origin;
    struct kiln_router *router;
    struct kiln_server *server; /* NULL: off */
};

/* `pages` is zero, and stays where it is.  Done with also after a failure. */
KILN_CHECK int kiln_stage_pages_init(struct kiln_stage_pages *pages);
void kiln_stage_pages_done(struct kiln_stage_pages *pages);
/* Listens where the stage wants it, and nowhere else. */
KILN_CHECK int kiln_stage_pages_listen(struct kiln_stage_pages *pages,
                                       const struct kiln_telemetry *telemetry,
                                       struct kiln_sockets *sockets, struct kiln_log *log,
                                       struct kiln_err *err);

/* ---- collector.c: running ---- */

/* Runs until a signal says stop.  Returns an exit code. */
int kiln_collector_run(struct kiln_cli *cli);
/* Says why a configuration cannot run: all faults, or where there are none `err`.  Returns an exit
 * code. */
int kiln_collector_blame(const struct kiln_faults *faults, const struct kiln_err *err);

/* ---- collector_own.c: profiles of itself ---- */

/*
 * Where a component wants them, executes this program once more with libkiln in front of it, and
 * does not return.  `blocked` are the signals that are, by us.
 */
void kiln_collector_own_begin(const struct kiln_graph *graph, const sigset_t *blocked,
                              struct kiln_log *log);
void kiln_collector_own_end(void); /* of the program that was executed: leaves nothing behind */

/* ---- collector_show.c: verbs ---- */

int kiln_collector_validate(struct kiln_cli *cli);
int kiln_collector_components(struct kiln_cli *cli);
int kiln_collector_print_config(struct kiln_cli *cli);

/* ---- collector_gates.c ---- */

int kiln_collector_featuregate(struct kiln_cli *cli);
/* Says in the log what --feature-gates came to. */
void kiln_collector_remark_gates(const struct kiln_args *args, struct kiln_log *log);

#endif /* KILN_CLI_COLLECTOR_H */

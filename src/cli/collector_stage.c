/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "cli/collector.h"

/* ---- making ---- */

static void note_unset(void *context, const struct kiln_node *place, const char *text)
{
    (void)context;
    if (place && place->file)
        kiln_cli_note(place->file, "line %u, column %u: %s", place->line, place->column, text);
    else
        kiln_cli_note(NULL, "%s", text);
}

static int load(const struct kiln_stage_opts *opts, struct kiln_stage *stage, struct kiln_err *err)
{
    const struct kiln_args *args = opts->args;
    const struct kiln_collector_sources sources = {
        .uris = args->collector.config.items,
        .n_uris = args->collector.config.n,
        .sets = args->collector.sets.items,
        .n_sets = args->collector.sets.n,
        .fetches = true,
        .warn = note_unset,
    };

    return kiln_collector_config_load(&sources, &stage->config, err);
}

/* What is wrong with it does not hide what else is. */
static int read_telemetry(const struct kiln_stage_opts *opts, struct kiln_stage *stage,
                          struct kiln_err *err)
{
    struct kiln_err fault = {0};
    int r = kiln_telemetry_read(stage->config->root, &stage->telemetry, &fault);

    if (r < 0)
        (void)!kiln_faults_note(opts->faults, &fault, err);
    return r;
}

static void release(void *config)
{
    kiln_collector_config_unref(config);
}

int kiln_stage_graph(struct kiln_stage *stage, const struct kiln_stage_opts *opts,
                     struct kiln_err *err)
{
    const struct kiln_graph_opts graph = {.before = opts->before,
                                          .released = release,
                                          .context = stage->config,
                                          .pool = opts->pool,
                                          .sockets = opts->sockets,
                                          .metrics = opts->metrics,
                                          .log = opts->log,
                                          .faults = opts->faults};
    int r = kiln_graph_new(stage->config->root, &graph, &stage->graph, err);

    if (r == 0)
        kiln_collector_config_ref(stage->config);
    return r;
}

static int make(const struct kiln_stage_opts *opts, struct kiln_stage *stage, struct kiln_err *err)
{
    int r = load(opts, stage, err), faulty;

    if (r < 0)
        return r;
    faulty = read_telemetry(opts, stage, err);
    kiln_metrics_want_details(opts->metrics, stage->telemetry.details);
    r = kiln_stage_graph(stage, opts, err);
    return r < 0 ? r : faulty;
}

int kiln_stage_new(const struct kiln_stage_opts *opts, struct kiln_stage **ret_stage,
                   struct kiln_err *err)
{
    struct kiln_stage *stage = kiln_calloc(1, sizeof(*stage));
    int r = stage ? make(opts, stage, err)
                  : kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));

    if (r < 0)
        kiln_stage_free(stage);
    else
        *ret_stage = stage;
    return r;
}

void kiln_stage_free(struct kiln_stage *stage)
{
    if (!stage)
        return;
    kiln_graph_free(stage->graph);
    kiln_collector_config_unref(stage->config);
    kiln_free(stage);
}

/* ---- remarks ---- */

void kiln_stage_remark(const struct kiln_stage *stage, const struct kiln_stage_opts *opts)
{
    const struct kiln_node *left_out = stage->telemetry.left_out;

    kiln_collector_remark_gates(opts->args, opts->log);
    if (left_out)
        kiln_log(opts->log, KILN_LOG_WARN,
                 "Kiln sends no telemetry of its own: this does nothing (/metrics can be scraped)",
                 "file", "%s", left_out->file ? left_out->file : "", "line", "%u", left_out->line,
                 NULL);
}

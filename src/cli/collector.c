/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGHUP: the new stage is made while the old one works, so that whatever is wrong with the new
 * configuration changes nothing.  Then the old one stops, which empties it, but for exporters of
 * which nothing has changed: they go on, with what waits in them, in the new one, which starts on
 * the same sockets.  Where it cannot start, the old one is made again of its configuration, and has
 * them back.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/meminfo.h"
#include "cli/collector.h"
#include "cli/daemon.h"
#include "cli/ready.h"

#define DRAIN_NS       (10 * KILN_NS_PER_S)
#define MEMORY_DEFAULT ((uint64_t)256 << 20)

enum { FREE_BYTES = 4 << 20, BLOCK_BYTES = 2 << 20 }; /* that stay; that do not come from it */

struct collector {
    struct kiln_stage_opts opts;
    struct kiln_stage *stage;
    struct kiln_pool pool;
    struct kiln_stage_pages pages;
    struct kiln_faults faults;
    bool broken; /* neither configuration could be started */
};

static void log_error(const struct collector *c, const char *msg, const struct kiln_err *err)
{
    kiln_log(c->opts.log, KILN_LOG_ERROR, msg, "where", "%s", err->where, "reason", "%s", err->text,
             NULL);
}

static void blame_one(const struct kiln_err *err)
{
    struct kiln_err said = *err;

    if (said.code == KILN_E_LIMIT || said.code == KILN_E_UNKNOWN)
        said.code = KILN_E_MALFORMED; /* what helps with profile files does not help here */
    (void)kiln_cli_fail(NULL, &said);
}

int kiln_collector_blame(const struct kiln_faults *faults, const struct kiln_err *err)
{
    for (uint32_t i = 0; i < faults->n; i++)
        blame_one(&faults->list[i]);
    if (faults->left_out)
        kiln_cli_note(NULL, "and %u faults more", faults->left_out);
    if (!faults->n)
        blame_one(err);
    return KILN_EXIT_FAILED;
}

/* ---- the ready file ---- */

static void put_port(void *context, const char *name, const char *address, uint16_t port)
{
    (void)address;
    kiln_json_put_name(context, name);
    kiln_json_put_u64(context, port);
}

static int write_ready_file(const struct collector *c, struct kiln_err *err)
{
    struct kiln_ready ready;

    kiln_ready_begin(&ready);
    kiln_json_put_name(&ready.w, "ports");
    kiln_json_put_object(&ready.w);
    kiln_sockets_each(c->opts.sockets, put_port, &ready.w);
    kiln_json_end_object(&ready.w);
    return kiln_ready_end(&ready, c->opts.args->collector.ready_file, err);
}

static void say_address(void *context, const char *name, const char *address, uint16_t port)
{
    kiln_log(context, KILN_LOG_INFO, "listening", "for", "%s", name, "address", "%s", address,
             "port", "%u", port, NULL);
}

static void say_ready(struct collector *c, const char *msg)
{
    struct kiln_err err = {0};

    kiln_sockets_each(c->opts.sockets, say_address, c->opts.log);
    if (write_ready_file(c, &err) < 0)
        log_error(c, "the ready file cannot be written", &err);
    kiln_log(c->opts.log, KILN_LOG_INFO, msg, NULL);
}

/* ---- one stage after another ---- */

/* All sockets that are taken from here on are those of this stage. */
static int start_stage(struct collector *c, struct kiln_stage *stage, struct kiln_err *err)
{
    int r;

    kiln_sockets_turn(c->opts.sockets);
    r = kiln_stage_pages_listen(&c->pages, &stage->telemetry, c->opts.sockets, c->opts.log, err);
    if (r == 0)
        r = kiln_graph_start(stage->graph, err);
    if (r < 0)
        return r;
    kiln_sockets_trim(c->opts.sockets);
    kiln_log_change(c->opts.log, stage->telemetry.log_level, stage->telemetry.log_form);
    return 0;
}

/* What is carried over is the next one's already. */
static void drop_graph(struct kiln_stage *stage)
{
    kiln_graph_stop(stage->graph, kiln_clock_mono_ns() + DRAIN_NS);
    kiln_graph_free(stage->graph);
    stage->graph = NULL;
}

/* The stage takes the place of another one, which ends. */
static int follow(struct collector *c, struct kiln_stage *stage, struct kiln_stage *before,
                  struct kiln_err *err)
{
    kiln_graph_succeed(stage->graph);
    drop_graph(before);
    return start_stage(c, stage, err);
}

/* From a stage that could not be started. */
static void go_back(struct collector *c, struct kiln_stage *from)
{
    struct kiln_stage_opts opts = c->opts;
    struct kiln_err err = {0};
    int r;

    opts.before = from->graph;
    r = kiln_stage_graph(c->stage, &opts, &err);
    if (r == 0)
        r = follow(c, c->stage, from, &err);
    else
        drop_graph(from);
    c->broken = r < 0;
    if (r < 0)
        log_error(c, "the configuration before cannot be started again either", &err);
    else
        kiln_log(c->opts.log, KILN_LOG_INFO, "the configuration before is at work again", NULL);
}

static void log_faults(const struct collector *c, const char *msg, const struct kiln_err *err)
{
    for (uint32_t i = 0; i < c->faults.n; i++)
        log_error(c, msg, &c->faults.list[i]);
    if (!c->faults.n)
        log_error(c, msg, err);
}

static void reload(void *context)
{
    struct collector *c = context;
    struct kiln_stage_opts opts = c->opts;
    struct kiln_stage *next = NULL;
    struct kiln_err err = {0};

    c->faults.n = c->faults.left_out = 0;
    opts.before = c->stage->graph;
    if (kiln_stage_new(&opts, &next, &err) < 0) {
        log_faults(c, "the configuration stays as it was", &err);
        return;
    }
    if (follow(c, next, c->stage, &err) < 0) {
        log_error(c, "the new configuration cannot be started", &err);
        go_back(c, next);
        kiln_stage_free(next);
        if (c->broken)
            kill(getpid(), SIGTERM);
        return;
    }
    kiln_stage_free(c->stage);
    c->stage = next;
    kiln_stage_remark(next, &c->opts);
    say_ready(c, "configuration read again");
}

/* ---- running ---- */

/* By default MEMORY_DEFAULT, or half of what this process may use if that is less. */
static uint64_t memory_limit(const struct collector *c)
{
    uint64_t half = kiln_meminfo_total() / 2, limit = c->opts.args->collector.memory_limit;

    if (limit)
        return limit;
    return half < MEMORY_DEFAULT ? half : MEMORY_DEFAULT;
}

/* What outlives stages. */
static int prepare(struct collector *c)
{
    int r = kiln_sockets_new(&c->opts.sockets);

    if (r == 0)
        r = kiln_log_new(STDERR_FILENO, KILN_LOG_INFO, KILN_LOG_LOGFMT, &c->opts.log);
    if (r == 0)
        r = kiln_stage_pages_init(&c->pages);
    kiln_pool_init(&c->pool, "collector", (size_t)memory_limit(c), NULL);
    c->opts.pool = &c->pool;
    c->opts.metrics = c->pages.metrics;
    return r;
}

static int begin(struct collector *c, const sigset_t *blocked, struct kiln_err *err)
{
    int r = prepare(c);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    kiln_daemon_raise_open_files();
    r = kiln_stage_new(&c->opts, &c->stage, err);
    if (r < 0)
        return r;
    kiln_log_change(c->opts.log, c->stage->telemetry.log_level, c->stage->telemetry.log_form);
    kiln_collector_own_begin(c->stage->graph, blocked, c->opts.log);
    kiln_log(c->opts.log, KILN_LOG_INFO, "starting", "version", "%s", KILN_VERSION, "pid", "%ld",
             (long)getpid(), NULL);
    kiln_daemon_check_memory(c->opts.log, memory_limit(c));
    kiln_stage_remark(c->stage, &c->opts);
    return start_stage(c, c->stage, err);
}

static void finish(struct collector *c)
{
    if (c->stage && c->stage->graph)
        kiln_graph_stop(c->stage->graph, kiln_clock_mono_ns() + DRAIN_NS);
    if (c->stage)
        kiln_log(c->opts.log, KILN_LOG_INFO, "stopped", NULL);
    kiln_stage_free(c->stage);
    kiln_stage_pages_done(&c->pages);
    kiln_sockets_free(c->opts.sockets);
    kiln_log_free(c->opts.log);
    kiln_collector_own_end();
}

int kiln_collector_run(struct kiln_cli *cli)
{
    struct collector c = {.opts = {.args = &cli->args, .faults = &c.faults}};
    struct kiln_err err = {0};
    int code = KILN_EXIT_WELL;
    sigset_t set;

    kiln_mem_keep(FREE_BYTES, BLOCK_BYTES);
    kiln_daemon_block_signals(&set);
    if (begin(&c, &set, &err) < 0) {
        code = kiln_collector_blame(&c.faults, &err);
    } else {
        say_ready(&c, "Everything is ready. Begin running and processing data.");
        kiln_notify("READY=1");
        kiln_daemon_wait(&set, c.opts.log, reload, &c);
    }
    finish(&c);
    return c.broken ? KILN_EXIT_FAILED : code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start: the data folder is locked, then the addresses are bound (so that a wrong one is an error
 * before the log is replayed; whoever comes meanwhile is told to try again), then the store is
 * opened, then requests are taken.  Stop: the same backwards; the server goes last, because
 * deliveries that the store still finishes are answered through it.
 *
 * Signals are blocked in every thread and waited for by the main one.
 */
#include "cli/serve.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "pipeline/receivers/scrape.h"

enum { DRAIN_MS = 10000, CONNECTIONS_MAX = 4096 };

static int make_log(struct kiln_serve *serve, struct kiln_err *err)
{
    const struct kiln_settings *set = &serve->config->set;
    enum kiln_log_level level = KILN_LOG_INFO;
    int r = kiln_log_level_parse(set->log_level, &level);

    if (r == 0)
        r = kiln_log_new(STDERR_FILENO, level, strcmp(set->log_format, "json") == 0, &serve->log);
    if (r == 0)
        r = kiln_metrics_new(&serve->metrics);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

/* A connection is a file, and so is a block: as many as the system allows. */
static void raise_open_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int make_gate(struct kiln_serve *serve, struct kiln_err *err)
{
    const struct kiln_settings *set = &serve->config->set;
    struct kiln_gate_opts opts = {
        .tokens_file = set->tokens,
        .tenants = set->multitenant,
        .limits = {set->tenant_bytes_per_s, set->tenant_burst, (size_t)set->body_max},
        .metrics = serve->metrics,
        .log = serve->log,
    };

    return kiln_gate_new(&opts, &serve->gate, err);
}

/* Half of the files that may be open: the log and blocks need theirs at any load. */
static uint32_t connections_max(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < CONNECTIONS_MAX
               ? (uint32_t)(limit.rlim_cur / 2)
               : CONNECTIONS_MAX;
}

static int make_server(struct kiln_serve *serve, struct kiln_err *err)
{
    struct kiln_server_opts opts = {
        .connections_max = connections_max(),
        .body_max = (size_t)serve->config->set.body_max,
        .pool = &serve->memory.ingest,
        .long_pool = &serve->memory.query,
        .metrics = serve->metrics,
        .log = serve->log,
    };
    int r = kiln_server_new(&opts, &serve->server);

    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

/* All that is behind the routes; then they are let in. */
static int open_parts(struct kiln_serve *serve, struct kiln_err *err)
{
    int r = kiln_serve_open_store(serve, err);

    if (r == 0)
        r = kiln_serve_pipeline(serve, err);
    if (r == 0)
        r = kiln_serve_query(serve, err);
    if (r == 0)
        r = kiln_serve_routes(serve, err);
    if (r == 0)
        kiln_server_hold(serve->server, NULL);
    if (r == 0 && serve->scraper)
        r = kiln_scraper_start(serve->scraper, err);
    return r;
}

static int start(struct kiln_serve *serve, struct kiln_err *err)
{
    int r = kiln_serve_open_folder(serve, err);

    if (r == 0)
        r = make_gate(serve, err);
    if (r == 0)
        r = make_server(serve, err);
    if (r == 0)
        r = kiln_serve_listen(serve, err);
    if (r == 0)
        r = kiln_memory_start(&serve->memory);
    if (r < 0)
        return r;
    kiln_server_hold(serve->server, serve->starting);
    r = kiln_server_start(serve->server, err);
    return r < 0 ? r : open_parts(serve, err);
}

static void finish(struct kiln_serve *serve)
{
    bool was_ready = atomic_exchange(&serve->state, KILN_SERVE_STOPPING) == KILN_SERVE_READY;
    struct kiln_err err = {0};

    if (serve->scraper)
        kiln_scraper_stop(serve->scraper);
    if (serve->server)
        kiln_server_stop(serve->server, DRAIN_MS);
    kiln_router_free(serve->full);
    kiln_router_free(serve->otlp);
    kiln_router_free(serve->starting);
    kiln_serve_query_done(serve);
    if (serve->engine && kiln_store_flush(serve->engine, &err) < 0)
        kiln_log(serve->log, KILN_LOG_WARN, "the head stays in the log", "reason", "%s", err.text,
                 NULL);
    kiln_memory_done(&serve->memory); /* whose thread asks the store's cache to give way */
    if (serve->engine)
        serve->engine->ops->close(serve->engine);
    kiln_serve_pipeline_done(serve);
    kiln_server_free(serve->server);
    kiln_gate_free(serve->gate);
    kiln_series_rule_free(serve->series_rule);
    if (serve->io)
        kiln_io_close(serve->io);
    kiln_metrics_free(serve->metrics);
    if (was_ready)
        kiln_log(serve->log, KILN_LOG_INFO, "stopped", NULL);
    kiln_log_free(serve->log);
}

/* ---- running ---- */

static void block_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGTERM);
    sigaddset(ret_set, SIGINT);
    sigaddset(ret_set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, ret_set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void say_started(struct kiln_serve *serve)
{
    struct kiln_err err = {0};
    double ms = (double)(kiln_clock_mono_ns() - serve->started_mono_ns) / 1e6;

    atomic_store(&serve->state, KILN_SERVE_READY);
    kiln_log(serve->log, KILN_LOG_INFO, "ready", "after_ms", "%.1f", ms, NULL);
    if (kiln_serve_say_ready(serve, &err) < 0)
        kiln_log(serve->log, KILN_LOG_ERROR, "the ready file cannot be written", "path", "%s",
                 serve->config->set.ready_file, "reason", "%s", err.text, NULL);
    kiln_notify("READY=1");
    kiln_serve_greet(serve);
}

/* Until somebody asks for the end.  From then on a second asking ends the process at once. */
static void wait_for_end(struct kiln_serve *serve, const sigset_t *set)
{
    int signal_number = 0;

    while (sigwait(set, &signal_number) == 0 && signal_number == SIGHUP)
        kiln_serve_reload(serve);
    kiln_log(serve->log, KILN_LOG_INFO, "stopping", "signal", "%s",
             signal_number == SIGINT ? "SIGINT" : "SIGTERM", NULL);
    kiln_notify("STOPPING=1");
    pthread_sigmask(SIG_UNBLOCK, set, NULL);
}

static int begin(struct kiln_serve *serve, const struct kiln_server_config *config,
                 struct kiln_err *err)
{
    const struct kiln_settings *set = &config->set;
    int r;

    serve->config = config;
    serve->started_unix_ns = kiln_clock_unix_ns();
    serve->started_mono_ns = kiln_clock_mono_ns();
    kiln_memory_init(&serve->memory, set->memory_limit);
    raise_open_files();
    r = make_log(serve, err);
    if (r < 0)
        return r;
    kiln_serve_measure(serve);
    kiln_log(serve->log, KILN_LOG_INFO, "starting", "version", "%s", KILN_VERSION, "pid", "%ld",
             (long)getpid(), "data_dir", "%s", set->data_dir, "memory_limit", "%lu",
             (unsigned long)set->memory_limit, "config", "%s",
             config->file_name ? config->file_name : "none", NULL);
    return start(serve, err);
}

static int fail(struct kiln_err *err)
{
    if (err->code == KILN_E_LIMIT || err->code == KILN_E_UNKNOWN)
        err->code = KILN_E_MALFORMED; /* what helps with profile files does not help here */
    return kiln_cli_fail(NULL, err);
}

int kiln_serve_check(const struct kiln_server_config *config)
{
    struct kiln_serve serve = {.config = config};
    struct kiln_err err = {0};
    int r = make_gate(&serve, &err);

    kiln_gate_free(serve.gate);
    if (r == 0)
        r = kiln_serve_check_rules(config, &err);
    return r < 0 ? fail(&err) : KILN_EXIT_WELL;
}

int kiln_serve(const struct kiln_server_config *config)
{
    struct kiln_serve serve = {0};
    struct kiln_err err = {0};
    int code = KILN_EXIT_WELL;
    sigset_t set;

    block_signals(&set);
    if (begin(&serve, config, &err) < 0) {
        code = fail(&err);
    } else {
        say_started(&serve);
        wait_for_end(&serve, &set);
    }
    finish(&serve);
    return code;
}

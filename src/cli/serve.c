/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start: the data folder is locked, then the addresses are bound (so that a wrong one is an error
 * before the log is replayed; whoever comes meanwhile is told to try again), then root becomes an
 * unprivileged user, then the store is opened, then requests are taken.  Stop: the same backwards;
 * the server goes last, because deliveries that the store still finishes are answered through it.
 */
#include "cli/serve.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/sources.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/daemon.h"
#include "naming/depot.h"
#include "pipeline/receivers/scrape.h"

enum { DRAIN_MS = 10000, CONNECTIONS_MAX = 4096 };

static int make_gate(struct kiln_serve *serve, struct kiln_err *err)
{
    const struct kiln_settings *set = &serve->config->set;
    struct kiln_gate_opts opts = {
        .tokens_file = set->tokens,
        .tenants = set->multitenant,
        .host_names = serve->config->host_names.items,
        .n_host_names = serve->config->host_names.n,
        .allow_anonymous = set->allow_anonymous,
        .limits = {set->tenant_bytes_per_s, set->tenant_burst, (size_t)set->body_max},
        .metrics = serve->metrics,
        .log = serve->log,
        .audit = serve->audit,
    };

    return kiln_gate_new(&opts, &serve->gate, err);
}

/* Opened by the user that the server runs as, who opens it again on SIGHUP. */
static int open_audit(struct kiln_serve *serve, struct kiln_err *err)
{
    const struct kiln_settings *set = &serve->config->set;
    enum kiln_log_form form;
    int r;

    if (!set->audit_log)
        return 0;
    r = kiln_log_form_parse(set->log_format, &form);
    return r < 0 ? r : kiln_audit_open(serve->audit, set->audit_log, form, err);
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
        .pool = &serve->memory.bodies,
        .waits = true,
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

    atomic_store(&serve->store_open, r == 0);
    kiln_serve_beat(serve);
    if (r == 0)
        r = kiln_serve_pipeline(serve, err);
    if (r == 0)
        r = kiln_serve_naming(serve, err);
    if (r == 0)
        r = kiln_serve_fleet(serve, err);
    if (r == 0)
        r = kiln_serve_query(serve, err);
    if (r == 0)
        r = kiln_serve_routes(serve, err);
    if (r == 0)
        kiln_server_hold(serve->server, NULL);
    if (r == 0 && serve->scraper)
        r = kiln_scraper_start(serve->scraper, err);
    return r < 0 ? r : kiln_serve_host(serve, err);
}

static int start(struct kiln_serve *serve, struct kiln_err *err)
{
    int r = kiln_serve_plan_host(serve, err);

    if (r == 0)
        r = kiln_serve_open_folder(serve, err);
    if (r == 0)
        r = kiln_serve_choose_user(serve, err);
    if (r == 0)
        r = kiln_serve_make_host(serve, err);
    if (r == 0)
        r = kiln_audit_new(serve->log, &serve->audit);
    if (r == 0)
        r = make_gate(serve, err);
    if (r == 0)
        r = make_server(serve, err);
    if (r == 0)
        r = kiln_serve_listen(serve, err);
    if (r == 0)
        r = kiln_serve_give_up(serve, err);
    if (r == 0)
        r = open_audit(serve, err);
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

    kiln_serve_host_done(serve);
    if (serve->scraper)
        kiln_scraper_stop(serve->scraper);
    kiln_receivers_stop(serve->receivers);
    if (serve->server)
        kiln_server_stop(serve->server, DRAIN_MS);
    kiln_router_free(serve->full);
    kiln_router_free(serve->otlp);
    kiln_router_free(serve->starting);
    kiln_serve_query_done(serve);
    kiln_serve_naming_done(serve);
    if (serve->engine && kiln_store_flush(serve->engine, &err) < 0)
        kiln_log(serve->log, KILN_LOG_WARN, "the head stays in the log", "reason", "%s", err.text,
                 NULL);
    kiln_memory_done(&serve->memory); /* whose thread asks the store's cache to give way */
    kiln_serve_fleet_done(serve);
    kiln_depot_close(serve->depot);
    if (serve->engine)
        serve->engine->ops->close(serve->engine);
    kiln_serve_pipeline_done(serve);
    kiln_server_free(serve->server);
    kiln_gate_free(serve->gate);
    kiln_audit_free(serve->audit);
    kiln_series_rule_free(serve->series_rule);
    if (serve->io)
        kiln_io_close(serve->io);
    kiln_serve_privileges_done(serve);
    kiln_metrics_free(serve->metrics);
    kiln_pulse_done(&serve->pulse);
    pthread_mutex_destroy(&serve->host_lock);
    if (was_ready)
        kiln_log(serve->log, KILN_LOG_INFO, "stopped", NULL);
    kiln_log_free(serve->log);
}

/* ---- running ---- */

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

static void reload(void *context)
{
    kiln_serve_reload(context);
}

static int begin(struct kiln_serve *serve, const struct kiln_server_config *config,
                 struct kiln_err *err)
{
    const struct kiln_settings *set = &config->set;
    int r;

    serve->config = config;
    serve->started_unix_ns = kiln_clock_unix_ns();
    serve->started_mono_ns = kiln_clock_mono_ns();
    kiln_pulse_init(&serve->pulse);
    pthread_mutex_init(&serve->host_lock, NULL);
    kiln_memory_init(&serve->memory, set->memory_limit);
    serve->memory.beat = kiln_serve_beat;
    serve->memory.beat_context = serve;
    kiln_daemon_raise_open_files();
    r = kiln_daemon_log(set, &serve->log, err);
    if (r == 0)
        r = kiln_metrics_new(&serve->metrics);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    kiln_serve_measure(serve);
    kiln_serve_about(serve);
    kiln_log(serve->log, KILN_LOG_INFO, "starting", "version", "%s", KILN_VERSION, "pid", "%ld",
             (long)getpid(), "data_dir", "%s", set->data_dir, "memory_limit", "%lu",
             (unsigned long)set->memory_limit, "config", "%s",
             config->file_name ? config->file_name : "none", NULL);
    kiln_daemon_check_memory(serve->log, set->memory_limit);
    return start(serve, err);
}

int kiln_serve_check(const struct kiln_server_config *config)
{
    struct kiln_serve serve = {.config = config};
    struct kiln_err err = {0};
    int r = make_gate(&serve, &err);

    kiln_gate_free(serve.gate);
    if (r == 0)
        r = kiln_serve_check_rules(config, &err);
    if (r == 0)
        r = kiln_sources_new(config->source.items, config->source.n, &serve.sources, &err);
    kiln_sources_free(serve.sources);
    return r < 0 ? kiln_daemon_fail(&err) : KILN_EXIT_WELL;
}

static void pass_over(void *context)
{
    (void)context;
}

int kiln_serve(const struct kiln_server_config *config, const struct kiln_term *term)
{
    struct kiln_serve serve = {.term = term, .data_fd = -1};
    struct kiln_err err = {0};
    int code = KILN_EXIT_WELL;
    sigset_t set;
    int r;

    kiln_daemon_block_signals(&set);
    r = begin(&serve, config, &err);
    if (r == -ECANCELED) {
        kiln_daemon_wait(&set, serve.log, pass_over, &serve); /* the signal is there */
    } else if (r < 0) {
        code = kiln_daemon_fail(&err);
    } else {
        say_started(&serve);
        kiln_daemon_wait(&set, serve.log, reload, &serve);
        kiln_serve_part(&serve);
    }
    finish(&serve);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start: privileges that nothing here needs are given up, the spool is locked and the address
 * bound, then the clocks in the kernel are started; at last the system calls go that only a start
 * needs. Stop: the host profiler hands over what it has, the exporter sends it or puts it into the
 * spool.
 *
 * SIGHUP reads the settings again; of those, the frequency and the rules of redaction change at
 * once, all else with the next start.
 */
#include "cli/agent.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/agent_confine.h"
#include "cli/agent_orders.h"
#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/ready.h"
#include "cli/rules.h"
#include "net/origin.h"
#include "pipeline/exporters.h"
#include "pipeline/gate.h"

#define DRAIN_NS (10 * KILN_NS_PER_S)

enum { FREE_BYTES = 256 << 10, BLOCK_BYTES = 128 << 10 }; /* that stay; that do not come from it */
enum { CONNECTIONS_MAX = 64, WORKERS = 2, DRAIN_MS = 1000 };

struct agent {
    const struct kiln_server_config *config;
    const struct kiln_settings *flags;
    struct kiln_log *log;
    struct kiln_metrics *metrics;
    struct kiln_host_plan plan;
    struct kiln_buf headers;
    struct kiln_consumer *exporter, *redaction;
    struct kiln_redact *rules; /* NULL: none */
    struct kiln_host *host;
    struct kiln_agent_orders orders;
    struct kiln_router *router, *local; /* of the address; of the socket */
    struct kiln_origin_policy origin;   /* of requests to the address */
    struct kiln_server *server;         /* NULL: both are off */
    bool socket_on;
    uint16_t port;
    _Atomic bool is_ready;
};

/* ---- pages ---- */

static void reply_health(struct kiln_request *request)
{
    kiln_request_reply_text(request, 200, "alive");
}

static void reply_ready(struct kiln_request *request)
{
    const struct agent *agent = request->context;
    bool is_ready = atomic_load(&agent->is_ready);

    kiln_request_reply_text(request, is_ready ? 200 : 503, is_ready ? "ready" : "not ready");
}

static void reply_metrics(struct kiln_request *request)
{
    const struct agent *agent = request->context;

    kiln_daemon_reply_metrics(request, agent->metrics, KILN_STR_NONE);
}

static int add_pages(struct agent *agent, struct kiln_router **ret_router)
{
    const struct kiln_route routes[] = {
        {.method = "GET", .path = "/healthz", .handler = reply_health, .context = agent},
        {.method = "GET", .path = "/ready", .handler = reply_ready, .context = agent},
        {.method = "GET", .path = "/metrics", .handler = reply_metrics, .context = agent},
    };
    int r = kiln_router_new(ret_router);

    for (uint32_t i = 0; r == 0 && i < KILN_ARRAY_LEN(routes); i++)
        r = kiln_router_add(*ret_router, &routes[i]);
    return r;
}

/* The listener that nobody asked for may be missing; one that was asked for may not. */
static int bind_address(struct agent *agent, struct kiln_err *err)
{
    const char *address = agent->config->set.agent.listen;
    struct kiln_listen_opts opts = {.address = address, .router = agent->router};
    struct kiln_err why = {0};
    int r;

    if (!kiln_settings_on(address))
        return 0;
    r = kiln_gate_check_listen(address, false, agent->config->set.allow_anonymous, NULL);
    if (r < 0)
        return kiln_err_set(err, -EINVAL, address,
                            "whoever can reach this address could read what the agent counts (say "
                            "an address of loopback, or --allow-anonymous if that is meant)");
    r = kiln_server_listen(agent->server, &opts, &agent->port, &why);
    if (r == -EADDRINUSE && !agent->config->variables.agent.listen &&
        !agent->config->flags.agent.listen) {
        kiln_log(agent->log, KILN_LOG_WARN, "no metrics: another program listens there", "address",
                 "%s", address, NULL);
        return 0;
    }
    if (r < 0)
        return kiln_err_set(err, r, why.where, "%s", why.text);
    kiln_log(agent->log, KILN_LOG_INFO, "listening", "for", "%s", "metrics", "address", "%s",
             address, "port", "%u", agent->port, NULL);
    return 0;
}

/* The same of the socket. */
static int bind_socket(struct agent *agent, struct kiln_err *err)
{
    const char *path = agent->config->set.agent.socket;
    struct kiln_err why = {0};
    int r;

    if (!kiln_settings_on(path))
        return 0;
    r = kiln_daemon_listen_socket(agent->server, agent->local, path, false, &why);
    agent->socket_on = r == 0;
    if (r < 0 && strcmp(path, KILN_AGENT_SOCKET) != 0)
        return kiln_err_set(err, r, why.where, "%s", why.text);
    if (r < 0)
        kiln_log(agent->log, KILN_LOG_WARN, "no local socket", "path", "%s", path, "reason", "%s",
                 why.text, NULL);
    else
        kiln_log(agent->log, KILN_LOG_INFO, "listening", "for", "%s", "status and orders",
                 "address", "%s", path, NULL);
    return 0;
}

static void guard_address(struct agent *agent)
{
    agent->origin = (struct kiln_origin_policy){.host_names = agent->config->host_names.items,
                                                .n_host_names = agent->config->host_names.n,
                                                .host_text = KILN_ORIGIN_HOST_TEXT "\n"};
    kiln_router_guard(agent->router, kiln_origin_guard(&agent->origin));
}

static int serve_pages(struct agent *agent, struct kiln_err *err)
{
    const struct kiln_settings *set = &agent->config->set;
    struct kiln_server_opts opts = {.workers = WORKERS,
                                    .long_workers = 1,
                                    .connections_max = CONNECTIONS_MAX,
                                    .metrics = agent->metrics,
                                    .log = agent->log};
    int r;

    if (!kiln_settings_on(set->agent.listen) && !kiln_settings_on(set->agent.socket))
        return 0;
    r = add_pages(agent, &agent->router);
    if (r == 0)
        r = add_pages(agent, &agent->local);
    if (r == 0)
        guard_address(agent);
    agent->orders.socket.opts = &agent->plan.opts;
    if (r == 0)
        r = kiln_agent_socket_add(&agent->orders.socket, agent->local);
    if (r == 0)
        r = kiln_server_new(&opts, &agent->server);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    r = bind_address(agent, err);
    if (r == 0)
        r = bind_socket(agent, err);
    return r < 0 ? r : kiln_server_start(agent->server, err);
}

/* ---- memory ---- */

/*
 * Little is live between two batches, and much while one is made.  So that what is free goes back
 * to the kernel: one arena, as each thread's own keeps its holes; and large blocks outside of it.
 */
static void keep_little(void)
{
    mallopt(M_ARENA_MAX, 1);
    kiln_mem_keep(FREE_BYTES, BLOCK_BYTES);
}

/* ---- parts ---- */

/* Of the limit of memory: the process itself, and what has a fixed size in the kernel. */
#define FIXED_BYTES ((uint64_t)10 << 20)

/* What may grow, within the limit of all. */
static uint64_t growing_bytes(const struct agent *agent)
{
    uint64_t limit = agent->config->set.host.memory_limit;

    return limit > 2 * FIXED_BYTES ? limit - FIXED_BYTES : limit / 2;
}

/* A quarter of the memory is for what waits to be sent. */
static int make_exporter(struct agent *agent, struct kiln_err *err)
{
    struct kiln_otlp_export_opts opts;
    int r = kiln_agent_export_opts(agent->config, &agent->headers, &opts, err);

    if (r < 0)
        return r;
    if (opts.checks_peer)
        kiln_log(agent->log, KILN_LOG_INFO,
                 "profiles go to the server of this host (say --endpoint URL for another receiver)",
                 "endpoint", "%s", opts.endpoint, NULL);
    opts.memory_max = growing_bytes(agent) / 4;
    opts.metrics = agent->metrics;
    opts.log = agent->log;
    return kiln_otlp_exporter_new(&opts, &agent->exporter, err);
}

static int make_redaction(struct agent *agent, struct kiln_err *err)
{
    int r = kiln_rules_read(agent->config, &agent->rules, err);

    if (r < 0)
        return r;
    r = kiln_redact_processor_new(agent->rules, agent->exporter, agent->metrics, &agent->redaction);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

static int make_host(struct agent *agent, struct kiln_err *err)
{
    struct kiln_host_plan *plan = &agent->plan;
    int r = kiln_host_plan_make(&agent->config->set.host, plan, err);

    if (r < 0)
        return r;
    if (!plan->wanted)
        return kiln_err_set(
            err, -EINVAL, NULL,
            "profiling is off in the settings: there is nothing to do (see agent.enabled "
            "and profiling.cpu.enabled)");
    plan->opts.lean = true;
    plan->opts.alone = true;
    plan->opts.memory_limit = plan->opts.memory_bytes;
    plan->opts.memory_bytes = growing_bytes(agent) - growing_bytes(agent) / 4;
    plan->opts.consumer = agent->redaction;
    plan->opts.metrics = agent->metrics;
    plan->opts.log = agent->log;
    return kiln_host_start(&plan->opts, &agent->host, err);
}

static int start(struct agent *agent, struct kiln_err *err)
{
    const struct kiln_settings *set = &agent->config->set;
    int r = kiln_daemon_log(set, &agent->log, err);

    if (r == 0)
        r = kiln_metrics_new(&agent->metrics);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    kiln_daemon_raise_open_files();
    kiln_daemon_measure(agent->metrics, kiln_clock_unix_ns());
    kiln_log(agent->log, KILN_LOG_INFO, "starting", "version", "%s", KILN_VERSION, "pid", "%ld",
             (long)getpid(), "frequency", "%u", set->host.frequency, "spool", "%s",
             kiln_settings_on(set->agent.spool_dir) ? set->agent.spool_dir : "off", "config", "%s",
             agent->config->file_name ? agent->config->file_name : "none", NULL);
    kiln_daemon_check_memory(agent->log, set->host.memory_limit);
    if (set->host.alloc)
        kiln_log(agent->log, KILN_LOG_INFO,
                 "profiling.alloc is for the library inside of programs, not for the agent", NULL);
    kiln_agent_orders_init(&agent->orders, agent->config, agent->metrics, agent->log);
    r = kiln_agent_give_up(agent->log, err);
    if (r == 0)
        r = make_exporter(agent, err);
    if (r == 0)
        r = make_redaction(agent, err);
    if (r == 0)
        r = serve_pages(agent, err);
    if (r == 0)
        r = make_host(agent, err);
    if (r == 0)
        r = kiln_agent_orders_start(&agent->orders, agent->host, agent->exporter, err);
    if (r == 0)
        kiln_agent_confine(agent->log);
    return r;
}

static void finish(struct agent *agent)
{
    bool was_ready = atomic_exchange(&agent->is_ready, false);

    if (agent->orders.config)
        kiln_agent_orders_stop(&agent->orders);
    if (agent->host)
        kiln_host_stop(agent->host);
    if (agent->redaction)
        kiln_redact_processor_free(agent->redaction);
    kiln_redact_free(agent->rules);
    kiln_otlp_exporter_free(agent->exporter, DRAIN_NS);
    if (agent->server)
        kiln_server_stop(agent->server, DRAIN_MS);
    kiln_server_free(agent->server);
    kiln_router_free(agent->router);
    kiln_router_free(agent->local);
    if (agent->orders.config)
        kiln_agent_orders_done(&agent->orders);
    kiln_metrics_free(agent->metrics);
    kiln_host_plan_done(&agent->plan);
    kiln_buf_done(&agent->headers);
    if (was_ready)
        kiln_log(agent->log, KILN_LOG_INFO, "stopped", NULL);
    kiln_log_free(agent->log);
}

/* ---- running ---- */

static int write_ready_file(const struct agent *agent, struct kiln_err *err)
{
    struct kiln_ready ready;

    kiln_ready_begin(&ready);
    kiln_json_put_name(&ready.w, "http");
    kiln_json_put_u64(&ready.w, agent->port);
    if (agent->socket_on) {
        kiln_json_put_name(&ready.w, "socket");
        kiln_json_put_str(&ready.w, kiln_str_of(agent->config->set.agent.socket));
    }
    return kiln_ready_end(&ready, agent->config->set.ready_file, err);
}

static void say_started(struct agent *agent)
{
    struct kiln_err err = {0};

    atomic_store(&agent->is_ready, true);
    kiln_log(agent->log, KILN_LOG_INFO, "ready", NULL);
    if (write_ready_file(agent, &err) < 0)
        kiln_log(agent->log, KILN_LOG_ERROR, "the ready file cannot be written", "path", "%s",
                 agent->config->set.ready_file, "reason", "%s", err.text, NULL);
    kiln_notify("READY=1");
}

static void reload_rules(struct agent *agent, const struct kiln_server_config *config)
{
    struct kiln_redact *rules = NULL;
    struct kiln_err err = {0};

    if (kiln_rules_read(config, &rules, &err) < 0) {
        kiln_log(agent->log, KILN_LOG_ERROR, "redaction stays as it was", "where", "%s", err.where,
                 "reason", "%s", err.text, NULL);
        return;
    }
    kiln_redact_free(kiln_redact_processor_swap(agent->redaction, rules));
    agent->rules = rules;
}

static void reload(void *context)
{
    struct agent *agent = context;
    struct kiln_server_config config;
    struct kiln_err err = {0};
    int r = kiln_settings_load_agent(agent->flags, &config, &err);

    if (r == 0) {
        reload_rules(agent, &config); /* before all else: they keep secrets */
        r = kiln_host_set_rate(agent->host, config.set.host.frequency);
    }
    if (r == 0) {
        kiln_log(agent->log, KILN_LOG_INFO, "settings were read again", "frequency", "%u",
                 config.set.host.frequency, NULL);
    } else {
        kiln_log(agent->log, KILN_LOG_ERROR, "settings stay as they were", "where", "%s", err.where,
                 "reason", "%s", err.text[0] ? err.text : kiln_err_text(r), NULL);
    }
    kiln_settings_done(&config);
}

int kiln_agent(const struct kiln_server_config *config, const struct kiln_settings *flags)
{
    struct agent agent = {.config = config, .flags = flags};
    struct kiln_err err = {0};
    int code = KILN_EXIT_WELL;
    sigset_t set;

    keep_little();
    kiln_buf_init(&agent.headers, 1 << 16);
    kiln_daemon_block_signals(&set);
    if (start(&agent, &err) < 0) {
        code = kiln_daemon_fail(&err);
    } else {
        say_started(&agent);
        kiln_daemon_wait(&set, agent.log, reload, &agent);
    }
    finish(&agent);
    return code;
}

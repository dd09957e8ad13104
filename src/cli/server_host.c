/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host profiler of the server: what it gathers takes the way of everything else, through
 * redaction into the store.  Where it cannot run, that is one line of the log, or of the banner on
 * a terminal, and all the rest does.
 *
 * Its memory is beside the server's limit, not inside: --unwind-memory and --agent-memory-limit say
 * how much.
 */
#include <stdio.h>

#include "base/clock.h"
#include "cli/serve.h"
#include "cli/term.h"

static void begun(struct kiln_serve *serve)
{
    pthread_mutex_lock(&serve->host_lock);
    serve->host_runs = true;
    serve->host_started_ns = kiln_clock_unix_ns();
    pthread_mutex_unlock(&serve->host_lock);
}

static void failed(struct kiln_serve *serve, const struct kiln_err *why)
{
    bool shown = serve->term->is_terminal && strcmp(serve->config->set.log_format, "plain") == 0;

    pthread_mutex_lock(&serve->host_lock);
    serve->host_failed = true;
    snprintf(serve->no_host, sizeof(serve->no_host), "%s", why->text);
    pthread_mutex_unlock(&serve->host_lock);
    kiln_log(serve->log, shown ? KILN_LOG_INFO : KILN_LOG_WARN, "this host is not profiled",
             "reason", "%s", why->text, NULL);
}

int kiln_serve_plan_host(struct kiln_serve *serve, struct kiln_err *err)
{
    return kiln_host_plan_make(&serve->config->set.host, &serve->plan, err);
}

int kiln_serve_make_host(struct kiln_serve *serve, struct kiln_err *err)
{
    int r = 0;

    if (!serve->plan.wanted)
        return 0;
    serve->plan.opts.log = serve->log;
    r = serve->user.changes ? kiln_profiler_fork(&serve->plan.opts, &serve->profiler)
                            : kiln_profiler_new(&serve->profiler);
    return r < 0 ? kiln_err_set(err, r, NULL, "no process for the host profiler: %s",
                                kiln_err_text(r))
                 : 0;
}

static void say_begun(struct kiln_serve *serve)
{
    const struct kiln_host_opts *opts = &serve->plan.opts;

    if (!kiln_profiler_is_apart(serve->profiler))
        kiln_memory_set_aside(&serve->memory, opts->unwind_bytes + opts->memory_bytes);
    kiln_log(serve->log, KILN_LOG_INFO, "profiling this host", "hz", "%u", opts->hz,
             "unwind_memory", "%llu", (unsigned long long)opts->unwind_bytes, "memory", "%llu",
             (unsigned long long)opts->memory_bytes, NULL);
}

int kiln_serve_host(struct kiln_serve *serve, struct kiln_err *err)
{
    struct kiln_host_opts *opts = &serve->plan.opts;
    struct kiln_err why = {0};
    int r;

    if (!serve->plan.wanted)
        return 0;
    kiln_host_find_facts(&serve->host_facts);
    opts->consumer = serve->entry;
    opts->metrics = serve->metrics;
    r = kiln_profiler_start(serve->profiler, opts, &serve->memory.ingest, &why);
    if (r == 0) {
        begun(serve);
        kiln_serve_fleet_follow(serve);
        say_begun(serve);
        return 0;
    }
    if (serve->plan.needed)
        return kiln_err_set(err, r, why.where, "%s", why.text);
    failed(serve, &why);
    return 0;
}

void kiln_serve_host_done(struct kiln_serve *serve)
{
    pthread_mutex_lock(&serve->host_lock);
    serve->host_runs = false;
    pthread_mutex_unlock(&serve->host_lock);
    kiln_profiler_free(serve->profiler);
    serve->profiler = NULL;
    kiln_host_plan_done(&serve->plan);
}

/* ---- telling ---- */

bool kiln_serve_host_tell(struct kiln_serve *serve, struct kiln_agent_status *ret_agent,
                          uint64_t *ret_cpu_ns)
{
    struct kiln_agent_status agent = {.local = true,
                                      .version = KILN_VERSION,
                                      .tenant = "anonymous",
                                      .started_ns = serve->started_unix_ns,
                                      .last_seen_ns = kiln_clock_unix_ns()};
    bool there;

    pthread_mutex_lock(&serve->host_lock);
    there = serve->host_runs || serve->host_failed;
    *ret_cpu_ns = 0;
    if (serve->host_runs) {
        agent.started_ns = serve->host_started_ns;
        kiln_profiler_tell(serve->profiler, &agent, ret_cpu_ns);
    } else {
        agent.state = KILN_AGENT_FAILED;
        snprintf(agent.problem, sizeof(agent.problem), "%s", serve->no_host);
    }
    if (there) {
        snprintf(agent.id, sizeof(agent.id), "%s", serve->host_facts.id);
        snprintf(agent.host, sizeof(agent.host), "%s", serve->host_facts.name);
        snprintf(agent.kernel, sizeof(agent.kernel), "%s", serve->host_facts.kernel);
    }
    pthread_mutex_unlock(&serve->host_lock);
    kiln_serve_fleet_tell(serve, &agent);
    if (there)
        *ret_agent = agent;
    return there;
}

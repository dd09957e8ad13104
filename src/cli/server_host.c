/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host profiler inside of the server: what it gathers takes the way of everything else, through
 * redaction into the store.  Where it cannot run, that is one line of the log and of the greeting,
 * and all the rest does.
 *
 * Its memory is beside the server's limit, not inside: --unwind-memory and --agent-memory-limit say
 * how much.
 */
#include <stdio.h>

#include "base/clock.h"
#include "cli/serve.h"

static void begun(struct kiln_serve *serve, struct kiln_host *host)
{
    pthread_mutex_lock(&serve->host_lock);
    serve->host = host;
    serve->host_started_ns = kiln_clock_unix_ns();
    pthread_mutex_unlock(&serve->host_lock);
}

static void failed(struct kiln_serve *serve, const struct kiln_err *why)
{
    pthread_mutex_lock(&serve->host_lock);
    serve->host_failed = true;
    snprintf(serve->no_host, sizeof(serve->no_host), "%s", why->text);
    pthread_mutex_unlock(&serve->host_lock);
    kiln_log(serve->log, KILN_LOG_WARN, "this host is not profiled", "reason", "%s", why->text,
             NULL);
}

int kiln_serve_host(struct kiln_serve *serve, struct kiln_err *err)
{
    struct kiln_host_opts *opts = &serve->plan.opts;
    struct kiln_err why = {0};
    struct kiln_host *host;
    int r = kiln_host_plan_make(&serve->config->set.host, &serve->plan, err);

    if (r < 0 || !serve->plan.wanted)
        return r;
    kiln_host_find_facts(&serve->host_facts);
    opts->consumer = serve->entry;
    opts->metrics = serve->metrics;
    opts->log = serve->log;
    r = kiln_host_start(opts, &host, &why);
    if (r == 0) {
        begun(serve, host);
        kiln_memory_set_aside(&serve->memory, opts->unwind_bytes + opts->memory_bytes);
        kiln_log(serve->log, KILN_LOG_INFO, "profiling this host", "hz", "%u", opts->hz,
                 "unwind_memory", "%llu", (unsigned long long)opts->unwind_bytes, "memory", "%llu",
                 (unsigned long long)opts->memory_bytes, NULL);
        return 0;
    }
    if (serve->plan.needed)
        return kiln_err_set(err, r, why.where, "%s", why.text);
    failed(serve, &why);
    return 0;
}

void kiln_serve_host_done(struct kiln_serve *serve)
{
    struct kiln_host *host;

    pthread_mutex_lock(&serve->host_lock);
    host = serve->host;
    serve->host = NULL;
    pthread_mutex_unlock(&serve->host_lock);
    if (host)
        kiln_host_stop(host);
    kiln_host_plan_done(&serve->plan);
}

/* ---- telling ---- */

static void add_count(struct kiln_about_count *list, uint32_t *n, const char *reason,
                      uint64_t count)
{
    if (count)
        list[(*n)++] = (struct kiln_about_count){reason, count};
}

static void tell_drops(const struct kiln_host_status *status, struct kiln_about_agent *agent)
{
    uint64_t lost = status->ends.lost - status->dropped;

    add_count(agent->drops, &agent->n_drops, "lost", lost);
    add_count(agent->drops, &agent->n_drops, "not_published", status->dropped);
    add_count(agent->drops, &agent->n_drops, "batches_failed", status->batches_failed);
    add_count(agent->drops, &agent->n_drops, "foreign", status->kernel.counts[KILN_COUNT_FOREIGN]);
}

/* Of stacks that there are: threads of the kernel have none, those of 32 bits are not walked. */
static void tell_ends(const struct kiln_end_tally *ends, struct kiln_about_agent *agent)
{
    _Static_assert((int)KILN_ENDS <= (int)KILN_AGENT_ENDS, "each has its row");

    agent->complete = ends->by_end[KILN_END_COMPLETE];
    agent->all = ends->lost;
    for (int end = 0; end < KILN_ENDS; end++) {
        if (end != KILN_END_NO_USER && end != KILN_END_COMPAT)
            agent->all += ends->by_end[end];
        add_count(agent->ends, &agent->n_ends, kiln_end_word((enum kiln_end)end),
                  ends->by_end[end]);
    }
}

static void tell_running(struct kiln_serve *serve, struct kiln_about_agent *agent)
{
    struct kiln_host_status status;

    kiln_host_status(serve->host, &status);
    agent->state = status.hz ? KILN_AGENT_RUNNING : KILN_AGENT_PAUSED;
    agent->started_ns = serve->host_started_ns;
    agent->hz = status.hz;
    agent->samples = status.samples;
    agent->processes = status.processes;
    agent->memory_bytes = status.memory_bytes;
    tell_drops(&status, agent);
    tell_ends(&status.ends, agent);
}

bool kiln_serve_host_tell(struct kiln_serve *serve, struct kiln_about_agent *ret_agent)
{
    struct kiln_about_agent agent = {.local = true,
                                     .version = KILN_VERSION,
                                     .tenant = "anonymous",
                                     .started_ns = serve->started_unix_ns,
                                     .last_seen_ns = kiln_clock_unix_ns()};
    bool there;

    pthread_mutex_lock(&serve->host_lock);
    there = serve->host || serve->host_failed;
    if (serve->host)
        tell_running(serve, &agent);
    else
        agent.state = KILN_AGENT_FAILED;
    if (there) {
        snprintf(agent.id, sizeof(agent.id), "%s", serve->host_facts.id);
        snprintf(agent.host, sizeof(agent.host), "%s", serve->host_facts.name);
        snprintf(agent.kernel, sizeof(agent.kernel), "%s", serve->host_facts.kernel);
        snprintf(agent.problem, sizeof(agent.problem), "%s", serve->no_host);
    }
    pthread_mutex_unlock(&serve->host_lock);
    if (there)
        *ret_agent = agent;
    return there;
}

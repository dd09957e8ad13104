/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /api/v1/agents: host profilers, and how they are.  The first is the one in this very process,
 * where it has one.
 */
#include "api/native_int.h"
#include "pipeline/gate.h"

static void put_counts(struct kiln_native_call *call, const char *name,
                       const struct kiln_about_count *counts, uint32_t n)
{
    kiln_json_put_name(&call->w, name);
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < n; i++) {
        kiln_json_put_object(&call->w);
        kiln_native_put_text(call, "reason", kiln_str_of(counts[i].reason));
        kiln_native_put_u64(call, "count", counts[i].count);
        kiln_json_end_object(&call->w);
    }
    kiln_json_end_array(&call->w);
}

static void put_unwind(struct kiln_native_call *call, const struct kiln_about_agent *agent)
{
    kiln_json_put_name(&call->w, "unwind");
    kiln_json_put_object(&call->w);
    kiln_native_put_u64(call, "complete", agent->complete);
    kiln_native_put_u64(call, "all", agent->all);
    kiln_json_put_name(&call->w, "share");
    if (agent->all)
        kiln_native_put_share(call, (double)agent->complete / (double)agent->all);
    else
        kiln_json_put_null(&call->w);
    put_counts(call, "ends", agent->ends, agent->n_ends);
    kiln_json_end_object(&call->w);
}

static void put_agent(struct kiln_native_call *call, const struct kiln_about_agent *agent)
{
    static const char *const states[] = {"running", "paused", "failed"};

    kiln_json_put_object(&call->w);
    kiln_native_put_text(call, "id", kiln_str_of(agent->id));
    kiln_native_put_text(call, "host", kiln_str_of(agent->host));
    kiln_native_put_text(call, "version", kiln_str_of(agent->version));
    kiln_native_put_text(call, "kernel", kiln_str_of(agent->kernel));
    kiln_native_put_time(call, "started", agent->started_ns);
    kiln_native_put_time(call, "last_seen", agent->last_seen_ns);
    kiln_native_put_flag(call, "local", agent->local);
    kiln_native_put_text(call, "state", kiln_str_of(states[agent->state]));
    kiln_native_put_said(call, "problem", agent->problem);
    kiln_native_put_u64(call, "hz", agent->hz);
    kiln_native_put_number(call, "samples_per_second", agent->samples_per_s);
    kiln_native_put_u64(call, "samples", agent->samples);
    kiln_native_put_u64(call, "processes", agent->processes);
    put_counts(call, "drops", agent->drops, agent->n_drops);
    put_unwind(call, agent);
    kiln_native_put_number(call, "cpu_cores", agent->cpu_cores);
    kiln_native_put_u64(call, "memory_bytes", agent->memory_bytes);
    kiln_json_end_object(&call->w);
}

/* Whose token is for one tenant sees what is that tenant's. */
static bool may_see(const struct kiln_caller *caller, const struct kiln_about_agent *agent)
{
    return !caller->tenant[0] || strcmp(caller->tenant, agent->tenant) == 0;
}

int kiln_native_run_agents(struct kiln_native_call *call)
{
    const struct kiln_about *about = call->api->about;
    struct kiln_about_agent agent;
    struct kiln_caller caller;

    kiln_native_caller(call, &caller);
    kiln_json_put_object(&call->w);
    kiln_json_put_name(&call->w, "agents");
    kiln_json_put_array(&call->w);
    if (about && about->host(about->context, &agent) && may_see(&caller, &agent))
        put_agent(call, &agent);
    kiln_json_end_array(&call->w);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
    return 0;
}

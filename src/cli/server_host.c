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

#include "cli/serve.h"

int kiln_serve_host(struct kiln_serve *serve, struct kiln_err *err)
{
    struct kiln_host_opts *opts = &serve->plan.opts;
    struct kiln_err why = {0};
    int r = kiln_host_plan_make(&serve->config->set.host, &serve->plan, err);

    if (r < 0 || !serve->plan.wanted)
        return r;
    opts->consumer = serve->entry;
    opts->metrics = serve->metrics;
    opts->log = serve->log;
    r = kiln_host_start(opts, &serve->host, &why);
    if (r == 0) {
        kiln_memory_set_aside(&serve->memory, opts->unwind_bytes + opts->memory_bytes);
        kiln_log(serve->log, KILN_LOG_INFO, "profiling this host", "hz", "%u", opts->hz,
                 "unwind_memory", "%llu", (unsigned long long)opts->unwind_bytes, "memory", "%llu",
                 (unsigned long long)opts->memory_bytes, NULL);
        return 0;
    }
    if (serve->plan.needed)
        return kiln_err_set(err, r, why.where, "%s", why.text);
    snprintf(serve->no_host, sizeof(serve->no_host), "%s", why.text);
    kiln_log(serve->log, KILN_LOG_WARN, "this host is not profiled", "reason", "%s", why.text,
             NULL);
    return 0;
}

void kiln_serve_host_done(struct kiln_serve *serve)
{
    if (serve->host)
        kiln_host_stop(serve->host);
    serve->host = NULL;
    kiln_host_plan_done(&serve->plan);
}

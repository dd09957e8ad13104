/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /api/v1/status: how the server is.  Almost all of its numbers are of the whole server; whose
 * token is for one tenant is told what is that tenant's, and what gives nothing away of others.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "api/native_int.h"
#include "base/clock.h"
#include "pipeline/gate.h"

static void begin(struct kiln_native_call *call, const char *name)
{
    kiln_json_put_name(&call->w, name);
    kiln_json_put_object(&call->w);
}

/* A limit; 0: there is none. */
static void put_limit(struct kiln_native_call *call, const char *name, uint64_t limit)
{
    if (limit) {
        kiln_native_put_u64(call, name, limit);
    } else {
        kiln_json_put_name(&call->w, name);
        kiln_json_put_null(&call->w);
    }
}

static void put_process(struct kiln_native_call *call, const struct kiln_about_server *server)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    kiln_native_put_text(call, "version", KILN_STR(KILN_VERSION));
    kiln_native_put_time(call, "started", server->started_ns);
    kiln_native_put_time(call, "now", call->now_ns);
    begin(call, "memory");
    kiln_native_put_u64(call, "used_bytes", server->memory_bytes);
    kiln_native_put_u64(call, "limit_bytes", server->memory_limit);
    kiln_json_end_object(&call->w);
    kiln_native_put_number(call, "cpu_seconds", server->cpu_seconds);
    kiln_native_put_u64(call, "processors", processors > 0 ? (uint64_t)processors : 1);
}

static void put_ingest(struct kiln_native_call *call, const struct kiln_about_server *server)
{
    begin(call, "ingest");
    kiln_native_put_u64(call, "profiles", server->profiles);
    kiln_native_put_u64(call, "samples", server->samples);
    kiln_native_put_u64(call, "bytes", server->bytes);
    kiln_native_put_number(call, "profiles_per_second", server->profiles_per_s);
    kiln_native_put_number(call, "samples_per_second", server->samples_per_s);
    kiln_native_put_number(call, "bytes_per_second", server->bytes_per_s);
    kiln_json_end_object(&call->w);
}

/* Why nothing is removed by age now; null: it is. */
static void put_paused(struct kiln_native_call *call, uint64_t ahead_ns)
{
    char text[256] = "";

    if (ahead_ns)
        snprintf(
            text, sizeof(text),
            "the clock is %llu hours ahead of where it was expected: nothing is removed by age "
            "until it has been steady for a day",
            (unsigned long long)(ahead_ns / (3600 * KILN_NS_PER_S)));
    kiln_native_put_said(call, "retention_paused", text);
}

static void put_store(struct kiln_native_call *call, const struct kiln_about_server *server,
                      struct kiln_str tenant)
{
    struct kiln_engine *engine = call->api->engine;
    struct kiln_engine_stats stats;

    engine->ops->stats(engine, tenant, &stats);
    begin(call, "store");
    kiln_native_put_u64(call, "bytes", stats.block_bytes);
    kiln_native_put_u64(call, "blocks", stats.blocks);
    if (tenant.len) {
        kiln_json_put_name(&call->w, "log_bytes"); /* which all share */
        kiln_json_put_null(&call->w);
    } else {
        kiln_native_put_u64(call, "log_bytes", stats.log_bytes);
    }
    kiln_native_put_u64(call, "profiles", stats.profiles);
    kiln_native_put_time(call, "oldest", stats.oldest_ns);
    kiln_native_put_time(call, "newest", stats.newest_ns);
    put_limit(call, "retention_seconds", server->retention_ns / KILN_NS_PER_S);
    put_limit(call, "retention_bytes", server->retention_bytes);
    put_paused(call, stats.clock_ahead_ns);
    kiln_native_put_u64(call, "disk_free_bytes", server->disk_free);
    kiln_native_put_flag(call, "writable", !server->problem[0]);
    kiln_native_put_said(call, "problem", server->problem);
    kiln_json_end_object(&call->w);
}

int kiln_native_run_status(struct kiln_native_call *call)
{
    const struct kiln_about *about = call->api->about;
    struct kiln_about_server server;
    struct kiln_caller caller;
    bool all;

    if (!about)
        return kiln_err_set(&call->err, KILN_E_UNSUPPORTED, NULL,
                            "this server tells nothing of itself");
    about->server(about->context, &server);
    kiln_native_caller(call, &caller);
    all = kiln_caller_is_global(&caller);
    kiln_json_put_object(&call->w);
    kiln_native_put_text(call, "scope", all ? KILN_STR("server") : KILN_STR("tenant"));
    put_process(call, &server);
    if (all) {
        put_ingest(call, &server);
    } else {
        kiln_json_put_name(&call->w, "ingest");
        kiln_json_put_null(&call->w);
    }
    kiln_native_put_drops(call, !all);
    put_store(call, &server,
              all ? KILN_STR_NONE
                  : kiln_str_of(caller.tenant[0] ? caller.tenant : call->request->tenant));
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
    return 0;
}

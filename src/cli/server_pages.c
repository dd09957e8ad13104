/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages of the server about itself: what it is, how it is, what it counted.
 */
#include <errno.h>

#include "cli/daemon.h"
#include "cli/host_sampled.h"
#include "cli/serve.h"
#include "naming/local.h"
#include "net/problem.h"

enum { SELF_MAX = 4096, HOST_METRICS_MAX = 8 << 20 };

static void reply_health(struct kiln_request *request)
{
    kiln_request_reply_text(request, 200, "alive");
}

static void reply_starting(struct kiln_request *request, const struct kiln_wal_progress *log)
{
    uint64_t all = atomic_load(&log->all), done = atomic_load(&log->done);

    if (all == 0)
        kiln_request_reply_text(request, 503, "not ready: opening the store");
    else
        kiln_request_reply_text(request, 503,
                                "not ready: replaying the log (%.1f of %.1f MB are done)",
                                (double)done / 1e6, (double)all / 1e6);
}

static void reply_ready(struct kiln_request *request)
{
    struct kiln_serve *serve = request->context;
    int state = atomic_load(&serve->state);
    struct kiln_err err = {0};
    bool full;
    uint64_t free_bytes = kiln_serve_disk_free(serve, &full);

    if (state == KILN_SERVE_STARTING)
        reply_starting(request, &serve->opening.log);
    else if (state == KILN_SERVE_STOPPING)
        kiln_request_reply_text(request, 503, "not ready: shutting down");
    else if (full)
        kiln_request_reply_text(request, 503, "not ready: the disk is full (%llu bytes are free)",
                                (unsigned long long)free_bytes);
    else if (kiln_store_probe(serve->engine, &err) < 0)
        kiln_request_reply_text(request, 503, "not ready: writes fail: %s: %s", err.where,
                                err.text);
    else
        kiln_request_reply_text(request, 200, "ready");
}

static void reply_metrics(struct kiln_request *request)
{
    struct kiln_serve *serve = request->context;
    struct kiln_caller caller;
    struct kiln_buf host;

    kiln_gate_caller(serve->gate, request, &caller);
    if (!kiln_caller_is_global(&caller)) {
        kiln_problem_reply(request, 403, "",
                           "metrics are of the whole server: a token without tenant is needed");
        return;
    }
    kiln_buf_init(&host, HOST_METRICS_MAX);
    pthread_mutex_lock(&serve->host_lock);
    if (serve->host_runs)
        kiln_profiler_put_metrics(serve->profiler, &host);
    pthread_mutex_unlock(&serve->host_lock);
    kiln_daemon_reply_metrics(request, serve->metrics, kiln_buf_str(&host));
    kiln_buf_done(&host);
}

/* A program with libkiln inside asks; nobody else is told anything of processes. */
static void reply_self(struct kiln_request *request)
{
    struct kiln_serve *serve = request->context;
    struct kiln_json_out w;
    struct kiln_buf text;
    bool runs;

    if (!request->peer.local) {
        kiln_problem_reply(request, 404, "", "only processes on this host are told, by the socket");
        return;
    }
    pthread_mutex_lock(&serve->host_lock);
    runs = serve->host_runs;
    pthread_mutex_unlock(&serve->host_lock);
    kiln_buf_init(&text, SELF_MAX);
    kiln_json_out_init(&w, &text, 0);
    kiln_json_put_object(&w);
    kiln_host_sampled_put(&w, runs ? &serve->plan.opts : NULL, request->peer.pid);
    kiln_json_put_name(&w, "names");
    kiln_json_put_bool(&w, kiln_local_files_can(request->peer.pid));
    kiln_json_end_object(&w);
    kiln_request_reply(request, &(struct kiln_reply){.status = text.error ? 503 : 200,
                                                     .content_type = "application/json",
                                                     .body = kiln_buf_str(&text)});
    kiln_buf_done(&text);
}

static int add(struct kiln_router *router, const struct kiln_route *routes, uint32_t n,
               struct kiln_serve *serve)
{
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_route route = routes[i];
        int r;

        route.context = serve;
        r = kiln_router_add(router, &route);
        if (r < 0)
            return r;
    }
    return 0;
}

int kiln_serve_pages(struct kiln_serve *serve, struct kiln_router *router)
{
    static const struct kiln_route routes[] = {
        {.method = "GET", .path = "/healthz", .handler = reply_health},
        {.method = "GET", .path = "/ready", .handler = reply_ready},
        {.method = "GET", .path = "/v1/self", .handler = reply_self},
        {.method = "GET", .path = "/metrics", .handler = reply_metrics, .access = KILN_ACCESS_SELF},
    };

    return add(router, routes, KILN_ARRAY_LEN(routes), serve);
}

/* ---- while it starts ---- */

static int refuse_all(void *context, struct kiln_request *request, enum kiln_access access,
                      struct kiln_reply *reply)
{
    (void)context, (void)request;
    if (access == KILN_ACCESS_NONE)
        return 0;
    *reply = (struct kiln_reply){
        .status = 503,
        .content_type = "text/plain; charset=utf-8",
        .body = KILN_STR("the server starts: its log is being replayed, try again\n"),
        .headers = {{KILN_STR("retry-after"), KILN_STR("1")}},
        .n_headers = 1,
    };
    return -EAGAIN;
}

int kiln_serve_pages_starting(struct kiln_serve *serve, struct kiln_router **ret_router)
{
    static const struct kiln_route routes[] = {
        {.method = "GET", .path = "/healthz", .handler = reply_health},
        {.method = "GET", .path = "/ready", .handler = reply_ready},
        {.path = "*", .handler = reply_ready, .access = KILN_ACCESS_SELF},
    };
    struct kiln_router *router;
    int r = kiln_router_new(&router);

    if (r < 0)
        return r;
    kiln_router_guard(router, (struct kiln_guard){.check = refuse_all});
    kiln_router_translate(router, kiln_problem_translate);
    *ret_router = router;
    return add(router, routes, KILN_ARRAY_LEN(routes), serve);
}

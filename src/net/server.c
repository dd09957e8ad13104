/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "net/server_int.h"

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
    return value ? value : fallback;
}

static struct kiln_server_opts with_defaults(const struct kiln_server_opts *opts)
{
    struct kiln_server_opts o = opts ? *opts : (struct kiln_server_opts){0};
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    o.loops = or_default(o.loops, 1);
    o.workers = or_default(o.workers, cpus > 0 ? (uint32_t)cpus : 1);
    o.long_workers = or_default(o.long_workers, 8);
    o.queue_max = or_default(o.queue_max, 1024);
    o.connections_max = or_default(o.connections_max, 4096);
    o.body_max = o.body_max ? o.body_max : (size_t)64 << 20;
    o.header_max = o.header_max ? o.header_max : 64 << 10;
    o.header_timeout_ms = or_default(o.header_timeout_ms, 10000);
    o.body_timeout_ms = or_default(o.body_timeout_ms, 20000);
    o.request_timeout_ms = or_default(o.request_timeout_ms, 120000);
    o.idle_timeout_ms = or_default(o.idle_timeout_ms, 120000);
    return o;
}

static void get_metrics(struct kiln_net_metrics *m, struct kiln_metrics *metrics)
{
    static const char *const classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};

    for (size_t i = 0; i < KILN_ARRAY_LEN(classes); i++)
        m->requests[i] = kiln_metric_get(metrics, KILN_COUNTER, "kiln_http_requests_total",
                                         "Requests answered, by the class of the status.",
                                         KILN_LABELS("status", classes[i]));
    m->connections = kiln_metric_get(metrics, KILN_GAUGE, "kiln_http_connections",
                                     "Connections that are open.", KILN_LABELS(NULL));
    m->connections_total = kiln_metric_get(metrics, KILN_COUNTER, "kiln_http_connections_total",
                                           "Connections that were accepted.", KILN_LABELS(NULL));
    m->bytes_in = kiln_metric_get(metrics, KILN_COUNTER, "kiln_http_received_bytes_total",
                                  "Bytes received, without TLS.", KILN_LABELS(NULL));
    m->bytes_out = kiln_metric_get(metrics, KILN_COUNTER, "kiln_http_sent_bytes_total",
                                   "Bytes sent, without TLS.", KILN_LABELS(NULL));
}

void kiln_server_answered(struct kiln_server *server, int status)
{
    if (status >= 100 && status < 600)
        kiln_metric_add(server->metrics.requests[status / 100 - 1], 1);
}

void kiln_server_refused(struct kiln_server *server, const char *reason)
{
    if (server->opts.metrics)
        kiln_metric_add(kiln_metric_get(server->opts.metrics, KILN_COUNTER,
                                        "kiln_http_refused_total",
                                        "Requests and connections refused by the server itself.",
                                        KILN_LABELS("reason", reason)),
                        1);
}

int kiln_server_new(const struct kiln_server_opts *opts, struct kiln_server **ret_server)
{
    struct kiln_server *server = kiln_calloc(1, sizeof(*server));

    if (!server)
        return -ENOMEM;
    server->opts = with_defaults(opts);
    atomic_init(&server->refs, 1);
    get_metrics(&server->metrics, server->opts.metrics);
    pthread_mutex_init(&server->lock, NULL);
    kiln_cond_init(&server->drained);
    for (int i = 0; i < KILN_LANES; i++)
        kiln_crew_init(&server->crews[i], (enum kiln_lane)i, &server->opts);
    *ret_server = server;
    return 0;
}

/* ---- start ---- */

static void *run_loop(void *loop)
{
    kiln_loop_run(loop);
    return NULL;
}

static int make_loops(struct kiln_server *server)
{
    uint32_t n = server->opts.loops;

    server->loops = kiln_calloc(n, sizeof(*server->loops));
    if (!server->loops)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        server->loops[i].wake_fd = -1;
    for (uint32_t i = 0; i < n; i++) {
        int r = kiln_loop_init(&server->loops[i], server);

        if (r < 0) {
            server->opts.loops = i;
            return r;
        }
    }
    return 0;
}

static int start_threads(struct kiln_server *server)
{
    const struct kiln_server_opts *opts = &server->opts;
    int r = kiln_crew_start(&server->crews[KILN_LANE_QUICK], "kiln-worker", opts->workers);

    if (r == 0)
        r = kiln_crew_start(&server->crews[KILN_LANE_LONG], "kiln-long", opts->long_workers);
    for (uint32_t i = 0; r == 0 && i < opts->loops; i++) {
        r = kiln_thread_start("kiln-net", run_loop, &server->loops[i], &server->loops[i].thread);
        server->loops[i].started = r == 0;
    }
    return r;
}

int kiln_server_start(struct kiln_server *server, struct kiln_err *err)
{
    int r = make_loops(server);

    if (r == 0) {
        for (struct kiln_listener *l = server->listeners; l; l = l->next)
            kiln_listener_open(l, &server->loops[0]);
        r = start_threads(server);
    }
    server->started = true;
    if (r < 0) {
        kiln_server_stop(server, 0);
        return kiln_err_set(err, r, NULL, "cannot start the server: %s", kiln_err_text(r));
    }
    return 0;
}

void kiln_server_hold(struct kiln_server *server, struct kiln_router *instead)
{
    atomic_store_explicit(&server->instead, instead, memory_order_release);
}

/* ---- stop ---- */

void kiln_server_conn_gone(struct kiln_server *server)
{
    kiln_metric_add(server->metrics.connections, -1);
    if (atomic_fetch_sub(&server->n_conns, 1) != 1)
        return;
    pthread_mutex_lock(&server->lock);
    pthread_cond_broadcast(&server->drained);
    pthread_mutex_unlock(&server->lock);
}

static void wait_drained(struct kiln_server *server, uint32_t timeout_ms)
{
    uint64_t until = kiln_clock_mono_ns() + timeout_ms * KILN_NS_PER_MS;
    struct timespec at = kiln_timespec_of(until);

    pthread_mutex_lock(&server->lock);
    while (atomic_load(&server->n_conns) > 0)
        if (pthread_cond_timedwait(&server->drained, &server->lock, &at) == ETIMEDOUT)
            break;
    pthread_mutex_unlock(&server->lock);
}

static void stop_loops(struct kiln_server *server)
{
    for (uint32_t i = 0; server->loops && i < server->opts.loops; i++) {
        struct kiln_loop *loop = &server->loops[i];

        kiln_loop_ask(loop, true);
        if (loop->started)
            pthread_join(loop->thread, NULL);
        else
            kiln_loop_close_all(loop);
        loop->started = false;
    }
}

void kiln_server_stop(struct kiln_server *server, uint32_t timeout_ms)
{
    if (!server->started || server->stopped)
        return;
    server->stopped = true;
    for (uint32_t i = 0; server->loops && i < server->opts.loops; i++)
        kiln_loop_ask(&server->loops[i], false);
    wait_drained(server, timeout_ms);
    stop_loops(server);
    for (int i = 0; i < KILN_LANES; i++)
        kiln_queue_stop(&server->crews[i].queue);
    for (int i = 0; i < KILN_LANES; i++)
        kiln_crew_join(&server->crews[i]);
}

void kiln_server_unref(struct kiln_server *server)
{
    if (atomic_fetch_sub(&server->refs, 1) != 1)
        return;
    for (uint32_t i = 0; server->loops && i < server->opts.loops; i++)
        kiln_loop_done(&server->loops[i]);
    for (int i = 0; i < KILN_LANES; i++)
        kiln_crew_done(&server->crews[i]);
    pthread_mutex_destroy(&server->lock);
    pthread_cond_destroy(&server->drained);
    kiln_free(server->loops);
    kiln_free(server);
}

void kiln_server_free(struct kiln_server *server)
{
    struct kiln_listener *listener;

    if (!server)
        return;
    kiln_server_stop(server, 0);
    while ((listener = server->listeners)) {
        server->listeners = listener->next;
        kiln_listener_free(listener);
    }
    kiln_server_unref(server);
}

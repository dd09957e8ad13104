/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <malloc.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/collector.h"
#include "cli/daemon.h"
#include "collector/listen.h"

#define METRICS_NAME "service::telemetry::metrics"

enum { CONNECTIONS_MAX = 64, STOP_MS = 1000 };

/* ---- the process, in the Collector's names ---- */

static void set(struct kiln_metrics *metrics, enum kiln_metric_kind kind, const char *name,
                const char *help, double value)
{
    kiln_metric_set(kiln_metric_get(metrics, kind, name, help, NULL), value);
}

struct heap {
    double used_bytes;
    double system_bytes;
};

/* An older C library has numbers of 32 bits alone. */
static struct heap read_heap(void)
{
#if __GLIBC_PREREQ(2, 33)
    struct mallinfo2 heap = mallinfo2();

    return (struct heap){(double)(heap.uordblks + heap.hblkhd), (double)(heap.arena + heap.hblkhd)};
#else
    struct mallinfo heap = mallinfo();
    double mapped = (unsigned)heap.hblkhd;

    return (struct heap){(unsigned)heap.uordblks + mapped, (unsigned)heap.arena + mapped};
#endif
}

static void collect(void *context)
{
    const struct kiln_stage_pages *pages = context;
    struct kiln_metrics *m = pages->metrics;
    struct heap heap = read_heap();

    set(m, KILN_COUNTER, "otelcol_process_uptime", "Uptime of the process, in seconds.",
        (double)(kiln_clock_unix_ns() - pages->started_unix_ns) / 1e9);
    set(m, KILN_COUNTER, "otelcol_process_cpu_seconds",
        "Total CPU user and system time in seconds.", kiln_process_cpu_seconds());
    set(m, KILN_GAUGE, "otelcol_process_memory_rss", "Total physical memory (resident set size).",
        (double)kiln_process_rss());
    set(m, KILN_GAUGE, "otelcol_process_runtime_heap_alloc_bytes", "Bytes that are allocated.",
        heap.used_bytes);
    set(m, KILN_COUNTER, "otelcol_process_runtime_total_alloc_bytes",
        "Bytes that were allocated since the start, but for what libraries allocate.",
        (double)kiln_mem_made_bytes());
    set(m, KILN_GAUGE, "otelcol_process_runtime_total_sys_memory_bytes",
        "Bytes that the allocator has from the system.", heap.system_bytes);
}

int kiln_stage_pages_init(struct kiln_stage_pages *pages)
{
    int r = kiln_metrics_new(&pages->metrics);

    if (r < 0)
        return r;
    pages->started_unix_ns = kiln_clock_unix_ns();
    kiln_daemon_measure(pages->metrics, pages->started_unix_ns);
    kiln_metrics_on_collect(pages->metrics, collect, pages);
    return 0;
}

/* ---- /metrics ---- */

static void reply_metrics(struct kiln_request *request)
{
    const struct kiln_stage_pages *pages = request->context;

    kiln_daemon_reply_metrics(request, pages->metrics, KILN_STR_NONE);
}

static void close_pages(struct kiln_stage_pages *pages)
{
    if (pages->server)
        kiln_server_stop(pages->server, STOP_MS);
    kiln_server_free(pages->server);
    kiln_router_free(pages->router);
    pages->server = NULL;
    pages->router = NULL;
}

void kiln_stage_pages_done(struct kiln_stage_pages *pages)
{
    close_pages(pages);
    kiln_metrics_free(pages->metrics);
}

static int make_server(struct kiln_stage_pages *pages)
{
    const struct kiln_route route = {
        .method = "GET", .path = "/metrics", .handler = reply_metrics, .context = pages};
    const struct kiln_server_opts opts = {
        .workers = 1, .long_workers = 1, .connections_max = CONNECTIONS_MAX};
    int r = kiln_router_new(&pages->router);

    if (r == 0)
        r = kiln_router_add(pages->router, &route);
    return r < 0 ? r : kiln_server_new(&opts, &pages->server);
}

static int open_pages(struct kiln_stage_pages *pages, const char *address,
                      struct kiln_sockets *sockets, struct kiln_err *err)
{
    struct kiln_listen_opts opts = {.address = address, .sockets = sockets, .name = METRICS_NAME};
    int r = make_server(pages);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    pages->origin = kiln_listen_origin(address);
    kiln_router_guard(pages->router, kiln_origin_guard(&pages->origin));
    opts.router = pages->router;
    r = kiln_server_listen(pages->server, &opts, NULL, err);
    if (r == 0)
        r = kiln_server_start(pages->server, err);
    return r;
}

int kiln_stage_pages_listen(struct kiln_stage_pages *pages, const struct kiln_telemetry *telemetry,
                            struct kiln_sockets *sockets, struct kiln_log *log,
                            struct kiln_err *err)
{
    const char *address = telemetry->metrics_address;
    struct kiln_err why = {0};
    int r;

    close_pages(pages);
    if (!address[0])
        return 0;
    r = open_pages(pages, address, sockets, &why);
    if (r == 0) {
        kiln_listen_warn_open(log, METRICS_NAME, address);
        return 0;
    }
    close_pages(pages);
    if (r == -EADDRINUSE && !telemetry->metrics_said) { /* nobody asked for it */
        kiln_log(log, KILN_LOG_WARN, "no metrics: another program listens there", "address", "%s",
                 address, NULL);
        return 0;
    }
    return kiln_err_set(err, r, why.where, "service::telemetry::metrics: %s", why.text);
}

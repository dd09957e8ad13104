/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "cli/collector.h"
#include "cli/daemon.h"

enum { CONNECTIONS_MAX = 64, STOP_MS = 1000 };

static void reply_metrics(struct kiln_request *request)
{
    struct kiln_stage_pages *pages = request->context;

    pthread_mutex_lock(&pages->lock);
    if (pages->stage)
        kiln_daemon_reply_metrics(request, pages->stage->metrics);
    else
        kiln_request_reply_text(request, 503, "the configuration is being changed");
    pthread_mutex_unlock(&pages->lock);
}

void kiln_stage_pages_init(struct kiln_stage_pages *pages)
{
    *pages = (struct kiln_stage_pages){0};
    pthread_mutex_init(&pages->lock, NULL);
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
    pthread_mutex_destroy(&pages->lock);
}

void kiln_stage_pages_show(struct kiln_stage_pages *pages, struct kiln_stage *stage)
{
    pthread_mutex_lock(&pages->lock);
    pages->stage = stage;
    pthread_mutex_unlock(&pages->lock);
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
    struct kiln_listen_opts opts = {
        .address = address, .sockets = sockets, .name = "service::telemetry::metrics"};
    int r = make_server(pages);

    opts.router = pages->router;
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
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
    if (r == 0)
        return 0;
    close_pages(pages);
    if (r == -EADDRINUSE && !telemetry->metrics_said) { /* nobody asked for it */
        kiln_log(log, KILN_LOG_WARN, "no metrics: another program listens there", "address", "%s",
                 address, NULL);
        return 0;
    }
    return kiln_err_set(err, r, why.where, "service::telemetry::metrics: %s", why.text);
}

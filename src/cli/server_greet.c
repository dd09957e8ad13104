/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person who started the server by hand wants to know next; only on a terminal.
 */
#include <stdio.h>
#include <unistd.h>

#include "cli/serve.h"

/* "0.0.0.0:4040", ":4040" and the like are no addresses to go to. */
static void put_address(const struct kiln_serve *serve, const char *address, uint16_t port,
                        char *out, size_t size)
{
    const char *colon = strrchr(address, ':');
    int host = colon ? (int)(colon - address) : 0;
    bool any = host == 0 || strncmp(address, "0.0.0.0", 7) == 0 || strncmp(address, "[::]", 4) == 0;

    snprintf(out, size, "%s://%.*s:%u", serve->config->set.tls_cert ? "https" : "http",
             any ? 9 : host, any ? "127.0.0.1" : address, port);
}

static void put_host(const struct kiln_serve *serve)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    if (serve->host)
        printf("  host    every process of this machine is profiled: %ld processor%s at %u Hz\n", n,
               n == 1 ? "" : "s", serve->plan.opts.hz);
    else if (serve->no_host[0])
        printf("  host    this machine is not profiled: %s\n", serve->no_host);
}

void kiln_serve_greet(const struct kiln_serve *serve)
{
    const struct kiln_settings *set = &serve->config->set;
    const char *option = "", *server = ""; /* what commands must be told */
    char page[300] = "";

    if (!isatty(STDOUT_FILENO))
        return;
    if (serve->ports.http)
        put_address(serve, set->listen, serve->ports.http, page, sizeof(page));
    if (strcmp(page, "http://127.0.0.1:4040") != 0) {
        option = " -s ";
        server = page;
    }
    printf("\nKiln is ready.\n\n");
    if (page[0])
        printf("  look    %s\n", page);
    printf("  data    %s (profiles of %llu days, then the oldest go)\n", set->data_dir,
           (unsigned long long)(set->retention_ns / (86400 * UINT64_C(1000000000))));
    put_host(serve);
    if (page[0])
        printf("  send    kiln push%s%s FILE..., or point a Pyroscope client at %s\n", option,
               server, page);
    if (serve->ports.otlp_grpc)
        printf("          OpenTelemetry: OTLP over gRPC to port %u\n", serve->ports.otlp_grpc);
    if (page[0])
        printf("  ask     kiln query%s%s --services\n", option, server);
    printf("  more    kiln help server, kiln config\n"
           "  stop    Ctrl-C\n\n");
    fflush(stdout);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/listen.h"

#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "collector/graph.h"
#include "net.h"
#include "test.h"
#include "ways_kit.h"

enum { TOLD_MAX = 4000 };

static void read_back(FILE *file, char told[TOLD_MAX])
{
    ssize_t n = pread(fileno(file), told, TOLD_MAX - 1, 0);

    CHECK(n >= 0);
    told[n] = '\0';
}

/* Runs a configuration for a moment; what it logs. */
static void run(const char *yaml, char told[TOLD_MAX])
{
    struct kiln_graph_opts opts = {0};
    struct kiln_pool pool;
    struct kiln_config *config;
    struct kiln_graph *graph;
    struct kiln_err err = {0};
    FILE *file = tmpfile();

    CHECK(file);
    kiln_pool_init(&pool, "test", 64u << 20, NULL);
    opts.pool = &pool;
    CHECK_OK(kiln_log_new(fileno(file), KILN_LOG_WARN, KILN_LOG_LOGFMT, &opts.log));
    CHECK_OK(kiln_sockets_new(&opts.sockets));
    CHECK_OK(kiln_metrics_new(&opts.metrics));
    CHECK_OK(kiln_config_parse(kiln_str_of(yaml), &config, &err));
    if (kiln_graph_new(kiln_config_root(config), &opts, &graph, &err) < 0 ||
        kiln_graph_start(graph, &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
    kiln_graph_stop(graph, 0);
    kiln_graph_free(graph);
    read_back(file, told);
    kiln_sockets_free(opts.sockets);
    kiln_config_free(config);
    kiln_metrics_free(opts.metrics);
    kiln_log_free(opts.log);
    fclose(file);
    CHECK_EQ(kiln_mem_live(), 0);
}

static bool warns_of(const char *told, const char *name)
{
    char field[100];

    snprintf(field, sizeof(field), "for=%s ", name);
    return strstr(told, field) != NULL;
}

TEST(listen, doors_that_everybody_can_open_are_warned_of)
{
    char told[TOLD_MAX];

    run("extensions:\n"
        "  pprof: {endpoint: '0.0.0.0:0'}\n"
        "  health_check: {endpoint: '0.0.0.0:0'}\n"
        "  health_check/home: {endpoint: 'localhost:0'}\n"
        "  bearertokenauth: {token: secret}\n"
        "receivers:\n"
        "  otlp: {protocols: {grpc: {endpoint: '0.0.0.0:0'}, http: {endpoint: 'localhost:0'}}}\n"
        "  otlp/auth: {protocols: {grpc: {endpoint: '0.0.0.0:0',\n"
        "    auth: {authenticator: bearertokenauth}}}}\n"
        "  pyroscope: {endpoint: '0.0.0.0:0'}\n"
        "  pprof: {remote: {endpoint: 'http://user:word@192.0.2.1:1/x'}}\n"
        "exporters: {nop: }\n"
        "service:\n"
        "  extensions: [pprof, health_check, health_check/home, bearertokenauth]\n"
        "  pipelines: {profiles: {receivers: [otlp, otlp/auth, pyroscope, pprof], "
        "exporters: [nop]}}\n",
        told);
    CHECK(warns_of(told, "receivers::otlp::grpc"));
    CHECK(warns_of(told, "receivers::pyroscope"));
    CHECK(warns_of(told, "extensions::pprof"));
    CHECK(warns_of(told, "extensions::health_check"));
    CHECK(!warns_of(told, "receivers::otlp::http"));
    CHECK(!warns_of(told, "receivers::otlp/auth::grpc"));
    CHECK(!warns_of(told, "extensions::health_check/home"));
    CHECK(!strstr(told, "192.0.2.1") && !strstr(told, "word"));
}

/* The status of an empty report with these lines of its head. */
static int posted_with(struct ways *kit, const char *lines)
{
    char text[512];

    snprintf(text, sizeof(text),
             "POST /v1development/profiles HTTP/1.1\r\n%sconnection: close\r\n"
             "content-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
             lines);
    return net_status(net_talk(ways_port(kit, "http"), text));
}

TEST(listen, pages_of_other_sites_send_nothing)
{
    struct ways kit;

    ways_start(&kit, KILN_RECEIVER, "otlp",
               "protocols: {http: {endpoint: 127.0.0.1:0,\n"
               "  cors: {allowed_origins: ['https://*.example.com']}}}");
    CHECK_EQ(posted_with(&kit, "host: collector:4318\r\n"), 200);
    CHECK_EQ(posted_with(&kit, "host: a\r\norigin: https://app.example.com\r\n"), 200);
    CHECK_EQ(posted_with(&kit, "host: localhost\r\norigin: http://evil.example\r\n"), 403);
    CHECK_EQ(posted_with(&kit, "host: localhost\r\nsec-fetch-site: cross-site\r\n"), 403);
    CHECK_EQ(posted_with(&kit, "host: evil.example\r\norigin: http://evil.example\r\n"), 421);
    ways_stop(&kit);
}

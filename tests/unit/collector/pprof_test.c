/* SPDX-License-Identifier: Apache-2.0 */
/* The pprof receiver with all its ways in, and the pprof extension. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "folder.h"
#include "intake.h"
#include "net.h"
#include "test.h"
#include "ways_kit.h"

static void post(struct ways *kit, const char *path, struct kiln_str body)
{
    ways_call(kit, "pprof",
              &(struct kiln_call){.path = path, .content_type = "text/plain", .body = body});
}

TEST(pprof_receiver, takes_uploads)
{
    struct kiln_buf pprof;
    struct ways kit;

    ways_start(&kit, KILN_RECEIVER, "pprof", "{server: {endpoint: '127.0.0.1:0'}}");
    post(&kit, "/api/v1/profiles?service=app&type=cpu&unit=count", KILN_STR("main;read 3\n"));
    CHECK_EQ(kit.answer.status, 200);
    CHECK_EQ(kit.n, 1);
    post(&kit, "/v1/pprof", intake_cpu_pprof(&pprof)); /* as the Collector's has it */
    CHECK_EQ(kit.answer.status, 204);
    CHECK_EQ(kit.answer.body.len, 0);
    CHECK_EQ(kit.n, 2);
    post(&kit, "/v1/pprof", KILN_STR("\x0a\xff\xff\xff"));
    CHECK_EQ(kit.answer.status, 400);
    CHECK_EQ(kit.n, 2);
    kiln_buf_done(&pprof);
    ways_stop(&kit);
}

/* Each file once, and again when it has changed. */
TEST(pprof_receiver, reads_files)
{
    char folder[FOLDER_NAME], path[128], yaml[300];
    struct kiln_buf pprof;
    struct kiln_str bytes = intake_cpu_pprof(&pprof);
    struct ways kit;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/a.pb", folder);
    snprintf(yaml, sizeof(yaml),
             "{file: {include: '%s/*.pb', collection_interval: 5ms, initial_delay: 0s}}", folder);
    CHECK_OK(kiln_file_write(path, bytes, NULL));
    ways_start(&kit, KILN_RECEIVER, "pprof", yaml);
    ways_wait(&kit, 1);
    CHECK_EQ(kit.got[0].batch->n_samples, 1);
    usleep(30000); /* looks at it several times, and reads it no more */
    CHECK_EQ(kit.n, 1);
    snprintf(path, sizeof(path), "%s/b.txt", folder); /* which is no such file */
    CHECK_OK(kiln_file_write(path, bytes, NULL));
    snprintf(path, sizeof(path), "%s/c.pb", folder); /* nor is this one */
    CHECK_OK(kiln_file_write(path, KILN_STR("\x0a\xff\xff\xff"), NULL));
    snprintf(path, sizeof(path), "%s/a.pb", folder);
    CHECK_OK(kiln_file_write(path, bytes, NULL));
    ways_wait(&kit, 2);
    usleep(30000);
    CHECK_EQ(kit.n, 2);
    kiln_buf_done(&pprof);
    ways_stop(&kit);
    folder_remove(folder);
}

TEST(pprof_receiver, a_file_that_should_be_tried_again_is)
{
    char folder[FOLDER_NAME], path[128], yaml[300];
    struct kiln_buf pprof;
    struct ways kit;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/a.pb", folder);
    snprintf(yaml, sizeof(yaml),
             "{file: {include: ['%s/*'], collection_interval: 5ms, initial_delay: 0s}}", folder);
    ways_start(&kit, KILN_RECEIVER, "pprof", yaml);
    kit.outcome.code = -EAGAIN;
    CHECK_OK(kiln_file_write(path, intake_cpu_pprof(&pprof), NULL));
    ways_wait(&kit, 3);
    kiln_buf_done(&pprof);
    ways_stop(&kit);
    folder_remove(folder);
}

/* ---- remote ---- */

static struct kiln_buf served;
static char seen[256];

static void give(struct kiln_request *request)
{
    snprintf(seen, sizeof(seen), "%.*s?%.*s %.*s", KILN_STR_ARG(request->path),
             KILN_STR_ARG(request->query), KILN_STR_ARG(kiln_request_header(request, "x-who")));
    kiln_request_reply(request, &(struct kiln_reply){.status = 200,
                                                     .content_type = "application/octet-stream",
                                                     .body = kiln_buf_str(&served),
                                                     .as_is = true});
}

TEST(pprof_receiver, fetches_one_profile)
{
    struct net_fixture net = {0};
    struct ways kit;
    char yaml[300];

    intake_cpu_pprof(&served);
    CHECK_OK(kiln_router_new(&net.router));
    CHECK_OK(kiln_router_add(
        net.router,
        &(struct kiln_route){.method = "GET", .path = "/debug/pprof/profile", .handler = give}));
    net_start(&net, NULL);
    snprintf(yaml, sizeof(yaml),
             "{remote: {endpoint: 'http://127.0.0.1:%u/debug/pprof/profile?seconds=1',"
             " collection_interval: 5ms, initial_delay: 0s, headers: {X-Who: me}}}",
             net.port);
    ways_start(&kit, KILN_RECEIVER, "pprof", yaml);
    ways_wait(&kit, 2);
    CHECK_EQ(kit.got[1].batch->n_samples, 1);
    CHECK_TEXT(seen, "/debug/pprof/profile?seconds=1 me");
    kit.component->ops->stop(kit.component, 0);
    net_stop(&net);
    kiln_buf_done(&served);
    ways_stop(&kit);
}

TEST(pprof_receiver, settings_that_are_wrong)
{
    CHECK_TEXT(ways_refusal(KILN_RECEIVER, "pprof", "{}"),
               "say server (programs post profiles), scrape_configs or remote (they are fetched), "
               "file, or self");
    CHECK_TEXT(ways_refusal(KILN_RECEIVER, "pprof", "{scrape_configs: [{}]}"),
               "line 1, column 19: this job has no job_name");
    CHECK_TEXT(ways_refusal(KILN_RECEIVER, "pprof", "{file: {}}"),
               "file: \"include\" is empty: say which files, as a pattern");
    CHECK_TEXT(
        ways_refusal(KILN_RECEIVER, "pprof", "{file: {include: a, collection_interval: 0s}}"),
        "line 1, column 42: \"collection_interval\": requires positive value");
    CHECK_TEXT(ways_refusal(KILN_RECEIVER, "pprof", "{remote: {endpoint: 'localhost:6060'}}"),
               "line 1, column 10: \"endpoint\" must be the whole address of a profile (say "
               "http://host:6060/debug/pprof/profile?seconds=10)");
}

/* ---- the collector's own ---- */

/* tests/cli/collector_own_test.py has a collector that profiles itself; this program does not. */
TEST(pprof_extension, tells_who_asks_what_is_missing)
{
    struct ways kit;

    ways_start(&kit, KILN_EXTENSION, "pprof",
               "{endpoint: '127.0.0.1:0', mutex_profile_fraction: 1, block_profile_fraction: 1}");
    ways_call(&kit, "pprof", &(struct kiln_call){.method = "GET", .path = "/debug/pprof/heap"});
    CHECK_EQ(kit.answer.status, 503);
    kiln_buf_putc(&kit.answer.body, '\0');
    CHECK(strstr(kit.answer.body.ptr, "kiln run --pprof"));
    ways_stop(&kit);
    CHECK(strstr(ways_refusal(KILN_EXTENSION, "pprof", "{save_to_file: x}"), "curl -o FILE"));
}

/* Nobody would notice a receiver that never has anything. */
TEST(pprof_receiver, does_not_start_where_it_cannot_profile_itself)
{
    static const char text[] =
        "receivers: {pprof: {self: }}\nexporters: {nop: }\n"
        "service: {pipelines: {profiles: {receivers: [pprof], exporters: [nop]}}}\n";
    struct kiln_err err = {0};
    struct kiln_config *config;
    struct kiln_graph *graph;

    CHECK_OK(kiln_config_parse(kiln_str_of(text), &config, NULL));
    CHECK_OK(kiln_graph_new(kiln_config_root(config), &(struct kiln_graph_opts){0}, &graph, &err));
    CHECK(kiln_graph_wants_own(graph));
    CHECK(kiln_graph_start(graph, &err) < 0);
    CHECK(strstr(err.text, "kiln run --pprof"));
    kiln_graph_free(graph);
    kiln_config_free(config);
}

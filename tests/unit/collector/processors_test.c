/* SPDX-License-Identifier: Apache-2.0 */
/* What processors say to their part of a configuration; that they are made, started and stopped. */
#include <stdlib.h>

#include "base/mem.h"
#include "collector/graph.h"
#include "test.h"

/* "" where a pipeline with this processor could be made, started and stopped; else the error. */
static const char *said(const char *type, const char *settings)
{
    static char answer[512];
    char text[2048];
    struct kiln_config *config;
    struct kiln_graph *graph;
    struct kiln_err err = {0};
    int64_t live = kiln_mem_live();

    snprintf(text, sizeof(text),
             "processors: {%s: %s}\n"
             "receivers: {nop: }\nexporters: {nop: }\n"
             "service: {pipelines: {profiles: {receivers: [nop], processors: [%s], "
             "exporters: [nop]}}}\n",
             type, settings, type);
    answer[0] = '\0';
    CHECK_OK(kiln_config_parse(kiln_str_of(text), &config, &err));
    if (kiln_graph_new(kiln_config_root(config), &(struct kiln_graph_opts){0}, &graph, &err) == 0) {
        CHECK_OK(kiln_graph_start(graph, &err));
        kiln_graph_stop(graph, 0);
        kiln_graph_free(graph);
    } else {
        snprintf(answer, sizeof(answer), "%s", err.text);
    }
    kiln_config_free(config);
    CHECK_EQ(kiln_mem_live(), live);
    return answer;
}

#define SAYS(type, settings, what) CHECK(strstr(said(type, settings), what))
#define RUNS(type, settings)       CHECK_TEXT(said(type, settings), "")

TEST(processors, batch)
{
    RUNS("batch", "");
    RUNS("batch/2", "{timeout: 15s, send_batch_size: 500}");
    RUNS("batch", "{timeout: 0s, send_batch_max_size: 10000, metadata_keys: [x], "
                  "metadata_cardinality_limit: 10}");
    SAYS("batch", "{send_batch_size: 10, send_batch_max_size: 5}",
         "send_batch_max_size must be greater or equal to send_batch_size");
    SAYS("batch", "{send_batch_sise: 10}", "send_batch_size");
}

TEST(processors, memory_limiter)
{
    RUNS("memory_limiter", "{check_interval: 1s, limit_mib: 400, spike_limit_mib: 80}");
    RUNS("memory_limiter", "{check_interval: 1s, limit_percentage: 75}");
    SAYS("memory_limiter", "", "'check_interval' must be greater than zero");
    SAYS("memory_limiter", "{check_interval: 1s}", "'limit_mib' or 'limit_percentage'");
    SAYS("memory_limiter", "{check_interval: 1s, limit_mib: 4, spike_limit_mib: 8}",
         "'spike_limit_mib' must be smaller than 'limit_mib'");
}

TEST(processors, resource)
{
    RUNS("resource", "{attributes: [{key: a, value: b, action: upsert}]}");
    SAYS("resource", "", "attributes");
    SAYS("resource", "{attributes: [{key: a, action: ups}]}", "action is insert");
}

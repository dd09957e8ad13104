/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/mem.h"
#include "collector/graph.h"
#include "test.h"

#define PIPELINE                                                                                   \
    "receivers: {nop: }\n"                                                                         \
    "exporters: {nop: , nop/2: }\n"

/* What a configuration gives: "" where a graph could be made, started and stopped, or the error. */
static const char *said(const char *text)
{
    static char answer[512];
    struct kiln_config *config;
    struct kiln_graph *graph;
    struct kiln_err err = {0};
    uint64_t live = kiln_mem_live();

    answer[0] = '\0';
    CHECK_OK(kiln_config_parse(kiln_str_of(text), &config, &err));
    if (kiln_graph_new(kiln_config_root(config), &(struct kiln_graph_opts){0}, &graph, &err) == 0) {
        CHECK_OK(kiln_graph_start(graph, &err));
        kiln_graph_stop(graph, 0);
        kiln_graph_free(graph);
    } else {
        snprintf(answer, sizeof(answer), "%s%s%s", err.where, err.where[0] ? ": " : "", err.text);
    }
    kiln_config_free(config);
    CHECK_EQ(kiln_mem_live(), live);
    return answer;
}

TEST(graph, a_pipeline_needs_a_receiver_and_an_exporter)
{
    CHECK_TEXT(said(PIPELINE "service: {pipelines: {profiles: {receivers: [nop], "
                             "exporters: [nop, nop/2]}}}"),
               "");
    CHECK_TEXT(said(PIPELINE "service: {pipelines: {profiles: {receivers: [nop]}}}"),
               "line 3, column 33: service::pipelines::profiles: must have at least one exporter");
    CHECK_TEXT(said(PIPELINE "service: {pipelines: {profiles/x: {exporters: [nop]}}}"),
               "line 3, column 35: service::pipelines::profiles/x: must have at least one "
               "receiver");
    CHECK_TEXT(said(PIPELINE), "service::pipelines: service must have at least one pipeline");
}

TEST(graph, references_and_names_must_be_known)
{
    CHECK_TEXT(said(PIPELINE "service: {pipelines: {profiles: {receivers: [nop], "
                             "exporters: [nop/3]}}}"),
               "line 3, column 64: service::pipelines::profiles: references exporter \"nop/3\" "
               "which is not configured");
    CHECK_TEXT(said(PIPELINE "service: {pipelines: {profiles: {receivers: [nop, nop], "
                             "exporters: [nop]}}}"),
               "line 3, column 51: service::pipelines::profiles: references receiver \"nop\" "
               "multiple times");
    CHECK_TEXT(said(PIPELINE "service: {pipelines: {goroutines: {receivers: [nop], "
                             "exporters: [nop]}}}"),
               "line 3, column 35: service::pipelines::goroutines: unknown signal \"goroutines\" "
               "(profiles, traces, metrics or logs)");
    CHECK_TEXT(said(PIPELINE "service: {extensions: [health], pipelines: {profiles: {receivers: "
                             "[nop], exporters: [nop]}}}"),
               "line 3, column 24: service::extensions: references extension \"health\" which is "
               "not configured");
}

TEST(graph, keys_that_are_unknown_are_errors_with_their_place)
{
    CHECK_TEXT(said("reciever: {nop: }\n"), "line 1, column 1: unknown key reciever (did you mean "
                                            "receivers?)");
    CHECK_TEXT(said("receivers:\n  nop:\n    speed: 3\n"),
               "line 3, column 5: 'receivers' error reading configuration for \"nop\": unknown key "
               "speed");
    CHECK(strstr(said("receivers:\n  warp/9: {}\n"),
                 "'receivers' unknown type: \"warp\" for id: \"warp/9\" (valid values: ["));
}

TEST(graph, a_connector_joins_two_pipelines)
{
    CHECK_TEXT(said(PIPELINE "connectors: {forward: }\n"
                             "service: {pipelines: {\n"
                             " profiles/out: {receivers: [forward], exporters: [nop, nop/2]},\n"
                             " profiles/in: {receivers: [nop], exporters: [forward]}}}"),
               "");
    CHECK_TEXT(said(PIPELINE "connectors: {forward: }\n"
                             "service: {pipelines: {\n"
                             " profiles/in: {receivers: [nop], exporters: [forward]}}}"),
               "line 3, column 23: connectors::forward: must be used as both receiver and exporter "
               "but is not used as receiver");
    CHECK_TEXT(said(PIPELINE "connectors: {forward: }\n"
                             "service: {pipelines: {\n"
                             " profiles/out: {receivers: [forward], exporters: [nop]}}}"),
               "line 3, column 23: connectors::forward: must be used as both receiver and exporter "
               "but is not used as exporter");
    CHECK_TEXT(said(PIPELINE "connectors: {forward: }\n"
                             "service: {pipelines: {\n"
                             " profiles/a: {receivers: [nop, forward], exporters: [forward]}}}"),
               "line 5, column 14: service::pipelines::profiles/a: cycle detected: its connectors "
               "lead back to it");
}

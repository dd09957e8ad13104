/* SPDX-License-Identifier: Apache-2.0 */
/* Exporters that go on in the next graph; tests/cli/collector_reload_test.py has queues. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "collector/extensions/file_storage.h"
#include "collector/graph_int.h"
#include "folder.h"
#include "test.h"

static const char yaml[] =
    "extensions: {basicauth: {client_auth: {username: me, password: '%s'}}}\n"
    "receivers: {nop: }\n"
    "processors: {batch: {timeout: %s}}\n"
    "exporters:\n"
    "  file: {path: %s/%s}\n"
    "  otlp: {endpoint: 'http://127.0.0.1:1', auth: {authenticator: basicauth}}\n"
    "service: {extensions: [basicauth], pipelines: {profiles: {\n"
    "  receivers: [nop], processors: [batch], exporters: [file, otlp]}}}\n";

struct stage {
    struct kiln_config *config;
    struct kiln_graph *graph;
};

static int n_released;

static void release(void *context)
{
    kiln_config_free(context);
    n_released++;
}

static struct stage follow(struct stage *before, const char *folder, const char *password,
                           const char *timeout, const char *file)
{
    struct kiln_graph_opts opts = {.before = before ? before->graph : NULL, .released = release};
    struct kiln_err err = {0};
    struct stage next = {0};
    char text[1024];

    snprintf(text, sizeof(text), yaml, password, timeout, folder, file);
    CHECK_OK(kiln_config_parse(kiln_str_of(text), &next.config, NULL));
    opts.context = next.config;
    if (kiln_graph_new(kiln_config_root(next.config), &opts, &next.graph, &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
    kiln_graph_succeed(next.graph);
    if (before) {
        kiln_graph_stop(before->graph, 0);
        kiln_graph_free(before->graph);
    }
    CHECK_OK(kiln_graph_start(next.graph, &err));
    return next;
}

static struct kiln_component *exporter(const struct stage *stage, const char *id)
{
    for (uint32_t i = 0; i < stage->graph->n_pieces[KILN_EXPORTER]; i++)
        if (strcmp(stage->graph->pieces[KILN_EXPORTER][i].id, id) == 0)
            return stage->graph->pieces[KILN_EXPORTER][i].made[KILN_SIGNAL_PROFILES];
    return NULL;
}

/* What they may take of a disk is one account, whoever came first. */
TEST(graph, a_folder_of_queues_has_one_account)
{
    static const char text[] = "extensions: {file_storage: {directory: /tmp, max_size: %s}}\n"
                               "receivers: {nop: }\nexporters: {nop: }\n"
                               "service: {extensions: [file_storage],\n"
                               "  pipelines: {profiles: {receivers: [nop], exporters: [nop]}}}\n";
    static const char *const sizes[] = {"1MiB", "1MiB", "2MiB"};
    struct kiln_storage_room *rooms[KILN_ARRAY_LEN(sizes)];
    struct kiln_graph *graph = NULL;

    for (size_t i = 0; i < KILN_ARRAY_LEN(sizes); i++) {
        struct kiln_graph_opts opts = {.before = graph, .released = release};
        struct kiln_graph *next;
        struct kiln_config *config;
        char written[512];

        snprintf(written, sizeof(written), text, sizes[i]);
        CHECK_OK(kiln_config_parse(kiln_str_of(written), &config, NULL));
        opts.context = config;
        CHECK_OK(kiln_graph_new(kiln_config_root(config), &opts, &next, NULL));
        kiln_graph_succeed(next);
        kiln_graph_free(graph);
        graph = next;
        rooms[i] = ((struct kiln_file_storage *)kiln_graph_extension(
                        graph, "file_storage", &kiln_file_storage_extension_type))
                       ->shared;
    }
    CHECK(rooms[0] == rooms[1]);
    CHECK_EQ(rooms[2]->room.max, 2 << 20);
    kiln_graph_free(graph);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(graph, exporters_that_did_not_change_go_on)
{
    struct stage first, second, third, fourth;
    struct kiln_component *file, *otlp;
    char folder[FOLDER_NAME];

    n_released = 0;
    folder_make(folder);
    first = follow(NULL, folder, "a", "1s", "x.json");
    file = exporter(&first, "file");
    otlp = exporter(&first, "otlp");
    second = follow(&first, folder, "a", "2s", "x.json"); /* another processor */
    CHECK(exporter(&second, "file") == file && exporter(&second, "otlp") == otlp);
    third =
        follow(&second, folder, "b", "2s", "x.json"); /* another password of its authenticator */
    CHECK(exporter(&third, "file") == file && exporter(&third, "otlp") != otlp);
    CHECK_EQ(n_released, 1); /* the second; the file is of the first */
    otlp = exporter(&third, "otlp");
    fourth = follow(&third, folder, "b", "2s", "y.json");
    CHECK(exporter(&fourth, "file") != file && exporter(&fourth, "otlp") == otlp);
    CHECK_EQ(n_released, 2);
    kiln_graph_stop(fourth.graph, 0);
    kiln_graph_free(fourth.graph);
    CHECK_EQ(n_released, 4);
    folder_remove(folder);
    CHECK_EQ(kiln_mem_live(), 0);
}

/* What is in a file once a graph has started that writes to it. */
static void check_kept(struct stage *before, const char *folder, const char *file, const char *kept,
                       struct stage *ret_stage)
{
    char path[FOLDER_NAME + 16], *text;
    size_t n;

    snprintf(path, sizeof(path), "%s/y.json", folder);
    CHECK_OK(kiln_file_write(path, KILN_STR("written before\n"), NULL));
    *ret_stage = follow(before, folder, "a", "1s", file);
    text = kiln_test_read(path, &n);
    CHECK_STR(((struct kiln_str){text, n}), kept);
    free(text);
}

/* A file is begun anew when the process is, not when it reads its configuration again; files that
 * are rotated, with the default settings too, never are. */
TEST(graph, a_reload_leaves_what_was_written)
{
    struct stage first, second, third;
    char folder[FOLDER_NAME];

    folder_make(folder);
    check_kept(NULL, folder, "y.json", "", &first);
    check_kept(&first, folder, "./y.json", "written before\n", &second);
    kiln_graph_stop(second.graph, 0);
    kiln_graph_free(second.graph);
    check_kept(NULL, folder, "y.json, rotation: ", "written before\n", &third);
    kiln_graph_stop(third.graph, 0);
    kiln_graph_free(third.graph);
    folder_remove(folder);
}

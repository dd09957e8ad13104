/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "drawn.h"
#include "folder.h"
#include "pipeline/exporters/file.h"
#include "test.h"

static int last_code;

static void ended(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    (void)delivery;
    last_code = outcome->code;
}

static struct kiln_outcome last_outcome;

static void told(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    (void)delivery;
    last_outcome = *outcome;
}

static void send(struct kiln_consumer *exporter, const char *stacks)
{
    struct kiln_delivery delivery = {.batch = kiln_test_stacks(stacks), .done = ended};

    last_code = 1;
    exporter->consume(exporter, &delivery);
    CHECK_EQ(last_code, 0);
}

/* How many samples a file of any of our formats has; with zstd, of its first record. */
static uint32_t samples_in(const char *path, bool zstd)
{
    struct kiln_batch *batch;
    size_t n;
    char *bytes = kiln_test_read(path, &n);
    struct kiln_str content = {bytes, n};
    uint32_t samples;

    if (zstd) {
        content.len = (size_t)(unsigned char)bytes[2] << 8 | (unsigned char)bytes[3];
        content.ptr += 4;
    }
    CHECK_OK(kiln_decode(content, NULL, &batch, NULL, NULL));
    samples = batch->n_samples;
    kiln_batch_unref(batch);
    free(bytes);
    return samples;
}

static double counted(struct kiln_metrics *metrics, const char *name)
{
    return kiln_metric_value(
        kiln_metric_get(metrics, KILN_COUNTER, name, "", KILN_LABELS("exporter", "file")));
}

TEST(file_exporter, writes_what_the_collector_reads)
{
    char folder[FOLDER_NAME], path[128];

    folder_make(folder);
    for (int i = 0; i < 4; i++) {
        struct kiln_file_export_opts opts = {.name = "file",
                                             .path = path,
                                             .format = i & 1 ? KILN_FILE_PROTO : KILN_FILE_JSON,
                                             .zstd = i & 2,
                                             .create_directory = true};
        struct kiln_consumer *exporter;
        struct kiln_metrics *metrics;

        snprintf(path, sizeof(path), "%s/new%d/profiles.out", folder, i);
        CHECK_OK(kiln_metrics_new(&metrics));
        opts.metrics = metrics;
        CHECK_OK(kiln_file_exporter_new(&opts, &exporter, NULL));
        CHECK_OK(kiln_file_exporter_start(exporter, NULL));
        send(exporter, "main;read 1\nmain;write 2\n");
        send(exporter, "main 3\n");
        kiln_file_exporter_free(exporter);
        if (i == 1)
            CHECK_EQ(samples_in(path, false), 3);
        if (i == 0) { /* JSON lines: one object each */
            size_t n;
            char *text = kiln_test_read(path, &n);
            char *line = strchr(text, '\n');

            CHECK(text[0] == '{' && line && line[1] == '{' && text[n - 1] == '\n');
            free(text);
        }
        if (i > 1)
            CHECK_EQ(samples_in(path, true), 2);
        CHECK_EQ(counted(metrics, "otelcol_exporter_sent_profile_samples"), 3);
        kiln_metrics_free(metrics);
    }
    folder_remove(folder);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(file_exporter, begins_a_new_file_before_one_grows_too_large_and_keeps_so_many)
{
    static const char *const others[] = {"p-production.otlp", "p-2026-01-01.otlp",
                                         "p-2026-01-01T00-00-00.000-mine.otlp"};
    char folder[FOLDER_NAME], path[128], first[256];
    struct kiln_file_export_opts opts = {.name = "file",
                                         .path = path,
                                         .format = KILN_FILE_PROTO,
                                         .rotate_bytes = 200,
                                         .backups_max = 2};
    struct kiln_consumer *exporter;

    folder_make(folder);
    for (size_t i = 0; i < KILN_ARRAY_LEN(others); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, others[i]);
        CHECK_OK(kiln_file_write(path, KILN_STR("x"), NULL));
    }
    snprintf(path, sizeof(path), "%s/p.otlp", folder);
    CHECK_OK(kiln_file_exporter_new(&opts, &exporter, NULL));
    CHECK_OK(kiln_file_exporter_start(exporter, NULL));
    for (int i = 0; i < 12; i++) {
        send(exporter, "main;a_function_with_a_long_name_that_fills_the_file 1\n");
        usleep(2000); /* names are milliseconds apart */
    }
    kiln_file_exporter_free(exporter);
    /* Two, and the newest; and those that only look like them. */
    CHECK_EQ(folder_list(folder, ".otlp", first, sizeof(first)), 3 + KILN_ARRAY_LEN(others));
    CHECK(samples_in(path, false) >= 1);
    folder_remove(folder);
    CHECK_EQ(kiln_mem_live(), 0);
}

/* Also where the clock has not gone on by a millisecond. */
TEST(file_exporter, no_backup_takes_the_place_of_another)
{
    enum { RECORDS = 60 };
    char folder[FOLDER_NAME], path[128], first[256];
    struct kiln_file_export_opts opts = {
        .name = "file", .path = path, .format = KILN_FILE_PROTO, .rotate_bytes = 1};
    struct kiln_consumer *exporter;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/p.otlp", folder);
    CHECK_OK(kiln_file_exporter_new(&opts, &exporter, NULL));
    CHECK_OK(kiln_file_exporter_start(exporter, NULL));
    for (int i = 0; i < RECORDS; i++)
        send(exporter, "main 1\n");
    kiln_file_exporter_free(exporter);
    CHECK_EQ(folder_list(folder, ".otlp", first, sizeof(first)), RECORDS);
    folder_remove(folder);
}

/* One file for each scope, and what `kiln push` wants to know of it beside. */
TEST(file_exporter, writes_pprof_files_with_their_metadata)
{
    char folder[FOLDER_NAME], path[128], first[256];
    struct kiln_batch *batch = kiln_test_batch(
        (struct kiln_drawn[]){
            {.stacks = "main;read 1\nmain;write 2\n",
             .type = "cpu",
             .unit = "nanoseconds",
             .time_ns = UINT64_C(1700000000000000000),
             .duration_ns = UINT64_C(10000000000),
             .resource = "service.name=shop,git.commit=0af3"},
            {.stacks = "idle 5\n",
             .type = "cpu",
             .unit = "nanoseconds",
             .resource = "service.name=b"},
        },
        2);
    char *text;
    size_t n;

    folder_make(folder);
    for (int zstd = 0; zstd < 2; zstd++) {
        struct kiln_file_export_opts opts = {.name = "file",
                                             .path = path,
                                             .format = KILN_FILE_PPROF,
                                             .zstd = zstd,
                                             .create_directory = true};
        struct kiln_delivery delivery = {.batch = kiln_batch_ref(batch), .done = ended};
        struct kiln_consumer *exporter;

        snprintf(path, sizeof(path), "%s/new/%d", folder, zstd);
        CHECK_OK(kiln_file_exporter_new(&opts, &exporter, NULL));
        CHECK_OK(kiln_file_exporter_start(exporter, NULL));
        exporter->consume(exporter, &delivery);
        CHECK_EQ(last_code, 0);
        kiln_file_exporter_free(exporter);
        CHECK_EQ(folder_list(path, ".json", first, sizeof(first)), 2);
        CHECK_EQ(folder_list(path, zstd ? ".pb.zst" : ".pb.gz", first, sizeof(first)), 2);
        CHECK_EQ(samples_in(first, false), 1); /* kiln-b-... */
    }
    folder_list(path, "-1.json", first, sizeof(first));
    CHECK(strstr(first, "/kiln-shop-process_cpu-20231114T221330.000Z-"));
    text = kiln_test_read(first, &n);
    CHECK(strstr(text, "\"service\": \"shop\""));
    CHECK(strstr(text, "\"commit\": \"0af3\""));
    CHECK(strstr(text, "\"window_start\": \"2023-11-14T22:13:20.000Z\""));
    CHECK(strstr(text, "\"window_end\": \"2023-11-14T22:13:30.000Z\""));
    free(text);
    kiln_batch_unref(batch);
    folder_remove(folder);
    CHECK_EQ(kiln_mem_live(), 0);
}

/* The second one's name does not fit into its metadata. */
TEST(file_exporter, leaves_no_pprof_file_of_what_has_to_be_tried_again)
{
    enum { NAME = 2 << 20 };
    char *resource = malloc(NAME + 1), folder[FOLDER_NAME], first[256];
    struct kiln_file_export_opts opts = {.name = "file", .path = folder, .format = KILN_FILE_PPROF};
    struct kiln_delivery delivery = {.done = ended};
    struct kiln_consumer *exporter;

    memset(resource, 'x', NAME);
    memcpy(resource, "service.name=", 13);
    resource[NAME] = '\0';
    delivery.batch =
        kiln_test_batch((struct kiln_drawn[]){{.stacks = "a 1\n", .resource = "service.name=a"},
                                              {.stacks = "b 1\n", .resource = resource}},
                        2);
    folder_make(folder);
    CHECK_OK(kiln_file_exporter_new(&opts, &exporter, NULL));
    CHECK_OK(kiln_file_exporter_start(exporter, NULL));
    exporter->consume(exporter, &delivery);
    CHECK(last_code < 0);
    CHECK_EQ(folder_list(folder, ".json", first, sizeof(first)), 0);
    CHECK_EQ(folder_list(folder, ".gz", first, sizeof(first)), 0);
    kiln_file_exporter_free(exporter);
    free(resource);
    folder_remove(folder);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(file_exporter, keeps_so_many_pprof_files)
{
    char folder[FOLDER_NAME], first[256];
    struct kiln_file_export_opts opts = {
        .name = "file", .path = folder, .format = KILN_FILE_PPROF, .backups_max = 3};
    struct kiln_consumer *exporter;

    folder_make(folder);
    CHECK_OK(kiln_file_exporter_new(&opts, &exporter, NULL));
    CHECK_OK(kiln_file_exporter_start(exporter, NULL));
    for (int i = 0; i < 6; i++)
        send(exporter, "main 1\n");
    kiln_file_exporter_free(exporter);
    CHECK_EQ(folder_list(folder, ".pb.gz", first, sizeof(first)), 3);
    CHECK_EQ(folder_list(folder, ".json", first, sizeof(first)), 3);
    folder_remove(folder);
    CHECK_EQ(kiln_mem_live(), 0);
}

/* A delivery with a resource for each of these values of "team"; NULL: one without. */
static struct kiln_outcome send_teams(struct kiln_consumer *exporter, const char *const *teams,
                                      uint32_t n)
{
    struct kiln_delivery delivery = {.done = told};
    struct kiln_builder *b;

    CHECK_OK(kiln_builder_new(NULL, &b));
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_resource resource = {0};
        uint32_t attr, profile;

        if (teams[i]) {
            attr = kiln_builder_text_attr(b, KILN_STR("team"), kiln_str_of(teams[i]));
            resource.attrs = kiln_builder_set(b, &attr, 1, NULL);
        }
        kiln_builder_add_resource(b, &resource);
        kiln_builder_add_scope(b, &(struct kiln_scope){0});
        profile = kiln_builder_add_profile(b, &(struct kiln_profile){.time_ns = 1});
        kiln_builder_add_value(b, profile, 0, 0, 1);
    }
    CHECK_OK(kiln_builder_finish(b, &delivery.batch, NULL));
    exporter->consume(exporter, &delivery);
    return last_outcome;
}

TEST(file_exporter, writes_a_file_for_each_group)
{
    static const char *const teams[] = {"red",     "blue",   NULL, "red",
                                        "big/one", "../out", "",   "green"};
    static const char *const more[] = {"red", "a/./b"};
    char folder[FOLDER_NAME], pattern[128], path[160];
    struct kiln_file_export_opts opts = {.name = "file",
                                         .path = pattern,
                                         .group_by = "team",
                                         .open_max = 2,
                                         .format = KILN_FILE_PROTO};
    struct kiln_consumer *exporter;
    struct kiln_outcome outcome;

    folder_make(folder);
    snprintf(pattern, sizeof(pattern), "%s/in/p-*.otlp", folder);
    CHECK_OK(kiln_metrics_new(&opts.metrics));
    CHECK_OK(kiln_file_exporter_new(&opts, &exporter, NULL));
    CHECK_OK(kiln_file_exporter_start(exporter, NULL));
    outcome = send_teams(exporter, teams, KILN_ARRAY_LEN(teams));
    CHECK_EQ(outcome.code, 0);
    CHECK_EQ(outcome.rejected, 3);
    CHECK(strstr(outcome.err.text, "team"));
    outcome = send_teams(exporter, more, KILN_ARRAY_LEN(more));
    CHECK_EQ(outcome.rejected, 1);
    kiln_file_exporter_free(exporter);
    CHECK_EQ(counted(opts.metrics, "otelcol_exporter_sent_profile_samples"), 6);
    CHECK_EQ(counted(opts.metrics, "otelcol_exporter_send_failed_profile_samples"), 4);
    kiln_metrics_free(opts.metrics);
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"red", "blue", "big/one", "green"};

        snprintf(path, sizeof(path), "%s/in/p-%s.otlp", folder, names[i]);
        CHECK_EQ(samples_in(path, false), i == 0 ? 3 : 1); /* closed in between, and goes on */
    }
    snprintf(pattern, sizeof(pattern), "%s/in", folder);
    CHECK_EQ(folder_list(pattern, ".otlp", path, sizeof(path)), 3);
    folder_remove(folder);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(file_exporter, says_where_it_cannot_write)
{
    struct kiln_file_export_opts opts = {.name = "file", .path = "/nowhere/at/all.json"};
    struct kiln_consumer *exporter;
    struct kiln_err err = {0};

    CHECK_OK(kiln_file_exporter_new(&opts, &exporter, NULL));
    CHECK(kiln_file_exporter_start(exporter, &err) < 0);
    CHECK_TEXT(err.where, "/nowhere/at/all.json");
    kiln_file_exporter_free(exporter);
}

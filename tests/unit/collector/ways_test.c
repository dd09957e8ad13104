/* SPDX-License-Identifier: Apache-2.0 */
/* Receivers and extensions that are no OTLP over the network, and the store. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/otlp_json.h"
#include "drawn.h"
#include "folder.h"
#include "net.h"
#include "test.h"
#include "ways_kit.h"

static void get(struct ways *kit, const char *what, const char *path)
{
    ways_call(kit, what, &(struct kiln_call){.method = "GET", .path = path});
}

TEST(pyroscope_receiver, takes_what_agents_send)
{
    struct ways kit;

    ways_start(&kit, KILN_RECEIVER, "pyroscope", "{endpoint: '127.0.0.1:0'}");
    ways_call(&kit, "pyroscope",
              &(struct kiln_call){.path = "/ingest?name=app&format=folded",
                                  .content_type = "text/plain",
                                  .body = KILN_STR("main;read 3\nmain;idle 1\n")});
    CHECK_EQ(kit.answer.status, 200);
    CHECK_EQ(kit.n, 1);
    CHECK_EQ(kit.got[0].batch->n_samples, 2);
    ways_stop(&kit);
}

/* Statement 80: it follows the state of the pipelines. */
TEST(health_check, follows_the_graph)
{
    struct ways kit;

    ways_start_graph(&kit, "extensions: {health_check: {endpoint: '127.0.0.1:0', path: /up}}\n"
                           "receivers: {nop: }\nexporters: {nop: }\n"
                           "service: {extensions: [health_check],\n"
                           "  pipelines: {profiles: {receivers: [nop], exporters: [nop]}}}\n");
    get(&kit, "health_check", "/up");
    CHECK_EQ(kit.answer.status, 200);
    CHECK_STR(kiln_buf_str(&kit.answer.body), "{\"status\":\"Server available\"}\n");
    get(&kit, "health_check", "/");
    CHECK_EQ(kit.answer.status, 404);
    ways_stop(&kit);
}

/* The status of GET / with this Host. */
static int asked_as(struct ways *kit, const char *what, const char *host)
{
    char text[128];

    snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nhost: %s\r\nconnection: close\r\n\r\n", host);
    return net_status(net_talk(ways_port(kit, what), text));
}

TEST(health_check, on_loopback_has_no_foreign_name)
{
    struct ways kit;

    ways_start_graph(&kit, "extensions: {health_check/home: {endpoint: '127.0.0.1:0'},\n"
                           "  health_check/open: {endpoint: '0.0.0.0:0'}}\n"
                           "receivers: {nop: }\nexporters: {nop: }\n"
                           "service: {extensions: [health_check/home, health_check/open],\n"
                           "  pipelines: {profiles: {receivers: [nop], exporters: [nop]}}}\n");
    CHECK_EQ(asked_as(&kit, "health_check/home", "localhost:13133"), 200);
    CHECK_EQ(asked_as(&kit, "health_check/home", "127.0.0.1"), 200);
    CHECK_EQ(asked_as(&kit, "health_check/home", "evil.example"), 421);
    CHECK_EQ(asked_as(&kit, "health_check/open", "collector:13133"), 200);
    ways_stop(&kit);
}

TEST(health_check, asks_who_it_is)
{
    struct kiln_header token = {KILN_STR("authorization"), KILN_STR("Bearer t")};
    struct ways kit;

    ways_start_graph(&kit, "extensions:\n  bearertokenauth: {token: t}\n"
                           "  health_check: {endpoint: '127.0.0.1:0', auth: {authenticator: "
                           "bearertokenauth}}\n"
                           "receivers: {nop: }\nexporters: {nop: }\n"
                           "service: {extensions: [bearertokenauth, health_check],\n"
                           "  pipelines: {profiles: {receivers: [nop], exporters: [nop]}}}\n");
    get(&kit, "health_check", "/");
    CHECK_EQ(kit.answer.status, 401);
    ways_call(&kit, "health_check",
              &(struct kiln_call){.method = "GET", .path = "/", .headers = &token, .n_headers = 1});
    CHECK_EQ(kit.answer.status, 200);
    ways_stop(&kit);
}

TEST(zpages, show_what_the_graph_is_made_of)
{
    struct ways kit;

    ways_start_graph(
        &kit, "extensions: {zpages: {endpoint: '127.0.0.1:0', expvar: {enabled: true}}}\n"
              "receivers: {nop: }\nexporters: {nop: , nop/2: }\nprocessors: {batch: }\n"
              "service: {extensions: [zpages], pipelines: {\n"
              "  profiles: {receivers: [nop], processors: [batch], exporters: [nop, nop/2]},\n"
              "  profiles/b: {receivers: [nop], exporters: [nop]}}}\n");
    get(&kit, "zpages", "/debug/pipelinez");
    CHECK_STR(kiln_buf_str(&kit.answer.body), "profiles\n"
                                              "  receivers  nop\n"
                                              "  processors batch\n"
                                              "  exporters  nop, nop/2\n"
                                              "profiles/b\n"
                                              "  receivers  nop\n"
                                              "  processors (none)\n"
                                              "  exporters  nop\n");
    get(&kit, "zpages", "/debug/extensionz");
    CHECK_STR(kiln_buf_str(&kit.answer.body), "zpages\n");
    get(&kit, "zpages", "/debug/servicez");
    CHECK(kiln_str_contains(kiln_buf_str(&kit.answer.body), KILN_STR("running for ")));
    get(&kit, "zpages", "/debug/tracez");
    CHECK_EQ(kit.answer.status, 200);
    get(&kit, "zpages", "/debug/other");
    CHECK_EQ(kit.answer.status, 404);
    ways_stop(&kit);
}

TEST(health_check, is_unhealthy_while_components_do_not_run)
{
    struct ways kit;

    ways_start(&kit, KILN_EXTENSION, "health_check",
               "{endpoint: '127.0.0.1:0', response_body: {healthy: fine, unhealthy: ill}}");
    get(&kit, "health_check", "/");
    CHECK_EQ(kit.answer.status, 503);
    CHECK_STR(kiln_buf_str(&kit.answer.body), "ill");
    ways_stop(&kit);
}

static void append_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "a");

    CHECK(f);
    fputs(text, f);
    fclose(f);
}

static void append_line(const char *path, const char *stacks, const char *end)
{
    struct kiln_batch *batch = kiln_test_batch(
        &(struct kiln_drawn){.stacks = stacks, .type = "cpu", .unit = "nanoseconds"}, 1);
    struct kiln_buf line;

    kiln_buf_init(&line, 1u << 20);
    CHECK_OK(kiln_otlp_json_encode(batch, &line, NULL));
    line.len = kiln_str_trim(kiln_buf_str(&line)).len;
    kiln_buf_puts(&line, end);
    kiln_buf_putc(&line, 0);
    append_text(path, line.ptr);
    kiln_buf_done(&line);
    kiln_batch_unref(batch);
}

TEST(otlp_json_file, reads_lines_as_they_come)
{
    char folder[FOLDER_NAME], path[300], yaml[400];
    struct ways kit;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/a.json", folder);
    snprintf(yaml, sizeof(yaml),
             "{include: ['%s/*.json'], start_at: beginning, poll_interval: 10ms, "
             "force_flush_period: 1h}",
             folder);
    append_line(path, "main;one 1\n", "\nthis is no line of JSON\n\n");
    ways_start(&kit, KILN_RECEIVER, "otlp_json_file", yaml);
    ways_wait(&kit, 1);
    append_line(path, "main;two 2\nmain;three 3\n", "");
    usleep(50000); /* what has no end yet is not read */
    CHECK_EQ(kit.n, 1);
    append_text(path, "\n");
    ways_wait(&kit, 2);
    CHECK_EQ(kit.got[1].batch->n_samples, 2);
    ways_stop(&kit);

    folder_remove(folder);
}

TEST(otlp_json_file, what_should_be_tried_again_is)
{
    char folder[FOLDER_NAME], path[300], yaml[400];
    struct ways kit;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/a.json", folder);
    snprintf(yaml, sizeof(yaml), "{include: '%s/a.json', start_at: beginning, poll_interval: 5ms}",
             folder);
    ways_start(&kit, KILN_RECEIVER, "otlp_json_file", yaml);
    kit.outcome.code = -EAGAIN;
    append_line(path, "main;one 1\n", "\n");
    ways_wait(&kit, 3);
    ways_stop(&kit);

    folder_remove(folder);
}

/* As much as is read at once, behind a line that is to be tried again. */
TEST(otlp_json_file, what_is_behind_a_line_that_is_tried_again_is_not_skipped)
{
    enum { BLANK = 1 << 20, BLANKS = 66 };
    char folder[FOLDER_NAME], path[300], yaml[400], *blank = malloc(BLANK + 1);
    struct ways kit;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/a.later", folder);
    append_line(path, "main;one 1\n", "\n");
    memset(blank, ' ', BLANK);
    blank[BLANK - 1] = '\n';
    blank[BLANK] = '\0';
    for (int i = 0; i < BLANKS; i++)
        append_text(path, blank);
    free(blank);
    append_line(path, "main;two 2\nmain;three 3\n", "\n");
    snprintf(yaml, sizeof(yaml),
             "{include: '%s/a.json', start_at: beginning, poll_interval: 100ms}", folder);
    ways_start(&kit, KILN_RECEIVER, "otlp_json_file", yaml);
    kit.outcome.code = -EAGAIN;
    snprintf(yaml, sizeof(yaml), "%s/a.json", folder);
    CHECK_OK(rename(path, yaml));
    ways_wait(&kit, 2);
    CHECK_EQ(kit.got[1].batch->n_samples, 1);
    ways_stop(&kit);
    folder_remove(folder);
}

/* The exporter's receiver is away, and its queue full: stopping does not wait for that to end. */
TEST(otlp_json_file, is_stopped_while_its_delivery_waits)
{
    char folder[FOLDER_NAME], path[300], yaml[1024];
    struct kiln_metric *waiting;
    struct ways kit;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/a.json", folder);
    for (int i = 0; i < 4; i++)
        append_line(path, "main;one 1\n", "\n");
    snprintf(yaml, sizeof(yaml),
             "receivers: {otlp_json_file: {include: '%s', start_at: beginning}}\n"
             "exporters: {otlp: {endpoint: '127.0.0.1:1', tls: {insecure: true},\n"
             "    sending_queue: {queue_size: 1, num_consumers: 1, block_on_overflow: true}}}\n"
             "service: {pipelines: {profiles: {receivers: [otlp_json_file], exporters: [otlp]}}}\n",
             path);
    ways_start_graph(&kit, yaml);
    waiting = kiln_metric_get(kit.metrics, KILN_GAUGE, "kiln_exporter_waiting_deliveries", "",
                              KILN_LABELS("data_type", "profiles", "exporter", "otlp"));
    while (kiln_metric_value(waiting) < 1)
        usleep(1000);
    kiln_graph_stop(kit.graph, kiln_clock_mono_ns() + 100 * KILN_NS_PER_MS);
    ways_stop(&kit);
    folder_remove(folder);
}

/* A receiver of a.json in a folder, with these settings besides. */
static void start_reading(struct ways *kit, const char *folder, const char *settings)
{
    char yaml[600];

    snprintf(yaml, sizeof(yaml), "{include: '%s/a.json', poll_interval: 5ms, %s}", folder,
             settings);
    ways_start(kit, KILN_RECEIVER, "otlp_json_file", yaml);
}

TEST(otlp_json_file, the_last_line_needs_no_end_once_nobody_writes)
{
    char folder[FOLDER_NAME], path[300];
    struct ways kit;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/a.json", folder);
    append_line(path, "main;one 1\n", "\n");
    append_line(path, "main;two 2\n", "");
    start_reading(&kit, folder, "start_at: beginning, force_flush_period: 1ms");
    ways_wait(&kit, 2);
    append_line(path, "main;three 3\n", "\n{\"resourceProfiles\":[{},");
    ways_wait(&kit, 3); /* half a message is none */
    append_text(path, "{}]}\n");
    append_line(path, "main;four 4\n", "\n");
    ways_wait(&kit, 4);
    CHECK_EQ(kit.got[3].batch->samples[0].n, 1);
    ways_stop(&kit);
    folder_remove(folder);
}

TEST(otlp_json_file, files_may_be_read_again_and_again_or_deleted)
{
    char folder[FOLDER_NAME], path[300];
    struct ways kit;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/a.json", folder);
    append_line(path, "main;one 1\n", "\n");
    start_reading(&kit, folder, "replay_file: true");
    ways_wait(&kit, 3);
    ways_stop(&kit);
    CHECK_OK(access(path, F_OK));
    start_reading(&kit, folder, "start_at: beginning, delete_after_read: true");
    ways_wait(&kit, 1);
    while (access(path, F_OK) == 0)
        usleep(1000);
    append_line(path, "main;two 2\n", "\n");
    ways_wait(&kit, 2);
    ways_stop(&kit);
    folder_remove(folder);
}

TEST(otlp_json_file, lines_and_files_may_be_left_out)
{
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char folder[FOLDER_NAME], path[300];
    struct ways kit;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/a.json", folder);
    append_line(path, "main;one 1\n", "\n");
    CHECK_OK(utimensat(AT_FDCWD, path, old, 0));
    start_reading(&kit, folder, "start_at: beginning, exclude_older_than: 24h");
    usleep(50000);
    CHECK_EQ(kit.n, 0);
    append_line(path, "main;two 2\n", "\n"); /* it is not old any more */
    ways_wait(&kit, 2);
    ways_stop(&kit);
    folder_remove(folder);
}

static struct kiln_str first_function(const struct ways *kit, uint32_t i)
{
    const struct kiln_batch *batch = kit->got[i].batch;

    return kiln_batch_str(batch, batch->dict.functions[1].name);
}

TEST(otlp_json_file, a_line_that_is_too_long_is_left_out)
{
    char folder[FOLDER_NAME], path[300], name[3000];
    struct ways kit;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/a.json", folder);
    memset(name, 'x', sizeof(name));
    memcpy(name + sizeof(name) - 4, " 1\n", 4);
    append_line(path, name, "\n");
    append_line(path, "short 1\n", "\n");
    start_reading(&kit, folder, "start_at: beginning, max_log_size: 2000");
    ways_wait(&kit, 1);
    CHECK_STR(first_function(&kit, 0), "short");
    ways_stop(&kit);
    folder_remove(folder);
}

/* Reads a file, cuts it, and writes another line to it, which is shorter. */
static void cut_and_write(struct ways *kit, char folder[FOLDER_NAME], const char *settings)
{
    char path[300];

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/a.json", folder);
    append_line(path, "main;longer_than_what_comes_after_it 1\n", "\n");
    start_reading(kit, folder, settings);
    ways_wait(kit, 1);
    CHECK_OK(truncate(path, 0));
    append_line(path, "two 2\n", "\n");
}

TEST(otlp_json_file, a_file_that_was_cut_is_read_from_its_start_unless_told_otherwise)
{
    char folder[FOLDER_NAME];
    struct ways kit;

    cut_and_write(&kit, folder, "start_at: beginning");
    ways_wait(&kit, 2);
    CHECK_STR(first_function(&kit, 1), "two");
    ways_stop(&kit);
    folder_remove(folder);
    cut_and_write(&kit, folder, "start_at: beginning, on_truncate: ignore");
    usleep(50000);
    CHECK_EQ(kit.n, 1);
    ways_stop(&kit);
    folder_remove(folder);
}

static void start_stored_at(struct ways *kit, const char *folder, const char *start_at)
{
    char yaml[1200];

    snprintf(yaml, sizeof(yaml),
             "extensions: {file_storage: {directory: '%s'}}\n"
             "receivers: {otlp_json_file/a: {include: '%s/*.json', start_at: %s, "
             "poll_interval: 5ms, storage: file_storage}}\n"
             "exporters: {file: {path: '%s/out', format: proto, append: true}}\n"
             "service: {extensions: [file_storage], pipelines: {profiles: "
             "{receivers: [otlp_json_file/a], exporters: [file]}}}\n",
             folder, folder, start_at, folder);
    ways_start_graph(kit, yaml);
}

static void start_stored(struct ways *kit, const char *folder)
{
    start_stored_at(kit, folder, "beginning");
}

static off_t size_of(const char *folder, const char *name)
{
    char path[300];
    struct stat st = {0};

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return stat(path, &st) == 0 ? st.st_size : 0;
}

static void wait_larger(const char *folder, off_t than)
{
    for (int i = 0; i < 60000 && size_of(folder, "out") <= than; i++)
        usleep(1000);
    CHECK(size_of(folder, "out") > than);
}

TEST(otlp_json_file, what_was_read_may_be_known_beyond_its_end)
{
    char folder[FOLDER_NAME], path[300];
    struct ways kit;
    off_t one, two;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/a.json", folder);
    append_line(path, "main;one 1\n", "\n");
    start_stored(&kit, folder);
    wait_larger(folder, 0);
    ways_stop(&kit);
    one = size_of(folder, "out");
    CHECK(size_of(folder, "receiver_otlp_json_file~002Fa_offsets") > 0);
    append_line(path, "main;two 2\n", "\n");
    start_stored(&kit, folder);
    wait_larger(folder, one);
    ways_stop(&kit);
    two = size_of(folder, "out");
    CHECK_EQ(two, 2 * one); /* the first line only once */
    /* Another file in its place, longer than what was read of it. */
    CHECK_OK(truncate(path, 0));
    for (int i = 0; i < 3; i++)
        append_line(path, i ? "main;one 1\n" : "xain;one 1\n", "\n");
    start_stored(&kit, folder);
    wait_larger(folder, two + 2 * one);
    ways_stop(&kit);
    CHECK_EQ(size_of(folder, "out"), two + 3 * one);
    folder_remove(folder);
}

static void wait_stored(const char *folder)
{
    for (int i = 0; i < 60000 && !size_of(folder, "receiver_otlp_json_file~002Fa_offsets"); i++)
        usleep(1000);
}

TEST(otlp_json_file, a_file_that_came_while_nobody_read_is_read_from_its_start)
{
    char folder[FOLDER_NAME], path[300];
    struct ways kit;
    off_t one;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/a.json", folder);
    append_line(path, "main;one 1\n", "\n");
    start_stored_at(&kit, folder, "end"); /* as of the first start */
    wait_stored(folder);
    append_line(path, "main;two 2\n", "\n");
    wait_larger(folder, 0);
    ways_stop(&kit);
    one = size_of(folder, "out");
    snprintf(path, sizeof(path), "%s/b.json", folder);
    append_line(path, "main;one 1\n", "\n");
    start_stored_at(&kit, folder, "end");
    wait_larger(folder, one);
    ways_stop(&kit);
    CHECK_EQ(size_of(folder, "out"), 2 * one);
    folder_remove(folder);
}

static void append_lines(const char *path, const char *stacks, int n)
{
    for (int i = 0; i < n; i++)
        append_line(path, stacks, "\n");
}

TEST(otlp_json_file, a_file_that_was_cut_is_known_beyond_its_end_by_what_it_has_since)
{
    static const char long_one[] = "main;with_a_name_that_is_rather_long 1\n";
    char folder[FOLDER_NAME], path[300];
    struct ways kit;
    off_t large, one;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/a.json", folder);
    append_lines(path, long_one, 1);
    start_stored(&kit, folder);
    wait_larger(folder, 0);
    large = size_of(folder, "out");
    append_lines(path, "main;one 1\n", 1);
    wait_larger(folder, large);
    one = size_of(folder, "out") - large;
    append_lines(path, "main;one 1\n", 2);
    wait_larger(folder, large + 2 * one);
    CHECK_OK(truncate(path, 0));
    append_lines(path, "xain;one 1\n", 3);
    wait_larger(folder, large + 5 * one);
    ways_stop(&kit);
    append_lines(path, long_one, 1);
    start_stored(&kit, folder);
    wait_larger(folder, large + 6 * one);
    ways_stop(&kit);
    CHECK_EQ(size_of(folder, "out"), 2 * large + 6 * one); /* nothing twice */
    folder_remove(folder);
}

TEST(otlp_json_file, settings_that_are_wrong)
{
    CHECK(strstr(ways_refusal(KILN_RECEIVER, "otlp_json_file", "{include: a, storage: nowhere}"),
                 "there is no file_storage extension \"nowhere\""));
    CHECK(strstr(
        ways_refusal(KILN_RECEIVER, "otlp_json_file", "{include: a, delete_after_read: true}"),
        "cannot be used with 'start_at: end'"));
    CHECK(strstr(ways_refusal(KILN_RECEIVER, "otlp_json_file", "{include: a, encoding: big5}"),
                 "\"big5\" is not known here (say utf-8)"));
    CHECK(strstr(ways_refusal(KILN_RECEIVER, "otlp_json_file", "{include: a, on_truncate: x}"),
                 "say read_whole_file"));
    CHECK(strstr(ways_refusal(KILN_RECEIVER, "otlp_json_file", "{include: a, max_log_size: 0}"),
                 "from 1 to 64MiB"));
    CHECK(strstr(ways_refusal(KILN_RECEIVER, "otlp_json_file", "{include: a, compression: gzip}"),
                 "files are read as they are"));
    CHECK_TEXT(ways_refusal(KILN_RECEIVER, "otlp_json_file", "{}"),
               "required argument `include` is empty: say which files, as patterns");
    CHECK_TEXT(ways_refusal(KILN_RECEIVER, "otlpjsonfile", "{include: a, start_at: middle}"),
               "line 1, column 24: start_at: \"middle\" is neither beginning nor end");
}

TEST(store_exporter, keeps_what_it_gets)
{
    char folder[FOLDER_NAME], yaml[1024];
    struct ways kit;

    folder_make(folder);
    snprintf(yaml, sizeof(yaml),
             "receivers: {pyroscope: {endpoint: '127.0.0.1:0'}}\n"
             "exporters: {store: {directory: '%s', retention: 24h}}\n"
             "service: {pipelines: {profiles: {receivers: [pyroscope], exporters: [store]}}}\n",
             folder);
    ways_start_graph(&kit, yaml);
    ways_call(&kit, "pyroscope",
              &(struct kiln_call){.path = "/ingest?name=app&format=folded",
                                  .content_type = "text/plain",
                                  .body = KILN_STR("main;read 3\n")});
    CHECK_EQ(kit.answer.status, 200);
    ways_stop(&kit);
    folder_remove(folder);
}

static void count_end(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    struct kiln_outcome *into = delivery->context;

    *into = *outcome;
}

TEST(store_exporter, ends_all_deliveries_before_it_is_stopped)
{
    struct kiln_outcome outcome = {.code = 1};
    struct kiln_delivery delivery = {.done = count_end, .context = &outcome, .tenant = "shop"};
    char folder[FOLDER_NAME], yaml[400];
    struct ways kit;

    folder_make(folder);
    snprintf(yaml, sizeof(yaml), "{directory: '%s'}", folder);
    ways_start(&kit, KILN_EXPORTER, "store", yaml);
    delivery.batch = kiln_test_stacks("main;read 3\n");
    delivery.received_ns = kiln_clock_unix_ns();
    kit.component->in->consume(kit.component->in, &delivery);
    kit.component->ops->stop(kit.component, 0);
    CHECK_EQ(outcome.code, 0);
    delivery.batch = kiln_test_stacks("main;read 3\n");
    kit.component->in->consume(kit.component->in, &delivery);
    CHECK_EQ(outcome.code, -ESHUTDOWN);
    ways_stop(&kit);
    folder_remove(folder);
}

TEST(host_receiver, settings_that_are_wrong)
{
    CHECK_TEXT(ways_refusal(KILN_RECEIVER, "host", "{frequency: 100000}"),
               "line 1, column 1: frequency: at most 1000 a second");
    CHECK_TEXT(ways_refusal(KILN_RECEIVER, "host", "{resource_per: pod}"),
               "line 1, column 1: resource_per: process or container, not \"pod\"");
    CHECK_TEXT(ways_refusal(KILN_RECEIVER, "profiling", "{frequenzy: 1}"),
               "line 1, column 2: unknown key frequenzy (did you mean frequency?)");
}

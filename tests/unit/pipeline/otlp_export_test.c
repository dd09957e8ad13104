/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "folder.h"
#include "intake.h"
#include "net.h"
#include "net/rpc.h"
#include "pipeline/exporters/otlp_int.h"
#include "test.h"

#define DRAIN_NS (60 * KILN_NS_PER_S) /* which no working test needs */

/* An exporter and what it counts. */
struct fixture {
    struct kiln_otlp_export_opts opts;
    struct kiln_consumer *exporter;
    struct kiln_metrics *metrics;
    char endpoint[64];
    uint64_t taken; /* samples, of each delivery */
    int ended;      /* deliveries */
    int code;       /* of the last one */
};

static void start(struct fixture *f, uint16_t port)
{
    struct kiln_err err = {0};

    snprintf(f->endpoint, sizeof(f->endpoint), "http://127.0.0.1:%u", port);
    CHECK_OK(kiln_metrics_new(&f->metrics));
    f->opts.endpoint = f->endpoint;
    f->opts.metrics = f->metrics;
    f->opts.retry_ns = f->opts.retry_max_ns = KILN_NS_PER_MS;
    if (kiln_otlp_exporter_new(&f->opts, &f->exporter, &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
}

/* Ends the exporter; its counters are still there. */
static void end(struct fixture *f, uint64_t drain_ns)
{
    kiln_otlp_exporter_free(f->exporter, drain_ns);
    f->exporter = NULL;
}

static void finish(struct fixture *f)
{
    kiln_metrics_free(f->metrics);
    f->metrics = NULL;
}

static void ended(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    struct fixture *f = delivery->context;

    f->ended++;
    f->code = outcome->code;
}

static void send(struct fixture *f, const char *stacks)
{
    struct kiln_delivery delivery = {
        .batch = kiln_test_batch(&(struct kiln_drawn){.stacks = stacks,
                                                      .type = "cpu",
                                                      .unit = "nanoseconds",
                                                      .time_ns = 5,
                                                      .resource = "service.name=shop"},
                                 1),
        .taken = f->taken,
        .tenant = "anonymous",
        .done = ended,
        .context = f,
    };

    f->exporter->consume(f->exporter, &delivery);
}

static double count(struct fixture *f, const char *name, const char *reason)
{
    return kiln_metric_value(kiln_metric_get(f->metrics, KILN_COUNTER, name, "",
                                             reason ? KILN_LABELS("reason", reason) : NULL));
}

static double gauge(struct fixture *f, const char *name)
{
    return kiln_metric_value(kiln_metric_get(f->metrics, KILN_GAUGE, name, "", NULL));
}

/* Until a counter is there. */
static void wait_for_reason(struct fixture *f, const char *name, const char *reason, double value)
{
    uint64_t patience = kiln_clock_mono_ns() + DRAIN_NS;

    while (count(f, name, reason) < value && kiln_clock_mono_ns() < patience)
        sched_yield();
    CHECK_EQ(count(f, name, reason), value);
}

static void wait_for(struct fixture *f, const char *name, double value)
{
    wait_for_reason(f, name, NULL, value);
}

/* A port where nobody listens. */
static uint16_t free_port(void)
{
    struct net_fixture net = {0};
    uint16_t port;

    net_start(&net, NULL);
    port = net.port;
    net_stop(&net);
    return port;
}

/* The values of the samples that came, in the order of coming. */
static const char *came(struct intake *in)
{
    static char text[4096];
    size_t n = 0;

    text[0] = '\0';
    pthread_mutex_lock(&in->lock);
    for (uint32_t i = 0; i < in->n; i++) {
        const struct kiln_batch *batch = in->got[i].batch;

        for (uint32_t s = 0; s < batch->n_samples; s++)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%lld ",
                                  (long long)kiln_sample_total(batch, &batch->samples[s]));
    }
    pthread_mutex_unlock(&in->lock);
    return text;
}

/* ---- sending ---- */

TEST(otlp_exporter, speaks_every_protocol_with_every_compression)
{
    static const char *const protocols[] = {"grpc", "http/protobuf", "http/json"};
    static const char *const compressions[] = {"gzip", "zstd", "none"};

    for (uint32_t i = 0; i < 9; i++) {
        struct fixture f = {
            .opts = {.protocol = protocols[i / 3], .compression = compressions[i % 3]}};
        struct intake in;

        intake_start(&in, NULL);
        start(&f, in.port);
        send(&f, "main;read 3\n");
        send(&f, "main;write 4\n");
        end(&f, DRAIN_NS);
        CHECK_EQ(f.ended, 2);
        CHECK_EQ(f.code, 0);
        CHECK_EQ(in.n, 2);
        CHECK_TEXT(intake_text(&in, 0),
                   "{service.name=shop} process_cpu:cpu:nanoseconds:cpu:nanoseconds *1 @5+0s\n"
                   "  main;read 3\n");
        CHECK_TEXT(came(&in), "3 4 ");
        if (i < 6)
            CHECK_EQ(in.got[0].compression, i % 3 == 0 ? KILN_GZIP : i % 3 == 1 ? KILN_ZSTD : 0);
        CHECK_EQ(count(&f, "kiln_export_sent_requests_total", NULL), 2);
        CHECK_EQ(count(&f, "kiln_export_sent_samples_total", NULL), 2);
        CHECK(count(&f, "kiln_export_sent_bytes_total", NULL) > 100);
        CHECK_EQ(gauge(&f, "kiln_export_queue_bytes"), 0);
        CHECK_EQ(gauge(&f, "kiln_export_up"), 1);
        finish(&f);
        intake_stop(&in);
        CHECK_EQ(kiln_mem_live(), 0);
    }
}

/* What a receiver of a test saw. */
static char seen[512];

TEST(otlp_exporter, who_is_dense_takes_zstd_where_the_receiver_said_so)
{
    static const struct {
        const char *protocol, *compression;
        enum kiln_compression then;
    } cases[] = {
        {"grpc", NULL, KILN_ZSTD}, {"http/protobuf", NULL, KILN_ZSTD}, {"grpc", "gzip", KILN_GZIP}};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct fixture f = {.opts = {.protocol = cases[i].protocol,
                                     .compression = cases[i].compression,
                                     .dense = true}};
        struct intake in;

        intake_start(&in, NULL);
        start(&f, in.port);
        send(&f, "main;read 3\n");
        wait_for(&f, "kiln_export_sent_requests_total", 1);
        send(&f, "main;write 4\n");
        end(&f, DRAIN_NS);
        CHECK_EQ(in.got[0].compression, KILN_GZIP);
        CHECK_EQ(in.got[1].compression, cases[i].then);
        CHECK_TEXT(came(&in), "3 4 ");
        finish(&f);
        intake_stop(&in);
    }
}

/* Says that it takes zstd, and does not. */
static void take_gzip_only(struct kiln_request *request)
{
    struct kiln_reply reply = {.status = request->encoding == KILN_ZSTD ? 415 : 200};
    size_t n = strlen(seen);

    reply.headers[reply.n_headers++] =
        (struct kiln_header){KILN_STR("accept-encoding"), KILN_STR("gzip, zstd")};
    snprintf(seen + n, sizeof(seen) - n, "%s ", request->encoding == KILN_ZSTD ? "zstd" : "gzip");
    kiln_request_reply(request, &reply);
}

TEST(otlp_exporter, a_receiver_that_does_not_take_zstd_after_all_gets_the_same_as_gzip)
{
    struct fixture f = {.opts = {.protocol = "http/protobuf", .dense = true}};
    struct net_fixture net = {0};

    seen[0] = '\0';
    CHECK_OK(kiln_router_new(&net.router));
    CHECK_OK(
        kiln_router_add(net.router, &(struct kiln_route){.path = "*", .handler = take_gzip_only}));
    net_start(&net, NULL);
    start(&f, net.port);
    send(&f, "main;read 3\n");
    wait_for(&f, "kiln_export_sent_requests_total", 1);
    send(&f, "main;write 4\n");
    end(&f, DRAIN_NS);
    CHECK_TEXT(seen, "gzip zstd gzip ");
    CHECK_EQ(count(&f, "kiln_export_sent_requests_total", NULL), 2);
    CHECK_EQ(count(&f, "kiln_export_dropped_requests_total", "refused"), 0);
    finish(&f);
    net_stop(&net);
}

/* Headers come along, and the very path of the variable is asked for. */

static void note(struct kiln_request *request)
{
    snprintf(seen, sizeof(seen), "%.*s?%.*s %.*s %.*s", KILN_STR_ARG(request->path),
             KILN_STR_ARG(request->query),
             KILN_STR_ARG(kiln_request_header(request, "x-scope-orgid")),
             KILN_STR_ARG(kiln_request_header(request, "authorization")));
    kiln_request_reply(request, &(struct kiln_reply){.status = 200});
}

TEST(otlp_exporter, sends_headers_to_the_address_of_the_variables)
{
    struct fixture f = {0};
    struct net_fixture net = {0};
    char url[128];

    CHECK_OK(kiln_router_new(&net.router));
    CHECK_OK(kiln_router_add(net.router, &(struct kiln_route){.path = "*", .handler = note}));
    net_start(&net, NULL);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/a/b?c=d", net.port);
    setenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", url, 1);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-scope-orgid=shop,authorization=Bearer%20t", 1);
    CHECK_OK(kiln_metrics_new(&f.metrics));
    f.opts.metrics = f.metrics;
    CHECK_OK(kiln_otlp_exporter_new(&f.opts, &f.exporter, NULL));
    unsetenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT");
    unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
    send(&f, "main 1\n");
    end(&f, DRAIN_NS);
    CHECK_TEXT(seen, "/a/b?c=d shop Bearer t");
    finish(&f);
    net_stop(&net);
}

TEST(otlp_exporter, splits_what_is_larger_than_a_request_may_be)
{
    struct fixture f = {.opts = {.request_max = 4096}};
    char *stacks = malloc(1 << 20);
    struct intake in;
    size_t n = 0;
    long long total = 0;

    for (int i = 0; i < 400; i++)
        n += (size_t)snprintf(stacks + n, (1 << 20) - n,
                              "main;some_function_%d;another_function_%d 1\n", i, i);
    intake_start(&in, NULL);
    start(&f, in.port);
    send(&f, stacks);
    end(&f, DRAIN_NS);
    CHECK(in.n > 5);
    CHECK_EQ(count(&f, "kiln_export_sent_requests_total", NULL), in.n);
    CHECK_EQ(count(&f, "kiln_export_sent_samples_total", NULL), 400);
    for (uint32_t i = 0; i < in.n; i++)
        for (uint32_t s = 0; s < in.got[i].batch->n_samples; s++)
            total += kiln_sample_total(in.got[i].batch, &in.got[i].batch->samples[s]);
    CHECK_EQ(total, 400);
    finish(&f);
    intake_stop(&in);
    free(stacks);
}

TEST(otlp_exporter, says_what_it_cannot_split)
{
    struct fixture f = {.opts = {.request_max = 4096}};
    char *stacks = malloc(20000);

    memset(stacks, 'x', 10000);
    memcpy(stacks + 10000, " 1\n", 4);
    start(&f, 1);
    send(&f, stacks);
    CHECK_EQ(f.ended, 1);
    CHECK_EQ(f.code, KILN_E_LIMIT);
    end(&f, 0);
    CHECK_EQ(count(&f, "kiln_export_dropped_requests_total", "encoding"), 1);
    CHECK_EQ(count(&f, "kiln_export_dropped_samples_total", "encoding"), 1);
    finish(&f);
    free(stacks);
}

/* ---- a receiver with moods ---- */

/* Answers the n-th request with the n-th mood; the last one stays. */
struct mood {
    int code; /* enum kiln_rpc_code */
    const char *message;
    uint32_t retry_after_s;
};
static const struct mood *moods;
static _Atomic uint32_t asked;

static void moody(struct kiln_rpc *rpc)
{
    const struct mood *mood = &moods[atomic_fetch_add(&asked, 1)];

    if (mood->code)
        kiln_rpc_fail(rpc, &(struct kiln_rpc_status){.code = (enum kiln_rpc_code)mood->code,
                                                     .message = mood->message,
                                                     .retry_after_s = mood->retry_after_s});
    else /* partial_success: 2 rejected, "no" */
        kiln_rpc_reply(rpc, mood->message ? KILN_STR("\x0a\x06\x08\x02\x12\x02no") : KILN_STR(""));
}

static void start_moody(struct net_fixture *net, const struct mood *all)
{
    *net = (struct net_fixture){0};
    moods = all;
    asked = 0;
    CHECK_OK(kiln_router_new(&net->router));
    CHECK_OK(kiln_rpc_add(
        net->router,
        &(struct kiln_rpc_route){.path = "/opentelemetry.proto.collector.profiles.v1development."
                                         "ProfilesService/Export",
                                 .handler = moody}));
    CHECK_OK(kiln_rpc_add(net->router, &(struct kiln_rpc_route){.path = "/v1development/profiles",
                                                                .handler = moody,
                                                                .http_only = true}));
    net_start(net, NULL);
}

TEST(otlp_exporter, tries_again_what_may_be_tried_again_and_drops_the_rest)
{
    static const struct mood all[] = {
        {.code = KILN_RPC_UNAVAILABLE, .message = "not now"},
        {.code = KILN_RPC_UNAVAILABLE, .message = "not now"},
        {.code = KILN_RPC_OK},
        {.code = KILN_RPC_INVALID_ARGUMENT, .message = "never"},
        {.code = KILN_RPC_OK, .message = "partly"},
    };
    static const char *const protocols[] = {"grpc", "http/protobuf"};

    for (uint32_t i = 0; i < 2; i++) {
        struct fixture f = {.opts = {.protocol = protocols[i]}};
        struct net_fixture net;

        start_moody(&net, all);
        start(&f, net.port);
        for (int k = 0; k < 3; k++)
            send(&f, "main 1\nidle 2\n");
        end(&f, DRAIN_NS);
        CHECK_EQ(asked, 5);
        CHECK_EQ(count(&f, "kiln_export_sent_requests_total", NULL), 2);
        CHECK_EQ(count(&f, "kiln_export_failed_tries_total", NULL), 3);
        CHECK_EQ(count(&f, "kiln_export_retries_total", NULL), 2);
        CHECK_EQ(count(&f, "kiln_export_dropped_requests_total", "refused"), 1);
        CHECK_EQ(count(&f, "kiln_export_dropped_samples_total", "refused"), 2);
        CHECK_EQ(count(&f, "kiln_export_rejected_profiles_total", NULL), 2);
        finish(&f);
        net_stop(&net);
    }
}

TEST(otlp_exporter, waits_as_long_as_the_receiver_asks_for_but_not_beyond_its_end)
{
    for (uint32_t hours = 0; hours <= 1; hours++) {
        const struct mood all[] = {{KILN_RPC_UNAVAILABLE, "soon", hours ? 3600 : 1}, {0}};
        struct fixture f = {.opts = {.protocol = "grpc"}};
        uint64_t begun = kiln_clock_mono_ns();
        struct net_fixture net;

        start_moody(&net, all);
        start(&f, net.port);
        send(&f, "main 1\n");
        wait_for(&f, hours ? "kiln_export_failed_tries_total" : "kiln_export_sent_requests_total",
                 1);
        CHECK(hours || kiln_clock_mono_ns() - begun >= KILN_NS_PER_S);
        end(&f, DRAIN_NS);
        CHECK_EQ(count(&f, "kiln_export_sent_requests_total", NULL), 1);
        CHECK_EQ(asked, 2);
        finish(&f);
        net_stop(&net);
    }
}

/* ---- a receiver that is away ---- */

TEST(otlp_exporter, keeps_the_newest_in_memory_where_there_is_no_spool)
{
    struct fixture f = {.opts = {.memory_max = 1000, .compression = "none"}};
    uint16_t port = free_port();
    struct intake in;
    struct kiln_export_loss losses[KILN_EXPORT_LOSSES];
    char stack[32];
    double dropped;

    start(&f, port);
    for (int i = 0; i < 20; i++) {
        snprintf(stack, sizeof(stack), "main %d\n", 100 + i);
        send(&f, stack);
    }
    dropped = count(&f, "kiln_export_dropped_requests_total", "memory");
    CHECK(dropped > 0);
    kiln_otlp_exporter_losses(f.exporter, losses);
    for (uint32_t i = 0; i < KILN_EXPORT_LOSSES; i++) {
        bool is_it = strcmp(losses[i].reason, "memory") == 0;

        CHECK_EQ(losses[i].requests, is_it ? (uint64_t)dropped : 0);
        CHECK_EQ(losses[i].samples, losses[i].requests); /* one in each */
    }
    CHECK(gauge(&f, "kiln_export_queue_bytes") <= 2000);
    intake_start(&in, &(struct intake_opts){.port = port});
    end(&f, DRAIN_NS);
    CHECK_EQ(in.n, 20 - (int)count(&f, "kiln_export_dropped_requests_total", "memory"));
    CHECK(strstr(came(&in), "119 "));
    finish(&f);
    intake_stop(&in);
}

TEST(otlp_exporter, counts_samples_as_who_took_them_does)
{
    struct fixture f = {.taken = 700, .opts = {.request_max = 2000}};
    struct kiln_buf stacks;

    kiln_buf_init(&stacks, 1 << 16);
    for (int i = 0; i < 100; i++)
        kiln_buf_printf(&stacks, "main;function_number_%d %d\n", i, 7);
    kiln_buf_putc(&stacks, '\0');
    start(&f, free_port());
    send(&f, stacks.ptr);
    end(&f, 0);
    CHECK(count(&f, "kiln_export_dropped_requests_total", "shutdown") > 1);
    CHECK_EQ(count(&f, "kiln_export_dropped_samples_total", "shutdown"), 700);
    finish(&f);
    kiln_buf_done(&stacks);
}

TEST(otlp_exporter, counts_what_still_waits_at_the_end_without_a_spool)
{
    struct fixture f = {0};

    start(&f, free_port());
    send(&f, "main 1\nidle 1\n");
    end(&f, 0);
    CHECK_EQ(count(&f, "kiln_export_dropped_requests_total", "shutdown"), 1);
    CHECK_EQ(count(&f, "kiln_export_dropped_samples_total", "shutdown"), 2);
    CHECK_EQ(gauge(&f, "kiln_export_queue_bytes"), 0);
    finish(&f);
}

static void check_spooled(const char *protocol, const char *compression, const char *later)
{
    char folder[FOLDER_NAME], first[256];
    uint16_t port = free_port();
    struct fixture f = {.opts = {.protocol = protocol, .compression = compression}};
    struct intake in;

    folder_make(folder);
    f.opts.spool_dir = folder;
    start(&f, port);
    send(&f, "main 1\n");
    send(&f, "main 2\n");
    send(&f, "main 3\n");
    end(&f, 0);
    CHECK_EQ(folder_list(folder, ".otlp", first, sizeof(first)), 3);
    CHECK_EQ(gauge(&f, "kiln_export_spool_files"), 3);
    CHECK_EQ(count(&f, "kiln_export_spooled_requests_total", NULL), 3);
    finish(&f);

    intake_start(&in, &(struct intake_opts){.port = port});
    f.opts.protocol = later;
    start(&f, port);
    wait_for(&f, "kiln_export_sent_requests_total", 3);
    CHECK_TEXT(came(&in), "1 2 3 ");
    end(&f, DRAIN_NS);
    CHECK_EQ(folder_list(folder, ".otlp", first, sizeof(first)), 0);
    finish(&f);
    intake_stop(&in);
    folder_remove(folder);
}

TEST(otlp_exporter, spools_while_the_receiver_is_away_and_sends_it_oldest_first_after_a_restart)
{
    check_spooled(NULL, NULL, NULL);
}

/* JSON does not go over gRPC: it becomes protobuf on the way. */
TEST(otlp_exporter, sends_what_was_spooled_as_json_over_grpc)
{
    check_spooled("http/json", "none", "grpc");
    check_spooled("http/json", "gzip", "grpc");
}

/* Requests in the order of coming, by the function "is_?" in them; the first is held. */
static char order[64];

static void note_order(struct kiln_request *request)
{
    const char *name = memmem(request->body.ptr, request->body.len, "is_", 3);
    size_t n = strlen(order);

    CHECK(name && n + 1 < sizeof(order));
    order[n] = name[3];
    if (n == 0)
        net_hold(request);
    else
        kiln_request_reply(request, &(struct kiln_reply){.status = 200});
}

TEST(otlp_exporter, sends_new_data_between_what_is_spooled)
{
    struct fixture f = {.opts = {.protocol = "http/protobuf", .compression = "none"}};
    char folder[FOLDER_NAME];
    struct net_fixture net = {0};

    folder_make(folder);
    f.opts.spool_dir = folder;
    start(&f, free_port());
    send(&f, "is_1 1\n");
    send(&f, "is_2 1\n");
    send(&f, "is_3 1\n");
    send(&f, "is_4 1\n");
    end(&f, 0);
    finish(&f);

    order[0] = '\0';
    CHECK_OK(kiln_router_new(&net.router));
    CHECK_OK(kiln_router_add(net.router, &(struct kiln_route){.path = "*", .handler = note_order}));
    net_start(&net, NULL);
    start(&f, net.port);
    net_wait_held(1);
    send(&f, "is_a 1\n");
    send(&f, "is_b 1\n");
    net_release();
    wait_for(&f, "kiln_export_sent_requests_total", 6);
    end(&f, DRAIN_NS);
    CHECK_TEXT(order, "1a2b34");
    finish(&f);
    net_stop(&net);
    folder_remove(folder);
}

/* Never has room for "is_1". */
static void refuse_one(struct kiln_request *request)
{
    bool one = memmem(request->body.ptr, request->body.len, "is_1", 4) != NULL;

    kiln_request_reply_text(request, one ? 503 : 200, "%s", "");
}

TEST(otlp_exporter, is_not_held_up_by_one_request_that_the_receiver_cannot_digest)
{
    struct fixture f = {.opts = {.protocol = "http/protobuf", .compression = "none"}};
    char folder[FOLDER_NAME], left[256];
    struct net_fixture net = {0};

    folder_make(folder);
    f.opts.spool_dir = folder;
    start(&f, free_port());
    for (int i = 1; i <= 5; i++) {
        char stack[32];

        snprintf(stack, sizeof(stack), "is_%d 1\n", i);
        send(&f, stack);
    }
    end(&f, 0);
    finish(&f);

    CHECK_OK(kiln_router_new(&net.router));
    CHECK_OK(kiln_router_add(net.router, &(struct kiln_route){.path = "*", .handler = refuse_one}));
    net_start(&net, NULL);
    start(&f, net.port);
    wait_for(&f, "kiln_export_sent_requests_total", 4);
    end(&f, DRAIN_NS);
    CHECK_EQ(folder_list(folder, ".otlp", left, sizeof(left)), 1);
    CHECK_EQ(count(&f, "kiln_export_dropped_requests_total", "refused"), 0);
    finish(&f);
    net_stop(&net);
    folder_remove(folder);
}

TEST(otlp_exporter, drops_the_oldest_of_a_full_spool_and_counts_it)
{
    char folder[FOLDER_NAME], first[256];
    uint16_t port = free_port();
    struct fixture f = {.opts = {.spool_max = 1200, .compression = "none"}};
    double dropped;
    struct intake in;
    uint32_t kept;

    folder_make(folder);
    f.opts.spool_dir = folder;
    start(&f, port);
    for (int i = 1; i <= 20; i++)
        send(&f, i < 20 ? "main 1\nidle 1\n" : "main 7\n");
    end(&f, 0);
    kept = folder_list(folder, ".otlp", first, sizeof(first));
    dropped = count(&f, "kiln_export_dropped_requests_total", "spool_full");
    CHECK(kept > 1 && dropped > 10);
    CHECK_EQ(kept + (uint32_t)dropped, 20);
    CHECK_EQ(count(&f, "kiln_export_dropped_samples_total", "spool_full"), 2 * dropped);
    CHECK(gauge(&f, "kiln_export_spool_bytes") <= 1200);
    finish(&f);

    intake_start(&in, &(struct intake_opts){.port = port});
    start(&f, port);
    wait_for(&f, "kiln_export_sent_requests_total", kept);
    CHECK(kiln_str_ends(kiln_str_of(came(&in)), KILN_STR(" 7 ")));
    end(&f, DRAIN_NS);
    finish(&f);
    intake_stop(&in);
    folder_remove(folder);
}

TEST(otlp_exporter, counts_a_file_that_somebody_took_away)
{
    char folder[FOLDER_NAME], first[256];
    uint16_t port = free_port();
    struct fixture f = {0};
    struct intake in;

    folder_make(folder);
    f.opts.spool_dir = folder;
    start(&f, port);
    send(&f, "main 1\n");
    send(&f, "main 2\n");
    wait_for(&f, "kiln_export_spooled_requests_total", 2);
    CHECK_EQ(folder_list(folder, ".otlp", first, sizeof(first)), 2);
    CHECK_OK(unlink(first));
    /* It may have been read already, for a try that fails. */
    wait_for_reason(&f, "kiln_export_dropped_requests_total", "torn", 1);
    intake_start(&in, &(struct intake_opts){.port = port});
    wait_for(&f, "kiln_export_sent_requests_total", 1);
    CHECK_TEXT(came(&in), "2 ");
    end(&f, DRAIN_NS);
    finish(&f);
    intake_stop(&in);
    folder_remove(folder);
}

TEST(otlp_exporter, skips_a_torn_file_and_counts_it)
{
    char folder[FOLDER_NAME], first[256];
    uint16_t port = free_port();
    struct fixture f = {0};
    struct intake in;

    folder_make(folder);
    f.opts.spool_dir = folder;
    start(&f, port);
    send(&f, "main 1\n");
    send(&f, "main 2\n");
    end(&f, 0);
    finish(&f);
    CHECK_EQ(folder_list(folder, ".otlp", first, sizeof(first)), 2);
    CHECK_OK(truncate(first, 60));

    intake_start(&in, &(struct intake_opts){.port = port});
    start(&f, port);
    wait_for(&f, "kiln_export_sent_requests_total", 1);
    CHECK_TEXT(came(&in), "2 ");
    end(&f, DRAIN_NS);
    CHECK_EQ(count(&f, "kiln_export_dropped_requests_total", "torn"), 1);
    CHECK_EQ(folder_list(folder, ".otlp", first, sizeof(first)), 0);
    finish(&f);
    intake_stop(&in);
    folder_remove(folder);
}

/* A file may have no more than no bytes: as a full disk, but for this process alone. */
static rlim_t limit_files(rlim_t bytes)
{
    struct rlimit limit;
    rlim_t before;

    CHECK_OK(getrlimit(RLIMIT_FSIZE, &limit));
    before = limit.rlim_cur;
    limit.rlim_cur = bytes;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_OK(setrlimit(RLIMIT_FSIZE, &limit));
    return before;
}

TEST(otlp_exporter, keeps_in_memory_what_the_disk_has_no_room_for)
{
    char folder[FOLDER_NAME], first[256];
    uint16_t port = free_port();
    struct fixture f = {0};
    struct intake in;
    rlim_t before;

    folder_make(folder);
    f.opts.spool_dir = folder;
    before = limit_files(0);
    start(&f, port);
    send(&f, "main 1\n");
    wait_for(&f, "kiln_export_spool_errors_total", 1);
    CHECK_EQ(folder_list(folder, ".otlp", first, sizeof(first)), 0);
    intake_start(&in, &(struct intake_opts){.port = port});
    wait_for(&f, "kiln_export_sent_requests_total", 1);
    limit_files(before);
    end(&f, DRAIN_NS);
    CHECK_EQ(count(&f, "kiln_export_sent_requests_total", NULL), 1);
    CHECK_EQ(folder_list(folder, ".part", first, sizeof(first)), 0);
    finish(&f);
    intake_stop(&in);
    folder_remove(folder);
}

TEST(otlp_exporter, sends_at_the_end_what_the_disk_has_no_room_for)
{
    char folder[FOLDER_NAME];
    uint16_t port = free_port();
    struct fixture f = {0};
    struct intake in;
    rlim_t before;

    folder_make(folder);
    f.opts.spool_dir = folder;
    before = limit_files(0);
    start(&f, port);
    send(&f, "main 1\n");
    wait_for(&f, "kiln_export_spool_errors_total", 1);
    intake_start(&in, &(struct intake_opts){.port = port});
    end(&f, DRAIN_NS);
    limit_files(before);
    CHECK_TEXT(came(&in), "1 ");
    CHECK_EQ(count(&f, "kiln_export_dropped_requests_total", "shutdown"), 0);
    finish(&f);
    intake_stop(&in);
    folder_remove(folder);
}

/* ---- the end ---- */

TEST(otlp_exporter, gives_up_a_receiver_that_does_not_answer_when_the_time_is_over)
{
    char folder[FOLDER_NAME], first[256];
    struct net_fixture net = {0};
    struct fixture f = {.opts = {.protocol = "http/protobuf", .timeout_ns = DRAIN_NS}};

    CHECK_OK(kiln_router_new(&net.router));
    CHECK_OK(kiln_router_add(net.router, &(struct kiln_route){.path = "*", .handler = net_hold}));
    net_start(&net, NULL);
    folder_make(folder);
    f.opts.spool_dir = folder;
    start(&f, net.port);
    send(&f, "main 1\n");
    net_wait_held(1);
    end(&f, KILN_NS_PER_MS);
    CHECK_EQ(folder_list(folder, ".otlp", first, sizeof(first)), 1);
    finish(&f);
    net_release();
    net_stop(&net);
    folder_remove(folder);
}

TEST(otlp_exporter, does_not_start_with_settings_that_cannot_be_meant)
{
    struct kiln_otlp_export_opts opts = {.endpoint = "gopher://x"};
    struct kiln_consumer *exporter = NULL;
    struct kiln_err err = {0};

    CHECK_EQ(kiln_otlp_exporter_new(&opts, &exporter, &err), -EINVAL);
    CHECK(strstr(err.text, "no address for OTLP"));
    CHECK_EQ(kiln_mem_live(), 0);
}

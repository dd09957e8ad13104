/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for memory: from the client to the answer, through every receiver. */
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/otlp.h"
#include "intake.h"
#include "net.h"
#include "test.h"

#define ACCEPTED "kiln_receiver_requests_total{receiver=\"pyroscope\",outcome=\"accepted\"}"
#define BUSY     "kiln_receiver_requests_total{receiver=\"pyroscope\",outcome=\"busy\"}"
#define LOST     "kiln_receiver_profiles_total{receiver=\"pyroscope\",outcome=\"busy\"}"
#define LATE     "kiln_admission_refused_total{reason=\"timeout\"}"
#define WAITED   "kiln_admission_wait_seconds_count"
#define WAITING  "\nkiln_admission_waiting" /* not its help */
#define LONG     (600 * KILN_NS_PER_S)
#define FOLDED   "/ingest?name=shop&from=1700000000&until=1700000010"
#define REQUEST  "POST " FOLDED " HTTP/1.1\r\nhost: x\r\ncontent-length: 12\r\n\r\nmain;read 3\n"

/* Two attempts fail, and there is room at the third look after each. */
static void start(struct intake *in, uint64_t patience_ns)
{
    intake_start(in, &(struct intake_opts){.patience_ns = patience_ns});
    in->busy = 2;
    in->full = 3;
}

static void is_taken_once(struct intake *in)
{
    CHECK_EQ(in->answer.status, 200);
    CHECK_EQ(in->n, 1);
    CHECK(in->n_asked > in->full);
    CHECK_EQ(intake_count(in, WAITED), 2);
    CHECK_EQ(intake_count(in, WAITING), 0);
    intake_stop(in);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(waiting, a_profile_that_is_ingested_is_tried_again_until_there_is_room)
{
    struct intake in;

    start(&in, LONG);
    intake_post(&in, FOLDED, "text/plain", KILN_STR("main;read 3\n"));
    CHECK_EQ(intake_count(&in, ACCEPTED), 1);
    CHECK_EQ(intake_count(&in, BUSY), 0);
    CHECK_EQ(intake_count(&in, LOST), 0);
    is_taken_once(&in);
}

TEST(waiting, so_is_a_file)
{
    struct kiln_buf pprof;
    struct intake in;

    start(&in, LONG);
    intake_post(&in, "/api/v1/profiles?service=shop", "application/octet-stream",
                intake_cpu_pprof(&pprof));
    kiln_buf_done(&pprof);
    is_taken_once(&in);
}

TEST(waiting, so_is_a_call_of_otlp)
{
    struct kiln_batch *batch;
    struct kiln_buf pprof, message;
    struct intake in;

    intake_start(&in, NULL);
    intake_post(&in, "/api/v1/profiles?service=shop", "application/octet-stream",
                intake_cpu_pprof(&pprof));
    batch = kiln_batch_ref(in.got[0].batch);
    intake_stop(&in);
    kiln_buf_init(&message, 1u << 20);
    CHECK_OK(kiln_otlp_encode(batch, NULL, &message, NULL));
    kiln_batch_unref(batch);
    kiln_buf_done(&pprof);
    start(&in, LONG);
    intake_grpc(&in, "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
                kiln_buf_str(&message));
    kiln_buf_done(&message);
    CHECK(in.answer.rpc_ok);
    is_taken_once(&in);
}

TEST(waiting, a_request_is_refused_when_its_time_is_over)
{
    struct intake in;

    start(&in, 1);
    in.full = UINT32_MAX;
    intake_post(&in, FOLDED, "text/plain", KILN_STR("main;read 3\n"));
    CHECK_EQ(in.answer.status, 429);
    CHECK(in.answer.retry_after_ms > 0);
    CHECK_EQ(intake_count(&in, LATE), 1);
    CHECK_EQ(intake_count(&in, BUSY), 1);
    CHECK_EQ(in.n, 0);
    intake_stop(&in);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(waiting, a_request_that_can_never_fit_is_refused_at_once)
{
    struct kiln_buf text;
    struct intake in;

    intake_start(&in, &(struct intake_opts){.patience_ns = LONG, .pool_bytes = 1u << 20});
    kiln_buf_init(&text, 4u << 20);
    while (text.len < 2u << 20)
        kiln_buf_printf(&text, "main;read%zu 3\n", text.len);
    intake_post(&in, FOLDED, "text/plain", kiln_buf_str(&text));
    CHECK_EQ(in.answer.status, 413);
    CHECK_EQ(intake_count(&in, WAITED), 0);
    kiln_buf_done(&text);
    intake_stop(&in);
    CHECK_EQ(kiln_mem_live(), 0);
}

static void wait_until(struct intake *in, const char *series, double value)
{
    struct timespec pause = {.tv_nsec = 1000000};

    while (intake_count(in, series) != value)
        nanosleep(&pause, NULL);
}

/* HTTP/1.1, whose connections are not read while an answer is awaited, unless the request waits. */
TEST(waiting, a_client_that_disconnects_leaves_the_queue)
{
    struct intake in;
    int fd;

    start(&in, LONG);
    in.full = UINT32_MAX;
    fd = net_connect(in.port);
    net_send(fd, REQUEST);
    wait_until(&in, WAITING, 1);
    close(fd);
    wait_until(&in, WAITING, 0);
    CHECK_EQ(in.busy, 1); /* it was not tried again */
    CHECK_EQ(in.n, 0);
    intake_stop(&in);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(waiting, requests_that_need_no_memory_are_answered_meanwhile)
{
    enum { CLIENTS = 8 }; /* more than there are workers */
    struct intake in;
    int fds[CLIENTS];

    start(&in, LONG);
    in.full = UINT32_MAX;
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = net_connect(in.port);
        net_send(fds[i], REQUEST);
    }
    wait_until(&in, WAITING, CLIENTS);
    intake_post(&in, "/nothing/here", "text/plain", KILN_STR("x"));
    CHECK_EQ(in.answer.status, 404);
    in.busy = 0;
    in.full = 0;
    for (int i = 0; i < CLIENTS; i++) {
        CHECK_EQ(net_status(net_read_answer(fds[i])), 200);
        close(fds[i]);
    }
    CHECK_EQ(in.n, CLIENTS);
    intake_stop(&in);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(waiting, a_stop_answers_who_waits)
{
    struct intake in;
    int fd;

    start(&in, LONG);
    in.full = UINT32_MAX;
    fd = net_connect(in.port);
    net_send(fd, REQUEST);
    wait_until(&in, WAITING, 1);
    kiln_receivers_stop(in.receivers);
    CHECK_EQ(net_status(net_read_answer(fd)), 429); /* the last attempt failed as well */
    close(fd);
    intake_post(&in, FOLDED, "text/plain", KILN_STR("main;read 3\n"));
    CHECK_EQ(in.answer.status, 200);
    intake_stop(&in);
    CHECK_EQ(kiln_mem_live(), 0);
}

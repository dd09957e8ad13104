/* SPDX-License-Identifier: Apache-2.0 */
/* Long requests have threads of their own, and know when their client goes away. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "h2client.h"
#include "net.h"
#include "test.h"

#define HEAD(line) line " HTTP/1.1\r\nhost: x\r\n"
#define GET(path)  HEAD("GET " path) "\r\n"

static void name(struct kiln_request *request)
{
    char text[17] = "";

    prctl(PR_GET_NAME, text);
    kiln_request_reply_text(request, 200, "%s", text);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint32_t n_inside, n_left;
static bool open_door;

/* Stays until the client is gone or the door is opened. */
static void stay(struct kiln_request *request)
{
    const _Atomic bool *gone = kiln_request_gone(request);
    bool leaves = false;

    pthread_mutex_lock(&lock);
    n_inside++;
    pthread_cond_broadcast(&changed);
    while (!leaves && !open_door) {
        pthread_mutex_unlock(&lock);
        sched_yield();
        leaves = atomic_load(gone);
        pthread_mutex_lock(&lock);
    }
    n_left += leaves;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    kiln_request_reply_text(request, 200, "stayed");
}

static void wait_for(const uint32_t *count, uint32_t n)
{
    pthread_mutex_lock(&lock);
    while (*count < n)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void open_it(void)
{
    pthread_mutex_lock(&lock);
    open_door = true;
    pthread_mutex_unlock(&lock);
}

static void setup(struct net_fixture *f, const struct kiln_server_opts *opts)
{
    const struct kiln_route routes[] = {
        {.method = "GET", .path = "/quick-name", .handler = name},
        {.method = "GET", .path = "/long-name", .handler = name, .lane = KILN_LANE_LONG},
        {.path = "/stay-quickly", .handler = stay},
        {.path = "/stay", .handler = stay, .lane = KILN_LANE_LONG},
        {.method = "POST", .path = "/hold-long", .handler = net_hold, .lane = KILN_LANE_LONG},
    };

    n_inside = n_left = 0;
    open_door = false;
    net_routes(f);
    for (size_t i = 0; i < KILN_ARRAY_LEN(routes); i++)
        CHECK_OK(kiln_router_add(f->router, &routes[i]));
    net_start(f, opts);
}

static void teardown(struct net_fixture *f)
{
    open_it();
    net_stop(f);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(lane, each_has_threads_of_its_own)
{
    struct net_fixture f = {0};
    int fd;

    setup(&f, NULL);
    fd = net_connect(f.port);
    net_send(fd, GET("/quick-name") GET("/long-name"));
    CHECK_TEXT(net_body(net_read_answer(fd)), "kiln-worker\n");
    CHECK_TEXT(net_body(net_read_answer(fd)), "kiln-long\n");
    close(fd);
    teardown(&f);
}

TEST(lane, long_requests_that_fill_theirs_do_not_hold_up_the_quick_ones)
{
    struct net_fixture f = {0};
    int fds[3], quick, n_refused = 0;

    setup(&f, &(struct kiln_server_opts){.workers = 1, .long_workers = 1, .queue_max = 1});
    for (int i = 0; i < 3; i++) {
        fds[i] = net_connect(f.port);
        net_send(fds[i], HEAD("GET /stay") "connection: close\r\n\r\n");
        wait_for(&n_inside, 1); /* the first has the only thread, one more may wait */
    }
    CHECK_EQ(net_status(net_read_first(fds + 1, 2)), 503);
    quick = net_connect(f.port);
    net_send(quick, GET("/quick-name"));
    CHECK_TEXT(net_body(net_read_answer(quick)), "kiln-worker\n");
    open_it();
    for (int i = 0; i < 3; i++) {
        n_refused += net_status(net_read_all(fds[i])) != 200;
        close(fds[i]);
    }
    CHECK_EQ(n_refused, 1);
    close(quick);
    teardown(&f);
}

TEST(lane, quick_requests_that_fill_theirs_do_not_hold_up_the_long_ones)
{
    struct net_fixture f = {0};
    int stuck, fd;

    setup(&f, &(struct kiln_server_opts){.workers = 1, .long_workers = 1});
    stuck = net_connect(f.port);
    net_send(stuck, GET("/stay-quickly"));
    wait_for(&n_inside, 1);
    fd = net_connect(f.port);
    net_send(fd, GET("/long-name"));
    CHECK_TEXT(net_body(net_read_answer(fd)), "kiln-long\n");
    close(fd);
    close(stuck);
    teardown(&f);
}

/* ---- gone ---- */

/* Runs a /stay until it is inside, lets `leave` end it, and waits for the handler to notice. */
static void leaves(const char *bytes, void (*leave)(int fd))
{
    struct net_fixture f = {0};
    int fd;

    setup(&f, NULL);
    fd = net_connect(f.port);
    net_send(fd, bytes);
    wait_for(&n_inside, 1);
    leave(fd);
    wait_for(&n_left, 1);
    teardown(&f);
}

static void close_it(int fd)
{
    close(fd);
}

static void reset_it(int fd)
{
    struct linger drop = {.l_onoff = 1};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &drop, sizeof(drop));
    close(fd);
}

TEST(lane, a_handler_sees_that_its_client_has_closed)
{
    leaves(GET("/stay"), close_it);
}

TEST(lane, a_handler_sees_that_its_client_has_reset_the_connection)
{
    leaves(GET("/stay"), reset_it);
}

TEST(lane, a_handler_sees_it_behind_requests_that_still_wait)
{
    leaves(HEAD("POST /stay") "content-length: 3\r\n\r\nabc" GET("/hello") "GET /half", close_it);
}

TEST(lane, who_only_ends_his_half_still_gets_the_answers)
{
    struct net_fixture f = {0};
    int fd;

    setup(&f, NULL);
    fd = net_connect(f.port);
    net_send(fd, GET("/stay") GET("/hello"));
    wait_for(&n_inside, 1);
    shutdown(fd, SHUT_WR);
    CHECK_TEXT(net_body(net_read_answer(fd)), "stayed\n");
    CHECK_TEXT(net_body(net_read_answer(fd)), "hello\n");
    CHECK(net_is_closed(fd));
    close(fd);
    teardown(&f);
}

TEST(lane, a_flood_behind_a_long_request_stays_in_the_socket)
{
    struct net_fixture f = {0};
    uint32_t n_answers = 0;
    int fd;

    setup(&f, NULL);
    fd = net_connect(f.port);
    net_send(fd, GET("/stay"));
    wait_for(&n_inside, 1);
    for (int i = 0; i < 4000; i++)
        net_send(fd, GET("/hello"));
    open_it();
    CHECK_TEXT(net_body(net_read_answer(fd)), "stayed\n");
    while (n_answers < 4000 && net_status(net_read_answer(fd)) == 200)
        n_answers++;
    CHECK_EQ(n_answers, 4000);
    close(fd);
    teardown(&f);
}

TEST(lane, a_handler_sees_that_its_stream_was_reset_and_others_go_on)
{
    struct net_fixture f = {0};
    struct h2_client *c = calloc(1, sizeof(*c));
    struct h2_stream *s, *other;

    setup(&f, NULL);
    h2_open(c, net_connect(f.port), NULL);
    s = h2_ask(c, "GET", "/stay", NULL, NULL);
    h2_flush(c);
    wait_for(&n_inside, 1);
    nghttp2_submit_rst_stream(c->session, 0, s->id, NGHTTP2_CANCEL);
    h2_flush(c);
    wait_for(&n_left, 1);
    other = h2_ask(c, "GET", "/hello", NULL, NULL);
    h2_wait(c, other);
    CHECK_EQ(other->status, 200);
    s = h2_ask(c, "GET", "/stay", NULL, NULL);
    h2_flush(c);
    wait_for(&n_inside, 2);
    close(c->fd);
    wait_for(&n_left, 2);
    h2_done(c);
    free(c);
    teardown(&f);
}

/* ---- the end, and memory ---- */

TEST(lane, the_end_of_the_server_ends_long_requests_too)
{
    struct net_fixture f = {0};
    int fd;

    setup(&f, &(struct kiln_server_opts){.long_workers = 1});
    fd = net_connect(f.port);
    net_send(fd, GET("/stay"));
    wait_for(&n_inside, 1);
    kiln_server_stop(f.server, 10); /* joins the thread, which sees that nobody waits */
    CHECK_EQ(n_left, 1);
    close(fd);
    teardown(&f);
}

TEST(lane, answers_of_the_long_lane_are_of_a_pool_of_their_own)
{
    struct net_fixture f = {0};
    struct kiln_pool quick, questions;
    int fd;

    kiln_pool_init(&quick, "quick", 1 << 20, NULL);
    kiln_pool_init(&questions, "questions", 1 << 20, NULL);
    setup(&f, &(struct kiln_server_opts){.pool = &quick, .long_pool = &questions});
    fd = net_connect(f.port);
    net_send(fd, HEAD("POST /hold-long") "content-length: 3\r\n\r\nabc");
    net_wait_held(1);
    net_release();
    CHECK_TEXT(net_body(net_read_answer(fd)), "abc");
    CHECK(questions.peak > 0);
    close(fd);
    teardown(&f);
    CHECK_EQ(questions.used, 0);
    CHECK_EQ(quick.used, 0);
}

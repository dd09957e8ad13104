/* SPDX-License-Identifier: Apache-2.0 */
/* The server with profiles that are drawn: what clients see, whatever they do. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compress.h"
#include "base/mem.h"
#include "codec/pprof.h"
#include "drawn.h"
#include "inproc/pprof/server.h"
#include "net.h"
#include "test.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"

/* ---- a source that draws ---- */

static _Atomic int marks, n_marked;

struct kiln_in_mark {
    int number;
};

static int fake_mark(enum kiln_in_profile which, struct kiln_in_mark **ret, struct kiln_err *err)
{
    struct kiln_in_mark *mark = kiln_calloc(1, sizeof(*mark));

    (void)which, (void)err;
    CHECK(mark != NULL);
    mark->number = ++n_marked;
    marks++;
    *ret = mark;
    return 0;
}

static void fake_drop(struct kiln_in_mark *mark)
{
    marks--;
    kiln_free(mark);
}

/* A reading of blocks that waits. */
static sem_t is_held, may_go;
static _Atomic bool holds;

static void hold(void)
{
    CHECK_OK(sem_init(&is_held, 0, 0));
    CHECK_OK(sem_init(&may_go, 0, 0));
    holds = true;
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) < 0)
        CHECK_EQ(errno, EINTR);
}

static int fake_read(enum kiln_in_profile which, const struct kiln_in_mark *from,
                     struct kiln_batch **ret, struct kiln_err *err)
{
    struct kiln_drawn heap[] = {
        {.stacks = "main;lib.so+0x10 5", .type = "alloc_objects", .unit = "count"},
        {.stacks = "main;lib.so+0x10 160", .type = "alloc_space", .unit = "bytes"},
        {.stacks = "main;lib.so+0x10 3", .type = "inuse_objects", .unit = "count"},
        {.stacks = "main;lib.so+0x10 96", .type = "inuse_space", .unit = "bytes"},
    };

    if (which == KILN_IN_PROFILE_BLOCK && holds) {
        sem_post(&is_held);
        wait_for(&may_go);
    }
    if (which == KILN_IN_PROFILE_MUTEX)
        return kiln_err_set(err, -EIO, NULL, "it went wrong");
    *ret = which == KILN_IN_PROFILE_HEAP ? kiln_test_batch(heap, KILN_ARRAY_LEN(heap))
                                         : kiln_test_stacks(from ? "main;work 2" : "main;work 7");
    return 0;
}

static int fake_name(const uint64_t *addresses, size_t n, struct kiln_buf *out)
{
    for (size_t i = 0; i < n; i++)
        kiln_buf_printf(out, "0x%llx f%zu\n", (unsigned long long)addresses[i], i);
    return 0;
}

static const struct kiln_in_source fake = {fake_mark, fake_drop, fake_read, fake_name};

static struct kiln_in_server *start(const char *address, const char *token)
{
    struct kiln_in_server_opts opts = {.address = address,
                                       .pages = {.source = &fake, .token = token}};
    struct kiln_in_server *server = NULL;
    struct kiln_err err = {0};

    CHECK_OK(kiln_in_server_start(&opts, &server, &err));
    return server;
}

static uint16_t port_of(const struct kiln_in_server *server)
{
    return (uint16_t)strtoul(strrchr(kiln_in_server_address(server), ':') + 1, NULL, 10);
}

static bool says(const char *answer, const char *text)
{
    return strcasestr(answer, text) != NULL;
}

/* The batch that an answer's body is. */
static struct kiln_batch *batch_of(const char *answer, size_t len, struct kiln_buf *plain)
{
    const char *body = net_body(answer);
    struct kiln_str packed = {body, len - (size_t)(body - answer)};
    struct kiln_builder *b = NULL;
    struct kiln_batch *batch = NULL;

    CHECK_EQ(kiln_compression_of(packed), KILN_GZIP);
    CHECK_OK(kiln_decompress(KILN_GZIP, packed, plain, NULL));
    CHECK_OK(kiln_builder_new(NULL, &b));
    CHECK_OK(kiln_pprof_decode(kiln_buf_str(plain), b, NULL));
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

/* All bytes of an answer: those of net.h are texts. */
static size_t ask(uint16_t port, const char *request, char *ret, size_t size)
{
    int fd = net_connect(port);
    size_t len = 0;
    ssize_t n;

    net_send(fd, request);
    while (len < size - 1 && (n = recv(fd, ret + len, size - 1 - len, 0)) > 0)
        len += (size_t)n;
    ret[len] = 0;
    close(fd);
    return len;
}

/* ---- what is served ---- */

TEST(pprof_server, a_profile_is_a_file_for_pprof)
{
    struct kiln_in_server *server = start("127.0.0.1:0", NULL);
    char answer[8192];
    size_t len = ask(port_of(server), GET("/debug/pprof/allocs"), answer, sizeof(answer));
    struct kiln_batch *batch;
    struct kiln_buf plain;

    CHECK_EQ(net_status(answer), 200);
    CHECK(says(answer, "content-type: application/octet-stream\r\n"));
    CHECK(says(answer, "content-disposition: attachment; filename=\"allocs\"\r\n"));
    CHECK(says(answer, "x-content-type-options: nosniff\r\n"));
    CHECK(!says(answer, "content-encoding"));
    kiln_buf_init(&plain, 1 << 20);
    batch = batch_of(answer, len, &plain);
    CHECK_EQ(batch->n_samples, 1);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[0]), 7);
    kiln_batch_unref(batch);
    kiln_buf_done(&plain);
    kiln_in_server_stop(server);
    CHECK_EQ(marks, 0);
}

TEST(pprof_server, a_window_is_what_happens_in_it)
{
    struct kiln_in_server *server = start("127.0.0.1:0", NULL);
    char answer[8192];
    size_t len = ask(port_of(server), GET("/debug/pprof/allocs?seconds=1"), answer, sizeof(answer));
    struct kiln_batch *batch;
    struct kiln_buf plain;

    CHECK_EQ(net_status(answer), 200);
    CHECK(says(answer, "filename=\"allocs-delta\"\r\n"));
    kiln_buf_init(&plain, 1 << 20);
    batch = batch_of(answer, len, &plain);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[0]), 2);
    kiln_batch_unref(batch);
    kiln_buf_done(&plain);
    kiln_in_server_stop(server);
    CHECK_EQ(marks, 0);
}

TEST(pprof_server, many_windows_overlap_and_all_end)
{
    struct kiln_in_server *server = start(":0", NULL);
    int fds[KILN_IN_CONNS];

    for (int i = 0; i < KILN_IN_CONNS; i++) {
        fds[i] = net_connect(port_of(server));
        net_send(fds[i], GET("/debug/pprof/profile?seconds=1"));
    }
    for (int i = 0; i < KILN_IN_CONNS; i++) {
        CHECK_EQ(net_status(net_read_all(fds[i])), 200);
        close(fds[i]);
    }
    kiln_in_server_stop(server);
    CHECK_EQ(marks, 0);
}

TEST(pprof_server, a_client_that_goes_takes_its_window_along)
{
    struct kiln_in_server *server = start("127.0.0.1:0", NULL);
    int fd = net_connect(port_of(server));

    net_send(fd, "GET /debug/pprof/profile?seconds=3600 HTTP/1.1\r\nHost: h\r\n\r\n");
    while (marks == 0)
        sched_yield();
    close(fd);
    while (marks > 0)
        sched_yield();
    kiln_in_server_stop(server);
}

TEST(pprof_server, stopping_ends_windows)
{
    struct kiln_in_server *server = start("127.0.0.1:0", NULL);
    int fd = net_connect(port_of(server));

    net_send(fd, "GET /debug/fgprof HTTP/1.1\r\nHost: h\r\n\r\n");
    while (marks == 0)
        sched_yield();
    kiln_in_server_stop(server);
    CHECK_EQ(marks, 0);
    CHECK(net_is_closed(fd));
    close(fd);
}

static int status_of(struct kiln_in_server *server, const char *request)
{
    return net_status(net_talk(port_of(server), request));
}

TEST(pprof_server, pages_for_people_are_text)
{
    struct kiln_in_server *server = start("127.0.0.1:0", NULL);
    uint16_t port = port_of(server);
    const char *answer = net_talk(port, GET("/debug/pprof/"));

    CHECK(says(answer, "content-type: text/html") && says(answer, "goroutine?debug=2"));
    answer = net_talk(port, GET("/debug/pprof/heap?debug=1"));
    CHECK(says(answer, "content-type: text/plain; charset=utf-8\r\n"));
    CHECK(!says(answer, "content-disposition"));
    CHECK(says(answer, "heap profile: 3: 96 [5: 160] @ heapprofile\n3: 96 [5: 160] @ 0x"));
    CHECK(says(net_talk(port, GET("/debug/pprof/cmdline")), "pprof_server"));
    answer = net_talk(port, GET("/debug/pprof"));
    CHECK_EQ(net_status(answer), 301);
    CHECK(says(answer, "location: /debug/pprof/\r\n"));
    kiln_in_server_stop(server);
}

TEST(pprof_server, names_are_asked_for_in_both_ways)
{
    struct kiln_in_server *server = start("127.0.0.1:0", NULL);
    uint16_t port = port_of(server);

    CHECK_TEXT(net_body(net_talk(port, GET("/debug/pprof/symbol"))), "num_symbols: 1\n");
    CHECK_TEXT(net_body(net_talk(port, GET("/debug/symbolz"))), "num_symbols: 1\n");
    CHECK_TEXT(net_body(net_talk(port, GET("/symbolz"))), "num_symbols: 1\n");
    CHECK_TEXT(net_body(net_talk(port, GET("/pprof/symbol?0x10+junk+0x2f"))),
               "num_symbols: 1\n0x10 f0\n0x2f f1\n");
    CHECK_TEXT(
        net_body(net_talk(port, "POST /debug/pprof/symbol HTTP/1.1\r\nHost: h\r\nConnection: "
                                "close\r\nContent-Length: 9\r\n\r\n0x10+0x11")),
        "num_symbols: 1\n0x10 f0\n0x11 f1\n");
    kiln_in_server_stop(server);
}

TEST(pprof_server, errors_have_the_shape_that_pprof_shows)
{
    static const struct {
        const char *request;
        int status;
        const char *text;
    } cases[] = {
        {GET("/debug/pprof/nothing"), 404, "Unknown profile"},
        {GET("/debug/pprof/trace?seconds=1"), 404, "no execution trace"},
        {GET("/elsewhere"), 404, "404 page not found"},
        {GET("/debug/pprof/heap?seconds=0"), 400, "must be a positive integer"},
        {GET("/debug/pprof/heap?seconds=1&debug=1"), 400, "do not go together"},
        {GET("/debug/pprof/profile?seconds=100000"), 400, "at most"},
        {GET("/debug/pprof/mutex"), 500, "it went wrong"},
        {"POST /debug/pprof/heap HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", 405, ""},
        {"GET /debug/pprof/heap HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", 413, ""},
        {"nonsense\r\n\r\n", 400, ""},
        {"GET / HTTP/3.0\r\nHost: h\r\n\r\n", 505, ""},
    };
    struct kiln_in_server *server = start("127.0.0.1:0", NULL);

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        const char *answer = net_talk(port_of(server), cases[i].request);

        CHECK_EQ(net_status(answer), cases[i].status);
        CHECK(says(answer, "x-go-pprof: 1\r\n") && says(answer, "content-type: text/plain"));
        CHECK(says(answer, cases[i].text) && !says(answer, "content-disposition"));
    }
    kiln_in_server_stop(server);
    CHECK_EQ(marks, 0);
}

TEST(pprof_server, a_token_is_asked_for_where_there_is_one)
{
    struct kiln_in_server *server = start("127.0.0.1:0", "secret");

#define WITH(authorization)                                                                        \
    "GET /debug/pprof/ HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: " authorization  \
    "\r\n\r\n"
    CHECK_EQ(status_of(server, GET("/debug/pprof/")), 401);
    CHECK_EQ(status_of(server, GET("/nowhere")), 401);
    CHECK_EQ(status_of(server, WITH("Bearer secret")), 200);
    CHECK_EQ(status_of(server, WITH("bearer  secret")), 200);
    CHECK_EQ(status_of(server, WITH("Bearer secre")), 401);
    CHECK_EQ(status_of(server, WITH("Bearer secretsecret")), 401);
    CHECK_EQ(status_of(server, WITH("Bearer ")), 401);
    CHECK_EQ(status_of(server, WITH("Basic OnNlY3JldA==")), 200); /* :secret */
    CHECK_EQ(status_of(server, WITH("Basic Z286c2VjcmV0")), 200); /* go:secret */
    CHECK_EQ(status_of(server, WITH("Basic c2VjcmV0")), 401);     /* secret */
    CHECK_EQ(status_of(server, WITH("Basic ????")), 401);
    kiln_in_server_stop(server);
}

TEST(pprof_server, a_connection_serves_many_requests)
{
    struct kiln_in_server *server = start("127.0.0.1:0", NULL);
    int fd = net_connect(port_of(server));

    for (int i = 0; i < 3; i++) {
        net_send(fd, "GET /debug/pprof/symbol?0x1 HTTP/1.1\r\nHost: h\r\n\r\n");
        CHECK_EQ(net_status(net_read_answer(fd)), 200);
    }
    net_send(fd, "GET /debug/pprof/symbol HTTP/1.1\r\nHost: h\r\n\r\n"
                 "HEAD /debug/pprof/symbol HTTP/1.1\r\nHost: h\r\n\r\n" GET("/nowhere"));
    CHECK_EQ(net_status(net_read_answer(fd)), 200);
    CHECK(says(net_read_all(fd), "HTTP/1.1 404"));
    close(fd);
    kiln_in_server_stop(server);
}

/* ---- clients that mean no good ---- */

TEST(pprof_server, those_who_dawdle_make_room)
{
    struct kiln_in_server *server = start("127.0.0.1:0", NULL);
    int fds[KILN_IN_CONNS + 8];

    for (size_t i = 0; i < KILN_ARRAY_LEN(fds); i++)
        fds[i] = net_connect(port_of(server));
    while (status_of(server, GET("/debug/pprof/")) == 503) /* they have a second */
        ;
    CHECK_EQ(status_of(server, GET("/debug/pprof/")), 200);
    for (size_t i = 0; i < KILN_ARRAY_LEN(fds); i++)
        close(fds[i]);
    kiln_in_server_stop(server);
}

/* With the server's thread held up, so that it finds all of them at once. */
TEST(pprof_server, every_client_that_has_asked_is_answered)
{
    struct kiln_in_server *server = start("127.0.0.1:0", NULL);
    int fds[KILN_IN_CONNS - 1], held, late[2 * KILN_IN_CONNS];

    for (int i = 0; i < KILN_IN_CONNS - 1; i++) {
        fds[i] = net_connect(port_of(server));
        net_send(fds[i], GET("/debug/pprof/profile?seconds=3600"));
    }
    while (marks < KILN_IN_CONNS - 1)
        sched_yield();
    hold();
    held = net_connect(port_of(server));
    net_send(held, GET("/debug/pprof/block"));
    wait_for(&is_held);
    for (size_t i = 0; i < KILN_ARRAY_LEN(late); i++) {
        late[i] = net_connect(port_of(server));
        net_send(late[i], GET("/debug/pprof/symbol"));
    }
    holds = false;
    sem_post(&may_go);
    CHECK_EQ(net_status(net_read_all(held)), 200);
    for (size_t i = 0; i < KILN_ARRAY_LEN(late); i++) {
        int status = net_status(net_read_all(late[i]));

        CHECK(status == 200 || status == 503);
        close(late[i]);
    }
    for (int i = 0; i < KILN_IN_CONNS - 1; i++)
        close(fds[i]);
    close(held);
    kiln_in_server_stop(server);
    CHECK_EQ(marks, 0);
}

/* A request comes in two pieces when the answer is there already: a reset would refuse the second.
 */
static int status_after_a_while(struct kiln_in_server *server)
{
    struct pollfd answered = {.fd = net_connect(port_of(server)), .events = POLLIN};
    const char *answer;

    poll(&answered, 1, -1);
    CHECK_EQ(send(answered.fd, "GET /", 5, MSG_NOSIGNAL), 5);
    usleep(1000);
    CHECK_EQ(send(answered.fd, "debug", 5, MSG_NOSIGNAL), 5);
    answer = net_read_all(answered.fd);
    close(answered.fd);
    return net_status(answer);
}

TEST(pprof_server, where_all_are_served_another_is_turned_away)
{
    struct kiln_in_server *server = start("127.0.0.1:0", NULL);
    int fds[KILN_IN_CONNS];

    for (int i = 0; i < KILN_IN_CONNS; i++) {
        fds[i] = net_connect(port_of(server));
        net_send(fds[i], GET("/debug/pprof/profile?seconds=3600"));
    }
    while (marks < KILN_IN_CONNS)
        sched_yield();
    CHECK_EQ(net_status(net_talk(port_of(server), "")), 503);
    for (int i = 0; i < 3 * KILN_IN_CONNS; i++) /* with a request that comes when all is said */
        CHECK_EQ(status_after_a_while(server), 503);
    for (int i = 0; i < KILN_IN_CONNS; i++)
        close(fds[i]);
    while (marks > 0)
        sched_yield();
    CHECK_EQ(status_of(server, GET("/debug/pprof/")), 200);
    kiln_in_server_stop(server);
}

TEST(pprof_server, garbage_and_half_requests_harm_nobody)
{
    struct kiln_in_server *server = start("127.0.0.1:0", NULL);
    unsigned seed = 7;

    for (int i = 0; i < 200; i++) {
        int fd = net_connect(port_of(server));
        char bytes[257];

        for (size_t k = 0; k < sizeof(bytes) - 1; k++) {
            seed = seed * 1103515245 + 12345;
            bytes[k] = (char)(1 + (seed >> 16) % 255);
        }
        bytes[sizeof(bytes) - 1] = 0;
        if (i % 2)
            memcpy(bytes, "GET /debug/pprof/heap?seconds=1 HTTP/1.1\r\nHost: h\r\n", 51);
        net_send(fd, bytes);
        close(fd);
    }
    CHECK_EQ(status_of(server, GET("/debug/pprof/")), 200);
    kiln_in_server_stop(server);
    CHECK_EQ(marks, 0);
}

/* ---- where it listens ---- */

TEST(pprof_server, a_port_without_a_host_is_the_loopbacks)
{
    struct kiln_in_server *server = start(":0", NULL);

    CHECK(strncmp(kiln_in_server_address(server), "127.0.0.1:", 10) == 0);
    CHECK(port_of(server) > 0);
    kiln_in_server_stop(server);
}

TEST(pprof_server, a_port_that_is_taken_is_said)
{
    struct kiln_in_server *first = start("127.0.0.1:0", NULL), *second = NULL;
    struct kiln_in_server_opts opts = {.address = kiln_in_server_address(first),
                                       .pages = {.source = &fake}};
    struct kiln_err err = {0};

    CHECK_EQ(kiln_in_server_start(&opts, &second, &err), -EADDRINUSE);
    CHECK(strstr(err.text, "already in use") && !second);
    kiln_in_server_stop(first);
}

TEST(pprof_server, a_socket_of_a_path_is_its_owners)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    char folder[] = "/tmp/kiln-pprof-XXXXXX", address[64], answer[4096];
    struct kiln_in_server *server;
    struct stat st;
    ssize_t n;
    int own[8], fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(mkdtemp(folder) != NULL);
    snprintf(address, sizeof(address), "unix:%s/pprof", folder);
    for (size_t i = 0; i < KILN_ARRAY_LEN(own); i++)
        CHECK((own[i] = open(folder, O_RDONLY | O_CLOEXEC)) >= 0);
    server = start(address, NULL);
    CHECK_OK(stat(folder, &st));
    CHECK_EQ(st.st_mode & 0777, 0700); /* not what the program has open by the same number */
    for (size_t i = 0; i < KILN_ARRAY_LEN(own); i++)
        close(own[i]);
    CHECK_TEXT(kiln_in_server_address(server), address);
    CHECK_OK(stat(address + 5, &st));
    CHECK_EQ(st.st_mode & 0777, 0600);
    memcpy(name.sun_path, address + 5, strlen(address + 5));
    CHECK_OK(connect(fd, (struct sockaddr *)&name, sizeof(name)));
    net_send(fd, GET("/debug/pprof/symbol"));
    n = recv(fd, answer, sizeof(answer) - 1, 0);
    CHECK(n > 0);
    answer[n] = 0;
    CHECK_EQ(net_status(answer), 200);
    close(fd);
    kiln_in_server_stop(server);
    CHECK(stat(address + 5, &st) < 0);
    rmdir(folder);
}

TEST(pprof_server, a_forked_child_has_nothing_of_it)
{
    struct kiln_in_server *server = start("127.0.0.1:0", NULL);
    int gate[2], status;
    pid_t child;
    char byte;
    int fd = net_connect(port_of(server));

    net_send(fd, GET("/debug/pprof/profile?seconds=3600"));
    while (marks == 0)
        sched_yield();
    CHECK_OK(pipe(gate));
    child = fork();
    if (child == 0) {
        close(gate[1]);
        _exit(read(gate[0], &byte, 1) == 0 ? 0 : 1); /* until the parent has looked */
    }
    close(gate[0]);
    kiln_in_server_stop(server);
    CHECK(net_is_closed(fd));
    server = start("127.0.0.1:0", NULL);
    CHECK_EQ(status_of(server, GET("/debug/pprof/")), 200);
    kiln_in_server_stop(server);
    close(gate[1]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    close(fd);
}

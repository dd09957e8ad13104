/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole connection, from its first byte to its end: HTTP/1.1 or HTTP/2, as the bytes have it.
 * The first byte of the input says in what pieces the rest arrives.  One thread plays the loop and
 * the workers in turn.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "net/server_int.h"

static void echo(struct kiln_request *request)
{
    struct kiln_reply reply = {.status = 200, .content_type = "text/plain", .body = request->body};

    if (request->n_headers > 2) {
        reply.trailers[0] = (struct kiln_header){KILN_STR("grpc-status"), KILN_STR("0")};
        reply.n_trailers = request->http_version == 2;
    }
    kiln_request_reply(request, &reply);
}

static int guard(void *context, struct kiln_request *request, enum kiln_access access,
                 struct kiln_reply *reply)
{
    (void)context, (void)request;
    *reply = (struct kiln_reply){.status = 401, .content_type = "text/plain"};
    return access == KILN_ACCESS_ADMIN ? -1 : 0;
}

static int add_routes(struct kiln_router *router)
{
    const struct kiln_route routes[] = {
        {.method = "GET", .path = "/", .handler = echo},
        {.method = "POST", .path = "/", .handler = echo},
        {.method = "POST", .path = "/a*", .handler = echo, .body_max = 16},
        {.method = "POST", .path = "/c", .handler = echo, .access = KILN_ACCESS_ADMIN},
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < KILN_ARRAY_LEN(routes); i++)
        r = kiln_router_add(router, &routes[i]);
    kiln_router_guard(router, (struct kiln_guard){.check = guard});
    return r;
}

/* One turn of the loop and of the workers, and whatever was answered is read. */
static void turn(struct kiln_server *server, int fd)
{
    struct kiln_queue *queue = &server->crews[KILN_LANE_QUICK].queue;
    char sink[4096];

    event_base_loop(server->loops[0].base, EVLOOP_NONBLOCK);
    while (queue->n)
        kiln_exchange_handle(kiln_queue_pop(queue));
    event_base_loop(server->loops[0].base, EVLOOP_NONBLOCK);
    while (recv(fd, sink, sizeof(sink), MSG_DONTWAIT) > 0)
        ;
}

static void talk(struct kiln_server *server, int fd, const uint8_t *data, size_t size)
{
    size_t step = size ? (size_t)data[0] * 8 + 1 : 1;

    for (size_t at = 1; at < size;) {
        size_t n = size - at < step ? size - at : step;
        ssize_t sent = send(fd, data + at, n, MSG_NOSIGNAL | MSG_DONTWAIT);

        turn(server, fd);
        if (sent <= 0)
            break;
        at += (size_t)sent;
    }
    shutdown(fd, SHUT_WR);
    turn(server, fd);
}

static void run(struct kiln_server *server, struct kiln_router *router, const uint8_t *data,
                size_t size)
{
    struct kiln_listener listener = {.server = server, .router = router, .fd = -1};
    struct kiln_loop loop;
    int fds[2];

    if (kiln_loop_init(&loop, server) < 0)
        return;
    server->loops = &loop;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0) {
        atomic_fetch_add(&server->n_conns, 1);
        kiln_loop_begin(&loop);
        kiln_conn_open(&loop, &listener, fds[0], &(struct kiln_peer){.local = true});
        talk(server, fds[1], data, size);
        kiln_loop_close_all(&loop);
        close(fds[1]);
    }
    turn(server, -1);
    kiln_loop_done(&loop);
    server->loops = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_pool pool;
    struct kiln_server_opts opts = {.pool = &pool, .header_max = 2048, .body_max = 4096};
    struct kiln_router *router;
    struct kiln_server *server;

    kiln_pool_init(&pool, "fuzz", 64 << 10, NULL);
    if (kiln_router_new(&router) < 0)
        return 0;
    if (add_routes(router) == 0 && kiln_server_new(&opts, &server) == 0) {
        run(server, router, data, size);
        FUZZ_CHECK(atomic_load(&server->n_conns) == 0);
        kiln_server_free(server);
        FUZZ_CHECK(atomic_load(&pool.used) == 0);
    }
    kiln_router_free(router);
    return 0;
}

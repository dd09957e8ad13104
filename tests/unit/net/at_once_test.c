/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that the loop answers by itself, among others that it leaves to workers. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "net.h"
#include "test.h"

static void handle(struct kiln_request *request)
{
    kiln_request_reply_text(request, 200, "worker\n");
}

/* Takes what begins with "y". */
static bool take(struct kiln_request *request)
{
    if (!request->body.len || request->body.ptr[0] != 'y')
        return false;
    kiln_request_reply_text(request, 200, "loop\n");
    return true;
}

static void start(struct net_fixture *f)
{
    *f = (struct net_fixture){0};
    CHECK_OK(kiln_router_new(&f->router));
    CHECK_OK(kiln_router_add(
        f->router, &(struct kiln_route){
                       .method = "POST", .path = "/now", .handler = handle, .at_once = take}));
    net_start(f, &(struct kiln_server_opts){.workers = 1});
}

TEST(at_once, answers_keep_their_order_whoever_gives_them)
{
    static const char *const words[] = {"loop", "worker", "loop", "loop", "worker", "loop"};
    struct net_fixture f;
    char requests[2048];
    size_t n = 0;
    int fd;

    start(&f);
    for (size_t i = 0; i < KILN_ARRAY_LEN(words); i++)
        n += (size_t)snprintf(requests + n, sizeof(requests) - n,
                              "POST /now HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n%s",
                              words[i][0] == 'l' ? "y" : "n");
    fd = net_connect(f.port);
    net_send(fd, requests); /* all of them behind each other */
    for (size_t i = 0; i < KILN_ARRAY_LEN(words); i++) {
        const char *answer = net_read_answer(fd);

        CHECK_EQ(net_status(answer), 200);
        CHECK(strncmp(net_body(answer), words[i], strlen(words[i])) == 0);
    }
    close(fd);
    net_stop(&f);
}

TEST(at_once, what_is_large_is_for_a_worker)
{
    size_t size = KILN_AT_ONCE_BYTES + 1;
    char *body = malloc(size + 1), head[128];
    struct net_fixture f;
    int fd;

    memset(body, 'y', size);
    body[size] = '\0';
    start(&f);
    fd = net_connect(f.port);
    for (size_t len = size; len >= size - 1; len--) {
        snprintf(head, sizeof(head), "POST /now HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n",
                 len);
        net_send(fd, head);
        net_send_str(fd, (struct kiln_str){body, len});
        CHECK(strncmp(net_body(net_read_answer(fd)), len == size ? "worker" : "loop", 4) == 0);
    }
    close(fd);
    net_stop(&f);
    free(body);
}

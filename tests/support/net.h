/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net - a server for a test, and a client that sends any bytes at all.
 */
#ifndef KILN_TESTS_SUPPORT_NET_H
#define KILN_TESTS_SUPPORT_NET_H

#include <pthread.h>

#include "net/server.h"

/* For limits that begin with a connection: by then a client has begun, on a busy machine, too. */
enum { NET_BEGIN_MS = 500 };

/* A server on a free port of 127.0.0.1. */
struct net_fixture {
    struct kiln_server *server;
    struct kiln_router *router;
    struct kiln_keepalive keepalive;
    uint16_t port;
};

/*
 * With the routes every test may use:
 *   POST /echo        gives the body back     GET /hello     "hello"
 *   GET /big          64 kB of text           GET /rest/...  what follows it
 *   POST /small       at most 10 bytes        POST /hold     answered by net_release()
 */
void net_routes(struct net_fixture *f);
/* Makes what is still missing, and starts; the fixture is zero at first. */
void net_start(struct net_fixture *f, const struct kiln_server_opts *opts);
void net_stop(struct net_fixture *f);

/* Waits until so many requests are held by POST /hold; answers them all. */
void net_wait_held(uint32_t n);
void net_release(void);
void net_hold(struct kiln_request *request); /* the handler of /hold */

/* A socket that listens on a free port, for who is to meet another server than ours. */
int net_listen(uint16_t *ret_port);
/* A connected socket, with a time-out that no working test reaches. */
int net_connect(uint16_t port);
/* The same, with "abc" sent to POST /hold, which holds it. */
int net_connect_held(uint16_t port);
void net_send(int fd, const char *bytes);
void net_send_str(int fd, struct kiln_str bytes);
/* Byte by byte, each in a packet of its own. */
void net_send_slowly(int fd, const char *bytes);
/* Everything until the server ends the connection; in a static buffer. */
const char *net_read_all(int fd);
/* One answer, its body included (by Content-Length); in a static buffer. */
const char *net_read_answer(int fd);
/* How the answer starts on the first of these connections that has one; nothing is taken. */
const char *net_read_first(const int *fds, int n);
bool net_readable(int fd, int wait_ms);
/* The server has ended the connection. */
bool net_is_closed(int fd);
/* Waits until it has, without reading what it sent. */
void net_wait_closed(int fd);

/* Connects, sends, reads until the end, closes. */
const char *net_talk(uint16_t port, const char *bytes);

/* Of an answer of HTTP/1.1: its status (0: it is none), and its body. */
int net_status(const char *answer);
const char *net_body(const char *answer);

#endif /* KILN_TESTS_SUPPORT_NET_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net - a server for a test, and a client that sends any bytes at all.
 */
#ifndef KILN_TESTS_SUPPORT_NET_H
#define KILN_TESTS_SUPPORT_NET_H

#include "net/server.h"

/* A server on a free port of 127.0.0.1. */
struct net_fixture {
    struct kiln_server *server;
    struct kiln_router *router;
    uint16_t port;
};

/*
 * With the routes every test may use:
 *   POST /echo        gives the body back     GET /hello     "hello"
 *   GET /big          64 kB of text           GET /rest/...  what follows it
 *   POST /small       at most 10 bytes        POST /hold     answered by net_release()
 */
void net_start(struct net_fixture *f, const struct kiln_server_opts *opts);
void net_stop(struct net_fixture *f);

/* Waits until so many requests are held by POST /hold; answers them all. */
void net_wait_held(uint32_t n);
void net_release(void);

/* A connected socket, with a time-out that no working test reaches. */
int net_connect(uint16_t port);
void net_send(int fd, const char *bytes);
void net_send_str(int fd, struct kiln_str bytes);
/* Byte by byte, each in a packet of its own. */
void net_send_slowly(int fd, const char *bytes);
/* Everything until the server ends the connection; in a static buffer. */
const char *net_read_all(int fd);
/* One answer, its body included (by Content-Length); in a static buffer. */
const char *net_read_answer(int fd);
/* The server has ended the connection. */
bool net_is_closed(int fd);

/* Connects, sends, reads until the end, closes. */
const char *net_talk(uint16_t port, const char *bytes);

#endif /* KILN_TESTS_SUPPORT_NET_H */

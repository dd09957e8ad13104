/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_int - an answer while it comes in.  Of the clients and client_answer.c alone; apart, so
 * that tests can look at answers without a connection.
 */
#ifndef KILN_NET_CLIENT_INT_H
#define KILN_NET_CLIENT_INT_H

#include "net/client.h"

struct kiln_collected {
    struct kiln_answer *answer;
    const char *server; /* for errors */
    size_t answer_max;
    size_t header_bytes;
    char type[64];     /* Content-Type */
    char encoding[16]; /* grpc-encoding */
    char grpc_status[12];
    char retry_after[64];
    struct kiln_buf message, details; /* grpc-message, grpc-status-details-bin */
};

/* Clears the answer (its memory is kept) and gets ready for the next. */
void kiln_collected_init(struct kiln_collected *c, struct kiln_answer *answer, const char *server,
                         size_t answer_max);
void kiln_collected_done(struct kiln_collected *c);

/* A header or a trailer ("name: value"); a piece of the body.  False: too much, stop. */
bool kiln_collected_line(struct kiln_collected *c, struct kiln_str line);
bool kiln_collected_field(struct kiln_collected *c, struct kiln_str name, struct kiln_str value);
bool kiln_collected_bytes(struct kiln_collected *c, struct kiln_str bytes);

/* What the answer, whose status is known by now, says to the caller. */
void kiln_collected_http(struct kiln_collected *c);
KILN_CHECK int kiln_collected_grpc(struct kiln_collected *c, struct kiln_err *err);

/* Copies a text, shortened to what fits. */
void kiln_keep_text(struct kiln_str text, char *ret, size_t size);

#endif /* KILN_NET_CLIENT_INT_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote - talking to a server: where it is, who we are, and trying again.
 *
 * Threads: a client has one owner at a time; the functions have no state.
 */
#ifndef KILN_CLI_REMOTE_H
#define KILN_CLI_REMOTE_H

#include <limits.h>

#include "cli/cli.h"
#include "net/client.h"

/* --server, --token, --tenant, --ca-file, --timeout. */
extern const struct kiln_option_group kiln_group_remote;

/* The address of --server, KILN_SERVER, or http://127.0.0.1:4040. */
const char *kiln_remote_address(const struct kiln_cli *cli);

/*
 * The address of a socket where a server of this host may listen, which knows there who asks:
 * KILN_SOCKET, /run/kiln/kiln.sock, or that of this user's own server.  False: there is none that
 * we may connect to.
 */
bool kiln_remote_socket(char ret_address[PATH_MAX + 8]);

/* A client as the options say; answers may have `answer_max` bytes (0: 4 MiB). */
KILN_CHECK int kiln_remote_open(const struct kiln_cli *cli, size_t answer_max,
                                struct kiln_client **ret_client, struct kiln_err *err);

/* The same, whose calls end soon once `cancel` is true. */
KILN_CHECK int kiln_remote_open_until(const struct kiln_cli *cli, size_t answer_max,
                                      const _Atomic bool *cancel, struct kiln_client **ret_client,
                                      struct kiln_err *err);

/* Appends a text to an address, with %XX for what has a meaning there; `/` stays where it may. */
void kiln_remote_put_text(struct kiln_buf *out, struct kiln_str text, bool slashes);
/* Appends `?name=value`, or `&name=value` where there is one already; a NULL value: nothing. */
void kiln_remote_put_param(struct kiln_buf *out, const char *name, const char *value);
void kiln_remote_put_number(struct kiln_buf *out, const char *name, uint64_t value);

/* How long to go on, and what happened. */
struct kiln_tries {
    uint64_t give_up_ns;    /* time for all tries of one call; 0: only one try */
    bool grpc;              /* a unary gRPC call */
    bool insist;            /* also where nobody listens at the first try */
    uint32_t again;         /* added to: tries after the first */
    uint64_t last_start_ns; /* when the last try began (monotonic) */
};

/*
 * Calls, and calls again where the answer or the failure allows it: after what the server asks for,
 * else after some 0.1 s, doubled each time up to 5 s.  Returns as kiln_client_call() does
 * for the last try.
 */
KILN_CHECK int kiln_remote_call(struct kiln_client *client, const struct kiln_call *call,
                                struct kiln_tries *tries, struct kiln_answer *answer,
                                struct kiln_err *err);

/* True if the answer is one of success. */
bool kiln_remote_accepted(const struct kiln_answer *answer);

#endif /* KILN_CLI_REMOTE_H */

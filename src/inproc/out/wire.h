/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire - a connection to a receiver: TCP, a Unix socket, or TLS over TCP.
 *
 * Nothing here waits longer than its deadline; names but "localhost" are looked up by
 * getaddrinfo(), which has time limits of its own (/etc/resolv.conf), on the thread that calls.
 *
 * Threads: one owner at a time, but for the `end_ns` of a deadline.
 */
#ifndef KILN_INPROC_OUT_WIRE_H
#define KILN_INPROC_OUT_WIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* Until when something may take, on the monotonic clock. */
struct kiln_in_deadline {
    uint64_t at_ns;
    const _Atomic uint64_t *end_ns; /* where not NULL and not 0: no longer than this */
};
/* How long until then; 0: it is past.  At most a slice, so that a change of *end_ns is noticed. */
int kiln_in_deadline_slice_ms(const struct kiln_in_deadline *until);

/* Where to; all of it is borrowed while the wire is. */
struct kiln_in_wire_opts {
    const char *server; /* "http://host:port", "https://...", "unix:/path" */
    const char *ca_file, *cert_file, *key_file; /* PEM; NULL: the system's, none */
    bool insecure;                              /* do not look at the certificate */
    bool http2;                                 /* what TLS is to agree on */
};

struct kiln_in_wire;
KILN_CHECK int kiln_in_wire_open(const struct kiln_in_wire_opts *opts,
                                 const struct kiln_in_deadline *until,
                                 struct kiln_in_wire **ret_wire, struct kiln_err *err);
void kiln_in_wire_close(struct kiln_in_wire *wire);

/* All of it.  0 or a negative errno: -ETIMEDOUT, -EPIPE, -ECONNRESET... */
KILN_CHECK int kiln_in_wire_write(struct kiln_in_wire *wire, struct kiln_str bytes,
                                  const struct kiln_in_deadline *until);
/* What is there, once something is.  How many bytes; 0: the other side has closed. */
KILN_CHECK int kiln_in_wire_read(struct kiln_in_wire *wire, void *to, size_t size,
                                 const struct kiln_in_deadline *until);
/* Whether nothing has come since it was last used: neither bytes nor its end. */
bool kiln_in_wire_is_quiet(const struct kiln_in_wire *wire);

/* Who is at the other end of a Unix socket: its process, or 0. */
int32_t kiln_in_wire_peer(const struct kiln_in_wire *wire);

/* ---- addresses ---- */

struct kiln_in_address {
    char host[256]; /* or the path of a Unix socket */
    char port[8];
    bool local, tls;
};
KILN_CHECK int kiln_in_address_parse(const char *server, struct kiln_in_address *ret_address,
                                     struct kiln_err *err);

#endif /* KILN_INPROC_OUT_WIRE_H */

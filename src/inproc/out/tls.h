/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls - TLS by the OpenSSL of the host, which is loaded when somebody first asks for it.
 *
 * It is loaded beside whatever OpenSSL the program itself has, neither seeing the other.
 *
 * Threads: one owner at a time; loading is safe from anywhere.
 */
#ifndef KILN_INPROC_OUT_TLS_H
#define KILN_INPROC_OUT_TLS_H

#include "inproc/out/wire.h"

struct kiln_in_tls;

/* Over a socket that does not block, which stays the caller's.  Shakes hands, and looks at the
 * certificate unless `insecure`. */
KILN_CHECK int kiln_in_tls_open(int fd, const char *host, const struct kiln_in_wire_opts *opts,
                                const struct kiln_in_deadline *until, struct kiln_in_tls **ret_tls,
                                struct kiln_err *err);
void kiln_in_tls_close(struct kiln_in_tls *tls);

/* One step of reading or writing: how many bytes, 0 at the end, -EAGAIN with what to wait for in
 * *ret_events (POLLIN, POLLOUT), or a negative errno. */
KILN_CHECK int kiln_in_tls_read(struct kiln_in_tls *tls, void *to, size_t size, short *ret_events);
KILN_CHECK int kiln_in_tls_write(struct kiln_in_tls *tls, struct kiln_str bytes, short *ret_events);

/* In a forked child: no call is under way. */
void kiln_in_tls_forked(void);

#endif /* KILN_INPROC_OUT_TLS_H */

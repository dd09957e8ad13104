/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address - an endpoint as the Collector writes it, as a server and a path.
 *
 * An endpoint of gRPC is host:port, and TLS unless tls::insecure; or has a scheme that says it.
 * What stands behind the port is put before the path of the method, for a proxy that wants it:
 * https://host/otlp is port 443, /otlp/opentelemetry.proto.collector....
 *
 * Threads: no state.
 */
#ifndef KILN_COLLECTOR_EXPORTERS_ADDRESS_H
#define KILN_COLLECTOR_EXPORTERS_ADDRESS_H

#include "base/buf.h"
#include "base/err.h"

/* Where to, in two texts that end in NUL: "http://host:4317", "unix:/path"; "/v1/traces". */
struct kiln_address {
    struct kiln_buf server, path;
};

void kiln_address_init(struct kiln_address *address);
void kiln_address_done(struct kiln_address *address);
/*
 * `tls`: what counts where the endpoint has no scheme.  `behind`: what is put behind the path that
 * stands there; NULL: it is the very path.
 */
KILN_CHECK int kiln_address_split(const char *endpoint, bool tls, const char *behind,
                                  struct kiln_address *ret);

#endif /* KILN_COLLECTOR_EXPORTERS_ADDRESS_H */

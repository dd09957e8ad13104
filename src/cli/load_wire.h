/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_wire - requests of a load as bytes, and the calls that carry them.
 *
 * Threads: no state.
 */
#ifndef KILN_CLI_LOAD_WIRE_H
#define KILN_CLI_LOAD_WIRE_H

#include "base/compress.h"
#include "cli/load.h"
#include "net/client.h"

enum kiln_load_protocol { KILN_LOAD_OTLP_GRPC, KILN_LOAD_OTLP_HTTP, KILN_LOAD_PYROSCOPE };

struct kiln_load_wire {
    enum kiln_load_protocol protocol;
    enum kiln_compression compression;
};

/* Appends the body of a request to `out`; *ret_raw is its size before compression. */
KILN_CHECK int kiln_load_encode(const struct kiln_load_wire *wire, const struct kiln_batch *batch,
                                const struct kiln_load_request *request, struct kiln_buf *out,
                                size_t *ret_raw, struct kiln_err *err);

/* The call with such a body. */
struct kiln_call kiln_load_call(const struct kiln_load_wire *wire, struct kiln_str body);

/* How a file with such a body is called: ".otlp.gz". */
const char *kiln_load_ending(const struct kiln_load_wire *wire);

#endif /* KILN_CLI_LOAD_WIRE_H */

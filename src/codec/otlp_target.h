/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_target - where OTLP goes and how, out of options and OTEL_EXPORTER_OTLP_* variables.
 *
 * Of each value, what the options say counts most, then OTEL_EXPORTER_OTLP_PROFILES_x, then
 * OTEL_EXPORTER_OTLP_x.  An endpoint is a base that HTTP puts /v1development/profiles behind, but
 * OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT is the very address.  gRPC looks at scheme, host and port
 * alone.  Without a scheme it is http, unless OTEL_EXPORTER_OTLP_INSECURE is false.
 *
 * Threads: constant once read.
 */
#ifndef KILN_CODEC_OTLP_TARGET_H
#define KILN_CODEC_OTLP_TARGET_H

#include "base/arena.h"
#include "base/compress.h"
#include "base/err.h"
#include "base/http1.h"

enum kiln_otlp_protocol { KILN_OTLP_GRPC, KILN_OTLP_HTTP, KILN_OTLP_HTTP_JSON };

/* What is stated rather than looked for in variables; NULL, 0: nothing is. */
struct kiln_otlp_target_opts {
    const char *endpoint, *protocol, *compression, *headers;
    const char *path;                      /* the very path of each request */
    const struct kiln_header *header_list; /* beside `headers`, and as they are */
    uint32_t n_header_list;
    const char *ca_file, *cert_file, *key_file;
    bool insecure, checks_peer;
    uint64_t timeout_ns;
};

enum { KILN_OTLP_HEADERS_MAX = 64 };

struct kiln_otlp_target {
    enum kiln_otlp_protocol protocol;
    enum kiln_compression compression;
    bool is_compression_said;                   /* by an option or a variable */
    const char *server;                         /* "http://host:4317", "unix:/path" */
    const char *path;                           /* of each request */
    const char *ca_file, *cert_file, *key_file; /* NULL: none */
    bool insecure;                              /* do not look at the server's certificate */
    bool checks_peer;                           /* of a Unix socket: see base/peer.h */
    uint32_t timeout_ms;
    struct kiln_header headers[KILN_OTLP_HEADERS_MAX];
    uint32_t n_headers;
    struct kiln_budget budget;
    struct kiln_arena arena; /* of all texts */
};

/* `variable` is getenv(), or a test's.  `target` must stay where it is; done also after a failure.
 */
KILN_CHECK int kiln_otlp_target_find(const struct kiln_otlp_target_opts *opts,
                                     char *(*variable)(const char *name),
                                     struct kiln_otlp_target *target, struct kiln_err *err);
void kiln_otlp_target_done(struct kiln_otlp_target *target);

#endif /* KILN_CODEC_OTLP_TARGET_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_settings - where `kiln agent` sends, and what it keeps meanwhile: part of struct
 * kiln_settings, beside cli/host_settings.h.
 *
 * OTEL_EXPORTER_OTLP_* count as variables: less than options and KILN_*, more than the file.
 *
 * Threads: only the main thread; constant once loaded.
 */
#ifndef KILN_CLI_AGENT_SETTINGS_H
#define KILN_CLI_AGENT_SETTINGS_H

#include "base/buf.h"
#include "base/config.h"

#define KILN_AGENT_SOCKET "/run/kiln-agent/agent.sock"

struct kiln_server_config;
struct kiln_option_group;
struct kiln_otlp_export_opts;

struct kiln_agent_settings {
    const struct kiln_node *map, *export_map, *spool_map;
    const char *listen; /* "off": none */
    const char *socket; /* "off": none */
    const char *orders; /* which are followed: off, boost, all */
    const char *server; /* who has orders; NULL: who takes the profiles; "off": nobody */
    const char *endpoint, *protocol, *compression;
    const char *ca_file, *cert_file, *key_file;
    bool insecure;
    uint64_t timeout_ns, request_max;
    const struct kiln_node
        *headers;          /* of the file: a map, or "name=value,..."; they hold secrets */
    const char *spool_dir; /* "off": none */
    uint64_t spool_size;
};

/* What the exporter is told; `headers` holds a text that it points to.  Metrics and log are the
 * caller's. */
KILN_CHECK int kiln_agent_export_opts(const struct kiln_server_config *config,
                                      struct kiln_buf *headers,
                                      struct kiln_otlp_export_opts *ret_opts, struct kiln_err *err);

/* Options: where to send, and how. */
extern const struct kiln_option_group kiln_group_sending;

#endif /* KILN_CLI_AGENT_SETTINGS_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings - what `kiln server` and `kiln agent` were told: flags over KILN_* variables over a file
 * over defaults.
 *
 * The file is /etc/kiln/kiln.yaml where it is there, or what --config or KILN_CONFIG names.
 * packaging/kiln.yaml lists every key.
 *
 * Threads: only the main thread; constant once loaded.
 */
#ifndef KILN_CLI_SETTINGS_H
#define KILN_CLI_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "cli/agent_settings.h"
#include "cli/host_settings.h"
#include "query/query.h"
#include "store/store.h"

#define KILN_CONFIG_FILE "/etc/kiln/kiln.yaml"

/* What an option said that may be said more than once. */
struct kiln_list {
    const char **items;
    uint32_t n;
};

/* The same from wherever it was said, in the end. */
struct kiln_words {
    const char **items;
    uint32_t n;
    char *joined, *cut; /* what options said; where they are cut apart */
};

/* A NULL, a zero and a false stand for "not said". */
struct kiln_settings {
    const char *config;
    const char *data_dir;
    const char *user; /* that a server of root becomes */
    const char *listen, *otlp_grpc, *otlp_http, *socket, *otlp_socket; /* "off": none */
    const char *tls_cert, *tls_key, *tls_client_ca;
    const char *tokens;
    const char *redact;
    const char *backup_dir;       /* where clients may have backups made; NULL: nowhere */
    const char *audit_log;        /* a file for audit records; NULL: none */
    const char *anonymous_orders; /* off, boost, all */
    const char *log_level, *log_format;
    const char *ready_file;
    struct kiln_either source;    /* directories of source text: "a:b=c", or a list */
    struct kiln_list source_flag; /* what --source said, each time */
    struct kiln_either symbols_path, debuginfod; /* where debug files are looked for */
    struct kiln_list symbols_path_flag, debuginfod_flag;
    struct kiln_either host_names; /* accepted without tokens, beside localhost and addresses */
    struct kiln_list host_names_flag;
    uint64_t symbols_quota, symbols_tenant_quota;
    uint64_t memory_limit;
    uint64_t retention_ns, retention_size;
    uint64_t query_timeout_ns, query_memory; /* 0: half of what questions have */
    bool allow_anonymous, multitenant;
    bool server_alone, no_host; /* flags: of `kiln server`, which profiles where it is asked to */
    struct kiln_host_settings host;
    struct kiln_agent_settings agent;
    /* from the file only */
    uint64_t memory_wait_ns; /* a request waits for memory, before it is refused */
    uint64_t tenant_bytes_per_s, tenant_burst, body_max;
    uint32_t series_max, disk_percent;
    const struct kiln_node *series_labels, *rules, *query_tenants, *scrape, *redaction;
    uint64_t query_bytes, query_range_ns; /* 0: no limit */
    uint32_t query_nodes;
    /* maps that were read */
    const struct kiln_node *root, *server, *store, *query, *tls, *limits, *symbols, *others;
};

struct kiln_server_config {
    struct kiln_settings set;              /* what holds */
    struct kiln_settings flags, variables; /* what each of them said */
    struct kiln_config *file;              /* NULL: none was read */
    const char *file_name;
    const char *blamed; /* after a failure: the file that is at fault; NULL: none is */
    struct kiln_retention_rule *rules;
    struct kiln_str *series_labels;
    struct kiln_query_tenant *query_tenants;
    struct kiln_words source; /* "DIR" or "PREFIX=DIR" */
    struct kiln_words symbols_path, debuginfod, host_names;
    uint32_t n_rules, n_series_labels, n_query_tenants;
    char default_dir[PATH_MAX], default_spool[PATH_MAX];
    char default_socket[PATH_MAX], default_otlp_socket[PATH_MAX];
    char default_endpoint[PATH_MAX + 8]; /* "unix:" and otlp_socket; "": there is none */
};

/* `config` must stay where it is: its texts point into it.  Done also after a failure. */
KILN_CHECK int kiln_settings_load(const struct kiln_settings *flags,
                                  struct kiln_server_config *config, struct kiln_err *err);
/* The same for `kiln agent`, which the server's settings are no concern of. */
KILN_CHECK int kiln_settings_load_agent(const struct kiln_settings *flags,
                                        struct kiln_server_config *config, struct kiln_err *err);
void kiln_settings_done(struct kiln_server_config *config);

/*
 * Where a server of this user has its socket: /run/kiln/kiln.sock where that directory may be
 * written to or made, else kiln/kiln.sock in $XDG_RUNTIME_DIR, if there is one.
 */
void kiln_settings_socket(char ret_path[PATH_MAX]);

/* True unless an address is "off". */
bool kiln_settings_on(const char *address);

/*
 * Appends the settings, and where each comes from: as YAML that can be read again, or as JSON.
 * Neither redaction nor scrape is in it, which may hold secrets.
 */
void kiln_settings_format(const struct kiln_server_config *config, struct kiln_buf *out);
void kiln_settings_format_json(const struct kiln_server_config *config, struct kiln_buf *out);

#endif /* KILN_CLI_SETTINGS_H */

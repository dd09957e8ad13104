/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of the server, which `kiln config` takes as well.
 */
#include "cli/commands.h"
#include "fleet/order.h"

static const char *const levels[] = {"debug", "info", "warn", "error", NULL};
static const char *const log_formats[] = {"logfmt", "json", "plain", NULL};

static const struct kiln_option listen_options[] = {
    KILN_OPT("listen", 0, KILN_OPT_TEXT, server.listen, "ADDRESS",
             "everything: page, Pyroscope, uploads, OTLP, administration (127.0.0.1:4040)"),
    KILN_OPT("otlp-grpc", 0, KILN_OPT_TEXT, server.otlp_grpc, "ADDRESS",
             "OTLP only, where gRPC clients look for it (127.0.0.1:4317)"),
    KILN_OPT("otlp-http", 0, KILN_OPT_TEXT, server.otlp_http, "ADDRESS",
             "OTLP only, where HTTP clients look for it (127.0.0.1:4318)"),
    KILN_OPT("socket", 0, KILN_OPT_TEXT, server.socket, "FILE",
             "Unix socket for everything (/run/kiln/kiln.sock)"),
    KILN_OPT("otlp-socket", 0, KILN_OPT_TEXT, server.otlp_socket, "FILE",
             "Unix socket for OTLP only, open to every user as the ports are (otlp.sock beside "
             "that one)"),
    KILN_OPT("tls-cert", 0, KILN_OPT_TEXT, server.tls_cert, "FILE",
             "speak TLS on every port, with this certificate (PEM); read again when it changes"),
    KILN_OPT("tls-key", 0, KILN_OPT_TEXT, server.tls_key, "FILE", "its private key (PEM)"),
    KILN_OPT("tls-client-ca", 0, KILN_OPT_TEXT, server.tls_client_ca, "FILE",
             "clients must show a certificate that one of these signed (PEM)"),
    KILN_OPT("tokens", 0, KILN_OPT_TEXT, server.tokens, "FILE",
             "who may come in, and as whom (YAML); needed to listen beyond loopback"),
    KILN_OPT("allow-anonymous", 0, KILN_OPT_FLAG, server.allow_anonymous, NULL,
             "listen beyond loopback without tokens all the same"),
    KILN_OPT("host-names", 0, KILN_OPT_LIST, server.host_names_flag, "NAMES",
             "host names to accept in requests without tokens, beside localhost and IP addresses; "
             "may be given more than once"),
    {.name = "anonymous-orders",
     .kind = KILN_OPT_TEXT,
     .offset = offsetof(struct kiln_args, server.anonymous_orders),
     .value = "WHICH",
     .choices = kiln_order_limits,
     .text = "what clients may tell agents where there are no tokens: off, boost (up to 199 Hz and "
             "10 minutes) or all; root and the server's user may all, over the Unix socket "
             "(boost)"},
    KILN_OPT("multitenant", 0, KILN_OPT_FLAG, server.multitenant, NULL,
             "X-Scope-OrgID says whose profiles they are"),
    KILN_OPT_END,
};
const struct kiln_option_group kiln_group_coming_in = {"Coming in", listen_options};

static const struct kiln_option keep_options[] = {
    KILN_OPT("data-dir", 0, KILN_OPT_TEXT, server.data_dir, "DIR",
             "where profiles are kept (/var/lib/kiln for root and services, else "
             "$XDG_DATA_HOME/kiln)"),
    KILN_OPT("user", 0, KILN_OPT_TEXT, server.user, "USER",
             "started by root, run as this user (name or uid), or as root (the owner of the data "
             "directory, else kiln, else uid 61040)"),
    KILN_OPT("retention", 0, KILN_OPT_DURATION, server.retention_ns, "AGE", "how long (14d)"),
    KILN_OPT("retention-size", 0, KILN_OPT_SIZE, server.retention_size, "SIZE",
             "how much; the oldest go first (no limit but 80 % of the disk)"),
    KILN_OPT("backup-dir", 0, KILN_OPT_TEXT, server.backup_dir, "DIR",
             "clients with admin access may have backups made below this directory (none; over the "
             "Unix socket root and the server's user name any)"),
    KILN_OPT("memory-limit", 0, KILN_OPT_SIZE, server.memory_limit, "SIZE",
             "never use more memory (a quarter of the machine's or control group's, "
             "between 256M and 2G)"),
    KILN_OPT("redact", 0, KILN_OPT_TEXT, server.redact, "FILE",
             "take out of everything, before it is kept, what these rules say (YAML)"),
    KILN_OPT_END,
};
const struct kiln_option_group kiln_group_keeping = {"Keeping", keep_options};

static const struct kiln_option ask_options[] = {
    KILN_OPT("query-timeout", 0, KILN_OPT_DURATION, server.query_timeout_ns, "TIME",
             "a question is given up after this long (60s)"),
    KILN_OPT("query-memory", 0, KILN_OPT_SIZE, server.query_memory, "SIZE",
             "and may use so much memory (half of what all questions have, or all of it where that "
             "is little)"),
    KILN_OPT("source", 0, KILN_OPT_LIST, server.source_flag, "[PREFIX=]DIR",
             "show source text of files beneath DIR, of which paths of profiles are the ends (or "
             "begin with PREFIX); may be given more than once (none: only numbers of lines)"),
    KILN_OPT_END,
};
const struct kiln_option_group kiln_group_asking = {"Asking", ask_options};

static const struct kiln_option naming_options[] = {
    KILN_OPT("symbols-quota", 0, KILN_OPT_SIZE, server.symbols_quota, "SIZE",
             "so much of debug files is kept; the least recently used go first (10G)"),
    KILN_OPT("symbols-tenant-quota", 0, KILN_OPT_SIZE, server.symbols_tenant_quota, "SIZE",
             "so much of it may be one tenant's (half with --multitenant, else all)"),
    KILN_OPT(
        "symbols-path", 0, KILN_OPT_LIST, server.symbols_path_flag, "DIR",
        "look for debug files here too, by build id: DIR/.build-id/AB/CDEF.debug; may be given "
        "more than once (/usr/lib/debug is looked into anyway)"),
    KILN_OPT("debuginfod", 0, KILN_OPT_LIST, server.debuginfod_flag, "URL",
             "ask this server for debug files that nobody uploaded; may be given more than once "
             "(none: build ids are told to nobody)"),
    KILN_OPT_END,
};
const struct kiln_option_group kiln_group_naming = {"Naming", naming_options};

static const char *const switches[] = {"auto", "on", "off", NULL};

static const struct kiln_option this_host_options[] = {
    {.name = "host-profiler",
     .kind = KILN_OPT_TEXT,
     .offset = offsetof(struct kiln_args, server.host.enabled),
     .value = "WHEN",
     .choices = switches,
     .text = "profile every process of this machine: auto (where it can be done), on (or else do "
             "not start) or off (auto for `kiln`, off for `kiln server`)"},
    KILN_OPT("no-host", 0, KILN_OPT_FLAG, server.no_host, NULL, "the same as --host-profiler off"),
    KILN_OPT_END,
};
const struct kiln_option_group kiln_group_this_host = {"This host", this_host_options};

static const struct kiln_option run_options[] = {
    KILN_OPT("config", 0, KILN_OPT_TEXT, server.config, "FILE",
             "settings (" KILN_CONFIG_FILE " where it exists)"),
    {.name = "log-level",
     .kind = KILN_OPT_TEXT,
     .offset = offsetof(struct kiln_args, server.log_level),
     .value = "LEVEL",
     .choices = levels,
     .text = "debug, info, warn or error (info; warn for a server on a terminal)"},
    {.name = "log-format",
     .kind = KILN_OPT_TEXT,
     .offset = offsetof(struct kiln_args, server.log_format),
     .value = "FORMAT",
     .choices = log_formats,
     .text = "lines on standard error: logfmt, json, or plain for people (plain on a terminal, "
             "else logfmt)"},
    KILN_OPT(
        "audit-log", 0, KILN_OPT_TEXT, server.audit_log, "FILE",
        "append audit records to FILE too: deletions, backups, orders, failed sign-ins; opened "
        "again on SIGHUP (only the log has them)"),
    KILN_OPT("ready-file", 0, KILN_OPT_TEXT, server.ready_file, "FILE",
             "write ports and process id there, as JSON, once profiles are taken"),
    KILN_OPT_END,
};
const struct kiln_option_group kiln_group_running = {"Running", run_options};

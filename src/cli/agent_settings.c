/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_settings.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/settings_int.h"
#include "pipeline/exporters.h"

const struct kiln_field kiln_export_fields[KILN_EXPORT_FIELDS] = {
    KILN_SETTING("endpoint", TEXT, agent.endpoint),
    KILN_SETTING("protocol", TEXT, agent.protocol),
    KILN_SETTING("compression", TEXT, agent.compression),
    KILN_SETTING("headers", NODE, agent.headers),
    KILN_SETTING("timeout", DURATION, agent.timeout_ns),
    KILN_SETTING("ca_file", TEXT, agent.ca_file),
    KILN_SETTING("cert_file", TEXT, agent.cert_file),
    KILN_SETTING("key_file", TEXT, agent.key_file),
    KILN_SETTING("insecure", BOOL, agent.insecure),
    KILN_SETTING("request_size", SIZE, agent.request_max),
};

const struct kiln_field kiln_spool_fields[KILN_SPOOL_FIELDS] = {
    KILN_SETTING("dir", TEXT, agent.spool_dir),
    KILN_SETTING("size", SIZE, agent.spool_size),
};

#define OTEL(name, member)                                                                         \
    KILN_SETTING("OTEL_EXPORTER_OTLP_PROFILES_" name, TEXT, agent.member),                         \
        KILN_SETTING("OTEL_EXPORTER_OTLP_" name, TEXT, agent.member)

/* Of several for one setting, the first that is set counts. */
const struct kiln_field kiln_agent_variables[KILN_AGENT_VARIABLES] = {
    KILN_SETTING("KILN_HOST_PROFILER", TEXT, host.enabled),
    KILN_SETTING("KILN_FREQUENCY", COUNT, host.frequency),
    KILN_SETTING("OTEL_PROFILER_SAMPLING_FREQUENCY", COUNT, host.frequency),
    KILN_SETTING("KILN_OFF_CPU", TEXT, host.off_cpu),
    KILN_SETTING("KILN_WINDOW", EITHER, host.window),
    KILN_SETTING("KILN_REPORT_INTERVAL", DURATION, host.report_interval_ns),
    KILN_SETTING("KILN_CPU_BUDGET", TEXT, host.cpu_budget),
    KILN_SETTING("KILN_UNWIND_MEMORY", SIZE, host.unwind_memory),
    KILN_SETTING("KILN_AGENT_MEMORY_LIMIT", SIZE, host.memory_limit),
    KILN_SETTING("KILN_SYMBOL_CACHE", TEXT, host.symbol_cache),
    KILN_SETTING("KILN_SYMBOL_CACHE_SIZE", SIZE, host.symbol_cache_size),
    KILN_SETTING("KILN_PID", EITHER, host.only.pids),
    KILN_SETTING("KILN_CGROUP", EITHER, host.only.cgroups),
    KILN_SETTING("KILN_COMM", EITHER, host.only.comms),
    KILN_SETTING("KILN_EXCLUDE_PID", EITHER, host.except.pids),
    KILN_SETTING("KILN_EXCLUDE_CGROUP", EITHER, host.except.cgroups),
    KILN_SETTING("KILN_EXCLUDE_COMM", EITHER, host.except.comms),
    KILN_SETTING("KILN_ENV_NAMES", EITHER, host.environment),
    KILN_SETTING("KILN_RESOURCE", EITHER, host.resource),
    KILN_SETTING("KILN_RESOURCE_PER", TEXT, host.resource_per),
    KILN_SETTING("OTEL_RESOURCE_ATTRIBUTES", EITHER, host.resource),
    KILN_SETTING("KILN_AGENT_LISTEN", TEXT, agent.listen),
    KILN_SETTING("KILN_AGENT_SOCKET", TEXT, agent.socket),
    KILN_SETTING("KILN_ORDERS", TEXT, agent.orders),
    KILN_SETTING("KILN_SERVER", TEXT, agent.server),
    KILN_SETTING("KILN_ENDPOINT", TEXT, agent.endpoint),
    OTEL("ENDPOINT", endpoint),
    KILN_SETTING("KILN_PROTOCOL", TEXT, agent.protocol),
    OTEL("PROTOCOL", protocol),
    KILN_SETTING("KILN_COMPRESSION", TEXT, agent.compression),
    OTEL("COMPRESSION", compression),
    KILN_SETTING("KILN_EXPORT_TIMEOUT", DURATION, agent.timeout_ns),
    KILN_SETTING("KILN_EXPORT_CA_FILE", TEXT, agent.ca_file),
    OTEL("CERTIFICATE", ca_file),
    KILN_SETTING("KILN_EXPORT_CERT_FILE", TEXT, agent.cert_file),
    OTEL("CLIENT_CERTIFICATE", cert_file),
    KILN_SETTING("KILN_EXPORT_KEY_FILE", TEXT, agent.key_file),
    OTEL("CLIENT_KEY", key_file),
    KILN_SETTING("KILN_EXPORT_INSECURE", BOOL, agent.insecure),
    KILN_SETTING("KILN_REQUEST_SIZE", SIZE, agent.request_max),
    KILN_SETTING("KILN_SPOOL", TEXT, agent.spool_dir),
    KILN_SETTING("KILN_SPOOL_SIZE", SIZE, agent.spool_size),
};

/* ---- what the exporter is told ---- */

/* False where only OTEL_* said it, or nobody: the exporter reads those itself. */
static bool is_ours(const struct kiln_server_config *config, size_t offset)
{
    const struct kiln_field field = {.kind = KILN_FIELD_TEXT, .offset = offset};
    const char *variable = kiln_settings_variable(&field, true);

    if (kiln_settings_said(&config->flags, &field))
        return true;
    if (kiln_settings_said(&config->variables, &field))
        return variable && strncmp(variable, "KILN_", 5) == 0;
    return true;
}

static const char *text_of(const struct kiln_server_config *config, size_t offset)
{
    return is_ours(config, offset) ? *(const char *const *)((const char *)&config->set + offset)
                                   : NULL;
}

/* OTEL_* that the tables do not have: more than the file, less than the rest. */
static bool in_environment(const char *general, const char *own)
{
    const char *a = getenv(general), *b = getenv(own);

    return (a && *a) || (b && *b);
}

/* A map becomes the text that the variable would have. */
static int put_headers(const struct kiln_node *node, struct kiln_buf *out, struct kiln_err *err)
{
    if (node->kind == KILN_NODE_LIST)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "this must be a map of headers");
    if (node->text)
        kiln_buf_puts(out, node->text);
    for (const struct kiln_node *m = node->first; m; m = m->next) {
        const char *text;
        int r = kiln_node_text(m, &text, err);

        if (r < 0)
            return r;
        kiln_buf_printf(out, "%s%s=", out->len ? "," : "", m->key);
        for (; *text; text++)
            kiln_buf_printf(out, strchr("%,;=\"\\ ", *text) ? "%%%02X" : "%c",
                            (unsigned char)*text);
    }
    kiln_buf_putc(out, '\0');
    return out->error;
}

/* The exporter's own choice has no name there. */
static const char *compression_of(const char *word)
{
    return word && strcmp(word, "auto") == 0 ? NULL : word;
}

int kiln_agent_export_opts(const struct kiln_server_config *config, struct kiln_buf *headers,
                           struct kiln_otlp_export_opts *ret_opts, struct kiln_err *err)
{
    const struct kiln_agent_settings *set = &config->set.agent;
    struct kiln_otlp_export_opts opts = {
#define TEXT(member) text_of(config, offsetof(struct kiln_settings, agent.member))
        .endpoint = TEXT(endpoint),
        .protocol = TEXT(protocol),
        .compression = compression_of(TEXT(compression)),
        .dense = true,
        .ca_file = TEXT(ca_file),
        .cert_file = TEXT(cert_file),
        .key_file = TEXT(key_file),
#undef TEXT
        .checks_peer = set->endpoint && strcmp(set->endpoint, config->default_endpoint) == 0,
        .insecure = set->insecure,
        .timeout_ns = set->timeout_ns,
        .request_max = (size_t)set->request_max,
        .spool_dir = kiln_settings_on(set->spool_dir) ? set->spool_dir : NULL,
        .spool_max = set->spool_size,
    };
    int r = 0;

    if (!set->endpoint)
        return kiln_err_set(err, -EINVAL, NULL,
                            "no receiver: the socket of this host's server is off "
                            "(say --endpoint URL)");
    if (in_environment("OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT") &&
        !config->flags.agent.timeout_ns && !config->variables.agent.timeout_ns)
        opts.timeout_ns = 0;
    if (set->headers &&
        !in_environment("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_PROFILES_HEADERS")) {
        r = put_headers(set->headers, headers, err);
        opts.headers = headers->ptr;
    }
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    *ret_opts = opts;
    return 0;
}

/* ---- options ---- */

static const char *const protocols[] = {"grpc", "http/protobuf", "http/json", NULL};
static const char *const compressions[] = {"auto", "gzip", "zstd", "none", NULL};

static const struct kiln_option options[] = {
    KILN_OPT("endpoint", 'e', KILN_OPT_TEXT, server.agent.endpoint, "URL",
             "where to send OTLP (the server of this host, unix:/run/kiln/otlp.sock)"),
    {.name = "protocol",
     .kind = KILN_OPT_TEXT,
     .offset = offsetof(struct kiln_args, server.agent.protocol),
     .value = "PROTOCOL",
     .choices = protocols,
     .text = "grpc, http/protobuf or http/json (grpc for port 4317, else http/protobuf)"},
    {.name = "compression",
     .kind = KILN_OPT_TEXT,
     .offset = offsetof(struct kiln_args, server.agent.compression),
     .value = "METHOD",
     .choices = compressions,
     .text = "gzip, zstd, none, or auto: gzip, and zstd where the receiver says that it takes it "
             "(auto)"},
    KILN_OPT("export-timeout", 0, KILN_OPT_DURATION, server.agent.timeout_ns, "TIME",
             "a request is given up after this long, and sent again (10s)"),
    KILN_OPT("export-ca-file", 0, KILN_OPT_TEXT, server.agent.ca_file, "FILE",
             "who may sign the receiver's certificate (PEM; the system's)"),
    KILN_OPT("export-cert-file", 0, KILN_OPT_TEXT, server.agent.cert_file, "FILE",
             "our own certificate (PEM)"),
    KILN_OPT("export-key-file", 0, KILN_OPT_TEXT, server.agent.key_file, "FILE",
             "its private key (PEM)"),
    KILN_OPT("export-insecure", 0, KILN_OPT_FLAG, server.agent.insecure, NULL,
             "do not look at the receiver's certificate"),
    KILN_OPT("request-size", 0, KILN_OPT_SIZE, server.agent.request_max, "SIZE",
             "larger reports are split, before compression (4M)"),
    KILN_OPT("spool", 0, KILN_OPT_TEXT, server.agent.spool_dir, "DIR",
             "keep there what cannot be sent yet, or off (DATA-DIR/spool)"),
    KILN_OPT("spool-size", 0, KILN_OPT_SIZE, server.agent.spool_size, "SIZE",
             "at most so much; the oldest goes first (512M)"),
    KILN_OPT_END,
};
const struct kiln_option_group kiln_group_sending = {"Sending", options};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three sources fill the same structure one after the other, each over the one before; the
 * variables are read as if they were the members of a map.
 */
#include "cli/settings_int.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/meminfo.h"
#include "fleet/order.h"
#include "net/origin.h"
#include "pipeline/gate.h"
#include "pipeline/receivers/scrape.h"

#define SERIES_BYTES             ((uint64_t)8 << 10) /* of the memory limit, for each series by default */
#define SERIES_MIN               50000u
#define SERIES_MAX               250000u
#define MEMORY_FLOOR             ((uint64_t)96 << 20) /* below, one large profile does not pass */
#define MEMORY_WAIT_NS           (8 * KILN_NS_PER_S)  /* OTLP's exporters wait for ten seconds */

#define SOCKET_DIR               "/run/kiln"
#define SOCKET_NAME              "kiln.sock"
#define SOCKET_PATH_MAX          108u /* of struct sockaddr_un */

#define FIELD(key, kind, member) KILN_SETTING(key, kind, member)

/* ---- the file ---- */

/* Of all parts of Kiln: what others read (`others`) is passed over. */
static const struct kiln_field top_fields[] = {
    FIELD("server", MAP, server),   FIELD("store", MAP, store),
    FIELD("scrape", LIST, scrape),  FIELD("redaction", LIST, redaction),
    FIELD("tokens", TEXT, tokens),  FIELD("query", MAP, query),
    FIELD("agent", MAP, agent.map), FIELD("profiling", MAP, host.profiling),
    FIELD("symbols", MAP, symbols), FIELD("watch", NODE, others),
};

static const struct kiln_field server_fields[] = {
    FIELD("listen", TEXT, listen),
    FIELD("otlp_grpc", TEXT, otlp_grpc),
    FIELD("otlp_http", TEXT, otlp_http),
    FIELD("socket", TEXT, socket),
    FIELD("otlp_socket", TEXT, otlp_socket),
    FIELD("user", TEXT, user),
    FIELD("backup_dir", TEXT, backup_dir),
    FIELD("audit_log", TEXT, audit_log),
    FIELD("anonymous_orders", TEXT, anonymous_orders),
    FIELD("log_level", TEXT, log_level),
    FIELD("log_format", TEXT, log_format),
    FIELD("ready_file", TEXT, ready_file),
    FIELD("source", EITHER, source),
    FIELD("memory_limit", SIZE, memory_limit),
    FIELD("memory_wait", DURATION, memory_wait_ns),
    FIELD("allow_anonymous", BOOL, allow_anonymous),
    FIELD("host_names", EITHER, host_names),
    FIELD("multitenant", BOOL, multitenant),
    FIELD("tls", MAP, tls),
    FIELD("limits", MAP, limits),
};

static const struct kiln_field tls_fields[] = {
    FIELD("cert_file", TEXT, tls_cert),
    FIELD("key_file", TEXT, tls_key),
    FIELD("client_ca_file", TEXT, tls_client_ca),
};

static const struct kiln_field limit_fields[] = {
    FIELD("bytes_per_second", SIZE, tenant_bytes_per_s),
    FIELD("burst", SIZE, tenant_burst),
    FIELD("body", SIZE, body_max),
    FIELD("series", COUNT, series_max),
};

static const struct kiln_field store_fields[] = {
    FIELD("data_dir", TEXT, data_dir),
    FIELD("retention", DURATION, retention_ns),
    FIELD("retention_size", SIZE, retention_size),
    FIELD("disk_percent", COUNT, disk_percent),
    FIELD("series_labels", LIST, series_labels),
    FIELD("rules", LIST, rules),
};

static const struct kiln_field symbols_fields[] = {
    FIELD("quota", SIZE, symbols_quota),
    FIELD("tenant_quota", SIZE, symbols_tenant_quota),
    FIELD("path", EITHER, symbols_path),
    FIELD("debuginfod", EITHER, debuginfod),
};

static const struct kiln_field query_fields[] = {
    FIELD("timeout", DURATION, query_timeout_ns),
    FIELD("memory", SIZE, query_memory),
    FIELD("bytes", SIZE, query_bytes),
    FIELD("range", DURATION, query_range_ns),
    FIELD("nodes", COUNT, query_nodes),
    FIELD("tenants", LIST, query_tenants),
};

#define MAP(path, member, fields)                                                                  \
    {                                                                                              \
        (path), offsetof(struct kiln_settings, member), (fields), KILN_ARRAY_LEN(fields)           \
    }

/* Each after the one it is in. */
const struct kiln_settings_map kiln_settings_maps[KILN_SETTINGS_MAPS] = {
    MAP("", root, top_fields),
    MAP("server", server, server_fields),
    MAP("server.tls", tls, tls_fields),
    MAP("server.limits", limits, limit_fields),
    MAP("store", store, store_fields),
    MAP("query", query, query_fields),
    MAP("symbols", symbols, symbols_fields),
    MAP("agent", agent.map, kiln_agent_fields),
    MAP("agent.only", host.only.map, kiln_only_fields),
    MAP("agent.except", host.except.map, kiln_except_fields),
    MAP("agent.export", agent.export_map, kiln_export_fields),
    MAP("agent.spool", agent.spool_map, kiln_spool_fields),
};

static int read_sections(struct kiln_settings *set, const struct kiln_node *root,
                         struct kiln_err *err)
{
    int r = 0;

    set->root = root;
    for (uint32_t i = 0; r == 0 && i < KILN_SETTINGS_MAPS; i++) {
        const struct kiln_settings_map *map = &kiln_settings_maps[i];
        const struct kiln_node *node =
            *(const struct kiln_node *const *)((const char *)set + map->offset);

        r = kiln_node_read(node, map->fields, map->n, set, err);
    }
    return r;
}

struct rule {
    const char *tenant, *service;
    uint64_t age_ns, bytes;
};

static const struct kiln_field rule_fields[] = {
    {"tenant", KILN_FIELD_TEXT, offsetof(struct rule, tenant)},
    {"service", KILN_FIELD_TEXT, offsetof(struct rule, service)},
    {"retention", KILN_FIELD_DURATION, offsetof(struct rule, age_ns)},
    {"retention_size", KILN_FIELD_SIZE, offsetof(struct rule, bytes)},
};

static int read_rules(struct kiln_server_config *config, struct kiln_err *err)
{
    const struct kiln_node *list = config->set.rules;

    if (!list)
        return 0;
    config->rules = kiln_calloc(list->n, sizeof(*config->rules));
    if (!config->rules)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    for (const struct kiln_node *m = list->first; m; m = m->next) {
        struct rule rule = {0};
        int r = kiln_node_read(m, rule_fields, KILN_ARRAY_LEN(rule_fields), &rule, err);

        if (r < 0)
            return r;
        if (rule.age_ns == 0 && rule.bytes == 0)
            return kiln_node_fail(m, KILN_E_MALFORMED, err,
                                  "this rule has neither retention nor retention_size");
        config->rules[config->n_rules++] =
            (struct kiln_retention_rule){rule.tenant, rule.service, rule.age_ns, rule.bytes};
    }
    return 0;
}

struct tenant {
    const char *tenant;
    uint64_t timeout_ns, memory, bytes, range_ns;
    uint32_t nodes;
};

static const struct kiln_field tenant_fields[] = {
    {"tenant", KILN_FIELD_TEXT, offsetof(struct tenant, tenant)},
    {"timeout", KILN_FIELD_DURATION, offsetof(struct tenant, timeout_ns)},
    {"memory", KILN_FIELD_SIZE, offsetof(struct tenant, memory)},
    {"bytes", KILN_FIELD_SIZE, offsetof(struct tenant, bytes)},
    {"range", KILN_FIELD_DURATION, offsetof(struct tenant, range_ns)},
    {"nodes", KILN_FIELD_COUNT, offsetof(struct tenant, nodes)},
};

static int read_tenants(struct kiln_server_config *config, struct kiln_err *err)
{
    const struct kiln_node *list = config->set.query_tenants;

    if (!list)
        return 0;
    config->query_tenants = kiln_calloc(list->n, sizeof(*config->query_tenants));
    if (!config->query_tenants)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    for (const struct kiln_node *m = list->first; m; m = m->next) {
        struct tenant t = {0};
        int r = kiln_node_read(m, tenant_fields, KILN_ARRAY_LEN(tenant_fields), &t, err);

        if (r < 0)
            return r;
        if (!t.tenant)
            return kiln_node_fail(m, KILN_E_MALFORMED, err, "whose limits are these? (tenant)");
        config->query_tenants[config->n_query_tenants++] = (struct kiln_query_tenant){
            t.tenant,
            {t.timeout_ns / KILN_NS_PER_MS, t.bytes, (size_t)t.memory, t.range_ns, t.nodes}};
    }
    return 0;
}

static int read_labels(struct kiln_server_config *config, struct kiln_err *err)
{
    const struct kiln_node *list = config->set.series_labels;
    const char *text;

    if (!list)
        return 0;
    config->series_labels = kiln_calloc(list->n, sizeof(*config->series_labels));
    if (!config->series_labels)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    for (const struct kiln_node *m = list->first; m; m = m->next) {
        int r = kiln_node_text(m, &text, err);

        if (r < 0)
            return r;
        config->series_labels[config->n_series_labels++] = kiln_str_of(text);
    }
    return 0;
}

static int read_file(struct kiln_server_config *config, struct kiln_err *err)
{
    bool usual = !config->set.config;
    int r;

    config->file_name = usual ? KILN_CONFIG_FILE : config->set.config;
    if (usual && access(KILN_CONFIG_FILE, F_OK) < 0) {
        config->file_name = NULL;
        return 0;
    }
    config->blamed = config->file_name;
    r = kiln_config_load(config->file_name, &config->file, err);
    if (r == 0)
        r = read_sections(&config->set, kiln_config_root(config->file), err);
    if (r == 0)
        r = kiln_host_settings_read(&config->set.host, err);
    if (r == 0)
        r = read_rules(config, err);
    if (r == 0)
        r = read_labels(config, err);
    if (r == 0)
        r = read_tenants(config, err);
    if (r == 0 && config->set.scrape)
        r = kiln_scrape_check(config->set.scrape, err);
    if (r == 0)
        config->blamed = NULL;
    return r;
}

/* ---- variables and flags ---- */

static const struct kiln_field variables[] = {
    FIELD("KILN_CONFIG", TEXT, config),
    FIELD("KILN_DATA_DIR", TEXT, data_dir),
    FIELD("KILN_LISTEN", TEXT, listen),
    FIELD("KILN_OTLP_GRPC", TEXT, otlp_grpc),
    FIELD("KILN_OTLP_HTTP", TEXT, otlp_http),
    FIELD("KILN_SOCKET", TEXT, socket),
    FIELD("KILN_OTLP_SOCKET", TEXT, otlp_socket),
    FIELD("KILN_USER", TEXT, user),
    FIELD("KILN_TLS_CERT", TEXT, tls_cert),
    FIELD("KILN_TLS_KEY", TEXT, tls_key),
    FIELD("KILN_TLS_CLIENT_CA", TEXT, tls_client_ca),
    FIELD("KILN_TOKENS", TEXT, tokens),
    FIELD("KILN_REDACT", TEXT, redact),
    FIELD("KILN_BACKUP_DIR", TEXT, backup_dir),
    FIELD("KILN_AUDIT_LOG", TEXT, audit_log),
    FIELD("KILN_ANONYMOUS_ORDERS", TEXT, anonymous_orders),
    FIELD("KILN_LOG_LEVEL", TEXT, log_level),
    FIELD("KILN_LOG_FORMAT", TEXT, log_format),
    FIELD("KILN_READY_FILE", TEXT, ready_file),
    FIELD("KILN_SOURCE", EITHER, source),
    FIELD("KILN_SYMBOLS_QUOTA", SIZE, symbols_quota),
    FIELD("KILN_SYMBOLS_TENANT_QUOTA", SIZE, symbols_tenant_quota),
    FIELD("KILN_SYMBOLS_PATH", EITHER, symbols_path),
    FIELD("KILN_DEBUGINFOD", EITHER, debuginfod),
    FIELD("KILN_MEMORY_LIMIT", SIZE, memory_limit),
    FIELD("KILN_RETENTION", DURATION, retention_ns),
    FIELD("KILN_RETENTION_SIZE", SIZE, retention_size),
    FIELD("KILN_QUERY_TIMEOUT", DURATION, query_timeout_ns),
    FIELD("KILN_QUERY_MEMORY", SIZE, query_memory),
    FIELD("KILN_ALLOW_ANONYMOUS", BOOL, allow_anonymous),
    FIELD("KILN_HOST_NAMES", EITHER, host_names),
    FIELD("KILN_MULTITENANT", BOOL, multitenant),
};

enum { VARIABLES = KILN_ARRAY_LEN(variables) + KILN_AGENT_VARIABLES };

static const struct kiln_field *variable_at(uint32_t i)
{
    return i < KILN_ARRAY_LEN(variables) ? &variables[i]
                                         : &kiln_agent_variables[i - KILN_ARRAY_LEN(variables)];
}

/* Backwards, so that of two variables for one setting the first counts. */
static int read_variables(struct kiln_settings *set, struct kiln_err *err)
{
    for (uint32_t i = VARIABLES; i-- > 0;) {
        const struct kiln_field *field = variable_at(i);
        const char *value = getenv(field->key);
        const struct kiln_node node = {
            .kind = KILN_NODE_TEXT, .key = field->key, .text = value ? value : ""};
        const struct kiln_node map = {.kind = KILN_NODE_MAP, .first = &node, .n = 1};
        struct kiln_err local = {0};

        if (kiln_node_read(&map, field, 1, set, &local) < 0)
            /* without the place, which a variable does not have */
            return kiln_err_set(err, -EINVAL, NULL, "%s", local.text);
        if (field->kind == KILN_FIELD_EITHER)
            ((struct kiln_either *)((char *)set + field->offset))->node = NULL;
    }
    return 0;
}

static size_t size_of(enum kiln_field_kind kind)
{
    switch (kind) {
    case KILN_FIELD_BOOL:
        return sizeof(bool);
    case KILN_FIELD_COUNT:
        return sizeof(uint32_t);
    case KILN_FIELD_SIZE:
    case KILN_FIELD_DURATION:
        return sizeof(uint64_t);
    case KILN_FIELD_EITHER:
        return sizeof(struct kiln_either);
    default:
        return sizeof(void *);
    }
}

bool kiln_settings_said(const struct kiln_settings *set, const struct kiln_field *field)
{
    static const char zero[sizeof(struct kiln_either)];

    return memcmp((const char *)set + field->offset, zero, size_of(field->kind)) != 0;
}

const char *kiln_settings_variable(const struct kiln_field *field, bool set)
{
    for (uint32_t i = 0; i < VARIABLES; i++) {
        const struct kiln_field *variable = variable_at(i);
        const char *value = getenv(variable->key);

        if (variable->offset == field->offset && (!set || (value && *value)))
            return variable->key;
    }
    return NULL;
}

/* What was said in `over` replaces what is in `set`. */
static void overlay(struct kiln_settings *set, const struct kiln_settings *over)
{
    for (uint32_t i = 0; i < VARIABLES; i++) {
        const struct kiln_field *field = variable_at(i);

        if (kiln_settings_said(over, field))
            memcpy((char *)set + field->offset, (const char *)over + field->offset,
                   size_of(field->kind));
    }
}

/* ---- defaults ---- */

static int default_data_dir(struct kiln_server_config *config, struct kiln_err *err)
{
    const char *state = getenv("STATE_DIRECTORY"); /* which systemd gives */
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    size_t room = sizeof(config->default_dir);
    int n;

    if (config->set.data_dir)
        return 0;
    if (state && *state)
        n = snprintf(config->default_dir, room, "%.*s", (int)strcspn(state, ":"), state);
    else if (geteuid() == 0)
        n = snprintf(config->default_dir, room, "/var/lib/kiln");
    else if (data && *data)
        n = snprintf(config->default_dir, room, "%s/kiln", data);
    else if (home && *home)
        n = snprintf(config->default_dir, room, "%s/.local/share/kiln", home);
    else
        return kiln_err_set(err, -EINVAL, NULL, "where to keep profiles? (say --data-dir DIR)");
    config->set.data_dir = config->default_dir;
    return n < (int)room ? 0 : kiln_err_set(err, -ENAMETOOLONG, NULL, "the data folder's name");
}

/*
 * A quarter of the memory this process may use, between 256 MiB and 2 GiB. Where 256 MiB would be
 * more than three quarters, the default is those; a server needs MEMORY_FLOOR all the same.
 */
static uint64_t default_memory(void)
{
    uint64_t total = kiln_meminfo_total(), quarter = total / 4;
    uint64_t least = UINT64_C(256) << 20, most = UINT64_C(2) << 30;

    least = total / 4 * 3 < least ? total / 4 * 3 : least;
    least = least < MEMORY_FLOOR ? MEMORY_FLOOR : least;
    return quarter < least ? least : quarter > most ? most : quarter;
}

/* KILN_HOST_MEMORY_BYTES, or less where a control group leaves less: an eighth beside a server. */
static uint64_t default_host_memory(bool server)
{
    uint64_t part = kiln_meminfo_total() / (server ? 8 : 2);

    return part < KILN_HOST_MEMORY_BYTES ? part : KILN_HOST_MEMORY_BYTES;
}

static const char *or_else(const char *text, const char *instead)
{
    return text ? text : instead;
}

static uint64_t or_number(uint64_t value, uint64_t instead)
{
    return value ? value : instead;
}

/* The server of this host, at a socket where the agent can check which user listens. */
static void fill_endpoint(struct kiln_server_config *config)
{
    if (kiln_settings_on(config->set.otlp_socket))
        snprintf(config->default_endpoint, sizeof(config->default_endpoint), "unix:%s",
                 config->set.otlp_socket);
    if (!config->set.agent.endpoint && config->default_endpoint[0])
        config->set.agent.endpoint = config->default_endpoint;
}

static void fill_agent(struct kiln_server_config *config, bool server)
{
    struct kiln_host_settings *host = &config->set.host;
    struct kiln_agent_settings *agent = &config->set.agent;

    host->enabled = or_else(host->enabled, config->flags.server_alone ? "off" : "auto");
    host->frequency = (uint32_t)or_number(host->frequency, KILN_HOST_HZ);
    host->off_cpu = or_else(host->off_cpu, "on");
    host->resource_per = or_else(host->resource_per, "process");
    host->report_interval_ns =
        or_number(host->report_interval_ns, server ? KILN_HOST_EVERY_NS : KILN_AGENT_EVERY_NS);
    host->cpu_budget = or_else(host->cpu_budget, "1%");
    host->unwind_memory = or_number(host->unwind_memory, KILN_HOST_UNWIND_BYTES);
    host->memory_limit = or_number(host->memory_limit, default_host_memory(server));
    host->symbol_cache_size = or_number(host->symbol_cache_size, KILN_HOST_SYMBOL_CACHE_BYTES);
    agent->orders = or_else(agent->orders, "all");
    agent->listen = or_else(agent->listen, "127.0.0.1:4041");
    agent->socket = or_else(agent->socket, KILN_AGENT_SOCKET);
    fill_endpoint(config);
    agent->compression = or_else(agent->compression, "auto");
    agent->timeout_ns = or_number(agent->timeout_ns, 10 * KILN_NS_PER_S);
    agent->request_max = or_number(agent->request_max, (uint64_t)4 << 20);
    agent->spool_size = or_number(agent->spool_size, (uint64_t)512 << 20);
    if (!agent->spool_dir && config->set.data_dir) {
        snprintf(config->default_spool, sizeof(config->default_spool), "%s/spool",
                 config->set.data_dir);
        agent->spool_dir = config->default_spool;
    }
}

/* On a terminal the banner of the server takes the place of what its log says at the start. */
static void fill_log(struct kiln_settings *set, bool server)
{
    bool terminal = isatty(STDERR_FILENO) == 1;
    bool banner = server && terminal && isatty(STDOUT_FILENO) == 1;

    set->log_level = or_else(set->log_level, banner ? "warn" : "info");
    set->log_format = or_else(set->log_format, terminal ? "plain" : "logfmt");
}

/* Where every user of the host can connect, or users of other hosts can. */
static bool has_port(const struct kiln_settings *set)
{
    return kiln_settings_on(set->listen) || kiln_settings_on(set->otlp_grpc) ||
           kiln_settings_on(set->otlp_http);
}

void kiln_settings_socket(char ret_path[PATH_MAX])
{
    const char *own = getenv("XDG_RUNTIME_DIR");
    bool system = geteuid() == 0 || access(SOCKET_DIR, W_OK) == 0 || !own || own[0] != '/';

    if (system || snprintf(ret_path, PATH_MAX, "%s/kiln/" SOCKET_NAME, own) >= (int)SOCKET_PATH_MAX)
        snprintf(ret_path, PATH_MAX, SOCKET_DIR "/" SOCKET_NAME);
}

/* Beside the socket for everything; none where that is off, or where no port is open to all. */
static void fill_otlp_socket(struct kiln_server_config *config)
{
    const char *socket = config->set.socket, *slash = strrchr(socket, '/');

    snprintf(config->default_otlp_socket, sizeof(config->default_otlp_socket), "off");
    if (kiln_settings_on(socket) && has_port(&config->set))
        snprintf(config->default_otlp_socket, sizeof(config->default_otlp_socket), "%.*sotlp.sock",
                 slash ? (int)(slash + 1 - socket) : 0, socket);
    config->set.otlp_socket = or_else(config->set.otlp_socket, config->default_otlp_socket);
}

/* Open blocks keep each of their series in memory: less memory, fewer series. */
static uint64_t default_series(uint64_t memory_limit)
{
    uint64_t n = memory_limit / SERIES_BYTES;

    return n < SERIES_MIN ? SERIES_MIN : n > SERIES_MAX ? SERIES_MAX : n;
}

static void fill_defaults(struct kiln_settings *set)
{
    set->listen = or_else(set->listen, "127.0.0.1:4040");
    set->otlp_grpc = or_else(set->otlp_grpc, "127.0.0.1:4317");
    set->otlp_http = or_else(set->otlp_http, "127.0.0.1:4318");
    set->memory_limit = or_number(set->memory_limit, default_memory());
    set->memory_wait_ns = or_number(set->memory_wait_ns, MEMORY_WAIT_NS);
    set->body_max = or_number(set->body_max, (uint64_t)64 << 20);
    set->series_max = (uint32_t)or_number(set->series_max, default_series(set->memory_limit));
    set->retention_ns = or_number(set->retention_ns, 14 * 86400 * KILN_NS_PER_S);
    set->disk_percent = (uint32_t)or_number(set->disk_percent, 80);
    set->symbols_quota = or_number(set->symbols_quota, (uint64_t)10 << 30);
    set->symbols_tenant_quota = or_number(
        set->symbols_tenant_quota, set->multitenant ? set->symbols_quota / 2 : set->symbols_quota);
    set->anonymous_orders = or_else(set->anonymous_orders, "boost");
    set->query_timeout_ns = or_number(set->query_timeout_ns, 60 * KILN_NS_PER_S);
    set->query_bytes = or_number(set->query_bytes, (uint64_t)16 << 30);
    set->query_nodes = (uint32_t)or_number(set->query_nodes, 1 << 20);
}

/* ---- sense ---- */

bool kiln_settings_on(const char *address)
{
    return address && *address && strcmp(address, "off") != 0;
}

static bool ends_in_port(const char *address)
{
    const char *colon = strrchr(address, ':');
    uint64_t port;

    return colon && kiln_str_parse_u64(kiln_str_of(colon + 1), &port) == 0 && port <= UINT16_MAX;
}

/* Nobody listens where strangers can connect, without tokens. */
static int check_addresses(const struct kiln_settings *set, struct kiln_err *err)
{
    const char *const all[] = {set->listen, set->otlp_grpc, set->otlp_http};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(all); i++) {
        if (!kiln_settings_on(all[i]))
            continue;
        if (!ends_in_port(all[i]))
            return kiln_err_set(err, -EINVAL, NULL,
                                "\"%.80s\" is no address (say HOST:PORT, :PORT, or off)", all[i]);
        if (kiln_gate_check_listen(all[i], set->tokens, set->allow_anonymous, NULL) < 0)
            return kiln_err_set(err, -EINVAL, NULL,
                                "%s: whoever can reach this address could read and write profiles "
                                "(say --tokens FILE, or --allow-anonymous if that is meant)",
                                all[i]);
    }
    return 0;
}

static int check_host_names(const struct kiln_words *names, struct kiln_err *err)
{
    for (uint32_t i = 0; i < names->n; i++)
        if (!kiln_origin_name_valid(kiln_str_of(names->items[i])))
            return kiln_err_set(err, -EINVAL, NULL,
                                "\"%.80s\" is not a host name (write names like kiln.example.com, "
                                "without scheme, port or wildcard)",
                                names->items[i]);
    return 0;
}

static int check_log(const struct kiln_settings *set, struct kiln_err *err)
{
    enum kiln_log_level level;
    enum kiln_log_form form;

    if (kiln_log_level_parse(set->log_level, &level) < 0)
        return kiln_err_set(err, -EINVAL, NULL,
                            "log level \"%.40s\" is none of debug, info, warn, error",
                            set->log_level);
    if (kiln_log_form_parse(set->log_format, &form) < 0)
        return kiln_err_set(err, -EINVAL, NULL,
                            "log format \"%.40s\" is none of logfmt, json, plain", set->log_format);
    return 0;
}

static int check_orders(const char *word, const char *what, struct kiln_err *err)
{
    enum kiln_order_limit limit;

    if (kiln_order_limit_parse(word, &limit) == 0)
        return 0;
    return kiln_err_set(err, -EINVAL, NULL, "%s \"%.40s\" is none of off, boost, all", what, word);
}

/* A path of another directory than the one that the server was started in. */
static int check_absolute(const char *path, const char *what, struct kiln_err *err)
{
    if (!path || path[0] == '/')
        return 0;
    return kiln_err_set(err, -EINVAL, NULL, "%s \"%.200s\" is not an absolute path", what, path);
}

static int check_server(const struct kiln_settings *set, struct kiln_err *err)
{
    if (!set->tls_cert != !set->tls_key)
        return kiln_err_set(err, -EINVAL, NULL,
                            "a TLS certificate and its key go together (say both --tls-cert and "
                            "--tls-key)");
    if (set->tls_client_ca && !set->tls_cert)
        return kiln_err_set(err, -EINVAL, NULL,
                            "clients' certificates need TLS (say --tls-cert and --tls-key too)");
    if (set->memory_limit < MEMORY_FLOOR)
        return kiln_err_set(err, -EINVAL, NULL,
                            "a memory limit of %llu bytes is too little (at least 96M)",
                            (unsigned long long)set->memory_limit);
    if (set->disk_percent > 100)
        return kiln_err_set(err, -EINVAL, NULL, "disk_percent is more than 100");
    if (!has_port(set) && !kiln_settings_on(set->socket) && !kiln_settings_on(set->otlp_socket))
        return kiln_err_set(err, -EINVAL, NULL, "every listener is off: nobody could come in");
    if (check_absolute(set->backup_dir, "backup_dir", err) < 0 ||
        check_absolute(set->audit_log, "audit_log", err) < 0)
        return -EINVAL;
    if (check_orders(set->anonymous_orders, "anonymous_orders", err) < 0)
        return -EINVAL;
    return check_addresses(set, err);
}

/* What is at fault with a place, is so in the file. */
static int check_host(struct kiln_server_config *config, struct kiln_err *err)
{
    struct kiln_err why = {0};
    struct kiln_host_plan plan;
    int r = kiln_host_plan_make(&config->set.host, &plan, &why);

    kiln_host_plan_done(&plan);
    if (r < 0 && why.where[0])
        config->blamed = config->file_name;
    return r < 0 ? kiln_err_set(err, r, why.where, "%s", why.text) : 0;
}

static int load(const struct kiln_settings *flags, bool server, struct kiln_server_config *config,
                struct kiln_err *err)
{
    int r;

    *config = (struct kiln_server_config){.flags = *flags};
    r = read_variables(&config->variables, err);
    if (r == 0)
        r = kiln_settings_join_words(config, err);
    if (r < 0)
        return r;
    config->set.config = or_else(flags->config, config->variables.config);
    r = read_file(config, err);
    if (r < 0)
        return r;
    overlay(&config->set, &config->variables);
    overlay(&config->set, &config->flags);
    fill_defaults(&config->set);
    if (server)
        kiln_settings_socket(config->default_socket);
    else
        snprintf(config->default_socket, sizeof(config->default_socket),
                 SOCKET_DIR "/" SOCKET_NAME);
    config->set.socket = or_else(config->set.socket, config->default_socket);
    fill_otlp_socket(config);
    fill_log(&config->set, server);
    r = default_data_dir(config, err);
    if (r < 0 && server)
        return r;
    fill_agent(config, server);
    r = check_log(&config->set, err);
    if (r == 0)
        r = check_orders(config->set.agent.orders, "orders", err);
    if (r == 0)
        r = kiln_settings_list_words(config, err);
    if (r == 0)
        r = check_host_names(&config->host_names, err);
    if (r == 0 && server)
        r = check_server(&config->set, err);
    return r < 0 ? r : check_host(config, err);
}

int kiln_settings_load(const struct kiln_settings *flags, struct kiln_server_config *config,
                       struct kiln_err *err)
{
    return load(flags, true, config, err);
}

int kiln_settings_load_agent(const struct kiln_settings *flags, struct kiln_server_config *config,
                             struct kiln_err *err)
{
    return load(flags, false, config, err);
}

void kiln_settings_done(struct kiln_server_config *config)
{
    kiln_free(config->rules);
    kiln_free(config->series_labels);
    kiln_free(config->query_tenants);
    kiln_settings_free_words(config);
    kiln_config_free(config->file);
    *config = (struct kiln_server_config){0};
}

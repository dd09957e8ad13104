/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three sources fill the same structure one after the other, each over the one before; the
 * variables are read as if they were the members of a map.
 */
#include "cli/settings.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "pipeline/gate.h"
#include "pipeline/receivers/scrape.h"

#define MEMORY_FLOOR ((uint64_t)96 << 20) /* below, one large profile does not pass */

#define FIELD(key, kind, member)                                                                   \
    {                                                                                              \
        (key), KILN_FIELD_##kind, offsetof(struct kiln_settings, member)                           \
    }

/* ---- the file ---- */

/* Of all parts of Kiln: what others read (`others`) is passed over. */
static const struct kiln_field top_fields[] = {
    FIELD("server", MAP, server),  FIELD("store", MAP, store),
    FIELD("scrape", LIST, scrape), FIELD("redaction", LIST, redaction),
    FIELD("tokens", TEXT, tokens), FIELD("agent", NODE, others),
    FIELD("watch", NODE, others),
};

static const struct kiln_field server_fields[] = {
    FIELD("listen", TEXT, listen),
    FIELD("otlp_grpc", TEXT, otlp_grpc),
    FIELD("otlp_http", TEXT, otlp_http),
    FIELD("socket", TEXT, socket),
    FIELD("log_level", TEXT, log_level),
    FIELD("log_format", TEXT, log_format),
    FIELD("ready_file", TEXT, ready_file),
    FIELD("memory_limit", SIZE, memory_limit),
    FIELD("allow_anonymous", BOOL, allow_anonymous),
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

static int read_sections(struct kiln_settings *set, const struct kiln_node *root,
                         struct kiln_err *err)
{
    int r = kiln_node_read(root, top_fields, KILN_ARRAY_LEN(top_fields), set, err);

    if (r == 0)
        r = kiln_node_read(set->server, server_fields, KILN_ARRAY_LEN(server_fields), set, err);
    if (r == 0)
        r = kiln_node_read(set->tls, tls_fields, KILN_ARRAY_LEN(tls_fields), set, err);
    if (r == 0)
        r = kiln_node_read(set->limits, limit_fields, KILN_ARRAY_LEN(limit_fields), set, err);
    if (r == 0)
        r = kiln_node_read(set->store, store_fields, KILN_ARRAY_LEN(store_fields), set, err);
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
        r = read_rules(config, err);
    if (r == 0)
        r = read_labels(config, err);
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
    FIELD("KILN_TLS_CERT", TEXT, tls_cert),
    FIELD("KILN_TLS_KEY", TEXT, tls_key),
    FIELD("KILN_TLS_CLIENT_CA", TEXT, tls_client_ca),
    FIELD("KILN_TOKENS", TEXT, tokens),
    FIELD("KILN_REDACT", TEXT, redact),
    FIELD("KILN_LOG_LEVEL", TEXT, log_level),
    FIELD("KILN_LOG_FORMAT", TEXT, log_format),
    FIELD("KILN_READY_FILE", TEXT, ready_file),
    FIELD("KILN_MEMORY_LIMIT", SIZE, memory_limit),
    FIELD("KILN_RETENTION", DURATION, retention_ns),
    FIELD("KILN_RETENTION_SIZE", SIZE, retention_size),
    FIELD("KILN_ALLOW_ANONYMOUS", BOOL, allow_anonymous),
    FIELD("KILN_MULTITENANT", BOOL, multitenant),
};

static int read_variables(struct kiln_settings *set, struct kiln_err *err)
{
    struct kiln_node nodes[KILN_ARRAY_LEN(variables)];
    struct kiln_node map = {.kind = KILN_NODE_MAP};
    struct kiln_err local = {0};
    int r;

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(variables); i++) {
        const char *value = getenv(variables[i].key);

        nodes[i] = (struct kiln_node){.kind = KILN_NODE_TEXT,
                                      .key = variables[i].key,
                                      .text = value ? value : "",
                                      .next = i ? &nodes[i - 1] : NULL};
    }
    map.first = &nodes[KILN_ARRAY_LEN(variables) - 1];
    r = kiln_node_read(&map, variables, KILN_ARRAY_LEN(variables), set, &local);
    /* without the place, which a variable does not have */
    return r < 0 ? kiln_err_set(err, -EINVAL, NULL, "%s", local.text) : 0;
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
    default:
        return sizeof(void *);
    }
}

static bool is_said(enum kiln_field_kind kind, const char *at)
{
    static const char zero[sizeof(uint64_t)];

    return memcmp(at, zero, size_of(kind)) != 0;
}

/* What was said in `over` replaces what is in `set`. */
static void overlay(struct kiln_settings *set, const struct kiln_settings *over)
{
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(variables); i++) {
        enum kiln_field_kind kind = variables[i].kind;
        const char *from = (const char *)over + variables[i].offset;

        if (is_said(kind, from))
            memcpy((char *)set + variables[i].offset, from, size_of(kind));
    }
    set->check = over->check;
}

/* ---- defaults ---- */

static bool is_service(void)
{
    return geteuid() == 0 || getenv("INVOCATION_ID"); /* which systemd gives */
}

static int default_data_dir(struct kiln_server_config *config, struct kiln_err *err)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    size_t room = sizeof(config->default_dir);
    int n;

    if (config->set.data_dir)
        return 0;
    if (is_service())
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

/* What this process may use: the machine's memory, or less where a control group says so. */
static uint64_t machine_memory(void)
{
    uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES), page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t all = pages * page, group;
    struct kiln_buf text;

    kiln_buf_init(&text, 64);
    if (kiln_file_read("/sys/fs/cgroup/memory.max", &text, NULL) == 0 &&
        kiln_str_parse_u64(kiln_str_trim(kiln_buf_str(&text)), &group) == 0 && group < all)
        all = group;
    kiln_buf_done(&text);
    return all;
}

/* A quarter, between 256 MiB and 2 GiB. */
static uint64_t default_memory(void)
{
    uint64_t quarter = machine_memory() / 4, least = UINT64_C(256) << 20, most = UINT64_C(2) << 30;

    return quarter < least ? least : quarter > most ? most : quarter;
}

static const char *or_else(const char *text, const char *instead)
{
    return text ? text : instead;
}

static int fill_defaults(struct kiln_server_config *config, struct kiln_err *err)
{
    struct kiln_settings *set = &config->set;

    set->listen = or_else(set->listen, "127.0.0.1:4040");
    set->otlp_grpc = or_else(set->otlp_grpc, "127.0.0.1:4317");
    set->otlp_http = or_else(set->otlp_http, "127.0.0.1:4318");
    set->socket = or_else(set->socket, "/run/kiln/kiln.sock");
    set->log_level = or_else(set->log_level, "info");
    set->log_format = or_else(set->log_format, "logfmt");
    if (set->memory_limit == 0)
        set->memory_limit = default_memory();
    if (set->retention_ns == 0)
        set->retention_ns = 14 * 86400 * KILN_NS_PER_S;
    if (set->disk_percent == 0)
        set->disk_percent = 80;
    return default_data_dir(config, err);
}

/* ---- sense ---- */

bool kiln_settings_on(const char *address)
{
    return address && *address && strcmp(address, "off") != 0;
}

/* Nobody listens where strangers can connect, without tokens. */
static int check_addresses(const struct kiln_settings *set, struct kiln_err *err)
{
    const char *const all[] = {set->listen, set->otlp_grpc, set->otlp_http};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(all); i++) {
        if (kiln_settings_on(all[i]) &&
            kiln_gate_check_listen(all[i], set->tokens, set->allow_anonymous, NULL) < 0)
            return kiln_err_set(err, -EINVAL, NULL,
                                "%s: whoever can reach this address could read and write profiles "
                                "(say --tokens FILE, or --allow-anonymous if that is meant)",
                                all[i]);
    }
    return 0;
}

static int check(const struct kiln_settings *set, struct kiln_err *err)
{
    enum kiln_log_level level;

    if (kiln_log_level_parse(set->log_level, &level) < 0)
        return kiln_err_set(err, -EINVAL, NULL,
                            "log level \"%.40s\" is none of debug, info, warn, error",
                            set->log_level);
    if (strcmp(set->log_format, "logfmt") != 0 && strcmp(set->log_format, "json") != 0)
        return kiln_err_set(err, -EINVAL, NULL, "log format \"%.40s\" is neither logfmt nor json",
                            set->log_format);
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
    if (!kiln_settings_on(set->listen) && !kiln_settings_on(set->otlp_grpc) &&
        !kiln_settings_on(set->otlp_http) && !kiln_settings_on(set->socket))
        return kiln_err_set(err, -EINVAL, NULL, "every listener is off: nobody could come in");
    return check_addresses(set, err);
}

int kiln_settings_load(const struct kiln_settings *flags, struct kiln_server_config *config,
                       struct kiln_err *err)
{
    struct kiln_settings said = {0};
    int r = read_variables(&said, err);

    *config = (struct kiln_server_config){0};
    if (r < 0)
        return r;
    overlay(&said, flags);
    config->set.config = said.config;
    r = read_file(config, err);
    if (r < 0)
        return r;
    overlay(&config->set, &said);
    r = fill_defaults(config, err);
    return r < 0 ? r : check(&config->set, err);
}

void kiln_settings_done(struct kiln_server_config *config)
{
    kiln_free(config->rules);
    kiln_free(config->series_labels);
    kiln_config_free(config->file);
    *config = (struct kiln_server_config){0};
}

/* ---- showing ---- */

static void put_text(struct kiln_buf *out, const char *text)
{
    kiln_buf_putc(out, '\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '$')
            kiln_buf_putc(out, *text);
        kiln_buf_putc(out, *text);
    }
    kiln_buf_putc(out, '\'');
}

static void put_size(struct kiln_buf *out, uint64_t value)
{
    if (value % (1u << 20) == 0)
        kiln_buf_printf(out, "%lluM", (unsigned long long)(value >> 20));
    else
        kiln_buf_printf(out, "%llu", (unsigned long long)value);
}

static void put_span(struct kiln_buf *out, uint64_t ns)
{
    const uint64_t s = ns / KILN_NS_PER_S;

    if (s % 86400 == 0)
        kiln_buf_printf(out, "%llud", (unsigned long long)(s / 86400));
    else if (ns % KILN_NS_PER_S == 0)
        kiln_buf_printf(out, "%llus", (unsigned long long)s);
    else
        kiln_buf_printf(out, "%lluns", (unsigned long long)ns);
}

/* On one line; as deep as the file was. */
static void put_node(struct kiln_buf *out, const struct kiln_node *node)
{
    if (node->kind == KILN_NODE_TEXT) {
        put_text(out, node->text);
        return;
    }
    kiln_buf_putc(out, node->kind == KILN_NODE_LIST ? '[' : '{');
    for (const struct kiln_node *m = node->first; m; m = m->next) {
        if (m->key)
            kiln_buf_printf(out, "%s: ", m->key);
        put_node(out, m);
        kiln_buf_puts(out, m->next ? ", " : "");
    }
    kiln_buf_putc(out, node->kind == KILN_NODE_LIST ? ']' : '}');
}

/* One value, which is there. */
static void put_value(struct kiln_buf *out, enum kiln_field_kind kind, const char *at)
{
    switch (kind) {
    case KILN_FIELD_TEXT:
        put_text(out, *(const char *const *)at);
        break;
    case KILN_FIELD_BOOL:
        kiln_buf_puts(out, "true");
        break;
    case KILN_FIELD_COUNT:
        kiln_buf_printf(out, "%u", *(const uint32_t *)at);
        break;
    case KILN_FIELD_SIZE:
        put_size(out, *(const uint64_t *)at);
        break;
    case KILN_FIELD_DURATION:
        put_span(out, *(const uint64_t *)at);
        break;
    default:
        put_node(out, *(const struct kiln_node *const *)at);
        break;
    }
}

struct section {
    const char *key;
    const struct kiln_field *fields;
    uint32_t n;
};

/* Those of its fields that were said, or have defaults; nothing where there are none. */
static void put_section(struct kiln_buf *out, const char *indent, struct section section,
                        const struct kiln_settings *set)
{
    size_t before = out->len, after;

    kiln_buf_printf(out, "%s%s:\n", indent, section.key);
    after = out->len;
    for (uint32_t i = 0; i < section.n; i++) {
        const struct kiln_field *field = &section.fields[i];
        const char *at = (const char *)set + field->offset;

        if (field->kind == KILN_FIELD_MAP || !is_said(field->kind, at))
            continue; /* maps are sections of their own */
        kiln_buf_printf(out, "%s  %s: ", indent, field->key);
        put_value(out, field->kind, at);
        kiln_buf_putc(out, '\n');
    }
    if (out->len == after)
        out->len = before;
}

#define SECTION(name, fields)                                                                      \
    (struct section)                                                                               \
    {                                                                                              \
        (name), (fields), KILN_ARRAY_LEN(fields)                                                   \
    }

void kiln_settings_format(const struct kiln_settings *set, struct kiln_buf *out)
{
    put_section(out, "", SECTION("server", server_fields), set);
    put_section(out, "  ", SECTION("tls", tls_fields), set);
    put_section(out, "  ", SECTION("limits", limit_fields), set);
    put_section(out, "", SECTION("store", store_fields), set);
    if (set->tokens) {
        kiln_buf_puts(out, "tokens: ");
        put_text(out, set->tokens);
        kiln_buf_putc(out, '\n');
    }
}

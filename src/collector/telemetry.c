/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that say how zap, OpenTelemetry's SDK or a reader of metrics work inside are taken and do
 * nothing: they change no profile.  Where metrics, logs or spans of the collector's own should be
 * sent somewhere, that is told of, once.
 */
#include "collector/telemetry.h"

#include <stdio.h>
#include <strings.h>

#define METRICS_ADDRESS "localhost:8888"

struct logs {
    const char *level, *encoding;
    const struct kiln_node *processors, *other;
};

struct metrics {
    const char *level, *address;
    const struct kiln_node *readers, *other;
};

struct telemetry {
    const struct kiln_node *logs, *metrics, *traces, *resource;
};

/* ---- log ---- */

static int read_level(const struct kiln_node *map, const char *word, enum kiln_log_level *ret,
                      struct kiln_err *err)
{
    static const struct {
        const char *word;
        enum kiln_log_level level;
    } levels[] = {{"debug", KILN_LOG_DEBUG}, {"info", KILN_LOG_INFO},    {"warn", KILN_LOG_WARN},
                  {"error", KILN_LOG_ERROR}, {"dpanic", KILN_LOG_ERROR}, {"panic", KILN_LOG_ERROR},
                  {"fatal", KILN_LOG_ERROR}};

    for (uint32_t i = 0; word && i < KILN_ARRAY_LEN(levels); i++) {
        if (strcasecmp(word, levels[i].word) == 0) {
            *ret = levels[i].level;
            return 0;
        }
    }
    if (!word)
        return 0;
    return kiln_node_fail(kiln_node_get(map, "level"), KILN_E_MALFORMED, err,
                          "service::telemetry::logs::level: unrecognized level: \"%.40s\" (debug, "
                          "info, warn or error)",
                          word);
}

static int read_logs(const struct kiln_node *map, struct kiln_telemetry *ret, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"level", KILN_FIELD_TEXT, offsetof(struct logs, level)},
        {"encoding", KILN_FIELD_TEXT, offsetof(struct logs, encoding)},
        {"processors", KILN_FIELD_NODE, offsetof(struct logs, processors)},
        {"development", KILN_FIELD_NODE, offsetof(struct logs, other)},
        {"disable_caller", KILN_FIELD_NODE, offsetof(struct logs, other)},
        {"disable_stacktrace", KILN_FIELD_NODE, offsetof(struct logs, other)},
        {"disable_zap_resource", KILN_FIELD_NODE, offsetof(struct logs, other)},
        {"sampling", KILN_FIELD_NODE, offsetof(struct logs, other)},
        {"output_paths", KILN_FIELD_NODE, offsetof(struct logs, other)},
        {"error_output_paths", KILN_FIELD_NODE, offsetof(struct logs, other)},
        {"initial_fields", KILN_FIELD_NODE, offsetof(struct logs, other)},
    };
    struct logs logs = {.encoding = "console"};
    int r = kiln_node_read(map, fields, KILN_ARRAY_LEN(fields), &logs, err);

    if (r == 0)
        r = read_level(map, logs.level, &ret->log_level, err);
    if (r < 0)
        return r;
    if (strcmp(logs.encoding, "json") != 0 && strcmp(logs.encoding, "console") != 0)
        return kiln_node_fail(kiln_node_get(map, "encoding"), KILN_E_MALFORMED, err,
                              "service::telemetry::logs::encoding: \"%.40s\" is neither console "
                              "nor json",
                              logs.encoding);
    ret->log_form = strcmp(logs.encoding, "json") == 0 ? KILN_LOG_JSON : KILN_LOG_LOGFMT;
    if (logs.processors)
        ret->left_out = logs.processors;
    return 0;
}

/* ---- metrics ---- */

struct prometheus {
    const char *host;
    uint32_t port;
    const struct kiln_node *other;
};

static int read_prometheus(const struct kiln_node *map, struct kiln_telemetry *ret,
                           struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"host", KILN_FIELD_TEXT, offsetof(struct prometheus, host)},
        {"port", KILN_FIELD_COUNT, offsetof(struct prometheus, port)},
        {"without_scope_info", KILN_FIELD_NODE, offsetof(struct prometheus, other)},
        {"without_type_suffix", KILN_FIELD_NODE, offsetof(struct prometheus, other)},
        {"without_units", KILN_FIELD_NODE, offsetof(struct prometheus, other)},
        {"without_target_info", KILN_FIELD_NODE, offsetof(struct prometheus, other)},
        {"with_resource_constant_labels", KILN_FIELD_NODE, offsetof(struct prometheus, other)},
        {"translation_strategy", KILN_FIELD_NODE, offsetof(struct prometheus, other)},
    };
    struct prometheus at = {.host = "localhost", .port = 8888};
    int r = kiln_node_read(map, fields, KILN_ARRAY_LEN(fields), &at, err);

    if (r < 0)
        return r;
    ret->metrics_said = true;
    snprintf(ret->metrics_address, sizeof(ret->metrics_address),
             strchr(at.host, ':') && at.host[0] != '[' ? "[%.255s]:%u" : "%.255s:%u", at.host,
             at.port);
    return 0;
}

/* Which are asked (pull), and which send by themselves (periodic). */
struct reader {
    const struct kiln_node *pull, *periodic, *exporter, *prometheus, *other;
};

static int read_reader(const struct kiln_node *node, struct kiln_telemetry *ret,
                       struct kiln_err *err)
{
#define FIELD(key, kind, member)                                                                   \
    {                                                                                              \
        key, KILN_FIELD_##kind, offsetof(struct reader, member)                                    \
    }
    static const struct kiln_field fields[] = {FIELD("pull", MAP, pull),
                                               FIELD("periodic", MAP, periodic)};
    static const struct kiln_field pull[] = {FIELD("exporter", MAP, exporter),
                                             FIELD("producers", NODE, other),
                                             FIELD("cardinality_limits", NODE, other)};
    static const struct kiln_field periodic[] = {
        FIELD("exporter", NODE, other), FIELD("interval", NODE, other),
        FIELD("timeout", NODE, other), FIELD("producers", NODE, other),
        FIELD("cardinality_limits", NODE, other)};
    static const struct kiln_field exporter[] = {FIELD("prometheus", MAP, prometheus)};
#undef FIELD
    struct reader reader = {0};
    int r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), &reader, err);

    if (r == 0)
        r = kiln_node_read(reader.pull, pull, KILN_ARRAY_LEN(pull), &reader, err);
    if (r == 0)
        r = kiln_node_read(reader.periodic, periodic, KILN_ARRAY_LEN(periodic), &reader, err);
    if (r == 0)
        r = kiln_node_read(reader.exporter, exporter, KILN_ARRAY_LEN(exporter), &reader, err);
    if (r == 0 && reader.prometheus)
        return read_prometheus(reader.prometheus, ret, err);
    if (r == 0)
        ret->left_out = node;
    return r;
}

/* Of several that can be asked, the last one; those that send are left out. */
static int read_readers(const struct kiln_node *list, struct kiln_telemetry *ret,
                        struct kiln_err *err)
{
    int r = 0;

    ret->metrics_address[0] = '\0';
    for (const struct kiln_node *reader = list->first; r == 0 && reader; reader = reader->next)
        r = read_reader(reader, ret, err);
    return r;
}

static bool is_level(const char *word)
{
    static const char *const levels[] = {"none", "basic", "normal", "detailed"};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(levels); i++)
        if (strcasecmp(word, levels[i]) == 0)
            return true;
    return false;
}

static int read_metrics(const struct kiln_node *map, struct kiln_telemetry *ret,
                        struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"level", KILN_FIELD_TEXT, offsetof(struct metrics, level)},
        {"address", KILN_FIELD_TEXT, offsetof(struct metrics, address)},
        {"readers", KILN_FIELD_LIST, offsetof(struct metrics, readers)},
        {"views", KILN_FIELD_NODE, offsetof(struct metrics, other)},
    };
    struct metrics metrics = {.level = "normal"};
    int r = kiln_node_read(map, fields, KILN_ARRAY_LEN(fields), &metrics, err);

    if (r < 0)
        return r;
    if (!is_level(metrics.level))
        return kiln_node_fail(kiln_node_get(map, "level"), KILN_E_MALFORMED, err,
                              "service::telemetry::metrics::level: unknown metrics level "
                              "\"%.40s\" (none, basic, normal or detailed)",
                              metrics.level);
    if (metrics.address) {
        ret->metrics_said = true;
        snprintf(ret->metrics_address, sizeof(ret->metrics_address), "%s", metrics.address);
    }
    if (metrics.readers)
        r = read_readers(metrics.readers, ret, err);
    ret->details = strcasecmp(metrics.level, "detailed") == 0;
    if (strcasecmp(metrics.level, "none") == 0)
        ret->metrics_address[0] = '\0';
    return r;
}

/* ---- all ---- */

int kiln_telemetry_read(const struct kiln_node *root, struct kiln_telemetry *ret,
                        struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"logs", KILN_FIELD_MAP, offsetof(struct telemetry, logs)},
        {"metrics", KILN_FIELD_MAP, offsetof(struct telemetry, metrics)},
        {"traces", KILN_FIELD_MAP, offsetof(struct telemetry, traces)},
        {"resource", KILN_FIELD_MAP, offsetof(struct telemetry, resource)},
    };
    struct telemetry telemetry = {0};
    int r = kiln_node_read(kiln_node_get(kiln_node_get(root, "service"), "telemetry"), fields,
                           KILN_ARRAY_LEN(fields), &telemetry, err);

    *ret = (struct kiln_telemetry){.log_level = KILN_LOG_INFO, .metrics_address = METRICS_ADDRESS};
    if (r == 0)
        r = read_logs(telemetry.logs, ret, err);
    if (r == 0)
        r = read_metrics(telemetry.metrics, ret, err);
    if (r == 0 && kiln_node_get(telemetry.traces, "processors"))
        ret->left_out = kiln_node_get(telemetry.traces, "processors");
    return r;
}

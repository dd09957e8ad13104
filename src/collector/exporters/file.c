/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/exporters/file.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collector/graph.h"
#include "collector/registry.h"
#include "collector/settings.h"

#define NS_PER_DAY (24 * 3600 * KILN_NS_PER_S)

enum { OPEN_MAX = 1000 };

struct rotation {
    uint32_t megabytes, days, backups;
    bool local_time;
};

struct groups {
    bool enabled;
    const char *attribute;
    uint32_t open_max;
};

struct settings {
    const char *path;
    const struct kiln_node *format, *compression, *compression_params, *rotation_node, *group_by;
    const struct kiln_node *permissions, *flush_interval; /* everything is written at once */
    struct groups groups;
    uint32_t level, folder_mode;
    bool append, create_directory, zstd, rotates;
    enum kiln_file_format as;
    struct rotation rotation;
};

struct file {
    struct kiln_component component; /* first */
};

static int start(struct kiln_component *component, struct kiln_err *err)
{
    return kiln_file_exporter_start(component->in, err);
}

/* Deliveries have ended when consume() returns. */
static void let_go(struct kiln_component *component)
{
    (void)component;
}

static void destroy(struct kiln_component *component)
{
    kiln_file_exporter_free(component->in);
    kiln_free(component);
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {
        .start = start, .let_go = let_go, .free = destroy};
    const struct settings *s = settings;
    struct file *file = kiln_calloc(1, sizeof(*file));
    const struct kiln_file_export_opts opts = {
        .name = env->id,
        .path = s->path,
        .group_by = s->groups.enabled ? s->groups.attribute : NULL,
        .open_max = s->groups.open_max,
        .format = s->as,
        .zstd = s->zstd,
        .level = s->zstd ? (int)s->level : 0,
        /* What stands there was written by the graph before, and is not to go. */
        .append = s->append || kiln_graph_before(env->graph),
        .create_directory = s->create_directory,
        .folder_mode = s->folder_mode,
        .rotate_bytes = s->rotates ? (uint64_t)s->rotation.megabytes << 20 : 0,
        .backups_max = s->rotation.backups,
        .age_max_ns = s->rotation.days * NS_PER_DAY,
        .local_time = s->rotation.local_time,
        .metrics = env->metrics,
        .log = env->log,
    };
    int r = file ? 0 : kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));

    if (r == 0)
        r = kiln_file_exporter_new(&opts, &file->component.in, err);
    if (r < 0) {
        kiln_free(file);
        return r;
    }
    file->component.ops = &ops;
    *ret_component = &file->component;
    return 0;
}

static int read_format(const struct kiln_node *node, enum kiln_file_format *ret,
                       struct kiln_err *err)
{
    static const char *const names[] = {
        [KILN_FILE_JSON] = "json", [KILN_FILE_PROTO] = "proto", [KILN_FILE_PPROF] = "pprof"};
    const char *text = NULL;
    int r = node ? kiln_node_text(node, &text, err) : 0;

    if (r < 0 || !node)
        return r;
    for (size_t i = 0; i < KILN_ARRAY_LEN(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum kiln_file_format)i;
            return 0;
        }
    }
    return kiln_node_fail(node, KILN_E_UNSUPPORTED, err,
                          "format \"%s\" is not supported (say json, proto or pprof)", text);
}

static int read_compression(const struct kiln_node *node, bool *ret_zstd, struct kiln_err *err)
{
    const char *text = "";
    int r = node ? kiln_node_text(node, &text, err) : 0;

    if (r == 0 && *text && strcmp(text, "zstd") != 0)
        return kiln_node_fail(node, KILN_E_UNSUPPORTED, err,
                              "compression \"%s\" is not supported (say zstd)", text);
    *ret_zstd = *text;
    return r;
}

static int read_rotation(const struct kiln_node *node, struct rotation *ret, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"max_megabytes", KILN_FIELD_COUNT, offsetof(struct rotation, megabytes)},
        {"max_days", KILN_FIELD_COUNT, offsetof(struct rotation, days)},
        {"max_backups", KILN_FIELD_COUNT, offsetof(struct rotation, backups)},
        {"localtime", KILN_FIELD_BOOL, offsetof(struct rotation, local_time)},
    };

    *ret = (struct rotation){.megabytes = 100, .backups = 100};
    return kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), ret, err);
}

/* A time, or nanoseconds without a unit: checked, and of no consequence. */
static int check_flush_interval(const struct kiln_node *node, struct kiln_err *err)
{
    uint64_t ns;

    if (!node || (node->kind == KILN_NODE_TEXT && kiln_node_u64(node, &ns, NULL) == 0))
        return 0;
    return kiln_node_duration(node, &ns, err);
}

static int read_groups(const struct kiln_node *node, struct settings *s, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"enabled", KILN_FIELD_BOOL, offsetof(struct groups, enabled)},
        {"resource_attribute", KILN_FIELD_TEXT, offsetof(struct groups, attribute)},
        {"max_open_files", KILN_FIELD_COUNT, offsetof(struct groups, open_max)},
    };
    const char *star = s->path ? strchr(s->path, '*') : NULL;
    int r;

    s->groups = (struct groups){.attribute = "fileexporter.path_segment", .open_max = 100};
    r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), &s->groups, err);
    if (r < 0 || !s->groups.enabled)
        return r;
    if (!star || strchr(star + 1, '*'))
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "path must contain exactly one * when group_by is enabled");
    if (!*s->groups.attribute)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "resource_attribute must be non-empty");
    if (s->groups.open_max == 0 || s->groups.open_max > OPEN_MAX)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "max_open_files must be 1 to %d",
                              OPEN_MAX);
    if (s->as == KILN_FILE_PPROF)
        return kiln_node_fail(node, KILN_E_UNSUPPORTED, err,
                              "format pprof has a file for each resource already: leave one of "
                              "both out");
    return 0;
}

static int read_settings(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"path", KILN_FIELD_TEXT, offsetof(struct settings, path)},
        {"format", KILN_FIELD_NODE, offsetof(struct settings, format)},
        {"compression", KILN_FIELD_NODE, offsetof(struct settings, compression)},
        {"compression_params", KILN_FIELD_MAP, offsetof(struct settings, compression_params)},
        {"rotation", KILN_FIELD_MAP, offsetof(struct settings, rotation_node)},
        {"append", KILN_FIELD_BOOL, offsetof(struct settings, append)},
        {"create_directory", KILN_FIELD_BOOL, offsetof(struct settings, create_directory)},
        {"directory_permissions", KILN_FIELD_NODE, offsetof(struct settings, permissions)},
        {"group_by", KILN_FIELD_MAP, offsetof(struct settings, group_by)},
        {"flush_interval", KILN_FIELD_NODE, offsetof(struct settings, flush_interval)},
    };
    static const struct kiln_field params[] = {
        {"level", KILN_FIELD_COUNT, offsetof(struct settings, level)},
    };
    static const struct kiln_refused_key refused[] = {
        {"encoding", "there are no extensions that encode: say format: json or proto"},
    };
    struct settings *s = settings;
    int r = kiln_settings_refuse(node, refused, KILN_ARRAY_LEN(refused), err);

    if (r == 0)
        r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), s, err);
    if (r == 0 && (!s->path || !*s->path))
        r = kiln_err_set(err, KILN_E_MALFORMED, "path", "path must be non-empty");
    if (r == 0)
        r = read_format(s->format, &s->as, err);
    if (r == 0)
        r = read_groups(s->group_by, s, err);
    if (r == 0)
        r = read_compression(s->compression, &s->zstd, err);
    if (r == 0)
        r = kiln_node_read(s->compression_params, params, KILN_ARRAY_LEN(params), s, err);
    if (r == 0)
        r = kiln_settings_folder_mode(s->permissions, s->create_directory, &s->folder_mode, err);
    if (r == 0)
        r = check_flush_interval(s->flush_interval, err);
    if (r == 0)
        r = read_rotation(s->rotation_node, &s->rotation, err);
    s->rotates = kiln_settings_has(node, "rotation"); /* with nothing behind it: the defaults */
    if (r == 0 && s->append && s->rotates)
        r = kiln_err_set(err, KILN_E_MALFORMED, "append",
                         "append and rotation enabled at the same time is not supported");
    return r;
}

const struct kiln_component_type kiln_file_exporter_type = {
    .name = "file",
    .kind = KILN_EXPORTER,
    .signals = KILN_TAKES_PROFILES,
    .stability = "beta",
    .settings_size = sizeof(struct settings),
    .read = read_settings,
    .make = make,
};

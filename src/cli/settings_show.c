/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds, and why: of each value, the last one that said it.  An option is named as its
 * variable is: --data-dir, KILN_DATA_DIR.
 */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/settings_int.h"

enum { WHY_COLUMN = 44, NAME_BYTES = 64 };

enum source { BY_DEFAULT, BY_FILE, BY_VARIABLE, BY_OPTION };

static const char *const source_names[] = {"default", "file", "variable", "option"};

/* One setting that holds. */
struct shown {
    const struct kiln_settings_map *map;
    const struct kiln_field *field;
    const void *at;
    enum source source;
    char name[NAME_BYTES]; /* of the variable or option */
    uint32_t line;         /* of the file */
};

/* ---- why ---- */

/* KILN_DATA_DIR: --data-dir */
static void option_of(const char *variable, char out[NAME_BYTES])
{
    size_t n = 2;

    memcpy(out, "--", 2);
    for (const char *c = variable + strlen("KILN_"); *c && n + 1 < NAME_BYTES; c++)
        out[n++] = (char)(*c == '_' ? '-' : tolower((unsigned char)*c));
    out[n] = '\0';
}

/* `profiling` of the file says two settings of `agent`. */
static const struct kiln_node *stand_in(const struct kiln_settings *set,
                                        const struct kiln_field *field)
{
    if (field->offset == offsetof(struct kiln_settings, host.frequency))
        return set->host.cpu_interval;
    if (field->offset == offsetof(struct kiln_settings, host.enabled))
        return set->host.cpu_enabled;
    return NULL;
}

static void find_source(const struct kiln_server_config *config, struct shown *s)
{
    const char *option = kiln_settings_variable(s->field, false);
    const struct kiln_node *map =
        *(const struct kiln_node *const *)((const char *)&config->set + s->map->offset);
    const struct kiln_node *node = map ? kiln_node_get(map, s->field->key) : NULL;

    node = node ? node : stand_in(&config->set, s->field);
    s->source = node ? BY_FILE : BY_DEFAULT;
    s->line = node ? node->key_line : 0;
    if (option && kiln_settings_said(&config->flags, s->field)) {
        s->source = BY_OPTION;
        option_of(option, s->name);
    } else if (option && kiln_settings_said(&config->variables, s->field)) {
        s->source = BY_VARIABLE;
        snprintf(s->name, sizeof(s->name), "%s", kiln_settings_variable(s->field, true));
    }
}

/* Maps are shown by their members; scrape and redaction (lists of the file itself), not at all. */
static bool is_shown(const struct kiln_settings_map *map, const struct kiln_field *field)
{
    if (field->kind == KILN_FIELD_MAP || field->kind == KILN_FIELD_NODE)
        return false;
    return field->kind != KILN_FIELD_LIST || map->path[0];
}

/* True: there is something to show. */
static bool look(const struct kiln_server_config *config, const struct kiln_settings_map *map,
                 const struct kiln_field *field, struct shown *ret)
{
    *ret = (struct shown){
        .map = map, .field = field, .at = (const char *)&config->set + field->offset};
    if (!is_shown(map, field))
        return false;
    find_source(config, ret);
    return kiln_settings_said(&config->set, field) || ret->source != BY_DEFAULT ||
           field->kind == KILN_FIELD_BOOL;
}

/* ---- YAML ---- */

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
    if (value && value % (1u << 30) == 0)
        kiln_buf_printf(out, "%lluG", (unsigned long long)(value >> 30));
    else if (value && value % (1u << 20) == 0)
        kiln_buf_printf(out, "%lluM", (unsigned long long)(value >> 20));
    else
        kiln_buf_printf(out, "%llu", (unsigned long long)value);
}

static void put_span(struct kiln_buf *out, uint64_t ns)
{
    const uint64_t s = ns / KILN_NS_PER_S;

    if (s && ns % KILN_NS_PER_S == 0 && s % 86400 == 0)
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

static void put_either(struct kiln_buf *out, const struct kiln_either *either)
{
    if (either->text)
        put_text(out, either->text);
    else
        put_node(out, either->node);
}

static void put_value(struct kiln_buf *out, enum kiln_field_kind kind, const void *at)
{
    switch (kind) {
    case KILN_FIELD_TEXT:
        put_text(out, *(const char *const *)at);
        break;
    case KILN_FIELD_BOOL:
        kiln_buf_puts(out, *(const bool *)at ? "true" : "false");
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
    case KILN_FIELD_EITHER:
        put_either(out, at);
        break;
    default:
        put_node(out, *(const struct kiln_node *const *)at);
        break;
    }
}

static void put_why(const struct kiln_server_config *config, const struct shown *s,
                    size_t line_start, struct kiln_buf *out)
{
    size_t wide = out->len - line_start;

    kiln_buf_printf(out, "%*s# ", wide < WHY_COLUMN ? (int)(WHY_COLUMN - wide) : 2, "");
    if (s->source == BY_FILE)
        kiln_buf_printf(out, "%s:%u\n", config->file_name, s->line);
    else
        kiln_buf_printf(out, "%s\n", s->source == BY_DEFAULT ? "default" : s->name);
}

/* The head of a map is written with its first member: "server.tls" is "tls:" in "server:". */
static void put_map(const struct kiln_server_config *config, const struct kiln_settings_map *map,
                    struct kiln_buf *out)
{
    const char *dot = strchr(map->path, '.');
    int indent = dot ? 2 : 0;
    bool begun = !map->path[0];
    struct shown s;

    for (uint32_t i = 0; i < map->n; i++) {
        size_t start;

        if (!look(config, map, &map->fields[i], &s))
            continue;
        if (!begun)
            kiln_buf_printf(out, "%*s%s:\n", indent, "", dot ? dot + 1 : map->path);
        begun = true;
        start = out->len;
        kiln_buf_printf(out, "%*s%s: ", map->path[0] ? indent + 2 : 0, "", s.field->key);
        put_value(out, s.field->kind, s.at);
        put_why(config, &s, start, out);
    }
}

void kiln_settings_format(const struct kiln_server_config *config, struct kiln_buf *out)
{
    const struct kiln_settings *set = &config->set;

    for (uint32_t i = 0; i < KILN_SETTINGS_MAPS; i++)
        put_map(config, &kiln_settings_maps[i], out);
    if (set->redact)
        kiln_buf_printf(out, "# redaction: not shown, see %s\n", set->redact);
    else if (set->redaction)
        kiln_buf_printf(out, "# redaction: not shown, see %s:%u\n", config->file_name,
                        set->redaction->key_line);
    if (set->agent.headers)
        kiln_buf_printf(out, "# agent.export.headers: not shown, see %s:%u\n", config->file_name,
                        set->agent.headers->key_line);
    if (set->host.identity)
        kiln_buf_printf(out, "# agent.identity: not shown, see %s:%u\n", config->file_name,
                        set->host.identity->key_line);
    if (set->scrape)
        kiln_buf_printf(out, "# scrape: not shown, see %s:%u\n", config->file_name,
                        set->scrape->key_line);
}

/* ---- JSON ---- */

static void json_node(struct kiln_json_out *w, const struct kiln_node *node)
{
    if (node->kind == KILN_NODE_TEXT) {
        kiln_json_put_str(w, kiln_str_of(node->text));
        return;
    }
    if (node->kind == KILN_NODE_LIST)
        kiln_json_put_array(w);
    else
        kiln_json_put_object(w);
    for (const struct kiln_node *m = node->first; m; m = m->next) {
        if (m->key)
            kiln_json_put_name(w, m->key);
        json_node(w, m);
    }
    if (node->kind == KILN_NODE_LIST)
        kiln_json_end_array(w);
    else
        kiln_json_end_object(w);
}

static void json_either(struct kiln_json_out *w, const struct kiln_either *either)
{
    if (either->text)
        kiln_json_put_str(w, kiln_str_of(either->text));
    else
        json_node(w, either->node);
}

static void json_value(struct kiln_json_out *w, enum kiln_field_kind kind, const void *at)
{
    struct kiln_buf span;

    switch (kind) {
    case KILN_FIELD_TEXT:
        kiln_json_put_str(w, kiln_str_of(*(const char *const *)at));
        break;
    case KILN_FIELD_BOOL:
        kiln_json_put_bool(w, *(const bool *)at);
        break;
    case KILN_FIELD_COUNT:
        kiln_json_put_u64(w, *(const uint32_t *)at);
        break;
    case KILN_FIELD_SIZE:
        kiln_json_put_u64(w, *(const uint64_t *)at);
        break;
    case KILN_FIELD_DURATION:
        kiln_buf_init(&span, 64);
        put_span(&span, *(const uint64_t *)at);
        kiln_json_put_str(w, kiln_buf_str(&span));
        kiln_buf_done(&span);
        break;
    case KILN_FIELD_EITHER:
        json_either(w, at);
        break;
    default:
        json_node(w, *(const struct kiln_node *const *)at);
        break;
    }
}

static void json_setting(struct kiln_json_out *w, const struct shown *s)
{
    char key[NAME_BYTES];

    snprintf(key, sizeof(key), "%s%s%s", s->map->path, s->map->path[0] ? "." : "", s->field->key);
    kiln_json_put_object(w);
    kiln_json_put_name(w, "key");
    kiln_json_put_str(w, kiln_str_of(key));
    kiln_json_put_name(w, "value");
    json_value(w, s->field->kind, s->at);
    kiln_json_put_name(w, "source");
    kiln_json_put_str(w, kiln_str_of(source_names[s->source]));
    if (s->name[0]) {
        kiln_json_put_name(w, "name");
        kiln_json_put_str(w, kiln_str_of(s->name));
    }
    if (s->source == BY_FILE) {
        kiln_json_put_name(w, "line");
        kiln_json_put_u64(w, s->line);
    }
    kiln_json_end_object(w);
}

void kiln_settings_format_json(const struct kiln_server_config *config, struct kiln_buf *out)
{
    struct kiln_json_out w;
    struct shown s;

    kiln_json_out_init(&w, out, 2);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "file");
    if (config->file_name)
        kiln_json_put_str(&w, kiln_str_of(config->file_name));
    else
        kiln_json_put_null(&w);
    kiln_json_put_name(&w, "settings");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < KILN_SETTINGS_MAPS; i++)
        for (uint32_t k = 0; k < kiln_settings_maps[i].n; k++)
            if (look(config, &kiln_settings_maps[i], &kiln_settings_maps[i].fields[k], &s))
                json_setting(&w, &s);
    kiln_json_end_array(&w);
    kiln_json_end_object(&w);
    kiln_buf_putc(out, '\n');
}

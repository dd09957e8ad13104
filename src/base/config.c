/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libyaml gives events; a stack of open lists and maps turns them into nodes, which lie in one
 * arena together with their texts.  Depth and number of nodes are bounded while events come, so
 * that no input makes more work than its size.
 */
#include "base/config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/quantity.h"

enum { DEPTH_MAX = 32, NODES_MAX = 100000, KEYS_NAMED_MAX = 64, NAME_MAX_BYTES = 128 };

#define MEMORY_MAX ((size_t)64 << 20)

struct kiln_config {
    struct kiln_budget budget;
    struct kiln_arena arena;
    struct kiln_node *root;
};

struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the one at hand */
    struct kiln_config *config;
    struct kiln_node *open[DEPTH_MAX]; /* lists and maps that are not closed yet */
    struct kiln_node *last[DEPTH_MAX]; /* the newest child of each */
    uint32_t depth;
    uint32_t nodes;
    bool plain;      /* no variables */
    const char *key; /* read, its value comes; NULL: none */
    yaml_mark_t key_mark;
    struct kiln_err *err;
};

/* ---- errors ---- */

static int fail_at(struct reader *r, yaml_mark_t mark, int code, const char *text)
{
    char where[64];

    snprintf(where, sizeof(where), "line %zu, column %zu", mark.line + 1, mark.column + 1);
    return kiln_err_set(r->err, code, where, "%s", text);
}

static int fail_here(struct reader *r, int code, const char *text)
{
    return fail_at(r, r->event.start_mark, code, text);
}

static int no_memory(struct reader *r)
{
    return fail_here(r, -ENOMEM, kiln_err_text(-ENOMEM));
}

/* ---- variables ---- */

/* What stands between ${ and }, a variable or its default. */
static int add_variable(struct reader *r, struct kiln_buf *out, struct kiln_str inside)
{
    struct kiln_str name = inside, fallback = KILN_STR_NONE;
    char c_name[NAME_MAX_BYTES];
    const char *value;

    if (!kiln_str_starts(inside, KILN_STR("env:")))
        return fail_here(r, KILN_E_MALFORMED,
                         "only ${env:NAME} and ${env:NAME:-default} are known (a dollar is $$)");
    name.ptr += 4;
    name.len -= 4;
    for (size_t i = 0; i + 1 < name.len; i++) {
        if (name.ptr[i] == ':' && name.ptr[i + 1] == '-') {
            fallback = (struct kiln_str){name.ptr + i + 2, name.len - i - 2};
            name.len = i;
        }
    }
    if (name.len == 0 || name.len >= sizeof(c_name) || memchr(name.ptr, '\0', name.len))
        return fail_here(r, KILN_E_MALFORMED, "this is no name of a variable");
    memcpy(c_name, name.ptr, name.len);
    c_name[name.len] = '\0';
    value = getenv(c_name);
    if (fallback.ptr && (!value || !*value))
        kiln_buf_add_str(out, fallback);
    else if (value)
        kiln_buf_puts(out, value);
    else
        return fail_here(r, KILN_E_MALFORMED,
                         "this variable is not set (a default is written ${env:NAME:-default})");
    return 0;
}

static int expand(struct reader *r, struct kiln_str text, struct kiln_buf *out)
{
    const char *at = text.ptr, *end = text.ptr + text.len, *close;
    int n;

    while (at < end) {
        const char *dollar = memchr(at, '$', (size_t)(end - at));

        kiln_buf_add(out, at, (size_t)((dollar ? dollar : end) - at));
        if (!dollar)
            break;
        at = dollar + 1;
        if (at < end && *at == '{') {
            close = memchr(at, '}', (size_t)(end - at));
            if (!close)
                return fail_here(r, KILN_E_MALFORMED, "${ is not closed (a dollar is $$)");
            n = add_variable(r, out, (struct kiln_str){at + 1, (size_t)(close - at - 1)});
            if (n < 0)
                return n;
            at = close + 1;
        } else {
            kiln_buf_putc(out, '$');
            at += at < end && *at == '$';
        }
    }
    return out->error ? fail_here(r, out->error, kiln_err_text(out->error)) : 0;
}

/* ---- nodes ---- */

static const char *copy_c(struct reader *r, struct kiln_str s)
{
    char *copy = kiln_arena_alloc(&r->config->arena, s.len + 1);

    if (!copy)
        return NULL;
    if (s.len)
        memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return copy;
}

/* The scalar at hand, as a C string in the arena. */
static int scalar(struct reader *r, bool expanding, const char **ret)
{
    struct kiln_str s = {(const char *)r->event.data.scalar.value, r->event.data.scalar.length};
    struct kiln_buf buf;
    int n = 0;

    if (memchr(s.ptr, '\0', s.len))
        return fail_here(r, KILN_E_MALFORMED, "a text holds a NUL character");
    kiln_buf_init(&buf, KILN_CONFIG_MAX);
    if (expanding && memchr(s.ptr, '$', s.len)) {
        n = expand(r, s, &buf);
        s = kiln_buf_str(&buf);
    }
    if (n == 0) {
        *ret = copy_c(r, s);
        n = *ret ? 0 : no_memory(r);
    }
    kiln_buf_done(&buf);
    return n;
}

static struct kiln_node *parent(const struct reader *r)
{
    return r->depth ? r->open[r->depth - 1] : NULL;
}

/* A new node under the innermost open list or map. */
static int add_node(struct reader *r, enum kiln_node_kind kind, struct kiln_node **ret_node)
{
    struct kiln_node *up = parent(r), *node;
    yaml_mark_t mark = r->event.start_mark;

    if (r->nodes++ >= NODES_MAX)
        return fail_here(r, KILN_E_LIMIT, "there are too many values");
    node = kiln_arena_alloc(&r->config->arena, sizeof(*node));
    if (!node)
        return no_memory(r);
    *node = (struct kiln_node){.kind = kind,
                               .line = (uint32_t)mark.line + 1,
                               .column = (uint32_t)mark.column + 1,
                               .key = r->key,
                               .key_line = (uint32_t)r->key_mark.line + 1,
                               .key_column = (uint32_t)r->key_mark.column + 1};
    r->key = NULL;
    if (!up) {
        r->config->root = node;
    } else {
        if (up->n++ == 0)
            up->first = node;
        else
            r->last[r->depth - 1]->next = node;
        r->last[r->depth - 1] = node;
    }
    *ret_node = node;
    return 0;
}

static int read_key(struct reader *r)
{
    const struct kiln_node *up = parent(r);
    int n;

    if (r->event.type != YAML_SCALAR_EVENT)
        return fail_here(r, KILN_E_MALFORMED, "a key belongs here");
    r->key_mark = r->event.start_mark;
    n = scalar(r, false, &r->key);
    if (n < 0)
        return n;
    for (const struct kiln_node *m = up->first; m; m = m->next) {
        if (strcmp(m->key, r->key) == 0)
            return fail_here(r, KILN_E_MALFORMED, "this key is here twice");
    }
    return up->n < 1000 ? 0 : fail_here(r, KILN_E_LIMIT, "a map has more than 1,000 keys");
}

static int open_node(struct reader *r, enum kiln_node_kind kind)
{
    struct kiln_node *node;
    int n;

    if (r->depth == DEPTH_MAX)
        return fail_here(r, KILN_E_LIMIT, "lists and maps stand too deep within each other");
    n = add_node(r, kind, &node);
    if (n < 0)
        return n;
    r->open[r->depth++] = node;
    return 0;
}

static int read_text(struct reader *r)
{
    struct kiln_node *node;
    int n = add_node(r, KILN_NODE_TEXT, &node);

    if (n < 0)
        return n;
    node->quoted = r->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return scalar(r, !r->plain, &node->text);
}

static bool has_anchor_or_tag(const yaml_event_t *e)
{
    if (e->type == YAML_SCALAR_EVENT)
        return e->data.scalar.anchor || e->data.scalar.tag;
    if (e->type == YAML_MAPPING_START_EVENT)
        return e->data.mapping_start.anchor || e->data.mapping_start.tag;
    return e->type == YAML_SEQUENCE_START_EVENT &&
           (e->data.sequence_start.anchor || e->data.sequence_start.tag);
}

/* One event inside the document. */
static int read_event(struct reader *r)
{
    const struct kiln_node *up = parent(r);
    yaml_event_type_t type = r->event.type;

    if (type == YAML_ALIAS_EVENT || has_anchor_or_tag(&r->event))
        return fail_here(r, KILN_E_MALFORMED, "anchors, aliases and tags are not known here");
    if (type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT) {
        r->depth--;
        return 0;
    }
    if (up && up->kind == KILN_NODE_MAP && !r->key)
        return read_key(r);
    if (type == YAML_SCALAR_EVENT)
        return read_text(r);
    return open_node(r, type == YAML_MAPPING_START_EVENT ? KILN_NODE_MAP : KILN_NODE_LIST);
}

/* ---- the document ---- */

static int next(struct reader *r)
{
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event))
        return 0;
    memset(&r->event, 0, sizeof(r->event));
    if (r->parser.error == YAML_MEMORY_ERROR)
        return kiln_err_set(r->err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    return fail_at(r, r->parser.problem_mark, KILN_E_MALFORMED,
                   r->parser.problem ? r->parser.problem : "this is not YAML");
}

static int read_stream(struct reader *r)
{
    bool seen = false;
    int n;

    while ((n = next(r)) == 0 && r->event.type != YAML_STREAM_END_EVENT) {
        if (r->event.type == YAML_STREAM_START_EVENT || r->event.type == YAML_DOCUMENT_END_EVENT)
            continue;
        if (r->event.type == YAML_DOCUMENT_START_EVENT) {
            if (seen)
                return fail_here(r, KILN_E_MALFORMED, "there is a second document");
            seen = true;
            continue;
        }
        n = read_event(r);
        if (n < 0)
            return n;
    }
    return n;
}

static int read_text_of(struct reader *r, struct kiln_str text)
{
    int n;

    if (!yaml_parser_initialize(&r->parser))
        return kiln_err_set(r->err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)(text.ptr ? text.ptr : ""),
                                 text.len);
    n = read_stream(r);
    yaml_event_delete(&r->event);
    yaml_parser_delete(&r->parser);
    return n;
}

static int parse(struct kiln_str text, bool plain, struct kiln_config **ret_config,
                 struct kiln_err *err)
{
    struct reader r = {.plain = plain, .err = err};
    struct kiln_config *config;
    int n;

    if (text.len > KILN_CONFIG_MAX)
        return kiln_err_set(err, KILN_E_LIMIT, NULL, "%zu bytes, at most %u are read", text.len,
                            KILN_CONFIG_MAX);
    config = kiln_calloc(1, sizeof(*config));
    if (!config)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    config->budget.limit = MEMORY_MAX;
    kiln_arena_init(&config->arena, &config->budget);
    r.config = config;
    n = read_text_of(&r, text);
    if (n < 0) {
        kiln_config_free(config);
        return n;
    }
    *ret_config = config;
    return 0;
}

static int load(const char *path, bool plain, struct kiln_config **ret_config, struct kiln_err *err)
{
    struct kiln_buf text;
    int n;

    kiln_buf_init(&text, KILN_CONFIG_MAX);
    n = kiln_file_read(path, &text, err);
    if (n == 0)
        n = parse(kiln_buf_str(&text), plain, ret_config, err);
    kiln_buf_done(&text);
    return n;
}

int kiln_config_parse(struct kiln_str text, struct kiln_config **ret_config, struct kiln_err *err)
{
    return parse(text, false, ret_config, err);
}

int kiln_config_parse_plain(struct kiln_str text, struct kiln_config **ret_config,
                            struct kiln_err *err)
{
    return parse(text, true, ret_config, err);
}

int kiln_config_load(const char *path, struct kiln_config **ret_config, struct kiln_err *err)
{
    return load(path, false, ret_config, err);
}

int kiln_config_load_plain(const char *path, struct kiln_config **ret_config, struct kiln_err *err)
{
    return load(path, true, ret_config, err);
}

void kiln_config_free(struct kiln_config *config)
{
    if (!config)
        return;
    kiln_arena_done(&config->arena);
    kiln_free(config);
}

/* ---- looking ---- */

static bool is_null(const struct kiln_node *node)
{
    return node->kind == KILN_NODE_TEXT && !node->quoted &&
           (strcmp(node->text, "") == 0 || strcmp(node->text, "~") == 0 ||
            strcmp(node->text, "null") == 0);
}

const struct kiln_node *kiln_config_root(const struct kiln_config *config)
{
    return config->root && !is_null(config->root) ? config->root : NULL;
}

const struct kiln_node *kiln_node_get(const struct kiln_node *map, const char *key)
{
    if (!map || map->kind != KILN_NODE_MAP)
        return NULL;
    for (const struct kiln_node *m = map->first; m; m = m->next) {
        if (strcmp(m->key, key) == 0)
            return is_null(m) ? NULL : m;
    }
    return NULL;
}

/* ---- values ---- */

int kiln_node_fail(const struct kiln_node *node, int code, struct kiln_err *err, const char *fmt,
                   ...)
{
    char where[64], text[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    snprintf(where, sizeof(where), "line %u, column %u", node->line, node->column);
    return kiln_err_set(err, code, where, "%s", text);
}

/* `what` with an example: "a size (say 64M)". */
static int fail_value(const struct kiln_node *node, struct kiln_err *err, const char *what)
{
    const char *key = node->key ? node->key : "this";

    if (node->kind == KILN_NODE_TEXT)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "%.60s: \"%.60s\" is not %s", key,
                              node->text, what);
    return kiln_node_fail(node, KILN_E_MALFORMED, err, "%.60s is a %s, not %s", key,
                          node->kind == KILN_NODE_LIST ? "list" : "map", what);
}

int kiln_node_text(const struct kiln_node *node, const char **ret, struct kiln_err *err)
{
    if (node->kind != KILN_NODE_TEXT)
        return fail_value(node, err, "a text");
    *ret = node->text;
    return 0;
}

int kiln_node_bool(const struct kiln_node *node, bool *ret, struct kiln_err *err)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};

    for (uint32_t i = 0; node->kind == KILN_NODE_TEXT && i < KILN_ARRAY_LEN(words); i++) {
        if (strcmp(node->text, words[i]) == 0) {
            *ret = i % 2;
            return 0;
        }
    }
    return fail_value(node, err, "true or false");
}

int kiln_node_u64(const struct kiln_node *node, uint64_t *ret, struct kiln_err *err)
{
    if (node->kind != KILN_NODE_TEXT || kiln_str_parse_u64(kiln_str_of(node->text), ret) < 0)
        return fail_value(node, err, "a whole number");
    return 0;
}

int kiln_node_size(const struct kiln_node *node, uint64_t *ret, struct kiln_err *err)
{
    if (node->kind != KILN_NODE_TEXT || kiln_size_parse(kiln_str_of(node->text), ret) < 0)
        return fail_value(node, err, "a size (say 64M, 2GiB)");
    return 0;
}

int kiln_node_duration(const struct kiln_node *node, uint64_t *ret_ns, struct kiln_err *err)
{
    if (node->kind != KILN_NODE_TEXT || kiln_duration_parse(kiln_str_of(node->text), ret_ns) < 0)
        return fail_value(node, err, "a time span (say 15s, 12h, 14d)");
    return 0;
}

/* ---- reading by table ---- */

static int read_count(const struct kiln_node *node, uint32_t *ret, struct kiln_err *err)
{
    uint64_t number;
    int r = kiln_node_u64(node, &number, err);

    if (r < 0)
        return r;
    if (number > UINT32_MAX)
        return fail_value(node, err, "a number below 4294967296");
    *ret = (uint32_t)number;
    return 0;
}

static int read_node(const struct kiln_node *node, enum kiln_field_kind kind,
                     const struct kiln_node **ret, struct kiln_err *err)
{
    if (kind == KILN_FIELD_LIST && node->kind != KILN_NODE_LIST)
        return fail_value(node, err, "a list");
    if (kind == KILN_FIELD_MAP && node->kind != KILN_NODE_MAP)
        return fail_value(node, err, "a map");
    *ret = node;
    return 0;
}

static int read_field(const struct kiln_node *node, enum kiln_field_kind kind, void *at,
                      struct kiln_err *err)
{
    switch (kind) {
    case KILN_FIELD_TEXT:
        return kiln_node_text(node, at, err);
    case KILN_FIELD_BOOL:
        return kiln_node_bool(node, at, err);
    case KILN_FIELD_COUNT:
        return read_count(node, at, err);
    case KILN_FIELD_SIZE:
        return kiln_node_size(node, at, err);
    case KILN_FIELD_DURATION:
        return kiln_node_duration(node, at, err);
    case KILN_FIELD_LIST:
    case KILN_FIELD_MAP:
    case KILN_FIELD_NODE:
        return read_node(node, kind, at, err);
    case KILN_FIELD_EITHER:
        *(struct kiln_either *)at = (struct kiln_either){node->text, node};
        return 0;
    }
    return KILN_E_MALFORMED;
}

static int unknown_key(const struct kiln_node *node, const struct kiln_field *fields, uint32_t n,
                       struct kiln_err *err)
{
    struct kiln_node at_key = *node;
    const char *keys[KEYS_NAMED_MAX], *near;

    at_key.line = node->key_line;
    at_key.column = node->key_column;
    for (uint32_t i = 0; i < n && i < KEYS_NAMED_MAX; i++)
        keys[i] = fields[i].key;
    near = kiln_nearest(node->key, keys, n < KEYS_NAMED_MAX ? n : KEYS_NAMED_MAX);
    if (near)
        return kiln_node_fail(&at_key, KILN_E_MALFORMED, err,
                              "unknown key %.60s (did you mean %s?)", node->key, near);
    return kiln_node_fail(&at_key, KILN_E_MALFORMED, err, "unknown key %.60s", node->key);
}

static const struct kiln_field *field_of(const char *key, const struct kiln_field *fields,
                                         uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(key, fields[i].key) == 0)
            return &fields[i];
    }
    return NULL;
}

int kiln_node_read(const struct kiln_node *map, const struct kiln_field *fields, uint32_t n,
                   void *into, struct kiln_err *err)
{
    if (!map)
        return 0;
    if (map->kind != KILN_NODE_MAP)
        return fail_value(map, err, "a map");
    for (const struct kiln_node *m = map->first; m; m = m->next) {
        const struct kiln_field *field = field_of(m->key, fields, n);
        int r = 0;

        if (!field)
            return unknown_key(m, fields, n, err);
        if (!is_null(m))
            r = read_field(m, field->kind, (char *)into + field->offset, err);
        if (r < 0)
            return r;
    }
    return 0;
}

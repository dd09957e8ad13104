/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libyaml gives events; a stack of open lists and maps turns them into nodes, which lie in one
 * arena together with their texts.  Depth and number of nodes are bounded while events come, so
 * that no input makes more work than its size.
 */
#include "base/config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/config_int.h"
#include "base/file.h"

enum { NAME_MAX_BYTES = 128 };

struct kiln_config {
    struct kiln_budget budget;
    struct kiln_arena arena;
    struct kiln_node *root;
};

/* ---- errors ---- */

static int fail_at(struct kiln_yaml *r, yaml_mark_t mark, int code, const char *text)
{
    char where[KILN_PLACE_BYTES];

    kiln_place_format(r->opts->file, (uint32_t)mark.line + 1, (uint32_t)mark.column + 1, where);
    return kiln_err_set(r->err, code, where, "%s", text);
}

int kiln_yaml_fail(struct kiln_yaml *r, int code, const char *text)
{
    return fail_at(r, r->event.start_mark, code, text);
}

int kiln_yaml_no_memory(struct kiln_yaml *r)
{
    return kiln_yaml_fail(r, -ENOMEM, kiln_err_text(-ENOMEM));
}

/* ---- variables ---- */

/* What stands between ${ and }, a variable or its default. */
static int add_variable(struct kiln_yaml *r, struct kiln_buf *out, struct kiln_str inside)
{
    struct kiln_str name = inside, fallback = KILN_STR_NONE;
    char c_name[NAME_MAX_BYTES];
    const char *value;

    if (!kiln_str_starts(inside, KILN_STR("env:")))
        return kiln_yaml_fail(
            r, KILN_E_MALFORMED,
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
        return kiln_yaml_fail(r, KILN_E_MALFORMED, "this is no name of a variable");
    memcpy(c_name, name.ptr, name.len);
    c_name[name.len] = '\0';
    value = getenv(c_name);
    if (fallback.ptr && (!value || !*value))
        kiln_buf_add_str(out, fallback);
    else if (value)
        kiln_buf_puts(out, value);
    else
        return kiln_yaml_fail(
            r, KILN_E_MALFORMED,
            "this variable is not set (a default is written ${env:NAME:-default})");
    return 0;
}

static int expand(struct kiln_yaml *r, struct kiln_str text, struct kiln_buf *out)
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
                return kiln_yaml_fail(r, KILN_E_MALFORMED, "${ is not closed (a dollar is $$)");
            n = add_variable(r, out, (struct kiln_str){at + 1, (size_t)(close - at - 1)});
            if (n < 0)
                return n;
            at = close + 1;
        } else {
            kiln_buf_putc(out, '$');
            at += at < end && *at == '$';
        }
    }
    return out->error ? kiln_yaml_fail(r, out->error, kiln_err_text(out->error)) : 0;
}

/* ---- nodes ---- */

static const char *copy_c(struct kiln_yaml *r, struct kiln_str s)
{
    char *copy = kiln_arena_alloc(r->arena, s.len + 1);

    if (!copy)
        return NULL;
    if (s.len)
        memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return copy;
}

/* The scalar at hand, as a C string in the arena. */
static int scalar(struct kiln_yaml *r, bool expanding, const char **ret)
{
    struct kiln_str s = {(const char *)r->event.data.scalar.value, r->event.data.scalar.length};
    struct kiln_buf buf;
    int n = 0;

    if (memchr(s.ptr, '\0', s.len))
        return kiln_yaml_fail(r, KILN_E_MALFORMED, "a text holds a NUL character");
    kiln_buf_init(&buf, KILN_CONFIG_MAX);
    if (expanding && memchr(s.ptr, '$', s.len)) {
        n = expand(r, s, &buf);
        s = kiln_buf_str(&buf);
    }
    if (n == 0) {
        *ret = copy_c(r, s);
        n = *ret ? 0 : kiln_yaml_no_memory(r);
    }
    kiln_buf_done(&buf);
    return n;
}

static struct kiln_node *parent(const struct kiln_yaml *r)
{
    return r->depth ? r->open[r->depth - 1] : NULL;
}

/* A new node under the innermost open list or map. */
int kiln_yaml_add(struct kiln_yaml *r, enum kiln_node_kind kind, struct kiln_node **ret_node)
{
    struct kiln_node *up = parent(r), *node;
    yaml_mark_t mark = r->event.start_mark;

    if (r->nodes++ >= KILN_YAML_NODES)
        return kiln_yaml_fail(r, KILN_E_LIMIT, "there are too many values");
    node = kiln_arena_alloc(r->arena, sizeof(*node));
    if (!node)
        return kiln_yaml_no_memory(r);
    *node = (struct kiln_node){.kind = kind,
                               .file = r->opts->file,
                               .line = (uint32_t)mark.line + 1,
                               .column = (uint32_t)mark.column + 1,
                               .key = r->key,
                               .key_line = (uint32_t)r->key_mark.line + 1,
                               .key_column = (uint32_t)r->key_mark.column + 1};
    r->key = NULL;
    if (!up) {
        r->root = node;
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

static int read_key(struct kiln_yaml *r)
{
    const struct kiln_node *up = parent(r);
    int n;

    if (r->event.type != YAML_SCALAR_EVENT)
        return kiln_yaml_fail(r, KILN_E_MALFORMED, "a key belongs here");
    r->key_mark = r->event.start_mark;
    n = scalar(r, false, &r->key);
    if (n < 0)
        return n;
    for (const struct kiln_node *m = up->first; m; m = m->next) {
        if (strcmp(m->key, r->key) == 0)
            return kiln_yaml_fail(r, KILN_E_MALFORMED, "this key is here twice");
    }
    return up->n < KILN_YAML_KEYS
               ? 0
               : kiln_yaml_fail(r, KILN_E_LIMIT, "a map has more than 1,000 keys");
}

static int open_node(struct kiln_yaml *r, enum kiln_node_kind kind)
{
    struct kiln_node *node;
    int n;

    if (r->depth == KILN_YAML_DEPTH)
        return kiln_yaml_fail(r, KILN_E_LIMIT, "lists and maps stand too deep within each other");
    n = kiln_yaml_add(r, kind, &node);
    if (n < 0)
        return n;
    r->height[r->depth] = 0;
    r->open[r->depth] = node;
    r->anchors_open[r->depth++] = NULL;
    return kiln_yaml_anchor(r, node);
}

static int close_node(struct kiln_yaml *r)
{
    struct kiln_node *node = r->open[--r->depth];
    uint32_t height = r->height[r->depth] + 1;

    kiln_yaml_anchor_close(r, height);
    kiln_yaml_stands_below(r, height);
    return node->kind == KILN_NODE_MAP ? kiln_yaml_inherit(r, node) : 0;
}

static int read_text(struct kiln_yaml *r)
{
    struct kiln_node *node;
    int n = kiln_yaml_add(r, KILN_NODE_TEXT, &node);

    if (n == 0)
        n = scalar(r, r->opts->variables, &node->text);
    if (n < 0)
        return n;
    node->quoted =
        r->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE || kiln_yaml_says_text(&r->event);
    return kiln_yaml_anchor(r, node);
}

/* One event inside the document. */
static int read_event(struct kiln_yaml *r)
{
    const struct kiln_node *up = parent(r);
    yaml_event_type_t type = r->event.type;

    if (type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT)
        return close_node(r);
    if (!kiln_yaml_knows_tag(&r->event))
        return kiln_yaml_fail(r, KILN_E_MALFORMED, "this tag is not known here");
    if (up && up->kind == KILN_NODE_MAP && !r->key)
        return read_key(r);
    if (type == YAML_ALIAS_EVENT)
        return kiln_yaml_alias(r);
    if (type == YAML_SCALAR_EVENT)
        return read_text(r);
    return open_node(r, type == YAML_MAPPING_START_EVENT ? KILN_NODE_MAP : KILN_NODE_LIST);
}

/* ---- the document ---- */

static int next(struct kiln_yaml *r)
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

static int read_stream(struct kiln_yaml *r)
{
    bool seen = false;
    int n;

    while ((n = next(r)) == 0 && r->event.type != YAML_STREAM_END_EVENT) {
        if (r->event.type == YAML_STREAM_START_EVENT || r->event.type == YAML_DOCUMENT_END_EVENT)
            continue;
        if (r->event.type == YAML_DOCUMENT_START_EVENT) {
            if (seen)
                return kiln_yaml_fail(r, KILN_E_MALFORMED, "there is a second document");
            seen = true;
            continue;
        }
        n = read_event(r);
        if (n < 0)
            return n;
    }
    return n;
}

static int read_text_of(struct kiln_yaml *r, struct kiln_str text)
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

int kiln_node_parse(struct kiln_arena *arena, struct kiln_str text,
                    const struct kiln_parse_opts *opts, struct kiln_node **ret_root,
                    struct kiln_err *err)
{
    struct kiln_yaml r = {.arena = arena, .opts = opts, .err = err};
    int n;

    if (text.len > KILN_CONFIG_MAX)
        return kiln_err_set(err, KILN_E_LIMIT, opts->file, "%zu bytes, at most %u are read",
                            text.len, KILN_CONFIG_MAX);
    n = read_text_of(&r, text);
    if (n == 0)
        *ret_root = r.root;
    return n;
}

static int parse(struct kiln_str text, bool variables, struct kiln_config **ret_config,
                 struct kiln_err *err)
{
    const struct kiln_parse_opts opts = {.variables = variables};
    struct kiln_config *config = kiln_calloc(1, sizeof(*config));
    int n;

    if (!config)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    config->budget.limit = KILN_CONFIG_MEMORY;
    kiln_arena_init(&config->arena, &config->budget);
    n = kiln_node_parse(&config->arena, text, &opts, &config->root, err);
    if (n < 0) {
        kiln_config_free(config);
        return n;
    }
    *ret_config = config;
    return 0;
}

static int load(const char *path, bool variables, struct kiln_config **ret_config,
                struct kiln_err *err)
{
    struct kiln_buf text;
    int n;

    kiln_buf_init(&text, KILN_CONFIG_MAX);
    n = kiln_file_read(path, &text, err);
    if (n == 0)
        n = parse(kiln_buf_str(&text), variables, ret_config, err);
    kiln_buf_done(&text);
    return n;
}

int kiln_config_parse(struct kiln_str text, struct kiln_config **ret_config, struct kiln_err *err)
{
    return parse(text, true, ret_config, err);
}

int kiln_config_parse_plain(struct kiln_str text, struct kiln_config **ret_config,
                            struct kiln_err *err)
{
    return parse(text, false, ret_config, err);
}

int kiln_config_load(const char *path, struct kiln_config **ret_config, struct kiln_err *err)
{
    return load(path, true, ret_config, err);
}

int kiln_config_load_plain(const char *path, struct kiln_config **ret_config, struct kiln_err *err)
{
    return load(path, false, ret_config, err);
}

void kiln_config_free(struct kiln_config *config)
{
    if (!config)
        return;
    kiln_arena_done(&config->arena);
    kiln_free(config);
}

const struct kiln_node *kiln_config_root(const struct kiln_config *config)
{
    return config->root && !kiln_node_is_null(config->root) ? config->root : NULL;
}

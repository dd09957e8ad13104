/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "base/config_int.h"
#include "base/quantity.h"

enum { KEYS_NAMED_MAX = 64 };

/* ---- looking ---- */

bool kiln_node_is_null(const struct kiln_node *node)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(words); i++)
        if (node->kind == KILN_NODE_TEXT && !node->quoted && strcmp(node->text, words[i]) == 0)
            return true;
    return false;
}

const struct kiln_node *kiln_node_get(const struct kiln_node *map, const char *key)
{
    if (!map || map->kind != KILN_NODE_MAP)
        return NULL;
    for (const struct kiln_node *m = map->first; m; m = m->next) {
        if (strcmp(m->key, key) == 0)
            return kiln_node_is_null(m) ? NULL : m;
    }
    return NULL;
}

/* ---- making ---- */

struct kiln_node *kiln_members_add(struct kiln_members *members, struct kiln_arena *arena,
                                   const struct kiln_node *node)
{
    struct kiln_node *made = kiln_arena_alloc(arena, sizeof(*made));

    if (!made)
        return NULL;
    *made = *node;
    made->next = NULL;
    if (members->n++ == 0)
        members->first = made;
    else
        members->last->next = made;
    members->last = made;
    return made;
}

const struct kiln_node *kiln_members_find(const struct kiln_members *members, const char *key)
{
    for (const struct kiln_node *m = members->first; m; m = m->next)
        if (strcmp(m->key, key) == 0)
            return m;
    return NULL;
}

/* ---- values ---- */

void kiln_place_format(const char *file, uint32_t line, uint32_t column, char *ret)
{
    size_t n = 0;

    if (file)
        n = (size_t)snprintf(ret, KILN_PLACE_BYTES, "%.100s%s", file, line ? ": " : "");
    if (line)
        snprintf(ret + n, KILN_PLACE_BYTES - n, "line %u, column %u", line, column);
}

int kiln_node_fail(const struct kiln_node *node, int code, struct kiln_err *err, const char *fmt,
                   ...)
{
    char where[KILN_PLACE_BYTES], text[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    kiln_place_format(node->file, node->line, node->column, where);
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
    if (node->kind != KILN_NODE_TEXT && !node->original)
        return fail_value(node, err, "a text");
    *ret = node->original ? node->original : node->text;
    return 0;
}

/* What may be a number, or true. */
static bool is_plain(const struct kiln_node *node)
{
    return node->kind == KILN_NODE_TEXT && !(node->strict && node->quoted);
}

int kiln_node_bool(const struct kiln_node *node, bool *ret, struct kiln_err *err)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};

    for (uint32_t i = 0; is_plain(node) && i < KILN_ARRAY_LEN(words); i++) {
        if (strcmp(node->text, words[i]) == 0) {
            *ret = i % 2;
            return 0;
        }
    }
    return fail_value(node, err, "true or false");
}

int kiln_node_u64(const struct kiln_node *node, uint64_t *ret, struct kiln_err *err)
{
    if (!is_plain(node) || kiln_str_parse_u64(kiln_str_of(node->text), ret) < 0)
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
        if (!kiln_node_is_null(m))
            r = read_field(m, field->kind, (char *)into + field->offset, err);
        if (r < 0)
            return r;
    }
    return 0;
}

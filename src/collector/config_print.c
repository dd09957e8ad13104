/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is printed reads back as the same tree: texts that look like something else are quoted, as
 * JSON quotes them, which is YAML too.
 */
#include <ctype.h>
#include <string.h>

#include "base/json.h"
#include "collector/config_int.h"

#define REDACTED "[REDACTED]"

static bool ends_with(const char *key, const char *end)
{
    return kiln_str_ends(kiln_str_of(key), kiln_str_of(end));
}

/* A key whose value nobody should read over a shoulder; of `headers` and the like, all below. */
static bool is_secret(const char *key)
{
    static const char *const ends[] = {"password", "token",      "tokens",      "secret",
                                       "key_pem",  "api_key",    "apikey",      "apikeys",
                                       "api_keys", "passphrase", "credentials", "access_key"};
    static const char *const whole[] = {"headers", "response_headers", "authorization",
                                        "Authorization", "inline"};

    for (uint32_t i = 0; key && i < KILN_ARRAY_LEN(ends); i++)
        if (ends_with(key, ends[i]))
            return true;
    for (uint32_t i = 0; key && i < KILN_ARRAY_LEN(whole); i++)
        if (strcmp(key, whole[i]) == 0)
            return true;
    return false;
}

/* How it is printed: as it was written, unless that is more than a word. */
static const char *text_of(const struct kiln_node *node)
{
    if (node->original && !strpbrk(node->original, "\n#${}[]") &&
        kiln_scalar_of(node->original) == kiln_scalar_of_node(node))
        return node->original;
    return node->text;
}

/* ---- YAML ---- */

/* What older readers of YAML take for true or false. */
static bool is_old_bool(const char *text)
{
    static const char *const words[] = {"y", "n", "yes", "no", "on", "off"};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(words); i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

/* Whether a text can stand without quotes, in a map or a list, and still be that text. */
static bool is_bare(const char *text)
{
    size_t len = strlen(text);

    if (kiln_scalar_of(text) != KILN_SCALAR_TEXT || !isalnum((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr("_-./:@+=~ ", text[i]))
            return false;
        if ((text[i] == ':' || text[i] == ' ') && (i + 1 == len || text[i + 1] == ' '))
            return false;
    }
    return !is_old_bool(text);
}

static void put_quoted(struct kiln_buf *out, const char *text)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 0);
    kiln_json_put_str(&w, kiln_str_of(text));
}

static void put_word(struct kiln_buf *out, const char *text)
{
    if (is_bare(text))
        kiln_buf_puts(out, text);
    else
        put_quoted(out, text);
}

static void put_scalar(struct kiln_buf *out, const struct kiln_node *node, bool secret)
{
    enum kiln_scalar kind = kiln_scalar_of_node(node);

    if (secret && kind != KILN_SCALAR_NULL)
        put_quoted(out, REDACTED);
    else if (kind == KILN_SCALAR_NULL)
        kiln_buf_puts(out, "null");
    else if (kind == KILN_SCALAR_TEXT)
        put_word(out, node->text);
    else
        kiln_buf_puts(out, text_of(node));
}

static void put_node(struct kiln_buf *out, const struct kiln_node *node, uint32_t indent,
                     bool secret, bool redacted);

static void put_indent(struct kiln_buf *out, uint32_t indent)
{
    for (uint32_t i = 0; i < indent; i++)
        kiln_buf_puts(out, "  ");
}

/* Behind `key:` or `-`; the first line of what is in a list stands beside its dash. */
static void put_value(struct kiln_buf *out, const struct kiln_node *node, uint32_t indent,
                      bool secret, bool redacted)
{
    if (node->kind == KILN_NODE_TEXT || node->n == 0) {
        kiln_buf_putc(out, ' ');
        if (node->kind == KILN_NODE_TEXT)
            put_scalar(out, node, secret);
        else
            kiln_buf_puts(out, node->kind == KILN_NODE_MAP ? "{}" : "[]");
        kiln_buf_putc(out, '\n');
        return;
    }
    kiln_buf_putc(out, '\n');
    put_node(out, node, indent, secret, redacted);
}

static void put_node(struct kiln_buf *out, const struct kiln_node *node, uint32_t indent,
                     bool secret, bool redacted)
{
    for (const struct kiln_node *m = node->first; m; m = m->next) {
        put_indent(out, indent);
        if (m->key && node->kind == KILN_NODE_MAP) {
            put_word(out, m->key);
            kiln_buf_putc(out, ':');
        } else {
            kiln_buf_putc(out, '-');
        }
        put_value(out, m, indent + 1,
                  secret || (redacted && node->kind == KILN_NODE_MAP && is_secret(m->key)),
                  redacted);
    }
}

void kiln_collector_config_format(const struct kiln_collector_config *config, bool redacted,
                                  struct kiln_buf *out)
{
    if (config->root->n)
        put_node(out, config->root, 0, false, redacted);
    else
        kiln_buf_puts(out, "{}\n");
}

/* ---- JSON ---- */

static void json_scalar(struct kiln_json_out *w, const struct kiln_node *node, bool secret)
{
    enum kiln_scalar kind = kiln_scalar_of_node(node);
    struct kiln_str text = kiln_str_of(node->text);
    int64_t number;

    if (kind == KILN_SCALAR_NULL)
        kiln_json_put_null(w);
    else if (secret)
        kiln_json_put_str(w, KILN_STR(REDACTED));
    else if (kind == KILN_SCALAR_BOOL)
        kiln_json_put_bool(w, node->text[0] == 't');
    else if (kind == KILN_SCALAR_INT && kiln_str_parse_i64(text, &number) == 0)
        kiln_json_put_i64(w, number);
    else
        kiln_json_put_str(w, text);
}

static void json_node(struct kiln_json_out *w, const struct kiln_node *node, bool secret,
                      bool redacted)
{
    bool is_map = node->kind == KILN_NODE_MAP;

    if (node->kind == KILN_NODE_TEXT) {
        json_scalar(w, node, secret);
        return;
    }
    if (is_map)
        kiln_json_put_object(w);
    else
        kiln_json_put_array(w);
    for (const struct kiln_node *m = node->first; m; m = m->next) {
        if (is_map)
            kiln_json_put_name(w, m->key);
        json_node(w, m, secret || (redacted && is_map && is_secret(m->key)), redacted);
    }
    if (is_map)
        kiln_json_end_object(w);
    else
        kiln_json_end_array(w);
}

void kiln_collector_config_format_json(const struct kiln_collector_config *config, bool redacted,
                                       struct kiln_buf *out)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 2);
    json_node(&w, config->root, false, redacted);
    kiln_buf_putc(out, '\n');
}

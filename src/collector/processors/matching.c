/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/processors/matching.h"

#include <stddef.h>

#include "base/buf.h"
#include "collector/processors/actions.h"
#include "collector/settings.h"

#define CONDITION_MAX (16u << 10) /* as much as OTTL reads */

struct block {
    const char *match_type;
    const struct kiln_node *services, *resources, *libraries, *attributes;
};

/* {key: k, value: v}, or {name: n, version: v} */
struct pair {
    const char *first;
    const struct kiln_node *second; /* NULL: anything */
};

struct writer {
    struct kiln_buf *out;
    bool regexp;
    struct kiln_err *err;
};

/* ---- text ---- */

static void put_quoted(struct kiln_buf *out, const char *text)
{
    kiln_buf_putc(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            kiln_buf_putc(out, '\\');
        kiln_buf_putc(out, *text);
    }
    kiln_buf_putc(out, '"');
}

/* Whether what `path` names is, or matches, the value; NULL: is there. */
static int put_test(const struct writer *w, const char *path, const char *key,
                    const struct kiln_node *value)
{
    struct kiln_plain_value plain;
    struct kiln_buf name;
    int r = value ? kiln_plain_value_read(value, &plain, w->err) : 0;

    if (r < 0)
        return r;
    kiln_buf_init(&name, CONDITION_MAX);
    kiln_buf_puts(&name, path);
    if (key) {
        kiln_buf_putc(&name, '[');
        put_quoted(&name, key);
        kiln_buf_putc(&name, ']');
    }
    kiln_buf_putc(&name, '\0');
    if (!name.error && value && w->regexp) {
        kiln_buf_printf(w->out, "(%s != nil and IsMatch(%s, ", name.ptr, name.ptr);
        put_quoted(w->out, value->text);
        kiln_buf_puts(w->out, "))");
    } else if (!name.error) {
        kiln_buf_printf(w->out, "%s %s ", name.ptr, value ? "==" : "!=");
        if (value && plain.kind == KILN_VALUE_STRING)
            put_quoted(w->out, value->text);
        else
            kiln_buf_puts(w->out, value ? value->text : "nil");
    }
    r = name.error;
    kiln_buf_done(&name);
    return r;
}

/* ---- lists ---- */

static int read_pair(const struct kiln_node *item, const char *first, const char *second,
                     struct pair *ret, struct kiln_err *err)
{
    const struct kiln_field fields[] = {{first, KILN_FIELD_TEXT, offsetof(struct pair, first)},
                                        {second, KILN_FIELD_NODE, offsetof(struct pair, second)}};
    int r;

    *ret = (struct pair){0};
    if (item->kind != KILN_NODE_MAP)
        return kiln_node_fail(item, KILN_E_MALFORMED, err, "{%s, %s} belongs here", first, second);
    r = kiln_node_read(item, fields, KILN_ARRAY_LEN(fields), ret, err);
    if (r == 0 && !ret->first)
        return kiln_node_fail(item, KILN_E_MALFORMED, err, "this has no %s", first);
    return r;
}

static int put_service(const struct writer *w, const struct kiln_node *item)
{
    return put_test(w, "resource.attributes", "service.name", item);
}

static int put_resource(const struct writer *w, const struct kiln_node *item)
{
    struct pair pair;
    int r = read_pair(item, "key", "value", &pair, w->err);

    return r < 0 ? r : put_test(w, "resource.attributes", pair.first, pair.second);
}

static int put_attribute(const struct writer *w, const struct kiln_node *item)
{
    struct pair pair;
    int r = read_pair(item, "key", "value", &pair, w->err);

    return r < 0 ? r : put_test(w, "sample.attributes", pair.first, pair.second);
}

static int put_library(const struct writer *w, const struct kiln_node *item)
{
    struct pair pair;
    int r = read_pair(item, "name", "version", &pair, w->err);

    if (r < 0)
        return r;
    kiln_buf_putc(w->out, '(');
    r = put_test(w, "scope.name", NULL, kiln_node_get(item, "name"));
    if (r == 0 && pair.second) {
        kiln_buf_puts(w->out, " and ");
        r = put_test(w, "scope.version", NULL, pair.second);
    }
    kiln_buf_putc(w->out, ')');
    return r;
}

/* All of a list with a word between, in parentheses, behind what stands there. */
static int put_list(const struct writer *w, const struct kiln_node *list, const char *word,
                    int (*put)(const struct writer *w, const struct kiln_node *item), bool *any)
{
    int r = 0;

    for (const struct kiln_node *item = list ? list->first : NULL; r == 0 && item;
         item = item->next) {
        kiln_buf_puts(w->out, item != list->first ? word : *any ? " and (" : "(");
        r = put(w, item);
        *any = true;
    }
    if (list && list->first)
        kiln_buf_putc(w->out, ')');
    return r;
}

/* ---- blocks ---- */

static int read_block(const struct kiln_node *node, struct block *ret, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"match_type", KILN_FIELD_TEXT, offsetof(struct block, match_type)},
        {"services", KILN_FIELD_LIST, offsetof(struct block, services)},
        {"resources", KILN_FIELD_LIST, offsetof(struct block, resources)},
        {"libraries", KILN_FIELD_LIST, offsetof(struct block, libraries)},
        {"attributes", KILN_FIELD_LIST, offsetof(struct block, attributes)},
    };
    int r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), ret, err);

    if (r == 0 && (!ret->match_type || (strcmp(ret->match_type, "strict") != 0 &&
                                        strcmp(ret->match_type, "regexp") != 0)))
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "match_type is strict or regexp");
    return r;
}

static int put_block(const struct kiln_node *node, struct kiln_buf *out, struct kiln_err *err)
{
    struct block block = {0};
    struct writer w = {.out = out, .err = err};
    bool any = false;
    int r = read_block(node, &block, err);

    if (r < 0)
        return r;
    w.regexp = strcmp(block.match_type, "regexp") == 0;
    r = put_list(&w, block.services, " or ", put_service, &any);
    if (r == 0)
        r = put_list(&w, block.libraries, " or ", put_library, &any);
    if (r == 0)
        r = put_list(&w, block.resources, " and ", put_resource, &any);
    if (r == 0)
        r = put_list(&w, block.attributes, " and ", put_attribute, &any);
    if (r == 0 && !any)
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "say services, resources, libraries or attributes, one of them at "
                              "least");
    return r;
}

int kiln_matching_read(const struct kiln_node *include, const struct kiln_node *exclude,
                       struct kiln_ottl **ret_condition, struct kiln_err *err)
{
    struct kiln_buf text;
    int r = 0;

    *ret_condition = NULL;
    if (!include && !exclude)
        return 0;
    kiln_buf_init(&text, CONDITION_MAX);
    if (include)
        r = put_block(include, &text, err);
    if (r == 0 && exclude) {
        kiln_buf_puts(&text, include ? " and not (" : "not (");
        r = put_block(exclude, &text, err);
        kiln_buf_putc(&text, ')');
    }
    if (r == 0)
        r = text.error
                ? kiln_err_set(err, text.error, NULL, "%s", kiln_err_text(text.error))
                : kiln_ottl_condition(kiln_buf_str(&text), KILN_OTTL_SAMPLE, ret_condition, err);
    kiln_buf_done(&text);
    return r;
}

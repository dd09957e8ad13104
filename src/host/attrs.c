/* SPDX-License-Identifier: Apache-2.0 */
/* A list that is searched from its beginning: it is short, and made once for a process. */
#include "host/attrs.h"

void kiln_attrs_init(struct kiln_attrs *attrs)
{
    kiln_buf_init(&attrs->texts, (size_t)4 * KILN_ATTRS_BYTES_MAX);
    attrs->n = 0;
}

void kiln_attrs_done(struct kiln_attrs *attrs)
{
    kiln_buf_done(&attrs->texts);
    attrs->n = 0;
}

static uint32_t find(const struct kiln_attrs *attrs, struct kiln_str key)
{
    uint32_t i = 0;

    while (i < attrs->n && !kiln_str_eq(kiln_str_of(kiln_attrs_key(attrs, i)), key))
        i++;
    return i;
}

/* Makes room for both; a value that is one of ours moves with the others. */
static void make_room(struct kiln_buf *texts, struct kiln_str key, struct kiln_str *value)
{
    bool ours = texts->ptr && value->ptr >= texts->ptr && value->ptr < texts->ptr + texts->len;
    size_t at = ours ? (size_t)(value->ptr - texts->ptr) : 0;

    kiln_buf_reserve(texts, 3 * (key.len + value->len) + 2);
    if (ours)
        value->ptr = texts->ptr + at;
}

static uint32_t put(struct kiln_buf *texts, struct kiln_str text)
{
    size_t at = texts->len;

    kiln_buf_add_utf8(texts, text);
    kiln_buf_putc(texts, '\0');
    return (uint32_t)at;
}

static bool fits(const struct kiln_attrs *attrs, struct kiln_str key, struct kiln_str value)
{
    return key.len <= KILN_ATTR_TEXT_MAX && value.len <= KILN_ATTR_TEXT_MAX &&
           attrs->texts.len + key.len + value.len <= KILN_ATTRS_BYTES_MAX && !attrs->texts.error;
}

void kiln_attrs_set(struct kiln_attrs *attrs, struct kiln_str key, struct kiln_str value)
{
    uint32_t i = find(attrs, key);

    if (!value.len && i < attrs->n)
        attrs->items[i] = attrs->items[--attrs->n];
    if (!value.len || !key.len || i == KILN_ATTRS_MAX || !fits(attrs, key, value))
        return;
    make_room(&attrs->texts, key, &value);
    if (i == attrs->n)
        attrs->items[i].key = put(&attrs->texts, key);
    attrs->items[i].value = put(&attrs->texts, value);
    if (attrs->texts.error)
        attrs->n = 0;
    else if (i == attrs->n)
        attrs->n++;
}

void kiln_attrs_default(struct kiln_attrs *attrs, const char *key, struct kiln_str value)
{
    if (value.len && find(attrs, kiln_str_of(key)) == attrs->n)
        kiln_attrs_set(attrs, kiln_str_of(key), value);
}

struct kiln_str kiln_attrs_get(const struct kiln_attrs *attrs, struct kiln_str key)
{
    uint32_t i = find(attrs, key);

    return i < attrs->n ? kiln_str_of(kiln_attrs_value(attrs, i)) : KILN_STR("");
}

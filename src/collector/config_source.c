/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "collector/config_int.h"
#include "net/client.h"

enum { NAME_MAX_BYTES = 200 };

static const struct {
    struct kiln_str name;
    enum kiln_scheme scheme;
} schemes[] = {
    {{"file", 4}, KILN_SCHEME_FILE},   {{"env", 3}, KILN_SCHEME_ENV},
    {{"yaml", 4}, KILN_SCHEME_YAML},   {{"http", 4}, KILN_SCHEME_HTTP},
    {{"https", 5}, KILN_SCHEME_HTTPS},
};

/* What stands before the colon, if that can be a scheme: a letter and more; else nothing. */
static struct kiln_str scheme_of(struct kiln_str uri)
{
    const char *colon = uri.len ? memchr(uri.ptr, ':', uri.len) : NULL;
    struct kiln_str name = {uri.ptr, colon ? (size_t)(colon - uri.ptr) : 0};

    if (name.len < 2 || !isalpha((unsigned char)name.ptr[0]))
        return KILN_STR_NONE;
    for (size_t i = 1; i < name.len; i++)
        if (!isalnum((unsigned char)name.ptr[i]) && !strchr("+.-", name.ptr[i]))
            return KILN_STR_NONE;
    return name;
}

static bool find_scheme(struct kiln_str uri, struct kiln_location *ret)
{
    struct kiln_str name = scheme_of(uri);

    for (uint32_t i = 0; name.len && i < KILN_ARRAY_LEN(schemes); i++) {
        if (kiln_str_eq(name, schemes[i].name)) {
            ret->scheme = schemes[i].scheme;
            ret->value = (struct kiln_str){uri.ptr + name.len + 1, uri.len - name.len - 1};
            return true;
        }
    }
    return false;
}

int kiln_location_of_source(const char *uri, struct kiln_location *ret, struct kiln_err *err)
{
    struct kiln_str text = kiln_str_of(uri);

    if (find_scheme(text, ret))
        return 0;
    if (scheme_of(text).len)
        return kiln_err_set(
            err, KILN_E_UNSUPPORTED, NULL,
            "unsupported scheme on URI \"%.100s\" (file:, env:, yaml:, http: and https: are known)",
            uri);
    *ret = (struct kiln_location){KILN_SCHEME_FILE, text};
    return 0;
}

/* ${NAME} and ${NAME:-default}. */
static bool is_variable(struct kiln_str inside)
{
    const char *colon = inside.len ? memchr(inside.ptr, ':', inside.len) : NULL;

    return !colon || (colon + 1 < inside.ptr + inside.len && colon[1] == '-');
}

int kiln_location_of_reference(const struct kiln_node *place, struct kiln_str inside,
                               struct kiln_location *ret, struct kiln_err *err)
{
    struct kiln_str name = scheme_of(inside);

    if (memchr(inside.ptr, '$', inside.len))
        return kiln_node_fail(place, KILN_E_MALFORMED, err,
                              "the uri \"%.*s\" contains unsupported characters ('$')",
                              (int)(inside.len < 100 ? inside.len : 100), inside.ptr);
    if (find_scheme(inside, ret))
        return 0;
    if (is_variable(inside)) {
        *ret = (struct kiln_location){KILN_SCHEME_ENV, inside};
        return 0;
    }
    if (!name.len)
        return kiln_node_fail(place, KILN_E_MALFORMED, err, "invalid uri: \"%.*s\"",
                              (int)(inside.len < 100 ? inside.len : 100), inside.ptr);
    return kiln_node_fail(place, KILN_E_UNSUPPORTED, err,
                          "scheme \"%.*s\" is not supported for uri \"%.*s\" (file:, env:, yaml:, "
                          "http: and https: are known; a dollar is $$)",
                          (int)(name.len < 20 ? name.len : 20), name.ptr,
                          (int)(inside.len < 60 ? inside.len : 60), inside.ptr);
}

/* ---- what is there ---- */

static int fail(struct kiln_resolver *r, const struct kiln_node *place, int code, const char *text)
{
    return place ? kiln_node_fail(place, code, r->err, "%s", text)
                 : kiln_err_set(r->err, code, NULL, "%s", text);
}

static int keep(struct kiln_resolver *r, struct kiln_str text, struct kiln_str *ret)
{
    char *copy = kiln_arena_alloc(r->arena, text.len + 1);

    if (!copy)
        return kiln_resolver_no_memory(r);
    if (text.len)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    *ret = (struct kiln_str){copy, text.len};
    return 0;
}

/* The last end of line is the editor's. */
static int read_file(struct kiln_resolver *r, struct kiln_str path, const struct kiln_node *place,
                     struct kiln_retrieved *ret)
{
    struct kiln_err why = {0};
    struct kiln_str name;
    struct kiln_buf text;
    char said[200];
    int n = keep(r, path, &name);

    if (n < 0)
        return n;
    ret->file = name.ptr;
    kiln_buf_init(&text, KILN_CONFIG_MAX);
    n = name.len ? kiln_file_read(name.ptr, &text, &why) : -ENOENT;
    if (n < 0) {
        snprintf(said, sizeof(said), "unable to read the file %.100s: %.60s", name.ptr,
                 why.text[0] ? why.text : kiln_err_text(n));
        n = fail(r, place, n, said);
    } else {
        text.len -= text.len && text.ptr[text.len - 1] == '\n';
        n = keep(r, kiln_buf_str(&text), &ret->text);
    }
    kiln_buf_done(&text);
    return n;
}

static bool is_name(struct kiln_str name)
{
    if (name.len == 0 || name.len > NAME_MAX_BYTES || isdigit((unsigned char)name.ptr[0]))
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)name.ptr[i]) && name.ptr[i] != '_')
            return false;
    return true;
}

/* NAME, or NAME:-default. */
static bool cut_default(struct kiln_str *name, struct kiln_str *ret_default)
{
    for (size_t i = 0; i + 1 < name->len; i++) {
        if (name->ptr[i] == ':' && name->ptr[i + 1] == '-') {
            *ret_default = (struct kiln_str){name->ptr + i + 2, name->len - i - 2};
            name->len = i;
            return true;
        }
    }
    return false;
}

static void say_unset(const struct kiln_resolver *r, const struct kiln_node *place,
                      const char *name)
{
    char text[256];

    if (!r->sources->warn)
        return;
    snprintf(text, sizeof(text), "Configuration references unset environment variable \"%s\"",
             name);
    r->sources->warn(r->sources->context, place, text);
}

static int read_env(struct kiln_resolver *r, struct kiln_str name, const struct kiln_node *place,
                    struct kiln_retrieved *ret)
{
    struct kiln_str fallback = KILN_STR_NONE;
    bool has_default = cut_default(&name, &fallback);
    char c_name[NAME_MAX_BYTES + 1], said[256];
    const char *value;

    if (!is_name(name)) {
        snprintf(said, sizeof(said),
                 "environment variable \"%.*s\" has invalid name: must match regex "
                 "^[a-zA-Z_][a-zA-Z0-9_]*$ (a dollar is $$)",
                 (int)(name.len < 100 ? name.len : 100), name.ptr);
        return fail(r, place, KILN_E_MALFORMED, said);
    }
    memcpy(c_name, name.ptr, name.len);
    c_name[name.len] = '\0';
    value = getenv(c_name);
    if (value)
        return keep(r, kiln_str_of(value), &ret->text);
    if (!has_default)
        say_unset(r, place, c_name);
    ret->is_text = has_default && fallback.len == 0;
    return keep(r, fallback, &ret->text);
}

static int fetch(struct kiln_resolver *r, const struct kiln_location *location,
                 const struct kiln_node *place, struct kiln_retrieved *ret)
{
    const char *scheme = location->scheme == KILN_SCHEME_HTTPS ? "https" : "http";
    struct kiln_answer answer;
    struct kiln_err why = {0};
    struct kiln_str url;
    struct kiln_buf text;
    char said[256];
    int n;

    kiln_buf_init(&text, KILN_CONFIG_MAX);
    kiln_buf_printf(&text, "%s:%.*s", scheme, KILN_STR_ARG(location->value));
    n = text.error ? text.error : keep(r, kiln_buf_str(&text), &url);
    kiln_buf_done(&text);
    if (n < 0)
        return n;
    ret->file = url.ptr;
    kiln_answer_init(&answer);
    n = r->sources->fetches
            ? kiln_location_fetch(url, &answer, &why)
            : kiln_err_set(&why, KILN_E_UNSUPPORTED, NULL, "nothing is fetched here");
    if (n == 0) {
        n = keep(r, kiln_buf_str(&answer.body), &ret->text);
    } else {
        snprintf(said, sizeof(said), "unable to download the file via %s %.100s: %.100s", scheme,
                 url.ptr, why.text[0] ? why.text : kiln_err_text(n));
        n = fail(r, place, n, said);
    }
    kiln_answer_done(&answer);
    return n;
}

int kiln_location_retrieve(struct kiln_resolver *r, const struct kiln_location *location,
                           const struct kiln_node *place, struct kiln_retrieved *ret)
{
    *ret = (struct kiln_retrieved){0};
    switch (location->scheme) {
    case KILN_SCHEME_FILE:
        return read_file(r, location->value, place, ret);
    case KILN_SCHEME_ENV:
        return read_env(r, location->value, place, ret);
    case KILN_SCHEME_YAML:
        return keep(r, location->value, &ret->text);
    case KILN_SCHEME_HTTP:
    case KILN_SCHEME_HTTPS:
        return fetch(r, location, place, ret);
    }
    return KILN_E_UNSUPPORTED;
}

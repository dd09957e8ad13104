/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   OTEL_SERVICE_NAME=name
 *   OTEL_RESOURCE_ATTRIBUTES=key=value,key=value    values percent-encoded; a mistake voids it all
 */
#include "inproc/attributes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inproc/environment.h"

/* Texts go one after the other into settings->attribute_bytes. */
struct list {
    struct kiln_in_settings *to;
    uint32_t used;
};

static const char *keep(struct list *list, const char *text, size_t n)
{
    char *at = list->to->attribute_bytes + list->used;

    if (n + 1 > KILN_IN_ATTRIBUTE_BYTES - list->used)
        return NULL;
    memcpy(at, text, n);
    at[n] = '\0';
    list->used += (uint32_t)n + 1;
    return at;
}

static bool has(const struct list *list, const char *key, size_t n)
{
    for (uint32_t i = 0; i < list->to->n_attributes; i++) {
        if (strlen(list->to->attributes[i].key) == n &&
            memcmp(list->to->attributes[i].key, key, n) == 0)
            return true;
    }
    return false;
}

static void put(struct list *list, const char *key, size_t n_key, const char *value, size_t n_value)
{
    struct kiln_attribute attribute;
    uint32_t before = list->used;

    if (!n_key || !n_value || has(list, key, n_key) ||
        list->to->n_attributes == KILN_IN_ATTRIBUTES_MAX)
        return;
    attribute.key = keep(list, key, n_key);
    attribute.value = keep(list, value, n_value);
    if (attribute.key && attribute.value)
        list->to->attributes[list->to->n_attributes++] = attribute;
    else
        list->used = before;
}

static void put_text(struct list *list, const char *key, const char *value)
{
    if (key && value)
        put(list, key, strlen(key), value, strlen(value));
}

/* ---- OTEL_RESOURCE_ATTRIBUTES ---- */

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place.  False: a % without its digits. */
static bool undo_percent(char *text, size_t *n)
{
    size_t to = 0;

    for (size_t i = 0; i < *n; i++) {
        if (text[i] != '%') {
            text[to++] = text[i];
            continue;
        }
        if (i + 2 >= *n || digit(text[i + 1]) < 0 || digit(text[i + 2]) < 0)
            return false;
        text[to++] = (char)(digit(text[i + 1]) << 4 | digit(text[i + 2]));
        i += 2;
    }
    *n = to;
    return true;
}

static void trim(const char **text, size_t *n)
{
    while (*n && (**text == ' ' || **text == '\t')) {
        (*text)++;
        (*n)--;
    }
    while (*n && ((*text)[*n - 1] == ' ' || (*text)[*n - 1] == '\t'))
        (*n)--;
}

/* What to do with a pair: all are looked at before any is put. */
enum pass { LOOK, PUT_NAME, PUT };

static bool is_name(const char *key, size_t n)
{
    static const char name[] = "service.name";

    return n == sizeof(name) - 1 && memcmp(key, name, n) == 0;
}

/* One pair of the list at *at, which is moved behind it. */
static bool take_pair(struct list *list, const char **at, enum pass pass)
{
    size_t n = strcspn(*at, ","), n_key = strcspn(*at, "=,"), n_value;
    const char *key = *at, *value = *at + n_key + 1;
    char decoded[1024];

    *at += n + ((*at)[n] != '\0');
    if (n_key >= n)
        return false;
    n_value = n - n_key - 1;
    trim(&key, &n_key);
    trim(&value, &n_value);
    if (n_value > sizeof(decoded))
        return false;
    memcpy(decoded, value, n_value);
    if (!n_key || !undo_percent(decoded, &n_value))
        return false;
    if (pass == PUT || (pass == PUT_NAME && is_name(key, n_key)))
        put(list, key, n_key, decoded, n_value);
    return true;
}

static bool take_pairs(struct list *list, const char *text, enum pass pass)
{
    while (*text) {
        if (!take_pair(list, &text, pass))
            return false;
    }
    return true;
}

/* ---- the name ---- */

static void put_executable(struct list *list)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    const char *slash;

    path[n > 0 ? n : 0] = '\0';
    slash = strrchr(path, '/');
    put_text(list, "service.name", slash && slash[1] ? slash + 1 : "unknown_service");
}

void kiln_in_attributes_fill(const struct kiln_options *options, struct kiln_in_settings *settings)
{
    struct list list = {.to = settings};
    const char *pairs = kiln_in_env("OTEL_RESOURCE_ATTRIBUTES");

    settings->n_attributes = 0;
    if (pairs && !take_pairs(&list, pairs, LOOK)) {
        kiln_in_say(true, "OTEL_RESOURCE_ATTRIBUTES is malformed and left out");
        pairs = NULL;
    }
    put_text(&list, "service.name", kiln_in_env("OTEL_SERVICE_NAME"));
    if (pairs)
        take_pairs(&list, pairs, PUT_NAME);
    put_text(&list, "service.name", options ? options->service_name : NULL);
    for (size_t i = 0; options && settings->n_attributes == 0 && i < options->n_resource; i++) {
        if (options->resource[i].key && strcmp(options->resource[i].key, "service.name") == 0)
            put_text(&list, "service.name", options->resource[i].value);
    }
    put_executable(&list);
    if (pairs)
        take_pairs(&list, pairs, PUT);
    for (size_t i = 0; options && i < options->n_resource; i++)
        put_text(&list, options->resource[i].key, options->resource[i].value);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/environment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

static char *joined(const char *a, const char *between, const char *b)
{
    size_t n = strlen(a) + strlen(between) + strlen(b) + 1;
    char *text = kiln_malloc(n);

    if (text)
        snprintf(text, n, "%s%s%s", a, between, b);
    return text;
}

/* Room for one more and the NULL behind it. */
static bool make_room(struct kiln_environment *env)
{
    char **items = kiln_realloc(env->items, ((size_t)env->n + 2) * sizeof(*items));

    if (!items) {
        env->error = -ENOMEM;
        return false;
    }
    env->items = items;
    return true;
}

static void add(struct kiln_environment *env, char *item)
{
    if (!item || !make_room(env)) {
        env->error = -ENOMEM;
        kiln_free(item);
        return;
    }
    env->items[env->n++] = item;
    env->items[env->n] = NULL;
}

void kiln_environment_init(struct kiln_environment *env)
{
    *env = (struct kiln_environment){0};
    for (char **item = environ; item && *item && !env->error; item++)
        add(env, joined(*item, "", ""));
}

void kiln_environment_done(struct kiln_environment *env)
{
    for (uint32_t i = 0; i < env->n; i++)
        kiln_free(env->items[i]);
    kiln_free(env->items);
    *env = (struct kiln_environment){0};
}

/* Its number, or `n`. */
static uint32_t find(const struct kiln_environment *env, const char *name)
{
    size_t len = strlen(name);
    uint32_t i = 0;

    while (i < env->n && (strncmp(env->items[i], name, len) != 0 || env->items[i][len] != '='))
        i++;
    return i;
}

const char *kiln_environment_get(const struct kiln_environment *env, const char *name)
{
    uint32_t i = find(env, name);

    return i < env->n ? env->items[i] + strlen(name) + 1 : NULL;
}

void kiln_environment_set(struct kiln_environment *env, const char *name, const char *value)
{
    char *item = value ? joined(name, "=", value) : NULL;
    uint32_t i = find(env, name);

    if (i < env->n) {
        kiln_free(env->items[i]);
        memmove(env->items + i, env->items + i + 1, (env->n - i) * sizeof(*env->items));
        env->n--;
    }
    if (value)
        add(env, item);
}

void kiln_environment_set_u64(struct kiln_environment *env, const char *name, uint64_t value)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%" PRIu64, value);
    kiln_environment_set(env, name, digits);
}

void kiln_environment_put_before(struct kiln_environment *env, const char *name, const char *value,
                                 char separator)
{
    const char *before = kiln_environment_get(env, name);
    const char between[2] = {separator, '\0'};
    char *both = before && *before ? joined(value, between, before) : joined(value, "", "");

    if (both)
        kiln_environment_set(env, name, both);
    else
        env->error = -ENOMEM;
    kiln_free(both);
}

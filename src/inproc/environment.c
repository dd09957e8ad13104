/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LD_PRELOAD is a list of paths with colons or spaces between them.  What is left after a library
 * was taken out is never longer, so that it fits where it was: the kernel's copy on the stack.
 */
#include "inproc/environment.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "inproc/start.h"

static char *find(const char *name)
{
    size_t n = strlen(name);

    for (char **at = environ; at && *at; at++) {
        if (strncmp(*at, name, n) == 0 && (*at)[n] == '=')
            return *at + n + 1;
    }
    return NULL;
}

const char *kiln_in_env(const char *name)
{
    const char *value = find(name);

    return value && *value ? value : NULL;
}

static bool is_one_of(const char *value, const char *const *words)
{
    for (; *words; words++) {
        if (strcasecmp(value, *words) == 0)
            return true;
    }
    return false;
}

bool kiln_in_env_flag(const char *name, bool *ret_flag)
{
    static const char *const yes[] = {"1", "true", "yes", "on", NULL};
    static const char *const no[] = {"0", "false", "no", "off", "none", NULL};
    const char *value = kiln_in_env(name);
    bool is_no = value && is_one_of(value, no);

    if (!value)
        return false;
    if (!is_no && !is_one_of(value, yes)) {
        kiln_in_say(true, "%s is neither 1 nor 0, and is left out: %.64s", name, value);
        return false;
    }
    *ret_flag = !is_no;
    return true;
}

static bool is_named(const char *path, size_t length, const char *name)
{
    const char *slash = memrchr(path, '/', length);
    const char *file = slash ? slash + 1 : path;

    return (size_t)(path + length - file) >= strlen(name) && memcmp(file, name, strlen(name)) == 0;
}

bool kiln_in_preloads(const char *name)
{
    const char *list = kiln_in_env("LD_PRELOAD");

    while (list && *list) {
        size_t length = strcspn(list, ": ");

        if (is_named(list, length, name))
            return true;
        list += length + (list[length] != '\0');
    }
    return false;
}

/* An empty LD_PRELOAD is taken away altogether: programs show their variables. */
static void remove_variable(const char *value)
{
    char **to = environ;

    for (char **at = environ; *at; at++) {
        if (value < *at || value > *at + strlen(*at))
            *to++ = *at;
    }
    *to = NULL;
}

void kiln_in_preload_remove(const char *name)
{
    char *list = find("LD_PRELOAD"), *to = list;

    for (const char *at = list; at && *at;) {
        size_t length = strcspn(at, ": ");

        if (length && !is_named(at, length, name)) {
            if (to > list)
                *to++ = ':';
            memmove(to, at, length);
            to += length;
        }
        at += length + (at[length] != '\0');
    }
    if (to)
        *to = '\0';
    if (to && to == list)
        remove_variable(list);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/receivers/patterns.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATHS_MAX = 1 << 20, DEPTH_MAX = 64 };

/* ---- the list ---- */

void kiln_paths_init(struct kiln_paths *paths)
{
    *paths = (struct kiln_paths){.budget = {.limit = SIZE_MAX / 2}};
}

void kiln_paths_done(struct kiln_paths *paths)
{
    for (uint32_t i = 0; i < paths->n; i++)
        kiln_free(paths->list[i]);
    kiln_free(paths->list);
}

static int add(struct kiln_paths *paths, const char *path)
{
    size_t bytes = strlen(path) + 1;
    char *copy = kiln_malloc(bytes);
    int r = copy ? kiln_grow(&paths->budget, (void **)&paths->list, &paths->cap,
                             (uint64_t)paths->n + 1, sizeof(*paths->list), PATHS_MAX)
                 : -ENOMEM;

    if (r < 0) {
        kiln_free(copy);
        return r;
    }
    paths->list[paths->n++] = memcpy(copy, path, bytes);
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void kiln_paths_sort(struct kiln_paths *paths)
{
    if (paths->n)
        qsort(paths->list, paths->n, sizeof(*paths->list), by_text);
}

bool kiln_paths_has(const struct kiln_paths *paths, const char *path)
{
    return paths->n && bsearch(&path, paths->list, paths->n, sizeof(*paths->list), by_text);
}

/* ---- folders below folders ---- */

struct part {
    char text[KILN_PATTERN_MAX];
};

/* The first part of a path; *path goes behind its slash, and is NULL at the end. */
static struct part cut_part(const char **path)
{
    const char *slash = strchr(*path, '/');
    struct part part;

    snprintf(part.text, sizeof(part.text), "%.*s",
             (int)(slash ? (size_t)(slash - *path) : strlen(*path)), *path);
    *path = slash ? slash + 1 : NULL;
    return part;
}

static bool matches(const char *pattern, const char *path)
{
    struct part wanted, name;

    while (pattern && path) {
        wanted = cut_part(&pattern);
        if (strcmp(wanted.text, "**") == 0) {
            while (path && pattern && !matches(pattern, path))
                cut_part(&path);
            return path;
        }
        name = cut_part(&path);
        if (fnmatch(wanted.text, name.text, FNM_PERIOD) != 0)
            return false;
    }
    return pattern == path; /* both are at their end */
}

struct walk {
    struct kiln_paths *paths;
    const char *pattern;
    char path[PATH_MAX];
};

/* All below walk->path, which is "" or ends in a slash. */
static void walk_folder(struct walk *walk, size_t len, unsigned depth)
{
    DIR *dir = depth < DEPTH_MAX ? opendir(len ? walk->path : ".") : NULL;
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        size_t more = strlen(entry->d_name);

        if (len + more + 2 > sizeof(walk->path) || strcmp(entry->d_name, ".") == 0 ||
            strcmp(entry->d_name, "..") == 0)
            continue;
        memcpy(walk->path + len, entry->d_name, more + 1);
        if (entry->d_type != DT_DIR && matches(walk->pattern, walk->path) &&
            add(walk->paths, walk->path) < 0)
            break;
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            memcpy(walk->path + len + more, "/", 2);
            walk_folder(walk, len + more + 1, depth + 1);
        }
    }
    if (dir)
        closedir(dir);
}

/* From the last folder that is said by its name. */
static void walk(struct kiln_paths *paths, const char *pattern)
{
    struct walk *walk = kiln_calloc(1, sizeof(*walk));
    size_t plain = strcspn(pattern, "*?[");

    if (!walk)
        return;
    while (plain && pattern[plain - 1] != '/')
        plain--;
    walk->paths = paths;
    walk->pattern = pattern;
    memcpy(walk->path, pattern, plain);
    walk_folder(walk, plain, 0);
    kiln_free(walk);
}

void kiln_paths_find(struct kiln_paths *paths, struct kiln_str pattern)
{
    char text[KILN_PATTERN_MAX];
    glob_t found;

    snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(pattern));
    if (strstr(text, "**")) {
        walk(paths, text);
        return;
    }
    if (glob(text, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc && add(paths, found.gl_pathv[i]) == 0; i++)
        ;
    globfree(&found);
}

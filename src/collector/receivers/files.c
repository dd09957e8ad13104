/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/receivers/files.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"

enum { PATTERN_MAX = 1024 };

int kiln_files_check(const struct kiln_node *node, struct kiln_err *err)
{
    struct kiln_str pattern;
    int r = kiln_settings_texts(node, err);

    if (r < 0)
        return r;
    for (struct kiln_texts at = {.node = node}; kiln_texts_next(&at, &pattern);) {
        if (pattern.len >= PATTERN_MAX)
            return kiln_node_fail(node, KILN_E_LIMIT, err, "a pattern has %d bytes at most",
                                  PATTERN_MAX - 1);
        if (kiln_str_contains(pattern, KILN_STR("**")))
            return kiln_node_fail(node, KILN_E_UNSUPPORTED, err,
                                  "** is no pattern here: * stands for a name, say each level "
                                  "(a/*.pb.gz, a/*/*.pb.gz)");
    }
    return 0;
}

static bool find(struct kiln_str pattern, glob_t *ret_found)
{
    char text[PATTERN_MAX];

    snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(pattern));
    return glob(text, 0, NULL, ret_found) == 0;
}

static bool is_excluded(const struct kiln_files *files, const char *path)
{
    struct kiln_str pattern;
    bool same = false;
    glob_t found;

    for (struct kiln_texts at = {.node = files->exclude};
         !same && kiln_texts_next(&at, &pattern);) {
        if (!find(pattern, &found))
            continue;
        for (size_t i = 0; i < found.gl_pathc; i++)
            same |= strcmp(found.gl_pathv[i], path) == 0;
        globfree(&found);
    }
    return same;
}

static struct kiln_file *file_of(struct kiln_files *files, const struct stat *st)
{
    struct kiln_file *file = files->first;

    while (file && (file->dev != st->st_dev || file->ino != st->st_ino))
        file = file->next;
    if (file || files->n == KILN_FILES_MAX)
        return file;
    file = kiln_calloc(1, sizeof(*file));
    if (!file)
        return NULL;
    file->dev = st->st_dev;
    file->ino = st->st_ino;
    file->is_new = true;
    file->next = files->first;
    files->first = file;
    files->n++;
    return file;
}

struct visitor {
    bool (*visit)(void *context, struct kiln_file *file, const char *path, int fd,
                  const struct stat *status);
    void *context;
};

/* A file that two patterns name is visited once. */
static bool look_at(struct kiln_files *files, const char *path, const struct visitor *visitor)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct kiln_file *file = NULL;
    struct stat st;
    bool goes_on = true;

    if (fd < 0)
        return true;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        file = file_of(files, &st);
    if (file && !file->seen) {
        file->seen = true;
        goes_on = visitor->visit(visitor->context, file, path, fd, &st);
        file->is_new = false;
    }
    close(fd);
    return goes_on;
}

static void unsee(struct kiln_files *files)
{
    for (struct kiln_file *file = files->first; file; file = file->next)
        file->seen = false;
}

static void forget_gone(struct kiln_files *files)
{
    struct kiln_file **at = &files->first, *file;

    while ((file = *at)) {
        if (file->seen) {
            file->seen = false;
            at = &file->next;
            continue;
        }
        *at = file->next;
        files->n--;
        kiln_free(file);
    }
}

void kiln_files_look(struct kiln_files *files,
                     bool (*visit)(void *context, struct kiln_file *file, const char *path, int fd,
                                   const struct stat *status),
                     void *context)
{
    const struct visitor visitor = {visit, context};
    struct kiln_str pattern;
    bool goes_on = true;
    glob_t found;

    for (struct kiln_texts at = {.node = files->include};
         goes_on && kiln_texts_next(&at, &pattern);) {
        if (!find(pattern, &found))
            continue;
        for (size_t i = 0; goes_on && i < found.gl_pathc; i++)
            if (!is_excluded(files, found.gl_pathv[i]))
                goes_on = look_at(files, found.gl_pathv[i], &visitor);
        globfree(&found);
    }
    if (goes_on)
        forget_gone(files);
    else
        unsee(files); /* not all that are there were */
    files->looked = true;
}

void kiln_files_done(struct kiln_files *files)
{
    unsee(files);
    forget_gone(files);
}

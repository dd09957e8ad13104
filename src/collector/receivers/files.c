/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/receivers/files.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "collector/receivers/patterns.h"

/* Looks at a file that is gone whose rest cannot be read: half a line, or nobody takes it. */
enum { WAITING_MAX = 1000 };

int kiln_files_check(const struct kiln_node *node, struct kiln_err *err)
{
    struct kiln_str pattern;
    int r = kiln_settings_texts(node, err);

    for (struct kiln_texts at = {.node = node}; r == 0 && kiln_texts_next(&at, &pattern);)
        if (pattern.len >= KILN_PATTERN_MAX)
            r = kiln_node_fail(node, KILN_E_LIMIT, err, "a pattern has %d bytes at most",
                               KILN_PATTERN_MAX - 1);
    return r;
}

/* ---- what is known ---- */

struct kiln_file *kiln_files_know(struct kiln_files *files, dev_t dev, ino_t ino)
{
    struct kiln_seen *seen = files->seen;
    struct kiln_file *file = seen->first;

    while (file && (file->dev != dev || file->ino != ino))
        file = file->next;
    if (file)
        return file;
    if (seen->n == KILN_FILES_MAX) {
        if (!files->told)
            kiln_log(files->opts.log, KILN_LOG_WARN,
                     "patterns name too many files: the others wait until some are gone", "limit",
                     "%d", KILN_FILES_MAX, NULL);
        files->told = true;
        return NULL;
    }
    file = kiln_calloc(1, sizeof(*file));
    if (!file)
        return NULL;
    *file =
        (struct kiln_file){.dev = dev, .ino = ino, .is_new = true, .fd = -1, .next = seen->first};
    seen->first = file;
    seen->n++;
    return file;
}

static void free_file(struct kiln_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    kiln_free(file);
}

/* ---- a look ---- */

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
        file = kiln_files_know(files, st.st_dev, st.st_ino);
    if (file && !file->seen) {
        file->seen = true;
        file->waiting = 0;
        goes_on = visitor->visit(visitor->context, file, path, fd, &st);
        file->is_new = false;
    }
    if (file && file->fd < 0 && files->opts.holds)
        file->fd = fd;
    else
        close(fd);
    return goes_on;
}

static void unsee(struct kiln_seen *seen)
{
    for (struct kiln_file *file = seen->first; file; file = file->next)
        file->seen = false;
}

/* Visits what no pattern names any more once again; whether it has been read to its end. */
static bool is_done_with(struct kiln_file *file, const struct visitor *visitor)
{
    off_t before = file->offset;
    struct stat st;

    if (file->fd < 0 || fstat(file->fd, &st) < 0 || st.st_size <= file->offset)
        return true;
    (void)visitor->visit(visitor->context, file, "(renamed)", file->fd, &st);
    file->waiting = file->offset == before ? file->waiting + 1 : 0;
    return file->offset >= st.st_size || file->waiting > WAITING_MAX;
}

static void forget_gone(struct kiln_seen *seen, const struct visitor *visitor)
{
    struct kiln_file **at = &seen->first, *file;

    while ((file = *at)) {
        if (file->seen || !is_done_with(file, visitor)) {
            file->seen = false;
            at = &file->next;
            continue;
        }
        *at = file->next;
        seen->n--;
        free_file(file);
    }
}

static void find_all(struct kiln_paths *paths, const struct kiln_node *patterns)
{
    struct kiln_str pattern;

    kiln_paths_init(paths);
    for (struct kiln_texts at = {.node = patterns}; kiln_texts_next(&at, &pattern);)
        kiln_paths_find(paths, pattern);
    kiln_paths_sort(paths);
}

void kiln_files_look(struct kiln_files *files,
                     bool (*visit)(void *context, struct kiln_file *file, const char *path, int fd,
                                   const struct stat *status),
                     void *context)
{
    const struct visitor visitor = {visit, context};
    struct kiln_paths found, excluded;
    bool goes_on = true;

    if (files->differs)
        files->seen->looked = false;
    files->differs = false;
    find_all(&found, files->opts.include);
    find_all(&excluded, files->opts.exclude);
    for (uint32_t i = 0; goes_on && i < found.n; i++)
        if (!kiln_paths_has(&excluded, found.list[i]))
            goes_on = look_at(files, found.list[i], &visitor);
    kiln_paths_done(&found);
    kiln_paths_done(&excluded);
    if (goes_on)
        forget_gone(files->seen, &visitor);
    else
        unsee(files->seen); /* not all that are there were */
    files->seen->looked |= goes_on;
}

/* ---- from one to the next ---- */

static bool same_patterns(const struct kiln_node *a, const struct kiln_node *b)
{
    struct kiln_texts at = {.node = a}, other = {.node = b};
    struct kiln_str one, two;
    bool is_one, is_two;

    do {
        is_one = kiln_texts_next(&at, &one);
        is_two = kiln_texts_next(&other, &two);
    } while (is_one && is_two && kiln_str_eq(one, two));
    return !is_one && !is_two;
}

int kiln_files_init(struct kiln_files *files, const struct kiln_files_opts *opts,
                    const struct kiln_files *before)
{
    *files = (struct kiln_files){.opts = *opts};
    files->seen = before ? before->seen : kiln_calloc(1, sizeof(*files->seen));
    if (!files->seen)
        return -ENOMEM;
    files->seen->refs++;
    files->differs = before && (!same_patterns(opts->include, before->opts.include) ||
                                !same_patterns(opts->exclude, before->opts.exclude));
    return 0;
}

void kiln_files_done(struct kiln_files *files)
{
    struct kiln_file *file;

    if (!files->seen || --files->seen->refs)
        return;
    while ((file = files->seen->first)) {
        files->seen->first = file->next;
        free_file(file);
    }
    kiln_free(files->seen);
}

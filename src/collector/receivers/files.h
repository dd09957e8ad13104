/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files - which files patterns name by now, and what was read of each.
 *
 *   struct kiln_files files = {.include = node, .exclude = node};
 *   kiln_files_look(&files, visit, context);      visit(context, file, path, fd, status) for each
 *   kiln_files_done(&files);
 *
 * A file is known by its device and inode: another one by the same name is another one.  What is
 * gone is forgotten.
 *
 * Threads: one owner.
 */
#ifndef KILN_COLLECTOR_RECEIVERS_FILES_H
#define KILN_COLLECTOR_RECEIVERS_FILES_H

#include <sys/stat.h>

#include "collector/settings.h"

enum { KILN_FILES_MAX = 4096 };

struct kiln_file {
    struct kiln_file *next;
    dev_t dev;
    ino_t ino;
    bool is_new; /* it was not there at the look before */
    bool seen;   /* at this look */
    /* The visitor's: 0 of a new one. */
    off_t offset;
    struct timespec changed;
};

struct kiln_files {
    const struct kiln_node *include, *exclude; /* lists of texts; NULL: none */
    bool looked;                               /* before now */
    struct kiln_file *first;
    uint32_t n;
};

/* Patterns that can be meant; for read(). */
KILN_CHECK int kiln_files_check(const struct kiln_node *node, struct kiln_err *err);
/* Calls `visit` with each regular file, open for reading, until it says false. */
void kiln_files_look(struct kiln_files *files,
                     bool (*visit)(void *context, struct kiln_file *file, const char *path, int fd,
                                   const struct stat *status),
                     void *context);
void kiln_files_done(struct kiln_files *files);

#endif /* KILN_COLLECTOR_RECEIVERS_FILES_H */

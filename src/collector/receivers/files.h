/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files - which files patterns name by now, and what was read of each.
 *
 *   kiln_files_init(&files, &(struct kiln_files_opts){.include = node}, before);
 *   kiln_files_look(&files, visit, context);      visit(context, file, path, fd, status) for each
 *   kiln_files_done(&files);
 *
 * A file is known by its device and inode: another one by the same name is another one.  What is
 * gone is forgotten; where files are held, not before the rest of it was visited.
 *
 * What was read is known to whoever follows: a receiver of the next configuration begins where the
 * one before it, which has stopped by then, was.
 *
 * Threads: init and done by the thread that owns the graph; look by one that runs in between.
 */
#ifndef KILN_COLLECTOR_RECEIVERS_FILES_H
#define KILN_COLLECTOR_RECEIVERS_FILES_H

#include <sys/stat.h>

#include "base/log.h"
#include "collector/settings.h"

enum { KILN_FILES_MAX = 4096 };

struct kiln_file {
    struct kiln_file *next;
    dev_t dev;
    ino_t ino;
    bool is_new;      /* it was not there at the look before */
    bool seen;        /* at this look */
    int fd;           /* that is held; -1: none is */
    uint32_t waiting; /* looks since it is gone and nothing more could be read of it */
    /* The visitor's: 0 of a new one. */
    off_t offset;
    struct timespec changed;
    uint32_t head;      /* so many bytes at its start, */
    uint64_t head_hash; /* and their hash (offsets.h) */
    bool unproven;      /* that it is still the same */
};

struct kiln_files_opts {
    const struct kiln_node *include, *exclude; /* lists of texts; NULL: none */
    bool holds;           /* `offset` says how far one was read, and the rest is wanted */
    struct kiln_log *log; /* NULL: silent */
};

/* What is known of files, which goes from one receiver to the next. */
struct kiln_seen {
    uint32_t refs;
    bool looked; /* before now */
    struct kiln_file *first;
    uint32_t n;
};

struct kiln_files {
    struct kiln_files_opts opts;
    struct kiln_seen *seen;
    bool differs; /* its patterns are not those of the one before */
    bool told;    /* that there are too many */
};

/* Patterns that can be meant; for read(). */
KILN_CHECK int kiln_files_check(const struct kiln_node *node, struct kiln_err *err);
/* `before` may be at work, but not when the first look comes; NULL: there is none. */
KILN_CHECK int kiln_files_init(struct kiln_files *files, const struct kiln_files_opts *opts,
                               const struct kiln_files *before);
/* The file of this device and inode, new or old; NULL without memory, or where there are too many.
 */
struct kiln_file *kiln_files_know(struct kiln_files *files, dev_t dev, ino_t ino);
/* Calls `visit` with each regular file, open for reading, until it says false. */
void kiln_files_look(struct kiln_files *files,
                     bool (*visit)(void *context, struct kiln_file *file, const char *path, int fd,
                                   const struct stat *status),
                     void *context);
void kiln_files_done(struct kiln_files *files); /* also of one that was never initialised */

#endif /* KILN_COLLECTOR_RECEIVERS_FILES_H */

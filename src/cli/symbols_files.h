/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_files - the files that `kiln symbols resolve` gives to who reads symbols.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_SYMBOLS_FILES_H
#define KILN_CLI_SYMBOLS_FILES_H

#include <limits.h>

#include "cli/cli.h"
#include "symbol/debugfile.h"

struct kiln_symbols_files {
    const char *debug; /* NULL: none was named */
    const struct kiln_list *dirs;
    char program[PATH_MAX]; /* its path without links */
    struct kiln_debugfile where;
};

KILN_CHECK int kiln_symbols_files_init(struct kiln_symbols_files *files, const struct kiln_cli *cli,
                                       const char *path);
void kiln_symbols_files_done(struct kiln_symbols_files *files);

/* As `open` of struct kiln_source; `context` is a struct kiln_symbols_files. */
KILN_CHECK int kiln_symbols_files_open(void *context, const struct kiln_wanted *wanted,
                                       int *ret_fd);

#endif /* KILN_CLI_SYMBOLS_FILES_H */

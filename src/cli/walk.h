/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk - the files that operands name: files as they are, directories with all that is in them.
 *
 * Hidden files and directories are passed over unless they are wanted, symbolic links to
 * directories are not followed; what is found comes in the order of names.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CLI_WALK_H
#define KILN_CLI_WALK_H

#include "base/arena.h"
#include "base/err.h"

struct kiln_path {
    const char *path;
    bool found; /* in a directory, not named by anybody */
};

struct kiln_operands {
    struct kiln_path *items;
    uint32_t n, cap;
    bool hidden; /* are wanted; set behind init */
    struct kiln_arena arena;
    struct kiln_budget budget;
};

void kiln_operands_init(struct kiln_operands *paths);
void kiln_operands_done(struct kiln_operands *paths);

/* Adds what an operand names.  The error's place is the file or directory. */
KILN_CHECK int kiln_operands_add(struct kiln_operands *paths, const char *operand,
                                 struct kiln_err *err);

#endif /* KILN_CLI_WALK_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compiled - a program that a test compiles, to read its debug information.
 *
 * Commands run in a temporary folder; what they print goes to its file "log".
 */
#ifndef KILN_TESTS_SUPPORT_COMPILED_H
#define KILN_TESTS_SUPPORT_COMPILED_H

#include <stdbool.h>

#include "folder.h"
#include "symbol/elf.h"

enum { COMPILED_FILES = 4 };

struct compiled {
    char folder[FOLDER_NAME];
    struct kiln_elf *elfs[COMPILED_FILES];
    int fds[COMPILED_FILES];
    int n;
};

void compiled_init(struct compiled *compiled);
void compiled_done(struct compiled *compiled);
/* A file of its folder. */
void compiled_write(struct compiled *compiled, const char *name, const char *text);
/* Whether a command of the shell succeeds there. */
bool compiled_run(struct compiled *compiled, const char *command);
/* A file of the folder (or any, by its path) as ELF, until compiled_done().  NULL: it is not. */
const struct kiln_elf *compiled_open(struct compiled *compiled, const char *name);

#endif /* KILN_TESTS_SUPPORT_COMPILED_H */

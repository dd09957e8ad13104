/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program - what a command is before it runs: the file that the kernel will start (the interpreter
 * of a script), and whether the loader will put a library in front of it.
 *
 * Threads: no state.
 */
#ifndef KILN_CLI_PROGRAM_H
#define KILN_CLI_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"

/* Why LD_PRELOAD does nothing for it, or harm. */
enum kiln_program_bar {
    KILN_BAR_NONE,
    KILN_BAR_GO,      /* no libc: its runtime has an allocator, threads and locks of its own */
    KILN_BAR_STATIC,  /* no loader */
    KILN_BAR_FOREIGN, /* 32 bits, or another machine's */
    KILN_BAR_MUSL,    /* a loader that ends the program where a symbol of glibc is missing */
    KILN_BAR_SECURE,  /* setuid, setgid, file capabilities: the loader ignores paths */
};

enum kiln_program_kind {
    KILN_PROGRAM_PLAIN,
    KILN_PROGRAM_NODE,
    KILN_PROGRAM_PYTHON,
    KILN_PROGRAM_SHELL,
};

struct kiln_program {
    char path[PATH_MAX]; /* of the file that runs */
    bool sanitizer;      /* linked with the library of one, which has to be the first */
    uint32_t bar;        /* enum kiln_program_bar */
    uint32_t kind;       /* enum kiln_program_kind */
};

/*
 * Looks at `command` as execvp() would find it.  -EINVAL: there is no such program.  What cannot be
 * read (a file that may only be executed) has no bar.
 */
KILN_CHECK int kiln_program_look(const char *command, struct kiln_program *ret_program,
                                 struct kiln_err *err);

/* What is in the way, and what to do instead, as "is ...: ..."; NULL for KILN_BAR_NONE. */
const char *kiln_program_why(uint32_t bar);

#endif /* KILN_CLI_PROGRAM_H */

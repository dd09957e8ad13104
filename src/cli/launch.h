/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch - a command that is started, held before its first instruction, and let go.
 *
 * It has our terminal and working folder; signals are as this process found them.
 *
 * Threads: only the main thread, before there are others: it forks.
 */
#ifndef KILN_CLI_LAUNCH_H
#define KILN_CLI_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct kiln_launch {
    const char *name;  /* of the command */
    char *const *argv; /* borrowed until it runs, as are the variables */
    char *const *env;  /* NULL: ours */
    pid_t pid;         /* 0: none was started */
    int pidfd;         /* readable when it ended */
    int go;            /* a byte lets it run; closed, it goes away */
    int told;          /* an errno comes here if it cannot run */
    bool ended;
    int status; /* as waitpid() gives it */
};

/*
 * Forks a process that waits; `argv` ends with NULL, as does `env`, its variables; NULL: ours.
 * `user`: who shall run it; NULL: whoever we are.  A launch of zeros is done with safely.
 */
KILN_CHECK int kiln_launch_hold(struct kiln_launch *launch, char *const *argv, char *const *env,
                                const char *user, struct kiln_err *err);
/* Lets it run.  -ENOENT, -EACCES...: there is no such program, or it cannot be run. */
KILN_CHECK int kiln_launch_go(struct kiln_launch *launch, struct kiln_err *err);
/* Whether it has ended. */
bool kiln_launch_ended(struct kiln_launch *launch);
/* "ended with status 3", "was ended by signal 9 (Killed)", "is still running" */
void kiln_launch_describe(const struct kiln_launch *launch, struct kiln_buf *out);
/* One that was never let go goes away; one that runs is left alone. */
void kiln_launch_done(struct kiln_launch *launch);

#endif /* KILN_CLI_LAUNCH_H */

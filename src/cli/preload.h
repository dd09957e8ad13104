/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload - libkiln in front of a command: where the library is, and the variables that tell it
 * what to do, made of the options of `kiln run` and `kiln record`.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_PRELOAD_H
#define KILN_CLI_PRELOAD_H

#include <limits.h>

#include "cli/cli.h"
#include "cli/environment.h"
#include "cli/program.h"

/* What is sampled and how; where it goes; and the few of the first that `kiln record` has. */
extern const struct kiln_option_group kiln_group_profiles, kiln_group_sends, kiln_group_inside;

/*
 * Looks at the command, which is the first operand, finds the library and sets the variables.
 * Returns an exit code; what went wrong is printed.
 */
KILN_CHECK int kiln_preload_prepare(const struct kiln_cli *cli, struct kiln_environment *env,
                                    struct kiln_program *ret_program);

/*
 * Where the library is: `said`, else beside this program, else where it is installed.  -EINVAL: not
 * there, or at a path that LD_PRELOAD cannot say.
 */
KILN_CHECK int kiln_preload_find(const char *said, char ret_path[PATH_MAX], struct kiln_err *err);

#endif /* KILN_CLI_PRELOAD_H */

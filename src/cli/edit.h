/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit - what --resolve, --names, --relabel, --trim-path and --redact do to an input before anybody
 * looks at it.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_EDIT_H
#define KILN_CLI_EDIT_H

#include "cli/cli.h"

/*
 * Puts the edited batch in the place of *batch, and unrefs the old one.  `path` is for errors.
 * Prints what went wrong and returns an exit code; then *batch is as it was.
 */
KILN_CHECK int kiln_edit(const struct kiln_cli *cli, const char *path, struct kiln_batch **batch);

#endif /* KILN_CLI_EDIT_H */

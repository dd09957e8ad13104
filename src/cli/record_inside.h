/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_inside - `kiln record --alloc`, `--heap`, `--lock`: a command with libkiln in front of it,
 * into one file.  Needs no privilege.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_RECORD_INSIDE_H
#define KILN_CLI_RECORD_INSIDE_H

#include "cli/cli.h"
#include "cli/record.h"

/* Whether the command line asks for it. */
bool kiln_record_is_inside(const struct kiln_cli *cli);

/* Records and writes in this format; `rec` has the name and the path.  Returns an exit code. */
KILN_CHECK int kiln_record_inside(struct kiln_cli *cli, struct kiln_recording *rec,
                                  enum kiln_format format);

#endif /* KILN_CLI_RECORD_INSIDE_H */

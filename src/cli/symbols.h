/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols - the verbs of `kiln symbols`, each in a file of its own.
 *
 *   symbols_upload.c   upload: debug files to a server
 *   symbols_list.c     list, missing, delete: what a server has of debug files, and what it lacks
 *   symbols_resolve.c  resolve: names and lines of addresses, without a server
 *
 * Each prints into cli->out and returns an exit code; operands.items[0] is the verb.
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_SYMBOLS_H
#define KILN_CLI_SYMBOLS_H

#include "cli/cli.h"

KILN_CHECK int kiln_symbols_run_upload(struct kiln_cli *cli);
KILN_CHECK int kiln_symbols_run_list(struct kiln_cli *cli);
KILN_CHECK int kiln_symbols_run_missing(struct kiln_cli *cli);
KILN_CHECK int kiln_symbols_run_delete(struct kiln_cli *cli);
KILN_CHECK int kiln_symbols_run_resolve(struct kiln_cli *cli);
extern const struct kiln_option_group kiln_group_resolve;

#endif /* KILN_CLI_SYMBOLS_H */

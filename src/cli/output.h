/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output - batches into files, in the format asked for.
 *
 * These functions print what went wrong and return an exit code, 0 for success.
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_OUTPUT_H
#define KILN_CLI_OUTPUT_H

#include "cli/cli.h"

/* The options of every command that writes a file: -o and --to. */
extern const struct kiln_option_group kiln_group_output;

/* The format that the ending of a file's name stands for, .gz and .zst left out, or UNKNOWN. */
enum kiln_format kiln_output_format_of(const char *path);

/*
 * The format asked for with --to, else by the ending of -o, else `fallback`; an exit code where
 * that leaves UNKNOWN, or would put bytes on a terminal.
 */
KILN_CHECK int kiln_output_format(const struct kiln_cli *cli, enum kiln_format fallback,
                                  enum kiln_format *ret_format);

/* Encodes the batch as the options say and delivers it. */
KILN_CHECK int kiln_output_batch(struct kiln_cli *cli, struct kiln_batch *batch,
                                 enum kiln_format format);

/* What cli->out holds goes to the file of -o (compressed where its name ends in .gz or .zst), or
 * stays for standard output. */
KILN_CHECK int kiln_output_deliver(struct kiln_cli *cli, enum kiln_format format);

#endif /* KILN_CLI_OUTPUT_H */

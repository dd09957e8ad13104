/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input - from the words of the command line to batches and views.
 *
 * These functions print what went wrong and return an exit code, 0 for success.
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_INPUT_H
#define KILN_CLI_INPUT_H

#include "cli/cli.h"

struct kiln_input {
    struct kiln_batch *batch;
    struct kiln_decode_info info;
    size_t file_bytes; /* as it lies on the disk */
};

/* The most bytes a command may print or write: a small hostile file must not become gigabytes. */
size_t kiln_output_limit(const struct kiln_cli *cli);

/* Reads and uncompresses one file into `out`, an initialised buffer, within the limits. */
KILN_CHECK int kiln_input_read(const struct kiln_cli *cli, const char *path, struct kiln_buf *out);

/* Reads and decodes one file, without edits; prints nothing, returns 0 or an error. */
KILN_CHECK int kiln_input_load(const struct kiln_cli *cli, const char *path,
                               struct kiln_input *ret_input, struct kiln_err *err);

/* Reads and decodes one file. */
KILN_CHECK int kiln_input_open(const struct kiln_cli *cli, const char *path,
                               struct kiln_input *ret_input);
void kiln_input_close(struct kiln_input *input);

/* The operands from number `first` on, as one batch. */
KILN_CHECK int kiln_input_merge(const struct kiln_cli *cli, uint32_t first,
                                struct kiln_batch **ret_batch);

/* What the selection options ask for.  Free the labels with kiln_input_opts_done(). */
KILN_CHECK int kiln_input_opts(const struct kiln_cli *cli, struct kiln_view_opts *ret_opts);
void kiln_input_opts_done(struct kiln_view_opts *opts);

/* The selection of a batch; `path` is for errors. */
KILN_CHECK int kiln_input_view(const struct kiln_cli *cli, struct kiln_batch *batch,
                               const char *path, struct kiln_view **ret_view);

/* The selection of one file. */
KILN_CHECK int kiln_input_view_file(const struct kiln_cli *cli, const char *path,
                                    struct kiln_view **ret_view);

/* The selection of several: the operands from `first` on, merged. */
KILN_CHECK int kiln_input_view_of(const struct kiln_cli *cli, uint32_t first,
                                  struct kiln_view **ret_view);

#endif /* KILN_CLI_INPUT_H */

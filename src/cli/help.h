/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help - what the tables of commands and options say, as text, as a manual page, as completions.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_HELP_H
#define KILN_CLI_HELP_H

#include "base/buf.h"
#include "cli/options.h"
#include "cli/term.h"

/* The help of one command; of all of them; of the formats. */
void kiln_help_command(const struct kiln_command *command, const struct kiln_term *term,
                       struct kiln_buf *out);
void kiln_help_all(const struct kiln_term *term, struct kiln_buf *out);
void kiln_help_formats(const struct kiln_term *term, struct kiln_buf *out);

/* A manual page in mdoc(7): of one command, or of kiln itself for NULL. */
void kiln_man_page(const struct kiln_command *command, struct kiln_buf *out);

/* A completion script. */
void kiln_complete_bash(struct kiln_buf *out);
void kiln_complete_zsh(struct kiln_buf *out);
void kiln_complete_fish(struct kiln_buf *out);

#endif /* KILN_CLI_HELP_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli - what the sub-commands share: the run, exit codes, errors on one line.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_CLI_H
#define KILN_CLI_CLI_H

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "cli/options.h"
#include "cli/term.h"

/* number, name, what it says */
#define KILN_EXIT_MAP(X)                                                                           \
    X(0, WELL, "All went well.")                                                                   \
    X(1, FAILED, "A check or a threshold failed: the answer is no.")                               \
    X(2, USAGE, "The command line was wrong, or names what is not there.")                         \
    X(3, INPUT, "An input is damaged, too large, of no known format, or has no profiles.")         \
    X(4, IO, "A file or the network failed, a privilege is missing, or memory ran out.")

enum kiln_exit {
#define X(number, name, text) KILN_EXIT_##name = (number),
    KILN_EXIT_MAP(X)
#undef X
};

/* name, what it does */
#define KILN_ENVIRONMENT_MAP(X)                                                                    \
    X("NO_COLOR", "If set and not empty, no colours, unless --color=always.")                      \
    X("TERM", "If dumb, no colours.")                                                              \
    X("COLUMNS", "The width that tables are cut to on a terminal, if it cannot be asked.")         \
    X("KILN_SERVER", "The server that commands talk to, if --server does not say.")                \
    X("KILN_TOKEN", "The token to show to that server, if --token does not say.")                  \
    X("OTEL_EXPORTER_OTLP_*", "Where kiln agent sends, and how; those of OpenTelemetry.")          \
    X("KILN_*", "What an option of kiln server or kiln agent does, in capitals: KILN_LISTEN, "     \
                "KILN_DATA_DIR, "                                                                  \
                "KILN_MEMORY_LIMIT... An option on the command line counts more.")

struct kiln_cli {
    const struct kiln_command *command;
    bool bare; /* no command was said: it is the server, and all that goes with it */
    struct kiln_args args;
    struct kiln_term term; /* standard output */
    struct kiln_buf out;   /* what the command has to say; written at the end */
};

/* The exit code for an error code. */
int kiln_cli_exit_code(int code);

/*
 * Prints `kiln: FILE: place: what (what to do next)` on standard error; `file` may be NULL. Returns
 * the exit code, so that `return kiln_cli_fail(...)` reads well.
 */
int kiln_cli_fail(const char *file, const struct kiln_err *err);

/* The same for a wrong command line; points at the command's help. */
int kiln_cli_usage(const struct kiln_command *command, const char *fmt, ...) KILN_PRINTF(2, 3);

/* What a command with verbs does for one of them; `verbs` ends with a nameless one. */
struct kiln_verb {
    const char *name;
    const char *operand; /* what it needs at least one of; NULL: it takes none */
    int (*run)(struct kiln_cli *cli);
};
/* Runs the verb that the first operand names; returns the exit code. */
int kiln_cli_run_verb(struct kiln_cli *cli, const struct kiln_verb *verbs);

/* A remark that changes nothing: `kiln: FILE: what` on standard error. */
void kiln_cli_note(const char *file, const char *fmt, ...) KILN_PRINTF(2, 3);

/* How a person calls the file: "-" is standard input. */
const char *kiln_cli_file_name(const char *path);

/* Appends the word that starts this program again: "build/kiln" as it was typed, or "kiln". */
void kiln_cli_put_program(struct kiln_buf *out);
/* Appends a text as one word of a shell. */
void kiln_cli_put_quoted(struct kiln_buf *out, const char *text);

/* The form of log lines on standard error: plain on a terminal. */
enum kiln_log_form kiln_cli_log_form(void);

/* A text of the profile's author, made safe for one line of a terminal: no control characters. */
void kiln_cli_put_safe(struct kiln_buf *out, struct kiln_str text);

#endif /* KILN_CLI_CLI_H */

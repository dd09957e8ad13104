/* SPDX-License-Identifier: Apache-2.0 */
/* kiln symbols VERB: debug files, and the names that are made of them. */
#include "cli/commands.h"
#include "cli/remote.h"
#include "cli/report.h"
#include "cli/symbols.h"

static const struct kiln_verb verbs[] = {
    {"upload", "FILE or DIR", kiln_symbols_run_upload},
    {"list", NULL, kiln_symbols_run_list},
    {"missing", NULL, kiln_symbols_run_missing},
    {"delete", "BUILD_ID", kiln_symbols_run_delete},
    {"resolve", "FILE", kiln_symbols_run_resolve},
    {0},
};

static const char *const words[] = {"upload", "list", "missing", "delete", "resolve", NULL};

static int run(struct kiln_cli *cli)
{
    return kiln_cli_run_verb(cli, verbs);
}

static const struct kiln_option options[] = {
    KILN_OPT("dry-run", 0, KILN_OPT_FLAG, push.dry_run, NULL, "upload nothing, say what would go"),
    KILN_OPT("force", 0, KILN_OPT_FLAG, symbols.force, NULL,
             "upload also where the server has a file of that build id"),
    KILN_OPT_LIMIT("show at most N of what is missing (50; 0: all)"),
    KILN_OPT_JSON,
    KILN_OPT_WIDE,
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Symbols", options};

const struct kiln_command kiln_cmd_symbols = {
    .name = "symbols",
    .summary = "debug files on a server, names of addresses: upload, missing, resolve",
    .operands = "VERB [FILE|DIR|BUILD_ID|ADDRESS]...",
    .operands_min = 1,
    .operands_max = KILN_OPERANDS_ANY,
    .words = words,
    .about =
        "A server names what arrives without names (a build id and an address) from debug files, "
        "whenever they come. `upload FILE|DIR...` sends it what is found in files and directories: "
        "debug files (-dbgsym packages, what objcopy --only-keep-debug or eu-strip split off), "
        "programs and libraries that were not stripped, PROGRAM.dwp beside its PROGRAM; of each "
        "build id once, in parts, and not what is there already. `list` shows those it has. "
        "`missing` shows what has samples but neither names nor lines, "
        "most samples first: where it was looked for, and why it was not found. `delete BUILD_ID` "
        "removes the files of a build id.\n"
        "\n"
        "`resolve FILE [ADDRESS]...` needs no server: it prints the functions at addresses of a "
        "program or library (hexadecimal, those of the file itself; without any, from standard "
        "input), with file and line, as far as FILE or its debug files tell. A line has an "
        "address, a function and its place, separated by tabs; the function that this one was "
        "inlined into is on the next line, without the address. It reads in a confined process, "
        "and takes --timeout at most (60s); what has no lines by then has its name alone.",
    .groups = {&group, &kiln_group_resolve, &kiln_group_remote},
    .examples = {{"kiln symbols missing", "what has samples but no names"},
                 {"kiln symbols upload --dry-run /usr/lib/debug", "what of it the server lacks"},
                 {"kiln symbols resolve /bin/sh 0x8000", "what is there"},
                 {"echo 8000 | kiln symbols resolve --addr2line /bin/sh",
                  "the same from standard input, in addr2line's form"}},
    .defaults = {.limit = 50},
    .run = run,
};

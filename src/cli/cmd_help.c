/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/help.h"

static int run(struct kiln_cli *cli)
{
    const char *word = cli->args.operands.n ? cli->args.operands.items[0] : NULL;
    const struct kiln_command *command = word ? kiln_command_named(word) : NULL;

    if (word && !command && strcmp(word, "formats") == 0)
        kiln_help_formats(&cli->term, &cli->out);
    else if (word && !command)
        return kiln_cli_usage(NULL, "%.40s: no such command", word);
    else if (cli->args.man)
        kiln_man_page(command, &cli->out);
    else if (command)
        kiln_help_command(command, &cli->term, &cli->out);
    else
        kiln_help_all(&cli->term, &cli->out);
    return KILN_EXIT_WELL;
}

static const struct kiln_option options[] = {
    KILN_OPT("man", 0, KILN_OPT_FLAG, man, NULL, "print the manual page instead, in mdoc(7)"),
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Options", options};

const struct kiln_command kiln_cmd_help = {
    .name = "help",
    .summary = "explain a command, or list them all",
    .operands = "[COMMAND | formats]",
    .operands_max = 1,
    .words = kiln_words_topics,
    .about = "Tells about COMMAND, or about the formats that Kiln reads and writes.",
    .groups = {&group},
    .examples = {{"kiln help diff", "all about diff"},
                 {"kiln help formats", "what can be read and written"},
                 {"kiln help --man diff > /tmp/kiln-diff.1", "its manual page"}},
    .run = run,
};

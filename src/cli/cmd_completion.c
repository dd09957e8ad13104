/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/help.h"

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

static int run(struct kiln_cli *cli)
{
    const char *shell = cli->args.operands.items[0];

    if (strcmp(shell, "bash") == 0)
        kiln_complete_bash(&cli->out);
    else if (strcmp(shell, "zsh") == 0)
        kiln_complete_zsh(&cli->out);
    else if (strcmp(shell, "fish") == 0)
        kiln_complete_fish(&cli->out);
    else
        return kiln_cli_usage(cli->command, "unknown shell %.40s; choose one of: bash, zsh, fish",
                              shell);
    return KILN_EXIT_WELL;
}

const struct kiln_command kiln_cmd_completion = {
    .name = "completion",
    .summary = "print a completion script for a shell",
    .operands = "bash|zsh|fish",
    .operands_min = 1,
    .operands_max = 1,
    .words = shells,
    .about =
        "Prints a script that teaches the shell the commands and options of Kiln. In bash, put "
        "`source <(kiln completion bash)` into ~/.bashrc; for zsh, write the script to a file "
        "named _kiln in a directory of $fpath; for fish, write it to "
        "~/.config/fish/completions/kiln.fish.",
    .examples = {{"kiln completion bash > /tmp/kiln.bash", "to be sourced by bash"},
                 {"kiln completion zsh > /tmp/_kiln", "to be found by zsh"},
                 {"kiln completion fish > /tmp/kiln.fish", "to be sourced by fish"}},
    .run = run,
};

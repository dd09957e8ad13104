/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/commands.h"

static int run(struct kiln_cli *cli)
{
    kiln_buf_puts(&cli->out, "kiln " KILN_VERSION "\n");
    return KILN_EXIT_WELL;
}

const struct kiln_command kiln_cmd_version = {
    .name = "version",
    .summary = "print the version",
    .operands = "",
    .about = "Prints the version of Kiln.",
    .examples = {{"kiln version", "the version"}},
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/serve.h"
#include "codec/assets.h"

extern const char kiln_asset_kiln_yaml[];

static int show(struct kiln_cli *cli, const struct kiln_server_config *config)
{
    int code = kiln_serve_check(config);

    if (code != KILN_EXIT_WELL)
        return code;
    if (cli->args.json)
        kiln_settings_format_json(config, &cli->out);
    else
        kiln_settings_format(config, &cli->out);
    return code;
}

static int run(struct kiln_cli *cli)
{
    struct kiln_server_config config;
    struct kiln_err err = {0};
    int code, r;

    if (cli->args.example) {
        kiln_buf_puts(&cli->out, kiln_asset_kiln_yaml);
        return KILN_EXIT_WELL;
    }
    r = kiln_settings_load(&cli->args.server, &config, &err);
    code = r < 0 ? kiln_serve_blame(cli, &config, r, &err) : show(cli, &config);
    kiln_settings_done(&config);
    return code;
}

static const struct kiln_option options[] = {
    KILN_OPT("json", 0, KILN_OPT_FLAG, json, NULL, "print JSON"),
    KILN_OPT("example", 0, KILN_OPT_FLAG, example, NULL,
             "print a file with every key, its default and what it is for, and leave"),
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Showing", options};

const struct kiln_command kiln_cmd_config = {
    .name = "config",
    .summary = "show the settings of server and agent, and where each comes from",
    .operands = "",
    .operands_min = 0,
    .operands_max = 0,
    .about = "Reads what `kiln server` and `kiln agent` would read with these options, the "
             "variables of this shell "
             "and its file (also tokens and rules of redaction, which are not shown), and prints "
             "what would hold: each value with the option, the variable, or the file and line that "
             "said it, or `default`. What it prints is a file of settings itself.\n\n"
             "A mistake is named with its place, and the exit code is 3 where it is in a file: "
             "run it before a restart.",
    .groups = {&group, &kiln_group_coming_in, &kiln_group_keeping, &kiln_group_asking,
               &kiln_group_naming, &kiln_group_running, &kiln_group_this_host, &kiln_group_host,
               &kiln_group_whom, &kiln_group_sending},
    .examples = {{"kiln config", "what holds here"},
                 {"kiln config --listen :4040 --tokens examples/tokens.yaml",
                  "what would hold with these options"},
                 {"kiln config --example > /tmp/kiln.yaml", "a file to begin with"},
                 {"kiln config --config packaging/kiln.yaml", "whether a file is sound"}},
    .run = run,
};

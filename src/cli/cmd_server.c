/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/serve.h"

int kiln_serve_blame(struct kiln_cli *cli, const struct kiln_server_config *config, int code,
                     struct kiln_err *err)
{
    if (config->blamed)
        return kiln_cli_fail(config->blamed, err);
    if (code == -EINVAL)
        return kiln_cli_usage(cli->command, "%s", err->text);
    return kiln_cli_fail(NULL, err);
}

static int run(struct kiln_cli *cli)
{
    struct kiln_server_config config;
    struct kiln_err err = {0};
    int code, r;

    cli->args.server.server_alone = !cli->bare;
    if (cli->args.server.no_host)
        cli->args.server.host.enabled = "off";
    r = kiln_settings_load(&cli->args.server, &config, &err);

    code = r < 0 ? kiln_serve_blame(cli, &config, r, &err) : kiln_serve(&config, &cli->term);
    kiln_settings_done(&config);
    return code;
}

const struct kiln_command kiln_cmd_server = {
    .name = "server",
    .summary = "take profiles in, keep them, and answer questions about them",
    .operands = "",
    .operands_min = 0,
    .operands_max = 0,
    .about = "Takes profiles from anything that speaks OTLP, Pyroscope or pprof, keeps them in a "
             "store of its own, and answers questions about them, on a page and to programs, under "
             "a hard limit of memory. `kiln` without a command, with the same options, is this "
             "and the profiler of this host: it samples what every process does, where root, or "
             "the capabilities for it, and the kernel allow.\n\n"
             "An address is HOST:PORT, :PORT for all addresses, with port 0 for any free one, or "
             "`off`. Each option can be said as a variable too (KILN_DATA_DIR for --data-dir) or "
             "in the file of --config; the command line counts most, then variables. `kiln config` "
             "with the same options prints what would hold, and why.\n\n"
             "Where there are tokens (--tokens), programs show one with each request, and people "
             "sign in on the page with theirs; a session lasts for twelve hours.\n\n"
             "SIGTERM and SIGINT end it in good order, a second one at once. SIGHUP reads the "
             "rules of redaction and the tokens again; tokens and certificates are also read when "
             "they change.",
    .groups = {&kiln_group_coming_in, &kiln_group_keeping, &kiln_group_asking, &kiln_group_naming,
               &kiln_group_running, &kiln_group_this_host, &kiln_group_host, &kiln_group_whom},
    .examples = {{"kiln server --data-dir /tmp/profiles --listen 127.0.0.1:0", "on any free port"},
                 {"kiln server --data-dir /tmp/profiles --memory-limit 256M", "within 256 MiB"},
                 {"kiln server --listen :4040 --tokens examples/tokens.yaml",
                  "reachable from elsewhere, for whoever has a token"}},
    .run = run,
};

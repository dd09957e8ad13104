/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/serve.h"

static int check(struct kiln_cli *cli, const struct kiln_server_config *config)
{
    int code = kiln_serve_check(config);

    if (code == KILN_EXIT_WELL)
        kiln_settings_format(&config->set, &cli->out);
    return code;
}

static int run(struct kiln_cli *cli)
{
    struct kiln_server_config config;
    struct kiln_err err = {0};
    int code = KILN_EXIT_WELL;
    int r = kiln_settings_load(&cli->args.server, &config, &err);

    if (r < 0 && config.blamed)
        code = kiln_cli_fail(config.blamed, &err);
    else if (r == -EINVAL)
        code = kiln_cli_usage(cli->command, "%s", err.text);
    else if (r < 0)
        code = kiln_cli_fail(NULL, &err);
    else if (config.set.check)
        code = check(cli, &config);
    else
        code = kiln_serve(&config);
    kiln_settings_done(&config);
    return code;
}

static const char *const levels[] = {"debug", "info", "warn", "error", NULL};
static const char *const log_formats[] = {"logfmt", "json", NULL};

static const struct kiln_option listen_options[] = {
    KILN_OPT("listen", 0, KILN_OPT_TEXT, server.listen, "ADDRESS",
             "everything: page, Pyroscope, uploads, OTLP, administration (127.0.0.1:4040)"),
    KILN_OPT("otlp-grpc", 0, KILN_OPT_TEXT, server.otlp_grpc, "ADDRESS",
             "OTLP only, where gRPC clients look for it (127.0.0.1:4317)"),
    KILN_OPT("otlp-http", 0, KILN_OPT_TEXT, server.otlp_http, "ADDRESS",
             "OTLP only, where HTTP clients look for it (127.0.0.1:4318)"),
    KILN_OPT("socket", 0, KILN_OPT_TEXT, server.socket, "FILE",
             "Unix socket for everything (/run/kiln/kiln.sock)"),
    KILN_OPT("tls-cert", 0, KILN_OPT_TEXT, server.tls_cert, "FILE",
             "speak TLS on every port, with this certificate (PEM); read again when it changes"),
    KILN_OPT("tls-key", 0, KILN_OPT_TEXT, server.tls_key, "FILE", "its private key (PEM)"),
    KILN_OPT("tls-client-ca", 0, KILN_OPT_TEXT, server.tls_client_ca, "FILE",
             "clients must show a certificate that one of these signed (PEM)"),
    KILN_OPT("tokens", 0, KILN_OPT_TEXT, server.tokens, "FILE",
             "who may come in, and as whom (YAML); needed to listen beyond loopback"),
    KILN_OPT("allow-anonymous", 0, KILN_OPT_FLAG, server.allow_anonymous, NULL,
             "listen beyond loopback without tokens all the same"),
    KILN_OPT("multitenant", 0, KILN_OPT_FLAG, server.multitenant, NULL,
             "X-Scope-OrgID says whose profiles they are"),
    KILN_OPT_END,
};
static const struct kiln_option_group listen_group = {"Coming in", listen_options};

static const struct kiln_option keep_options[] = {
    KILN_OPT("data-dir", 0, KILN_OPT_TEXT, server.data_dir, "DIR",
             "where profiles are kept (/var/lib/kiln for root and services, else "
             "$XDG_DATA_HOME/kiln)"),
    KILN_OPT("retention", 0, KILN_OPT_DURATION, server.retention_ns, "AGE", "how long (14d)"),
    KILN_OPT("retention-size", 0, KILN_OPT_SIZE, server.retention_size, "SIZE",
             "how much; the oldest go first (no limit but 80 % of the disk)"),
    KILN_OPT("memory-limit", 0, KILN_OPT_SIZE, server.memory_limit, "SIZE",
             "never use more memory (a quarter of the machine's, between 256M and 2G)"),
    KILN_OPT("redact", 0, KILN_OPT_TEXT, server.redact, "FILE",
             "take out of everything, before it is kept, what these rules say (YAML)"),
    KILN_OPT_END,
};
static const struct kiln_option_group keep_group = {"Keeping", keep_options};

static const struct kiln_option run_options[] = {
    KILN_OPT("config", 0, KILN_OPT_TEXT, server.config, "FILE",
             "settings (" KILN_CONFIG_FILE " where it exists)"),
    KILN_OPT("check", 0, KILN_OPT_FLAG, server.check, NULL,
             "read the settings, print them, and leave"),
    {.name = "log-level",
     .kind = KILN_OPT_TEXT,
     .offset = offsetof(struct kiln_args, server.log_level),
     .value = "LEVEL",
     .choices = levels,
     .text = "debug, info, warn or error (info)"},
    {.name = "log-format",
     .kind = KILN_OPT_TEXT,
     .offset = offsetof(struct kiln_args, server.log_format),
     .value = "FORMAT",
     .choices = log_formats,
     .text = "lines on standard error: logfmt or json (logfmt)"},
    KILN_OPT("ready-file", 0, KILN_OPT_TEXT, server.ready_file, "FILE",
             "write ports and process id there, as JSON, once profiles are taken"),
    KILN_OPT_END,
};
static const struct kiln_option_group run_group = {"Running", run_options};

const struct kiln_command kiln_cmd_server = {
    .name = "server",
    .summary = "take profiles in over the network and keep them",
    .operands = "",
    .operands_min = 0,
    .operands_max = 0,
    .about = "Takes profiles from anything that speaks OTLP, Pyroscope or pprof, and keeps them in "
             "a store of its own, under a hard limit of memory. `kiln server --data-dir DIR` is "
             "all that is needed.\n\n"
             "An address is HOST:PORT, :PORT for all addresses, with port 0 for any free one, or "
             "`off`. Each option can be said as a variable too (KILN_DATA_DIR for --data-dir) or "
             "in the file of --config; the command line counts most, then variables.\n\n"
             "SIGTERM and SIGINT end it in good order, a second one at once. SIGHUP reads the "
             "rules of redaction and the tokens again; tokens and certificates are also read when "
             "they change.",
    .groups = {&listen_group, &keep_group, &run_group},
    .examples = {{"kiln server --data-dir /tmp/profiles --listen 127.0.0.1:0 --check",
                  "what it would do"},
                 {"kiln server --data-dir /tmp/profiles --memory-limit 256M --check",
                  "within 256 MiB"},
                 {"kiln server --listen :4040 --tokens examples/tokens.yaml --check",
                  "reachable from elsewhere, for whoever has a token"}},
    .run = run,
};

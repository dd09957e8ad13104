/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/serve.h"
#include "fleet/order.h"

static int run(struct kiln_cli *cli)
{
    struct kiln_server_config config;
    struct kiln_err err = {0};
    int code;
    int r = kiln_settings_load_agent(&cli->args.server, &config, &err);

    code = r < 0 ? kiln_serve_blame(cli, &config, r, &err) : kiln_agent(&config, &cli->args.server);
    kiln_settings_done(&config);
    return code;
}

static const struct kiln_option options[] = {
    KILN_OPT("listen", 0, KILN_OPT_TEXT, server.agent.listen, "ADDRESS",
             "/metrics, /healthz and /ready, or off (127.0.0.1:4041)"),
    KILN_OPT("socket", 0, KILN_OPT_TEXT, server.agent.socket, "FILE",
             "Unix socket for status and orders, or off (" KILN_AGENT_SOCKET ")"),
    KILN_OPT("server", 0, KILN_OPT_TEXT, server.agent.server, "URL",
             "the Kiln server that has orders, or off (who takes the profiles; KILN_SERVER)"),
    {.name = "orders",
     .kind = KILN_OPT_TEXT,
     .offset = offsetof(struct kiln_args, server.agent.orders),
     .value = "WHICH",
     .choices = kiln_order_limits,
     .text = "orders that are followed, from the server and from the socket: off, boost or all "
             "(all)"},
    KILN_OPT("allow-anonymous", 0, KILN_OPT_FLAG, server.allow_anonymous, NULL,
             "listen beyond loopback all the same"),
    KILN_OPT("host-names", 0, KILN_OPT_LIST, server.host_names_flag, "NAMES",
             "host names to accept in requests, beside localhost and IP addresses; "
             "may be given more than once"),
    KILN_OPT("data-dir", 0, KILN_OPT_TEXT, server.data_dir, "DIR",
             "where the spool and orders are (/var/lib/kiln for root and services, else "
             "$XDG_DATA_HOME/kiln)"),
    KILN_OPT("memory-limit", 0, KILN_OPT_SIZE, server.host.memory_limit, "SIZE",
             "short for --agent-memory-limit, as a server has to call it"),
    KILN_OPT("redact", 0, KILN_OPT_TEXT, server.redact, "FILE",
             "take out of everything, before it is sent, what these rules say (YAML)"),
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"The agent", options};

const struct kiln_command kiln_cmd_agent = {
    .name = "agent",
    .summary = "profile every process of this host, and send it elsewhere",
    .operands = "",
    .operands_min = 0,
    .operands_max = 0,
    .about = "Samples what runs on every processor, 19 times a second, walks the stacks of all "
             "processes and of the kernel, names their functions, and sends profiles as OTLP: to "
             "`kiln server`, an OpenTelemetry Collector, or whatever takes it. Nothing has to be "
             "changed in the programs.\n\n"
             "It needs a Linux kernel from 6.1 on and privilege: root, or the capabilities BPF, "
             "PERFMON, SYS_PTRACE, DAC_READ_SEARCH, SYSLOG, CHECKPOINT_RESTORE and IPC_LOCK; "
             "without the "
             "first two it says what is missing and leaves with 4. All other privileges, and most "
             "system calls, it gives up by itself.\n\n"
             "Each option can be said as a variable too (KILN_FREQUENCY for --frequency) or in the "
             "file of --config, under `agent`. Of OpenTelemetry's variables it knows "
             "OTEL_EXPORTER_OTLP_ENDPOINT, _PROTOCOL, _HEADERS, _COMPRESSION, _TIMEOUT, "
             "_CERTIFICATE, _CLIENT_CERTIFICATE, _CLIENT_KEY and _INSECURE (those of "
             "OTEL_EXPORTER_OTLP_PROFILES_ count more), OTEL_PROFILER_SAMPLING_FREQUENCY and "
             "OTEL_RESOURCE_ATTRIBUTES.\n\n"
             "While the receiver is away, profiles wait in the spool, on disk.\n\n"
             "SIGTERM and SIGINT end it in good order, a second one at once. SIGHUP reads the "
             "settings again: frequency and rules of redaction change.",
    .groups = {&kiln_group_host, &kiln_group_whom, &kiln_group_sending, &group,
               &kiln_group_running},
    .examples = {{"kiln agent", "to the server on this machine"},
                 {"kiln agent --endpoint http://collector:4317 --frequency 97", "elsewhere"},
                 {"kiln agent --window 30s/10m --exclude-comm stress", "now and then, not all"}},
    .run = run,
};

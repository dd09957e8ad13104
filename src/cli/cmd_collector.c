/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/collector.h"
#include "cli/commands.h"

static const struct kiln_verb verbs[] = {
    {"validate", NULL, kiln_collector_validate},
    {"components", NULL, kiln_collector_components},
    {"print-config", NULL, kiln_collector_print_config},
    {"print-initial-config", NULL, kiln_collector_print_config},
    {"featuregate", NULL, kiln_collector_featuregate},
    {0},
};

static const char *const words[] = {"validate", "components", "print-config", "featuregate", NULL};

static bool needs_config(const struct kiln_cli *cli)
{
    const char *verb = cli->args.operands.n ? cli->args.operands.items[0] : "";

    return strcmp(verb, "components") != 0 && strcmp(verb, "featuregate") != 0;
}

static int run(struct kiln_cli *cli)
{
    if (cli->args.operands.n && strcmp(cli->args.operands.items[0], "featuregate") == 0)
        return kiln_collector_featuregate(cli);
    if (needs_config(cli) && !cli->args.collector.config.n)
        return kiln_cli_usage(cli->command, "at least one config flag must be provided (say "
                                            "--config otelcol.yaml)");
    return cli->args.operands.n ? kiln_cli_run_verb(cli, verbs) : kiln_collector_run(cli);
}

static const char *const modes[] = {"redacted", "unredacted", NULL};
static const char *const formats[] = {"yaml", "json", NULL};

static const struct kiln_option options[] = {
    KILN_OPT("config", 0, KILN_OPT_LIST, collector.config, "FILE",
             "a file, or file:PATH, env:NAME, yaml:TEXT, https://...; several are merged in order"),
    KILN_OPT("set", 0, KILN_OPT_LIST, collector.sets, "KEY=VALUE",
             "change one value, at last: processors.batch.timeout=2s"),
    KILN_OPT("feature-gates", 0, KILN_OPT_LIST, collector.gates, "LIST",
             "taken for the sake of command lines that have it; profiles need no gate here"),
    KILN_OPT("memory-limit", 0, KILN_OPT_SIZE, collector.memory_limit, "SIZE",
             "memory for what is on its way; who sends more has to wait "
             "(256M, at most half of a control group's limit)"),
    KILN_OPT("ready-file", 0, KILN_OPT_TEXT, collector.ready_file, "FILE",
             "write ports and process id there, as JSON, once profiles are taken"),
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"The collector", options};

static const struct kiln_option print_options[] = {
    KILN_OPT_OF("mode", collector.mode, modes, "MODE", "redacted, or with secrets (redacted)"),
    KILN_OPT_OF("format", collector.format, formats, "FORMAT", "yaml or json (yaml)"),
    KILN_OPT_END,
};
static const struct kiln_option_group print_group = {"print-config", print_options};

const struct kiln_command kiln_cmd_collector = {
    .name = "collector",
    .summary = "run an OpenTelemetry Collector's file: receive, change, send",
    .operands = "[validate|components|print-config|featuregate]",
    .operands_min = 0,
    .operands_max = 2,
    .words = words,
    .about =
        "Runs the pipelines of profiles of an OpenTelemetry Collector's configuration; what of "
        "traces, metrics and logs goes from otlp receivers to otlp exporters is passed on as it "
        "is. Files, variables (`${env:NAME:-default}`), `--set` and the names of components are "
        "the Collector's; `docs/guide/collector.md` says what differs.\n"
        "\n"
        "`validate` reads the configuration, makes all that it names and starts nothing: it says "
        "nothing and leaves with 0, or names all faults with file and line and leaves with 1. "
        "`components` lists what can be named. `print-config` prints what is left when all sources "
        "are merged and all variables put in. `featuregate` lists gates that --feature-gates "
        "knows.\n"
        "\n"
        "SIGTERM and SIGINT end it in good order, for ten seconds at most: receivers first, then "
        "what is under way is sent; a second one ends it at once. SIGHUP reads the configuration "
        "again. Ports stay open meanwhile, and where the new one is at fault, the old one goes on. "
        "Metrics are at localhost:8888/metrics, unless `service::telemetry` says otherwise.",
    .groups = {&group, &print_group},
    .examples = {{"kiln collector --config examples/collector.yaml validate",
                  "whether a file is sound"},
                 {"kiln collector --config examples/collector.yaml", "run it"},
                 {"kiln collector --config examples/collector.yaml "
                  "--set service.telemetry.logs.level=debug",
                  "with one value changed"},
                 {"kiln collector components", "what it has"}},
    .run = run,
};

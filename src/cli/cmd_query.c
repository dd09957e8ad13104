/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/commands.h"
#include "cli/query.h"
#include "cli/remote.h"
#include "cli/report.h"

#define TIMEOUT_NS UINT64_C(60000000000)

/* What to show; each has its option. */
static uint32_t count_views(const struct kiln_args *args)
{
    return args->query.tree + args->query.series + args->query.lines + args->query.gap +
           args->query.labels + args->query.services + args->query.profiles + args->query.spans +
           args->query.types + args->query.deployments + (args->query.values != NULL) +
           args->query.diff;
}

static bool is_diff(const struct kiln_args *args)
{
    return args->query.diff || args->query.against || args->query.against_query ||
           args->query.against_version || args->query.against_deployment;
}

static int check(const struct kiln_cli *cli)
{
    const struct kiln_args *args = &cli->args;

    if (count_views(args) > 1)
        return kiln_cli_usage(cli->command, "one thing at a time: give one of --tree, --series, "
                                            "--diff, --labels, ... only");
    if (args->query.services && args->operands.n)
        return kiln_cli_usage(cli->command, "--services shows all services: give no selector");
    if (args->query.deployments && args->operands.n && strchr(args->operands.items[0], '{'))
        return kiln_cli_usage(cli->command, "--deployments wants the name of a service, "
                                            "not a selector");
    if (args->query.fail_above >= 0 && !args->query.functions.n)
        return kiln_cli_usage(cli->command, "--fail-above needs --function NAME");
    if (args->query.lines && args->query.functions.n != 1)
        return kiln_cli_usage(cli->command, "--lines needs one --function NAME");
    if (args->fail_on_growth >= 0 && !args->query.diff)
        return kiln_cli_usage(cli->command, "--fail-on-growth needs --diff, or something to "
                                            "compare --against");
    if ((args->query.version || args->query.deployment) && !args->query.diff)
        return kiln_cli_usage(cli->command, "--%s is for a comparison; else put it in the selector",
                              args->query.version ? "version" : "deployment");
    return KILN_EXIT_WELL;
}

static int show(struct kiln_cli *cli)
{
    const struct kiln_args *args = &cli->args;

    if (args->query.format || args->output)
        return kiln_query_file(cli);
    if (args->query.fail_above >= 0)
        return kiln_query_function(cli);
    if (args->query.diff)
        return kiln_query_diff(cli);
    if (args->query.tree)
        return kiln_query_tree(cli);
    if (args->query.series)
        return kiln_query_series(cli);
    if (args->query.lines)
        return kiln_query_lines(cli);
    if (args->query.gap)
        return kiln_query_gap(cli);
    if (args->query.values)
        return kiln_query_list(cli, KILN_LIST_VALUES);
    if (args->query.labels)
        return kiln_query_list(cli, KILN_LIST_LABELS);
    if (args->query.types)
        return kiln_query_list(cli, KILN_LIST_TYPES);
    if (args->query.services)
        return kiln_query_list(cli, KILN_LIST_SERVICES);
    if (args->query.profiles)
        return kiln_query_list(cli, KILN_LIST_PROFILES);
    if (args->query.spans)
        return kiln_query_list(cli, KILN_LIST_SPANS);
    if (args->query.deployments)
        return kiln_query_list(cli, KILN_LIST_DEPLOYMENTS);
    return kiln_query_top(cli);
}

static int run(struct kiln_cli *cli)
{
    int code;

    cli->args.query.diff = is_diff(&cli->args);
    code = check(cli);
    return code ? code : show(cli);
}

static const char *const orders[] = {"self", "total", NULL};

static const struct kiln_option view_options[] = {
    KILN_OPT("tree", 0, KILN_OPT_FLAG, query.tree, NULL, "the call tree, instead of the table"),
    KILN_OPT("series", 0, KILN_OPT_FLAG, query.series, NULL, "values over time"),
    KILN_OPT("lines", 0, KILN_OPT_FLAG, query.lines, NULL,
             "the lines of one --function, with their text where the server has it"),
    KILN_OPT("gap", 0, KILN_OPT_FLAG, query.gap, NULL,
             "what functions wait for: their time off processors, with what they call"),
    KILN_OPT("by", 0, KILN_OPT_LIST, query.by, "LABEL",
             "one series for each value of LABEL; may be given several times"),
    KILN_OPT("step", 0, KILN_OPT_TEXT, query.step, "TIME", "how long a bucket is: 15s"),
    KILN_OPT("services", 0, KILN_OPT_FLAG, query.services, NULL, "services, and what each takes"),
    KILN_OPT("types", 0, KILN_OPT_FLAG, query.types, NULL, "profile types"),
    KILN_OPT("labels", 0, KILN_OPT_FLAG, query.labels, NULL, "names of labels"),
    KILN_OPT("values", 0, KILN_OPT_TEXT, query.values, "LABEL", "values of a label"),
    KILN_OPT("profiles", 0, KILN_OPT_FLAG, query.profiles, NULL, "single profiles, newest first"),
    KILN_OPT("spans", 0, KILN_OPT_FLAG, query.spans, NULL, "spans that samples are linked to"),
    KILN_OPT("deployments", 0, KILN_OPT_FLAG, query.deployments, NULL,
             "when which version began to run; the operand is a service"),
    KILN_OPT("largest", 0, KILN_OPT_FLAG, query.largest, NULL,
             "profiles and spans with the largest values first"),
    KILN_OPT_LIMIT("show at most N rows, 0 for all (30)"),
    KILN_OPT_OF("sort", sort, orders, "BY",
                "look at what functions spend themselves, or with what they call: total (self; of "
                "--gap total)"),
    KILN_OPT("depth", 'd', KILN_OPT_COUNT, depth, "N", "of a tree: go down N calls at most"),
    KILN_OPT("min-share", 0, KILN_OPT_PERCENT, min_share, "PERCENT",
             "of a tree: leave out what is below PERCENT of the whole (1)"),
    KILN_OPT("nodes", 0, KILN_OPT_COUNT, nodes, "N", "of a tree: the most nodes"),
    KILN_OPT_WIDE,
    KILN_OPT_JSON,
    KILN_OPT_END,
};
static const struct kiln_option_group view_group = {"What to show", view_options};

static const struct kiln_option choice_options[] = {
    KILN_OPT("from", 0, KILN_OPT_TEXT, query.from, "TIME",
             "from this time on: now-1h, 2026-03-01T12:00, Unix time (now-1h)"),
    KILN_OPT("until", 0, KILN_OPT_TEXT, query.until, "TIME", "before this time (now)"),
    KILN_OPT("function", 'f', KILN_OPT_LIST, query.functions, "NAME",
             "only stacks with this function; may be given several times"),
    KILN_OPT("with", 0, KILN_OPT_TEXT, query.with, "REGEX",
             "only stacks with a function that matches"),
    KILN_OPT("without", 0, KILN_OPT_TEXT, query.without, "REGEX",
             "only stacks without a function that matches"),
    KILN_OPT("trace-id", 0, KILN_OPT_LIST, query.trace_ids, "HEX", "only samples of this trace"),
    KILN_OPT("span-id", 0, KILN_OPT_LIST, query.span_ids, "HEX", "only samples of this span"),
    KILN_OPT("profile-id", 0, KILN_OPT_LIST, query.profile_ids, "HEX", "only this profile"),
    KILN_OPT("exact", 0, KILN_OPT_FLAG, query.exact, NULL,
             "read every sample, never pruned roll-ups"),
    KILN_OPT_END,
};
static const struct kiln_option_group choice_group = {"Which samples", choice_options};

static const char *const normalizations[] = {"time", "total", "none", NULL};

static const struct kiln_option diff_options[] = {
    KILN_OPT("diff", 0, KILN_OPT_FLAG, query.diff, NULL,
             "compare with the same length of time right before"),
    KILN_OPT("against", 0, KILN_OPT_TEXT, query.against, "FROM..UNTIL",
             "compare with this time: now-2h..now-1h"),
    KILN_OPT("against-query", 0, KILN_OPT_TEXT, query.against_query, "SELECTOR",
             "compare with what this selector chooses besides"),
    KILN_OPT("against-version", 0, KILN_OPT_TEXT, query.against_version, "VERSION",
             "compare with this value of service.version"),
    KILN_OPT("against-deployment", 0, KILN_OPT_TEXT, query.against_deployment, "NAME",
             "compare with this deployment: its id, name or version"),
    KILN_OPT("version", 0, KILN_OPT_TEXT, query.version, "VERSION",
             "what is compared: this value of service.version"),
    KILN_OPT("deployment", 0, KILN_OPT_TEXT, query.deployment, "NAME",
             "what is compared: this deployment"),
    KILN_OPT_OF("normalize", normalize, normalizations, "BY",
                "compare over the same time, as shares of the total, or as they are: none (time)"),
    KILN_OPT_END,
};
static const struct kiln_option_group diff_group = {"Comparison", diff_options};

static const struct kiln_option check_options[] = {
    KILN_OPT("fail-above", 0, KILN_OPT_PERCENT, query.fail_above, "PERCENT",
             "exit with 1 if --function has more than PERCENT of the whole"),
    KILN_OPT("self", 0, KILN_OPT_FLAG, query.self, NULL,
             "of --fail-above: what the function spends itself"),
    KILN_OPT("fail-on-growth", 0, KILN_OPT_PERCENT, fail_on_growth, "PERCENT",
             "of a comparison: exit with 1 if the whole, or a function in percent of the whole, "
             "grew by more than PERCENT and noise does not explain it"),
    KILN_OPT_END,
};
static const struct kiln_option_group check_group = {"Thresholds", check_options};

static const struct kiln_option file_options[] = {
    {.name = "format",
     .kind = KILN_OPT_TEXT,
     .offset = offsetof(struct kiln_args, query.format),
     .value = "FORMAT",
     .choices = kiln_query_formats,
     .text = "the answer as a file: json, flamegraph, top, series, pprof, otlp, otlp-json, "
             "speedscope, collapsed, svg, dot"},
    KILN_OPT("output", 'o', KILN_OPT_TEXT, output, "FILE",
             "write FILE, in the format that its ending says"),
    KILN_OPT_END,
};
static const struct kiln_option_group file_group = {"Output", file_options};

const struct kiln_command kiln_cmd_query = {
    .name = "query",
    .summary = "ask a server: which function, since when, in which version",
    .operands = "[SELECTOR]",
    .operands_max = 1,
    .about =
        "Asks a Kiln server and shows the answer as a table of functions, a tree, values over "
        "time, a comparison, or a file.\n\n"
        "A selector is a profile type and labels, in the words of PromQL: "
        "`process_cpu:cpu:nanoseconds{service_name=\"shop\", pod=~\"a|b\", env!=\"test\"}`. Three "
        "parts of a type are enough, or one (`cpu`), where only one type fits; no type at all, "
        "where there is only one. `wall` is CPU time and waits together. "
        "Behind each share stands (±) how far chance may have moved it, at 95%.",
    .groups = {&view_group, &choice_group, &diff_group, &check_group, &file_group,
               &kiln_group_remote},
    .examples =
        {{"kiln query 'cpu{service_name=\"shop\"}' --from now-1h", "where CPU time goes"},
         {"kiln query 'cpu{service_name=\"shop\"}' --series --by host.name --step 1m",
          "by host, over time"},
         {"kiln query 'cpu{service_name=\"shop\"}' --version 1.2 --against-version 1.1",
          "what the new version costs"},
         {"kiln query 'cpu{service_name=\"shop\"}' -f encoding/json.Unmarshal --fail-above 50",
          "for CI: fail if a function takes more than half"},
         {"kiln query 'cpu{service_name=\"shop\"}' -o /tmp/shop.svg", "a flame graph"},
         {"kiln query '{service_name=\"shop\"}' --gap", "what it waits for"},
         {"kiln query --services", "what there is"}},
    .defaults = {.limit = 30,
                 .min_share = 1,
                 .fail_on_growth = -1,
                 .sort = KILN_QUERY_BY_USUAL,
                 .query = {.fail_above = -1},
                 .remote = {.timeout_ns = TIMEOUT_NS}},
    .run = run,
};

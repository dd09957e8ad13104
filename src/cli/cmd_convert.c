/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/output.h"

static int run(struct kiln_cli *cli)
{
    struct kiln_input input;
    enum kiln_format format;
    int code = kiln_output_format(cli, KILN_FORMAT_UNKNOWN, &format);

    if (code == 0)
        code = kiln_input_open(cli, cli->args.operands.items[0], &input);
    if (code)
        return code;
    code = kiln_output_batch(cli, input.batch, format);
    kiln_input_close(&input);
    return code;
}

const struct kiln_command kiln_cmd_convert = {
    .name = "convert",
    .summary = "write a profile in another format",
    .operands = "FILE",
    .operands_min = 1,
    .operands_max = 1,
    .about =
        "Reads FILE, whatever its format, and writes it in the format of --to, or the one that "
        "the ending of -o FILE names.\n"
        "\n"
        "otlp, otlp-json and pprof keep everything. The other formats hold one type of values; "
        "--sample-type says which. Selection options apply to those formats only.",
    .groups = {&kiln_group_output, &kiln_group_selection, &kiln_group_input},
    .examples = {{"kiln convert examples/checkout.pb.gz -o /tmp/checkout.otlp",
                  "pprof to OpenTelemetry, losing nothing"},
                 {"kiln convert examples/checkout.pb.gz --to collapsed",
                  "one line a stack, for other tools to read"},
                 {"gzip -dc examples/checkout.pb.gz | kiln convert - -o /tmp/c.speedscope.json",
                  "from a pipe, for speedscope.app"},
                 {"kiln convert --redact examples/redaction.yaml examples/checkout.pb.gz -o "
                  "/tmp/public.otlp",
                  "without what must not leave the house"}},
    .run = run,
};

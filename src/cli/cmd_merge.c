/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/output.h"

static int run(struct kiln_cli *cli)
{
    struct kiln_batch *batch;
    enum kiln_format format;
    int code = kiln_output_format(cli, KILN_FORMAT_UNKNOWN, &format);

    if (code == 0)
        code = kiln_input_merge(cli, 0, &batch);
    if (code)
        return code;
    code = kiln_output_batch(cli, batch, format);
    kiln_batch_unref(batch);
    return code;
}

static const struct kiln_option options[] = {
    KILN_OPT("combine-times", 0, KILN_OPT_FLAG, combine_times, NULL,
             "make one longer profile of profiles that start at different times"),
    KILN_OPT("keep-apart", 0, KILN_OPT_FLAG, keep_apart, NULL,
             "put all profiles into one file, but add none up"),
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Merging", options};

const struct kiln_command kiln_cmd_merge = {
    .name = "merge",
    .summary = "add several profiles up into one file",
    .operands = "FILE...",
    .operands_min = 1,
    .operands_max = KILN_OPERANDS_ANY,
    .about = "Writes one file that holds what all FILEs hold. They may be of different formats. "
             "Profiles of the same resource and type are added up.",
    .groups = {&group, &kiln_group_output, &kiln_group_selection, &kiln_group_input},
    .examples = {{"kiln merge examples/checkout.pb.gz examples/checkout-v2.pb.gz -o /tmp/both.otlp",
                  "two profiles in one file"}},
    .run = run,
};

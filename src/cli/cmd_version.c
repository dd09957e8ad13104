/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/build_info.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/report.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void put_json(struct kiln_buf *out)
{
    const char *const members[][2] = {
        {"version", KILN_VERSION},
        {"commit", kiln_build_commit},
        {"date", kiln_build_date},
        {"compiler", COMPILER},
    };
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 2);
    kiln_json_put_object(&w);
    for (size_t i = 0; i < KILN_ARRAY_LEN(members); i++) {
        kiln_json_put_name(&w, members[i][0]);
        kiln_json_put_str(&w, kiln_str_of(members[i][1]));
    }
    kiln_json_end_object(&w);
    kiln_buf_putc(out, '\n');
}

static int run(struct kiln_cli *cli)
{
    if (cli->args.json) {
        put_json(&cli->out);
        return KILN_EXIT_WELL;
    }
    kiln_buf_puts(&cli->out, "kiln " KILN_VERSION "\n");
    kiln_buf_printf(&cli->out, "commit    %s\n", kiln_build_commit);
    kiln_buf_printf(&cli->out, "date      %s\n", kiln_build_date);
    kiln_buf_puts(&cli->out, "compiler  " COMPILER "\n");
    return KILN_EXIT_WELL;
}

static const struct kiln_option options[] = {
    KILN_OPT_JSON,
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Output", options};

const struct kiln_command kiln_cmd_version = {
    .name = "version",
    .summary = "print the version",
    .operands = "",
    .about = "Prints the version of Kiln, the commit and its date, and the compiler. The date is "
             "that of the sources, not of the build, so that equal sources make equal programs.",
    .groups = {&group},
    .examples = {{"kiln version", "the version"}},
    .run = run,
};

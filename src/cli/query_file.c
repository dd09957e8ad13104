/* SPDX-License-Identifier: Apache-2.0 */
/* An answer as a file: what the server wrote goes to -o, or to standard output, byte by byte. */
#include "base/file.h"
#include "cli/query.h"
#include "cli/remote.h"

#define TARGET_MAX ((size_t)1 << 20)

const char *const kiln_query_formats[] = {
    "json",      "flamegraph", "top",       "series", "timeline", "pprof", "otlp",
    "otlp-json", "speedscope", "collapsed", "svg",    "dot",      NULL};

/* Names that end so are meant to be of this format. */
static const struct {
    const char *ending, *format;
} endings[] = {
    {".svg", "svg"},       {".pb.gz", "pprof"},         {".pprof", "pprof"},
    {".dot", "dot"},       {".otlp", "otlp"},           {".speedscope.json", "speedscope"},
    {".json", "json"},     {".collapsed", "collapsed"}, {".folded", "collapsed"},
    {".txt", "collapsed"},
};

static const char *format_of(const struct kiln_args *args)
{
    if (args->query.format)
        return args->query.format;
    for (size_t i = 0; args->output && i < KILN_ARRAY_LEN(endings); i++) {
        if (kiln_str_ends(kiln_str_of(args->output), kiln_str_of(endings[i].ending)))
            return endings[i].format;
    }
    return NULL;
}

static bool is_known(const char *format)
{
    for (uint32_t i = 0; kiln_query_formats[i]; i++) {
        if (strcmp(format, kiln_query_formats[i]) == 0)
            return true;
    }
    return false;
}

static bool suits_terminal(const char *format)
{
    return strcmp(format, "pprof") != 0 && strcmp(format, "otlp") != 0 &&
           strcmp(format, "svg") != 0;
}

static int deliver(struct kiln_cli *cli)
{
    const char *path = cli->args.output;
    struct kiln_err err = {0};
    int r;

    if (!path || strcmp(path, "-") == 0)
        return KILN_EXIT_WELL;
    r = kiln_file_write(path, kiln_buf_str(&cli->out), &err);
    kiln_buf_clear(&cli->out);
    return r < 0 ? kiln_cli_fail(path, &err) : KILN_EXIT_WELL;
}

static int put_target(const struct kiln_cli *cli, const char *format, struct kiln_buf *target)
{
    const struct kiln_list *by = &cli->args.query.by;
    int code = KILN_EXIT_WELL;

    if (cli->args.query.diff) {
        code = kiln_query_put_diff(cli, format, target);
    } else {
        kiln_buf_puts(target, "/api/v1/query");
        kiln_remote_put_param(target, "format", format);
        kiln_query_put_choice(cli, target);
        kiln_remote_put_param(target, "step", cli->args.query.step);
        for (uint32_t i = 0; i < by->n; i++)
            kiln_remote_put_param(target, "by", by->items[i]);
    }
    if (cli->args.nodes)
        kiln_remote_put_number(target, "nodes", cli->args.nodes);
    return code;
}

int kiln_query_file(struct kiln_cli *cli)
{
    const char *format = format_of(&cli->args);
    bool piped = cli->args.output || !cli->term.is_terminal;
    struct kiln_buf target;
    int code;

    if (!format)
        return kiln_cli_usage(cli->command,
                              "the ending of FILE says no format: give --format FORMAT");
    if (!is_known(format))
        return kiln_cli_usage(cli->command, "%.40s is no format of an answer", format);
    if (!suits_terminal(format) && !piped)
        return kiln_cli_usage(cli->command, "%s is not for a terminal: give -o FILE or a pipe",
                              format);
    kiln_buf_init(&target, TARGET_MAX);
    code = put_target(cli, format, &target);
    if (code == 0)
        code = kiln_query_ask_file(cli, &target, &cli->out);
    kiln_buf_done(&target);
    if (code)
        kiln_buf_clear(&cli->out);
    return code ? code : deliver(cli);
}

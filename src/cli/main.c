/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kiln [COMMAND [WORD]...]: finds the row of the command (none: all in one), reads its words, runs
 * it, writes what it had to say.  A command fills cli.out; only here it reaches standard output, so
 * that a failed command prints no half answer.  `kiln --names-child` and `--debuginfod-child` are
 * not for people: we start them to read names (symbol/resolver.h) and to fetch debug files
 * (naming/fetch.h).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/quantity.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/input.h"
#include "naming/fetch.h"
#include "symbol/resolver.h"

const struct kiln_command *const kiln_commands[] = {
    &kiln_cmd_live,       &kiln_cmd_record,     &kiln_cmd_run,
    &kiln_cmd_top,        &kiln_cmd_tree,       &kiln_cmd_list,
    &kiln_cmd_flamegraph, &kiln_cmd_graph,      &kiln_cmd_diff,
    &kiln_cmd_info,       &kiln_cmd_convert,    &kiln_cmd_merge,
    &kiln_cmd_check,      &kiln_cmd_server,     &kiln_cmd_agent,
    &kiln_cmd_collector,  &kiln_cmd_doctor,     &kiln_cmd_ready,
    &kiln_cmd_agents,     &kiln_cmd_boost,      &kiln_cmd_pause,
    &kiln_cmd_resume,     &kiln_cmd_config,     &kiln_cmd_push,
    &kiln_cmd_query,      &kiln_cmd_annotate,   &kiln_cmd_loadgen,
    &kiln_cmd_store,      &kiln_cmd_symbols,    &kiln_cmd_help,
    &kiln_cmd_version,    &kiln_cmd_completion, NULL,
};

static int no_such_command(const char *name)
{
    const char *names[KILN_ARRAY_LEN(kiln_commands)];
    uint32_t n = 0;
    const char *near;

    for (; kiln_commands[n]; n++)
        names[n] = kiln_commands[n]->name;
    near = kiln_nearest(name, names, n);
    if (near)
        return kiln_cli_usage(NULL, "%.40s: no such command (did you mean %s?)", name, near);
    return kiln_cli_usage(NULL, "%.40s: no such command", name);
}

static int flush(struct kiln_cli *cli)
{
    struct kiln_err err = {0};
    int r = cli->out.error;

    if (r < 0)
        kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
    else
        r = kiln_file_write("-", kiln_buf_str(&cli->out), &err);
    return r < 0 ? kiln_cli_fail("standard output", &err) : KILN_EXIT_WELL;
}

static int run(struct kiln_cli *cli, int argc, char **argv)
{
    struct kiln_err err = {0};
    int code = KILN_EXIT_WELL;
    int written;

    if (kiln_args_parse(cli->command, argc, argv, &cli->args, &err) < 0)
        return kiln_cli_usage(cli->command, "%s", err.text);
    cli->out.max = kiln_output_limit(cli);
    cli->term = kiln_term_of(STDOUT_FILENO, cli->args.color);
    if (cli->args.wide)
        cli->term.width = 0;
    if (cli->args.help)
        kiln_help_command(cli->command, &cli->term, &cli->out);
    else
        code = cli->command->run(cli);
    written = flush(cli);
    return code ? code : written;
}

/* `kiln --help`, `kiln -h`, `kiln --version` are commands in disguise. */
static const char *command_name(const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return "help";
    return strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 ? "version" : word;
}

/* A file that is opened later must not become one of the three; using them stays an error. */
static void reserve_standard_files(void)
{
    static const int modes[] = {O_WRONLY, O_RDONLY, O_RDONLY};

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) < 0)
            return;
}

int main(int argc, char **argv)
{
    struct kiln_cli cli = {.command = &kiln_cmd_server, .bare = argc < 2};
    int first = argc < 2 ? argc : 2; /* argument of the command */
    int code;

    reserve_standard_files();
    signal(SIGCHLD, SIG_DFL); /* where the parent ignores it, children could not be waited for */
    if (argc == 2 && strcmp(argv[1], "--names-child") == 0)
        _exit(kiln_resolver_child());
    if (argc > 2 && strcmp(argv[1], "--debuginfod-child") == 0)
        _exit(kiln_fetch_child(argc - 2, argv + 2));
    if (argc >= 2)
        cli.command = kiln_command_named(command_name(argv[1]));
    if (!cli.command && argv[1][0] == '-') { /* kiln --data-dir ... */
        cli.command = &kiln_cmd_server;
        cli.bare = true;
        first = 1;
    }
    if (!cli.command)
        return no_such_command(argv[1]);
    kiln_buf_init(&cli.out, 0);
    code = run(&cli, argc - first, argv + first);
    kiln_buf_done(&cli.out);
    kiln_args_done(&cli.args);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kiln run: sets the variables of libkiln and becomes the command, so that its process, signals and
 * exit status are those it would have had.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/preload.h"
#include "cli/report.h"

#define SOCKET_DEFAULT   "/run/kiln/kiln.sock" /* where a Kiln of this host listens */
#define ENDPOINT_DEFAULT "http://127.0.0.1:4318"
enum { PORT_DEFAULT = 4318 };

/* ---- where to ---- */

static bool somebody_listens(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool listens = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;

    if (fd >= 0)
        close(fd);
    return listens;
}

static bool has(const struct kiln_environment *env, const char *name)
{
    const char *value = kiln_environment_get(env, name);

    return value && *value;
}

/* Where nobody said where to: a Kiln on this host, else files here. */
static void choose_way(const struct kiln_cli *cli, struct kiln_environment *env)
{
    static const char *const said[] = {"OTEL_EXPORTER_OTLP_ENDPOINT",
                                       "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "KILN_SOCKET",
                                       "KILN_OUT_DIR", "KILN_PPROF_LISTEN"};
    const char *name = strrchr(cli->args.operands.items[0], '/');
    char folder[NAME_MAX];

    for (size_t i = 0; i < KILN_ARRAY_LEN(said); i++)
        if (has(env, said[i]))
            return;
    if (access(SOCKET_DEFAULT, W_OK) == 0) {
        kiln_environment_set(env, "KILN_SOCKET", SOCKET_DEFAULT);
    } else if (somebody_listens(PORT_DEFAULT)) {
        kiln_environment_set(env, "OTEL_EXPORTER_OTLP_ENDPOINT", ENDPOINT_DEFAULT);
    } else {
        snprintf(folder, sizeof(folder), "kiln-%.200s",
                 name ? name + 1 : cli->args.operands.items[0]);
        kiln_environment_set(env, "KILN_OUT_DIR", folder);
    }
}

/* The command may go to another folder before the first file is written. */
static void anchor_folder(struct kiln_environment *env)
{
    const char *folder = kiln_environment_get(env, "KILN_OUT_DIR");
    char here[PATH_MAX], whole[2 * PATH_MAX];

    if (!folder || !*folder || folder[0] == '/' || !getcwd(here, sizeof(here)))
        return;
    snprintf(whole, sizeof(whole), "%s/%.4000s", here, folder);
    kiln_environment_set(env, "KILN_OUT_DIR", whole);
}

/* The first that is set is where the library sends; files and pages come on top. */
static void say_ways(const struct kiln_environment *env, struct kiln_buf *line)
{
    static const struct {
        const char *variable, *text;
        bool sends;
    } ways[] = {
        {"OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "to %s", true},
        {"OTEL_EXPORTER_OTLP_ENDPOINT", "to %s", true},
        {"KILN_SOCKET", "to the Kiln at %s", true},
        {"KILN_OUT_DIR", "into files in %s", false},
        {"KILN_PPROF_LISTEN", "to whoever asks %s for /debug/pprof/", false},
    };
    bool sent = false;

    for (size_t i = 0; i < KILN_ARRAY_LEN(ways); i++) {
        if (!has(env, ways[i].variable) || (ways[i].sends && sent))
            continue;
        sent |= ways[i].sends;
        kiln_buf_puts(line, line->len ? ", " : "");
        kiln_buf_printf(line, ways[i].text, kiln_environment_get(env, ways[i].variable));
    }
}

static void say(const struct kiln_cli *cli, const struct kiln_program *program,
                const struct kiln_environment *env)
{
    const char *profiles = kiln_environment_get(env, "KILN_PROFILES");
    struct kiln_buf line;

    kiln_buf_init(&line, 4096);
    say_ways(env, &line);
    kiln_cli_note(cli->args.operands.items[0], "%s%s%.*s", profiles ? profiles : "profiles", " go ",
                  (int)line.len, line.len ? line.ptr : "");
    kiln_buf_done(&line);
    if (program->kind == KILN_PROGRAM_SHELL && !cli->args.preload.follow)
        kiln_cli_note(cli->args.operands.items[0],
                      "this is the shell alone: what it starts is profiled with --follow");
}

/* ---- running ---- */

/* For units of systemd, containers, and whoever wants to know: variables that differ from ours. */
static int show(struct kiln_cli *cli, const struct kiln_environment *env)
{
    struct kiln_environment before;

    kiln_environment_init(&before);
    for (uint32_t i = 0; i < env->n; i++) {
        struct kiln_str value = kiln_str_of(env->items[i]);
        struct kiln_str name = kiln_str_cut(&value, '=');
        char text[128];
        const char *old;

        snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(name));
        old = kiln_environment_get(&before, text);
        if (old && kiln_str_eq(kiln_str_of(old), value))
            continue;
        kiln_buf_printf(&cli->out, "%s=", text);
        kiln_cli_put_quoted(&cli->out, value.ptr);
        kiln_buf_putc(&cli->out, '\n');
    }
    kiln_environment_done(&before);
    return KILN_EXIT_WELL;
}

static int become(struct kiln_cli *cli, const struct kiln_environment *env)
{
    char *const *argv = (char *const *)cli->args.operands.items;
    struct kiln_err err = {0};

    execvpe(argv[0], argv, env->items);
    kiln_err_set(&err, errno == ENOENT ? -EINVAL : -errno, NULL, "cannot be run: %s",
                 kiln_err_text(-errno));
    return kiln_cli_fail(argv[0], &err);
}

static int run_run(struct kiln_cli *cli)
{
    struct kiln_environment env;
    struct kiln_program program;
    int code;

    kiln_environment_init(&env);
    code = kiln_preload_prepare(cli, &env, &program);
    if (code == KILN_EXIT_WELL) {
        choose_way(cli, &env);
        anchor_folder(&env);
        if (!cli->args.preload.quiet && !cli->args.preload.show && !program.sanitizer)
            say(cli, &program, &env);
        code = cli->args.preload.show ? show(cli, &env) : become(cli, &env);
    }
    kiln_environment_done(&env);
    return code;
}

static const struct kiln_option options[] = {
    KILN_OPT("follow", 'f', KILN_OPT_FLAG, preload.follow, NULL,
             "the children of the command too, and theirs"),
    KILN_OPT("show", 0, KILN_OPT_FLAG, preload.show, NULL,
             "print the variables that would be set, for a unit or a container, and run nothing"),
    KILN_OPT("quiet", 'q', KILN_OPT_FLAG, preload.quiet, NULL, "say only what goes wrong"),
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Running", options};

const struct kiln_command kiln_cmd_run = {
    .name = "run",
    .summary = "run a program that tells of its memory, locks and waits",
    .operands = "COMMAND [ARGUMENT]...",
    .operands_last = true,
    .operands_min = 1,
    .operands_max = KILN_OPERANDS_ANY,
    .about =
        "Runs COMMAND with `libkiln` in front of the C library, so that it tells what no profiler "
        "sees from outside: who allocates and what stays, which lock is waited for and who holds "
        "it, where threads wait, what held up an event loop, along with CPU time. The program "
        "needs no change and no debug information; anything that is linked with the C library "
        "can be run so: C, C++, Rust, Python, Node, Java.\n\n"
        "What is sampled goes where --endpoint, --socket, --out-dir or --pprof say; where none of "
        "them does, nor their variables, it goes to the Kiln on this host, and without one into "
        "files in the folder kiln-NAME.\n\n"
        "`kiln run` becomes the command: process, terminal, signals and exit status are its own. "
        "Children that it starts are not profiled, unless --follow is said.\n\n"
        "Node is told to write the addresses of its functions to /tmp/perf-PID.map and to give "
        "each interpreted function a frame (NODE_OPTIONS), Python from 3.12 on likewise "
        "(PYTHONPERFSUPPORT), so that stacks have the names of functions in JavaScript and "
        "Python. Programs that are static, setuid, of 32 bits or written in Go cannot be run so: "
        "then it says why, and what to do.",
    .groups = {&group, &kiln_group_profiles, &kiln_group_sends},
    .examples =
        {{"kiln run --out-dir /tmp/sorted -- sort README.md >/dev/null", "files"},
         {"kiln run --profiles alloc,heap -e http://127.0.0.1:4318 -- python3 -c 'print(1)'",
          "to a receiver of OTLP"},
         {"kiln run --show --pprof 127.0.0.1:6060 -- node", "what it would set"}},
    .run = run_run,
};

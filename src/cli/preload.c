/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An option that was said becomes the variable of its row; one that was not leaves the variable as
 * the user has it.
 */
#include "cli/preload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/preload_operators.h"

#define EXIT_MS "10000" /* somebody waits for the profiles of a program that ends */

/* ---- the library ---- */

/* From the folder of this program: build tree, then what `make install` and packages make. */
static const char *const places[] = {
    "libkiln.so.0",
    "../lib/libkiln.so.0",
    "../lib64/libkiln.so.0",
    "../lib/x86_64-linux-gnu/libkiln.so.0",
    "../lib/aarch64-linux-gnu/libkiln.so.0",
};

/* The folder without links; the name as it is: libkiln.so.0 outlives an update. */
static int absolute(const char *path, char ret_path[PATH_MAX], struct kiln_err *err)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX], real[PATH_MAX];
    int n;

    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    if (access(path, R_OK) < 0 || !realpath(folder[0] ? folder : "/", real))
        return kiln_err_set(err, -EINVAL, path, "%s", kiln_err_text(-errno));
    n = snprintf(ret_path, PATH_MAX, "%s/%s", real, slash ? slash + 1 : path);
    if (n >= PATH_MAX || strpbrk(ret_path, ": "))
        return kiln_err_set(err, -EINVAL, real,
                            "LD_PRELOAD cannot name a path with a colon or a space in it (install "
                            "the library elsewhere, or say --library)");
    return 0;
}

int kiln_preload_find(const char *said, char ret_path[PATH_MAX], struct kiln_err *err)
{
    char self[PATH_MAX], path[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    if (said)
        return absolute(said, ret_path, err);
    self[n > 0 ? n : 0] = '\0';
    slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; i < KILN_ARRAY_LEN(places); i++) {
        snprintf(path, sizeof(path), "%s/%s", self, places[i]);
        if (access(path, R_OK) == 0)
            return absolute(path, ret_path, err);
    }
    return kiln_err_set(err, -EINVAL, NULL,
                        "libkiln.so.0 is neither beside this program nor in the lib folder next to "
                        "it (say where with --library)");
}

/* ---- variables ---- */

enum row_kind { ROW_TEXT, ROW_COUNT, ROW_SIZE, ROW_MS, ROW_PERCENT, ROW_LIST, ROW_FLAG };

struct row {
    const char *variable;
    uint8_t kind; /* enum row_kind */
    size_t offset;
};
#define ROW(name, row_kind, field)                                                                 \
    {                                                                                              \
        .variable = (name), .kind = (row_kind),                                                    \
        .offset = offsetof(struct kiln_args, preload.field)                                        \
    }

static const struct row rows[] = {
    ROW("KILN_PROFILES", ROW_TEXT, profiles),
    ROW("KILN_CPU_HZ", ROW_COUNT, cpu_hz),
    ROW("KILN_ALLOC_BYTES", ROW_SIZE, alloc_bytes),
    ROW("KILN_MAX_STACK_DEPTH", ROW_COUNT, depth),
    ROW("KILN_CPU_WINDOW_MS", ROW_MS, cpu_window_ns),
    ROW("KILN_CPU_EVERY_MS", ROW_MS, cpu_every_ns),
    ROW("KILN_HEAP_EVERY_MS", ROW_MS, heap_every_ns),
    ROW("KILN_CPU_BACKOFF", ROW_PERCENT, backoff),
    ROW("KILN_EXPORT_INTERVAL_MS", ROW_MS, interval_ns),
    ROW("OTEL_SERVICE_NAME", ROW_TEXT, service),
    ROW("OTEL_RESOURCE_ATTRIBUTES", ROW_LIST, attributes),
    ROW("OTEL_EXPORTER_OTLP_ENDPOINT", ROW_TEXT, endpoint),
    ROW("OTEL_EXPORTER_OTLP_PROTOCOL", ROW_TEXT, protocol),
    ROW("OTEL_EXPORTER_OTLP_HEADERS", ROW_LIST, headers),
    ROW("KILN_SOCKET", ROW_TEXT, socket),
    ROW("KILN_OUT_DIR", ROW_TEXT, out_dir),
    ROW("KILN_PPROF_LISTEN", ROW_TEXT, pprof),
    ROW("KILN_FOLLOW", ROW_FLAG, follow),
};

static void set_list(struct kiln_environment *env, const char *name, const struct kiln_list *list)
{
    for (uint32_t i = list->n; i > 0; i--)
        kiln_environment_put_before(env, name, list->items[i - 1], ',');
}

static void set_percent(struct kiln_environment *env, const char *name, double percent)
{
    char text[32];

    snprintf(text, sizeof(text), "%g", percent);
    kiln_environment_set(env, name, text);
}

static void set_row(struct kiln_environment *env, const struct row *row, const void *at)
{
    switch ((enum row_kind)row->kind) {
    case ROW_TEXT:
        if (*(const char *const *)at)
            kiln_environment_set(env, row->variable, *(const char *const *)at);
        break;
    case ROW_COUNT:
        if (*(const uint32_t *)at)
            kiln_environment_set_u64(env, row->variable, *(const uint32_t *)at);
        break;
    case ROW_SIZE:
        if (*(const uint64_t *)at)
            kiln_environment_set_u64(env, row->variable, *(const uint64_t *)at);
        break;
    case ROW_MS:
        if (*(const uint64_t *)at)
            kiln_environment_set_u64(env, row->variable, *(const uint64_t *)at / KILN_NS_PER_MS);
        break;
    case ROW_PERCENT:
        if (*(const double *)at > 0)
            set_percent(env, row->variable, *(const double *)at);
        break;
    case ROW_LIST:
        set_list(env, row->variable, at);
        break;
    case ROW_FLAG:
        if (*(const bool *)at)
            kiln_environment_set(env, row->variable, "1");
        break;
    }
}

/*
 * Flags that V8 takes from NODE_OPTIONS: addresses of functions in /tmp/perf-PID.map, and a frame
 * of its own for each function that is interpreted.  Addresses of all else, which nobody needs,
 * would make it write a log into the working directory too.
 */
static void help_node(struct kiln_environment *env)
{
    static const struct {
        const char *flag, *said; /* what is enough */
    } flags[] = {
        {"--interpreted-frames-native-stack", "--interpreted-frames-native-stack"},
        {"--perf-basic-prof-only-functions", "--perf-basic-prof"},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(flags); i++) {
        const char *now = kiln_environment_get(env, "NODE_OPTIONS");

        if (!now || !strstr(now, flags[i].said))
            kiln_environment_put_before(env, "NODE_OPTIONS", flags[i].flag, ' ');
    }
}

static void set_variables(const struct kiln_cli *cli, const struct kiln_program *program,
                          const char *library, struct kiln_environment *env)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(rows); i++)
        set_row(env, &rows[i], (const char *)&cli->args + rows[i].offset);
    kiln_environment_put_before(env, "LD_PRELOAD", library, ':');
    if (!kiln_environment_get(env, "KILN_EXIT_MS"))
        kiln_environment_set(env, "KILN_EXIT_MS", EXIT_MS);
    if (program->kind == KILN_PROGRAM_NODE || cli->args.preload.follow)
        help_node(env);
    /* Versions before 3.12 do not know it, and do not mind. */
    if (program->kind == KILN_PROGRAM_PYTHON || cli->args.preload.follow)
        kiln_environment_set(env, "PYTHONPERFSUPPORT", "1");
}

/* As inproc/options.c has them. */
static int check_profiles(const struct kiln_cli *cli)
{
    static const char *const known[] = {"cpu",  "alloc", "heap",    "lock", "wall", "threads",
                                        "loop", "mmap",  "default", "all",  "none"};
    struct kiln_str rest =
        kiln_str_of(cli->args.preload.profiles ? cli->args.preload.profiles : "");

    while (rest.len) {
        struct kiln_str word = kiln_str_trim(kiln_str_cut(&rest, ','));
        bool is_known = word.len == 0;

        for (size_t i = 0; i < KILN_ARRAY_LEN(known); i++)
            is_known |= kiln_str_eq(word, kiln_str_of(known[i]));
        if (!is_known)
            return kiln_cli_usage(cli->command,
                                  "--profiles: \"%.*s\" is none of cpu, alloc, heap, lock, wall, "
                                  "threads, loop, mmap, all",
                                  KILN_STR_ARG(word));
    }
    return KILN_EXIT_WELL;
}

int kiln_preload_prepare(const struct kiln_cli *cli, struct kiln_environment *env,
                         struct kiln_program *ret_program)
{
    const char *command = cli->args.operands.items[0];
    struct kiln_program program;
    struct kiln_err err = {0};
    char library[PATH_MAX];
    int code = check_profiles(cli);

    if (code != KILN_EXIT_WELL)
        return code;
    if (kiln_program_look(command, &program, &err) < 0)
        return kiln_cli_fail(NULL, &err);
    if (program.bar != KILN_BAR_NONE) {
        kiln_err_set(&err, -EINVAL, NULL, "%s", kiln_program_why(program.bar));
        return kiln_cli_fail(command, &err);
    }
    if (program.sanitizer) {
        kiln_cli_note(command, "is built with a sanitizer, which wants to be the first library: it "
                               "runs as it is, without libkiln");
        *ret_program = program;
        return KILN_EXIT_WELL;
    }
    if (kiln_preload_find(cli->args.preload.library, library, &err) < 0)
        return kiln_cli_fail(NULL, &err);
    if (!cli->args.preload.library &&
        kiln_preload_has_operators(program.path, kiln_environment_get(env, "LD_PRELOAD")))
        kiln_preload_take_variant(library);
    set_variables(cli, &program, library, env);
    if (env->error)
        return kiln_cli_fail(NULL, &(struct kiln_err){.code = env->error});
    *ret_program = program;
    return KILN_EXIT_WELL;
}

/* ---- options ---- */

static const char *const protocols[] = {"grpc", "http/protobuf", NULL};

#define OPT_ALLOC_BYTES                                                                            \
    KILN_OPT("alloc-bytes", 0, KILN_OPT_SIZE, preload.alloc_bytes, "SIZE",                         \
             "one allocation is sampled of so many bytes, on average (512K)")
#define OPT_DEPTH                                                                                  \
    KILN_OPT("depth", 0, KILN_OPT_COUNT, preload.depth, "N", "frames of a stack at most (128)")
#define OPT_LIBRARY                                                                                \
    KILN_OPT("library", 0, KILN_OPT_TEXT, preload.library, "FILE",                                 \
             "the libkiln.so to preload (the one that belongs to this program)")

static const struct kiln_option profile_options[] = {
    KILN_OPT("profiles", 0, KILN_OPT_TEXT, preload.profiles, "LIST",
             "which, with commas between: cpu, alloc, heap, lock, wall, threads, loop; or all"),
    OPT_ALLOC_BYTES,
    KILN_OPT("cpu-hz", 0, KILN_OPT_COUNT, preload.cpu_hz, "N",
             "samples of a thread in a second of its CPU time (100)"),
    OPT_DEPTH,
    OPT_LIBRARY,
    KILN_OPT_END,
};
const struct kiln_option_group kiln_group_profiles = {"Profiles", profile_options};

static const struct kiln_option inside_options[] = {
    OPT_ALLOC_BYTES,
    OPT_DEPTH,
    OPT_LIBRARY,
    KILN_OPT_END,
};
const struct kiln_option_group kiln_group_inside = {"Looking from inside", inside_options};

static const struct kiln_option send_options[] = {
    KILN_OPT("endpoint", 'e', KILN_OPT_TEXT, preload.endpoint, "URL",
             "send OTLP there (OTEL_EXPORTER_OTLP_ENDPOINT)"),
    {.name = "protocol",
     .kind = KILN_OPT_TEXT,
     .offset = offsetof(struct kiln_args, preload.protocol),
     .value = "PROTOCOL",
     .choices = protocols,
     .text = "grpc or http/protobuf (grpc for port 4317, else http/protobuf)"},
    KILN_OPT("header", 0, KILN_OPT_LIST, preload.headers, "NAME=VALUE",
             "a header to send along; may be said several times"),
    KILN_OPT("socket", 0, KILN_OPT_TEXT, preload.socket, "PATH",
             "send to the Kiln that listens on this Unix socket (/run/kiln/kiln.sock)"),
    KILN_OPT("out-dir", 0, KILN_OPT_TEXT, preload.out_dir, "DIR",
             "write profiles into this folder, as pprof files"),
    KILN_OPT("pprof", 0, KILN_OPT_TEXT, preload.pprof, "ADDRESS",
             "serve /debug/pprof there: 127.0.0.1:6060"),
    KILN_OPT("interval", 'i', KILN_OPT_DURATION, preload.interval_ns, "TIME",
             "between two exports (15s)"),
    KILN_OPT("cpu-window", 0, KILN_OPT_DURATION, preload.cpu_window_ns, "TIME",
             "sample CPU time only in windows of this length (always)"),
    KILN_OPT("cpu-every", 0, KILN_OPT_DURATION, preload.cpu_every_ns, "TIME",
             "and begin one so often"),
    KILN_OPT("heap-every", 0, KILN_OPT_DURATION, preload.heap_every_ns, "TIME",
             "between two snapshots of the heap (as exports)"),
    KILN_OPT("backoff", 0, KILN_OPT_PERCENT, preload.backoff, "PERCENT",
             "no CPU time and waits while the process uses more than this of its processors"),
    KILN_OPT("service", 's', KILN_OPT_TEXT, preload.service, "NAME",
             "service.name (OTEL_SERVICE_NAME, else the program's name)"),
    KILN_OPT("attribute", 'A', KILN_OPT_LIST, preload.attributes, "NAME=VALUE",
             "of the resource: deployment.environment=test; may be said several times"),
    KILN_OPT_END,
};
const struct kiln_option_group kiln_group_sends = {"Sending", send_options};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kiln push: the files are pushed by several threads, each with a connection of its own, and
 * reported in their order at the end.  Where nobody listens, or the server turns us away, the first
 * failure ends the run: it would be the same for every file.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/when.h"
#include "cli/commands.h"
#include "cli/push.h"
#include "cli/report.h"
#include "cli/walk.h"

#define JOBS_MAX 64u

struct run {
    const struct kiln_cli *cli;
    struct kiln_operands paths;
    struct kiln_push_result *results;
    _Atomic uint32_t next, done;
    _Atomic bool stop;
    pthread_t threads[JOBS_MAX];
};

struct totals {
    uint32_t files[KILN_PUSH_OUTCOMES];
    uint64_t profiles, rejected, bytes, again;
    int exit_code;
};

/* ---- pushing ---- */

static void say(const char *path, const struct kiln_push_result *result)
{
    if (result->message[0])
        kiln_cli_note(path, "%s", result->message);
}

static void push_all(struct run *run, bool show)
{
    struct kiln_pusher pusher;
    struct kiln_err err = {0};
    uint32_t i;

    if (kiln_pusher_init(&pusher, run->cli, &err) < 0) {
        atomic_store(&run->stop, true); /* main() made one before: only memory can be lacking */
        kiln_pusher_done(&pusher);
        return;
    }
    while (!atomic_load(&run->stop) && (i = atomic_fetch_add(&run->next, 1)) < run->paths.n) {
        const struct kiln_path *path = &run->paths.items[i];

        kiln_push_file(&pusher, path->path, path->found, &run->results[i]);
        if (!run->results[i].final || !atomic_exchange(&run->stop, true))
            say(path->path, &run->results[i]);
        atomic_fetch_add(&run->done, 1);
        if (show)
            kiln_term_progress("pushing", atomic_load(&run->done), run->paths.n);
    }
    kiln_pusher_done(&pusher);
}

static void *push_thread(void *context)
{
    push_all(context, false);
    return NULL;
}

static void push_files(struct run *run)
{
    uint32_t jobs = run->cli->args.push.jobs, n = 0;

    jobs = jobs > JOBS_MAX ? JOBS_MAX : jobs;
    jobs = jobs > run->paths.n ? run->paths.n : jobs;
    for (; n + 1 < jobs; n++)
        if (pthread_create(&run->threads[n], NULL, push_thread, run) != 0)
            break;
    push_all(run, !run->cli->args.push.quiet);
    for (uint32_t i = 0; i < n; i++)
        pthread_join(run->threads[i], NULL);
    kiln_term_progress("pushing", run->paths.n, run->paths.n);
}

/* ---- the account ---- */

static const char *const outcome_names[] = {
#define X(suffix, name, text) name,
    KILN_PUSH_OUTCOME_MAP(X)
#undef X
};
static const char *const outcome_texts[] = {
#define X(suffix, name, text) text,
    KILN_PUSH_OUTCOME_MAP(X)
#undef X
};
static const char *const time_names[] = {
#define X(suffix, name, text) name,
    KILN_PUSH_TIME_MAP(X)
#undef X
};
static const char *const time_texts[] = {
#define X(suffix, name, text) text,
    KILN_PUSH_TIME_MAP(X)
#undef X
};

static struct totals add_up(const struct run *run)
{
    struct totals totals = {0};

    for (uint32_t i = 0; i < run->paths.n; i++) {
        const struct kiln_push_result *r = &run->results[i];

        totals.files[r->outcome]++;
        totals.again += r->again;
        if (r->outcome == KILN_PUSH_TAKEN || run->cli->args.push.dry_run) {
            totals.profiles += r->profiles - r->rejected;
            totals.rejected += r->rejected;
            totals.bytes += r->bytes;
        }
        if (r->exit_code > totals.exit_code)
            totals.exit_code = r->exit_code;
    }
    return totals;
}

static bool was_read(const struct kiln_push_result *r)
{
    return r->profiles > 0 && r->exit_code == 0;
}

static void print_file(struct kiln_buf *out, const char *path, const struct kiln_push_result *r)
{
    kiln_cli_put_safe(out, kiln_str_of(kiln_cli_file_name(path)));
    kiln_buf_puts(out, ": ");
    kiln_report_count(out, r->profiles, "profile");
    kiln_buf_puts(out, " of ");
    kiln_cli_put_safe(out, kiln_str_of(r->service[0] ? r->service : "an unknown service"));
    kiln_buf_puts(out, ", ");
    kiln_when_format(r->time_ns, out);
    kiln_buf_printf(out, " (%s)\n", time_texts[r->time_by]);
}

static void print_skipped(struct kiln_buf *out, const char *path)
{
    kiln_cli_put_safe(out, kiln_str_of(path));
    kiln_buf_puts(out, ": skipped: it is the metadata of the profile beside it\n");
}

static void print_account(const struct run *run, const struct totals *totals, struct kiln_buf *out)
{
    bool dry = run->cli->args.push.dry_run;

    kiln_report_count(out, dry ? totals->files[KILN_PUSH_WAITING] : totals->files[KILN_PUSH_TAKEN],
                      "file");
    if (dry)
        kiln_buf_puts(out, " would go to ");
    else
        kiln_buf_puts(out, " acknowledged by ");
    kiln_cli_put_safe(out, kiln_str_of(kiln_remote_address(run->cli)));
    kiln_buf_puts(out, ": ");
    kiln_report_count(out, (double)totals->profiles, "profile");
    if (totals->bytes) {
        kiln_buf_puts(out, ", ");
        kiln_report_number(out, (double)totals->bytes, KILN_STR("bytes"));
    }
    if (totals->rejected)
        kiln_buf_printf(out, ", %llu rejected", (unsigned long long)totals->rejected);
    for (uint32_t i = KILN_PUSH_SKIPPED; i < KILN_PUSH_OUTCOMES; i++)
        if (totals->files[i])
            kiln_buf_printf(out, ", %u %s", totals->files[i], outcome_texts[i]);
    if (totals->files[KILN_PUSH_WAITING] && !dry)
        kiln_buf_printf(out, ", %u not sent", totals->files[KILN_PUSH_WAITING]);
    if (totals->again)
        kiln_buf_printf(out, ", %llu tries again", (unsigned long long)totals->again);
    kiln_buf_putc(out, '\n');
}

static void print(const struct run *run, const struct totals *totals, struct kiln_buf *out)
{
    for (uint32_t i = 0; i < run->paths.n; i++) {
        const struct kiln_path *path = &run->paths.items[i];

        if (was_read(&run->results[i]))
            print_file(out, path->path, &run->results[i]);
        else if (run->results[i].outcome == KILN_PUSH_SKIPPED && !path->found)
            print_skipped(out, path->path);
    }
    print_account(run, totals, out);
}

static void put_file(struct kiln_json_out *w, const char *path, const struct kiln_push_result *r)
{
    kiln_json_put_object(w);
    kiln_json_put_name(w, "path");
    kiln_json_put_str(w, kiln_str_of(path));
    kiln_json_put_name(w, "outcome");
    kiln_json_put_str(w, kiln_str_of(outcome_names[r->outcome]));
    kiln_json_put_name(w, "profiles");
    kiln_json_put_u64(w, r->profiles);
    kiln_json_put_name(w, "rejected");
    kiln_json_put_u64(w, r->rejected);
    kiln_json_put_name(w, "bytes");
    kiln_json_put_u64(w, r->bytes);
    if (r->time_ns) {
        kiln_json_put_name(w, "service");
        kiln_json_put_str(w, kiln_str_of(r->service));
        kiln_json_put_name(w, "time");
        kiln_json_put_raw_begin(w);
        kiln_when_format(r->time_ns, w->buf);
        kiln_json_put_raw_end(w);
        kiln_json_put_name(w, "time_from");
        kiln_json_put_str(w, kiln_str_of(time_names[r->time_by]));
    }
    if (r->message[0]) {
        kiln_json_put_name(w, "message");
        kiln_json_put_str(w, kiln_str_of(r->message));
    }
    kiln_json_end_object(w);
}

static void put_json(const struct run *run, const struct totals *totals, struct kiln_buf *out)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 2);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "server");
    kiln_json_put_str(&w, kiln_str_of(kiln_remote_address(run->cli)));
    kiln_json_put_name(&w, "files");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < run->paths.n; i++)
        put_file(&w, run->paths.items[i].path, &run->results[i]);
    kiln_json_end_array(&w);
    for (uint32_t i = 0; i < KILN_PUSH_OUTCOMES; i++) {
        kiln_json_put_name(&w, outcome_names[i]);
        kiln_json_put_u64(&w, totals->files[i]);
    }
    kiln_json_put_name(&w, "profiles");
    kiln_json_put_u64(&w, totals->profiles);
    kiln_json_put_name(&w, "rejected");
    kiln_json_put_u64(&w, totals->rejected);
    kiln_json_put_name(&w, "tried_again");
    kiln_json_put_u64(&w, totals->again);
    kiln_json_end_object(&w);
    kiln_buf_putc(out, '\n');
}

/* ---- the command ---- */

static int check_options(const struct kiln_cli *cli)
{
    const struct kiln_args *args = &cli->args;
    struct kiln_pusher pusher;
    struct kiln_err err = {0};
    uint64_t ns;
    int r;

    for (uint32_t i = 0; i < args->labels.n; i++)
        if (!strchr(args->labels.items[i], '=') || args->labels.items[i][0] == '=')
            return kiln_cli_usage(cli->command, "--label: \"%.40s\" is no label (say region=eu)",
                                  args->labels.items[i]);
    if (args->labels.n > KILN_SIDECAR_LABELS_MAX)
        return kiln_cli_usage(cli->command, "more than %d labels", KILN_SIDECAR_LABELS_MAX);
    if (args->push.time &&
        kiln_when_parse(kiln_str_of(args->push.time), kiln_clock_unix_ns(), &ns) < 0)
        return kiln_cli_usage(cli->command,
                              "--time: \"%.40s\" is no time (say 2026-03-01T12:00:00Z, -1h)",
                              args->push.time);
    r = kiln_pusher_init(&pusher, cli, &err);
    kiln_pusher_done(&pusher);
    return r < 0 ? kiln_cli_fail(NULL, &err) : KILN_EXIT_WELL;
}

/* The files, or an exit code. */
static int find_files(struct run *run)
{
    const struct kiln_list *operands = &run->cli->args.operands;
    struct kiln_err err = {0};
    int r = 0;

    for (uint32_t i = 0; i < operands->n && r == 0; i++)
        r = kiln_operands_add(&run->paths, operands->items[i], &err);
    if (r == 0) {
        run->results = kiln_calloc(run->paths.n + 1, sizeof(*run->results));
        if (!run->results)
            r = kiln_err_set(&err, -ENOMEM, NULL, "out of memory");
    }
    return r < 0 ? kiln_cli_fail(NULL, &err) : KILN_EXIT_WELL;
}

static int run_push(struct kiln_cli *cli)
{
    struct run run = {.cli = cli};
    struct totals totals;
    int code = check_options(cli);

    if (code)
        return code;
    kiln_operands_init(&run.paths);
    code = find_files(&run);
    if (code == 0) {
        push_files(&run);
        totals = add_up(&run);
        code = totals.exit_code;
        if (cli->args.json)
            put_json(&run, &totals, &cli->out);
        else if (!cli->args.push.quiet)
            print(&run, &totals, &cli->out);
    }
    kiln_free(run.results);
    kiln_operands_done(&run.paths);
    return code;
}

static const struct kiln_option options[] = {
    KILN_OPT("service", 0, KILN_OPT_TEXT, push.service, "NAME", "the service they are of"),
    KILN_OPT("label", 'l', KILN_OPT_LIST, labels, "KEY=VALUE",
             "an attribute of the resource they are of"),
    KILN_OPT("time", 0, KILN_OPT_TEXT, push.time, "TIME",
             "when they began: 2026-03-01T12:00:00Z, -1h, Unix time; timestamps move along"),
    KILN_OPT("jobs", 'j', KILN_OPT_COUNT, push.jobs, "N", "push so many files at a time (4)"),
    KILN_OPT("retry", 0, KILN_OPT_DURATION, push.retry_ns, "TIME",
             "go on trying a file for so long where the server allows it (30s)"),
    KILN_OPT("dry-run", 0, KILN_OPT_FLAG, push.dry_run, NULL,
             "read the files and say what would be sent, but send nothing"),
    KILN_OPT("quiet", 'q', KILN_OPT_FLAG, push.quiet, NULL, "say only what goes wrong"),
    KILN_OPT_JSON,
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Pushing", options};

const struct kiln_command kiln_cmd_push = {
    .name = "push",
    .summary = "send profiles to a server",
    .operands = "FILE|DIR...",
    .operands_min = 1,
    .operands_max = KILN_OPERANDS_ANY,
    .about =
        "Sends every FILE, and every profile in every DIR, to the server: as OTLP over HTTP, "
        "whatever their format, so that the server may be any that takes OpenTelemetry "
        "profiles. Pushing a file twice does no harm: Kiln keeps it once.\n"
        "\n"
        "What is known about cpu-17.pb.gz may stand beside it in cpu-17.json: `service`, `labels`, "
        "`time`, `duration`, `version`, `env`, `commit`; any other text or number becomes a label. "
        "Options count more than that. A file that is a profile itself is pushed as one, "
        "whatever its name.\n"
        "\n"
        "The time of a profile is that of --time, of the metadata, its own, that of the file's "
        "name "
        "(cpu-20260301T120000Z.pb.gz, cpu-1772366400123.pb.gz), or when the file was changed, "
        "whichever is there first; the report says which.",
    .groups = {&group, &kiln_group_remote, &kiln_group_input},
    .examples = {{"kiln push --dry-run --service checkout examples/checkout.pb.gz",
                  "what would be sent"},
                 {"kiln push --dry-run --service checkout -l version=2 --time -1h "
                  "examples/checkout-v2.pb.gz",
                  "another version, an hour ago"}},
    .defaults = {.push = {.jobs = 4, .retry_ns = 30 * KILN_NS_PER_S}},
    .run = run_push,
};

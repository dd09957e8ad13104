/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kiln record: the command is forked and held, the profiler starts with its process in the filter,
 * the command is let go; then signals, ends of processes and the time are waited for.  What the
 * profiler delivers is kept on a tape and written at the end.
 */
#include <errno.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/host_settings.h"
#include "cli/output.h"
#include "cli/preload.h"
#include "cli/record.h"
#include "cli/record_inside.h"
#include "cli/report.h"
#include "cli/tape.h"

enum {
    /* Primes: in step with nothing that happens every 10 ms or every second. */
    HZ = 97,
    COMMAND_HZ = 499, /* of a command, which may be short */
    TICK_MS = 250,    /* of the progress line */
};

/* For lines and inlines, of every second's samples: what is recorded is not asked about again. */
#define NAMES_WAIT_NS (2 * KILN_NS_PER_S)

struct run {
    struct kiln_cli *cli;
    struct kiln_recording rec;
    struct kiln_host_plan plan;
    struct kiln_tape tape;
    struct kiln_host *host;
    struct kiln_log *log; /* what goes wrong on the way: standard error */
    enum kiln_format format;
    char path[128];      /* of the file, where nobody said one */
    uint32_t command[1]; /* its pid, as a filter has it */
    struct pollfd *fds;  /* signals, then processes whose end ends the recording */
    uint32_t n_fds;
    bool shows; /* the progress line */
};

/* ---- what is asked for ---- */

static const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

/* A name for files, of whatever was said: others' names may hold anything. */
static void set_name(struct kiln_recording *rec, struct kiln_str name)
{
    size_t n = 0;

    for (size_t i = 0; i < name.len && n + 1 < sizeof(rec->name); i++) {
        char c = name.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '.' || c == '_' || c == '-';

        rec->name[n++] = plain ? c : '_';
    }
    rec->name[n] = '\0';
}

static void name_process(struct kiln_recording *rec, uint32_t pid)
{
    struct kiln_buf comm;
    char path[40];

    snprintf(path, sizeof(path), "/proc/%u/comm", pid);
    kiln_buf_init(&comm, 64);
    if (kiln_file_read(path, &comm, NULL) == 0)
        set_name(rec, kiln_str_trim(kiln_buf_str(&comm)));
    kiln_buf_done(&comm);
}

static void name_it(struct run *run)
{
    const struct kiln_host_filter *filter = &run->plan.filter;
    const struct kiln_list *command = &run->cli->args.operands;

    set_name(&run->rec, KILN_STR("host"));
    if (command->n)
        set_name(&run->rec, kiln_str_of(path_base(command->items[0])));
    else if (!filter->exclude && filter->n_pids == 1)
        name_process(&run->rec, filter->pids[0]);
    else if (!filter->exclude && filter->n_cgroups == 1)
        set_name(&run->rec, kiln_str_of(path_base(filter->cgroups[0])));
    else if (!filter->exclude && filter->n_comms == 1)
        set_name(&run->rec, kiln_str_of(filter->comms[0]));
}

static int check_whom(const struct run *run)
{
    const struct kiln_cli *cli = run->cli;
    const struct kiln_host_filter *filter = &run->plan.filter;
    bool some = filter->n_pids || filter->n_cgroups || filter->n_comms;

    if (cli->args.operands.n && (some || cli->args.record.all))
        return kiln_cli_usage(cli->command, "record a command, or what runs already: not both");
    if (cli->args.record.all && some && !filter->exclude)
        return kiln_cli_usage(cli->command, "-a is everybody: leave out -p, --cgroup and --comm");
    if (!cli->args.operands.n && !cli->args.record.all && !some)
        return kiln_cli_usage(cli->command,
                              "record what? (-p PID, --cgroup PATH, -a for the whole host, or "
                              "-- COMMAND)");
    if (cli->args.record.user && !cli->args.operands.n)
        return kiln_cli_usage(cli->command, "--user is for a command that is started");
    return KILN_EXIT_WELL;
}

/* kiln-xz-20260301T120000Z.pb.gz: `kiln push` reads the time out of it. */
static void choose_path(struct run *run)
{
    time_t now = (time_t)(kiln_clock_unix_ns() / KILN_NS_PER_S);
    char when[32] = "";
    struct tm tm;

    if (gmtime_r(&now, &tm))
        strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
    snprintf(run->path, sizeof(run->path), "kiln-%s-%s.pb.gz", run->rec.name, when);
    if (!run->cli->args.output)
        run->cli->args.output = run->path;
    run->rec.path = run->cli->args.output;
}

/* Better now than when the recording is made. */
static int check_path(const char *path)
{
    char folder[PATH_MAX];
    struct kiln_err err = {0};
    struct stat st;

    snprintf(folder, sizeof(folder), "%s", path);
    if (strcmp(path, "-") == 0)
        return KILN_EXIT_WELL;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        errno = EISDIR;
    else if (access(path, W_OK) == 0 || (errno == ENOENT && access(dirname(folder), W_OK) == 0))
        return KILN_EXIT_WELL;
    kiln_err_set(&err, -errno, NULL, "cannot be written: %s", kiln_err_text(-errno));
    return kiln_cli_fail(path, &err);
}

static int check(struct run *run)
{
    struct kiln_cli *cli = run->cli;
    struct kiln_err err = {0};
    int code;

    if (kiln_host_plan_make(&cli->args.server.host, &run->plan, &err) < 0)
        return err.code == -EINVAL ? kiln_cli_usage(cli->command, "%s", err.text)
                                   : kiln_cli_fail(NULL, &err);
    code = check_whom(run);
    if (code)
        return code;
    name_it(run);
    choose_path(run);
    if (cli->args.json && strcmp(run->rec.path, "-") == 0)
        return kiln_cli_usage(cli->command, "--json needs -o FILE: both go to standard output");
    code = kiln_output_format(cli, KILN_FORMAT_PPROF, &run->format);
    return code ? code : check_path(run->rec.path);
}

/* ---- beginning ---- */

static void block_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGINT);
    sigaddset(ret_set, SIGTERM);
    sigaddset(ret_set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, ret_set, NULL);
}

static int watch_signals(struct run *run, const sigset_t *set, struct kiln_err *err)
{
    run->fds[0] = (struct pollfd){signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK), POLLIN, 0};
    run->n_fds = 1;
    return run->fds[0].fd < 0 ? kiln_err_set(err, -errno, NULL, "%s", kiln_err_text(-errno)) : 0;
}

/* The ends of processes: of the command, or of all that -p names. */
static int watch_processes(struct run *run, struct kiln_err *err)
{
    const struct kiln_host_filter *filter = &run->plan.filter;

    if (run->rec.launch.pid) {
        run->fds[run->n_fds++] = (struct pollfd){run->rec.launch.pidfd, POLLIN, 0};
        return 0;
    }
    for (uint32_t i = 0; !filter->exclude && i < filter->n_pids; i++) {
        int fd = (int)syscall(SYS_pidfd_open, filter->pids[i], 0);

        if (fd < 0 && errno == ESRCH)
            return kiln_err_set(err, -EINVAL, NULL, "there is no process %u", filter->pids[i]);
        if (fd < 0)
            return kiln_err_set(err, -errno, NULL, "process %u cannot be watched: %s",
                                filter->pids[i], kiln_err_text(-errno));
        run->fds[run->n_fds++] = (struct pollfd){fd, POLLIN, 0};
    }
    return 0;
}

static int hold_command(struct run *run, struct kiln_err *err)
{
    const struct kiln_list *command = &run->cli->args.operands;
    int r;

    if (!command->n)
        return 0;
    r = kiln_launch_hold(&run->rec.launch, (char *const *)command->items, NULL,
                         run->cli->args.record.user, err);
    if (r < 0)
        return r;
    run->command[0] = (uint32_t)run->rec.launch.pid;
    run->plan.filter = (struct kiln_host_filter){.pids = run->command, .n_pids = 1};
    run->plan.opts.filter = &run->plan.filter;
    return 0;
}

static int begin(struct run *run, struct kiln_err *err)
{
    struct kiln_host_opts *opts = &run->plan.opts;
    sigset_t set;
    int r;

    run->fds = kiln_calloc(run->plan.filter.n_pids + 2, sizeof(*run->fds));
    if (!run->fds || kiln_log_new(STDERR_FILENO, KILN_LOG_WARN, kiln_cli_log_form(), &run->log) < 0)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    block_signals(&set);
    r = hold_command(run, err);
    if (r == 0)
        r = watch_signals(run, &set, err);
    if (r == 0)
        r = watch_processes(run, err);
    if (r < 0)
        return r;
    if (!opts->hz)
        opts->hz = run->rec.launch.pid ? COMMAND_HZ : HZ;
    opts->every_ns = opts->every_ns ? opts->every_ns : KILN_NS_PER_S;
    opts->names_wait_ns = NAMES_WAIT_NS;
    opts->cpu_budget = 0; /* it is short, and wanted in full */
    opts->off_cpu = run->cli->args.record.off_cpu || run->cli->args.record.wall;
    opts->waits_only = run->cli->args.record.off_cpu && !run->cli->args.record.wall;
    opts->consumer = &run->tape.consumer;
    opts->log = run->log;
    run->rec.hz = opts->hz;
    r = kiln_host_start(opts, &run->host, err);
    if (r == 0 && run->rec.launch.pid)
        r = kiln_launch_go(&run->rec.launch, err);
    run->rec.began_ns = kiln_clock_mono_ns();
    return r;
}

/* ---- until it is over ---- */

/* A signal that a terminal sends goes to the command by itself. */
static void pass_on(struct run *run)
{
    struct signalfd_siginfo info;

    if (read(run->fds[0].fd, &info, sizeof(info)) == sizeof(info) && run->rec.launch.pid &&
        info.ssi_code != SI_KERNEL && !kiln_launch_ended(&run->rec.launch))
        kill(run->rec.launch.pid, (int)info.ssi_signo);
}

static bool all_gone(struct run *run)
{
    uint32_t gone = 0;

    for (uint32_t i = 1; i < run->n_fds; i++)
        gone += (run->fds[i].revents & POLLIN) != 0;
    return run->n_fds > 1 && gone == run->n_fds - 1;
}

/* Those that are gone would make every wait short. */
static void forget_gone(struct run *run)
{
    uint32_t n = 1;

    for (uint32_t i = 1; i < run->n_fds; i++) {
        if (run->fds[i].revents & POLLIN)
            close(run->fds[i].fd);
        else
            run->fds[n++] = run->fds[i];
    }
    run->n_fds = n;
}

/* Waits; true: it is over. */
static bool wait_a_bit(struct run *run, int ms)
{
    if (poll(run->fds, run->n_fds, ms) <= 0)
        return false;
    if (run->fds[0].revents & POLLIN) {
        run->rec.end = KILN_RECORD_SIGNAL;
        pass_on(run);
        return true;
    }
    if (all_gone(run)) {
        run->rec.end = run->rec.launch.pid ? KILN_RECORD_COMMAND : KILN_RECORD_GONE;
        return true;
    }
    forget_gone(run);
    return false;
}

static void wait_for_end(struct run *run)
{
    uint64_t length = run->cli->args.record.duration_ns;
    uint64_t until = length ? run->rec.began_ns + length : UINT64_MAX;
    uint64_t now = kiln_clock_mono_ns();

    run->rec.end = KILN_RECORD_TIME;
    while (now < until) {
        uint64_t left_ms = (until - now + KILN_NS_PER_MS - 1) / KILN_NS_PER_MS;

        if (wait_a_bit(run, left_ms < TICK_MS ? (int)left_ms : TICK_MS))
            break;
        now = kiln_clock_mono_ns();
        if (run->shows) {
            kiln_host_status(run->host, &run->rec.status);
            kiln_record_progress(&run->rec, now);
        }
    }
    run->rec.ended_ns = kiln_clock_mono_ns();
    if (run->shows)
        kiln_record_progress(&run->rec, 0);
}

/* The command is told that time is over, and waited for; a second signal leaves it alone. */
static void end_command(struct run *run)
{
    struct kiln_launch *launch = &run->rec.launch;

    if (!launch->pid || kiln_launch_ended(launch))
        return;
    if (run->rec.end == KILN_RECORD_TIME)
        kill(launch->pid, SIGTERM);
    kiln_cli_note(NULL, "recorded; waiting for %s to end (Ctrl-C leaves it alone)", launch->name);
    run->fds[1] = (struct pollfd){launch->pidfd, POLLIN, 0};
    while (poll(run->fds, 2, -1) < 0 && errno == EINTR)
        ;
    kiln_launch_ended(launch);
}

/* ---- what came of it ---- */

static int nothing(const struct run *run)
{
    struct kiln_err err = {0};
    struct kiln_buf end;

    kiln_buf_init(&end, 256);
    if (run->rec.launch.pid)
        kiln_launch_describe(&run->rec.launch, &end);
    if (run->rec.status.samples)
        kiln_err_set(&err, -EIO, NULL, "no profile could be made of the samples that were taken");
    kiln_err_set(&err, -ENODATA, NULL,
                 "no samples, nothing is written: %s used no processor for long enough to be seen"
                 "%s%.*s (record longer, or with a higher -F)",
                 run->rec.name, end.len ? ", and " : "", (int)end.len, end.len ? end.ptr : "");
    kiln_buf_done(&end);
    return kiln_cli_fail(NULL, &err);
}

static int write_it(struct run *run)
{
    struct kiln_batch *batch = NULL;
    struct kiln_err err = {0};
    int code, r = kiln_tape_take(&run->tape, &batch, &err);

    run->rec.batches_lost = run->tape.lost;
    if (r == 0 && batch)
        r = kiln_record_processes(batch, &run->rec.processes);
    if (r < 0)
        kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
    if (r < 0)
        code = kiln_cli_fail(NULL, &err);
    else
        code = batch ? kiln_output_batch(run->cli, batch, run->format) : nothing(run);
    kiln_batch_unref(batch);
    return code;
}

static void say(struct run *run)
{
    struct kiln_buf text;

    if (run->cli->args.json) {
        kiln_record_summary_json(&run->rec, &run->cli->out);
        return;
    }
    if (run->cli->args.record.quiet)
        return;
    kiln_buf_init(&text, 64 << 10);
    kiln_record_summary(&run->rec, &text);
    if (kiln_fd_write(STDERR_FILENO, kiln_buf_str(&text)) < 0)
        errno = 0; /* nobody reads it */
    kiln_buf_done(&text);
}

static int record(struct run *run)
{
    struct kiln_err err = {0};
    int code;
    int r = begin(run, &err);

    if (r == 0)
        wait_for_end(run);
    if (run->host) {
        kiln_host_finish(run->host);
        kiln_host_status(run->host, &run->rec.status);
        kiln_host_stop(run->host);
    }
    if (r < 0)
        return kiln_cli_fail(NULL, &err);
    end_command(run);
    code = write_it(run);
    if (code == KILN_EXIT_WELL)
        say(run);
    return code;
}

static void done(struct run *run)
{
    for (uint32_t i = 0; i < run->n_fds; i++)
        if (run->fds[i].fd != run->rec.launch.pidfd || !run->rec.launch.pid)
            close(run->fds[i].fd);
    kiln_free(run->fds);
    kiln_launch_done(&run->rec.launch);
    kiln_tape_done(&run->tape);
    kiln_host_plan_done(&run->plan);
    kiln_log_free(run->log);
}

static int run_record(struct kiln_cli *cli)
{
    struct run run = {.cli = cli};
    int code;

    kiln_tape_init(&run.tape);
    /* What a command prints must not be torn. */
    run.shows = isatty(STDERR_FILENO) && !cli->args.record.quiet &&
                !(cli->args.operands.n && isatty(STDOUT_FILENO));
    code = check(&run);
    if (code == KILN_EXIT_WELL)
        code = kiln_record_is_inside(cli) ? kiln_record_inside(cli, &run.rec, run.format)
                                          : record(&run);
    done(&run);
    return code;
}

static const struct kiln_option options[] = {
    KILN_OPT("all", 'a', KILN_OPT_FLAG, record.all, NULL, "every process of the host"),
    KILN_OPT("duration", 'd', KILN_OPT_DURATION, record.duration_ns, "TIME",
             "for so long: 10s, 2m (until Ctrl-C, or the end of the command or process)"),
    KILN_OPT("off-cpu", 0, KILN_OPT_FLAG, record.off_cpu, NULL,
             "where threads wait, and for what, in place of what the processors do"),
    KILN_OPT("wall", 0, KILN_OPT_FLAG, record.wall, NULL,
             "both: what the processors do, and where threads wait"),
    KILN_OPT("alloc", 0, KILN_OPT_FLAG, record.alloc, NULL,
             "what COMMAND allocates, from inside: libkiln is put in front of it"),
    KILN_OPT("heap", 0, KILN_OPT_FLAG, record.heap, NULL,
             "the same for what of it is still in use when the recording ends"),
    KILN_OPT("lock", 0, KILN_OPT_FLAG, record.lock, NULL,
             "the same for waits for locks, and who held them"),
    KILN_OPT("follow", 'f', KILN_OPT_FLAG, preload.follow, NULL,
             "with these three: the children of COMMAND too"),
    KILN_OPT("user", 'u', KILN_OPT_TEXT, record.user, "USER",
             "run the command as this user (whoever you are: root, through sudo)"),
    KILN_OPT(
        "output", 'o', KILN_OPT_TEXT, output, "FILE",
        "write FILE, in the format of its ending; - is standard output (kiln-NAME-TIME.pb.gz)"),
    KILN_OPT("to", 0, KILN_OPT_WRITES, to, "FORMAT",
             "write FORMAT, whatever the ending of FILE (pprof)"),
    KILN_OPT("title", 0, KILN_OPT_TEXT, title, "TEXT", "what a drawing says at its top"),
    KILN_OPT("quiet", 'q', KILN_OPT_FLAG, record.quiet, NULL, "say only what goes wrong"),
    KILN_OPT("json", 0, KILN_OPT_FLAG, json, NULL,
             "print the summary as JSON, in one line, as the last of standard output"),
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Recording", options};

const struct kiln_command kiln_cmd_record = {
    .name = "record",
    .summary = "profile a command, a process or the whole host into a file",
    .operands = "[COMMAND [ARGUMENT]...]",
    .operands_last = true,
    .operands_min = 0,
    .operands_max = KILN_OPERANDS_ANY,
    .about =
        "Samples what the processors do, and writes one profile: of COMMAND and its children from "
        "the first instruction on, of a process that runs (-p), of a control group, or of the "
        "whole host (-a). Options stand before COMMAND; a -- between them does no harm. Programs "
        "need neither frame pointers nor debug information nor a "
        "restart; the names of functions are found on this host.\n\n"
        "It samples COMMAND 499 times a second on each processor, and what runs already 97 times, "
        "where the profiler that always runs takes 19: a recording is short, and a thousand "
        "samples show what takes a percent. All are primes, so that work that is done every 10 ms, "
        "or every second, is not "
        "met in the same place each time.\n\n"
        "COMMAND has your terminal and your environment; it runs as you, which through sudo is "
        "root, unless --user says who. The recording ends with it, with Ctrl-C, which the command "
        "gets too, or after --duration, when the command is asked to end (SIGTERM). The exit "
        "status is that of the recording; the summary says how the command ended.\n\n"
        "--alloc, --heap and --lock look from inside, as `kiln run` does, and then at nothing "
        "else: any program that is linked with the C library, without a change, and without a "
        "privilege. Several of them go into one file.\n\n"
        "All else needs root, or the capabilities CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE, and a "
        "kernel "
        "from 6.1 on with BTF.",
    .groups = {&group, &kiln_group_whom, &kiln_group_sampling, &kiln_group_inside},
    .examples =
        {{"kiln record -o /tmp/xz.pb.gz -- xz -k9c build/kiln >/dev/null", "one program"},
         {"kiln record -d 10s -a -o /tmp/host.svg", "the whole host, as a flame graph"},
         {"kiln record -d 10s -p 4711 -F 499", "a process that runs, in more detail"},
         {"kiln record --alloc --alloc-bytes 4K -o /tmp/a.svg -- kiln info examples/checkout.pb.gz",
          "what a program allocates"}},
    .defaults = {.silent_losses = true},
    .run = run_record,
};

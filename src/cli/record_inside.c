/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library writes a file every two seconds into a folder of ours, and a last one when the
 * program ends; they are taken out as they come.  A program that is killed leaves what it had
 * written until then.  Most are ended by what asks them to end: the library holds such a signal up,
 * Ctrl-C among them, while it writes what it has.  Before we send one it is switched off by its
 * file, which it looks for once a second, in the command's children as well.
 */
#include "cli/record_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/harvest.h"
#include "cli/output.h"
#include "cli/preload.h"
#include "cli/report.h"
#include "naming/here.h"

enum { EXPORT_MS = 2000, SIGNAL_MS = 5000, TICK_MS = 500, END_TICK_MS = 50, SAMPLES_RATE = 2000 };
#define LINES_NS  (20 * KILN_NS_PER_S)
#define SETTLE_NS (4 * KILN_NS_PER_S)       /* that the library has after it was switched off */
#define LAST_NS   (KILN_NS_PER_S / 5)       /* that the last of its files are apart */
#define CHILD_NS  (KILN_NS_PER_S + LAST_NS) /* and those of children, who look when they do */
#define OFF_FILE  "/run/kiln/off"           /* the operator's */

struct inside {
    struct kiln_cli *cli;
    struct kiln_recording *rec;
    struct kiln_environment env;
    struct kiln_harvest harvest;
    int signals;
    char off[KILN_HARVEST_FOLDER + 8]; /* the file that switches the library off; "": none */
    int end;                           /* the signal that ends the command; 0: not yet */
    uint32_t files;                    /* that had come when it was switched off */
    uint64_t until;                    /* when something has to be done */
};

static uint32_t wanted_of(const struct kiln_cli *cli)
{
    return (cli->args.record.alloc ? KILN_HARVEST_ALLOC : 0) |
           (cli->args.record.heap ? KILN_HARVEST_HEAP : 0) |
           (cli->args.record.lock ? KILN_HARVEST_LOCK : 0);
}

bool kiln_record_is_inside(const struct kiln_cli *cli)
{
    return wanted_of(cli) != 0;
}

/* ---- beginning ---- */

/* Unless somebody has a file for it already: who that is knows why. */
static void choose_off(struct inside *in)
{
    if (kiln_environment_get(&in->env, "KILN_OFF_FILE") || access(OFF_FILE, F_OK) == 0)
        return;
    snprintf(in->off, sizeof(in->off), "%s/off", in->harvest.folder);
    kiln_environment_set(&in->env, "KILN_OFF_FILE", in->off);
}

/* Nothing but files, whatever the user's variables say. */
static void set_variables(struct inside *in)
{
    static const char *const elsewhere[] = {
        "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "KILN_PPROF_LISTEN"};
    uint32_t wanted = in->harvest.wanted;
    char profiles[32] = "";

    for (size_t i = 0; i < KILN_ARRAY_LEN(elsewhere); i++)
        kiln_environment_set(&in->env, elsewhere[i], NULL);
    snprintf(profiles, sizeof(profiles), "%s%s%s", wanted & KILN_HARVEST_ALLOC ? ",alloc" : "",
             wanted & KILN_HARVEST_HEAP ? ",heap" : "", wanted & KILN_HARVEST_LOCK ? ",lock" : "");
    kiln_environment_set(&in->env, "KILN_PROFILES", profiles + 1);
    kiln_environment_set(&in->env, "KILN_SOCKET", "off");
    choose_off(in);
    kiln_environment_set(&in->env, "KILN_OUT_DIR", in->harvest.folder);
    kiln_environment_set_u64(&in->env, "KILN_EXPORT_INTERVAL_MS", EXPORT_MS);
    kiln_environment_set_u64(&in->env, "KILN_SIGNAL_MS", SIGNAL_MS);
    /* Whoever says how close to look wants that; else more than a service that always runs has. */
    kiln_environment_set_u64(&in->env, "KILN_ALLOC_RATE",
                             in->cli->args.preload.alloc_bytes ? 0 : SAMPLES_RATE);
}

static int watch_signals(struct inside *in, struct kiln_err *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    in->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return in->signals < 0 ? kiln_err_set(err, -errno, NULL, "%s", kiln_err_text(-errno)) : 0;
}

static int begin(struct inside *in, struct kiln_err *err)
{
    struct kiln_launch *launch = &in->rec->launch;
    int r = watch_signals(in, err);

    if (r == 0)
        r = kiln_launch_hold(launch, (char *const *)in->cli->args.operands.items, in->env.items,
                             in->cli->args.record.user, err);
    /* Whoever the command runs as writes there. */
    if (r == 0 && in->cli->args.record.user && chmod(in->harvest.folder, 01777) < 0)
        r = kiln_err_set(err, -errno, in->harvest.folder, "%s", kiln_err_text(-errno));
    if (r == 0)
        r = kiln_launch_go(launch, err);
    in->rec->began_ns = kiln_clock_mono_ns();
    return r;
}

/* ---- until it is over ---- */

/* The command is sent a signal when the library has written what it has. */
static void begin_to_end(struct inside *in, int sig, enum kiln_record_end why)
{
    int fd = in->off[0] ? open(in->off, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1;

    in->rec->end = why;
    in->end = sig;
    in->files = in->harvest.files;
    in->until = kiln_clock_mono_ns() + (fd < 0 ? 0 : SETTLE_NS);
    if (fd >= 0)
        close(fd);
}

/* A signal of the terminal reaches the command by itself; who sends another is in a hurry. */
static void pass_on(struct inside *in)
{
    struct signalfd_siginfo info;

    if (read(in->signals, &info, sizeof(info)) != sizeof(info))
        return;
    if (info.ssi_code == SI_KERNEL)
        in->rec->end = KILN_RECORD_SIGNAL;
    else if (in->end)
        kill(in->rec->launch.pid, (int)info.ssi_signo);
    else
        begin_to_end(in, (int)info.ssi_signo, KILN_RECORD_SIGNAL);
}

/* --duration is over, or the time that the library had. */
static void time_is_up(struct inside *in)
{
    if (!in->end) {
        begin_to_end(in, SIGTERM, KILN_RECORD_TIME);
        return;
    }
    kill(in->rec->launch.pid, in->end);
    in->until = UINT64_MAX;
}

/* Of its last files one has come: others follow soon. */
static void hurry(struct inside *in)
{
    if (!in->end || in->until == UINT64_MAX || in->harvest.files == in->files)
        return;
    in->files = in->harvest.files;
    in->until = kiln_clock_mono_ns() + (in->cli->args.preload.follow ? CHILD_NS : LAST_NS);
}

/* Children that a key has ended, like the command, may write after it what they have. */
static int wait_for_children(struct inside *in, struct kiln_err *err)
{
    uint64_t until = kiln_clock_mono_ns() + CHILD_NS;
    int r = kiln_harvest_gather(&in->harvest, err);

    if (!in->cli->args.preload.follow || in->rec->end != KILN_RECORD_SIGNAL)
        return r;
    while (r == 0 && kiln_clock_mono_ns() < until) {
        (void)poll(NULL, 0, END_TICK_MS);
        r = kiln_harvest_gather(&in->harvest, err);
    }
    return r;
}

/* After --duration the command is asked to end, and waited for. */
static int wait_for_end(struct inside *in, struct kiln_err *err)
{
    struct kiln_recording *rec = in->rec;
    struct pollfd fds[] = {{in->signals, POLLIN, 0}, {rec->launch.pidfd, POLLIN, 0}};
    uint64_t length = in->cli->args.record.duration_ns;
    int r = 0;

    in->until = length ? rec->began_ns + length : UINT64_MAX;
    rec->end = KILN_RECORD_COMMAND;
    while (r == 0 && !kiln_launch_ended(&rec->launch)) {
        (void)poll(fds, KILN_ARRAY_LEN(fds), in->end ? END_TICK_MS : TICK_MS);
        if (fds[0].revents & POLLIN)
            pass_on(in);
        if (kiln_clock_mono_ns() >= in->until)
            time_is_up(in);
        r = kiln_harvest_gather(&in->harvest, err);
        hurry(in);
    }
    rec->ended_ns = kiln_clock_mono_ns();
    return r < 0 ? r : wait_for_children(in, err);
}

/* ---- what came of it ---- */

/* Sizes or times, each with the type that counts them. */
static const struct {
    const char *type, *text; /* of counts: what one is */
} totals[] = {
    {"alloc_space", "allocated"}, {"alloc_objects", "object"}, {"inuse_space", "in use at the end"},
    {"inuse_objects", "object"},  {"delay", "waited for"},     {"contentions", "time"},
};

/* A wait is told twice: by who waited, and by who made him wait. */
static bool is_holder(const struct kiln_batch *batch, const struct kiln_sample *sample)
{
    const struct kiln_attr *role = kiln_set_find(batch, sample->attrs, KILN_STR("kiln.lock.role"));

    return role && role->value.kind == KILN_VALUE_STRING &&
           kiln_str_eq(batch->dict.strings[role->value.str], KILN_STR("holder"));
}

static bool total_of(const struct kiln_batch *batch, const char *type, int64_t *ret_total,
                     struct kiln_str *ret_unit)
{
    bool is_there = false;

    *ret_total = 0;
    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        const struct kiln_profile *p = &batch->profiles[i];

        if (!kiln_str_eq(batch->dict.strings[p->sample_type.type], kiln_str_of(type)))
            continue;
        is_there = true;
        *ret_unit = batch->dict.strings[p->sample_type.unit];
        for (uint32_t j = p->first_sample; j < p->first_sample + p->n_samples; j++)
            if (!is_holder(batch, &batch->samples[j]))
                *ret_total += kiln_sample_total(batch, &batch->samples[j]);
    }
    return is_there;
}

static void put_totals(const struct kiln_batch *batch, struct kiln_buf *out)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(totals); i += 2) {
        struct kiln_str unit;
        int64_t value, count;

        if (!total_of(batch, totals[i].type, &value, &unit))
            continue;
        kiln_buf_puts(out, "  ");
        kiln_report_number(out, (double)value, unit);
        kiln_buf_printf(out, " %s", totals[i].text);
        if (total_of(batch, totals[i + 1].type, &count, &unit)) {
            kiln_buf_puts(out, ", ");
            kiln_report_count(out, (double)count, totals[i + 1].text);
        }
        kiln_buf_putc(out, '\n');
    }
}

/* Of locks, who held them: those who wait are as many again. */
static const char *select_of(uint32_t wanted)
{
    if (wanted == KILN_HARVEST_LOCK)
        return "-t delay -l kiln.lock.role=holder";
    return wanted & KILN_HARVEST_ALLOC ? "-t alloc_space" : "-t inuse_space";
}

static void say(struct inside *in, const struct kiln_batch *batch)
{
    struct kiln_recording *rec = in->rec;
    struct kiln_buf text;

    if (in->cli->args.record.quiet)
        return;
    kiln_buf_init(&text, 64 << 10);
    kiln_buf_printf(&text, "recorded %s for %.1f s, from inside\n", rec->name,
                    (double)(rec->ended_ns - rec->began_ns) / (double)KILN_NS_PER_S);
    put_totals(batch, &text);
    if (in->harvest.lost)
        kiln_buf_printf(&text,
                        "  %" PRIu64 " samples found no room and are missing (--alloc-bytes: more "
                        "bytes, fewer samples)\n",
                        in->harvest.lost);
    rec->select = select_of(in->harvest.wanted);
    kiln_record_put_end(rec, &text);
    if (kiln_fd_write(STDERR_FILENO, kiln_buf_str(&text)) < 0)
        errno = 0; /* nobody reads it */
    kiln_buf_done(&text);
}

static void say_json(struct inside *in, const struct kiln_batch *batch)
{
    struct kiln_recording *rec = in->rec;
    struct kiln_json_out w;

    kiln_json_out_init(&w, &in->cli->out, 0);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "recorded");
    kiln_json_put_str(&w, kiln_str_of(rec->name));
    kiln_json_put_name(&w, "seconds");
    kiln_json_put_double(&w, (double)(rec->ended_ns - rec->began_ns) / (double)KILN_NS_PER_S);
    for (size_t i = 0; i < KILN_ARRAY_LEN(totals); i++) {
        struct kiln_str unit;
        int64_t value;

        if (!total_of(batch, totals[i].type, &value, &unit))
            continue;
        kiln_json_put_name(&w, totals[i].type);
        kiln_json_put_i64(&w, value);
    }
    kiln_json_put_name(&w, "lost");
    kiln_json_put_u64(&w, in->harvest.lost);
    kiln_record_put_end_json(rec, &w);
    kiln_json_end_object(&w);
    kiln_buf_putc(&in->cli->out, '\n');
}

static int nothing(const struct inside *in)
{
    struct kiln_err err = {0};
    struct kiln_buf end;

    kiln_buf_init(&end, 256);
    kiln_launch_describe(&in->rec->launch, &end);
    kiln_err_set(&err, -ENODATA, NULL,
                 "no samples, nothing is written: %s had nothing of it, or ended before it told, "
                 "and %.*s (smaller --alloc-bytes, or --follow for its children)",
                 in->rec->name, (int)end.len, end.len ? end.ptr : "");
    kiln_buf_done(&end);
    return kiln_cli_fail(NULL, &err);
}

/* A drawing has one type: bytes or time, which cost, rather than how often. */
static void choose_type(struct inside *in, enum kiln_format format)
{
    uint32_t wanted = in->harvest.wanted;

    if (kiln_format_info(format)->reads && format != KILN_FORMAT_COLLAPSED)
        return;
    in->cli->args.sample_type = wanted & KILN_HARVEST_ALLOC  ? "alloc_space"
                                : wanted & KILN_HARVEST_HEAP ? "inuse_space"
                                                             : "delay";
}

static int write_it(struct inside *in, enum kiln_format format)
{
    struct kiln_batch *batch = NULL;
    struct kiln_err err = {0};
    int code, r = kiln_harvest_take(&in->harvest, &batch, &err);

    if (r == 0 && batch)
        r = kiln_name_here(&batch, LINES_NS, &err);
    if (r < 0) {
        kiln_batch_unref(batch);
        return kiln_cli_fail(NULL, &err);
    }
    if (!batch)
        return nothing(in);
    choose_type(in, format);
    code = kiln_output_batch(in->cli, batch, format);
    if (code == KILN_EXIT_WELL && in->cli->args.json)
        say_json(in, batch);
    else if (code == KILN_EXIT_WELL)
        say(in, batch);
    kiln_batch_unref(batch);
    return code;
}

static int record(struct inside *in, enum kiln_format format)
{
    struct kiln_err err = {0};
    int r = begin(in, &err);

    if (r == 0)
        r = wait_for_end(in, &err);
    return r < 0 ? kiln_cli_fail(NULL, &err) : write_it(in, format);
}

int kiln_record_inside(struct kiln_cli *cli, struct kiln_recording *rec, enum kiln_format format)
{
    struct inside in = {.cli = cli, .rec = rec, .signals = -1};
    struct kiln_program program;
    struct kiln_err err = {0};
    int code;

    if (!cli->args.operands.n)
        return kiln_cli_usage(cli->command, "--alloc, --heap and --lock are for a command that is "
                                            "started (-- COMMAND)");
    if (cli->args.record.off_cpu || cli->args.record.wall)
        return kiln_cli_usage(cli->command, "look from inside (--alloc, --heap, --lock) or from "
                                            "outside (--off-cpu, --wall): not both");
    kiln_environment_init(&in.env);
    code = kiln_preload_prepare(cli, &in.env, &program);
    if (code == KILN_EXIT_WELL && kiln_harvest_open(&in.harvest, cli, wanted_of(cli), &err) < 0)
        code = kiln_cli_fail(NULL, &err);
    if (code == KILN_EXIT_WELL) {
        set_variables(&in);
        code = record(&in, format);
    }
    kiln_harvest_close(&in.harvest);
    kiln_environment_done(&in.env);
    if (in.signals >= 0)
        close(in.signals);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kiln live: a source puts batches into an inbox, the window keeps the last minutes of them, and
 * the page is drawn again when a second has passed, a key was pressed or the terminal changed its
 * size.
 *
 * The clock of the window stands still while the page is paused, so that what is looked at does not
 * grow old.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/host_settings.h"
#include "cli/live_source.h"
#include "cli/remote.h"
#include "cli/report.h"
#include "cli/screen.h"

#define MEMORY_BYTES   ((size_t)128 << 20)
#define ONCE_NS        (5 * KILN_NS_PER_S)
#define SERVER_SPAN_NS (60 * KILN_NS_PER_S) /* agents send as often */
#define INTERVAL_MIN   (50 * KILN_NS_PER_MS)

enum { ESCAPE_MS = 50, KEYS_MAX = 64 };

struct live {
    struct kiln_cli *cli;
    struct kiln_live_inbox inbox;
    struct kiln_live_source *source;
    struct kiln_live_window window;
    struct kiln_live_page page;
    struct kiln_screen screen;
    struct kiln_log *log;
    int log_pipe[2];
    int signals;
    uint64_t last_ns;               /* when the last batch came, by the window's clock */
    uint64_t began_ns;              /* of the trend's second */
    uint64_t cpu_ns;                /* used in it */
    uint64_t paused_ns, stopped_ns; /* of all pauses; when this one began, 0: none */
    bool leaves;                    /* a signal said so */
};

static uint64_t now(const struct live *live)
{
    return (live->stopped_ns ? live->stopped_ns : kiln_clock_mono_ns()) - live->paused_ns;
}

/* ---- what comes ---- */

static void note(struct live *live, const char *text)
{
    snprintf(live->page.facts.notice, sizeof(live->page.facts.notice), "%s", text);
}

static uint64_t cpu_of(const struct kiln_live_slice *slice)
{
    uint64_t ns = 0;

    for (uint32_t i = 0; i < slice->n_samples; i++)
        ns += slice->samples[i].kind == KILN_LIVE_CPU && slice->samples[i].n ? slice->samples[i].ns
                                                                             : 0;
    return ns;
}

/* Numbers of the book, which was emptied, mean nothing any more. */
static void forget_numbers(struct kiln_live_page *page)
{
    page->process = page->service = page->through = KILN_LIVE_NONE;
    page->open = KILN_LIVE_LIST;
    page->n_trail = page->n_stack = 0;
    page->refocused = true;
}

static void push_trend(struct kiln_live_page *page, double value)
{
    if (page->n_trend == KILN_LIVE_TREND)
        memmove(page->trend, page->trend + 1, --page->n_trend * sizeof(*page->trend));
    page->trend[page->n_trend++] = value;
}

/* What a server answered stands for all the time that its profiles cover, and for nothing else. */
static void take_answer(struct live *live, const struct kiln_batch *batch)
{
    uint64_t covered_ns = 0, at = now(live);

    for (uint32_t i = 0; i < batch->n_profiles; i++)
        if (batch->profiles[i].duration_ns > covered_ns)
            covered_ns = batch->profiles[i].duration_ns;
    live->window.began_ns = covered_ns < at ? at - covered_ns : 0;
    if (covered_ns)
        push_trend(&live->page, (double)live->cpu_ns / (double)covered_ns);
    live->cpu_ns = 0;
}

static void take_batches(struct live *live)
{
    struct kiln_live_window *window = &live->window;
    uint64_t forgotten = window->forgotten;
    struct kiln_batch *batch;

    while ((batch = kiln_live_inbox_take(&live->inbox)) != NULL) {
        if (live->source->ops->remote)
            kiln_live_window_forget(window);
        if (kiln_live_window_add(window, batch, now(live)) < 0)
            note(live, "there is no memory for all that happens: some of it is not shown");
        else
            live->cpu_ns += cpu_of(kiln_live_window_at(window, window->n - 1));
        live->last_ns = now(live);
        if (live->source->ops->remote)
            take_answer(live, batch);
        kiln_batch_unref(batch);
    }
    if (window->forgotten != forgotten)
        forget_numbers(&live->page);
}

static void add_trend(struct live *live)
{
    uint64_t at = now(live), passed = at - live->began_ns;

    if (passed < KILN_NS_PER_S * 9 / 10 || live->source->ops->remote)
        return;
    push_trend(&live->page, (double)live->cpu_ns / (double)passed);
    live->began_ns = at;
    live->cpu_ns = 0;
}

/* What the profiler has to say is one line at the foot of the page. */
static void read_log(struct live *live)
{
    char text[1024];
    ssize_t n = read(live->log_pipe[0], text, sizeof(text) - 1);
    char *message;

    if (n <= 0)
        return;
    text[n] = '\0';
    message = strstr(text, "msg=");
    if (message)
        note(live, message + 4);
}

/* Batches come a while after what they are about: until the next one nothing more is known. */
static uint64_t known_until(const struct live *live)
{
    uint64_t at = now(live);

    if (live->page.remote)
        return live->last_ns;
    return at - live->last_ns < 2 * live->cli->args.live.interval_ns ? live->last_ns : at;
}

/* ---- beginning ---- */

static int make_log(struct live *live)
{
    if (pipe2(live->log_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        return -errno;
    return kiln_log_new(live->log_pipe[1], KILN_LOG_WARN, KILN_LOG_LOGFMT, &live->log);
}

static int open_source(struct live *live, struct kiln_log *log, struct kiln_err *err)
{
    struct kiln_cli *cli = live->cli;
    int r;

    if (cli->args.remote.server)
        r = kiln_live_server_open(cli, &live->inbox, &live->source, err);
    else
        r = kiln_live_host_open(cli, &live->inbox, log, &live->source, err);
    if (r < 0)
        return r;
    live->page.remote = live->source->ops->remote;
    live->source->ops->look(live->source, &live->page);
    return 0;
}

static void set_question(struct live *live)
{
    const struct kiln_args *args = &live->cli->args;
    struct kiln_live_page *page = &live->page;
    uint64_t span_ns = args->live.span_ns;

    page->pane = (enum kiln_live_pane)args->live.pane;
    page->mode = (enum kiln_live_mode)args->live.mode;
    page->order = (enum kiln_live_order)args->sort;
    if (args->remote.server)
        span_ns = span_ns ? span_ns : SERVER_SPAN_NS;
    if (span_ns)
        for (page->span = 0; kiln_live_spans[page->span + 1] &&
                             kiln_live_spans[page->span] * KILN_NS_PER_S < span_ns;)
            page->span++;
}

static void init(struct live *live, struct kiln_cli *cli)
{
    *live = (struct live){.cli = cli, .log_pipe = {-1, -1}, .signals = -1};
    kiln_live_window_init(&live->window, MEMORY_BYTES, kiln_clock_mono_ns());
    kiln_live_page_init(&live->page, &live->window);
    live->began_ns = live->window.began_ns;
    set_question(live);
}

static void done(struct live *live)
{
    if (live->source)
        live->source->ops->free(live->source);
    kiln_live_inbox_done(&live->inbox);
    kiln_live_page_done(&live->page);
    kiln_live_window_done(&live->window);
    kiln_log_free(live->log);
    for (int i = 0; i < 2; i++)
        if (live->log_pipe[i] >= 0)
            close(live->log_pipe[i]);
    if (live->signals >= 0)
        close(live->signals);
}

/* ---- once ---- */

/* Signals end it early, with what there is. */
static void wait_for(struct live *live, uint64_t length_ns)
{
    uint64_t until = kiln_clock_mono_ns() + length_ns, at;
    struct pollfd fds[] = {{live->signals, POLLIN, 0}, {live->inbox.fd, POLLIN, 0}};

    while ((at = kiln_clock_mono_ns()) < until && !live->leaves) {
        if (poll(fds, KILN_ARRAY_LEN(fds), (int)((until - at) / KILN_NS_PER_MS + 1)) < 0)
            break;
        live->leaves = fds[0].revents & POLLIN;
        take_batches(live);
    }
}

static int watch_signals(struct live *live)
{
    static const int watched[] = {SIGTERM, SIGINT, SIGHUP, SIGWINCH};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < KILN_ARRAY_LEN(watched); i++)
        sigaddset(&set, watched[i]);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    live->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return live->signals < 0 ? -errno : 0;
}

static int fail(int code, struct kiln_err *err)
{
    kiln_err_set(err, code, NULL, "%s", kiln_err_text(code));
    return kiln_cli_fail(NULL, err);
}

/* All of it counts, from the beginning on. */
static int show_once(struct live *live, uint64_t ended_ns)
{
    struct kiln_live_page *page = &live->page;
    struct kiln_err err = {0};
    int r;

    live->source->ops->finish(live->source);
    live->stopped_ns = ended_ns;
    take_batches(live);
    live->source->ops->facts(live->source, &page->facts);
    if (page->remote && page->facts.notice[0]) {
        kiln_err_set(&err, -EIO, NULL, "%s", page->facts.notice);
        return kiln_cli_fail(NULL, &err);
    }
    while (kiln_live_spans[page->span + 1])
        page->span++;
    page->now_ns = ended_ns;
    r = kiln_live_once(live->cli, page);
    return r < 0 ? fail(r, &err) : KILN_EXIT_WELL;
}

static int run_once(struct live *live)
{
    uint64_t length = live->cli->args.live.span_ns;
    struct kiln_err err = {0};
    int r = live->cli->args.remote.server ? 0 : watch_signals(live); /* half an answer is none */

    if (r == 0)
        r = kiln_log_new(STDERR_FILENO, KILN_LOG_WARN, kiln_cli_log_form(), &live->log);
    if (r == 0)
        r = open_source(live, live->log, &err);
    if (r < 0)
        return fail(r, &err);
    live->window.began_ns = kiln_clock_mono_ns();
    if (!live->page.remote)
        wait_for(live, length ? length : ONCE_NS);
    return show_once(live, kiln_clock_mono_ns());
}

/* ---- the page ---- */

static void set_paused(struct live *live)
{
    bool paused = live->stopped_ns != 0;

    if (live->page.paused == paused)
        return;
    if (paused) {
        live->paused_ns += kiln_clock_mono_ns() - live->stopped_ns;
        live->stopped_ns = 0;
    } else {
        live->stopped_ns = kiln_clock_mono_ns();
    }
    live->source->ops->pause(live->source, !paused);
}

static void suspend(struct live *live)
{
    bool was_paused = live->page.paused;

    live->page.paused = true;
    set_paused(live);
    kiln_screen_suspend(&live->screen);
    live->page.paused = was_paused;
    set_paused(live);
    live->page.suspend = false;
}

static int press(struct live *live, uint32_t key)
{
    struct kiln_live_page *page = &live->page;

    kiln_live_page_key(page, key);
    set_paused(live);
    if (page->suspend)
        suspend(live);
    live->source->ops->look(live->source, page);
    if (page->refocused && page->remote)
        page->n_trend = 0;
    page->refocused = false;
    return kiln_live_page_ask(page, known_until(live));
}

static int read_keys(struct live *live)
{
    uint32_t keys[KEYS_MAX];
    int n = kiln_screen_read(&live->screen, keys, KEYS_MAX), r = 0;

    for (int i = 0; r == 0 && i < n && !live->page.quit; i++)
        r = press(live, keys[i]);
    return n < 0 ? n : r;
}

static void read_signals(struct live *live)
{
    struct signalfd_siginfo info;

    while (read(live->signals, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGWINCH)
            kiln_screen_measure(&live->screen);
        else
            live->leaves = true;
    }
}

static int draw(struct live *live)
{
    struct kiln_buf page;
    int r;

    kiln_buf_init(&page, 16 << 20);
    kiln_live_page_draw(&live->page, &live->cli->term, live->screen.columns, live->screen.rows,
                        &page);
    r = page.error ? page.error : kiln_screen_show(&live->screen, kiln_buf_str(&page));
    kiln_buf_done(&page);
    return r;
}

/* Until the rest of a sequence of keys, or the next second. */
static int patience(const struct live *live, uint64_t next_ns)
{
    uint64_t at = kiln_clock_mono_ns();

    if (kiln_keyboard_waits(&live->screen.keys))
        return ESCAPE_MS;
    if (live->page.paused)
        return -1;
    return next_ns > at ? (int)((next_ns - at) / KILN_NS_PER_MS + 1) : 0;
}

/* What the page shows may be gone with what came: it is asked for again. */
static int take_news(struct live *live)
{
    take_batches(live);
    return kiln_live_page_ask(&live->page, known_until(live));
}

static int wait_and_act(struct live *live, uint64_t next_ns)
{
    struct pollfd fds[] = {{live->screen.in, POLLIN, 0},
                           {live->signals, POLLIN, 0},
                           {live->page.paused ? -1 : live->inbox.fd, POLLIN, 0},
                           {live->log_pipe[0], POLLIN, 0}};
    int n = poll(fds, KILN_ARRAY_LEN(fds), patience(live, next_ns)), r = 0;

    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    if (fds[0].revents & (POLLERR | POLLHUP | POLLNVAL))
        return -EIO;
    if (fds[1].revents)
        read_signals(live);
    if (fds[0].revents)
        r = read_keys(live);
    else if (n == 0 && kiln_keyboard_waits(&live->screen.keys)) {
        uint32_t key = kiln_keyboard_pause(&live->screen.keys);

        r = key ? press(live, key) : 0;
    }
    if (r == 0 && fds[2].revents)
        r = take_news(live);
    if (fds[3].revents)
        read_log(live);
    return r;
}

static int loop(struct live *live)
{
    uint64_t next_ns = 0;
    int r = 0;

    while (r == 0 && !live->page.quit && !live->leaves) {
        if (!live->page.paused && kiln_clock_mono_ns() >= next_ns) {
            live->source->ops->facts(live->source, &live->page.facts);
            add_trend(live);
            r = kiln_live_page_ask(&live->page, known_until(live));
            next_ns = kiln_clock_mono_ns() + live->cli->args.live.interval_ns;
        }
        if (r == 0)
            r = draw(live);
        if (r == 0)
            r = wait_and_act(live, next_ns);
    }
    return r == -EIO ? 0 : r; /* the terminal is gone: so are we */
}

static int begin(struct live *live, struct kiln_err *err)
{
    int r = watch_signals(live);

    if (r == 0)
        r = make_log(live);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    r = open_source(live, live->log, err);
    if (r < 0)
        return r;
    live->window.began_ns = live->began_ns = live->last_ns = kiln_clock_mono_ns();
    return kiln_screen_open(&live->screen, STDIN_FILENO, STDOUT_FILENO, err);
}

/* In the process that the guard watches. */
static int run_page(void *context)
{
    struct live *live = context;
    struct kiln_err err = {0};
    int r = begin(live, &err);

    if (r == 0)
        r = loop(live);
    kiln_screen_close(&live->screen);
    done(live);
    return r < 0 ? fail(r, &err) : KILN_EXIT_WELL;
}

static int run_guarded(struct live *live)
{
    struct kiln_err err = {0};
    int code;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return kiln_cli_usage(live->cli->command,
                              "this is a page for a terminal (--once shows it once, anywhere)");
    code = kiln_screen_guard(STDIN_FILENO, run_page, live, &err);
    if (code < 0)
        return kiln_cli_fail(NULL, &err);
    if (code >= 128)
        kiln_cli_note(NULL, "live was ended by signal %d; the terminal is as it was", code - 128);
    return code >= 128 ? KILN_EXIT_IO : code;
}

static int run(struct kiln_cli *cli)
{
    const struct kiln_whom *only = &cli->args.server.host.only;
    struct kiln_err err = {0};
    struct live live;
    int code, r;

    if (cli->args.remote.server && (only->pids.text || only->cgroups.text || only->comms.text))
        return kiln_cli_usage(cli->command, "-p, --cgroup and --comm are for this host: Enter "
                                            "looks at one process or service of a server");
    if (cli->args.live.interval_ns < INTERVAL_MIN)
        return kiln_cli_usage(cli->command, "--interval must be at least 50ms");
    init(&live, cli);
    r = kiln_live_inbox_init(&live.inbox);
    if (r < 0)
        code = fail(r, &err);
    else
        code = cli->args.json || cli->args.live.once ? run_once(&live) : run_guarded(&live);
    done(&live);
    return code;
}

static const char *const panes[] = {"functions", "processes", "services", "stacks", NULL};
static const char *const modes[] = {"cpu", "wall", "off-cpu", NULL};
static const char *const orders[] = {"self", "total", "name", NULL};

static const struct kiln_option options[] = {
    KILN_OPT_OF("pane", live.pane, panes, "PANE",
                "begin with functions, processes, services or stacks (functions)"),
    KILN_OPT_OF("mode", live.mode, modes, "MODE",
                "begin with time on processors (cpu), waiting (off-cpu) or both (wall)"),
    KILN_OPT_OF("sort", sort, orders, "BY", "the order: self, total or name (self)"),
    KILN_OPT("span", 0, KILN_OPT_DURATION, live.span_ns, "TIME",
             "how much of the past to look at (10s; with --once, how long to wait: 5s)"),
    KILN_OPT("interval", 'i', KILN_OPT_DURATION, live.interval_ns, "TIME",
             "show something new so often (1s)"),
    KILN_OPT("once", 0, KILN_OPT_FLAG, live.once, NULL,
             "print one page after --span, and leave: for scripts, and where there is no terminal"),
    KILN_OPT_LIMIT("with --once, at most N rows, 0 for all (30)"),
    KILN_OPT("json", 0, KILN_OPT_FLAG, json, NULL,
             "once, as JSON with all panes; its shape is stable and documented"),
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Page", options};

const struct kiln_command kiln_cmd_live = {
    .name = "live",
    .summary = "what this host is busy with, now, on a page of the terminal",
    .operands = "",
    .operands_max = 0,
    .about =
        "Samples what the processors do, and shows the functions, processes, services and stacks "
        "of the last seconds, the hottest first, anew every second. Nothing is written anywhere, "
        "and no server is needed; with --server it shows what that one was sent, by all its "
        "agents, "
        "in the last minute.\n\n"
        "Keys: `1` to `4` or Tab choose what is listed, the arrows a row. Enter looks at a process "
        "or service alone, shows who calls a function and what it calls, or opens a stack; Esc "
        "goes back. `/` filters, `s` sorts, `c`, `w` and `o` switch between time on processors, "
        "all time, and time spent waiting, `+` and `-` look at more or less of the past, Space "
        "holds everything, `?` shows all keys, `q` leaves.\n\n"
        "Shares of functions and stacks are of all that is looked at; processes and services are "
        "in per cent of one processor, as `top` has it.\n\n"
        "Needs root, or the capabilities CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE, and a kernel "
        "from 6.1 on with BTF; `kiln doctor` says what is missing.",
    .groups = {&group, &kiln_group_whom, &kiln_group_sampling, &kiln_group_remote},
    .examples = {{"kiln live", "the whole host"},
                 {"kiln live -p 4711 --mode wall", "one process: what it does, and waits for"},
                 {"kiln live --once --span 2s --pane processes -n 5", "a table, for a script"},
                 {"kiln live --once --json --span 2s", "the same for a program"},
                 {"kiln live --server http://kiln:4040", "what all hosts are busy with"}},
    .defaults = {.limit = 30, .live = {.interval_ns = 1000000000}},
    .run = run,
};

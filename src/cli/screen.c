/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences (ECMA-48, and what xterm added):
 *
 *   CSI ?1049 h/l   another screen, and back      CSI ?25 l/h     no cursor, a cursor
 *   CSI ?7 l/h      lines do not wrap             CSI ?2026 h/l   show nothing until all is written
 *   CSI H           the first row and column      CSI K           clear to the end of the line
 *
 * Terminals pass over those that they do not know.
 *
 * The guard is in the terminal's foreground group with its child: what the terminal sends (Ctrl-C
 * is a key here, but SIGHUP is not) reaches both.
 */
#include "cli/screen.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/file.h"
#include "cli/term.h"

#define ENTER "\033[?1049h\033[?25l\033[?7l\033[H\033[2J"
#define LEAVE "\033[?2026l\033[0m\033[?7h\033[?25h\033[?1049l"

enum { COLUMNS = 80, ROWS = 24, COLUMNS_MAX = 1000, ROWS_MAX = 1000 };

/* What the guard sees of its child: whether a screen is open. */
static volatile bool *shown;

static void set_open(struct kiln_screen *screen, bool is_open)
{
    screen->is_open = is_open;
    if (shown)
        *shown = is_open;
}

/* Nothing can be done where the terminal is gone. */
static void tell(int fd, struct kiln_str text)
{
    if (kiln_fd_write(fd, text) < 0)
        errno = 0;
}

static int set_raw(struct kiln_screen *screen)
{
    struct termios raw = screen->before;

    cfmakeraw(&raw);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(screen->in, TCSANOW, &raw) != 0)
        return -errno;
    set_open(screen, true);
    tell(screen->out, KILN_STR(ENTER));
    return 0;
}

int kiln_screen_open(struct kiln_screen *screen, int in, int out, struct kiln_err *err)
{
    int r;

    *screen = (struct kiln_screen){.in = in, .out = out};
    if (tcgetattr(in, &screen->before) != 0 || !isatty(out))
        return kiln_err_set(err, -ENOTTY, NULL, "this needs a terminal");
    kiln_screen_measure(screen);
    r = set_raw(screen);
    return r < 0 ? kiln_err_set(err, r, NULL, "the terminal cannot be set up: %s", kiln_err_text(r))
                 : 0;
}

void kiln_screen_close(struct kiln_screen *screen)
{
    if (!screen->is_open)
        return;
    tell(screen->out, KILN_STR(LEAVE));
    tcsetattr(screen->in, TCSADRAIN, &screen->before);
    set_open(screen, false);
}

bool kiln_screen_measure(struct kiln_screen *screen)
{
    uint32_t columns = COLUMNS, rows = ROWS;
    struct winsize size;
    bool changed;

    if (ioctl(screen->out, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
        columns = size.ws_col < COLUMNS_MAX ? size.ws_col : COLUMNS_MAX;
        rows = size.ws_row < ROWS_MAX ? size.ws_row : ROWS_MAX;
    }
    changed = columns != screen->columns || rows != screen->rows;
    screen->columns = columns;
    screen->rows = rows;
    return changed;
}

/* Without its styles, which are CSI sequences that end with m. */
static uint32_t columns_of(struct kiln_str line)
{
    uint32_t columns = 0;

    while (line.ptr && line.len) {
        struct kiln_str text = kiln_str_cut(&line, '\033');

        columns += kiln_term_columns(text);
        if (line.ptr)
            kiln_str_cut(&line, 'm');
    }
    return columns;
}

int kiln_screen_show(struct kiln_screen *screen, struct kiln_str page)
{
    struct kiln_buf out;
    int r;

    kiln_buf_init(&out, 16 << 20);
    kiln_buf_puts(&out, "\033[?2026h\033[H");
    while (page.ptr) {
        struct kiln_str line = kiln_str_cut(&page, '\n');

        kiln_buf_add_str(&out, line);
        if (columns_of(line) < screen->columns) /* else the cursor stands on the last character */
            kiln_buf_puts(&out, "\033[K");
        if (page.ptr)
            kiln_buf_puts(&out, "\r\n");
    }
    kiln_buf_puts(&out, "\033[?2026l");
    r = out.error ? out.error : kiln_fd_write(screen->out, kiln_buf_str(&out));
    kiln_buf_done(&out);
    return r;
}

int kiln_screen_read(struct kiln_screen *screen, uint32_t *ret_keys, uint32_t max)
{
    unsigned char bytes[256];
    ssize_t n = read(screen->in, bytes, max < sizeof(bytes) ? max : sizeof(bytes));
    int n_keys = 0;

    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -EIO;
    for (ssize_t i = 0; i < n; i++) {
        uint32_t key = kiln_keyboard_take(&screen->keys, bytes[i]);

        if (key)
            ret_keys[n_keys++] = key;
    }
    return n_keys;
}

void kiln_screen_suspend(struct kiln_screen *screen)
{
    kiln_screen_close(screen);
    kill(0, SIGTSTP); /* the guard too: the shell waits for all of the job */
    if (set_raw(screen) < 0)
        set_open(screen, false);
    kiln_screen_measure(screen);
}

/* ---- the guard ---- */

static volatile sig_atomic_t guarded;

static void pass_on(int signal)
{
    if (guarded > 0)
        kill((pid_t)guarded, signal);
}

static const int endings[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

static void watch_signals(sigset_t *ret_before)
{
    struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < KILN_ARRAY_LEN(endings); i++)
        sigaddset(&set, endings[i]);
    sigprocmask(SIG_BLOCK, &set, ret_before);
    for (size_t i = 0; i < KILN_ARRAY_LEN(endings); i++)
        sigaction(endings[i], &action, NULL);
}

static void forget_signals(const sigset_t *before)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(endings); i++)
        signal(endings[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, before, NULL);
}

/* In the child: nobody else puts the terminal right where the guard is killed. */
static void follow(pid_t guard)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != guard)
        _exit(128 + SIGTERM);
}

/* NULL where there is no memory: then the terminal is put right in any case. */
static volatile bool *share_flag(void)
{
    void *page =
        mmap(NULL, sizeof(bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return page == MAP_FAILED ? NULL : page;
}

int kiln_screen_guard(int tty, int (*run)(void *context), void *context, struct kiln_err *err)
{
    struct termios before;
    pid_t guard = getpid(), child;
    sigset_t mask;
    int status = 0;

    if (tcgetattr(tty, &before) != 0)
        return kiln_err_set(err, -ENOTTY, NULL, "this needs a terminal");
    shown = share_flag();
    watch_signals(&mask);
    child = fork();
    if (child == 0) {
        forget_signals(&mask);
        follow(guard);
        exit(run(context));
    }
    guarded = child;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (child < 0)
        return kiln_err_set(err, -errno, NULL, "%s", kiln_err_text(-errno));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (!shown || *shown) {
        tell(tty, KILN_STR(LEAVE));
        tcsetattr(tty, TCSADRAIN, &before);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two pipes: the child reads a byte from one before it executes the command, and writes the errno
 * of a failed exec to the other, which a successful exec closes.
 */
#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- in the child ---- */

/* As whoever logs in: groups too, and the variables that name a user. */
static int become(const struct passwd *user)
{
    if (initgroups(user->pw_name, user->pw_gid) < 0 || setgid(user->pw_gid) < 0 ||
        setuid(user->pw_uid) < 0)
        return -errno;
    if (setenv("HOME", user->pw_dir, 1) < 0 || setenv("USER", user->pw_name, 1) < 0 ||
        setenv("LOGNAME", user->pw_name, 1) < 0)
        return -errno;
    return 0;
}

static _Noreturn void be_child(int go, int told, const struct kiln_launch *launch,
                               const struct passwd *user)
{
    sigset_t none;
    char byte;
    int error = user ? -become(user) : 0;

    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    if (read(go, &byte, 1) != 1)
        _exit(127);
    if (error == 0) {
        execvpe(launch->argv[0], launch->argv, launch->env ? launch->env : environ);
        error = errno;
    }
    _exit(write(told, &error, sizeof(error)) == sizeof(error) ? 127 : 126);
}

/* ---- in the parent ---- */

static int find_user(const char *name, const struct passwd **ret_user, struct kiln_err *err)
{
    *ret_user = name ? getpwnam(name) : NULL;
    if (name && !*ret_user)
        return kiln_err_set(err, -EINVAL, NULL, "--user: there is no user \"%.40s\"", name);
    return 0;
}

static int fork_held(struct kiln_launch *launch, const struct passwd *user)
{
    int go[2], told[2];

    if (pipe2(go, O_CLOEXEC) < 0)
        return -errno;
    if (pipe2(told, O_CLOEXEC) < 0) {
        close(go[0]);
        close(go[1]);
        return -ENFILE;
    }
    launch->pid = fork();
    if (launch->pid == 0) {
        close(go[1]);
        be_child(go[0], told[1], launch, user);
    }
    close(go[0]);
    close(told[1]);
    launch->go = go[1];
    launch->told = told[0];
    return launch->pid < 0 ? -EAGAIN : 0;
}

int kiln_launch_hold(struct kiln_launch *launch, char *const *argv, char *const *env,
                     const char *user, struct kiln_err *err)
{
    const struct passwd *who;
    int r = find_user(user, &who, err);

    if (r < 0)
        return r;
    *launch = (struct kiln_launch){
        .name = argv[0], .argv = argv, .env = env, .pidfd = -1, .go = -1, .told = -1};
    r = fork_held(launch, who);
    if (r == 0) {
        launch->pidfd = (int)syscall(SYS_pidfd_open, launch->pid, 0);
        r = launch->pidfd < 0 ? -errno : 0;
    }
    return r < 0 ? kiln_err_set(err, r, argv[0], "no process for it: %s", kiln_err_text(r)) : 0;
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int kiln_launch_go(struct kiln_launch *launch, struct kiln_err *err)
{
    int error = 0;
    ssize_t n;

    if (write(launch->go, "g", 1) != 1)
        error = errno;
    do
        n = read(launch->told, &error, sizeof(error));
    while (n < 0 && errno == EINTR);
    close_one(&launch->go);
    close_one(&launch->told);
    if (error == ENOENT)
        return kiln_err_set(err, -EINVAL, launch->name, "there is no such program");
    if (error == EPERM)
        return kiln_err_set(err, -EPERM, launch->name, "cannot be run as that user (root can)");
    if (error)
        return kiln_err_set(err, -error, launch->name, "cannot be run: %s", kiln_err_text(-error));
    return 0;
}

static bool reap(struct kiln_launch *launch, int how)
{
    if (launch->pid > 0 && !launch->ended)
        launch->ended = waitpid(launch->pid, &launch->status, how) == launch->pid;
    return launch->ended;
}

bool kiln_launch_ended(struct kiln_launch *launch)
{
    return reap(launch, WNOHANG);
}

void kiln_launch_describe(const struct kiln_launch *launch, struct kiln_buf *out)
{
    if (!launch->ended)
        kiln_buf_puts(out, "is still running");
    else if (WIFSIGNALED(launch->status))
        kiln_buf_printf(out, "was ended by signal %d (%s)", WTERMSIG(launch->status),
                        strsignal(WTERMSIG(launch->status)));
    else
        kiln_buf_printf(out, "ended with status %d", WEXITSTATUS(launch->status));
}

void kiln_launch_done(struct kiln_launch *launch)
{
    bool held = launch->pid > 0 && launch->go >= 0;

    if (launch->pid == 0)
        return;
    close_one(&launch->go);
    if (held)
        reap(launch, 0);
    close_one(&launch->told);
    close_one(&launch->pidfd);
}

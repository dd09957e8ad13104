/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child of vfork says what is to happen with signals before it executes: that is its own affair,
 * and what the parent has said before holds.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void catch (int sig)
{
    caught = caught + sig;
}

static int spawn(const char *command)
{
    struct sigaction plain = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
    int status = -1;
    pid_t pid = vfork();

    if (pid == 0) {
        for (int sig = 1; sig < 65; sig++)
            sigaction(sig, sig == SIGPROF || sig == SIGUSR1 ? &ignored : &plain, NULL);
        execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(99);
    }
    waitpid(pid, &status, 0);
    return status;
}

int main(void)
{
    struct sigaction action = {.sa_handler = catch}, now;

    for (int i = 0; i < 100000; i++)
        free(malloc((size_t)i % 1000));
    sigaction(SIGPROF, &action, NULL);
    printf("a child that ignores it: %x\n", (unsigned)spawn("kill -PROF $$; exit 3"));
    sigaction(SIGPROF, NULL, &now);
    printf("the handler is the parent's: %d\n", now.sa_handler == catch);
    raise(SIGPROF);
    printf("caught %d\n", caught == SIGPROF);
    return 0;
}

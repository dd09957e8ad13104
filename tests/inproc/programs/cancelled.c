/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaves calls that sleep by other ways than their return: threads are cancelled there, and a
 * handler jumps out.  Cancels a thread that calls libkiln, too.  Prints one line for each, "ok:
 * ..." or "FAILED: ...".
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

static int pipe_fds[2], epoll, failed;
static sigjmp_buf out;

static void check(const char *what, int good)
{
    failed += !good;
    printf("%s: %s\n", good ? "ok" : "FAILED", what);
}

static void in_sleep(void)
{
    sleep(1000);
}
static void in_read(void)
{
    char byte;

    (void)!read(pipe_fds[0], &byte, 1);
}
static void in_poll(void)
{
    poll(NULL, 0, -1);
}
static void in_epoll_wait(void)
{
    struct epoll_event event;

    epoll_wait(epoll, &event, 1, -1);
}
static void in_select(void)
{
    select(0, NULL, NULL, NULL, NULL);
}
static void in_pause(void)
{
    pause();
}
static void in_sigwait(void)
{
    sigset_t set;
    int sig;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigwait(&set, &sig);
}

static const struct {
    const char *name;
    void (*wait)(void);
} ways[] = {{"sleep", in_sleep},           {"read", in_read},     {"poll", in_poll},
            {"epoll_wait", in_epoll_wait}, {"select", in_select}, {"pause", in_pause},
            {"sigwait", in_sigwait}};

static void clean_up(void *cleaned)
{
    *(int *)cleaned = 1;
}

static void *wait_for_ever(void *wait)
{
    static int cleaned;

    cleaned = 0;
    pthread_cleanup_push(clean_up, &cleaned);
    (*(void (*const *)(void))wait)();
    pthread_cleanup_pop(0);
    return &cleaned;
}

/* ---- in libkiln ---- */

enum { LONG_MS = 60000 };

static int (*flush)(uint32_t timeout_ms);

static void *flush_cancelled(void *has_flushed)
{
    pthread_cancel(pthread_self());
    *(bool *)has_flushed = flush(LONG_MS) != -ETIMEDOUT;
    pthread_testcancel();
    return NULL;
}

/* It is cancelled when it has come back, and leaves no lock behind. */
static void check_flush(void)
{
    bool has_flushed = false;
    pthread_t thread;
    void *result;

    flush = (int (*)(uint32_t))dlsym(RTLD_DEFAULT, "kiln_flush");
    if (!flush)
        return;
    pthread_create(&thread, NULL, flush_cancelled, &has_flushed);
    pthread_join(thread, &result);
    check("kiln_flush()", result == PTHREAD_CANCELED && has_flushed);
    check("kiln_flush() of another thread, later", flush(LONG_MS) != -ETIMEDOUT);
}

static void jump(int sig)
{
    (void)sig;
    siglongjmp(out, 1);
}

int main(void)
{
    volatile int jumps = 0;

    if (pipe(pipe_fds))
        abort();
    epoll = epoll_create1(0);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        pthread_t thread;
        void *result;

        pthread_create(&thread, NULL, wait_for_ever, (void *)&ways[i].wait);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        check(ways[i].name, result == PTHREAD_CANCELED);
    }
    check_flush();
    signal(SIGALRM, jump);
    while (jumps < 3) {
        if (sigsetjmp(out, 1)) {
            jumps++;
            continue;
        }
        ualarm(2000, 0);
        sleep(1000);
    }
    check("a jump out of a handler", jumps == 3);
    return failed != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that end a process, which waits for what is exported last. */
#include "inproc/sample/ending.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inproc/keep/keep_int.h"
#include "inproc/sample/signal.h"
#include "inproc/start.h"
#include "inproc/thread/thread.h"
#include "test.h"

static int told[2]; /* a pipe */
static bool forks;

static void begin(uint32_t signal_ms)
{
    kiln_in_settings.signal_ms = signal_ms;
    CHECK_OK(kiln_in_threads_init(7));
    atomic_store(&kiln_in_on, KILN_IN_ON);
    CHECK_OK(kiln_in_ending_start());
}

static void wait_until_due(void)
{
    while (!kiln_in_ending_is_due())
        sched_yield();
}

static void *export_last(void *arg)
{
    wait_until_due();
    if (write(told[1], "x", 1) == 1)
        kiln_in_ending_look();
    return arg;
}

static void *drain_last(void *arg)
{
    wait_until_due();
    kiln_in_keep_drain();
    return export_last(arg);
}

static void *hurry(void *arg)
{
    wait_until_due();
    kill(getpid(), SIGTERM);
    return arg;
}

/* What a process ends by that gets SIGINT while this thread runs in it. */
static int end_beside(void *(*run)(void *))
{
    pthread_t thread;
    int status;
    pid_t child = fork();

    if (child == 0) {
        begin(20000);
        if (forks)
            kiln_in_keep_before_fork();
        if (pthread_create(&thread, NULL, run, NULL) == 0)
            raise(SIGINT);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
    return WTERMSIG(status);
}

TEST(ending, nothing_is_held_up_where_no_time_is_given_for_it)
{
    begin(0);
    CHECK(!kiln_in_signal_is_ours(SIGINT));
}

TEST(ending, a_signal_waits_for_the_last_export_and_ends_the_process)
{
    char byte;

    CHECK_OK(pipe(told));
    CHECK_EQ(end_beside(export_last), SIGINT);
    CHECK_EQ(read(told[0], &byte, 1), 1);
}

TEST(ending, one_that_comes_into_a_fork_waits_for_it_too)
{
    char byte;

    CHECK_OK(pipe2(told, O_NONBLOCK));
    forks = true;
    CHECK_EQ(end_beside(drain_last), SIGINT);
    forks = false;
    CHECK_EQ(read(told[0], &byte, 1), 1);
}

TEST(ending, another_one_does_not_wait)
{
    CHECK_EQ(end_beside(hurry), SIGTERM);
}

TEST(ending, the_program_sees_none_of_it_and_can_block_them)
{
    struct sigaction old;
    sigset_t all, room;
    const sigset_t *spared;

    begin(1000);
    CHECK(kiln_in_signal_is_ours(SIGHUP) && kiln_in_signal_is_ours(SIGTERM));
    CHECK_OK(kiln_in_signal_action(SIGINT, NULL, &old));
    CHECK(old.sa_handler == SIG_DFL);
    sigfillset(&all);
    spared = kiln_in_signal_spare(&all, &room);
    CHECK_EQ(sigismember(spared, SIGINT), 1);
}

TEST(ending, one_that_is_ignored_stays_so)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    begin(1000);
    CHECK_OK(kiln_in_signal_action(SIGINT, &ignore, NULL));
    raise(SIGINT);
    CHECK(!kiln_in_ending_is_due());
}

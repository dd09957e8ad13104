/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/thread/last.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inproc/sample/signal.h"
#include "inproc/sample/threads.h"
#include "inproc/start.h"
#include "inproc/thread/helper.h"
#include "inproc/thread/numbers.h"
#include "inproc/thread/visit.h"

enum { STAT = 1024, RUNS = -1 };

static _Atomic bool has_keeper; /* without one nobody looks, and none of ours is counted */
static _Atomic bool main_exits;
static _Atomic bool waits; /* there is a thread for the end */
static _Atomic bool is_alone;
static pthread_t waiter;
static sem_t wake;
static sigset_t mask; /* of the main thread */

/* ---- the thread that leaves in its place ---- */

static void *wait_for_end(void *arg)
{
    while (sem_wait(&wake) != 0 && errno == EINTR)
        ;
    if (atomic_load(&is_alone)) {
        pthread_sigmask(SIG_SETMASK, &mask, NULL);
        exit(0);
    }
    return arg;
}

/* On a thread of the program's, by whichever is later: the exit, or the keeper's start. */
static void begin_to_wait(void)
{
    if (!atomic_load(&has_keeper) || !atomic_load(&main_exits) || atomic_exchange(&waits, true))
        return;
    kiln_in_hush();
    sem_init(&wake, 0, 0);
    if (kiln_in_helper_start("kiln-last", KILN_IN_HELPER_SHARES_FILES, wait_for_end, NULL,
                             &waiter) < 0)
        atomic_store(&waits, false);
    kiln_in_unhush();
}

void kiln_in_last_exits(void)
{
    if (getpid() != syscall(SYS_gettid))
        return;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    atomic_store(&main_exits, true);
    begin_to_wait();
}

/* ---- the keeper's look ---- */

/*
 * The main thread stays in the list, as one that has ended.  What it ended with is the last number
 * of the line: 0 where it called pthread_exit(), else what the process ends with.
 */
static int status_of_main(void)
{
    char text[STAT + 1];
    const char *end;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, STAT);

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    end = strrchr(text, ')');
    if (!end || (strncmp(end, ") Z", 3) != 0 && strncmp(end, ") X", 3) != 0))
        return RUNS;
    return (int)strtol(strrchr(end, ' '), NULL, 10);
}

static bool is_nobody_else(int folder, int32_t tid, void *others)
{
    (void)folder;
    if (tid == getpid() || kiln_in_thread_id_is_ours(tid))
        return true;
    *(bool *)others = true;
    return false;
}

/* New threads come to the end of the list: whoever made them is seen before. */
static bool are_we_alone(void)
{
    bool others = false;

    return kiln_in_numbers_each("/proc/self/task", is_nobody_else, &others) == 0 && !others;
}

/* By a system call as it is, or by the kernel: no handler of the program's runs then. */
static void end_with(int status)
{
    kiln_in_start_end();
    if (WIFSIGNALED(status))
        kiln_in_signal_end_process(WTERMSIG(status));
    syscall(SYS_exit_group, WEXITSTATUS(status));
}

void kiln_in_last_look(bool second)
{
    int status = second || atomic_load(&waits) ? status_of_main() : RUNS;

    if (status == RUNS || !are_we_alone())
        return;
    if (status != 0)
        end_with(status);
    if (!atomic_load(&waits))
        exit(0);
    atomic_store(&is_alone, true);
    sem_post(&wake);
}

/* ---- the part ---- */

void kiln_in_last_start(void)
{
    atomic_store(&has_keeper, true);
    begin_to_wait();
}

void kiln_in_last_stop(void)
{
    atomic_store(&has_keeper, false);
    if (!atomic_exchange(&waits, false))
        return;
    sem_post(&wake);
    pthread_join(waiter, NULL);
}

void kiln_in_last_forked(void)
{
    atomic_store(&has_keeper, false);
    atomic_store(&main_exits, false);
    atomic_store(&waits, false);
}

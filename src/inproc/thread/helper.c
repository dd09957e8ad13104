/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs know their descriptors by number: they close all of them, or all but a few, or count on
 * the next one to be the lowest that is free.  A thread that opens and closes files beside them
 * would be handed what they expect, and lose, or close, what they have put in its place.  So each
 * helper leaves the program's table of descriptors and has an empty one, whose first three are
 * taken, because the C library and our own words are for those.
 *
 * The C library takes what the program's variables of threads need out of the stack we ask for, so
 * that a program with very many of them may need more: then the usual size is taken.
 */
#include "inproc/thread/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "inproc/sample/threads.h"
#include "inproc/thread/line.h"
#include "inproc/thread/numbers.h"
#include "inproc/unwind/peek.h"

enum { STACK_BYTES = 512 << 10, NICENESS = 5 };

struct task {
    void *(*run)(void *);
    void *arg;
    enum kiln_in_helper_files files;
};

/* ---- descriptors ---- */

static bool close_one(int folder, int32_t fd, void *arg)
{
    (void)arg;
    if (fd != folder)
        close(fd);
    return true;
}

static void leave_table(void)
{
    if (syscall(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE) != 0) {
        if (unshare(CLONE_FILES) != 0)
            return; /* it is forbidden here: then they are shared */
        /* Before Linux 5.9.  What others open meanwhile they open in their table. */
        kiln_in_numbers_each("/proc/thread-self/fd", close_one, NULL);
    }
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (open("/", O_PATH | O_CLOEXEC) != fd)
            return;
}

int kiln_in_helper_borrow(int fd)
{
    int process = kiln_in_peek_is_cautious() ? -1 : (int)syscall(SYS_pidfd_open, getpid(), 0);
    int borrowed = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, fd, 0);

    if (process >= 0)
        close(process);
    return borrowed;
}

/* ---- threads ---- */

static void *begin(void *arg)
{
    struct task task = *(struct task *)arg;
    void *ret;

    kiln_in_line.hushed = 1;
    kiln_free(arg);
    kiln_in_thread_is_ours(true);
    if (task.files == KILN_IN_HELPER_OWN_FILES)
        leave_table();
    /* Linux knows this of each thread. */
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
    ret = task.run(task.arg);
    kiln_in_thread_is_ours(false);
    return ret;
}

static int create(struct task *task, pthread_t *ret_thread)
{
    pthread_attr_t attributes;
    int r = pthread_attr_init(&attributes);

    if (r)
        return r;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    r = pthread_create(ret_thread, &attributes, begin, task);
    pthread_attr_destroy(&attributes);
    return r == EINVAL ? pthread_create(ret_thread, NULL, begin, task) : r;
}

int kiln_in_helper_start(const char *name, enum kiln_in_helper_files files, void *(*run)(void *),
                         void *arg, pthread_t *ret_thread)
{
    struct task *task = kiln_malloc(sizeof(*task));
    sigset_t all, before;
    pthread_t thread;
    int r;

    if (!task)
        return -ENOMEM;
    *task = (struct task){.run = run, .arg = arg, .files = files};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = create(task, &thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r) {
        kiln_free(task);
        return -r;
    }
    pthread_setname_np(thread, name);
    *ret_thread = thread;
    return 0;
}

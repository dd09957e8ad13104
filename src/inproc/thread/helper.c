/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C library takes what the program's variables of threads need out of the stack we ask for, so
 * that a program with very many of them may need more: then the usual size is taken.
 */
#include "inproc/thread/helper.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "inproc/sample/threads.h"
#include "inproc/thread/line.h"

enum { STACK_BYTES = 512 << 10, NICENESS = 5 };

struct task {
    void *(*run)(void *);
    void *arg;
};

static void *begin(void *arg)
{
    struct task task = *(struct task *)arg;
    void *ret;

    kiln_in_line.inside = 1;
    kiln_free(arg);
    kiln_in_thread_is_ours(true);
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

int kiln_in_helper_start(const char *name, void *(*run)(void *), void *arg, pthread_t *ret_thread)
{
    struct task *task = kiln_malloc(sizeof(*task));
    sigset_t all, before;
    pthread_t thread;
    int r;

    if (!task)
        return -ENOMEM;
    *task = (struct task){run, arg};
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that end by themselves: the main one may be the first of all.  The next functions are
 * looked for early, because the linker's lock may be somebody's who waits for the thread.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "inproc/hook/hook.h"
#include "inproc/hook/next_find.h"
#include "inproc/thread/last.h"

static void (*next_pthread_exit)(void *);
static void (*next_thrd_exit)(int);

static __attribute__((constructor)) void look_up(void)
{
    void *found[] = {kiln_in_next_find("pthread_exit", NULL), kiln_in_next_find("thrd_exit", NULL)};

    memcpy(&next_pthread_exit, &found[0], sizeof(found[0]));
    memcpy(&next_thrd_exit, &found[1], sizeof(found[1]));
}

KILN_IN_HOOK __attribute__((noreturn)) void pthread_exit(void *result)
{
    if (!next_pthread_exit)
        look_up();
    kiln_in_last_exits();
    next_pthread_exit(result);
    abort();
}

KILN_IN_HOOK __attribute__((noreturn)) void thrd_exit(int result)
{
    if (!next_thrd_exit)
        look_up();
    kiln_in_last_exits();
    next_thrd_exit(result);
    abort();
}

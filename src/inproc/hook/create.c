/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New threads begin in a function of ours, which tells that they are there and jumps on: it is not
 * on their stacks.  What they are to run is handed over in a birth, which is free again as soon as
 * the thread has begun; where all are taken, or nothing is sampled, the thread begins as it would.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "inproc/hook/hook.h"
#include "inproc/hook/next_thread.h"
#include "inproc/sample/threads.h"
#include "inproc/thread/line.h"
#include "inproc/thread/thread.h"

enum { BIRTHS = 256 };

struct birth {
    _Atomic bool taken;
    void *(*run)(void *);
    void *arg;
};

static struct birth births[BIRTHS];
static _Atomic unsigned turn;

static struct birth *take_birth(void *(*run)(void *), void *arg)
{
    unsigned from = atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed);

    for (unsigned i = 0; i < BIRTHS; i++) {
        struct birth *birth = &births[(from + i) % BIRTHS];

        if (!atomic_exchange_explicit(&birth->taken, true, memory_order_acquire)) {
            birth->run = run;
            birth->arg = arg;
            return birth;
        }
    }
    return NULL;
}

static void *begin(void *arg)
{
    struct birth birth = *(struct birth *)arg;

    atomic_store_explicit(&((struct birth *)arg)->taken, false, memory_order_release);
    kiln_in_thread_began(birth.run);
    return birth.run(birth.arg);
}

KILN_IN_HOOK int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                void *(*run)(void *), void *arg)
{
    struct birth *birth = NULL;
    int answer;

    if (kiln_in_is_on() && !kiln_in_is_inside())
        birth = take_birth(run, arg);
    if (!birth)
        return kiln_in_next_thread.create(thread, attributes, run, arg);
    answer = kiln_in_next_thread.create(thread, attributes, begin, birth);
    if (answer == 0)
        kiln_in_thread_created();
    else
        atomic_store_explicit(&birth->taken, false, memory_order_release);
    return answer;
}

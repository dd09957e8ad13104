/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What mutexes and conditions are inside of the library: latches and bells (inproc/thread/latch.h),
 * which lie where the C library's would, and begin as zeroes as those do.  The linker leads calls
 * here as those of hook/own.c.
 *
 * None of ours has attributes, but conditions, whose times are always those of CLOCK_MONOTONIC.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>

#include "inproc/thread/latch.h"

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attributes);
int __wrap_pthread_cond_destroy(pthread_cond_t *cond);
int __wrap_pthread_cond_signal(pthread_cond_t *cond);
int __wrap_pthread_cond_broadcast(pthread_cond_t *cond);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);

_Static_assert(sizeof(struct kiln_in_latch) <= sizeof(pthread_mutex_t) &&
                   sizeof(struct kiln_in_bell) <= sizeof(pthread_cond_t),
               "there is room");

static struct kiln_in_latch *latch_of(pthread_mutex_t *mutex)
{
    return (struct kiln_in_latch *)(void *)mutex;
}

static struct kiln_in_bell *bell_of(pthread_cond_t *cond)
{
    return (struct kiln_in_bell *)(void *)cond;
}

/* ---- mutexes ---- */

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
    (void)attributes;
    atomic_init(&latch_of(mutex)->word, 0);
    return 0;
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    kiln_in_latch_take(latch_of(mutex));
    return 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    return kiln_in_latch_try(latch_of(mutex)) ? 0 : EBUSY;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    kiln_in_latch_give(latch_of(mutex));
    return 0;
}

/* ---- conditions ---- */

int __wrap_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attributes)
{
    (void)attributes;
    atomic_init(&bell_of(cond)->rung, 0);
    return 0;
}

int __wrap_pthread_cond_destroy(pthread_cond_t *cond)
{
    (void)cond;
    return 0;
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
    kiln_in_bell_ring(bell_of(cond), 1);
    return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
    kiln_in_bell_ring(bell_of(cond), INT32_MAX);
    return 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    (void)kiln_in_bell_wait(bell_of(cond), latch_of(mutex), NULL);
    return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    return kiln_in_bell_wait(bell_of(cond), latch_of(mutex), until) ? 0 : ETIMEDOUT;
}

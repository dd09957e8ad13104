/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library before the C library that does nothing but jump on: what a hook costs that asks
 * nothing. Those functions of bench/inproc/lock.c that libkiln stands in front of.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

#define HOOKS(X)                                                                                   \
    X(pthread_mutex_lock, pthread_mutex_t)                                                         \
    X(pthread_mutex_unlock, pthread_mutex_t)                                                       \
    X(pthread_rwlock_rdlock, pthread_rwlock_t)                                                     \
    X(pthread_rwlock_wrlock, pthread_rwlock_t)                                                     \
    X(pthread_rwlock_unlock, pthread_rwlock_t)                                                     \
    X(pthread_spin_lock, pthread_spinlock_t)                                                       \
    X(sem_wait, sem_t)

static struct {
#define X(name, type) int (*name)(type *);
    HOOKS(X)
#undef X
} next;

static __attribute__((constructor)) void look_up(void)
{
#define X(name, type) *(void **)&next.name = dlsym(RTLD_NEXT, #name);
    HOOKS(X)
#undef X
}

#define X(name, type)                                                                              \
    __attribute__((aligned(64))) int name(type *lock)                                              \
    {                                                                                              \
        return next.name(lock);                                                                    \
    }
HOOKS(X)
#undef X

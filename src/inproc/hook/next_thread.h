/* SPDX-License-Identifier: Apache-2.0 */
/*
 * next_thread - the functions of threads that come behind ours: libc's, or those of another library
 * that stands in front of it.
 *
 * They may be called before anything of this library has started: each finds all of them when it is
 * called first.
 *
 * Threads: from anywhere.
 */
#ifndef KILN_INPROC_HOOK_NEXT_THREAD_H
#define KILN_INPROC_HOOK_NEXT_THREAD_H

#include <pthread.h>
#include <semaphore.h>
#include <threads.h>
#include <time.h>

/* member, name, version (inproc/hook/next_find.h), parameters, arguments. */
#define KILN_IN_NEXT_THREAD_MAP(X)                                                                 \
    X(mutex_lock, pthread_mutex_lock, NULL, (pthread_mutex_t * lock), (lock))                      \
    X(mutex_trylock, pthread_mutex_trylock, NULL, (pthread_mutex_t * lock), (lock))                \
    X(mutex_timedlock, pthread_mutex_timedlock, NULL,                                              \
      (pthread_mutex_t * lock, const struct timespec *until), (lock, until))                       \
    X(mutex_clocklock, pthread_mutex_clocklock, NULL,                                              \
      (pthread_mutex_t * lock, clockid_t clock, const struct timespec *until),                     \
      (lock, clock, until))                                                                        \
    X(mutex_unlock, pthread_mutex_unlock, NULL, (pthread_mutex_t * lock), (lock))                  \
    X(rwlock_rdlock, pthread_rwlock_rdlock, NULL, (pthread_rwlock_t * lock), (lock))               \
    X(rwlock_tryrdlock, pthread_rwlock_tryrdlock, NULL, (pthread_rwlock_t * lock), (lock))         \
    X(rwlock_timedrdlock, pthread_rwlock_timedrdlock, NULL,                                        \
      (pthread_rwlock_t * lock, const struct timespec *until), (lock, until))                      \
    X(rwlock_clockrdlock, pthread_rwlock_clockrdlock, NULL,                                        \
      (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until),                    \
      (lock, clock, until))                                                                        \
    X(rwlock_wrlock, pthread_rwlock_wrlock, NULL, (pthread_rwlock_t * lock), (lock))               \
    X(rwlock_trywrlock, pthread_rwlock_trywrlock, NULL, (pthread_rwlock_t * lock), (lock))         \
    X(rwlock_timedwrlock, pthread_rwlock_timedwrlock, NULL,                                        \
      (pthread_rwlock_t * lock, const struct timespec *until), (lock, until))                      \
    X(rwlock_clockwrlock, pthread_rwlock_clockwrlock, NULL,                                        \
      (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until),                    \
      (lock, clock, until))                                                                        \
    X(rwlock_unlock, pthread_rwlock_unlock, NULL, (pthread_rwlock_t * lock), (lock))               \
    X(spin_lock, pthread_spin_lock, NULL, (pthread_spinlock_t * lock), (lock))                     \
    X(spin_trylock, pthread_spin_trylock, NULL, (pthread_spinlock_t * lock), (lock))               \
    X(cond_wait, pthread_cond_wait, "GLIBC_2.3.2",                                                 \
      (pthread_cond_t * cond, pthread_mutex_t * lock), (cond, lock))                               \
    X(cond_timedwait, pthread_cond_timedwait, "GLIBC_2.3.2",                                       \
      (pthread_cond_t * cond, pthread_mutex_t * lock, const struct timespec *until),               \
      (cond, lock, until))                                                                         \
    X(cond_clockwait, pthread_cond_clockwait, NULL,                                                \
      (pthread_cond_t * cond, pthread_mutex_t * lock, clockid_t clock,                             \
       const struct timespec *until),                                                              \
      (cond, lock, clock, until))                                                                  \
    X(sem_wait, sem_wait, NULL, (sem_t * sem), (sem))                                              \
    X(sem_timedwait, sem_timedwait, NULL, (sem_t * sem, const struct timespec *until),             \
      (sem, until))                                                                                \
    X(sem_clockwait, sem_clockwait, NULL,                                                          \
      (sem_t * sem, clockid_t clock, const struct timespec *until), (sem, clock, until))           \
    X(join, pthread_join, NULL, (pthread_t thread, void **ret), (thread, ret))                     \
    X(timedjoin, pthread_timedjoin_np, NULL,                                                       \
      (pthread_t thread, void **ret, const struct timespec *until), (thread, ret, until))          \
    X(clockjoin, pthread_clockjoin_np, NULL,                                                       \
      (pthread_t thread, void **ret, clockid_t clock, const struct timespec *until),               \
      (thread, ret, clock, until))                                                                 \
    X(mtx_lock, mtx_lock, NULL, (mtx_t * lock), (lock))                                            \
    X(mtx_trylock, mtx_trylock, NULL, (mtx_t * lock), (lock))                                      \
    X(mtx_timedlock, mtx_timedlock, NULL, (mtx_t * lock, const struct timespec *until),            \
      (lock, until))                                                                               \
    X(mtx_unlock, mtx_unlock, NULL, (mtx_t * lock), (lock))                                        \
    X(cnd_wait, cnd_wait, NULL, (cnd_t * cond, mtx_t * lock), (cond, lock))                        \
    X(cnd_timedwait, cnd_timedwait, NULL,                                                          \
      (cnd_t * cond, mtx_t * lock, const struct timespec *until), (cond, lock, until))             \
    X(thrd_join, thrd_join, NULL, (thrd_t thread, int *ret), (thread, ret))                        \
    X(create, pthread_create, NULL,                                                                \
      (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg),     \
      (thread, attributes, run, arg))

struct kiln_in_next_thread {
#define X(member, name, version, parameters, arguments) int(*member) parameters;
    KILN_IN_NEXT_THREAD_MAP(X)
#undef X
};

/* Hidden, so that hooks reach it without a table of addresses. */
extern struct kiln_in_next_thread kiln_in_next_thread __attribute__((visibility("hidden")));

#endif /* KILN_INPROC_HOOK_NEXT_THREAD_H */

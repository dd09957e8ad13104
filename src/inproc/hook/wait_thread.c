/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spin locks, semaphores and ends of threads.
 *
 * A semaphore's value, the lower half of its first word, is only looked at: even where nobody has
 * to wait for it, the real function is where a thread may be cancelled.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "inproc/hook/lock.h"

/* ---- spin locks ---- */

KILN_IN_TRY(KILN_IN_HOOK, pthread_spin_lock, spin_lock, spin_trylock, pthread_spinlock_t,
            KILN_IN_STAY_SPIN)

/* ---- semaphores ---- */

static bool is_free(const sem_t *lock)
{
    return (uint32_t)__atomic_load_n(&lock->__align, __ATOMIC_RELAXED) != 0;
}

KILN_IN_LOCK_HOOK(sem_wait, sem_wait, (sem_t * lock), (lock), !is_free(lock),
                  KILN_IN_STAY_SEMAPHORE)
KILN_IN_LOCK_HOOK(sem_timedwait, sem_timedwait, (sem_t * lock, const struct timespec *until),
                  (lock, until), !is_free(lock), KILN_IN_STAY_SEMAPHORE)
KILN_IN_LOCK_HOOK(sem_clockwait, sem_clockwait,
                  (sem_t * lock, clockid_t clock, const struct timespec *until),
                  (lock, clock, until), !is_free(lock), KILN_IN_STAY_SEMAPHORE)

/* ---- ends of threads ---- */

KILN_IN_HOOK int pthread_join(pthread_t thread, void **ret)
{
    return KILN_IN_TIMED(KILN_IN_STAY_JOIN, NULL, kiln_in_next_thread.join(thread, ret));
}

KILN_IN_HOOK int pthread_timedjoin_np(pthread_t thread, void **ret, const struct timespec *until)
{
    return KILN_IN_TIMED(KILN_IN_STAY_JOIN, NULL,
                         kiln_in_next_thread.timedjoin(thread, ret, until));
}

KILN_IN_HOOK int pthread_clockjoin_np(pthread_t thread, void **ret, clockid_t clock,
                                      const struct timespec *until)
{
    return KILN_IN_TIMED(KILN_IN_STAY_JOIN, NULL,
                         kiln_in_next_thread.clockjoin(thread, ret, clock, until));
}

KILN_IN_HOOK int thrd_join(thrd_t thread, int *ret)
{
    return KILN_IN_TIMED(KILN_IN_STAY_JOIN, NULL, kiln_in_next_thread.thrd_join(thread, ret));
}

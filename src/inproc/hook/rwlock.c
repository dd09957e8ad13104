/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of readers and writers.  Whether one can be had is seen at the first word of the C
 * library's:
 *
 *   bit 0      it is the turn of writers
 *   bit 1      a writer has it, or waits for readers to leave
 *   bit 2      a reader waits
 *   bits 3-31  readers that have it
 *
 * Of writers two more words tell, beside it.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "inproc/hook/lock.h"

enum { WRITERS_TURN = 1, WRITER_HAS_IT = 2, READERS_SHIFT = 3 };

static unsigned word_of(const pthread_rwlock_t *lock)
{
    return __atomic_load_n(&lock->__data.__readers, __ATOMIC_RELAXED);
}

static bool keeps_readers_out(const pthread_rwlock_t *lock)
{
    unsigned word = word_of(lock);

    return (word & WRITER_HAS_IT) &&
           ((word & WRITERS_TURN) ||
            lock->__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
}

static bool keeps_writers_out(const pthread_rwlock_t *lock)
{
    unsigned word = word_of(lock);

    return (word & WRITER_HAS_IT) || word >> READERS_SHIFT;
}

/* Neither is set: there is no writer, nor was one since a reader had it. */
static bool may_keep_readers_out(const pthread_rwlock_t *lock)
{
    return __atomic_load_n(&lock->__data.__wrphase_futex, __ATOMIC_RELAXED) |
           __atomic_load_n(&lock->__data.__writers_futex, __ATOMIC_RELAXED);
}

KILN_IN_TRY(static KILN_IN_SLOW, try_to_read, rwlock_rdlock, rwlock_tryrdlock, pthread_rwlock_t,
            KILN_IN_STAY_READ)

KILN_IN_HOOK int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    if (KILN_IN_RARELY(may_keep_readers_out(lock)))
        return try_to_read(lock);
    return kiln_in_next_thread.rwlock_rdlock(lock);
}

KILN_IN_LOCK_HOOK(pthread_rwlock_timedrdlock, rwlock_timedrdlock,
                  (pthread_rwlock_t * lock, const struct timespec *until), (lock, until),
                  keeps_readers_out(lock), KILN_IN_STAY_READ)
KILN_IN_LOCK_HOOK(pthread_rwlock_clockrdlock, rwlock_clockrdlock,
                  (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until),
                  (lock, clock, until), keeps_readers_out(lock), KILN_IN_STAY_READ)

/* Readers are counted in the first word alone. */
KILN_IN_TRY(KILN_IN_HOOK, pthread_rwlock_wrlock, rwlock_wrlock, rwlock_trywrlock, pthread_rwlock_t,
            KILN_IN_STAY_WRITE)
KILN_IN_LOCK_HOOK(pthread_rwlock_timedwrlock, rwlock_timedwrlock,
                  (pthread_rwlock_t * lock, const struct timespec *until), (lock, until),
                  keeps_writers_out(lock), KILN_IN_STAY_WRITE)
KILN_IN_LOCK_HOOK(pthread_rwlock_clockwrlock, rwlock_clockwrlock,
                  (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until),
                  (lock, clock, until), keeps_writers_out(lock), KILN_IN_STAY_WRITE)

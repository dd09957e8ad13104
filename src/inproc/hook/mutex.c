/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutexes.  Whether one is taken is seen at its first word, which the C library has used as a futex
 * at all times:
 *
 *   0                nobody has it
 *   1                somebody has it
 *   2                and others may wait
 *   thread's id      who has it, of robust and priority inheriting ones; bit 31: others wait
 *
 * The word is only looked at.  Whatever it says, the real function is called and its answer given:
 * what recursive, error checking, robust and priority inheriting ones do is theirs.
 *
 * C11's are the same inside, and the C library does not call POSIX's for them by name.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "inproc/hook/lock.h"
#include "inproc/look.h"
#include "inproc/thread/line.h"
#include "inproc/thread/thread.h"

/* Somebody else has it, and somebody wants to know. */
static inline bool is_taken(const pthread_mutex_t *lock)
{
    const struct kiln_in_thread *thread;

    if (!KILN_IN_RARELY(!kiln_in_is_at_most(&lock->__data.__lock, 0)))
        return false;
    thread = kiln_in_line.thread;
    if (!thread)
        return kiln_in_is_running();
    return __atomic_load_n(&lock->__data.__owner, __ATOMIC_RELAXED) !=
           atomic_load_explicit(&thread->tid, memory_order_relaxed);
}

KILN_IN_LOCK_HOOK(pthread_mutex_lock, mutex_lock, (pthread_mutex_t * lock), (lock), is_taken(lock),
                  KILN_IN_STAY_MUTEX)
KILN_IN_LOCK_HOOK(pthread_mutex_timedlock, mutex_timedlock,
                  (pthread_mutex_t * lock, const struct timespec *until), (lock, until),
                  is_taken(lock), KILN_IN_STAY_MUTEX)
KILN_IN_LOCK_HOOK(pthread_mutex_clocklock, mutex_clocklock,
                  (pthread_mutex_t * lock, clockid_t clock, const struct timespec *until),
                  (lock, clock, until), is_taken(lock), KILN_IN_STAY_MUTEX)

static bool is_waited_for(const pthread_mutex_t *lock)
{
    int word = __atomic_load_n(&lock->__data.__lock, __ATOMIC_RELAXED);

    return word == 2 || word < 0;
}

static int blamed(int answer, uint64_t waited_ns)
{
    if (answer == 0 && waited_ns)
        kiln_in_holder_tell(waited_ns, KILN_IN_STAY_MUTEX);
    return answer;
}

/* Somebody waits, or the word is a thread's id. */
static KILN_IN_SLOW int unlock_slow(pthread_mutex_t *lock)
{
    uint64_t waited_ns = is_waited_for(lock) ? kiln_in_holder_settle(lock) : 0;

    return blamed(kiln_in_next_thread.mutex_unlock(lock), waited_ns);
}

KILN_IN_HOOK int pthread_mutex_unlock(pthread_mutex_t *lock)
{
    if (KILN_IN_RARELY(!kiln_in_is_at_most(&lock->__data.__lock, 1)))
        return unlock_slow(lock);
    return kiln_in_next_thread.mutex_unlock(lock);
}

/* ---- C11 ---- */

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "one is the other");

static const pthread_mutex_t *inside(const mtx_t *lock)
{
    return (const pthread_mutex_t *)(const void *)lock;
}

KILN_IN_LOCK_HOOK(mtx_lock, mtx_lock, (mtx_t * lock), (lock), is_taken(inside(lock)),
                  KILN_IN_STAY_MUTEX)
KILN_IN_LOCK_HOOK(mtx_timedlock, mtx_timedlock,
                  (mtx_t *restrict lock, const struct timespec *restrict until), (lock, until),
                  is_taken(inside(lock)), KILN_IN_STAY_MUTEX)

static KILN_IN_SLOW int mtx_unlock_waited(mtx_t *lock)
{
    uint64_t waited_ns = kiln_in_holder_settle(lock);

    return blamed(kiln_in_next_thread.mtx_unlock(lock), waited_ns);
}

KILN_IN_HOOK int mtx_unlock(mtx_t *lock)
{
    if (KILN_IN_RARELY(is_waited_for(inside(lock))))
        return mtx_unlock_waited(lock);
    return kiln_in_next_thread.mtx_unlock(lock);
}

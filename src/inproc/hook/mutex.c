/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutexes.  The first word of the C library's has been a futex at all times:
 *
 *   0                nobody has it
 *   1                somebody has it
 *   2                and others may wait
 *   thread's id      who has it, of robust and priority inheriting ones; bit 31: others wait
 *
 * Who has it is also written beside, a moment later, and taken away a moment before: a lock asks
 * there (inproc/hook/lock.h says why), and whether others wait, for in a convoy those moments are
 * when it is wanted.  Then it is tried for, if it is a plain one: to try for a robust one that is
 * lost takes it for good.
 *
 * Whatever is seen, the real functions are called and their answers given: what recursive, error
 * checking, robust and priority inheriting ones do is theirs.  Not seen: waits for mutexes that the
 * C library takes by transactions (glibc.elision.enable), of which it does not write who has them.
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

/* In a mutex' kind. */
enum { ROBUST = 16, INHERITS = 32, PROTECTS = 64 };

static inline int word_of(const pthread_mutex_t *lock)
{
    return __atomic_load_n(&lock->__data.__lock, __ATOMIC_RELAXED);
}

/* Not the caller's own, and somebody wants to know. */
static inline bool is_of_interest(const pthread_mutex_t *lock)
{
    const struct kiln_in_thread *thread = kiln_in_line.thread;

    if (!thread)
        return kiln_in_is_running();
    return __atomic_load_n(&lock->__data.__owner, __ATOMIC_RELAXED) !=
           atomic_load_explicit(&thread->tid, memory_order_relaxed);
}

static inline bool may_be_taken(const pthread_mutex_t *lock)
{
    return KILN_IN_RARELY(!kiln_in_is_zero_int(&lock->__data.__owner) ||
                          kiln_in_slot_is_waited(lock));
}

static inline bool is_taken(const pthread_mutex_t *lock)
{
    return KILN_IN_RARELY(word_of(lock) != 0) && is_of_interest(lock);
}

static bool is_plain(const pthread_mutex_t *lock)
{
    return !(lock->__data.__kind & (ROBUST | INHERITS | PROTECTS));
}

KILN_IN_TRY(static KILN_IN_SLOW, try_mutex, mutex_lock, mutex_trylock, pthread_mutex_t,
            KILN_IN_STAY_MUTEX)

static KILN_IN_SLOW int lock_slow(pthread_mutex_t *lock)
{
    /* Of a thread that was not known before it may be its own. */
    if (!kiln_in_own_block() || !is_of_interest(lock))
        return kiln_in_next_thread.mutex_lock(lock);
    if (is_plain(lock))
        return try_mutex(lock);
    return word_of(lock) != 0 ? wait_in_mutex_lock(lock) : kiln_in_next_thread.mutex_lock(lock);
}

/* Out of line: a recursive one goes on from here, and is spared a jump. */
static __attribute__((noinline, aligned(64))) int lock_once_more(pthread_mutex_t *lock)
{
    if (is_of_interest(lock))
        return lock_slow(lock);
    return kiln_in_next_thread.mutex_lock(lock);
}

KILN_IN_HOOK int pthread_mutex_lock(pthread_mutex_t *lock)
{
    if (may_be_taken(lock))
        return lock_once_more(lock);
    return kiln_in_next_thread.mutex_lock(lock);
}

/* Not tried for: a clock that is none is an error, whether it is free or not. */
KILN_IN_LOCK_HOOK(pthread_mutex_timedlock, mutex_timedlock,
                  (pthread_mutex_t * lock, const struct timespec *until), (lock, until),
                  is_taken(lock), KILN_IN_STAY_MUTEX)
KILN_IN_LOCK_HOOK(pthread_mutex_clocklock, mutex_clocklock,
                  (pthread_mutex_t * lock, clockid_t clock, const struct timespec *until),
                  (lock, clock, until), is_taken(lock), KILN_IN_STAY_MUTEX)

/* ---- C11 ---- */

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "one is the other");
_Static_assert(thrd_success == 0, "as POSIX's answer");

static inline const pthread_mutex_t *inside(const mtx_t *lock)
{
    return (const pthread_mutex_t *)(const void *)lock;
}

KILN_IN_TRY(static KILN_IN_SLOW, try_mtx, mtx_lock, mtx_trylock, mtx_t, KILN_IN_STAY_MUTEX)

KILN_IN_HOOK int mtx_lock(mtx_t *lock)
{
    if (may_be_taken(inside(lock)) && is_of_interest(inside(lock)))
        return try_mtx(lock);
    return kiln_in_next_thread.mtx_lock(lock);
}

KILN_IN_LOCK_HOOK(mtx_timedlock, mtx_timedlock,
                  (mtx_t *restrict lock, const struct timespec *restrict until), (lock, until),
                  is_taken(inside(lock)), KILN_IN_STAY_MUTEX)

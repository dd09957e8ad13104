/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each hook jumps to where its pointer leads, which changes twice at most: from `first`, as long as
 * the C library's functions may not have been found, to those, and to `look` at any time.  Pointers
 * are read without order, like those of all hooks: whoever goes on by an old one for a moment does
 * what was right a moment before.
 */
#include "inproc/hook/unlock.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <threads.h>

#include "inproc/hook/hook.h"
#include "inproc/hook/next_thread.h"
#include "inproc/look.h"
#include "inproc/sample/lock.h"
#include "inproc/sample/slots.h"

/* `is_waited`: its slot says so, and the lock itself too. */
#define UNLOCK(name, real, type, is_waited, what)                                                  \
    static KILN_IN_SLOW int settle_in_##real(type *lock)                                           \
    {                                                                                              \
        uint64_t waited_ns = (is_waited) ? kiln_in_holder_settle(lock) : 0;                        \
        int answer = kiln_in_next_thread.real(lock);                                               \
                                                                                                   \
        if (answer == 0 && waited_ns)                                                              \
            kiln_in_holder_tell(waited_ns, what);                                                  \
        return answer;                                                                             \
    }                                                                                              \
                                                                                                   \
    static __attribute__((aligned(64))) int look_in_##real(type *lock)                             \
    {                                                                                              \
        if (KILN_IN_RARELY(kiln_in_slot_is_waited(lock)))                                          \
            return settle_in_##real(lock);                                                         \
        return kiln_in_next_thread.real(lock);                                                     \
    }                                                                                              \
                                                                                                   \
    static KILN_IN_SLOW int first_in_##real(type *lock);                                           \
    static int (*now_in_##real)(type * lock) = first_in_##real;                                    \
                                                                                                   \
    static int first_in_##real(type *lock)                                                         \
    {                                                                                              \
        int (*before)(type *) = first_in_##real;                                                   \
        int answer = kiln_in_next_thread.real(lock);                                               \
                                                                                                   \
        (void)__atomic_compare_exchange_n(&now_in_##real, &before, kiln_in_next_thread.real,       \
                                          false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);              \
        return answer;                                                                             \
    }                                                                                              \
                                                                                                   \
    KILN_IN_HOOK int name(type *lock)                                                              \
    {                                                                                              \
        return now_in_##real(lock);                                                                \
    }

/* The first word of a mutex: inproc/hook/mutex.c. */
static bool is_waited_for(const void *mutex)
{
    int word = __atomic_load_n((const int *)mutex, __ATOMIC_RELAXED);

    return word == 2 || word < 0;
}

UNLOCK(pthread_mutex_unlock, mutex_unlock, pthread_mutex_t, is_waited_for(lock), KILN_IN_STAY_MUTEX)
UNLOCK(mtx_unlock, mtx_unlock, mtx_t, is_waited_for(lock), KILN_IN_STAY_MUTEX)
UNLOCK(pthread_rwlock_unlock, rwlock_unlock, pthread_rwlock_t, true, KILN_IN_STAY_WRITE)

void kiln_in_unlocks_look(void)
{
    static uint8_t looks;

    /* Written once: they are in every processor's cache. */
    if (!kiln_in_is_zero(&looks))
        return;
    __atomic_store_n(&now_in_mutex_unlock, look_in_mutex_unlock, __ATOMIC_RELAXED);
    __atomic_store_n(&now_in_mtx_unlock, look_in_mtx_unlock, __ATOMIC_RELAXED);
    __atomic_store_n(&now_in_rwlock_unlock, look_in_rwlock_unlock, __ATOMIC_RELAXED);
    __atomic_store_n(&looks, 1, __ATOMIC_RELEASE);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock - shapes of hooks of functions that take a lock: pass on where it is to be had at once, else
 * measure how long that takes.
 *
 *   KILN_IN_LOCK_HOOK(pthread_mutex_timedlock, mutex_timedlock,
 *                     (pthread_mutex_t *lock, const struct timespec *until), (lock, until),
 *                     is_taken(lock), KILN_IN_STAY_MUTEX)
 *
 * The lock is the parameter `lock`; `real` is its name in kiln_in_next_thread.
 *
 * A word that an atomic instruction has just changed cannot be read before that is over, and the
 * next one has to wait for both: lock and unlock with a look at the word each take 7 ns more in a
 * loop (bench/inproc/lock.py), and none with a look at what is beside it.
 *
 * Threads: hooks run on any, in handlers of signals too.
 */
#ifndef KILN_INPROC_HOOK_LOCK_H
#define KILN_INPROC_HOOK_LOCK_H

#include "inproc/hook/hook.h"
#include "inproc/hook/next_thread.h"
#include "inproc/hook/unlock.h"
#include "inproc/sample/lock.h"
#include "inproc/sample/slots.h"

#define KILN_IN_LOCK_HOOK(name, real, parameters, arguments, has_to_wait, what)                    \
    static KILN_IN_SLOW int wait_in_##real parameters                                              \
    {                                                                                              \
        kiln_in_unlocks_look();                                                                    \
        return KILN_IN_TIMED(what, lock, kiln_in_next_thread.real arguments);                      \
    }                                                                                              \
                                                                                                   \
    KILN_IN_HOOK int name parameters                                                               \
    {                                                                                              \
        if (KILN_IN_RARELY(has_to_wait))                                                           \
            return wait_in_##real arguments;                                                       \
        return kiln_in_next_thread.real arguments;                                                 \
    }

/*
 * Of one that is likely to be taken, or dearer to look at than to try: whoever looks and then asks
 * for it may find that another was faster, which in a convoy is one time in ten.
 */
#define KILN_IN_TRY(linkage, name, real, tries, type, what)                                        \
    static KILN_IN_SLOW int wait_in_##real(type *lock)                                             \
    {                                                                                              \
        kiln_in_unlocks_look();                                                                    \
        return KILN_IN_TIMED(what, (const void *)lock, kiln_in_next_thread.real(lock));            \
    }                                                                                              \
                                                                                                   \
    linkage int name(type *lock)                                                                   \
    {                                                                                              \
        if (KILN_IN_RARELY(kiln_in_next_thread.tries(lock) != 0))                                  \
            return wait_in_##real(lock);                                                           \
        return 0;                                                                                  \
    }

#endif /* KILN_INPROC_HOOK_LOCK_H */

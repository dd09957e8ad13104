/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock - the shape of a hook of a function that takes a lock: pass on where it is to be had at
 * once, else measure how long that takes.  Either way the real function is called.
 *
 *   KILN_IN_LOCK_HOOK(pthread_mutex_lock, mutex_lock, (pthread_mutex_t *lock), (lock),
 *                     is_taken(lock), KILN_IN_STAY_MUTEX)
 *
 * The lock is the parameter `lock`; `real` is its name in kiln_in_next_thread.
 *
 * Threads: hooks run on any, in handlers of signals too.
 */
#ifndef KILN_INPROC_HOOK_LOCK_H
#define KILN_INPROC_HOOK_LOCK_H

#include "inproc/hook/hook.h"
#include "inproc/hook/next_thread.h"
#include "inproc/sample/lock.h"

#define KILN_IN_LOCK_HOOK(name, real, parameters, arguments, has_to_wait, what)                    \
    static KILN_IN_SLOW int wait_in_##real parameters                                              \
    {                                                                                              \
        return KILN_IN_TIMED(what, lock, kiln_in_next_thread.real arguments);                      \
    }                                                                                              \
                                                                                                   \
    KILN_IN_HOOK int name parameters                                                               \
    {                                                                                              \
        if (KILN_IN_RARELY(has_to_wait))                                                           \
            return wait_in_##real arguments;                                                       \
        return kiln_in_next_thread.real arguments;                                                 \
    }

#endif /* KILN_INPROC_HOOK_LOCK_H */

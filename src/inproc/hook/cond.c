/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions.  Whoever waits for one lets go of its mutex inside of the C library, where no hook
 * sees it: so others are told of here how long they have waited for it.
 *
 * A thread that is cancelled meanwhile does not come back here; nothing is owed then but the mark
 * that it waits, which is gone with the thread.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "inproc/hook/hook.h"
#include "inproc/hook/next_thread.h"
#include "inproc/sample/lock.h"
#include "inproc/sample/slots.h"

static uint64_t settle(const void *lock)
{
    return KILN_IN_RARELY(kiln_in_slot_is_waited(lock)) ? kiln_in_holder_settle(lock) : 0;
}

static int blamed(uint64_t waited_ns, int answer)
{
    if (KILN_IN_RARELY(waited_ns))
        kiln_in_holder_tell(waited_ns, KILN_IN_STAY_MUTEX);
    return answer;
}

KILN_IN_HOOK int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
    uint64_t waited_ns = settle(lock);

    return blamed(waited_ns, KILN_IN_TIMED(KILN_IN_STAY_CONDITION, cond,
                                           kiln_in_next_thread.cond_wait(cond, lock)));
}

KILN_IN_HOOK int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
                                        const struct timespec *until)
{
    uint64_t waited_ns = settle(lock);

    return blamed(waited_ns, KILN_IN_TIMED(KILN_IN_STAY_CONDITION, cond,
                                           kiln_in_next_thread.cond_timedwait(cond, lock, until)));
}

KILN_IN_HOOK int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock,
                                        clockid_t clock, const struct timespec *until)
{
    uint64_t waited_ns = settle(lock);

    return blamed(waited_ns,
                  KILN_IN_TIMED(KILN_IN_STAY_CONDITION, cond,
                                kiln_in_next_thread.cond_clockwait(cond, lock, clock, until)));
}

/* ---- C11 ---- */

KILN_IN_HOOK int cnd_wait(cnd_t *cond, mtx_t *lock)
{
    uint64_t waited_ns = settle(lock);

    return blamed(waited_ns, KILN_IN_TIMED(KILN_IN_STAY_CONDITION, cond,
                                           kiln_in_next_thread.cnd_wait(cond, lock)));
}

KILN_IN_HOOK int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict lock,
                               const struct timespec *restrict until)
{
    uint64_t waited_ns = settle(lock);

    return blamed(waited_ns, KILN_IN_TIMED(KILN_IN_STAY_CONDITION, cond,
                                           kiln_in_next_thread.cnd_timedwait(cond, lock, until)));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timed - the shape of a hook of a function that may sleep: pass on, and tell how long it took.
 *
 *   TIMED(int, usleep, (useconds_t us), (us), KILN_IN_REASON_SLEEP)
 *
 * `why` is what it would wait for, -1 where it does not.  Nothing is held while it sleeps: it may
 * be cancelled there, or left by a jump out of a handler.
 *
 * Threads: hooks run on any, in handlers of signals too.
 */
#ifndef KILN_INPROC_HOOK_TIMED_H
#define KILN_INPROC_HOOK_TIMED_H

#include <kiln.h>

#include "inproc/hook/next_calls.h"
#include "inproc/sample/wait.h"

#define TIMED_BODY(type, name, arguments, why)                                                     \
    {                                                                                              \
        int reason = kiln_in_measured() ? (int)(why) : -1;                                         \
        uint64_t since = reason < 0 ? 0 : kiln_in_wait_begin();                                    \
        type r;                                                                                    \
                                                                                                   \
        if (!since)                                                                                \
            return kiln_in_next_calls.name arguments;                                              \
        r = kiln_in_next_calls.name arguments;                                                     \
        kiln_in_wait_end(since, (enum kiln_in_reason)reason);                                      \
        return r;                                                                                  \
    }

#define TIMED(type, name, parameters, arguments, why)                                              \
    KILN_API type name parameters;                                                                 \
    type name parameters TIMED_BODY(type, name, arguments, why)

/* The same of a descriptor `fd`, in a few instructions where that is known not to sleep. */
#define TIMED_FILE(type, name, parameters, arguments, why)                                         \
    KILN_API type name parameters;                                                                 \
    static __attribute__((noinline)) type timed_##name parameters TIMED_BODY(type, name,           \
                                                                             arguments, why)       \
    type name parameters                                                                           \
    {                                                                                              \
        if (kiln_in_file_is_quick(fd))                                                             \
            return kiln_in_next_calls.name arguments;                                              \
        return timed_##name arguments;                                                             \
    }

/* Of a poll: which loop it is, and whether it waits. */
#define POLLED(name, parameters, arguments, loop, waits)                                           \
    KILN_API int name parameters;                                                                  \
    int name parameters                                                                            \
    {                                                                                              \
        struct kiln_in_poll polled;                                                                \
        int r;                                                                                     \
                                                                                                   \
        if (!kiln_in_measured())                                                                   \
            return kiln_in_next_calls.name arguments;                                              \
        polled = kiln_in_poll_begin(loop, waits);                                                  \
        if (polled.since_ns)                                                                       \
            kiln_in_wait_mark(KILN_IN_FRAME);                                                      \
        r = kiln_in_next_calls.name arguments;                                                     \
        kiln_in_poll_end(&polled);                                                                 \
        return r;                                                                                  \
    }

#endif /* KILN_INPROC_HOOK_TIMED_H */

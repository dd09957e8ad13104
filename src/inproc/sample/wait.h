/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait - time that threads spend in calls that sleep: measured around the call by the thread
 * itself, which then tells its own stack.  Nobody is interrupted.
 *
 *   uint64_t since = kiln_in_wait_begin(KILN_IN_REASON_SLEEP);
 *   r = nanosleep(...);
 *   if (since)
 *       kiln_in_wait_end(since, KILN_IN_REASON_SLEEP);
 *
 * A wait of d is sampled with probability p = min(1, d / wait_rate_ns), as 1/p waits of d/p in all.
 * The call may be left by cancellation or by a jump: nothing is held meanwhile.
 *
 * Threads: of the thread itself.  kiln_in_waits_set() from any.
 */
#ifndef KILN_INPROC_SAMPLE_WAIT_H
#define KILN_INPROC_SAMPLE_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "inproc/clock.h"
#include "inproc/thread/visit.h"

/* What is waited for, as the host profiler calls it (the attribute wait.reason). */
#define KILN_IN_REASON_MAP(X)                                                                      \
    X(OTHER, "other")                                                                              \
    X(FUTEX, "futex")                                                                              \
    X(POLL, "poll")                                                                                \
    X(SLEEP, "sleep")                                                                              \
    X(PIPE, "pipe")                                                                                \
    X(SOCKET, "socket")                                                                            \
    X(DISK, "disk")                                                                                \
    X(IO, "io")                                                                                    \
    X(CHILD, "child")                                                                              \
    X(SIGNAL, "signal")                                                                            \
    X(LOCK, "lock")                                                                                \
    X(IPC, "ipc")                                                                                  \
    X(MEMORY, "memory")                                                                            \
    X(PAGE_FAULT, "page_fault")

enum kiln_in_reason {
#define X(name, word) KILN_IN_REASON_##name,
    KILN_IN_REASON_MAP(X)
#undef X
        KILN_IN_REASONS
};

/* "sleep", "poll"... */
const char *kiln_in_reason_word(enum kiln_in_reason reason);

/* What is measured now. */
enum { KILN_IN_WAITS = 1, KILN_IN_LOOPS = 2 };
extern _Atomic uint32_t kiln_in_measures;

static inline uint32_t kiln_in_measured(void)
{
    return kiln_in_is_inside() ? 0 : atomic_load_explicit(&kiln_in_measures, memory_order_relaxed);
}

/*
 * The frame of the hook, while the thread waits in it: somebody may ask where threads are
 * (inproc/keep/threads_now.h).  0: it goes on.
 */
#define KILN_IN_FRAME ((uint64_t)(uintptr_t)__builtin_frame_address(0))
void kiln_in_wait_mark(uint64_t frame);

/* When it began; 0: nobody wants to know. */
static inline __attribute__((always_inline)) uint64_t kiln_in_wait_begin(void)
{
    if (!kiln_in_measured())
        return 0;
    kiln_in_wait_mark(KILN_IN_FRAME);
    return kiln_in_now_ns();
}
void kiln_in_wait_end(uint64_t since_ns, enum kiln_in_reason reason);
/* The same of a wait that others have measured. */
void kiln_in_wait_took(uint64_t ns, enum kiln_in_reason reason);
/* And whose stack they have taken already; 0: they have not. */
void kiln_in_wait_took_at(uint64_t ns, enum kiln_in_reason reason, uint32_t stack);

/* ---- polls: a wait, and a turn of an event loop ---- */

struct kiln_in_poll {
    uint64_t since_ns; /* 0: nothing is measured */
    int64_t key;       /* inproc/sample/loop.h; 0: of no loop */
    bool sleeps;
};
struct kiln_in_poll kiln_in_poll_begin(int64_t key, bool sleeps);
void kiln_in_poll_end(const struct kiln_in_poll *poll);

#endif /* KILN_INPROC_SAMPLE_WAIT_H */

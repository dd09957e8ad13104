/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock - waits for locks, conditions, semaphores and ends of threads: measured by who waits,
 * sampled so that a wait of `lock_rate_ns` is one sample on average, and blamed on who held the
 * lock.
 *
 *   return KILN_IN_TIMED(KILN_IN_STAY_MUTEX, lock, next(lock));
 *
 * While it waits the thread is not inside of the library: handlers of signals run, it may be
 * cancelled and never come to the end.
 *
 * Threads: on the thread that waits; in handlers of signals too.
 */
#ifndef KILN_INPROC_SAMPLE_LOCK_H
#define KILN_INPROC_SAMPLE_LOCK_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "inproc/sample/wait.h"

struct kiln_in_slot;
struct kiln_in_thread;

/* What is waited for: `reason` of records of mutex and block, and its word in attributes. */
#define KILN_IN_STAY_MAP(X)                                                                        \
    X(MUTEX, "mutex", KILN_IN_MUTEX)                                                               \
    X(READ, "rwlock_read", KILN_IN_MUTEX)                                                          \
    X(WRITE, "rwlock_write", KILN_IN_MUTEX)                                                        \
    X(SPIN, "spinlock", KILN_IN_MUTEX)                                                             \
    X(CONDITION, "condition", KILN_IN_BLOCK)                                                       \
    X(SEMAPHORE, "semaphore", KILN_IN_BLOCK)                                                       \
    X(JOIN, "join", KILN_IN_BLOCK)

enum kiln_in_stay_for {
    KILN_IN_STAY_UNKNOWN,
#define X(name, word, kind) KILN_IN_STAY_##name,
    KILN_IN_STAY_MAP(X)
#undef X
        KILN_IN_STAYS
};

/* "mutex", "condition"...; of those that are none: NULL. */
const char *kiln_in_stay_word(uint8_t reason);

struct kiln_in_stay {
    struct kiln_in_thread *thread;
    struct kiln_in_slot *slot; /* NULL: nobody will be blamed for it */
    uint64_t since_ns;
    uint64_t outer; /* what a handler that waits has interrupted: another wait's frame */
    uint32_t stack; /* 0: not taken yet */
    uint8_t reason, place;
};

/* Of whoever waits or held a lock, made at need; NULL: nothing is measured. */
struct kiln_in_thread *kiln_in_own_block(void);

/* False: there is nothing to measure, and nothing to end.  `frame` is the hook's. */
bool kiln_in_stay_begin(struct kiln_in_stay *stay, enum kiln_in_stay_for what, const void *object,
                        uint64_t frame);
void kiln_in_stay_end(struct kiln_in_stay *stay, bool got);

/* What `call` answers: it may wait, for `object`.  Of a dead owner a robust mutex is got, too. */
#define KILN_IN_TIMED(what, object, call)                                                          \
    __extension__({                                                                                \
        struct kiln_in_stay stay;                                                                  \
        bool is_timed = kiln_in_stay_begin(&stay, what, object, KILN_IN_FRAME);                    \
        int answer = call;                                                                         \
                                                                                                   \
        if (is_timed)                                                                              \
            kiln_in_stay_end(&stay, answer == 0 || answer == EOWNERDEAD);                          \
        answer;                                                                                    \
    })

/*
 * Whoever lets go of a lock that others wait for: asks before how long they have, in nanoseconds
 * (0: nothing to tell), and tells afterwards, when they go on already.
 */
uint64_t kiln_in_holder_settle(const void *lock);
void kiln_in_holder_tell(uint64_t waited_ns, enum kiln_in_stay_for what);

#endif /* KILN_INPROC_SAMPLE_LOCK_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads_now - where each thread of the process is right now.
 *
 * No thread is interrupted for that, so not everything can be known of it: stacks of those that
 * sleep are walked from outside, from the hook that they sleep in, or from what the kernel tells;
 * who runs is where it was seen last, if it was.
 *
 * Threads: from our own.
 */
#ifndef KILN_INPROC_KEEP_THREADS_NOW_H
#define KILN_INPROC_KEEP_THREADS_NOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

enum { KILN_IN_THREAD_NAME_MAX = 16 };

/* What a thread's stack was known by. */
#define KILN_IN_SEEN_MAP(X)                                                                        \
    X(NOWHERE, "unknown") /* it is not known */                                                    \
    X(ASLEEP, "asleep")   /* it sleeps there: its stack was walked from outside */                 \
    X(LAST, "last")       /* it was there when it was sampled last */

enum kiln_in_seen {
#define X(name, word) KILN_IN_SEEN_##name,
    KILN_IN_SEEN_MAP(X)
#undef X
};

const char *kiln_in_seen_word(enum kiln_in_seen seen);

struct kiln_in_thread_now {
    int32_t tid;
    char name[KILN_IN_THREAD_NAME_MAX];
    enum kiln_in_seen seen;
    uint32_t stack;  /* 0: not known */
    uint16_t labels; /* set of labels that it has now */
    bool sleeps;     /* by what the kernel tells: it is in a system call */
};

/*
 * Each thread of the process but our own ones.  0, or a negative errno: it cannot be known which
 * there are.
 */
int kiln_in_threads_now(void (*look)(const struct kiln_in_thread_now *thread, void *arg),
                        void *arg);

#endif /* KILN_INPROC_KEEP_THREADS_NOW_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread - the block of a thread: its ring, room for one stack, random numbers, what it lost.
 *
 * Blocks lie in mapped memory, are made in the first slow path of a thread and used again when it
 * has ended.  They are never unmapped: whoever has a pointer to one may read it.
 *
 *   struct kiln_in_thread *thread = kiln_in_enter();
 *   if (!thread)
 *       return;
 *   ... sample ...
 *   kiln_in_leave(thread);
 *
 * Threads: enter, leave and what is between them on the thread itself, handlers of signals
 * included; kiln_in_threads_each() under the keeper's lock.
 */
#ifndef KILN_INPROC_THREAD_THREAD_H
#define KILN_INPROC_THREAD_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "inproc/sample/cpu.h"
#include "inproc/sample/loop.h"
#include "inproc/thread/ring.h"
#include "inproc/thread/visit.h"

enum {
    KILN_IN_DEPTH_MAX = 512,   /* frames of a stack */
    KILN_IN_DEPTH_SLACK = 16,  /* for frames that are walked and then dropped */
    KILN_IN_THREADS_MAX = 4096 /* with a block at once; further ones are not sampled */
};

/* Why profiles are not what they could be: word in metrics and comments. */
#define KILN_IN_LOSS_MAP(X)                                                                        \
    X(RING, "ring")           /* no room in the thread's ring */                                   \
    X(STACKS, "stacks")       /* no room for a new stack */                                        \
    X(LIVE, "live")           /* no room for another live block */                                 \
    X(INSIDE, "inside")       /* came while the library was at work on the thread */               \
    X(TRUNCATED, "truncated") /* the stack does not reach its thread's start */                    \
    X(RATE, "rate")           /* above the rate that is allowed */                                 \
    X(COUNTS, "counts")       /* no room in the keeper's tables */                                 \
    X(WINDOW, "window")       /* above max_samples_per_export */                                   \
    X(THREADS, "threads")     /* on a thread without block or timer */                             \
    X(THINNED, "thinned")     /* not lost: one for several, as the ring was nearly full */

enum kiln_in_loss {
#define X(name, word) KILN_IN_LOST_##name,
    KILN_IN_LOSS_MAP(X)
#undef X
        KILN_IN_LOSSES
};

enum kiln_in_thread_state { KILN_IN_THREAD_FREE, KILN_IN_THREAD_RUNS, KILN_IN_THREAD_ENDED };

struct kiln_in_thread {
    _Atomic uint32_t state; /* enum kiln_in_thread_state */
    uint32_t index;         /* of the block; the same for ever */
    _Atomic uint32_t next_free;
    _Atomic int32_t tid; /* 0: of nobody */
    int32_t kept_errno;
    uint16_t labels;
    uint64_t random;
    uint64_t began_ns; /* when it got the block */
    uint64_t began_at; /* the function it was made for; 0: it is not known */
    _Atomic uint64_t lost[KILN_IN_LOSSES];

    /* inproc/unwind: bounds of the stack, 0 until they are known */
    uint64_t stack_low, stack_high;
    bool stack_ends; /* the page below is not there */

    /* inproc/sample/timer: its id and whether there is one, and the thread's CPU time at which it
     * expires first; 0: it stands */
    _Atomic uint64_t timer;
    _Atomic uint64_t timer_first_ns;
    struct kiln_in_ticks ticks;
    _Atomic bool narrow; /* inproc/sample/narrow: no timer for it */

    /* inproc/sample/wait, lock, cpu: the frame of the hook that it waits in (0: of none), and where
     * it was sampled last; inproc/keep/threads_now reads them */
    _Atomic uint64_t waits_in;
    _Atomic uint32_t last_stack;
    struct kiln_in_loop loop;

    uint64_t pcs[KILN_IN_DEPTH_MAX + KILN_IN_DEPTH_SLACK];
    struct kiln_in_ring ring;
};

/*
 * Marks the thread as inside and gives its block, made now if need be.  NULL: pass through (not
 * started, inside already, a child of fork that has not started or of vfork, a thread without
 * storage of its own, no memory).
 * Keeps errno aside.  Whoever enters leaves in the same function: its frame has the visit.
 */
#define kiln_in_enter() kiln_in_enter_as(&(struct kiln_in_visit){0})
/* With NULL: it may hold locks that nobody lets go of after a jump, and stays inside then. */
struct kiln_in_thread *kiln_in_enter_as(struct kiln_in_visit *visit);
/* errno is what it was. */
void kiln_in_leave(struct kiln_in_thread *thread);

/* Whether samples are taken at all: hooks ask before they do anything that costs. */
enum { KILN_IN_OFF, KILN_IN_ON, KILN_IN_RESTS /* not yet again */ };
extern _Atomic uint32_t kiln_in_on;
static inline bool kiln_in_is_on(void)
{
    return atomic_load_explicit(&kiln_in_on, memory_order_relaxed) != KILN_IN_OFF;
}

static inline bool kiln_in_is_running(void)
{
    return atomic_load_explicit(&kiln_in_on, memory_order_relaxed) == KILN_IN_ON;
}
/*
 * A forked child starts, if it has lived for long enough, and who wanted to be alone again.  This
 * allocates and makes threads: it is for those places alone at which no allocator holds a lock of
 * its own, behind its calls.
 */
void kiln_in_go_on(void);

/* Whether this is the process that was started, and not a child of vfork in its memory. */
bool kiln_in_is_own_process(void);

/* xorshift; fixed by KILN_SEED for tests. */
uint64_t kiln_in_random(struct kiln_in_thread *thread);
/* The same as a number above 0 and up to 1. */
double kiln_in_random_unit(struct kiln_in_thread *thread);

void kiln_in_lost(struct kiln_in_thread *thread, enum kiln_in_loss why);
/* For the keeper's tables, and where a thread has no block. */
void kiln_in_lost_anywhere(enum kiln_in_loss why, uint64_t n);
/* Of all threads that are and were, since the start. */
uint64_t kiln_in_lost_total(enum kiln_in_loss why);

/* All that run or have ended with records left. */
void kiln_in_threads_each(void (*look)(struct kiln_in_thread *thread, void *arg), void *arg);

/* The thread ends: its block is free once the keeper has its records.  On the thread itself. */
void kiln_in_thread_end(void);

/* ---- the keeper's and start.c's ---- */

/* In a slow path of a forked child: starts everything again where it is time.  False: not yet. */
bool kiln_in_revive(void);

/* Before anything else; may be called again.  0 or a negative errno. */
int kiln_in_threads_init(uint64_t seed);
/* Blocks of threads that ended without saying so (raw clone) are found; what was read is freed. */
void kiln_in_threads_sweep(bool look_for_dead);
/* In a forked child: only the calling thread is left, nothing was lost and nothing is recorded. */
void kiln_in_blocks_forked(void);

#endif /* KILN_INPROC_THREAD_THREAD_H */

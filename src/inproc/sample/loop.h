/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop - how long an event loop is held: from the return of its poll to its next poll, where that
 * took longer than lag_ns, with the stacks that held it.
 *
 * A loop is known by what it polls: the descriptor of epoll, or the place of the call where it is
 * poll() or select(), which many call for a single answer: those are believed after some turns.  A
 * thread has one; polls of others on it, inside of a turn, are part of the turn.  A poll that does
 * not wait ends a turn and begins the next like any other.
 *
 * Who holds it is seen by the ticks of the thread's CPU clock (inproc/sample/cpu.h), which come
 * while it runs, and by its own long waits; where there was neither, it is the stack of the poll
 * that came late.
 *
 * Threads: of the thread itself; caught() also in handlers on it.
 */
#ifndef KILN_INPROC_SAMPLE_LOOP_H
#define KILN_INPROC_SAMPLE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

enum {
    KILN_IN_LOOP_STACKS = 8, /* that are kept of a turn, by chance where there were more */
    KILN_IN_LOOP_TURNS = 3   /* until polls of a place are believed to be one */
};

struct kiln_in_loop {
    int64_t key;       /* 0: none; below 0: of poll() or select() */
    uint64_t since_ns; /* begin of the turn; 0: it polls */
    uint64_t last_ns;  /* begin of the last turn */
    uint32_t turns;    /* so far, KILN_IN_LOOP_TURNS at most */
    uint32_t caught;   /* stacks of this turn, those that were not kept too */
    uint32_t stacks[KILN_IN_LOOP_STACKS];
    float weights[KILN_IN_LOOP_STACKS];
};

struct kiln_in_thread;

/* epoll_wait() of this descriptor; poll() or select() that was called here. */
static inline int64_t kiln_in_loop_of_epoll(int fd)
{
    return (int64_t)fd + 1;
}
static inline int64_t kiln_in_loop_of_call(const void *caller)
{
    return -(int64_t)(uintptr_t)caller;
}

/* The thread polls; its poll has returned. */
void kiln_in_loop_polls(int64_t key, uint64_t now_ns);
void kiln_in_loop_turns(int64_t key, uint64_t now_ns);

/* Whether the thread has one: from the first turn on where it is epoll's, whose first may stall. */
static inline bool kiln_in_loop_is_there(const struct kiln_in_loop *loop)
{
    return loop->turns >= (loop->key > 0 ? 1 : KILN_IN_LOOP_TURNS);
}

/* Whether it is in a turn of a loop. */
static inline bool kiln_in_loop_is_held(const struct kiln_in_loop *loop)
{
    return loop->since_ns && kiln_in_loop_is_there(loop);
}
/* One of the stacks of its turn, which stands for so much of it. */
void kiln_in_loop_caught(struct kiln_in_thread *thread, uint32_t stack, uint64_t ns);

#endif /* KILN_INPROC_SAMPLE_LOOP_H */

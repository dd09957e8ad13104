/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steer - which rate each process is sampled at, by orders (fleet/order.h) that hold for a while.
 *
 * A pause counts more than a boost, and of two boosts the higher rate.  Orders for everything
 * change the rate of all; the others are matched with a process when a sample of it comes, so that
 * new processes of a service join by themselves.  The clocks run faster only once a process is
 * there that needs it.  An order ends by the monotonic clock: a wall clock that is set changes
 * nothing.
 *
 * Threads: one owner, the reader's thread.
 */
#ifndef KILN_HOST_STEER_H
#define KILN_HOST_STEER_H

#include "base/str.h"
#include "fleet/order.h"

/* Where rates of processes are written to. */
struct kiln_steer_opts {
    const char *host_id, *host_name;
    int (*put)(void *context, uint32_t pid, uint32_t hz); /* 0 Hz: paused */
    void (*drop)(void *context, uint32_t pid);
    void *context;
};

struct kiln_steer;
KILN_CHECK int kiln_steer_new(const struct kiln_steer_opts *opts, struct kiln_steer **ret_steer);
void kiln_steer_free(struct kiln_steer *steer);

/* Follows these from now on, and no others. */
KILN_CHECK int kiln_steer_follow(struct kiln_steer *steer, const struct kiln_order *orders,
                                 uint32_t n);
/* Ends what is over at this monotonic time. */
void kiln_steer_tick(struct kiln_steer *steer, uint64_t mono_ns);
/* When the next order ends; UINT64_MAX: none does. */
uint64_t kiln_steer_turns_ns(const struct kiln_steer *steer);

struct kiln_steer_rates {
    uint32_t hz;       /* of processes without an order of their own */
    uint32_t clock_hz; /* of the clocks; 0: they stand */
};
/*
 * What holds now, where everything is sampled at `hz` but for orders, and all of that is lowered so
 * many times (kiln_rate_lower()).
 */
struct kiln_steer_rates kiln_steer_rates(struct kiln_steer *steer, uint32_t hz, uint32_t lowered);

struct kiln_steered {
    uint32_t pid;
    uint64_t start_ns, start_unix_ns; /* since the machine was started; 0: not known */
    struct kiln_str service, container_id, container_name;
};
/* A sample came of this process: whether it is wanted. */
bool kiln_steer_process(struct kiln_steer *steer, const struct kiln_steered *process);
/* It ended, or runs another program. */
void kiln_steer_forget(struct kiln_steer *steer, uint32_t pid);
/* Who ended was not seen: all are met anew. */
void kiln_steer_forget_all(struct kiln_steer *steer);

struct kiln_steer_stats {
    uint32_t orders, boosted, paused; /* of processes: seen since the order began */
    bool all_paused;
};
void kiln_steer_stats(const struct kiln_steer *steer, struct kiln_steer_stats *ret_stats);

/* The highest prime that is at most half of it, so often; never less than 1. */
uint32_t kiln_rate_lower(uint32_t hz, uint32_t times);

#endif /* KILN_HOST_STEER_H */

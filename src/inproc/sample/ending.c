/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler may have come into anything: the allocator, a lock, one of our own paths.  It does
 * nothing but ring a bell and hear another, for so long at most.  What is exported meanwhile is
 * what other threads may look at; where they need what this one holds, the time runs out.
 */
#include "inproc/sample/ending.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "inproc/clock.h"
#include "inproc/keep/keep_int.h"
#include "inproc/sample/signal.h"
#include "inproc/start.h"
#include "inproc/thread/ring.h"
#include "inproc/thread/sandbox.h"
#include "inproc/thread/thread.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

enum { NOBODY, WAITS, TOLD };

static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
static _Atomic bool is_armed; /* there is a keeper who hears of it */
static _Atomic bool is_given_up;
static _Atomic int state;
static struct kiln_in_bell told;

/* ---- in the handler ---- */

void kiln_in_ending_let_through(struct sigaction *action)
{
    for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        sigdelset(&action->sa_mask, signals[i]);
    action->sa_flags |= SA_NODEFER;
}

/* A child of fork or vfork is ended as it is; so is who has given up system calls. */
static bool can_wait(void)
{
    return atomic_load(&is_armed) && kiln_in_is_running() && kiln_in_is_own_process() &&
           !kiln_in_is_sandboxed();
}

void kiln_in_ending_hold_up(void)
{
    uint64_t until_ns = kiln_in_now_ns() + kiln_in_settings.signal_ms * NS_PER_MS;
    struct timespec until = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};
    uint32_t rung = atomic_load(&told.rung);
    int nobody = NOBODY;

    if (!can_wait() || !atomic_compare_exchange_strong(&state, &nobody, WAITS))
        return;
    kiln_in_keep_after_fork(); /* which will not be: the keeper needs what was held for it */
    kiln_in_bell_ring(&kiln_in_keeper_bell);
    while (atomic_load(&state) == WAITS && kiln_in_bell_wait(&told, rung, &until))
        rung = atomic_load(&told.rung);
}

/* ---- the program's ---- */

bool kiln_in_ending_is_given_up(void)
{
    return atomic_load(&is_given_up);
}

void kiln_in_ending_give_up(void)
{
    int kept_errno = errno;

    if (atomic_exchange(&is_given_up, true))
        return;
    for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        if (kiln_in_signal_is_ours(signals[i]))
            kiln_in_signal_let_go(signals[i]);
    errno = kept_errno;
}

/* ---- the keeper's ---- */

bool kiln_in_ending_is_due(void)
{
    return atomic_load(&state) == WAITS;
}

void kiln_in_ending_look(void)
{
    if (!kiln_in_ending_is_due())
        return;
    if (kiln_in_out_flush)
        (void)kiln_in_out_flush(kiln_in_settings.signal_ms);
    atomic_store(&state, TOLD);
    kiln_in_bell_ring(&told);
}

/* ---- the part ---- */

/* The first process of a container is not ended by what it has no handler for. */
int kiln_in_ending_start(void)
{
    atomic_store(&state, NOBODY);
    if (kiln_in_settings.signal_ms == 0 || getpid() == 1 || kiln_in_ending_is_given_up() ||
        kiln_in_is_sandboxed())
        return 0;
    for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        (void)kiln_in_signal_keep(signals[i]); /* where it fails, nothing is held up */
    atomic_store(&is_armed, true);
    return 0;
}

void kiln_in_ending_stop(void)
{
    atomic_store(&is_armed, false);
}

void kiln_in_ending_forked(void)
{
    atomic_store(&is_armed, false);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/sample/shield.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inproc/hook/next_calls.h"
#include "inproc/sample/signal.h"
#include "inproc/thread/thread.h"

enum { SIGNALS = 65 };

static _Atomic bool is_on;
static _Atomic uint64_t added[SIGNALS]; /* to the mask of its handler, by us */

static bool is_handler_on_stack(const struct sigaction *action)
{
    return (action->sa_flags & SA_ONSTACK) && action->sa_handler != SIG_DFL &&
           action->sa_handler != SIG_IGN;
}

/* The bit of what it blocks in addition; 0: nothing. */
static uint64_t cover(struct sigaction *action)
{
    int tick = kiln_in_signal_now();

    if (!atomic_load(&is_on) || tick == 0 || !is_handler_on_stack(action) ||
        sigismember(&action->sa_mask, tick) == 1)
        return 0;
    sigaddset(&action->sa_mask, tick);
    return UINT64_C(1) << (tick - 1);
}

static void uncover(uint64_t bits, struct sigaction *action)
{
    for (int sig = 1; sig < SIGNALS && bits; sig++, bits >>= 1)
        if (bits & 1)
            sigdelset(&action->sa_mask, sig);
}

/* In a child of vfork what is known here is its parent's. */
int kiln_in_shield_action(int sig, const struct sigaction *set, struct sigaction *ret_old)
{
    bool counts = atomic_load(&is_on) && sig > 0 && sig < SIGNALS;
    bool keeps = counts && set && kiln_in_is_own_process();
    uint64_t before = counts ? atomic_load(&added[sig]) : 0, bits = 0;
    struct sigaction covered;
    int r;

    if (keeps) {
        covered = *set;
        bits = cover(&covered);
    }
    r = kiln_in_next_calls.sigaction(sig, bits ? &covered : set, ret_old);
    if (r == 0 && ret_old)
        uncover(before, ret_old);
    if (r == 0 && keeps)
        atomic_store(&added[sig], bits);
    return r;
}

void kiln_in_shield_renew(void)
{
    for (int sig = 1; sig < SIGNALS && atomic_load(&is_on); sig++) {
        struct sigaction action;
        uint64_t bits;

        if (kiln_in_signal_is_ours(sig) || kiln_in_next_calls.sigaction(sig, NULL, &action) != 0)
            continue;
        bits = cover(&action);
        if (bits && kiln_in_next_calls.sigaction(sig, &action, NULL) == 0)
            atomic_fetch_or(&added[sig], bits);
    }
}

void kiln_in_shield_begin(void)
{
    if (!atomic_exchange(&is_on, true))
        kiln_in_shield_renew();
}

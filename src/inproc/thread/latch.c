/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/thread/latch.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- the kernel ---- */

/* 0 or an errno. */
static int futex_wait(_Atomic uint32_t *at, uint32_t value, const struct timespec *until)
{
    int kept = errno, error = 0;

    if (syscall(SYS_futex, at, FUTEX_WAIT_BITSET_PRIVATE, value, until, NULL,
                FUTEX_BITSET_MATCH_ANY) < 0)
        error = errno;
    errno = kept;
    return error;
}

static void futex_wake(_Atomic uint32_t *at, int most)
{
    int kept = errno;

    syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
    errno = kept;
}

/* ---- latches ---- */

bool kiln_in_latch_try(struct kiln_in_latch *latch)
{
    uint32_t free = 0;

    return atomic_compare_exchange_strong_explicit(&latch->word, &free, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

void kiln_in_latch_take(struct kiln_in_latch *latch)
{
    if (kiln_in_latch_try(latch))
        return;
    while (atomic_exchange_explicit(&latch->word, 2, memory_order_acquire) != 0)
        (void)futex_wait(&latch->word, 2, NULL);
}

void kiln_in_latch_give(struct kiln_in_latch *latch)
{
    if (atomic_exchange_explicit(&latch->word, 0, memory_order_release) == 2)
        futex_wake(&latch->word, 1);
}

/* ---- bells ---- */

bool kiln_in_bell_hear(struct kiln_in_bell *bell, uint32_t rung, const struct timespec *until)
{
    return futex_wait(&bell->rung, rung, until) != ETIMEDOUT;
}

bool kiln_in_bell_wait(struct kiln_in_bell *bell, struct kiln_in_latch *latch,
                       const struct timespec *until)
{
    uint32_t rung = atomic_load(&bell->rung);
    bool heard;

    kiln_in_latch_give(latch);
    heard = kiln_in_bell_hear(bell, rung, until);
    kiln_in_latch_take(latch);
    return heard;
}

void kiln_in_bell_ring(struct kiln_in_bell *bell, int most)
{
    atomic_fetch_add(&bell->rung, 1);
    futex_wake(&bell->rung, most);
}

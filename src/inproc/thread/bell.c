/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/thread/bell.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

bool kiln_in_bell_wait(struct kiln_in_bell *bell, uint32_t rung, const struct timespec *until)
{
    int kept = errno;
    bool late = syscall(SYS_futex, &bell->rung, FUTEX_WAIT_BITSET_PRIVATE, rung, until, NULL,
                        FUTEX_BITSET_MATCH_ANY) < 0 &&
                errno == ETIMEDOUT;

    errno = kept;
    return !late;
}

void kiln_in_bell_ring(struct kiln_in_bell *bell)
{
    int kept = errno;

    atomic_fetch_add(&bell->rung, 1);
    syscall(SYS_futex, &bell->rung, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = kept;
}

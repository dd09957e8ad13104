/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stdatomic.h>

static _Atomic uint64_t frozen_ns;

static uint64_t now(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return kiln_timespec_ns(ts);
}

uint64_t kiln_clock_unix_ns(void)
{
    uint64_t frozen = atomic_load_explicit(&frozen_ns, memory_order_relaxed);

    return frozen ? frozen : now(CLOCK_REALTIME);
}

uint64_t kiln_clock_mono_ns(void)
{
    return now(CLOCK_MONOTONIC);
}

uint64_t kiln_clock_boot_ns(void)
{
    return now(CLOCK_BOOTTIME);
}

void kiln_clock_set(uint64_t unix_ns)
{
    atomic_store(&frozen_ns, unix_ns);
}

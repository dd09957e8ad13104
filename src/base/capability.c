/* SPDX-License-Identifier: Apache-2.0 */
#include "base/capability.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CAPABILITIES_MAX = 64 };

/* In the kernel's shape: a low and a high half. */
struct halves {
    struct __user_cap_data_struct low, high;
};

static int get(struct halves *ret_halves)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};

    return syscall(SYS_capget, &head, ret_halves) < 0 ? -errno : 0;
}

static uint64_t join(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

uint64_t kiln_capabilities(void)
{
    struct halves halves;

    return get(&halves) < 0 ? UINT64_MAX : join(halves.low.effective, halves.high.effective);
}

int kiln_capabilities_effect(uint64_t set)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct halves halves;
    int r = get(&halves);

    halves.low.effective = (uint32_t)set;
    halves.high.effective = (uint32_t)(set >> 32);
    return r < 0 ? r : syscall(SYS_capset, &head, &halves) < 0 ? -errno : 0;
}

void kiln_capabilities_bound(uint64_t set)
{
    for (unsigned long i = 0; i < CAPABILITIES_MAX; i++) {
        if (!(set & KILN_CAP(i)) && prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0 && errno == EINVAL)
            break;
    }
}

int kiln_capabilities_keep(uint64_t set)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct halves halves;
    uint64_t kept;
    int r = get(&halves);

    if (r < 0)
        return r;
    kept = set & join(halves.low.permitted, halves.high.permitted);
    kiln_capabilities_bound(kept);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    halves = (struct halves){
        .low = {.effective = (uint32_t)kept, .permitted = (uint32_t)kept},
        .high = {.effective = (uint32_t)(kept >> 32), .permitted = (uint32_t)(kept >> 32)}};
    return syscall(SYS_capset, &head, &halves) < 0 ? -errno : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CAP_BPF, CAP_PERFMON and CAP_CHECKPOINT_RESTORE were split off CAP_SYS_ADMIN: who has that one
 * alone is served, too, and keeps it.  CAP_SYSLOG was, too, but not for addresses of functions.
 */
#include "host/grants.h"

#include "base/capability.h"

const struct kiln_grant kiln_grants[KILN_GRANTS] = {
    {CAP_BPF, "CAP_BPF", "loading programs into the kernel", "nothing can be profiled", true},
    {CAP_PERFMON, "CAP_PERFMON", "clocks on every processor, and reading stacks",
     "nothing can be profiled", true},
    {CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "mappings and files of other users' processes",
     "perf-maps and debug files in containers are not found; before Linux 6.15 stacks of other "
     "users' processes end at the first frame, without names",
     false},
    {CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH",
     "files of programs that not everybody may read, and variables of other users' processes",
     "other users' processes are called by their executable, whatever OTEL_SERVICE_NAME says, and "
     "stacks in programs that this user may not read end at the first frame, without names",
     false},
    {CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE",
     "files that were replaced or removed while they run",
     "stacks in programs that were replaced or removed while they run are not complete, until "
     "those start again",
     false},
    {CAP_SYSLOG, "CAP_SYSLOG", "addresses of the kernel's functions",
     "functions of the kernel have no names", false},
    {CAP_IPC_LOCK, "CAP_IPC_LOCK", "buffers for what processes start and map, of any size",
     "these buffers share what kernel.perf_event_mlock_kb allows a user, and are smaller where "
     "that is spent: of very many processes that start at once some are noticed late",
     false},
};

static bool admin_stands_for(int number)
{
    return number == CAP_BPF || number == CAP_PERFMON || number == CAP_CHECKPOINT_RESTORE;
}

bool kiln_grant_held(const struct kiln_grant *grant, uint64_t set)
{
    return set & KILN_CAP(grant->number) ||
           (admin_stands_for(grant->number) && set & KILN_CAP(CAP_SYS_ADMIN));
}

uint64_t kiln_grants_of(uint64_t set)
{
    uint64_t kept = 0;

    for (int i = 0; i < KILN_GRANTS; i++) {
        if (set & KILN_CAP(kiln_grants[i].number))
            kept |= KILN_CAP(kiln_grants[i].number);
        else if (admin_stands_for(kiln_grants[i].number))
            kept |= set & KILN_CAP(CAP_SYS_ADMIN);
    }
    return kept;
}

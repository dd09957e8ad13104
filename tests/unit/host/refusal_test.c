/* SPDX-License-Identifier: Apache-2.0 */
#include "host/refusal.h"

#include <errno.h>
#include <string.h>

#include "base/capability.h"
#include "test.h"

#define BOTH (KILN_CAP(CAP_BPF) | KILN_CAP(CAP_PERFMON))

static void check_why(const struct kiln_restraints *restraints, enum kiln_step step, int code,
                      const char *word)
{
    const struct kiln_refusal *refusal = kiln_refusal_of(restraints, step, code);

    if (!strstr(refusal->why, word))
        fail_msg("\"%s\" does not name %s", refusal->why, word);
    CHECK(refusal->advice[0]);
}

TEST(refusal, is_told_apart_by_what_the_kernel_says)
{
    struct kiln_restraints plain = {.capabilities = BOTH}, other = plain;

    check_why(&plain, KILN_STEP_LOAD, -EPERM, "security module");
    check_why(&plain, KILN_STEP_BUFFER, -EPERM, "memory for buffers");
    other.filtered = true;
    check_why(&other, KILN_STEP_LOAD, -EPERM, "seccomp");
    check_why(&other, KILN_STEP_EVENT, -EPERM, "seccomp");
    other.locked_down = true;
    check_why(&other, KILN_STEP_EVENT, -EPERM, "locked down");
    other.in_namespace = true;
    check_why(&other, KILN_STEP_LOAD, -EPERM, "user namespace");
    other.capabilities = KILN_CAP(CAP_BPF);
    check_why(&other, KILN_STEP_LOAD, -EPERM, "CAP_PERFMON");
}

TEST(refusal, by_paranoid_is_of_events_and_of_processes_without_cap_sys_admin)
{
    struct kiln_restraints restraints = {.capabilities = BOTH, .paranoid = 3, .filtered = true};

    check_why(&restraints, KILN_STEP_EVENT, -EACCES, "perf_event_paranoid");
    check_why(&restraints, KILN_STEP_EVENT, -EPERM, "seccomp");
    check_why(&restraints, KILN_STEP_LOAD, -EACCES, "seccomp");
    restraints.paranoid = 2;
    check_why(&restraints, KILN_STEP_EVENT, -EACCES, "seccomp");
    restraints.paranoid = 4;
    restraints.capabilities |= KILN_CAP(CAP_SYS_ADMIN);
    check_why(&restraints, KILN_STEP_EVENT, -EACCES, "seccomp");
}

TEST(refusal, advice_to_a_process_that_has_all_capabilities_is_not_to_run_as_root)
{
    struct kiln_restraints root = {.capabilities = UINT64_MAX, .paranoid = 4};

    for (int filtered = 0; filtered < 2; filtered++) {
        root.filtered = filtered;
        for (int step = KILN_STEP_LOAD; step <= KILN_STEP_BUFFER; step++)
            CHECK(!strstr(kiln_refusal_of(&root, step, -EACCES)->advice, "as root"));
    }
}

TEST(refusal, restraints_of_this_process_are_read)
{
    struct kiln_restraints restraints;

    kiln_restraints_read(&restraints);
    CHECK_EQ(restraints.capabilities, kiln_capabilities());
    CHECK(restraints.paranoid >= -1);
}

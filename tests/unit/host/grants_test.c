/* SPDX-License-Identifier: Apache-2.0 */
#include "host/grants.h"

#include <string.h>

#include "base/capability.h"
#include "test.h"

static const struct kiln_grant *named(const char *name)
{
    for (int i = 0; i < KILN_GRANTS; i++) {
        if (strcmp(kiln_grants[i].name, name) == 0)
            return &kiln_grants[i];
    }
    return NULL;
}

TEST(grants, are_all_that_is_kept_of_root)
{
    uint64_t kept = kiln_grants_of(UINT64_MAX);

    CHECK_EQ(__builtin_popcountll(kept), KILN_GRANTS);
    for (int i = 0; i < KILN_GRANTS; i++) {
        CHECK(kept & KILN_CAP(kiln_grants[i].number));
        CHECK(strstr(KILN_GRANT_NAMES, kiln_grants[i].name));
        CHECK(kiln_grant_held(&kiln_grants[i], kept));
        CHECK(!kiln_grant_held(&kiln_grants[i], 0));
    }
}

TEST(grants, are_stood_in_for_by_the_one_that_they_were_split_from)
{
    const uint64_t admin = KILN_CAP(CAP_SYS_ADMIN) | KILN_CAP(CAP_NET_ADMIN);

    CHECK_EQ(kiln_grants_of(admin), KILN_CAP(CAP_SYS_ADMIN));
    CHECK(kiln_grant_held(named("CAP_BPF"), admin));
    CHECK(kiln_grant_held(named("CAP_PERFMON"), admin));
    CHECK(!kiln_grant_held(named("CAP_SYS_PTRACE"), admin));
    CHECK(!kiln_grant_held(named("CAP_SYSLOG"), admin));
    CHECK(!kiln_grant_held(named("CAP_IPC_LOCK"), admin));
}

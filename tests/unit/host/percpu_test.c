/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "host/percpu.h"

TEST(percpu, lists_of_processors_are_read)
{
    static bool online[KILN_CPUS_MAX];
    CHECK_EQ(kiln_cpus_parse("0-2,5\n", online), 6);
    CHECK(online[0] && online[2] && !online[3] && online[5]);
    CHECK_EQ(kiln_cpus_parse("0", online), 1);
    const char *bad[] = {"", "x", "3-1", "0-8192", "1 2", "-1", "0-", ",1", "99999999999999999999"};
    for (size_t i = 0; i < KILN_ARRAY_LEN(bad); i++)
        CHECK_EQ(kiln_cpus_parse(bad[i], online), KILN_E_MALFORMED);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/err.h"
#include "base/mem.h"
#include "starved.h"
#include "test.h"

/* More than anything asks for: whoever fails for ever is found out. */
#define ALLOCATIONS_MAX 100000u

bool kiln_test_starve(struct kiln_starved *s)
{
    if (s->n == 0) {
        s->live = kiln_mem_live();
    } else {
        kiln_mem_fail_at(0);
        if (s->r == 0)
            return false;
        /* Who has a budget cannot always tell the two apart. */
        CHECK(s->r == -ENOMEM || s->r == KILN_E_LIMIT);
        CHECK_EQ(kiln_mem_live(), s->live);
    }
    CHECK(s->n < ALLOCATIONS_MAX);
    kiln_mem_fail_at(++s->n);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/thread/sandbox.h"

#include <stdatomic.h>

#include "inproc/unwind/peek.h"

static _Atomic bool has_begun;

void kiln_in_sandbox_begin(void)
{
    atomic_store_explicit(&has_begun, true, memory_order_relaxed);
    kiln_in_peek_be_cautious();
}

bool kiln_in_is_sandboxed(void)
{
    return atomic_load_explicit(&has_begun, memory_order_relaxed);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/unwind/bounds.h"

#include "inproc/thread/thread.h"
#include "inproc/unwind/arch.h"
#include "inproc/unwind/objects.h"
#include "inproc/unwind/peek.h"

enum { PAGES_AT_ONCE = 64, STACK_MAX = 64 << 20 };

static bool is_near(uint64_t sp, uint64_t top)
{
    return sp < top && top - sp <= STACK_MAX;
}

/*
 * The end of the stack that a stack pointer may be on; 0: none that is known.  Below the storage of
 * a thread lies its stack, but below that of the first one lies what happens to be mapped there.
 */
static uint64_t top_of(uint64_t sp)
{
    uint64_t own = kiln_in_arch_thread_pointer() & ~(uint64_t)7;

    if (is_near(sp, own) && own != kiln_in_object_main_pointer)
        return own;
    return is_near(sp, kiln_in_object_stack_end) ? kiln_in_object_stack_end : 0;
}

/* Goes down from what is known, until a page is not there or enough was done for once. */
static void descend(struct kiln_in_thread *thread, uint64_t sp)
{
    uint64_t page = sp & ~(uint64_t)(KILN_IN_PAGE - 1);

    for (int i = 0; i < PAGES_AT_ONCE && thread->stack_low > page; i++) {
        uint64_t next = (thread->stack_low - 1) & ~(uint64_t)(KILN_IN_PAGE - 1);

        if (!kiln_in_peek_is_there(next)) {
            thread->stack_ends = true;
            return;
        }
        thread->stack_low = next;
    }
}

void kiln_in_bounds(struct kiln_in_thread *thread, uint64_t sp, uint64_t *ret_low,
                    uint64_t *ret_high)
{
    uint64_t top = top_of(sp);

    *ret_low = *ret_high = 0;
    if (!top)
        return;
    if (thread->stack_high != top) {
        thread->stack_low = thread->stack_high = top;
        thread->stack_ends = false;
    }
    if (sp < thread->stack_low && !thread->stack_ends)
        descend(thread, sp);
    if (sp < thread->stack_low)
        return;
    *ret_low = sp & ~(uint64_t)(KILN_IN_PAGE - 1);
    *ret_high = top;
}

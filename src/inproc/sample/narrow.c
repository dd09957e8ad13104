/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much the kernel puts there depends on the processor: registers that only a program with
 * permission has (AMX, 8 KiB) count for those alone.
 */
#include "inproc/sample/narrow.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inproc/sample/cpu.h"
#include "inproc/sample/ending.h"
#include "inproc/sample/timer.h"
#include "inproc/thread/line.h"
#include "inproc/thread/sandbox.h"
#include "inproc/thread/thread.h"
#include "inproc/thread/visit.h"

enum {
    HANDLER = 3072,      /* twice what ours was seen to use */
    THEIRS = 8192,       /* what a handler of the program's may use */
    FRAME_USUAL = 3584,  /* the kernel's, without registers that need permission */
    FRAME_UNKNOWN = 2048 /* where an older kernel does not say */
};

static _Atomic bool is_unknown;

/* ---- how small is too small ---- */

/* Whether frames may have registers that are not the usual ones. */
static bool has_more_registers(void)
{
#if defined(__x86_64__)
    enum { GET_PERMISSIONS = 0x1022, TILES = 18 };
    uint64_t permissions = 0;

    return kiln_in_is_sandboxed() || (syscall(SYS_arch_prctl, GET_PERMISSIONS, &permissions) == 0 &&
                                      permissions >> TILES & 1);
#else
    return true;
#endif
}

static size_t frame_bytes(void)
{
    size_t most = getauxval(AT_MINSIGSTKSZ);

    if (most == 0)
        return FRAME_UNKNOWN;
    return most <= FRAME_USUAL || has_more_registers() ? most : FRAME_USUAL;
}

static bool is_smaller(const stack_t *stack, unsigned frames, size_t more)
{
    int kept_errno = errno;
    bool is = !(stack->ss_flags & SS_DISABLE) && stack->ss_size < frames * frame_bytes() + more;

    errno = kept_errno;
    return is;
}

bool kiln_in_stack_is_narrow(const stack_t *stack)
{
    return is_smaller(stack, 1, HANDLER);
}

bool kiln_in_stack_is_tight(const stack_t *stack)
{
    return is_smaller(stack, 2, HANDLER + THEIRS);
}

/* ---- threads ---- */

bool kiln_in_narrow_unknown(void)
{
    return atomic_load(&is_unknown);
}

/* It is told by a block, which the thread gets here if it has none. */
static struct kiln_in_thread *own_block(void)
{
    struct kiln_in_thread *fresh;

    if (kiln_in_line.thread)
        return kiln_in_line.thread;
    fresh = kiln_in_enter();
    if (fresh)
        kiln_in_leave(fresh);
    return fresh;
}

/* A tick that is pending comes with the return from the call that takes the timer away. */
static void take_timer(struct kiln_in_thread *thread)
{
    kiln_in_hush();
    kiln_in_cpu_thread_ends(thread);
    kiln_in_timer_refuse(thread);
    kiln_in_unhush();
    kiln_in_lost(thread, KILN_IN_LOST_THREADS);
}

static bool is_child_of_vfork(const struct kiln_in_thread *thread)
{
    return thread && atomic_load(&thread->tid) != (int32_t)syscall(SYS_gettid);
}

void kiln_in_narrow_set(bool is_narrow)
{
    int kept_errno = errno;
    struct kiln_in_thread *thread;

    if (is_child_of_vfork(kiln_in_line.thread))
        return;
    if (is_narrow)
        kiln_in_ending_give_up();
    kiln_in_line.narrow = is_narrow;
    thread = own_block();
    if (thread)
        atomic_store(&thread->narrow, is_narrow);
    if (!thread && is_narrow)
        atomic_store(&is_unknown, true);
    else if (thread && is_narrow)
        take_timer(thread);
    else
        kiln_in_cpu_thread_begins();
    errno = kept_errno;
}

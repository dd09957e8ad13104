/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/thread/visit.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inproc/sample/live.h"
#include "inproc/sample/region.h"
#include "inproc/sample/timer.h"
#include "inproc/thread/thread.h"
#include "inproc/unwind/peek.h"
#include "inproc/unwind/room.h"

enum { SCRATCH_WORDS = 128 };

static uint64_t word_of(const struct kiln_in_visit *visit)
{
    return (uint64_t)(uintptr_t)visit * 0x9e3779b97f4a7c15 ^ 0x6b696c6e76697369;
}

/* It begins, and ends, with the store of one word: a handler, or a jump, comes before or after. */
void kiln_in_visit_begin(struct kiln_in_visit *visit)
{
    visit->word = word_of(visit);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (!kiln_in_line.visit)
        kiln_in_line.visit = visit;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void kiln_in_visit_end(struct kiln_in_visit *visit)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (kiln_in_line.visit == visit)
        kiln_in_line.visit = NULL;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    visit->word = 0; /* nobody shall find it who looks into this place later */
}

/* ---- left by a jump ---- */

/*
 * What lies in this frame is not that of somebody else: most visits that are gone were where we are
 * now, or a little below.  The thread's own stack is there as long as the thread is; others may not
 * be.
 */
static __attribute__((noinline)) bool is_gone(const struct kiln_in_visit *visit)
{
    const struct kiln_in_thread *thread = kiln_in_line.thread;
    uint64_t at = (uint64_t)(uintptr_t)visit, word = 0;
    volatile uint64_t scratch[SCRATCH_WORDS] __attribute__((unused));

    for (unsigned i = 0; i < SCRATCH_WORDS; i++)
        scratch[i] = 0;
    if (thread && at >= thread->stack_low && at < thread->stack_high)
        return __atomic_load_n(&visit->word, __ATOMIC_RELAXED) != word_of(visit);
    if (kiln_in_peek_is_cautious())
        return false;
    if (kiln_in_peek(at, &word, sizeof(word)) == sizeof(word))
        return word != word_of(visit);
    return !kiln_in_peek_is_cautious();
}

/* This is a visit too, in place of the one that is gone. */
static void let_go(void)
{
    struct kiln_in_visit visit;

    visit.word = word_of(&visit);
    kiln_in_line.visit = &visit;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    kiln_in_live_left();
    kiln_in_region_left();
    kiln_in_rooms_left();
    if (kiln_in_line.thread)
        kiln_in_timer_left(kiln_in_line.thread);
    kiln_in_visit_end(&visit);
}

/* A child of vfork has the line of its parent, whose frames are there. */
static bool is_own_line(struct kiln_in_thread *thread)
{
    return thread ? atomic_load_explicit(&thread->tid, memory_order_relaxed) == syscall(SYS_gettid)
                  : kiln_in_is_own_process();
}

bool kiln_in_visit_lasts(void)
{
    const struct kiln_in_visit *visit = kiln_in_line.visit;
    int kept_errno = errno;
    bool gone = !visit || (is_own_line(kiln_in_line.thread) && is_gone(visit));

    if (visit && gone)
        let_go();
    errno = kept_errno;
    return !gone;
}

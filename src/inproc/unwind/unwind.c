/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk begins in the function that was called, whose registers are known and whose own frame is
 * not kept, or where a signal came.
 */
#include "inproc/unwind/unwind.h"

#include <ucontext.h>

#include "inproc/start.h"
#include "inproc/thread/stacks.h"
#include "inproc/thread/thread.h"
#include "inproc/unwind/cache.h"
#include "inproc/unwind/objects.h"
#include "inproc/unwind/peek.h"
#include "inproc/unwind/room.h"
#include "inproc/unwind/tail.h"
#include "inproc/unwind/touched.h"
#include "inproc/unwind/walk.h"

enum { STATUS_TURNS = 10 };

static unsigned run(struct kiln_in_walk *walk, struct kiln_in_thread *thread, unsigned depth)
{
    walk->thread = thread;
    walk->pcs = thread->pcs;
    walk->depth = depth < KILN_IN_DEPTH_MAX ? depth : KILN_IN_DEPTH_MAX;
    kiln_in_walk_run(walk);
    if (!walk->is_whole)
        kiln_in_lost(thread, KILN_IN_LOST_TRUNCATED);
    return walk->n;
}

__attribute__((noinline)) unsigned kiln_in_unwind_here(struct kiln_in_thread *thread,
                                                       unsigned depth)
{
    struct kiln_in_walk walk;

    walk.leaf = kiln_in_arch_here(&walk.regs);
    walk.skip = walk.leaf;
    return run(&walk, thread, depth);
}

unsigned kiln_in_unwind_context(struct kiln_in_thread *thread, const void *ucontext, unsigned depth)
{
    struct kiln_in_walk walk;

    kiln_in_arch_saved(kiln_in_arch_context(ucontext), &walk.regs);
    walk.leaf = true;
    walk.skip = 0;
    return run(&walk, thread, depth);
}

unsigned kiln_in_unwind_other(uint64_t pc, uint64_t sp, uint64_t *pcs, unsigned depth)
{
    struct kiln_in_walk walk = {.pcs = pcs, .depth = depth, .leaf = true};

    walk.regs.pc = pc;
    walk.regs.r[KILN_IN_SP] = sp;
    kiln_in_walk_run(&walk);
    return walk.n;
}

/* A frame is the caller's frame pointer and the address that it goes on at. */
unsigned kiln_in_unwind_above(uint64_t frame, uint64_t *pcs, unsigned depth)
{
    struct kiln_in_walk walk = {.pcs = pcs, .depth = depth};
    uint64_t words[2];

    if (kiln_in_peek(frame, words, sizeof(words)) != sizeof(words))
        return 0;
    walk.regs.pc = words[1];
    walk.regs.r[KILN_IN_SP] = frame + sizeof(words);
    walk.regs.r[KILN_IN_FP] = words[0];
    kiln_in_walk_run(&walk);
    return walk.n;
}

__attribute__((noinline)) uint32_t kiln_in_stack_here(struct kiln_in_thread *thread)
{
    struct kiln_in_walk walk;
    uint32_t id;
    unsigned n;

    walk.leaf = kiln_in_arch_here(&walk.regs);
    walk.skip = walk.leaf;
    n = run(&walk, thread, kiln_in_settings.depth);
    n = kiln_in_tail_mend(thread->pcs, n, kiln_in_settings.depth);
    id = kiln_in_stack_id(thread->pcs, n);
    if (!id)
        kiln_in_lost(thread, KILN_IN_LOST_STACKS);
    return id;
}

int kiln_in_unwind_start(void)
{
    kiln_in_peek_look_around();
    kiln_in_tail_start();
    return 0;
}

void kiln_in_unwind_work(void)
{
    static uint32_t turn;

    if (turn++ % STATUS_TURNS == 0)
        kiln_in_peek_look_around();
    if (kiln_in_object_work())
        kiln_in_cache_forget();
    kiln_in_touched_let_go();
}

void kiln_in_unwind_forked(void)
{
    kiln_in_rooms_forked();
}

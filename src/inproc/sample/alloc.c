/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points lie at random along the bytes that a thread allocates, `mean` bytes apart on average; an
 * allocation that has one is sampled, and stands for 1 / p of its kind, where p is how likely one
 * of its size has a point.  That is unbiased whatever the sizes are, and as long as p is that of
 * the mean the point was drawn with, also while the mean changes.
 *
 * The line of a thread counts down to the next point.  Long distances are walked in pieces, so that
 * a thread hears of a new mean in time: at the end of a piece (`alloc_cut`) the rest of the
 * allocation that crosses it gets its chance by the old mean, and whatever follows by the new one.
 * A thread that begins is at the end of a piece of no length: its first distance is random.
 *
 * Where nothing is sampled (not started, switched off, a child of vfork) the count is wound up by
 * IDLE bytes at a time.
 */
#include "inproc/sample/alloc.h"

#include <string.h>

#include "inproc/clock.h"
#include "inproc/sample/live.h"
#include "inproc/sample/poisson.h"
#include "inproc/sample/probe.h"
#include "inproc/sample/rate.h"
#include "inproc/sample/region.h"
#include "inproc/start.h"
#include "inproc/thread/thread.h"
#include "inproc/unwind/unwind.h"

enum { IDLE = 64 << 10, UNWANTED = 1 << 30, PIECE = 16 << 20 };

static struct kiln_in_rate rate;

KILN_IN_PROBE_SEMAPHORE(otel_memory, alloc);
KILN_IN_PROBE_SEMAPHORE(otel_memory, free);

/* ---- counting down ---- */

static void wind_up(struct kiln_in_thread *thread)
{
    uint64_t mean = kiln_in_rate_mean(&rate);
    uint64_t gap = kiln_in_poisson_gap(kiln_in_random_unit(thread), (double)mean);

    kiln_in_line.alloc_mean = mean;
    kiln_in_line.alloc_cut = gap > PIECE;
    kiln_in_line.alloc_left = (int64_t)(gap > PIECE ? PIECE : gap);
}

/* The next call of kiln_in_alloc_made() begins as in a new thread. */
static void idle(void)
{
    bool unwanted = kiln_in_is_running() && !kiln_in_wants(KILN_PROFILE_ALLOC | KILN_PROFILE_HEAP);

    kiln_in_line.alloc_mean = 0;
    kiln_in_line.alloc_left = unwanted ? UNWANTED : IDLE;
}

/* A distance that has come to its end. */
struct end {
    uint64_t beyond; /* bytes of the allocation that lie behind it */
    uint64_t mean;   /* 0: there was none */
    bool cut;
};

/* It is wound up before anything else: whoever jumps out of us leaves nothing half done. */
static struct end take_end(void)
{
    struct end end = {-(uint64_t)kiln_in_line.alloc_left, kiln_in_line.alloc_mean,
                      kiln_in_line.alloc_cut};

    idle();
    return end;
}

/*
 * Whether a point lies in what was asked for.  No bytes have none, even where a count was left
 * below zero by a jump, or by a call that a handler has come into: they would weigh without end.
 */
static bool is_due(struct kiln_in_thread *thread, struct end *end, size_t size)
{
    if (size == 0)
        return false;
    if (end->mean == 0) {
        end->mean = kiln_in_rate_mean(&rate);
        end->beyond = size;
    } else if (!end->cut) {
        return true;
    }
    return kiln_in_poisson_gap(kiln_in_random_unit(thread), (double)end->mean) < end->beyond;
}

/* ---- samples ---- */

static void keep(struct kiln_in_thread *thread, const struct kiln_in_record *record,
                 const void *address, size_t size)
{
    struct kiln_in_live block = {.address = (uint64_t)(uintptr_t)address,
                                 .size = size,
                                 .count = record->count,
                                 .at_ns = record->at_ns,
                                 .stack = record->stack,
                                 .labels = record->labels};

    memcpy(block.trace, record->trace, sizeof(block.trace));
    memcpy(block.span, record->span, sizeof(block.span));
    if (kiln_in_live_add(&block) < 0)
        kiln_in_lost(thread, KILN_IN_LOST_LIVE);
}

static void sample(struct kiln_in_thread *thread, void *block, size_t size, double mean)
{
    struct kiln_in_record record;

    kiln_in_record_begin(&record, KILN_IN_ALLOC);
    kiln_in_rate_note(&rate, true, record.at_ns);
    record.count = 1 / kiln_in_poisson_chance((double)size, mean);
    record.value = record.count * (double)size;
    record.stack = kiln_in_stack_here(thread);
    if (kiln_in_ring_put(thread, &record) < 0)
        return;
    if (kiln_in_wants(KILN_PROFILE_HEAP))
        keep(thread, &record, block, size);
    if (KILN_IN_PROBE_ENABLED(otel_memory, alloc))
        KILN_IN_PROBE3(otel_memory, alloc, block, size, (uint64_t)record.value);
}

void kiln_in_alloc_made(void *block, size_t size)
{
    struct end end = take_end();
    struct kiln_in_thread *thread;

    kiln_in_go_on();
    thread = kiln_in_wants(KILN_PROFILE_ALLOC | KILN_PROFILE_HEAP) ? kiln_in_enter() : NULL;
    if (!thread)
        return;
    if (is_due(thread, &end, size))
        sample(thread, block, size, (double)end.mean);
    else
        kiln_in_rate_note(&rate, false, kiln_in_now_ns());
    wind_up(thread);
    kiln_in_leave(thread);
}

/* ---- the end of a block ---- */

static void tell_freed(void *block)
{
    if (KILN_IN_PROBE_ENABLED(otel_memory, free))
        KILN_IN_PROBE1(otel_memory, free, block);
}

/*
 * What a jump has left locked is open from here on.  And a call for more bytes than half of all
 * addresses, which fails, has wound up the count instead of letting it run out.
 */
static void mend(void)
{
    (void)kiln_in_is_inside();
    if (kiln_in_line.alloc_left > UNWANTED)
        idle();
}

void kiln_in_alloc_freed(void *block)
{
    mend();
    if (kiln_in_live_remove(block))
        tell_freed(block);
}

uint64_t kiln_in_alloc_moving(void *block)
{
    mend();
    return kiln_in_live_mark(block);
}

void kiln_in_alloc_moved(void *block, uint64_t mark)
{
    if (kiln_in_live_remove_marked(block, mark))
        tell_freed(block);
}

uint64_t kiln_in_alloc_mean(void)
{
    return kiln_in_rate_mean(&rate);
}

/* ---- the part ---- */

int kiln_in_alloc_start(void)
{
    kiln_in_rate_init(&rate, kiln_in_settings.alloc_bytes, (double)kiln_in_settings.alloc_rate,
                      kiln_in_now_ns());
    return kiln_in_live_init();
}

void kiln_in_alloc_stop(void)
{
}

/* The child begins as a new thread does: its first allocations are where it goes on. */
void kiln_in_alloc_forked(void)
{
    kiln_in_line.alloc_mean = 0;
    kiln_in_line.alloc_left = 0;
    kiln_in_live_forked();
    kiln_in_region_forked();
}

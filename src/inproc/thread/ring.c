/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both counters only grow, their difference is what lies in the ring.  The release of `written`
 * shows the record, and the stack it names, to the keeper; that of `read` gives the room back.
 *
 * A burst would fill the ring before its time to be read: the keeper is called when it is half
 * full, by a system call, so not where those were given up.  It may come late.  So from three
 * quarters on the next four records are every second, by chance, the four behind them every fourth,
 * and so on, and each counts for as many: sums stay what they were on average, and there is room
 * for half a million.
 */
#include "inproc/thread/ring.h"

#include <string.h>

#include "inproc/clock.h"
#include "inproc/span.h"
#include "inproc/thread/line.h"
#include "inproc/thread/sandbox.h"
#include "inproc/thread/thread.h"

_Static_assert(sizeof(struct kiln_in_record) == 64, "a record is a cache line");
_Static_assert((KILN_IN_RING_RECORDS & (KILN_IN_RING_RECORDS - 1)) == 0, "counters wrap");

enum { CALLED_AT = KILN_IN_RING_RECORDS / 2, ALL_OF = KILN_IN_RING_RECORDS / 4 * 3, STAGE = 4 };

struct kiln_in_bell kiln_in_keeper_bell;

/* Whether it is one of those that are put where so many lie already; it weighs as many, then. */
static bool is_chosen(struct kiln_in_thread *thread, uint32_t filled, struct kiln_in_record *record)
{
    uint32_t of = filled < ALL_OF ? 1 : 2u << (filled - ALL_OF) / STAGE;

    if (of == 1)
        return true;
    kiln_in_lost(thread, KILN_IN_LOST_THINNED);
    record->count *= of;
    record->value *= of;
    return (kiln_in_random(thread) >> 32 & (of - 1)) == 0;
}

int kiln_in_ring_put(struct kiln_in_thread *thread, struct kiln_in_record *record)
{
    struct kiln_in_ring *ring = &thread->ring;
    uint32_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
    uint32_t filled = written - atomic_load_explicit(&ring->read, memory_order_acquire);

    if (filled >= KILN_IN_RING_RECORDS) {
        kiln_in_lost(thread, KILN_IN_LOST_RING);
        return -1;
    }
    if (!is_chosen(thread, filled, record))
        return -1;
    ring->records[written % KILN_IN_RING_RECORDS] = *record;
    atomic_store_explicit(&ring->written, written + 1, memory_order_release);
    if (filled + 1 == CALLED_AT && !kiln_in_is_sandboxed())
        kiln_in_bell_ring(&kiln_in_keeper_bell);
    return 0;
}

int kiln_in_ring_take(struct kiln_in_ring *ring, struct kiln_in_record *ret)
{
    uint32_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);

    if (read == atomic_load_explicit(&ring->written, memory_order_acquire))
        return 0;
    *ret = ring->records[read % KILN_IN_RING_RECORDS];
    atomic_store_explicit(&ring->read, read + 1, memory_order_release);
    return 1;
}

void kiln_in_record_begin(struct kiln_in_record *record, enum kiln_in_kind kind)
{
    memset(record, 0, sizeof(*record));
    record->kind = (uint8_t)kind;
    record->at_ns = kiln_in_now_ns();
    if (kiln_in_line.thread) {
        record->labels = kiln_in_line.thread->labels;
        record->tid = atomic_load_explicit(&kiln_in_line.thread->tid, memory_order_relaxed);
    }
    kiln_in_span_now(record->trace, record->span);
}

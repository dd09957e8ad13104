/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both counters only grow, their difference is what lies in the ring.  The release of `written`
 * shows the record, and the stack it names, to the keeper; that of `read` gives the room back.
 */
#include "inproc/thread/ring.h"

#include <string.h>

#include "inproc/clock.h"
#include "inproc/span.h"
#include "inproc/thread/line.h"
#include "inproc/thread/thread.h"

_Static_assert(sizeof(struct kiln_in_record) == 64, "a record is a cache line");
_Static_assert((KILN_IN_RING_RECORDS & (KILN_IN_RING_RECORDS - 1)) == 0, "counters wrap");

int kiln_in_ring_put(struct kiln_in_thread *thread, const struct kiln_in_record *record)
{
    struct kiln_in_ring *ring = &thread->ring;
    uint32_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);

    if (written - atomic_load_explicit(&ring->read, memory_order_acquire) >= KILN_IN_RING_RECORDS) {
        kiln_in_lost(thread, KILN_IN_LOST_RING);
        return -1;
    }
    ring->records[written % KILN_IN_RING_RECORDS] = *record;
    atomic_store_explicit(&ring->written, written + 1, memory_order_release);
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

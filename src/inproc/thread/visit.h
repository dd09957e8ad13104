/* SPDX-License-Identifier: Apache-2.0 */
/*
 * visit - whether this library is at work on a thread.
 *
 * A handler of the program's may interrupt us and leave by a jump, past all that we would have done
 * at our end.  So whoever marks a thread leaves a word of its own in its frame: as long as the
 * frame is there the word is, whichever stack it is on, and whichever stack somebody else asks
 * from.  A word that is gone tells that the frame is, and what was held in it is let go of.  It may
 * be found late, when something else has come to lie in its place, but never early: positions on a
 * stack tell nothing where there are coroutines and alternate stacks.
 *
 * Threads: of the thread itself, handlers of signals included.
 */
#ifndef KILN_INPROC_THREAD_VISIT_H
#define KILN_INPROC_THREAD_VISIT_H

#include <stdbool.h>
#include <stdint.h>

#include "inproc/thread/line.h"

struct kiln_in_visit {
    uint64_t word;
};

/* `visit` lies in the frame of whoever ends it.  One within another leaves all to that. */
void kiln_in_visit_begin(struct kiln_in_visit *visit);
void kiln_in_visit_end(struct kiln_in_visit *visit);

/* Of one that has begun; where it was left by a jump, there is none from here on. */
bool kiln_in_visit_lasts(void);

static inline bool kiln_in_is_inside(void)
{
    return kiln_in_line.hushed || (kiln_in_line.visit && kiln_in_visit_lasts());
}

/*
 * For our own threads, and for functions of the interface, which may hold locks that cannot be let
 * go of for them: hooks pass through in between, and after a jump out of them.  Nests.
 */
static inline void kiln_in_hush(void)
{
    kiln_in_line.hushed++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void kiln_in_unhush(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    kiln_in_line.hushed--;
}

#endif /* KILN_INPROC_THREAD_VISIT_H */

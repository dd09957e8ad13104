/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults - all that is wrong with a configuration, in the order in which it was found: who mends a
 * file wants to know of everything at once.
 *
 * Threads: one owner.
 */
#ifndef KILN_COLLECTOR_FAULTS_H
#define KILN_COLLECTOR_FAULTS_H

#include <stdint.h>

#include "base/config.h"

enum { KILN_FAULTS_MAX = 50 };

struct kiln_faults {
    struct kiln_err list[KILN_FAULTS_MAX];
    uint32_t n;
    uint32_t left_out; /* beyond those */
};

/*
 * Notes a fault.  `first`, unless NULL, gets it where it has none yet; `faults` may be NULL.
 * Returns 0: looking goes on; but -ENOMEM, which is nobody's fault, where that is the code.
 */
KILN_CHECK int kiln_faults_note(struct kiln_faults *faults, const struct kiln_err *fault,
                                struct kiln_err *first);

/* Who reads a part of a configuration, and is told of all that is wrong with it. */
struct kiln_faults_reader {
    /* Tells the first fault of `node` (NULL: it is empty), which lacks what was at fault before. */
    int (*read)(void *context, const struct kiln_node *node, struct kiln_err *err);
    int (*found)(void *context, struct kiln_err *fault); /* negative: that is enough */
    void *context;
};

/*
 * Reads, and where there is a fault reads again without what stands at its place, until no more is
 * found.  A fault of the whole that what was left out may be the reason for is not told.  Memory is
 * the arena's.  Returns 0, what found() said where that is negative, or -ENOMEM.
 */
KILN_CHECK int kiln_faults_find(const struct kiln_node *node, struct kiln_arena *arena,
                                const struct kiln_faults_reader *reader);

#endif /* KILN_COLLECTOR_FAULTS_H */

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

#include "base/err.h"

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

#endif /* KILN_COLLECTOR_FAULTS_H */

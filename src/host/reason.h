/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reason - how walks of stacks end, as a word for metrics and a sentence for people; and counting
 * them.
 *
 * Threads: texts from anywhere; a tally has one owner.
 */
#ifndef KILN_HOST_REASON_H
#define KILN_HOST_REASON_H

#include <stdint.h>

#include "host/bpf/record.h"

/* "complete", "jit", "no_table": a label of kiln_host_stacks_total. */
const char *kiln_end_word(enum kiln_end end);
/* "code made at run time, whose frame pointers do not lead on" */
const char *kiln_end_text(enum kiln_end end);

struct kiln_end_tally {
    uint64_t by_end[KILN_ENDS];
    uint64_t lost;
};
/* Of the samples with a user stack of 64 bits, and those lost: the share that is complete, 0..1. */
double kiln_end_success(const struct kiln_end_tally *tally);

#endif /* KILN_HOST_REASON_H */

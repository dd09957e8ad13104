/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf_int - lines of `perf script`, taken apart.
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_PERF_INT_H
#define KILN_CODEC_PERF_INT_H

#include "base/str.h"
#include "codec/textframe.h"

/* The first line of a sample; numbers are -1 where they were not printed. */
struct perf_header {
    struct kiln_str comm;
    struct kiln_str event; /* "" if not printed */
    struct kiln_str rest;  /* what stands behind the event */
    int64_t pid, tid, cpu, period, time_ns;
};

/* Takes `line` apart; false if it is no such line. */
bool perf_parse_header(struct kiln_str line, struct perf_header *ret);

/*
 * A line of a stack: "55f4 hot+0x28 (/bin/burn)".  False if it is none.  With `strict` it must name
 * its module or be unknown, so that other text behind an event is not taken for a frame.
 */
bool perf_parse_frame(struct kiln_str line, bool strict, struct kiln_textframe *ret);

/* "burn.c:4" into file and line of the frame before; anything else is passed over. */
void perf_parse_source(struct kiln_str line, struct kiln_textframe *frame);

#endif /* KILN_CODEC_PERF_INT_H */

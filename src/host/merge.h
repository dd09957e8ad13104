/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge - samples and side-band events in one order of time, before anything is looked up.
 *
 * Samples of several processors lie in one ring, not quite in order.  Whatever was written before a
 * round of draining began has been seen when the round ends; so after each round everything older
 * than the beginning of the round before is shown, in order, and the rest is kept.  Events are in
 * order where they are (host/sideband.h): before each sample somebody else is told to show those
 * that are older.
 *
 * What is kept is bounded; beyond the bound the oldest is shown early (counted).  Slices of stack
 * are wiped when they were shown.
 *
 * Threads: one owner.
 */
#ifndef KILN_HOST_MERGE_H
#define KILN_HOST_MERGE_H

#include <stddef.h>

#include "base/attr.h"
#include "host/bpf/record.h"

/* Zeroes what a raw record has of a stranger's memory: his registers and a slice of his stack. */
void kiln_record_wipe(struct kiln_record *record);

struct kiln_merge;

struct kiln_merge_visitor {
    /* Whatever else was before that time is to be shown now. */
    void (*before)(void *context, uint64_t time_ns);
    void (*sample)(void *context, const struct kiln_record *record);
    void *context;
};

/* `bytes_max`: what may be kept; 0: 32 MiB. */
KILN_CHECK int kiln_merge_new(size_t bytes_max, const struct kiln_merge_visitor *visitor,
                              struct kiln_merge **ret_merge);
void kiln_merge_free(struct kiln_merge *merge);

/* A round: begin, add all that the ring has, end (which shows what is due). */
void kiln_merge_begin(struct kiln_merge *merge, uint64_t now_ns);
void kiln_merge_add_sample(struct kiln_merge *merge, const struct kiln_record *record);
void kiln_merge_end(struct kiln_merge *merge);
/* Something of this time was shown by somebody else. */
void kiln_merge_saw(struct kiln_merge *merge, uint64_t time_ns);
/* Shows everything: at the end. */
void kiln_merge_flush(struct kiln_merge *merge);
size_t kiln_merge_bytes(const struct kiln_merge *merge);
/* Of those that were shown: samples and events that came after a later one was shown. */
uint64_t kiln_merge_late(const struct kiln_merge *merge);
/* Shown before they were due, for want of room. */
uint64_t kiln_merge_early(const struct kiln_merge *merge);

#endif /* KILN_HOST_MERGE_H */

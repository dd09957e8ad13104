/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulk - the fast door of the builder: entries that are known, or will be shown, to be distinct.
 *
 * Appending here neither looks nor hashes.  The hash index of a table learns of its new entries
 * when someone looks one up; if nobody does, it was free.  A decoder whose sender promises distinct
 * entries appends them all and has the promise checked once, with kiln_builder_distinct(); if it
 * was broken, it forgets them and goes through the ordinary door.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CORE_BULK_H
#define KILN_CORE_BULK_H

#include "core/builder_int.h"

/* Copies the text. */
uint32_t kiln_builder_new_string(struct kiln_builder *b, struct kiln_str s);

static inline uint32_t kiln_builder_new_function(struct kiln_builder *b,
                                                 const struct kiln_function *function)
{
    struct kiln_dict *d = &b->box->batch.dict;

    if (!ROOM(b, d->functions, d->n_functions, functions, 1))
        return 0;
    d->functions[d->n_functions] = *function;
    return d->n_functions++;
}

/* The location by value, in registers: reading narrow fields together right after they were written
 * stalls the processor. */
KILN_INLINE uint32_t kiln_builder_new_location(struct kiln_builder *b, uint64_t address,
                                               uint32_t mapping, uint32_t attrs,
                                               const struct kiln_line *lines, uint32_t n_lines)
{
    struct kiln_dict *d = &b->box->batch.dict;

    if (!ROOM(b, d->locations, d->n_locations, locations, 1) ||
        !ROOM(b, d->lines, d->n_lines, lines, n_lines))
        return 0;
    d->locations[d->n_locations] = (struct kiln_location){
        .address = address, .mapping = mapping, .attrs = attrs, .first = d->n_lines, .n = n_lines};
    if (n_lines)
        memcpy(&d->lines[d->n_lines], lines, n_lines * sizeof(*lines));
    d->n_lines += n_lines;
    return d->n_locations++;
}

/* Room for the `n` frames of the next stack, to be written by the caller; NULL on failure. */
uint32_t *kiln_builder_frames(struct kiln_builder *b, uint32_t n);

/* The stack of the `n` frames written to where kiln_builder_frames() pointed. */
static inline uint32_t kiln_builder_new_stack(struct kiln_builder *b, uint32_t n)
{
    struct kiln_dict *d = &b->box->batch.dict;

    if (!ROOM(b, d->stacks, d->n_stacks, stacks, 1))
        return 0;
    d->stacks[d->n_stacks] = (struct kiln_range){d->n_frames, n};
    d->n_frames += n;
    return d->n_stacks++;
}

/* True while the builder has no function, location or stack but the zero values. */
bool kiln_builder_has_no_stacks(const struct kiln_builder *b);

/*
 * True if the functions, locations and stacks of the builder are distinct and none but the first of
 * each is the zero value.  False also where that cannot be told (no memory).
 */
bool kiln_builder_distinct(struct kiln_builder *b);

/* Takes all functions, locations and stacks back; nothing may refer to them yet. */
void kiln_builder_forget_stacks(struct kiln_builder *b);

#endif /* KILN_CORE_BULK_H */

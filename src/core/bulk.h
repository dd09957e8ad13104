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

#include <assert.h>

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

/* Room for the `n` lines of the next location, to be written by the caller; NULL on failure. */
KILN_INLINE struct kiln_line *kiln_builder_lines(struct kiln_builder *b, uint32_t n)
{
    struct kiln_dict *d = &b->box->batch.dict;

    return ROOM(b, d->lines, d->n_lines, lines, n) ? d->lines + d->n_lines : NULL;
}

/* Takes the `n` lines written there.  Returns the index of the first. */
KILN_INLINE uint32_t kiln_builder_take_lines(struct kiln_builder *b, uint32_t n)
{
    uint32_t first = b->box->batch.dict.n_lines;

    b->box->batch.dict.n_lines += n;
    return first;
}

/* Where the next locations go, and how many have room; none once the builder has failed. */
static inline struct kiln_location *kiln_builder_locations(struct kiln_builder *b,
                                                           uint32_t *ret_room)
{
    struct kiln_dict *d = &b->box->batch.dict;

    *ret_room = b->error ? 0 : b->cap.locations - d->n_locations;
    return d->locations + d->n_locations;
}

/* Takes the `n` locations written there. */
static inline void kiln_builder_take_locations(struct kiln_builder *b, uint32_t n)
{
    b->box->batch.dict.n_locations += n;
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
    if (n_lines)
        memcpy(&d->lines[d->n_lines], lines, n_lines * sizeof(*lines));
    d->locations[d->n_locations] = (struct kiln_location){
        .address = address, .mapping = mapping, .attrs = attrs, .first = d->n_lines, .n = n_lines};
    d->n_lines += n_lines;
    return d->n_locations++;
}

/* As kiln_builder_location(), with a look at the next one before anything is called. */
KILN_INLINE uint32_t kiln_builder_next_location(struct kiln_builder *b,
                                                const struct kiln_location *location,
                                                const struct kiln_line *lines)
{
    const struct kiln_dict *d = &b->box->batch.dict;
    uint32_t guess = b->next_location;

    if (guess >= d->n_locations || !kiln_location_is(d, guess, location, lines, location->n))
        return kiln_builder_location(b, location, lines, location->n);
    b->next_location = guess + 1;
    return guess;
}

/* How many frames there is room for already. */
static inline uint32_t kiln_builder_frames_left(const struct kiln_builder *b)
{
    return b->cap.frames - b->box->batch.dict.n_frames;
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

/*
 * The set of these `n` > 0 attributes, which have distinct keys, in this order.  It is in no index:
 * for a builder whose sets all come this way.
 */
uint32_t kiln_builder_new_set(struct kiln_builder *b, const uint32_t *attrs, uint32_t n);

/* Room for `n` observations of the next sample, to be written by the caller; NULL on failure. */
KILN_INLINE int64_t *kiln_builder_observations(struct kiln_builder *b, uint64_t n)
{
    struct kiln_batch *batch = &b->box->batch;

    return ROOM(b, batch->observations, batch->n_observations, observations, n)
               ? batch->observations + batch->n_observations
               : NULL;
}

/*
 * The sample of the observations written there: values if it has them, then times.  Its `first` is
 * filled in.  False on failure.
 */
KILN_INLINE bool kiln_builder_new_sample(struct kiln_builder *b, uint32_t profile,
                                         struct kiln_sample sample)
{
    struct kiln_batch *batch = &b->box->batch;

    if (!ROOM(b, batch->samples, batch->n_samples, samples, 1))
        return false;
    assert(profile < batch->n_profiles && sample.stack < batch->dict.n_stacks);
    assert(sample.attrs < batch->dict.n_sets && sample.link < batch->dict.n_links);
    if (KILN_UNLIKELY(profile < b->last_owner || b->owners) && !kiln_builder_own(b, profile))
        return false;
    b->last_owner = profile;
    batch->profiles[profile].n_samples++;
    sample.first = batch->n_observations;
    batch->samples[batch->n_samples++] = sample;
    batch->n_observations += sample.n * (sample.has_values + sample.has_times + 0u);
    return true;
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

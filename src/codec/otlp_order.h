/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_order - the order of what may stand in any order in an OTLP message, chosen so that what is
 * alike stands together: a compressor that looks back 32 KiB then finds it.
 *
 *   stacks      those that share their outer frames are neighbours, and of these such as end one
 *               frame further, which then have the same length too
 *   samples     of one profile: by attributes, value and stack
 *   resources   those of a service together
 *
 * What refers to a stack does so by its place in this order.  Names that are made up
 * (core/frame.h), which are like each other and like no other text, go to the end of the string
 * table, those of functions to its begin: codec/otlp_tables.h.  Texts stand before all other
 * tables, so that these, which are numbers, have one code (base/compress.h).
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CODEC_OTLP_ORDER_H
#define KILN_CODEC_OTLP_ORDER_H

#include "core/batch.h"

/* The place of each entry; NULL: where it is in the batch. */
struct otlp_order {
    uint32_t *stacks;    /* batch index of the stack at each place of the table */
    uint32_t *places;    /* and the place of each stack of the batch */
    uint32_t *samples;   /* batch indexes; those of a profile stay where the profile has its own */
    uint32_t *resources; /* batch indexes */
};

/* Returns 0 or -ENOMEM. */
KILN_CHECK int otlp_order_init(struct otlp_order *order, const struct kiln_batch *batch);
void otlp_order_done(struct otlp_order *order);

/* What stands at a place of a table. */
static inline uint32_t otlp_at(const uint32_t *order, uint32_t place)
{
    return order ? order[place] : place;
}

#endif /* KILN_CODEC_OTLP_ORDER_H */

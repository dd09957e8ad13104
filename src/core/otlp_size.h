/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_size - how many bytes a batch takes as OTLP protobuf, without encoding it.
 *
 * Never too small, and close: what is not known before encoding is taken at its largest (lengths of
 * open messages: five bytes; attribute texts: inline and in the string table).
 *
 * A sizer goes through one batch sample by sample and tells what a message of the samples so far
 * would take, with only the dictionary entries those samples need, numbered in the order in which
 * core/remap.h brings them over.
 *
 * Threads: one owner at a time; the batch is only read.
 */
#ifndef KILN_CORE_OTLP_SIZE_H
#define KILN_CORE_OTLP_SIZE_H

#include "base/attr.h"
#include "core/batch.h"

/* An upper bound for a whole batch as it is. */
uint64_t kiln_otlp_size_max(const struct kiln_batch *batch);
/* Whether that is at most `max`: where it is far below, without a look at every entry. */
bool kiln_otlp_fits(const struct kiln_batch *batch, uint64_t max);

struct kiln_otlp_sizer;

/* Returns 0 or -ENOMEM. */
KILN_CHECK int kiln_otlp_sizer_new(const struct kiln_batch *batch,
                                   struct kiln_otlp_sizer **ret_sizer);
void kiln_otlp_sizer_free(struct kiln_otlp_sizer *sizer);

/* Begins the next message, whose dictionary is empty again. */
void kiln_otlp_sizer_restart(struct kiln_otlp_sizer *sizer);

/* Bytes of the message outside its resources: the dictionary so far. */
uint64_t kiln_otlp_sizer_dict(const struct kiln_otlp_sizer *sizer);

/*
 * Bytes of a head (or of the fixed part of a sample) in its message; the dictionary entries it
 * needs are added to those of the message.
 */
uint64_t kiln_otlp_sizer_resource(struct kiln_otlp_sizer *sizer, uint32_t resource);
uint64_t kiln_otlp_sizer_scope(struct kiln_otlp_sizer *sizer, uint32_t scope);
uint64_t kiln_otlp_sizer_profile(struct kiln_otlp_sizer *sizer, uint32_t profile, bool payload);
uint64_t kiln_otlp_sizer_sample(struct kiln_otlp_sizer *sizer, uint32_t sample);

/* Bytes of a whole sample: its fixed part, `n` observations, their values as varints. */
uint64_t kiln_otlp_sample_size(const struct kiln_sample *sample, uint64_t fixed, uint64_t n,
                               uint64_t value_bytes);

/* Bytes of a number as a varint. */
static inline uint64_t kiln_otlp_varint_size(uint64_t number)
{
    return 1 + (uint64_t)(63 - __builtin_clzll(number | 1)) / 7;
}

#endif /* KILN_CORE_OTLP_SIZE_H */

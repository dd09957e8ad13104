/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge - many batches into one; split - one into many; compact - one without what nobody uses.
 *
 * All three copy samples into a builder through a `kiln_remap`, which brings a dictionary entry
 * over when the first sample needs it: what no sample uses stays behind, and every step is linear.
 *
 * Threads: one owner at a time; the batches are only read.
 */
#ifndef KILN_CORE_MERGE_H
#define KILN_CORE_MERGE_H

#include "core/builder.h"

/* ---- remap: entries of one batch, as entries of a builder ---- */

struct kiln_remap;

KILN_CHECK int kiln_remap_new(struct kiln_builder *b, const struct kiln_batch *from,
                              struct kiln_remap **ret_remap);
void kiln_remap_free(struct kiln_remap *remap);

/* Index in the source -> index in the builder; failures stick in the builder. */
uint32_t kiln_remap_string(struct kiln_remap *remap, uint32_t string);
uint32_t kiln_remap_function(struct kiln_remap *remap, uint32_t function);
uint32_t kiln_remap_mapping(struct kiln_remap *remap, uint32_t mapping);
uint32_t kiln_remap_location(struct kiln_remap *remap, uint32_t location);
uint32_t kiln_remap_stack(struct kiln_remap *remap, uint32_t stack);
uint32_t kiln_remap_link(struct kiln_remap *remap, uint32_t link);
uint32_t kiln_remap_set(struct kiln_remap *remap, uint32_t set);
/* The head of a resource, scope or profile, without its children. */
struct kiln_resource kiln_remap_resource(struct kiln_remap *remap, uint32_t resource);
struct kiln_scope kiln_remap_scope(struct kiln_remap *remap, uint32_t scope);
struct kiln_profile kiln_remap_profile(struct kiln_remap *remap, uint32_t profile);

/* ---- merge ---- */

struct kiln_merge_opts {
    struct kiln_limits limits; /* zero: the default */
    bool combine_times;        /* also merge profiles of different start into one longer profile */
    bool keep_profiles_apart;  /* never merge two profiles, only their resources and scopes */
};

/*
 * Merges `n` batches.  Equal resources (and within them equal scopes) become one; profiles of one
 * type, period, id and attributes become one, with equal sample identities combined: values without
 * times are added up, observations with times are all kept.  Profiles that carry a payload or
 * different ids are never merged.
 */
KILN_CHECK int kiln_merge(struct kiln_batch *const *batches, uint32_t n,
                          const struct kiln_merge_opts *opts, struct kiln_batch **ret_batch,
                          struct kiln_err *err);

/* The same batch without dictionary entries that nothing refers to. */
KILN_CHECK int kiln_compact(const struct kiln_batch *batch, struct kiln_batch **ret_batch,
                            struct kiln_err *err);

/* ---- split ---- */

struct kiln_split_opts {
    uint64_t bytes_max;   /* of an encoded part (OTLP), 0: no limit */
    uint32_t samples_max; /* observations of a part, 0: no limit */
};

/*
 * Cuts a batch into parts within the limits, inside a profile where needed.  Each part is a whole
 * batch with only its own dictionary; together they hold every sample once.  A single observation
 * that is too large for bytes_max by itself is an error (KILN_E_LIMIT).
 * The caller unrefs the parts and frees *ret_parts with kiln_free().
 */
KILN_CHECK int kiln_split(const struct kiln_batch *batch, const struct kiln_split_opts *opts,
                          struct kiln_batch ***ret_parts, uint32_t *ret_n, struct kiln_err *err);

#endif /* KILN_CORE_MERGE_H */

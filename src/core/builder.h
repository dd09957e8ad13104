/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder - makes batches: interns dictionary entries, collects samples, keeps the invariants.
 *
 * Interning functions return the index of the entry, new or old.  They never need a check: the
 * first failure sticks, everything returns 0 from then on, and kiln_builder_finish() reports it.  A
 * caller in a long loop may look at kiln_builder_error() now and then to stop early.
 *
 * Indexes given to a builder must come from the same builder; this is asserted, not reported.
 * Decoders check what they read before they pass it on.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CORE_BUILDER_H
#define KILN_CORE_BUILDER_H

#include "base/err.h"
#include "core/batch.h"

struct kiln_builder;

/* What a batch may take at most. */
struct kiln_limits {
    size_t memory_bytes;  /* everything: tables, samples, scratch, adopted input */
    uint32_t table_count; /* entries of any one array */
    uint32_t stack_depth; /* locations of one stack */
    uint32_t value_depth; /* nesting of attribute values */
};

/* 1 GiB, 2^28 entries, 65,536 locations, 64 levels. */
extern const struct kiln_limits kiln_limits_default;

/* `limits` NULL: the default.  Returns 0 or -ENOMEM. */
KILN_CHECK int kiln_builder_new(const struct kiln_limits *limits,
                                struct kiln_builder **ret_builder);
void kiln_builder_free(struct kiln_builder *b);

/*
 * Turns the builder into a batch and frees the builder, also on failure.
 * Returns 0 or the first error of anything the builder was asked to do.
 */
KILN_CHECK int kiln_builder_finish(struct kiln_builder *b, struct kiln_batch **ret_batch,
                                   struct kiln_err *err);

/* 0, or the first error so far. */
int kiln_builder_error(const struct kiln_builder *b);

/* Makes the builder fail with `code` (a negative one): for callers that must give up mid-way. */
void kiln_builder_fail(struct kiln_builder *b, int code);

const struct kiln_limits *kiln_builder_limits(const struct kiln_builder *b);

/* What is built so far, readable like a batch.  Pointers in it move with the next addition. */
const struct kiln_batch *kiln_builder_peek(const struct kiln_builder *b);

/* Memory that lives as long as the batch, charged to it.  NULL on failure (which sticks). */
void *kiln_builder_alloc(struct kiln_builder *b, size_t size);

/* The same, but only until finish: for a decoder's tables.  Charged, and aligned for anything. */
void *kiln_builder_scratch(struct kiln_builder *b, size_t size);

/*
 * Gives memory from kiln_malloc() to the batch, for strings that point into it.  On failure (which
 * sticks) the memory is freed.
 */
void kiln_builder_adopt(struct kiln_builder *b, void *ptr, size_t size);

/* How many entries are about to come, to size arrays and hash tables once.  Any field may be 0. */
struct kiln_counts {
    uint64_t strings, functions, mappings, locations, lines, stacks, frames, links, attrs, sets,
        members, resources, scopes, profiles, samples, observations;
    bool bulk; /* functions, locations and stacks come through core/bulk.h, without an index yet */
};
void kiln_builder_expect(struct kiln_builder *b, const struct kiln_counts *more);

/*
 * Gives back the memory that finding strings, functions and locations takes: for a decoder that has
 * read its tables and goes on to the samples.  Looking for one again is allowed, and slow once.
 */
void kiln_builder_drop_indexes(struct kiln_builder *b);

/* ---- dictionary ---- */

/* Copies the text. */
uint32_t kiln_builder_string(struct kiln_builder *b, struct kiln_str s);
/* Keeps a pointer to the text, which must live as long as the batch (see kiln_builder_adopt). */
uint32_t kiln_builder_string_ref(struct kiln_builder *b, struct kiln_str s);

uint32_t kiln_builder_function(struct kiln_builder *b, const struct kiln_function *function);
uint32_t kiln_builder_mapping(struct kiln_builder *b, const struct kiln_mapping *mapping);
uint32_t kiln_builder_link(struct kiln_builder *b, const struct kiln_link *link);

/* A location; its `first` and `n` are taken from the arguments. */
uint32_t kiln_builder_location(struct kiln_builder *b, const struct kiln_location *location,
                               const struct kiln_line *lines, uint32_t n_lines);

/* A stack of locations, leaf first. */
uint32_t kiln_builder_stack(struct kiln_builder *b, const uint32_t *locations, uint32_t n);
/*
 * The same without a copy: room for at most `n` locations (NULL on failure, which sticks), and then
 * the stack of the `n` that were written there.  Nothing else may be added in between.
 */
uint32_t *kiln_builder_stack_room(struct kiln_builder *b, uint32_t n);
uint32_t kiln_builder_stack_take(struct kiln_builder *b, uint32_t n);

/*
 * An entry of the attribute table.  A value that is an array or a map is made bottom-up: its
 * children are given to kiln_builder_array() or _map() first.
 */
uint32_t kiln_builder_attr(struct kiln_builder *b, uint32_t key, struct kiln_value value,
                           uint32_t unit);
struct kiln_value kiln_builder_array(struct kiln_builder *b, const struct kiln_value *items,
                                     uint32_t n);
struct kiln_value kiln_builder_map(struct kiln_builder *b, const struct kiln_attr *entries,
                                   uint32_t n);
/* Either of them from children with keys and units (0 in an array): ARRAY or MAP. */
struct kiln_value kiln_builder_nested(struct kiln_builder *b, enum kiln_value_kind kind,
                                      const struct kiln_attr *children, uint32_t n);
struct kiln_value kiln_value_string(uint32_t string);
struct kiln_value kiln_value_int(int64_t i);
struct kiln_value kiln_value_bool(bool flag);
struct kiln_value kiln_value_double(double d);
struct kiln_value kiln_value_bytes(uint32_t string);

/*
 * A set of attributes, in any order.  Where two share a key the later one wins; the builder counts
 * such losses in *ret_duplicates if that is not NULL.  References to the empty attribute (index 0,
 * which is also an attribute without key, value and unit) are left out.
 */
uint32_t kiln_builder_set(struct kiln_builder *b, const uint32_t *attrs, uint32_t n,
                          uint32_t *ret_duplicates);

/* Shorthand: the text attribute key = value, as an attribute index. */
uint32_t kiln_builder_text_attr(struct kiln_builder *b, struct kiln_str key, struct kiln_str value);

/* ---- profiles ---- */

/*
 * Opens the next resource, scope or profile; `first` and `n` fields are filled by the builder.  A
 * scope belongs to the last resource, a profile to the last scope.  Returns its index.
 */
uint32_t kiln_builder_add_resource(struct kiln_builder *b, const struct kiln_resource *resource);
uint32_t kiln_builder_add_scope(struct kiln_builder *b, const struct kiln_scope *scope);
uint32_t kiln_builder_add_profile(struct kiln_builder *b, const struct kiln_profile *profile);
/* Adds an entity reference to the last resource. */
void kiln_builder_add_entity(struct kiln_builder *b, uint32_t schema_url, uint32_t type,
                             const uint32_t *id_keys, uint32_t n_id_keys,
                             const uint32_t *description_keys, uint32_t n_description_keys);

/*
 * Changes what is being built: a text may tell the time of a profile, or the attributes of a
 * resource, only at the end.  The builder's own fields (`first`, `n`) stay as they are.
 */
struct kiln_profile *kiln_builder_profile(struct kiln_builder *b, uint32_t profile);
struct kiln_scope *kiln_builder_scope(struct kiln_builder *b, uint32_t scope);
struct kiln_resource *kiln_builder_resource(struct kiln_builder *b, uint32_t resource);

/* Takes the last profile back, samples and all: a receiver drops one bad profile, not the request.
 */
void kiln_builder_drop_profile(struct kiln_builder *b);

/*
 * Adds a sample to any profile (not only the last); `first` is filled by the builder.  `values` and
 * `times` may be NULL, both have `n` elements where given.  Samples of one profile keep their
 * order.  A sample without an observation says nothing and is left out: OTLP forbids it, and on the
 * wire it would pass for another revision.
 */
void kiln_builder_add_sample(struct kiln_builder *b, uint32_t profile, uint32_t stack,
                             uint32_t attrs, uint32_t link, const int64_t *values,
                             const uint64_t *times, uint32_t n);

/* How many samples were left out so far because they had neither values nor timestamps. */
uint64_t kiln_builder_silent(const struct kiln_builder *b);

/*
 * Changes the attributes and links of samples: asked once for each set of attributes that samples
 * without a link have, however many those are.
 */
struct kiln_sample_edit {
    uint32_t attrs;
    uint32_t link;
};
void kiln_builder_edit_samples(struct kiln_builder *b,
                               struct kiln_sample_edit (*edit)(void *context,
                                                               struct kiln_builder *b,
                                                               uint32_t attrs),
                               void *context);

/* Multiplies the values of a profile; sums past 64 bits stay at the limit. */
void kiln_builder_scale_profile(struct kiln_builder *b, uint32_t profile, int64_t factor);

/*
 * Makes links of the sample attributes span_id and trace_id (hexadecimal texts; profile_id is an
 * older name of span_id), as pprof has them, and takes them out of the sets.  Texts that are no ids
 * stay where they are, and samples that have a link keep it.
 */
void kiln_builder_link_samples(struct kiln_builder *b);

/*
 * Profiles that have the same samples, with one value each: `n_samples` rows in each of the last
 * `n_profiles` profiles, which have no samples yet.  All rows must then be set, each once.
 */
struct kiln_grid {
    uint32_t first_sample, first_observation, n_profiles, n_samples;
};
KILN_CHECK int kiln_builder_open_grid(struct kiln_builder *b, uint32_t n_profiles,
                                      uint32_t n_samples, struct kiln_grid *ret_grid);
/* Sets row `i`: one identity, and a value for each profile. */
void kiln_builder_set_row(struct kiln_builder *b, const struct kiln_grid *grid, uint32_t i,
                          uint32_t stack, uint32_t attrs, const int64_t *values);

/* Shorthand: a sample of one value without a time. */
static inline void kiln_builder_add_value(struct kiln_builder *b, uint32_t profile, uint32_t stack,
                                          uint32_t attrs, int64_t value)
{
    kiln_builder_add_sample(b, profile, stack, attrs, 0, &value, NULL, 1);
}

#endif /* KILN_CORE_BUILDER_H */

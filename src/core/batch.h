/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch - the one type that flows through Kiln: profiles and the dictionary they share.
 *
 * The shape is that of OTLP profiles, in flat arrays:
 *
 *   batch ─┬─ resources[] ── scopes[] ── profiles[] ── samples[] ── observations[]
 *          └─ dict: strings, functions, mappings, locations (+ lines), stacks (+ frames),
 *                   links, attributes, attribute sets
 *
 * A child array is a range (`first`, `n`) in one array for the whole batch.  Everything names
 * everything else by a 32-bit index; a text is an index into strings.
 *
 * Invariants, kept by the builder (core/builder.h), the only maker of batches:
 *   - entry 0 of every dictionary table is its zero value: the empty string, no function, no
 *     mapping, the empty stack, no link, the empty attribute, the empty set;
 *   - no table holds an entry twice, so equal things have equal indexes;
 *   - every index is inside its table, every range inside its array;
 *   - a stack lists its locations leaf first; a location lists its lines innermost first, so that
 *     with inlining the last line is the outermost caller;
 *   - an attribute set is sorted by index and its keys are unique;
 *   - a sample's values and timestamps, where it has both, are pairs.
 *
 * Threads: a batch is immutable once made and its reference count is atomic: share it freely.
 */
#ifndef KILN_CORE_BATCH_H
#define KILN_CORE_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* ---- dictionary ---- */

enum kiln_value_kind {
    KILN_VALUE_EMPTY, /* present, but without a value */
    KILN_VALUE_STRING,
    KILN_VALUE_BOOL,
    KILN_VALUE_INT,
    KILN_VALUE_DOUBLE,
    KILN_VALUE_BYTES,
    KILN_VALUE_ARRAY, /* children in dict.nested, their keys 0 */
    KILN_VALUE_MAP,   /* children in dict.nested, with keys */
};

struct kiln_value {
    uint32_t kind; /* enum kiln_value_kind */
    uint32_t n;    /* ARRAY, MAP: number of children */
    union {
        uint64_t bits; /* all of the union, for hashing and comparing */
        uint64_t str;  /* STRING, BYTES: index into strings (bytes may be any bytes) */
        uint64_t flag; /* BOOL: 0 or 1 */
        int64_t i;
        double d;
        uint64_t first; /* ARRAY, MAP: first child in dict.nested */
    };
};

/* A key with a value: an entry of the attribute table, or a child of an array or map. */
struct kiln_attr {
    uint32_t key;  /* string */
    uint32_t unit; /* string; 0 = implied by the key */
    struct kiln_value value;
};

struct kiln_function {
    uint32_t name;        /* string: for people */
    uint32_t system_name; /* string: as the linker has it */
    uint32_t filename;    /* string */
    uint32_t pad;         /* 0 */
    int64_t start_line;
};

struct kiln_mapping {
    uint64_t start;
    uint64_t limit;
    uint64_t offset;
    uint32_t filename; /* string */
    uint32_t attrs;    /* attribute set: build ids live here */
};

struct kiln_line {
    uint32_t function;
    uint32_t pad; /* 0 */
    int64_t line;
    int64_t column;
};

struct kiln_location {
    uint64_t address;
    uint32_t mapping;
    uint32_t attrs; /* attribute set: profile.frame.type lives here */
    uint32_t first; /* into dict.lines */
    uint32_t n;
};

/* A range of dict.frames (location indexes, leaf first) or of dict.members (attribute indexes). */
struct kiln_range {
    uint32_t first;
    uint32_t n;
};

struct kiln_link {
    uint8_t trace_id[16];
    uint8_t span_id[8];
};

struct kiln_dict {
    struct kiln_str *strings;
    struct kiln_function *functions;
    struct kiln_mapping *mappings;
    struct kiln_location *locations;
    struct kiln_line *lines;
    struct kiln_range *stacks;
    uint32_t *frames;
    struct kiln_link *links;
    struct kiln_attr *attrs;
    struct kiln_attr *nested;
    struct kiln_range *sets;
    uint32_t *members;
    uint32_t n_strings, n_functions, n_mappings, n_locations, n_lines, n_stacks, n_frames, n_links,
        n_attrs, n_nested, n_sets, n_members;
};

/* ---- profiles ---- */

struct kiln_value_type {
    uint32_t type; /* strings */
    uint32_t unit;
};

/*
 * One identity (stack, attributes, link) and what was observed of it.  Three shapes: values only;
 * timestamps only, each counting one; or a value for each timestamp.
 */
struct kiln_sample {
    uint32_t stack;
    uint32_t attrs; /* attribute set */
    uint32_t link;
    uint32_t first;          /* into observations: n values if any, then n timestamps if any */
    uint32_t n : 30;         /* observations */
    uint32_t has_values : 1; /* int64 */
    uint32_t has_times : 1;  /* uint64, Unix nanoseconds */
};

struct kiln_profile {
    struct kiln_value_type sample_type;
    struct kiln_value_type period_type;
    int64_t period;
    uint64_t time_ns; /* Unix time of the start */
    uint64_t duration_ns;
    uint8_t id[16]; /* all zero: none */
    uint32_t attrs; /* attribute set */
    uint32_t dropped_attrs;
    uint32_t payload_format; /* string; original_payload_format */
    struct kiln_str payload; /* original_payload */
    uint32_t first_sample, n_samples;
};

struct kiln_scope {
    uint32_t name, version; /* strings */
    uint32_t attrs;         /* attribute set, units 0 */
    uint32_t dropped_attrs;
    uint32_t schema_url; /* string; of the scope and its profiles */
    uint32_t first_profile, n_profiles;
};

/* A reference of a resource to an entity (OTLP EntityRef); keys are strings in batch.entity_keys.
 */
struct kiln_entity {
    uint32_t schema_url, type;                         /* strings */
    uint32_t first_key, n_id_keys, n_description_keys; /* id keys, then description keys */
};

struct kiln_resource {
    uint32_t attrs; /* attribute set, units 0 */
    uint32_t dropped_attrs;
    uint32_t schema_url; /* string */
    uint32_t first_entity, n_entities;
    uint32_t first_scope, n_scopes;
};

struct kiln_batch {
    struct kiln_dict dict;
    struct kiln_resource *resources;
    struct kiln_entity *entities;
    uint32_t *entity_keys;
    struct kiln_scope *scopes;
    struct kiln_profile *profiles;
    struct kiln_sample *samples;
    int64_t *observations;
    uint32_t n_resources, n_entities, n_entity_keys, n_scopes, n_profiles, n_samples,
        n_observations;
};

/* Shares a batch; unref of the last reference frees it.  unref(NULL) is allowed. */
struct kiln_batch *kiln_batch_ref(struct kiln_batch *batch);
void kiln_batch_unref(struct kiln_batch *batch);

/* Bytes of memory the batch holds, and the most its making needed at once. */
size_t kiln_batch_bytes(const struct kiln_batch *batch);
size_t kiln_batch_peak_bytes(const struct kiln_batch *batch);

/* ---- reading ---- */

static inline struct kiln_str kiln_batch_str(const struct kiln_batch *batch, uint32_t string)
{
    return batch->dict.strings[string];
}

/* The sample's values (n of them) or NULL; its timestamps (n of them) or NULL. */
static inline const int64_t *kiln_sample_values(const struct kiln_batch *batch,
                                                const struct kiln_sample *sample)
{
    return sample->has_values ? batch->observations + sample->first : NULL;
}

static inline const uint64_t *kiln_sample_times(const struct kiln_batch *batch,
                                                const struct kiln_sample *sample)
{
    uint32_t skip = sample->has_values ? sample->n : 0;

    return sample->has_times ? (const uint64_t *)batch->observations + sample->first + skip : NULL;
}

/* The sum of the values, or the number of timestamps where there are no values.  Saturates. */
int64_t kiln_sample_total(const struct kiln_batch *batch, const struct kiln_sample *sample);

/* The attribute with this key in a set, or NULL. */
const struct kiln_attr *kiln_set_find(const struct kiln_batch *batch, uint32_t set,
                                      struct kiln_str key);

/* The text of a string attribute with this key in a set; KILN_STR_NONE where there is none. */
struct kiln_str kiln_set_text(const struct kiln_batch *batch, uint32_t set, struct kiln_str key);

/*
 * True if two batches say the same: equal after resolving every index, in the same order.  False
 * also where memory for finding out is lacking.
 */
bool kiln_batch_equal(const struct kiln_batch *a, const struct kiln_batch *b);

#endif /* KILN_CORE_BATCH_H */
